/* Keys of a block against keys of build rows, column by column, so that their cache misses overlap. */
#include <string.h>

#include "backend/cpu/join.h"
#include "tensor/semantics.h"

/* Two rows, and what is known of them. */
struct pair_list {
    const uint16_t *rows; /* of the block */
    const uint64_t *build_rows;
    int64_t n;
    uint8_t *equal;
};

static void compare_words(const int64_t *block, const int64_t *build, const struct pair_list *list) {
    for (int64_t l = 0; l < list->n; l++)
        list->equal[l] &= block[list->rows[l]] == build[list->build_rows[l]];
}

static void compare_wide(const sx_i128 *block, const sx_i128 *build, const struct pair_list *list) {
    for (int64_t l = 0; l < list->n; l++)
        list->equal[l] &= block[list->rows[l]] == build[list->build_rows[l]];
}

/* Lengths and first bytes decide most pairs; bytes elsewhere are asked for, then compared. */
static void compare_text(const struct sx_string *block, const struct sx_string *build,
                         const struct pair_list *list) {
    uint16_t undecided[SX_JOIN_BLOCK];
    int64_t n = 0;
    for (int64_t l = 0; l < list->n; l++) {
        uint64_t a[2], b[2];
        memcpy(a, &block[list->rows[l]], sizeof a);
        memcpy(b, &build[list->build_rows[l]], sizeof b);
        bool heads = a[0] == b[0], tails = a[1] == b[1];
        bool is_long = block[list->rows[l]].length_bytes > SX_STRING_INLINE_BYTES;
        undecided[n] = (uint16_t)l;
        n += list->equal[l] & heads & !tails & is_long;
        list->equal[l] &= heads & (tails | is_long);
        if (is_long)
            __builtin_prefetch(build[list->build_rows[l]].u.ref.pointer);
    }
    for (int64_t u = 0; u < n; u++) {
        uint16_t l = undecided[u];
        list->equal[l] = sx_string_equal(&block[list->rows[l]], &build[list->build_rows[l]]);
    }
}

static void compare_values(enum sx_join_form form, const void *block, const void *build,
                           const struct pair_list *list) {
    switch (form) {
    case SX_JOIN_WORD: compare_words(block, build, list); break;
    case SX_JOIN_WIDE: compare_wide(block, build, list); break;
    default: compare_text(block, build, list);
    }
}

/* NULLs get here only where they are equal: values of two of them don't count. */
static void compare_with_nulls(enum sx_join_form form, const struct sx_join_keys *keys, int k,
                               const struct sx_tensor *build, const struct pair_list *list) {
    uint8_t equal[SX_JOIN_BLOCK];
    const struct pair_list values = {list->rows, list->build_rows, list->n, equal};
    memset(equal, 1, (size_t)list->n);
    compare_values(form, keys->values[k], build->values, &values);
    for (int64_t l = 0; l < list->n; l++) {
        uint8_t a = !keys->valid[k] || keys->valid[k][list->rows[l]];
        uint8_t b = !build->valid || build->valid[list->build_rows[l]];
        list->equal[l] &= a & b ? equal[l] : a == b;
    }
}

void sx_join_compare(const struct sx_join *join, const struct sx_join_keys *keys, const uint16_t *rows,
                     const uint64_t *build_rows, int64_t n, uint8_t *out_equal) {
    const struct pair_list list = {rows, build_rows, n, out_equal};
    memset(out_equal, 1, (size_t)n);
    for (int k = 0; k < join->n_keys; k++) {
        const struct sx_tensor *build = &join->keys[k];
        size_t bytes = sx_type_bytes(build->type);
        for (int64_t l = 0; l < n; l++)
            __builtin_prefetch((const char *)build->values + build_rows[l] * bytes);
    }
    for (int k = 0; k < join->n_keys; k++) {
        const struct sx_tensor *build = &join->keys[k];
        if (keys->valid[k] || build->valid)
            compare_with_nulls(join->forms[k], keys, k, build, &list);
        else
            compare_values(join->forms[k], keys->values[k], build->values, &list);
    }
}
