/* NARROW columns of frames, on the host's side (rows_narrow.cu). */
#ifndef SX_BACKEND_CUDA_ROWS_NARROW_H
#define SX_BACKEND_CUDA_ROWS_NARROW_H

#include "backend/cuda/cuda.h"
#include "tensor/rows.h"

enum { CUDA_MOST_NARROW = 64 /* columns of a batch: the first ones */ };

static inline bool cuda_rows_is_narrow(const struct sx_rows_narrow *narrow, int column) {
    return narrow && column < CUDA_MOST_NARROW && narrow[column].fit == SX_ROWS_FITS;
}
/* Finds out, by a sample of the batch, about columns of which nothing is known. Synchronises if there are
 * any. */
SX_MUST_CHECK enum sx_status cuda_rows_try_narrow(struct cuda_stream *stream, const struct sx_batch *batch,
                                                  struct sx_rows_narrow *narrow);
/* Of columns that turned out not to fit a bit is set in `misfits`. Whether there are any. */
bool cuda_rows_note_misfits(uint64_t misfits, struct sx_rows_narrow *narrow);
/* Values of a frame's NARROW columns, but of those that stay so, into the room that they have. */
void cuda_rows_widen_columns(struct cuda_stream *stream, const struct sx_rows_column *places, char *frame,
                             struct sx_batch *batch);

#endif
