/* From tensors to the values that a column chunk stores. */
#include <string.h>

#include "storage/write_values.h"

/* More bytes of entries than this are no help to a reader. */
static const int64_t most_kept_bytes = (int64_t)64 << 20;

static struct sx_stored stored_of(const struct sx_write_column *column, const void *values) {
    return (struct sx_stored){column->physical, sx_write_column_width(column), values};
}

/* ---- one piece ---- */

/* A tensor of any layout: row i is values[codes ? codes[i] : i * step], null where valid[i * step] is 0. */
struct source {
    const void *values;
    const int32_t *codes;
    int64_t step;
    const uint8_t *valid;
    int64_t rows;
};

static struct source source_of(const struct sx_tensor *tensor) {
    struct source source = {
        .values = tensor->values,
        .step = tensor->layout != SX_CONSTANT,
        .valid = tensor->valid,
        .rows = tensor->length,
    };
    if (tensor->layout == SX_DICT) {
        source.codes = tensor->values;
        source.values = tensor->dict->values.values;
    }
    return source;
}

static bool is_null(const struct source *source, int64_t row) {
    return source->valid && !source->valid[row * source->step];
}

/* Each load writes the values that are not null and gives their number; -1: one can't be stored. */
#define LOAD(name, from_type, to_type, expression)                                                      \
    static int64_t name(const struct source *source, const struct sx_write_column *column, void *out) { \
        const from_type *from = source->values;                                                         \
        to_type *to = out;                                                                              \
        int64_t n = 0;                                                                                  \
        (void)column;                                                                                   \
        for (int64_t i = 0; i < source->rows; i++) {                                                    \
            if (is_null(source, i))                                                                     \
                continue;                                                                               \
            const from_type value = from[source->codes ? source->codes[i] : i * source->step];          \
            to[n++] = (expression);                                                                     \
        }                                                                                               \
        return n;                                                                                       \
    }
LOAD(load_bool, uint8_t, uint8_t, value != 0)
LOAD(load_i8, int8_t, int32_t, value)
LOAD(load_i16, int16_t, int32_t, value)
LOAD(load_u8, uint8_t, int32_t, value)
LOAD(load_u16, uint16_t, int32_t, value)
LOAD(load_4, uint32_t, uint32_t, value)
LOAD(load_8, uint64_t, uint64_t, value)
LOAD(load_narrow, int64_t, int32_t, (int32_t)value)
LOAD(load_text, struct sx_string, struct sx_string, value)
#undef LOAD

/* Big-endian two's complement in the column's width. */
static int64_t load_wide(const struct source *source, const struct sx_write_column *column, void *out) {
    const sx_i128 *from = source->values;
    const int32_t width = column->type_length;
    uint8_t *to = out;
    sx_i128 limit = 1;
    for (int i = 0; i < SX_DECIMAL_MAX_DIGITS; i++)
        limit *= 10;
    for (int64_t i = 0; i < source->rows; i++) {
        if (is_null(source, i))
            continue;
        const sx_i128 value = from[source->codes ? source->codes[i] : i * source->step];
        if (value >= limit || value <= -limit)
            return -1; /* a HUGEINT */
        sx_u128 rest = (sx_u128)value;
        for (int32_t b = width - 1; b >= 0; b--, rest >>= 8)
            to[b] = (uint8_t)rest;
        to += width;
    }
    return (to - (uint8_t *)out) / width;
}

static int64_t load_nothing(const struct source *source, const struct sx_write_column *column, void *out) {
    (void)source, (void)column, (void)out;
    return 0;
}

typedef int64_t load_piece(const struct source *source, const struct sx_write_column *column, void *out);

