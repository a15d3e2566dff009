#include "backend/cpu/move_unify.h"

#include <string.h>

#include "tensor/semantics.h"

enum {
    SMALL_STRINGS = 4096,    /* worth it for any number of rows */
    LARGE_STRINGS = 1 << 14, /* views of many more do not stay in the second-level cache */
    ROWS_PER_STRING = 8,
    FIRST_STRINGS = 64,
    ENTRIES_PER_ROW = 4 /* longer dictionaries are not worth an array over their entries */
};

int32_t sx_unified_limit(int64_t rows) {
    const int64_t limit = rows / ROWS_PER_STRING;
    if (limit < SMALL_STRINGS)
        return SMALL_STRINGS;
    return limit < LARGE_STRINGS ? (int32_t)limit : LARGE_STRINGS;
}

/* ---- the strings ---- */

/* Where `string` is, or the empty slot where it belongs. */
static int32_t *find_slot(const struct sx_unified *unified, const struct sx_string *string) {
    const uint64_t mask = (uint64_t)unified->n_slots - 1;
    uint64_t at = sx_hash_string(string) & mask;
    while (unified->slots[at] && !sx_string_equal(&unified->strings[unified->slots[at] - 1], string))
        at = (at + 1) & mask;
    return &unified->slots[at];
}

static enum sx_status grow(struct sx_stream *stream, struct sx_unified *unified) {
    const int32_t capacity = unified->capacity ? 2 * unified->capacity : FIRST_STRINGS;
    const int64_t n_slots = 2 * (int64_t)capacity;
    const size_t view_bytes = sizeof *unified->strings, slot_bytes = sizeof *unified->slots;
    void *strings = unified->strings, *slots = NULL;
    SX_TRY(sx_pool_resize(stream->pool, &strings, (size_t)unified->capacity * view_bytes,
                          (size_t)capacity * view_bytes, &stream->error));
    unified->strings = strings;
    unified->capacity = capacity;
    SX_TRY(sx_pool_alloc(stream->pool, (size_t)n_slots * slot_bytes, &slots, &stream->error));
    sx_pool_free(stream->pool, unified->slots, (size_t)unified->n_slots * slot_bytes);
    unified->slots = memset(slots, 0, (size_t)n_slots * slot_bytes);
    unified->n_slots = n_slots;
    for (int32_t i = 0; i < unified->n; i++)
        *find_slot(unified, &unified->strings[i]) = i + 1;
    return SX_OK;
}

/* -1: there are `limit` others already. */
static enum sx_status add(struct sx_stream *stream, struct sx_unified *unified,
                          const struct sx_string *string, int32_t limit, int32_t *out_number) {
    if (unified->n == unified->capacity)
        SX_TRY(grow(stream, unified));
    int32_t *slot = find_slot(unified, string);
    *out_number = *slot - 1;
    if (*slot || unified->n >= limit)
        return SX_OK;
    struct sx_string *own = &unified->strings[unified->n];
    *own = *string;
    SX_TRY(sx_string_heap_take(stream, &unified->heap, own, NULL, 1));
    *out_number = unified->n;
    *slot = ++unified->n;
    return SX_OK;
}

/* ---- codes ---- */

static enum sx_status start_dict(struct sx_stream *stream, struct sx_unified *unified,
                                 const struct sx_dict *dict) {
    const int64_t n = dict->values.length;
    const size_t bytes = sizeof *unified->numbers;
    unified->dict_id = 0;
    if (unified->n_numbers < n) {
        void *numbers = NULL;
        SX_TRY(sx_pool_alloc(stream->pool, (size_t)n * bytes, &numbers, &stream->error));
        sx_pool_free(stream->pool, unified->numbers, (size_t)unified->n_numbers * bytes);
        unified->numbers = numbers;
        unified->n_numbers = n;
    }
    if (n)
        memset(unified->numbers, 0xff, (size_t)n * bytes);
    unified->dict_id = dict->id;
    return SX_OK;
}

/* Strings that rows refer to, and, by string, their numbers as far as they are known. */
struct source {
    const struct sx_string *strings;
    const int32_t *codes; /* NULL: a string for every row */
    int32_t *numbers;     /* NULL: every row is looked up */
};

