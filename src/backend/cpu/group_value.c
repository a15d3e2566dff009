/* COUNT, FIRST, ANY_VALUE, and MIN and MAX of strings. */
#include <string.h>

#include "backend/cpu/group_number.h"

/* ---- COUNT ---- */

static enum sx_status count_update(const struct sx_group_call *call) {
    for (int32_t k = 0; k < call->n; k++)
        ++*(sx_group_i64 *)sx_group_state_at(call->aggregate, call->rows[sx_group_position(call, k)]);
    return SX_OK;
}

static enum sx_status count_one(const struct sx_group_call *call) {
    *(sx_group_i64 *)sx_group_state_at(call->aggregate, call->rows[0]) += call->n;
    return SX_OK;
}

static enum sx_status count_combine(const struct sx_group_aggregate *aggregate, char *const *into,
                                    char *const *from, int64_t n, struct sx_error *error) {
    (void)error;
    for (int64_t i = 0; i < n; i++)
        *(sx_group_i64 *)sx_group_state_at(aggregate, into[i]) +=
            *(sx_group_i64 *)sx_group_state_at(aggregate, from[i]);
    return SX_OK;
}

static void count_add_sums(const struct sx_group_aggregate *aggregate, char *const *rows, int32_t n_groups,
                           const int64_t *sums, const int32_t *counts) {
    (void)sums;
    for (int32_t g = 0; g < n_groups; g++)
        *(sx_group_i64 *)sx_group_state_at(aggregate, rows[g]) += counts[g];
}

static const struct sx_group_ops count_ops = {
    .state_bytes = 8,
    .state_align = 8,
    .update = count_update,
    .update_one = count_one,
    .combine = count_combine,
    .emit = sx_value_emit,
    .add_sums = count_add_sums,
};

/* ---- values as they are ---- */

bool sx_flag_is_null(const struct sx_group_aggregate *aggregate, const char *row) {
    return row[aggregate->flag] != 1;
}

static inline void copy_values(uint32_t offset, char *const *rows, int64_t n, size_t bytes, char *to) {
    for (int64_t i = 0; i < n; i++)
        memcpy(to + (size_t)i * bytes, rows[i] + offset, bytes);
}

void sx_value_emit(const struct sx_group_aggregate *aggregate, char *const *rows, int64_t n,
                   struct sx_tensor *column) {
    const uint32_t offset = aggregate->offset;
    switch (sx_type_bytes(column->type)) {
    case 1: copy_values(offset, rows, n, 1, column->values); break;
    case 2: copy_values(offset, rows, n, 2, column->values); break;
    case 4: copy_values(offset, rows, n, 4, column->values); break;
    case 8: copy_values(offset, rows, n, 8, column->values); break;
    default: copy_values(offset, rows, n, 16, column->values);
    }
}

/* The row's flag: 1 has a value, 2 FIRST met a NULL. */
enum { FLAG_VALUE = 1, FLAG_NULL = 2 };

/* Keeps the first value; `bytes` is a constant where it is called. */
static inline void first_rows(const struct sx_group_call *call, size_t bytes, int32_t apart) {
    const struct sx_group_aggregate *aggregate = call->aggregate;
    const char *values = call->values;
    for (int32_t k = 0; k < call->n; k++) {
        const int32_t i = sx_group_position(call, k);
        char *row = call->rows[i * apart];
        if (row[aggregate->flag])
            continue;
        const bool valid = !call->valid || call->valid[i];
        memcpy(sx_group_state_at(aggregate, row), values + (size_t)i * bytes, bytes);
        row[aggregate->flag] = valid ? FLAG_VALUE : FLAG_NULL;
    }
}

static void first_sized(const struct sx_group_call *call, int32_t apart) {
    switch (sx_phys_bytes(call->aggregate->phys)) {
    case 1: first_rows(call, 1, apart); break;
    case 2: first_rows(call, 2, apart); break;
    case 4: first_rows(call, 4, apart); break;
    case 8: first_rows(call, 8, apart); break;
    default: first_rows(call, 16, apart);
    }
}

static enum sx_status first_update(const struct sx_group_call *call) {
    first_sized(call, 1);
    return SX_OK;
}

static enum sx_status first_one(const struct sx_group_call *call) {
    first_sized(call, 0);
    return SX_OK;
}

static enum sx_status first_combine(const struct sx_group_aggregate *aggregate, char *const *into,
                                    char *const *from, int64_t n, struct sx_error *error) {
    (void)error;
    const size_t bytes = sx_phys_bytes(aggregate->phys);
    for (int64_t i = 0; i < n; i++) {
        if (into[i][aggregate->flag] || !from[i][aggregate->flag])
            continue;
        memcpy(into[i] + aggregate->offset, from[i] + aggregate->offset, bytes);
        into[i][aggregate->flag] = from[i][aggregate->flag];
    }
    return SX_OK;
}

