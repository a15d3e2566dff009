#include "tensor/tensor.h"

#include <stdlib.h>
#include <string.h>

enum sx_status sx_buffer_create(struct sx_pool *pool, size_t size_bytes, struct sx_buffer **out_buffer,
                                struct sx_error *error) {
    struct sx_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a buffer");
    enum sx_status status = sx_pool_alloc(pool, size_bytes, &buffer->data, error);
    if (status != SX_OK) {
        free(buffer);
        return status;
    }
    atomic_init(&buffer->references, 1);
    buffer->size_bytes = size_bytes;
    buffer->pool = pool;
    *out_buffer = buffer;
    return SX_OK;
}

enum sx_status sx_buffer_join(struct sx_pool *pool, struct sx_buffer *const *buffers, int n,
                              struct sx_buffer **out_buffer, struct sx_error *error) {
    struct sx_buffer **kept = calloc((size_t)n + 1, sizeof *kept);
    if (!kept)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a buffer");
    int n_kept = 0;
    for (int i = 0; i < n; i++) {
        bool repeated = n_kept > 0 && kept[n_kept - 1] == buffers[i];
        if (buffers[i] && !repeated)
            kept[n_kept++] = buffers[i];
    }
    if (n_kept <= 1) {
        *out_buffer = sx_buffer_retain(kept[0]);
        free(kept);
        return SX_OK;
    }
    struct sx_buffer *joined = calloc(1, sizeof *joined);
    if (!joined) {
        free(kept);
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a buffer");
    }
    for (int i = 0; i < n_kept; i++)
        sx_buffer_retain(kept[i]);
    atomic_init(&joined->references, 1);
    joined->pool = pool;
    joined->keeps = kept;
    joined->n_keeps = n_kept;
    *out_buffer = joined;
    return SX_OK;
}

void sx_buffer_release(struct sx_buffer *buffer) {
    if (!buffer || atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel) != 1)
        return;
    for (int i = 0; i < buffer->n_keeps; i++)
        sx_buffer_release(buffer->keeps[i]);
    free(buffer->keeps);
    if (buffer->data)
        sx_pool_free(buffer->pool, buffer->data, buffer->size_bytes);
    free(buffer);
}

enum sx_status sx_dict_create(struct sx_tensor *values, struct sx_dict **out_dict, struct sx_error *error) {
    static atomic_uint_fast64_t next_id = 1;
    struct sx_dict *dict = calloc(1, sizeof *dict);
    if (!dict)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a dictionary");
    atomic_init(&dict->references, 1);
    dict->id = atomic_fetch_add(&next_id, 1);
    dict->values = *values;
    *values = (struct sx_tensor){0};
    *out_dict = dict;
    return SX_OK;
}

struct sx_dict *sx_dict_retain(struct sx_dict *dict) {
    if (dict)
        atomic_fetch_add_explicit(&dict->references, 1, memory_order_relaxed);
    return dict;
}

void sx_dict_release(struct sx_dict *dict) {
    if (!dict || atomic_fetch_sub_explicit(&dict->references, 1, memory_order_acq_rel) != 1)
        return;
    sx_tensor_release(&dict->values);
    free(dict);
}

static enum sx_status create_stored(struct sx_pool *pool, size_t value_bytes, int64_t stored, bool with_valid,
                                    struct sx_tensor *tensor, struct sx_error *error) {
    size_t size_bytes;
    if (stored < 0 || __builtin_mul_overflow((size_t)stored, value_bytes, &size_bytes))
        return sx_error_set(error, SX_INTERNAL, "a tensor of %lld rows", (long long)stored);
    SX_TRY(sx_buffer_create(pool, size_bytes, &tensor->values_buffer, error));
    tensor->values = tensor->values_buffer->data;
    if (!with_valid)
        return SX_OK;
    enum sx_status status = sx_buffer_create(pool, (size_t)stored, &tensor->valid_buffer, error);
    if (status != SX_OK) {
        sx_buffer_release(tensor->values_buffer);
        return status;
    }
    tensor->valid = tensor->valid_buffer->data;
    return SX_OK;
}

enum sx_status sx_tensor_create(struct sx_pool *pool, struct sx_type type, int64_t length, bool with_valid,
                                struct sx_tensor *out_tensor, struct sx_error *error) {
    struct sx_tensor tensor = {.type = type, .layout = SX_FLAT, .length = length};
    SX_TRY(create_stored(pool, sx_type_bytes(type), length, with_valid, &tensor, error));
    *out_tensor = tensor;
    return SX_OK;
}

