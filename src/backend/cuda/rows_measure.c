#include "backend/cuda/rows_measure.h"

#include "backend/cuda/launch.h"
#include "tensor/rows.h"

static enum sx_status make_room(struct cuda_stream *stream, const struct sx_tensor *column, bool packs,
                                int64_t n_blocks, int64_t n_sums, struct cuda_rows_measure *out) {
    const int n_vectors = packs ? sx_rows_vectors(column->type, column->valid != NULL) : 0;
    const size_t n_entries = (size_t)n_blocks * (size_t)n_vectors;
    SX_TRY(sx_buffer_create(stream->base.pool, (n_entries + 1) * sizeof(struct sx_pack_block), &out->entries,
                            &stream->base.error));
    SX_TRY(sx_buffer_create(stream->base.pool, (n_entries + (size_t)n_sums + 1) * sizeof(int64_t), &out->sums,
                            &stream->base.error));
    out->measured = (struct cuda_rows_measured){
        .entries = out->entries->data, .sums = out->sums->data, .n_vectors = n_vectors};
    return SX_OK;
}

enum sx_status cuda_rows_measure_column(struct cuda_stream *stream, const struct sx_tensor *column,
                                        bool packs, const struct cuda_rows_parts *parts,
                                        const struct cuda_rows_blocks *blocks, struct cuda_rows_measure *out,
                                        int64_t *out_ends) {
    const bool is_string = column->type.id == SX_TYPE_VARCHAR;
    const int n_series = is_string ? CUDA_ROWS_SERIES : CUDA_ROWS_WORDS + 1;
    const int64_t n_sums = (n_series - 1) * blocks->n;
    const struct cuda_column on_device = cuda_column_of(column);
    struct sx_buffer *scratch;
    SX_TRY(make_room(stream, column, packs, blocks->n, n_sums, out));
    const int64_t n = blocks->n * out->measured.n_vectors + n_sums;
    SX_TRY(sx_buffer_create(stream->base.pool, cuda_exclusive_sum_bytes(n), &scratch, &stream->base.error));
    if (is_string)
        cuda_rows_measure_strings(stream->handle, on_device, parts, blocks, &out->measured);
    else
        cuda_rows_measure(stream->handle, on_device, (int)sx_type_bytes(column->type), parts, blocks,
                          &out->measured);
    cuda_exclusive_sum(stream->handle, out->measured.sums, n, out->measured.sums, scratch->data);
    cuda_rows_part_sums(stream->handle, &out->measured, blocks, parts->n_parts, n_series, out_ends);
    sx_buffer_release(scratch);
    return cuda_launched(stream, "measuring rows to pack");
}

void cuda_rows_measure_release(struct cuda_rows_measure *measure) {
    sx_buffer_release(measure->entries);
    sx_buffer_release(measure->sums);
}
