/* Columns that are gathered together. */
#ifndef SX_BACKEND_CUDA_GATHER_H
#define SX_BACKEND_CUDA_GATHER_H

#include "backend/cuda/cuda.h"
#include "backend/cuda/launch.h"

struct gather {
    struct cuda_stream *stream;
    const struct sx_tensor *index; /* I32 or I64, none negative */
    int64_t rows;
    struct cuda_moves moves; /* that have not been launched */
    const uint8_t *table;    /* where all columns lie in rows of `step` bytes (cuda_take_rows); else NULL */
    uint32_t step;
};

/* Where a column's values (of DICT: codes) are. `step`: bytes from row to row, validity's too; 0: each stands
 * for itself, as in a tensor. */
struct gather_from {
    const uint8_t *values, *valid;
    uint32_t step;
};

/* Bytes of a row's value, or code, once it is moved. */
static inline uint32_t gather_width(const struct sx_tensor *column) {
    return column->layout == SX_DICT ? (uint32_t)sizeof(int32_t) : (uint32_t)sx_type_bytes(column->type);
}
/* The move of a column like `like` (FLAT, DICT or NARROW) from where it lies to where its values, or codes,
 * are to lie side by side. */
struct cuda_move gather_move(const struct sx_tensor *like, const struct gather_from *from, void *to,
                             uint8_t *to_valid);
/* A tensor of `rows` rows of the type and layout (DICT, else FLAT), heap and dictionary of `like`; values, or
 * codes, and validity are unset. */
SX_MUST_CHECK enum sx_status gather_make(struct cuda_stream *stream, const struct sx_tensor *like,
                                         int64_t rows, bool has_valid, struct sx_tensor *out_column);
/* A column like `like` (FLAT, DICT or NARROW; its own values are not looked at), which is there after the
 * end. */
SX_MUST_CHECK enum sx_status gather_add(struct gather *gather, const struct sx_tensor *like,
                                        const struct gather_from *from, struct sx_tensor *out_column);
/* A column of any layout, from itself; a constant is one for any rows. */
SX_MUST_CHECK enum sx_status gather_add_column(struct gather *gather, const struct sx_tensor *column,
                                               struct sx_tensor *out_column);
/* `status` is that of adding the `n` columns; after a failure, its own too, they are released. */
SX_MUST_CHECK enum sx_status gather_end(struct gather *gather, enum sx_status status,
                                        struct sx_tensor *columns, int n);

#endif