enum sx_status sx_tensor_create_codes(struct sx_pool *pool, struct sx_dict *dict, int64_t length,
                                      bool with_valid, struct sx_tensor *out_tensor, struct sx_error *error) {
    struct sx_tensor tensor = {.type = dict->values.type, .layout = SX_DICT, .length = length};
    SX_TRY(create_stored(pool, sizeof(int32_t), length, with_valid, &tensor, error));
    tensor.dict = sx_dict_retain(dict);
    *out_tensor = tensor;
    return SX_OK;
}

enum sx_status sx_tensor_create_index(struct sx_pool *pool, enum sx_type_id id, int64_t length,
                                      struct sx_tensor *out_tensor, struct sx_error *error) {
    return sx_tensor_create(pool, sx_type_of(id), length, false, out_tensor, error);
}

static void store_scalar(const struct sx_scalar *scalar, void *place) {
    const size_t bytes = sx_type_bytes(scalar->type);
    switch (sx_type_phys(scalar->type)) {
    case SX_PHYS_STRING: {
        struct sx_string view = sx_string_make(scalar->v.text.bytes, scalar->v.text.length_bytes);
        memcpy(place, &view, sizeof view);
        break;
    }
    default: /* little-endian: the low bytes of the union's member */ memcpy(place, &scalar->v, bytes);
    }
}

enum sx_status sx_tensor_create_constant(struct sx_pool *pool, const struct sx_scalar *scalar, int64_t length,
                                         struct sx_tensor *out_tensor, struct sx_error *error) {
    struct sx_tensor tensor = {.type = scalar->type, .layout = SX_CONSTANT, .length = length};
    SX_TRY(create_stored(pool, sx_type_bytes(scalar->type), 1, scalar->is_null, &tensor, error));
    enum sx_status status = SX_OK;
    memset(tensor.values, 0, sx_type_bytes(scalar->type));
    if (scalar->is_null) {
        tensor.valid[0] = 0;
    } else if (scalar->type.id == SX_TYPE_VARCHAR && scalar->v.text.length_bytes > SX_STRING_INLINE_BYTES) {
        SX_GO(sx_buffer_create(pool, scalar->v.text.length_bytes, &tensor.heap, error));
        memcpy(tensor.heap->data, scalar->v.text.bytes, scalar->v.text.length_bytes);
        struct sx_string view = sx_string_make(tensor.heap->data, scalar->v.text.length_bytes);
        memcpy(tensor.values, &view, sizeof view);
    } else {
        store_scalar(scalar, tensor.values);
    }
    *out_tensor = tensor;
    return SX_OK;
out:
    sx_tensor_release(&tensor);
    return status;
}

void sx_tensor_share(const struct sx_tensor *tensor, struct sx_tensor *out_tensor) {
    *out_tensor = *tensor;
    sx_buffer_retain(tensor->values_buffer);
    sx_buffer_retain(tensor->valid_buffer);
    sx_buffer_retain(tensor->heap);
    sx_dict_retain(tensor->dict);
}

void sx_tensor_slice(const struct sx_tensor *tensor, int64_t first, int64_t length,
                     struct sx_tensor *out_tensor) {
    sx_tensor_share(tensor, out_tensor);
    out_tensor->length = length;
    if (tensor->layout == SX_CONSTANT)
        return;
    if (tensor->values)
        out_tensor->values = (char *)tensor->values + (size_t)first * sx_tensor_step(tensor);
    if (tensor->valid)
        out_tensor->valid = tensor->valid + first;
}

enum sx_status sx_tensor_select(const struct sx_tensor *column, const struct sx_tensor *index,
                                struct sx_tensor *out_tensor, struct sx_error *error) {
    struct sx_tensor rows, made;
    struct sx_dict *dict = NULL;
    sx_tensor_share(column, &rows);
    const enum sx_status status = sx_dict_create(&rows, &dict, error);
    if (status != SX_OK) {
        sx_tensor_release(&rows);
        return status;
    }
    sx_tensor_share(index, &made);
    made.type = column->type;
    made.layout = SX_SELECTED;
    made.dict = dict;
    *out_tensor = made;
    return SX_OK;
}

void sx_tensor_release(struct sx_tensor *tensor) {
    sx_buffer_release(tensor->values_buffer);
    sx_buffer_release(tensor->valid_buffer);
    sx_buffer_release(tensor->heap);
    sx_dict_release(tensor->dict);
    *tensor = (struct sx_tensor){0};
}

