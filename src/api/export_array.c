#include <stdlib.h>
#include <string.h>

#include "api/export.h"

/* What a column's array keeps. */
struct column_private {
    struct stachio_db *db;
    struct sx_tensor tensor; /* its bytes may be in `buffers` */
    void *owned[3];          /* from malloc, or NULL */
    const void *buffers[3];  /* validity, values or offsets, text */
};

static void release_column(struct ArrowArray *array) {
    struct column_private *own = array->private_data;
    for (int i = 0; i < 3; i++)
        free(own->owned[i]);
    sx_tensor_release(&own->tensor);
    sx_db_release(own->db);
    free(own);
    array->release = NULL;
}

static void release_batch(struct ArrowArray *array) {
    for (int64_t i = 0; i < array->n_children; i++) {
        if (array->children[i]->release)
            array->children[i]->release(array->children[i]);
        free(array->children[i]);
    }
    free(array->children);
    free(array->buffers);
    array->release = NULL;
}

static enum sx_status no_memory(struct sx_error *error) {
    return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the answer's rows");
}

/* `size` bytes for buffer `at`; never of size 0, since Arrow wants a pointer. */
static void *own_buffer(struct column_private *own, int at, size_t size) {
    own->owned[at] = malloc(size ? size : 1);
    own->buffers[at] = own->owned[at];
    return own->owned[at];
}

/* Bytes that are 0 or 1 to bits, the first in the lowest; returns how many are 1. */
static int64_t pack_bits(const uint8_t *bytes, int64_t n, uint8_t *bits) {
    int64_t ones = 0;
    for (int64_t i = 0; i < n; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, n - i < 8 ? (size_t)(n - i) : 8);
        word &= 0x0101010101010101u;
        bits[i / 8] = (uint8_t)((word * 0x0102040810204080u) >> 56);
        ones += __builtin_popcountll(word);
    }
    return ones;
}

static enum sx_status pack_valid(struct column_private *own, struct ArrowArray *array,
                                 struct sx_error *error) {
    if (!own->tensor.valid)
        return SX_OK;
    uint8_t *bits = own_buffer(own, 0, (size_t)(array->length + 7) / 8);
    if (!bits)
        return no_memory(error);
    array->null_count = array->length - pack_bits(own->tensor.valid, array->length, bits);
    return SX_OK;
}

static enum sx_status pack_bools(struct column_private *own, int64_t rows, struct sx_error *error) {
    uint8_t *bits = own_buffer(own, 1, (size_t)(rows + 7) / 8);
    if (!bits)
        return no_memory(error);
    pack_bits(own->tensor.values, rows, bits);
    return SX_OK;
}

static enum sx_status widen_decimals(struct column_private *own, int64_t rows, struct sx_error *error) {
    sx_i128 *wide = own_buffer(own, 1, (size_t)rows * sizeof *wide);
    if (!wide)
        return no_memory(error);
    const int64_t *values = own->tensor.values;
    for (int64_t i = 0; i < rows; i++)
        wide[i] = values[i];
    return SX_OK;
}

struct arrow_interval {
    int32_t months;
    int32_t days;
    int64_t nanos;
};

static enum sx_status convert_intervals(struct column_private *own, int64_t rows, struct sx_error *error) {
    struct arrow_interval *out = own_buffer(own, 1, (size_t)rows * sizeof *out);
    if (!out)
        return no_memory(error);
    const struct sx_interval *values = own->tensor.values;
    for (int64_t i = 0; i < rows; i++) {
        bool is_null = own->tensor.valid && !own->tensor.valid[i];
        struct sx_interval value = is_null ? (struct sx_interval){0} : values[i];
        out[i] = (struct arrow_interval){value.months, value.days, 0};
        if (__builtin_mul_overflow(value.micros, 1000, &out[i].nanos))
            return sx_error_set(error, SX_QUERY, "an interval of %lld microseconds is out of Arrow's range",
                                (long long)value.micros);
    }
    return SX_OK;
}

static int64_t text_bytes(const struct sx_tensor *tensor, int64_t row) {
    if (tensor->valid && !tensor->valid[row])
        return 0;
    return ((const struct sx_string *)tensor->values)[row].length_bytes;
}

