#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/move.h"

/* Values move as words of their width, whatever their type. */
typedef uint8_t word1 __attribute__((may_alias));
typedef uint16_t word2 __attribute__((may_alias));
typedef uint32_t word4 __attribute__((may_alias));
typedef uint64_t word8 __attribute__((may_alias));
typedef struct {
    uint64_t low, high;
} __attribute__((may_alias)) word16;

/* X(width) */
#define WIDTH_LIST(X) X(1) X(2) X(4) X(8) X(16)

#define SX_WORD       word1
#define SX_INDEX      int32_t
#define SX_NAME(stem) stem##_1_by_i32
#include "backend/cpu/move_gather.tmpl.h"
#define SX_WORD       word2
#define SX_INDEX      int32_t
#define SX_NAME(stem) stem##_2_by_i32
#include "backend/cpu/move_gather.tmpl.h"
#define SX_WORD       word4
#define SX_INDEX      int32_t
#define SX_NAME(stem) stem##_4_by_i32
#include "backend/cpu/move_gather.tmpl.h"
#define SX_WORD       word8
#define SX_INDEX      int32_t
#define SX_NAME(stem) stem##_8_by_i32
#include "backend/cpu/move_gather.tmpl.h"
#define SX_WORD       word16
#define SX_INDEX      int32_t
#define SX_NAME(stem) stem##_16_by_i32
#include "backend/cpu/move_gather.tmpl.h"
#define SX_WORD       word1
#define SX_INDEX      int64_t
#define SX_NAME(stem) stem##_1_by_i64
#include "backend/cpu/move_gather.tmpl.h"
#define SX_WORD       word2
#define SX_INDEX      int64_t
#define SX_NAME(stem) stem##_2_by_i64
#include "backend/cpu/move_gather.tmpl.h"
#define SX_WORD       word4
#define SX_INDEX      int64_t
#define SX_NAME(stem) stem##_4_by_i64
#include "backend/cpu/move_gather.tmpl.h"
#define SX_WORD       word8
#define SX_INDEX      int64_t
#define SX_NAME(stem) stem##_8_by_i64
#include "backend/cpu/move_gather.tmpl.h"
#define SX_WORD       word16
#define SX_INDEX      int64_t
#define SX_NAME(stem) stem##_16_by_i64
#include "backend/cpu/move_gather.tmpl.h"

typedef void gather_function(const void *source, const void *index, int64_t rows, void *out_values);

