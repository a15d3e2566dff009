/* Rows of host batches as bytes, for other ranks of the same plan. A message is any number of frames, one
 * after another; a frame is some rows of one batch. Both sides have the same byte order and the same column
 * types. */
#ifndef SX_TENSOR_WIRE_H
#define SX_TENSOR_WIRE_H

#include "tensor/tensor.h"

/* Bytes of a frame with rows[0 … n_rows) of the batch, in any order (NULL: its first n_rows). A multiple
 * of 16. */
size_t sx_wire_bytes(const struct sx_batch *batch, const int32_t *rows, int64_t n_rows);

/* Writes that frame at `out`, which is aligned to 16 bytes and has room for sx_wire_bytes. `sequence`: of the
 * batch, handed on to sx_wire_unpack. Dictionaries stay where they have few entries for the rows, constants
 * always. */
void sx_wire_pack(const struct sx_batch *batch, const int32_t *rows, int64_t n_rows, int64_t sequence,
                  void *out);

/* Where a message is read. Set the first four. */
struct sx_wire_reader {
    struct sx_buffer *buffer; /* borrowed; batches keep it, and it must not change any more */
    size_t bytes;             /* of the message, from the buffer's begin */
    const struct sx_type *types;
    int32_t n_columns;
    size_t offset; /* of the next frame; starts 0; == bytes: all are read */
};

/* The next frame as a batch that keeps the message's buffer: fixed-width values are not copied. Views of
 * strings are (into `pool`) where there are long ones, whose bytes stay in the message. SX_INTERNAL: the
 * bytes are no such frame. */
SX_MUST_CHECK enum sx_status sx_wire_unpack(struct sx_wire_reader *reader, struct sx_pool *pool,
                                            struct sx_batch *out_batch, int64_t *out_sequence,
                                            struct sx_error *error);

#endif