static enum sx_status copy_texts(struct column_private *own, int64_t rows, struct sx_error *error) {
    int32_t *offsets = own_buffer(own, 1, ((size_t)rows + 1) * sizeof *offsets);
    if (!offsets)
        return no_memory(error);
    offsets[0] = 0;
    for (int64_t i = 0; i < rows; i++)
        offsets[i + 1] = offsets[i] + (int32_t)text_bytes(&own->tensor, i);
    char *bytes = own_buffer(own, 2, (size_t)offsets[rows]);
    if (!bytes)
        return no_memory(error);
    const struct sx_string *views = own->tensor.values;
    for (int64_t i = 0; i < rows; i++) {
        int32_t length = offsets[i + 1] - offsets[i];
        if (length)
            memcpy(bytes + offsets[i], sx_string_bytes(&views[i]), (size_t)length);
    }
    return SX_OK;
}

/* Buffers for a column whose tensor is set. */
static enum sx_status fill_column(struct column_private *own, struct ArrowArray *array,
                                  struct sx_error *error) {
    struct sx_type type = own->tensor.type;
    if (type.id == SX_TYPE_NULLTYPE) {
        array->null_count = array->length;
        array->n_buffers = 0;
        return SX_OK;
    }
    SX_TRY(pack_valid(own, array, error));
    array->n_buffers = type.id == SX_TYPE_VARCHAR ? 3 : 2;
    if (type.id == SX_TYPE_BOOL)
        return pack_bools(own, array->length, error);
    if (type.id == SX_TYPE_VARCHAR)
        return copy_texts(own, array->length, error);
    if (type.id == SX_TYPE_INTERVAL)
        return convert_intervals(own, array->length, error);
    if (type.id == SX_TYPE_DECIMAL && sx_type_phys(type) == SX_PHYS_I64)
        return widen_decimals(own, array->length, error);
    own->buffers[1] = own->tensor.values;
    return SX_OK;
}

static enum sx_status export_column(struct stachio_db *db, const struct sx_tensor *column, int64_t first,
                                    int64_t rows, struct ArrowArray *out_array, struct sx_error *error) {
    struct column_private *own = calloc(1, sizeof *own);
    if (!own)
        return no_memory(error);
    own->db = sx_db_retain(db);
    sx_tensor_slice(column, first, rows, &own->tensor);
    *out_array = (struct ArrowArray){
        .length = rows,
        .buffers = own->buffers,
        .release = release_column,
        .private_data = own,
    };
    return fill_column(own, out_array, error);
}

enum sx_status sx_export_rows(const struct sx_batch *batch, int64_t first, int64_t *out_rows,
                              struct sx_error *error) {
    int64_t rows = batch->rows - first;
    for (int c = 0; c < batch->n_columns; c++) {
        if (batch->columns[c].type.id != SX_TYPE_VARCHAR)
            continue;
        int64_t fitting = 0, bytes = 0;
        while (fitting < rows && (bytes += text_bytes(&batch->columns[c], first + fitting)) <= INT32_MAX)
            fitting++;
        rows = fitting;
    }
    if (!rows && first < batch->rows)
        return sx_error_set(error, SX_QUERY, "a text of more than 2 GiB is out of Arrow's range");
    *out_rows = rows;
    return SX_OK;
}

enum sx_status sx_export_batch(struct stachio_db *db, const struct sx_batch *batch, int64_t first,
                               int64_t rows, struct ArrowArray *out_array, struct sx_error *error) {
    struct ArrowArray array = {.length = rows, .n_buffers = 1, .release = release_batch};
    array.buffers = calloc(1, sizeof *array.buffers);
    array.children = calloc((size_t)batch->n_columns + 1, sizeof *array.children);
    enum sx_status status = array.buffers && array.children ? SX_OK : no_memory(error);
    for (int i = 0; status == SX_OK && i < batch->n_columns; i++) {
        struct ArrowArray *child = calloc(1, sizeof *child);
        if (!child) {
            status = no_memory(error);
            break;
        }
        array.children[array.n_children++] = child;
        status = export_column(db, &batch->columns[i], first, rows, child, error);
    }
    if (status == SX_OK)
        *out_array = array;
    else
        release_batch(&array);
    return status;
}
