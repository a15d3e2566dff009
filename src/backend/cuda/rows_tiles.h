/* Rows into parts by tiles, on the host's side (rows_tiles.cu). */
#ifndef SX_BACKEND_CUDA_ROWS_TILES_H
#define SX_BACKEND_CUDA_ROWS_TILES_H

#include "backend/cuda/cuda.h"
#include "backend/cuda/launch_rows.h"
#include "tensor/rows.h"

/* Whether enough is known of the order, and its runs are few enough. */
bool cuda_rows_can_tile(const struct sx_row_parts *parts);

/* Whether column c goes to frames by tiles: values of a fixed width, as they are or NARROW. */
static inline bool cuda_rows_is_tiled(const struct sx_batch *batch, const struct sx_rows_shape *shapes,
                                      int c) {
    return batch->columns[c].type.id != SX_TYPE_VARCHAR && shapes[c].encoding != SX_ROWS_PACKED;
}
/* Such columns, as they are stored, to places[c × n_parts + part], which are the host's; and all columns of
 * the own part, if it has rows, as they are in `batch` to *out_own. `on_device`: the same parts, for kernels.
 * `misfits`: a counter, for NARROW columns. */
SX_MUST_CHECK enum sx_status cuda_rows_tile(struct cuda_stream *stream, const struct sx_batch *batch,
                                            const struct sx_batch *stored, const struct sx_row_parts *parts,
                                            const struct cuda_rows_parts *on_device,
                                            const struct cuda_rows_place *places,
                                            const struct sx_rows_shape *shapes, int64_t *misfits,
                                            struct sx_batch *out_own);
/* The own part without tiles; zeroed if it has no rows. */
SX_MUST_CHECK enum sx_status cuda_rows_gather_own(struct cuda_stream *stream, const struct sx_batch *batch,
                                                  const struct sx_row_parts *parts, struct sx_batch *out_own);

#endif
