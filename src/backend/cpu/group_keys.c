/* Keys between columns and rows. */
#include <string.h>

#include "backend/cpu/group_state.h"

/* Where a block of a key column is read, whatever its layout. */
struct key_source {
    const void *values;
    const int32_t *codes; /* NULL: position times step */
    int64_t step;
    const uint8_t *valid;
    int64_t valid_step;
};

static inline int64_t source_row(const struct key_source *from, int32_t i) {
    return from->codes ? from->codes[i] : i * from->step;
}

static struct key_source source_of(const struct sx_tensor *column, int64_t first) {
    struct key_source from = {.values = column->values, .step = 1, .valid_step = 1};
    const size_t bytes = sx_type_bytes(column->type);
    if (column->layout == SX_CONSTANT) {
        from.step = from.valid_step = 0;
        from.valid = column->valid;
        return from;
    }
    from.valid = column->valid ? column->valid + first : NULL;
    if (column->layout == SX_DICT) {
        from.codes = (const int32_t *)column->values + first;
        from.values = column->dict->values.values;
    } else {
        from.values = (const char *)column->values + (size_t)first * bytes;
    }
    return from;
}

static inline float normal_f32(float x) {
    return x == 0.0F ? 0.0F : x != x ? __builtin_nanf("") : x;
}

static inline double normal_f64(double x) {
    return x == 0.0 ? 0.0 : x != x ? __builtin_nan("") : x;
}

#define SX_PHYS      I8
#define SX_C         uint8_t
#define SX_NORMAL(x) (x)
#include "backend/cpu/group_keys.tmpl.h"
#define SX_PHYS      I16
#define SX_C         uint16_t
#define SX_NORMAL(x) (x)
#include "backend/cpu/group_keys.tmpl.h"
#define SX_PHYS      I32
#define SX_C         uint32_t
#define SX_NORMAL(x) (x)
#include "backend/cpu/group_keys.tmpl.h"
#define SX_PHYS      I64
#define SX_C         uint64_t
#define SX_NORMAL(x) (x)
#include "backend/cpu/group_keys.tmpl.h"
#define SX_PHYS      I128
#define SX_C         sx_u128
#define SX_NORMAL(x) (x)
#include "backend/cpu/group_keys.tmpl.h"
#define SX_PHYS      F32
#define SX_C         float
#define SX_NORMAL(x) normal_f32(x)
#include "backend/cpu/group_keys.tmpl.h"
#define SX_PHYS      F64
#define SX_C         double
#define SX_NORMAL(x) normal_f64(x)
#include "backend/cpu/group_keys.tmpl.h"

static void encode_string(const struct key_source *from, int32_t n, char *to, size_t stride,
                          size_t to_pointer) {
    const struct sx_string *values = from->values;
    for (int32_t i = 0; i < n; i++, to += stride) {
        const struct sx_string *value = &values[source_row(from, i)];
        memcpy(to, value, sizeof *value);
        if (value->length_bytes <= SX_STRING_INLINE_BYTES)
            continue;
        const uint64_t hash = sx_hash_bytes(value->u.ref.pointer, value->length_bytes);
        memcpy(to + 8, &hash, sizeof hash);
        *(sx_group_pointer *)(to + to_pointer) = value->u.ref.pointer;
    }
}

static void encode_values(const struct sx_group_key *key, const struct key_source *from, int32_t n,
                          char *heads, size_t stride) {
    char *to = heads + key->offset;
    switch (key->phys) {
    case SX_PHYS_I8:
    case SX_PHYS_U8: encode_I8(from, n, to, stride); break;
    case SX_PHYS_I16:
    case SX_PHYS_U16: encode_I16(from, n, to, stride); break;
    case SX_PHYS_I32:
    case SX_PHYS_U32: encode_I32(from, n, to, stride); break;
    case SX_PHYS_I64:
    case SX_PHYS_U64: encode_I64(from, n, to, stride); break;
    case SX_PHYS_F32: encode_F32(from, n, to, stride); break;
    case SX_PHYS_F64: encode_F64(from, n, to, stride); break;
    case SX_PHYS_STRING: encode_string(from, n, to, stride, key->pointer - key->offset); break;
    default: encode_I128(from, n, to, stride); break;
    }
}

