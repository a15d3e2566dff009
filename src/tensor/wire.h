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

/* ---- packed frames: fewer bytes for more work ---- */

/* Packs frames of one thread, and keeps what has proven itself for each column. How a column is packed (as it
 * is, frames of reference, deltas, runs; LZ4 for the bytes of strings) is measured with some rows of its
 * first frame, and again now and then. Columns that are not worth it stay as sx_wire_pack writes them. */
struct sx_wire_packer;

/* `pool`: of its own memory, as much as the largest frame takes unpacked. */
SX_MUST_CHECK enum sx_status sx_wire_packer_create(struct sx_pool *pool, int32_t n_columns,
                                                   struct sx_wire_packer **out_packer,
                                                   struct sx_error *error);
void sx_wire_packer_destroy(struct sx_wire_packer *packer); /* NULL allowed */
/* Nanoseconds of this thread that one byte less on the way may cost, on both sides together; what is chosen
 * from then on follows it. SX_WIRE_FEWEST: whatever gives the fewest bytes. */
void sx_wire_packer_set_worth(struct sx_wire_packer *packer, double ns_a_byte);
#define SX_WIRE_FEWEST 1e9
/* The frame that sx_wire_pack would write (of plain_bytes: sx_wire_bytes), or a packed one. *out_frame: the
 * packer's, until the next call; aligned to 16 bytes. */
SX_MUST_CHECK enum sx_status sx_wire_packer_pack(struct sx_wire_packer *packer, const struct sx_batch *batch,
                                                 const int32_t *rows, int64_t n_rows, int64_t sequence,
                                                 size_t plain_bytes, const void **out_frame,
                                                 size_t *out_bytes, struct sx_error *error);

/* ---- reading ---- */

/* Where a message is read. Set the first four. */
struct sx_wire_reader {
    struct sx_buffer *buffer; /* borrowed; batches keep it, and it must not change any more */
    size_t bytes;             /* of the message, from the buffer's begin */
    const struct sx_type *types;
    int32_t n_columns;
    size_t offset; /* of the next frame; starts 0; == bytes: all are read */
};

/* The next frame as a batch that keeps the message's buffer: fixed-width values are not copied. Views of
 * strings are (into `pool`) where there are long ones, whose bytes stay in the message; and so is what was
 * packed. SX_INTERNAL: the bytes are no such frame. */
SX_MUST_CHECK enum sx_status sx_wire_unpack(struct sx_wire_reader *reader, struct sx_pool *pool,
                                            struct sx_batch *out_batch, int64_t *out_sequence,
                                            struct sx_error *error);

#endif