static load_piece *load_of(const struct sx_write_column *column) {
    if (column->type.id == SX_TYPE_BOOL)
        return load_bool;
    if (column->type.id == SX_TYPE_NULLTYPE)
        return load_nothing;
    switch (sx_type_phys(column->type)) {
    case SX_PHYS_I8: return load_i8;
    case SX_PHYS_I16: return load_i16;
    case SX_PHYS_U8: return load_u8;
    case SX_PHYS_U16: return load_u16;
    case SX_PHYS_I128: return load_wide;
    case SX_PHYS_STRING: return load_text;
    case SX_PHYS_I64: return column->physical == SX_PARQUET_INT32 ? load_narrow : load_8;
    case SX_PHYS_U64:
    case SX_PHYS_F64: return load_8;
    default: return load_4;
    }
}

/* ---- nulls ---- */

static void mark_valid(const struct sx_write_column *column, const struct sx_tensor *piece, uint8_t *valid,
                       int64_t *count) {
    const struct source source = source_of(piece);
    for (int64_t i = 0; i < source.rows; i++) {
        valid[i] = column->type.id != SX_TYPE_NULLTYPE && !is_null(&source, i);
        *count += valid[i];
    }
}

/* Counts rows and values; `valid` stays NULL when nothing is null. */
static enum sx_status load_valid(struct sx_write_values *values, const struct sx_tensor *pieces, int64_t n,
                                 struct sx_error *error) {
    bool any = values->column->type.id == SX_TYPE_NULLTYPE;
    for (int64_t i = 0; i < n; i++) {
        values->rows += pieces[i].length;
        any |= pieces[i].valid != NULL;
    }
    values->count = values->rows;
    if (!any)
        return SX_OK;
    void *valid;
    SX_TRY(sx_pool_alloc(values->pool, (size_t)values->rows, &valid, error));
    values->valid = valid;
    values->count = 0;
    for (int64_t i = 0, row = 0; i < n; row += pieces[i++].length)
        mark_valid(values->column, &pieces[i], values->valid + row, &values->count);
    if (values->count < values->rows && !values->column->is_optional)
        return sx_error_set(error, SX_INTERNAL, "column %s: a null where there should be none",
                            values->column->name);
    if (values->count == values->rows) {
        sx_pool_free(values->pool, values->valid, (size_t)values->rows);
        values->valid = NULL;
    }
    return SX_OK;
}

/* ---- codes of pieces that have dictionaries ---- */

/* The codes of a piece's dictionary, -1 where not known yet. */
struct translation {
    uint64_t id; /* of the dictionary */
    int32_t *codes;
    size_t size_bytes;
};

static enum sx_status begin_translation(struct sx_pool *pool, const struct sx_dict *dict,
                                        struct translation *translation, struct sx_error *error) {
    if (translation->codes && translation->id == dict->id)
        return SX_OK;
    size_t size_bytes = (size_t)dict->values.length * sizeof *translation->codes;
    void *codes = translation->codes;
    SX_TRY(sx_pool_resize(pool, &codes, translation->size_bytes, size_bytes, error));
    *translation = (struct translation){dict->id, codes, size_bytes};
    memset(codes, 0xff, size_bytes);
    return SX_OK;
}

static enum sx_write_coded translate_piece(struct sx_write_values *values, const struct sx_tensor *piece,
                                           struct translation *translation, int32_t *codes, int64_t *count,
                                           struct sx_error *error) {
    const struct source source = source_of(piece);
    const struct sx_string *entries = source.values;
    for (int64_t i = 0; i < source.rows; i++) {
        if (is_null(&source, i))
            continue;
        int32_t *code = &translation->codes[source.codes[i]];
        if (*code < 0) {
            enum sx_write_coded coded =
                sx_write_dictionary_add(&values->dictionary, &entries[source.codes[i]], 1, code, error);
            if (coded != SX_CODED)
                return coded;
        }
        codes[(*count)++] = *code;
    }
    return SX_CODED;
}

static enum sx_write_coded translate(struct sx_write_values *values, const struct sx_tensor *pieces,
                                     int64_t n, struct sx_error *error) {
    struct translation translation = {0};
    enum sx_write_coded coded = SX_CODED;
    int64_t count = 0;
    for (int64_t i = 0; i < n && coded == SX_CODED; i++) {
        if (begin_translation(values->pool, pieces[i].dict, &translation, error) != SX_OK)
            coded = SX_CODED_NO_MEMORY;
        else
            coded = translate_piece(values, &pieces[i], &translation, values->codes, &count, error);
    }
    if (translation.codes)
        sx_pool_free(values->pool, translation.codes, translation.size_bytes);
    return coded;
}