static void clear_key(const struct sx_group_key *key, char *head) {
    memset(head + key->offset, 0, sx_phys_bytes(key->phys));
    head[key->null_byte] = (char)(head[key->null_byte] | key->null_bit);
}

static void encode_nulls(const struct sx_group_key *key, const struct key_source *from, int32_t n,
                         char *heads, size_t stride) {
    for (int32_t i = 0; i < n; i++)
        if (!from->valid[i * from->valid_step])
            clear_key(key, heads + (size_t)i * stride);
}

void sx_group_encode(const struct sx_group_layout *layout, const struct sx_tensor *keys, int64_t first,
                     int32_t n, char *heads) {
    const size_t stride = layout->head_bytes;
    memset(heads, 0, (size_t)n * stride);
    for (int k = 0; k < layout->n_keys; k++) {
        const struct sx_group_key *key = &layout->keys[k];
        if (key->type.id == SX_TYPE_NULLTYPE) {
            for (int32_t i = 0; i < n; i++)
                clear_key(key, heads + (size_t)i * stride);
            continue;
        }
        const struct key_source from = source_of(&keys[k], first);
        encode_values(key, &from, n, heads, stride);
        if (from.valid)
            encode_nulls(key, &from, n, heads, stride);
    }
}

/* ---- rows to columns ---- */

static bool key_is_null(const struct sx_group_key *key, const char *row) {
    return row[key->null_byte] & key->null_bit;
}

static void emit_fixed(const struct sx_group_key *key, char *const *rows, int64_t n, char *to) {
    const uint32_t offset = key->offset;
    switch (sx_phys_bytes(key->phys)) {
    case 1:
        for (int64_t i = 0; i < n; i++)
            to[i] = rows[i][offset];
        break;
    case 2:
        for (int64_t i = 0; i < n; i++)
            memcpy(to + 2 * i, rows[i] + offset, 2);
        break;
    case 4:
        for (int64_t i = 0; i < n; i++)
            memcpy(to + 4 * i, rows[i] + offset, 4);
        break;
    case 8:
        for (int64_t i = 0; i < n; i++)
            memcpy(to + 8 * i, rows[i] + offset, 8);
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            memcpy(to + 16 * i, rows[i] + offset, 16);
    }
}

static void emit_strings(const struct sx_group_key *key, char *const *rows, int64_t n, struct sx_string *to) {
    for (int64_t i = 0; i < n; i++) {
        memcpy(&to[i], rows[i] + key->offset, sizeof to[i]);
        if (to[i].length_bytes > SX_STRING_INLINE_BYTES)
            to[i].u.ref.pointer = *(const sx_group_pointer *)(rows[i] + key->pointer);
    }
}

enum sx_status sx_group_emit_key(const struct sx_group_layout *layout, int k, char *const *rows, int64_t n,
                                 struct sx_buffer *heap, struct sx_stream *stream,
                                 struct sx_tensor *out_column) {
    const struct sx_group_key *key = &layout->keys[k];
    bool any_null = false;
    for (int64_t i = 0; i < n && !any_null; i++)
        any_null = key_is_null(key, rows[i]);
    SX_TRY(sx_tensor_create(stream->pool, key->type, n, any_null, out_column, &stream->error));
    if (key->phys == SX_PHYS_STRING) {
        emit_strings(key, rows, n, out_column->values);
        out_column->heap = sx_buffer_retain(heap);
    } else {
        emit_fixed(key, rows, n, out_column->values);
    }
    for (int64_t i = 0; any_null && i < n; i++)
        out_column->valid[i] = !key_is_null(key, rows[i]);
    return SX_OK;
}