/* By log2 of the width, whether the index is I64, and whether some index is negative. */
static gather_function *const gather_functions[][2][2] = {
#define GATHER_ROW(width)                                        \
    {{gather_##width##_by_i32, gather_or_zero_##width##_by_i32}, \
     {gather_##width##_by_i64, gather_or_zero_##width##_by_i64}},
    WIDTH_LIST(GATHER_ROW)
#undef GATHER_ROW
};

void sx_cpu_gather_values(const void *source, size_t value_bytes, const void *index, enum sx_type_id index_id,
                          bool some_negative, int64_t rows, void *out_values) {
    int log2_bytes = __builtin_ctzll((unsigned long long)value_bytes);
    gather_functions[log2_bytes][index_id == SX_TYPE_I64][some_negative](source, index, rows, out_values);
}

static bool some_negative_i32(const int32_t *index, int64_t rows) {
    int32_t all = 0;
    for (int64_t i = 0; i < rows; i++)
        all |= index[i];
    return all < 0;
}

static bool some_negative_i64(const int64_t *index, int64_t rows) {
    int64_t all = 0;
    for (int64_t i = 0; i < rows; i++)
        all |= index[i];
    return all < 0;
}

static bool some_negative(const struct sx_tensor *index) {
    return index->type.id == SX_TYPE_I64 ? some_negative_i64(index->values, index->length)
                                         : some_negative_i32(index->values, index->length);
}

static int64_t index_at(const struct sx_tensor *index, int64_t i) {
    return index->type.id == SX_TYPE_I64 ? ((const int64_t *)index->values)[i]
                                         : ((const int32_t *)index->values)[i];
}

/* Whether the index is first, first + 1, … with first >= 0. */
static bool is_run(const struct sx_tensor *index) {
    int64_t rows = index->length, first = index_at(index, 0);
    if (first < 0 || index_at(index, rows - 1) - first != rows - 1)
        return false;
    int64_t differences = 0;
    if (index->type.id == SX_TYPE_I64) {
        const int64_t *values = index->values;
        for (int64_t i = 0; i < rows; i++)
            differences |= values[i] ^ (first + i);
    } else {
        const int32_t *values = index->values;
        for (int64_t i = 0; i < rows; i++)
            differences |= values[i] ^ ((int32_t)first + (int32_t)i);
    }
    return differences == 0;
}

/* 1 where the index is not negative. */
static void valid_from_index(const struct sx_tensor *index, uint8_t *out_valid) {
    for (int64_t i = 0; i < index->length; i++)
        out_valid[i] = index_at(index, i) >= 0;
}

static enum sx_status gather_constant_or_null(struct sx_stream *stream, const struct sx_tensor *column,
                                              const struct sx_tensor *index, struct sx_tensor *out_column) {
    struct sx_tensor out = {0};
    SX_TRY(sx_tensor_create(stream->pool, column->type, index->length, true, &out, &stream->error));
    sx_cpu_copy_values(column, 0, index->length, out.values);
    if (column->valid && !column->valid[0])
        memset(out.valid, 0, (size_t)index->length);
    else
        valid_from_index(index, out.valid);
    out.heap = sx_buffer_retain(column->heap);
    *out_column = out;
    return SX_OK;
}

static enum sx_status gather_stored(struct sx_stream *stream, const struct sx_tensor *column,
                                    const struct sx_tensor *index, bool negative,
                                    struct sx_tensor *out_column) {
    struct sx_tensor out = {0};
    bool with_valid = negative || column->valid;
    size_t value_bytes = sizeof(int32_t);
    if (column->layout == SX_DICT) {
        SX_TRY(sx_tensor_create_codes(stream->pool, column->dict, index->length, with_valid, &out,
                                      &stream->error));
    } else {
        SX_TRY(sx_tensor_create(stream->pool, column->type, index->length, with_valid, &out, &stream->error));
        value_bytes = sx_type_bytes(column->type);
    }
    sx_cpu_gather_values(column->values, value_bytes, index->values, index->type.id, negative, index->length,
                         out.values);
    if (column->valid)
        sx_cpu_gather_values(column->valid, 1, index->values, index->type.id, negative, index->length,
                             out.valid);
    else if (negative)
        valid_from_index(index, out.valid);
    out.heap = sx_buffer_retain(column->heap);
    *out_column = out;
    return SX_OK;
}

enum sx_status sx_cpu_gather(struct sx_stream *stream, const struct sx_tensor *column,
                             const struct sx_tensor *index, struct sx_tensor *out_column) {
    SX_TRY(sx_cpu_check_cancel(stream));
    if (index->length == 0 || is_run(index)) {
        sx_tensor_slice(column, index->length ? index_at(index, 0) : 0, index->length, out_column);
        return SX_OK;
    }
    bool negative = some_negative(index);
    if (column->layout != SX_CONSTANT)
        return gather_stored(stream, column, index, negative, out_column);
    if (negative)
        return gather_constant_or_null(stream, column, index, out_column);
    sx_tensor_share(column, out_column);
    out_column->length = index->length;
    return SX_OK;
}

enum sx_status sx_cpu_gather_columns(struct sx_stream *stream, const struct sx_tensor *const *columns, int n,
                                     const struct sx_tensor *index, struct sx_tensor *out_columns) {
    for (int i = 0; i < n; i++) {
        const enum sx_status status = sx_cpu_gather(stream, columns[i], index, &out_columns[i]);
        if (status == SX_OK)
            continue;
        for (int done = 0; done < i; done++)
            sx_tensor_release(&out_columns[done]);
        return status;
    }
    return SX_OK;
}
