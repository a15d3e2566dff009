/* Frames: rows of a batch as bytes of one block in the backend's memory, as rows_pack (backend.h) writes and
 * rows_unpack reads them. First the head: a sx_rows_frame and a sx_rows_column for each column; then values,
 * validity and long strings of each column, all FLAT, each at a multiple of 16. Views of long strings have
 * their offset in the column's strings in place of the pointer. The host makes and checks heads only. */
#ifndef SX_TENSOR_ROWS_H
#define SX_TENSOR_ROWS_H

#include "tensor/tensor.h"

enum { SX_ROWS_ALIGNMENT = 16 };

struct sx_rows_frame {
    uint64_t bytes; /* of the frame, with its head */
    int64_t rows;
    int64_t sequence; /* the sender's own */
    int32_t n_columns;
    int32_t unused;
};

/* Offsets are from the frame's begin. */
struct sx_rows_column {
    uint64_t values;
    uint64_t valid; /* 0: no nulls */
    uint64_t heap, heap_bytes;
    uint32_t type_id;
    uint8_t precision, scale;
    uint8_t unused[10];
};

static inline size_t sx_rows_head_bytes(int n_columns) {
    return sizeof(struct sx_rows_frame) + (size_t)n_columns * sizeof(struct sx_rows_column);
}
static inline struct sx_rows_column *sx_rows_columns(void *head) {
    return (struct sx_rows_column *)((struct sx_rows_frame *)head + 1);
}

/* The head of a frame with `rows` rows of `batch`, of which column c has heap_bytes[c] behind long views.
 * `head`: sx_rows_head_bytes of it. Returns the frame's bytes. */
size_t sx_rows_make_head(const struct sx_batch *batch, int64_t rows, int64_t sequence,
                         const uint64_t *heap_bytes, void *head);
/* SX_INTERNAL: this is no head of a frame of `bytes` bytes with such columns. */
SX_MUST_CHECK enum sx_status sx_rows_check_head(const void *head, size_t bytes, const struct sx_type *types,
                                                int n_columns, struct sx_error *error);
/* The batch whose columns are in `frame` (retained by each): values are not copied. Views of long strings are
 * still offsets. `head` has been checked; it may lie elsewhere than `frame`. */
SX_MUST_CHECK enum sx_status sx_rows_place(const void *head, struct sx_buffer *frame,
                                           struct sx_batch *out_batch, struct sx_error *error);

#endif