static enum sx_status recode_rows(struct sx_stream *stream, struct sx_unified *unified,
                                  const struct sx_tensor *column, const struct source *source, int32_t limit,
                                  int32_t *out_numbers, bool *out_fits) {
    for (int64_t i = 0; i < column->length; i++) {
        if (column->valid && !column->valid[i]) {
            out_numbers[i] = 0;
            continue;
        }
        const int64_t entry = source->codes ? source->codes[i] : i;
        int32_t number = source->numbers ? source->numbers[entry] : -1;
        if (number < 0) {
            SX_TRY(add(stream, unified, &source->strings[entry], limit, &number));
            *out_fits = number >= 0;
            if (!*out_fits)
                return SX_OK;
            if (source->numbers)
                source->numbers[entry] = number;
        }
        out_numbers[i] = number;
    }
    return SX_OK;
}

static enum sx_status recode_constant(struct sx_stream *stream, struct sx_unified *unified,
                                      const struct sx_tensor *column, int32_t limit, int32_t *out_numbers,
                                      bool *out_fits) {
    int32_t number = 0;
    if (!column->valid || column->valid[0])
        SX_TRY(add(stream, unified, column->values, limit, &number));
    *out_fits = number >= 0;
    for (int64_t i = 0; i < column->length; i++)
        out_numbers[i] = number;
    return SX_OK;
}

enum sx_status sx_unified_recode(struct sx_stream *stream, struct sx_unified *unified,
                                 const struct sx_tensor *column, int32_t limit, int32_t *out_numbers,
                                 bool *out_fits) {
    struct source source = {.strings = column->values};
    *out_fits = true;
    if (column->length == 0)
        return SX_OK;
    if (column->layout == SX_CONSTANT)
        return recode_constant(stream, unified, column, limit, out_numbers, out_fits);
    if (column->layout == SX_DICT) {
        const struct sx_dict *dict = column->dict;
        const bool is_known = unified->dict_id == dict->id;
        const bool is_long = dict->values.length / ENTRIES_PER_ROW > column->length;
        if (!is_known && !is_long)
            SX_TRY(start_dict(stream, unified, dict));
        source = (struct source){dict->values.values, column->values,
                                 is_known || !is_long ? unified->numbers : NULL};
    }
    return recode_rows(stream, unified, column, &source, limit, out_numbers, out_fits);
}

enum sx_status sx_unified_merge(struct sx_stream *stream, struct sx_unified *unified,
                                const struct sx_unified *from, int32_t limit, int32_t *out_numbers,
                                bool *out_fits) {
    *out_fits = true;
    for (int32_t i = 0; i < from->n && *out_fits; i++) {
        SX_TRY(add(stream, unified, &from->strings[i], limit, &out_numbers[i]));
        *out_fits = out_numbers[i] >= 0;
    }
    return SX_OK;
}

enum sx_status sx_unified_dict(struct sx_stream *stream, const struct sx_unified *unified,
                               struct sx_dict **out_dict) {
    /* Where all rows are NULL their codes still lead to a string. */
    const int32_t n = unified->n ? unified->n : 1;
    struct sx_tensor values = {0};
    enum sx_status status;
    SX_GO(sx_tensor_create(stream->pool, sx_type_of(SX_TYPE_VARCHAR), n, false, &values, &stream->error));
    memset(values.values, 0, sizeof *unified->strings);
    if (unified->n)
        memcpy(values.values, unified->strings, (size_t)unified->n * sizeof *unified->strings);
    SX_GO(sx_buffer_join(stream->pool, unified->heap.blocks, unified->heap.n_blocks, &values.heap,
                         &stream->error));
    SX_GO(sx_dict_create(&values, out_dict, &stream->error));
out:
    sx_tensor_release(&values);
    return status;
}

void sx_unified_release(struct sx_pool *pool, struct sx_unified *unified) {
    sx_pool_free(pool, unified->strings, (size_t)unified->capacity * sizeof *unified->strings);
    sx_pool_free(pool, unified->slots, (size_t)unified->n_slots * sizeof *unified->slots);
    sx_pool_free(pool, unified->numbers, (size_t)unified->n_numbers * sizeof *unified->numbers);
    sx_string_heap_release(&unified->heap);
    *unified = (struct sx_unified){0};
}
