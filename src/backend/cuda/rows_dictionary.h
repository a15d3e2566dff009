/* Dictionaries that travel with the codes of their columns (tensor/rows.h), on the host's side. */
#ifndef SX_BACKEND_CUDA_ROWS_DICTIONARY_H
#define SX_BACKEND_CUDA_ROWS_DICTIONARY_H

#include "backend/cuda/rows_measure.h"
#include "tensor/rows.h"

/* Zeroed: the column goes without. */
struct cuda_rows_dictionary {
    const struct sx_tensor *entries; /* borrowed */
    struct sx_buffer *begins;        /* 0 and their number, 0 and that of their blocks */
    struct cuda_rows_measure measure;
    struct sx_buffer *block; /* the entries as they are in a frame */
};

/* out_ends, on the device: of each series, the sums at the begin of the entries and behind them. */
SX_MUST_CHECK enum sx_status cuda_rows_measure_dictionary(struct cuda_stream *stream,
                                                          struct cuda_rows_dictionary *dictionary,
                                                          int64_t *out_ends);
/* Makes the block. `ends`: the same on the host. */
SX_MUST_CHECK enum sx_status cuda_rows_make_dictionary(struct cuda_stream *stream,
                                                       struct cuda_rows_dictionary *dictionary,
                                                       const int64_t *ends);
void cuda_rows_release_dictionary(struct cuda_rows_dictionary *dictionary);
/* A column of codes that came becomes one of strings; nothing may write to the frame any more. `number`: the
 * column's. */
SX_MUST_CHECK enum sx_status cuda_rows_place_dictionary(struct cuda_stream *stream,
                                                        const struct sx_rows_column *place, const char *frame,
                                                        int number, struct sx_tensor *column);

#endif
