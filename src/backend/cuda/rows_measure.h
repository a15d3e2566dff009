/* What columns take in frames (tensor/rows.h), on the host's side. */
#ifndef SX_BACKEND_CUDA_ROWS_MEASURE_H
#define SX_BACKEND_CUDA_ROWS_MEASURE_H

#include "backend/cuda/cuda.h"
#include "backend/cuda/launch_rows.h"

/* Of a column; zeroed: it was not measured. */
struct cuda_rows_measure {
    struct sx_buffer *entries, *sums;
    struct cuda_rows_measured measured; /* the same, for kernels */
};

/* `packs`: for PACKED, too; numbers are measured for that alone. out_ends, on the device: of each series, the
 * sums at the parts' begins. */
SX_MUST_CHECK enum sx_status cuda_rows_measure_column(struct cuda_stream *stream,
                                                      const struct sx_tensor *column, bool packs,
                                                      const struct cuda_rows_parts *parts,
                                                      const struct cuda_rows_blocks *blocks,
                                                      struct cuda_rows_measure *out, int64_t *out_ends);
void cuda_rows_measure_release(struct cuda_rows_measure *measure);

#endif