#define FIRST_OPS(bytes, align)                                                                          \
    {                                                                                                    \
        .state_bytes = (bytes), .state_align = (align), .update = first_update, .update_one = first_one, \
        .combine = first_combine, .emit = sx_value_emit, .is_null = sx_flag_is_null                      \
    }
static const struct sx_group_ops first_ops[] = {FIRST_OPS(1, 1), FIRST_OPS(2, 2), FIRST_OPS(4, 4),
                                                FIRST_OPS(8, 8), FIRST_OPS(16, 8)};

/* ---- strings ---- */

/* The view's bytes, when they are not inline, are at `owned`, where later values are put too if they fit. */
struct string_state {
    struct sx_string view;
    char *owned;
    size_t owned_bytes;
} __attribute__((may_alias));

static enum sx_status keep_string(const struct sx_group_call *call, char *row,
                                  const struct sx_string *value) {
    struct string_state *state = (struct string_state *)sx_group_state_at(call->aggregate, row);
    const uint32_t length_bytes = value->length_bytes;
    row[call->aggregate->flag] = FLAG_VALUE;
    if (length_bytes > SX_STRING_INLINE_BYTES) {
        if (length_bytes > state->owned_bytes) {
            size_t grown_bytes = 2 * state->owned_bytes;
            if (grown_bytes < length_bytes)
                grown_bytes = length_bytes;
            SX_TRY(sx_group_row_bytes(call, row, grown_bytes, &state->owned));
            state->owned_bytes = grown_bytes;
        }
        memcpy(state->owned, value->u.ref.pointer, length_bytes);
        state->view = sx_string_make(state->owned, length_bytes);
    } else {
        state->view = *value;
    }
    return SX_OK;
}

/* Is `value` to replace what the row has? */
static inline bool wants_string(const struct sx_group_aggregate *aggregate, const char *row,
                                const struct sx_string *value) {
    if (!row[aggregate->flag])
        return true;
    const struct string_state *state = (const struct string_state *)(row + aggregate->offset);
    switch (aggregate->spec.function) {
    case SX_AGG_MIN: return sx_string_compare(value, &state->view) < 0;
    case SX_AGG_MAX: return sx_string_compare(value, &state->view) > 0;
    default: return false;
    }
}

static inline enum sx_status string_rows(const struct sx_group_call *call, int32_t apart) {
    const struct sx_string *values = call->values;
    for (int32_t k = 0; k < call->n; k++) {
        const int32_t i = sx_group_position(call, k);
        char *row = call->rows[i * apart];
        if (call->valid && !call->valid[i]) {
            if (!row[call->aggregate->flag])
                row[call->aggregate->flag] = FLAG_NULL;
        } else if (wants_string(call->aggregate, row, &values[i])) {
            SX_TRY(keep_string(call, row, &values[i]));
        }
    }
    return SX_OK;
}

static enum sx_status string_update(const struct sx_group_call *call) {
    return string_rows(call, 1);
}

static enum sx_status string_one(const struct sx_group_call *call) {
    return string_rows(call, 0);
}

static enum sx_status string_combine(const struct sx_group_aggregate *aggregate, char *const *into,
                                     char *const *from, int64_t n, struct sx_error *error) {
    (void)error;
    for (int64_t i = 0; i < n; i++) {
        const struct string_state *state = (const struct string_state *)(from[i] + aggregate->offset);
        const char flag = from[i][aggregate->flag];
        const bool take = flag == FLAG_VALUE ? wants_string(aggregate, into[i], &state->view)
                                             : flag == FLAG_NULL && !into[i][aggregate->flag];
        if (!take)
            continue;
        memcpy(into[i] + aggregate->offset, state, sizeof *state);
        into[i][aggregate->flag] = flag;
    }
    return SX_OK;
}

static const struct sx_group_ops string_ops = {
    .state_bytes = sizeof(struct string_state),
    .state_align = 8,
    .update = string_update,
    .update_one = string_one,
    .combine = string_combine,
    .emit = sx_value_emit,
    .is_null = sx_flag_is_null,
};

const struct sx_group_ops *sx_group_ops_value(enum sx_aggregate function, enum sx_phys phys) {
    switch (function) {
    case SX_AGG_COUNT_STAR:
    case SX_AGG_COUNT: return &count_ops;
    case SX_AGG_FIRST:
    case SX_AGG_ANY_VALUE:
        if (phys == SX_PHYS_STRING)
            return &string_ops;
        return &first_ops[__builtin_ctz((unsigned)sx_phys_bytes(phys))];
    case SX_AGG_MIN:
    case SX_AGG_MAX: return phys == SX_PHYS_STRING ? &string_ops : NULL;
    default: return NULL;
    }
}