static void load_scalar(struct sx_type type, const void *place, struct sx_scalar *out) {
    out->type = type;
    switch (sx_type_phys(type)) {
    case SX_PHYS_I8: out->v.i64 = *(const int8_t *)place; break;
    case SX_PHYS_I16: out->v.i64 = *(const int16_t *)place; break;
    case SX_PHYS_I32: out->v.i64 = *(const int32_t *)place; break;
    case SX_PHYS_U8: out->v.u64 = *(const uint8_t *)place; break;
    case SX_PHYS_U16: out->v.u64 = *(const uint16_t *)place; break;
    case SX_PHYS_U32: out->v.u64 = *(const uint32_t *)place; break;
    case SX_PHYS_STRING: {
        const struct sx_string *view = place;
        out->v.text.bytes = sx_string_bytes(view);
        out->v.text.length_bytes = view->length_bytes;
        break;
    }
    default: memcpy(&out->v, place, sx_type_bytes(type));
    }
}

void sx_tensor_scalar(const struct sx_tensor *tensor, int64_t row, struct sx_scalar *out_scalar) {
    *out_scalar = (struct sx_scalar){.type = tensor->type};
    int64_t at = tensor->layout == SX_CONSTANT ? 0 : row;
    if (tensor->valid && !tensor->valid[at]) {
        out_scalar->is_null = true;
        return;
    }
    const void *values = tensor->values;
    if (tensor->layout == SX_DICT) {
        at = ((const int32_t *)tensor->values)[row];
        values = tensor->dict->values.values;
    }
    load_scalar(tensor->type, (const char *)values + (size_t)at * sx_type_bytes(tensor->type), out_scalar);
}

size_t sx_tensor_bytes(const struct sx_tensor *tensor) {
    if (tensor->layout == SX_CONSTANT)
        return sx_type_bytes(tensor->type);
    size_t rows = (size_t)tensor->length;
    size_t bytes = (tensor->valid ? rows : 0) + rows * sx_tensor_step(tensor);
    if (tensor->type.id != SX_TYPE_VARCHAR || tensor->layout == SX_DICT)
        return bytes;
    const struct sx_string *views = tensor->values;
    for (size_t i = 0; i < rows; i++)
        if (views[i].length_bytes > SX_STRING_INLINE_BYTES)
            bytes += views[i].length_bytes;
    return bytes;
}

struct sx_string sx_string_make(const char *bytes, uint32_t length_bytes) {
    struct sx_string view = {.length_bytes = length_bytes};
    if (length_bytes <= SX_STRING_INLINE_BYTES) {
        if (length_bytes)
            memcpy(view.u.inlined, bytes, length_bytes);
    } else {
        memcpy(view.u.ref.prefix, bytes, sizeof view.u.ref.prefix);
        view.u.ref.pointer = bytes;
    }
    return view;
}

enum sx_status sx_batch_create(int n_columns, int64_t rows, struct sx_batch *out_batch,
                               struct sx_error *error) {
    struct sx_tensor *columns = calloc((size_t)n_columns + 1, sizeof *columns);
    if (!columns)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a batch");
    *out_batch =
        (struct sx_batch){.rows = rows, .rows_bound = rows, .n_columns = n_columns, .columns = columns};
    return SX_OK;
}

enum sx_status sx_batch_share(const struct sx_batch *batch, struct sx_batch *out_batch,
                              struct sx_error *error) {
    SX_TRY(sx_batch_create(batch->n_columns, batch->rows, out_batch, error));
    out_batch->rows_bound = batch->rows_bound;
    out_batch->device_rows = batch->device_rows;
    for (int i = 0; i < batch->n_columns; i++)
        sx_tensor_share(&batch->columns[i], &out_batch->columns[i]);
    return SX_OK;
}

enum sx_status sx_batch_slice(const struct sx_batch *batch, int64_t first, int64_t rows,
                              struct sx_batch *out_batch, struct sx_error *error) {
    SX_TRY(sx_batch_create(batch->n_columns, rows, out_batch, error));
    for (int i = 0; i < batch->n_columns; i++)
        sx_tensor_slice(&batch->columns[i], first, rows, &out_batch->columns[i]);
    return SX_OK;
}

void sx_batch_release(struct sx_batch *batch) {
    for (int i = 0; i < batch->n_columns; i++)
        sx_tensor_release(&batch->columns[i]);
    free(batch->columns);
    *batch = (struct sx_batch){0};
}

size_t sx_batch_bytes(const struct sx_batch *batch) {
    size_t bytes = 0;
    for (int i = 0; i < batch->n_columns; i++)
        bytes += sx_tensor_bytes(&batch->columns[i]);
    return bytes;
}