static void drop_codes(struct sx_write_values *values) {
    if (values->codes)
        sx_pool_free(values->pool, values->codes, (size_t)values->count * sizeof *values->codes);
    values->codes = NULL;
    sx_write_dictionary_release(&values->dictionary);
}

/* Leaves no codes where the dictionary would be too large. */
static enum sx_status load_codes(struct sx_write_values *values, const struct sx_tensor *pieces, int64_t n,
                                 struct sx_error *error) {
    void *codes;
    SX_TRY(sx_pool_alloc(values->pool, (size_t)values->count * sizeof *values->codes, &codes, error));
    values->codes = codes;
    values->dictionary.entries = values->stored;
    values->dictionary.n_codes = values->count;
    values->dictionary.most_bytes = most_kept_bytes;
    enum sx_write_coded coded = translate(values, pieces, n, error);
    if (coded != SX_CODED)
        drop_codes(values);
    return coded == SX_CODED_NO_MEMORY ? SX_OUT_OF_MEMORY : SX_OK;
}

static bool all_have_dictionaries(const struct sx_tensor *pieces, int64_t n) {
    int64_t i = 0;
    while (i < n && pieces[i].layout == SX_DICT)
        i++;
    return i == n && n > 0 && pieces[0].type.id == SX_TYPE_VARCHAR;
}

/* ---- all ---- */

static enum sx_status allocate_values(struct sx_write_values *values, struct sx_error *error) {
    values->memory_bytes = (size_t)values->count * values->stored.width;
    SX_TRY(sx_pool_alloc(values->pool, values->memory_bytes, &values->memory, error));
    values->stored.values = values->memory;
    return SX_OK;
}

static enum sx_status load_values(struct sx_write_values *values, const struct sx_tensor *pieces, int64_t n,
                                  struct sx_error *error) {
    SX_TRY(allocate_values(values, error));
    load_piece *load = load_of(values->column);
    uint8_t *at = values->memory;
    for (int64_t i = 0; i < n; i++) {
        const struct source source = source_of(&pieces[i]);
        int64_t loaded = load(&source, values->column, at);
        if (loaded < 0)
            return sx_error_set(error, SX_QUERY,
                                "column %s: a HUGEINT of more than 38 digits can't be written as Parquet",
                                values->column->name);
        at += (size_t)loaded * values->stored.width;
    }
    return SX_OK;
}

enum sx_status sx_write_values_load(struct sx_write_values *values, const struct sx_tensor *pieces, int64_t n,
                                    bool keep_codes, struct sx_error *error) {
    values->stored = stored_of(values->column, NULL);
    values->dictionary.pool = values->pool;
    SX_TRY(load_valid(values, pieces, n, error));
    if (keep_codes && all_have_dictionaries(pieces, n))
        SX_TRY(load_codes(values, pieces, n, error));
    return values->codes ? SX_OK : load_values(values, pieces, n, error);
}

enum sx_status sx_write_values_expand(struct sx_write_values *values, struct sx_error *error) {
    if (!values->memory) {
        SX_TRY(allocate_values(values, error));
        const struct sx_string *entries = values->dictionary.memory;
        struct sx_string *to = values->memory;
        for (int64_t i = 0; i < values->count; i++)
            to[i] = entries[values->codes[i]];
    }
    drop_codes(values);
    return SX_OK;
}

void sx_write_values_release(struct sx_write_values *values) {
    drop_codes(values);
    if (values->memory)
        sx_pool_free(values->pool, values->memory, values->memory_bytes);
    if (values->valid)
        sx_pool_free(values->pool, values->valid, (size_t)values->rows);
    *values = (struct sx_write_values){0};
}
