/* Moving rows, on the host's side. */
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/gather.h"

/* ---- what kernels get ---- */

static enum cuda_layout layout_of(const struct sx_tensor *tensor) {
    switch (tensor->layout) {
    case SX_DICT:
    case SX_SELECTED: return CUDA_DICT;
    case SX_CONSTANT: return CUDA_CONSTANT;
    case SX_FLAT:
    case SX_NARROW: break;
    }
    return CUDA_FLAT;
}

struct cuda_column cuda_column_of(const struct sx_tensor *tensor) {
    const enum cuda_layout layout = layout_of(tensor);
    return (struct cuda_column){
        .values = tensor->values,
        .valid = tensor->valid,
        .dict = layout == CUDA_DICT ? tensor->dict->values.values : NULL,
        .layout = (int32_t)layout,
        .phys = (int32_t)sx_type_phys(tensor->type),
    };
}

enum sx_status cuda_columns_upload(struct cuda_stream *stream, const struct sx_tensor *tensors, int n,
                                   struct sx_buffer **out_buffer) {
    struct cuda_column *columns = calloc((size_t)n + 1, sizeof *columns);
    if (!columns)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for %d columns", n);
    for (int i = 0; i < n; i++)
        columns[i] = cuda_column_of(&tensors[i]);
    enum sx_status status =
        cuda_upload_buffer(stream, columns, ((size_t)n + 1) * sizeof *columns, out_buffer);
    free(columns);
    return status;
}

struct sx_buffer *cuda_heap_of(const struct sx_tensor *column) {
    return column->layout == SX_DICT ? column->dict->values.heap : column->heap;
}

/* ---- gather ---- */

/* Out of `column` by `index` (NULL: all rows) into FLAT. `may_be_negative`: validity is needed in any case.
 */
static enum sx_status gather_flat(struct cuda_stream *stream, const struct sx_tensor *column,
                                  const struct sx_tensor *index, bool may_be_negative,
                                  struct sx_tensor *out) {
    const int64_t n = index ? index->length : column->length;
    struct sx_tensor made;
    SX_TRY(sx_tensor_create(stream->base.pool, column->type, n, column->valid || may_be_negative, &made,
                            &stream->base.error));
    if (n > 0)
        cuda_gather_values(stream->handle, cuda_column_of(column), index ? index->values : NULL,
                           index && index->type.id == SX_TYPE_I64, (int)sx_type_bytes(column->type), n,
                           made.values, made.valid);
    made.heap = sx_buffer_retain(cuda_heap_of(column));
    enum sx_status status = cuda_launched(stream, "gather");
    if (status != SX_OK) {
        sx_tensor_release(&made);
        return status;
    }
    *out = made;
    return SX_OK;
}

void cuda_widen(struct cuda_stream *stream, const struct sx_tensor *column, void *to, uint8_t *to_valid) {
    const struct gather_from from = {column->values, column->valid, 0};
    const struct cuda_moves moves = {.columns = {gather_move(column, &from, to, to_valid)}, .n = 1};
    if (column->length > 0)
        cuda_move_rows(stream->handle, &moves, NULL, false, column->length);
}

static enum sx_status widened(struct cuda_stream *stream, const struct sx_tensor *column,
                              struct sx_tensor *out_flat) {
    struct sx_tensor made;
    SX_TRY(sx_tensor_create(stream->base.pool, column->type, column->length, column->valid != NULL, &made,
                            &stream->base.error));
    cuda_widen(stream, column, made.values, made.valid);
    const enum sx_status status = cuda_launched(stream, "offsets that become values");
    if (status != SX_OK) {
        sx_tensor_release(&made);
        return status;
    }
    *out_flat = made;
    return SX_OK;
}

enum sx_status cuda_flatten(struct cuda_stream *stream, const struct sx_tensor *column,
                            struct sx_tensor *out_flat) {
    if (column->layout == SX_NARROW)
        return widened(stream, column, out_flat);
    if (column->layout != SX_FLAT)
        return gather_flat(stream, column, NULL, false, out_flat);
    sx_tensor_share(column, out_flat);
    return SX_OK;
}

/* A tensor's codes as a column of their own, to gather them. Borrowed. */
static struct sx_tensor codes_of(const struct sx_tensor *column) {
    struct sx_tensor codes = *column;
    codes.layout = SX_FLAT;
    codes.type = sx_type_of(SX_TYPE_I32);
    codes.dict = NULL;
    codes.heap = NULL;
    return codes;
}

