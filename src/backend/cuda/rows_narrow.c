#include "backend/cuda/rows_narrow.h"

#include "backend/cuda/launch_rows.h"

static int most_columns(const struct sx_batch *batch) {
    return batch->n_columns < CUDA_MOST_NARROW ? batch->n_columns : CUDA_MOST_NARROW;
}

static bool is_unknown(const struct sx_batch *batch, const struct sx_rows_narrow *narrow, int c) {
    return narrow[c].fit == SX_ROWS_FIT_UNKNOWN && sx_rows_can_narrow(batch->columns[c].type);
}

/* Launches what is listed, once it is full or `now`. */
static void sample_listed(struct cuda_stream *stream, struct cuda_rows_samples *samples, bool now) {
    if (samples->n == CUDA_NARROW_COLUMNS || (now && samples->n > 0)) {
        cuda_rows_sample(stream->handle, samples);
        samples->n = 0;
    }
}

/* A range for each column of which nothing is known, in their order. */
static void sample(struct cuda_stream *stream, const struct sx_batch *batch,
                   const struct sx_rows_narrow *narrow, struct cuda_rows_range *out) {
    struct cuda_rows_samples samples = {.rows = batch->rows};
    for (int c = 0; c < most_columns(batch); c++) {
        if (!is_unknown(batch, narrow, c))
            continue;
        samples.columns[samples.n] = cuda_column_of(&batch->columns[c]);
        samples.widths[samples.n] = (int32_t)sx_type_bytes(batch->columns[c].type);
        samples.ranges[samples.n++] = out++;
        sample_listed(stream, &samples, false);
    }
    sample_listed(stream, &samples, true);
}

enum sx_status cuda_rows_try_narrow(struct cuda_stream *stream, const struct sx_batch *batch,
                                    struct sx_rows_narrow *narrow) {
    struct cuda_rows_range ranges[CUDA_MOST_NARROW], *range = ranges;
    struct sx_buffer *on_device;
    size_t n = 0;
    for (int c = 0; c < most_columns(batch); c++)
        n += is_unknown(batch, narrow, c);
    if (n == 0)
        return SX_OK;
    SX_TRY(sx_buffer_create(stream->base.pool, n * sizeof *ranges, &on_device, &stream->base.error));
    sample(stream, batch, narrow, on_device->data);
    enum sx_status status = cuda_launched(stream, "samples of rows to pack");
    if (status == SX_OK)
        status =
            cuda_download(stream, ranges, on_device->data, n * sizeof *ranges, "samples of rows to pack");
    for (int c = 0; status == SX_OK && c < most_columns(batch); c++)
        if (is_unknown(batch, narrow, c)) {
            narrow[c] = sx_rows_narrow_of(sx_type_bytes(batch->columns[c].type),
                                          (struct sx_rows_range){range->least, range->most});
            range++;
        }
    sx_buffer_release(on_device);
    return status;
}

bool cuda_rows_note_misfits(uint64_t misfits, struct sx_rows_narrow *narrow) {
    for (int c = 0; c < CUDA_MOST_NARROW; c++)
        if (misfits >> c & 1)
            narrow[c].fit = SX_ROWS_FITS_NOT;
    return misfits != 0;
}

void cuda_rows_widen_columns(struct cuda_stream *stream, const struct sx_rows_column *places, char *frame,
                             struct sx_batch *batch) {
    struct cuda_rows_widening widening = {.rows = batch->rows};
    for (int c = 0; c < batch->n_columns; c++) {
        if (places[c].encoding != SX_ROWS_NARROW || batch->columns[c].layout == SX_NARROW || batch->rows == 0)
            continue;
        widening.columns[widening.n++] =
            (struct cuda_rows_narrowed){.from = frame + places[c].values,
                                        .to = batch->columns[c].values,
                                        .base = places[c].base,
                                        .width = (int32_t)sx_type_bytes(batch->columns[c].type)};
        if (widening.n == CUDA_NARROW_COLUMNS) {
            cuda_rows_widen(stream->handle, &widening);
            widening.n = 0;
        }
    }
    if (widening.n > 0)
        cuda_rows_widen(stream->handle, &widening);
}