static enum sx_status gather_codes(struct cuda_stream *stream, const struct sx_tensor *column,
                                   const struct sx_tensor *index, struct sx_tensor *out) {
    const struct sx_tensor codes = codes_of(column);
    struct sx_tensor made;
    SX_TRY(gather_flat(stream, &codes, index, true, &made));
    made.type = column->type;
    made.layout = SX_DICT;
    made.dict = sx_dict_retain(column->dict);
    *out = made;
    return SX_OK;
}

/* Index values are on the device, so a negative one can't be excluded: the result has validity. A constant
 * becomes FLAT; it may stay CONSTANT only where no index is negative. */
enum sx_status sx_cuda_gather(struct sx_stream *base, const struct sx_tensor *column,
                              const struct sx_tensor *index, struct sx_tensor *out_column) {
    struct cuda_stream *stream;
    SX_TRY(cuda_enter(base, &stream));
    if (column->layout == SX_DICT && column->dict->values.length > 0)
        return gather_codes(stream, column, index, out_column);
    if (column->layout != SX_NARROW)
        return gather_flat(stream, column, index, true, out_column);
    struct sx_tensor values;
    SX_TRY(cuda_flatten(stream, column, &values));
    const enum sx_status status = gather_flat(stream, &values, index, true, out_column);
    sx_tensor_release(&values);
    return status;
}

/* ---- positions and masks ---- */

enum sx_status sx_cuda_iota(struct sx_stream *base, enum sx_type_id id, int64_t first, int64_t length,
                            struct sx_tensor *out_index) {
    struct cuda_stream *stream;
    SX_TRY(cuda_enter(base, &stream));
    SX_TRY(sx_tensor_create_index(base->pool, id, length, out_index, &base->error));
    if (id == SX_TYPE_I32)
        cuda_fill_iota_i32(stream->handle, out_index->values, first, length);
    else
        cuda_fill_iota_i64(stream->handle, out_index->values, first, length);
    enum sx_status status = cuda_launched(stream, "iota");
    if (status != SX_OK)
        sx_tensor_release(out_index);
    return status;
}

enum sx_status sx_cuda_index_to_mask(struct sx_stream *base, const struct sx_tensor *index, int64_t rows,
                                     struct sx_tensor *out_mask) {
    struct cuda_stream *stream;
    struct sx_tensor mask;
    SX_TRY(cuda_enter(base, &stream));
    SX_TRY(sx_tensor_create(base->pool, sx_type_of(SX_TYPE_BOOL), rows, false, &mask, &base->error));
    enum sx_status status;
    SX_GO(cuda_check(stream, cudaMemsetAsync(mask.values, 0, (size_t)rows, stream->handle), "a mask"));
    if (index->length > 0)
        cuda_mark_index(stream->handle, index->values, index->length, mask.values);
    SX_GO(cuda_launched(stream, "index to mask"));
    *out_mask = mask;
    return SX_OK;
out:
    sx_tensor_release(&mask);
    return status;
}

enum sx_status cuda_select(struct cuda_stream *stream, const uint8_t *flags, int64_t n,
                           struct sx_tensor *out_index) {
    struct sx_buffer *made = NULL;
    void *scratch;
    struct sx_tensor index = {0};
    enum sx_status status;
    SX_GO(cuda_select_scratch(stream, n, &made, &scratch));
    SX_GO(sx_tensor_create_index(stream->base.pool, SX_TYPE_I32, n, &index, &stream->base.error));
    cuda_select_flags(stream->handle, flags, n, index.values, cuda_counter_place(stream, 0), scratch);
    SX_GO(cuda_launched(stream, "selection"));
    SX_GO(cuda_sync(stream, "rows selected"));
    index.length = cuda_counter(stream, 0);
    *out_index = index;
    index = (struct sx_tensor){0};
out:
    sx_buffer_release(made);
    sx_tensor_release(&index);
    return status;
}

enum sx_status sx_cuda_mask_to_index(struct sx_stream *base, const struct sx_tensor *mask, bool wanted,
                                     struct sx_tensor *out_index) {
    struct cuda_stream *stream;
    struct sx_buffer *flags;
    SX_TRY(cuda_enter(base, &stream));
    SX_TRY(sx_buffer_create(base->pool, (size_t)mask->length, &flags, &base->error));
    cuda_mask_flags(stream->handle, cuda_column_of(mask), wanted, mask->length, flags->data);
    enum sx_status status = cuda_launched(stream, "mask to index");
    if (status == SX_OK)
        status = cuda_select(stream, flags->data, mask->length, out_index);
    sx_buffer_release(flags);
    return status;
}
