#include <float.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "conformance.h"
#include "tensor/semantics.h"

enum { MAX_PRINTED = 20, MAX_STRING_BYTES = 40, N_FEW_VALUES = 5, DAYS_PER_1000_YEARS = 365242 };

/* A family runs in one thread: there is little for the thread sanitizer to see, and it is slow. */
#ifdef __SANITIZE_THREAD__
const int64_t conformance_rows[] = {0, 1, 7, 200, 1000};
static int64_t most_rows = 1000;
#else
const int64_t conformance_rows[] = {0, 1, 2, 7, 64, 1000, 8191, 8192, 20011};
static int64_t most_rows = INT64_MAX;
#endif
int conformance_n_rows = sizeof conformance_rows / sizeof conformance_rows[0];

bool conformance_may_have(int64_t rows) {
    return rows <= most_rows;
}

void conformance_limit_rows(int64_t most) {
    most_rows = most;
    while (conformance_n_rows > 1 && conformance_rows[conformance_n_rows - 1] > most)
        conformance_n_rows--;
}

static uint64_t part, n_parts = 1;

bool conformance_choose_part(const char *text) {
    char *end;
    part = strtoull(text, &end, 10);
    if (end == text || *end != '/')
        return false;
    n_parts = strtoull(end + 1, &end, 10);
    return *end == 0 && part < n_parts;
}

bool conformance_takes(struct conformance *c) {
    return sx_hash_u64(c->n_cases++) % n_parts == part;
}

bool conformance_check(struct conformance *c, bool condition, const char *file, int line, const char *format,
                       ...) {
    c->checks++;
    if (condition)
        return true;
    if (c->failures++ < MAX_PRINTED) {
        va_list arguments;
        printf("%s:%d: ", file, line);
        va_start(arguments, format);
        vprintf(format, arguments);
        va_end(arguments);
        printf("\n");
    }
    return false;
}

uint64_t conformance_random(struct conformance *c) {
    c->random_state += UINT64_C(0x9e3779b97f4a7c15);
    return sx_hash_u64(c->random_state);
}

/* ---- values ---- */

static sx_i128 power_of_ten(int digits) {
    sx_i128 power = 1;
    for (int i = 0; i < digits; i++)
        power *= 10;
    return power;
}

/* Of any magnitude, so that short and long values are as frequent. */
static sx_u128 random_magnitude(struct conformance *c, int bits) {
    sx_u128 value = (sx_u128)conformance_random(c) << 64 | conformance_random(c);
    return value >> (128 - bits + (int)(conformance_random(c) % (uint64_t)bits));
}

static sx_i128 random_signed(struct conformance *c, int bits) {
    sx_i128 value = (sx_i128)random_magnitude(c, bits - 1);
    return conformance_random(c) & 1 ? value : -value;
}

static double random_double(struct conformance *c) {
    double value = (double)(int64_t)conformance_random(c) / (double)INT64_MAX;
    int exponent = (int)(conformance_random(c) % 60) - 20;
    return conformance_random(c) % 4 == 0 ? (double)(int)(value * 100) : __builtin_ldexp(value, exponent);
}

static void integer_range(struct sx_type type, int *out_bits, bool *out_signed) {
    enum sx_phys phys = sx_type_phys(type);
    *out_bits = (int)sx_phys_bytes(phys) * 8;
    *out_signed = phys <= SX_PHYS_I128;
}

static sx_i128 random_integer(struct conformance *c, struct sx_type type) {
    int bits;
    bool is_signed;
    integer_range(type, &bits, &is_signed);
    switch (type.id) {
    case SX_TYPE_NULLTYPE: return 0;
    case SX_TYPE_BOOL: return conformance_random(c) & 1;
    case SX_TYPE_DECIMAL: return random_signed(c, 128) % power_of_ten(type.precision);
    case SX_TYPE_DATE:
        return (sx_i128)(conformance_random(c) % DAYS_PER_1000_YEARS) - DAYS_PER_1000_YEARS / 2;
    case SX_TYPE_TIMESTAMP: return random_signed(c, 56);
    default: return is_signed ? random_signed(c, bits) : (sx_i128)random_magnitude(c, bits);
    }
}

static sx_i128 extreme_integer(struct conformance *c, struct sx_type type) {
    int bits;
    bool is_signed;
    integer_range(type, &bits, &is_signed);
    sx_u128 all = SX_U128_MAX >> (128 - bits);
    sx_i128 highest = (sx_i128)(is_signed ? all >> 1 : all);
    sx_i128 lowest = is_signed ? -highest - 1 : 0;
    if (type.id == SX_TYPE_BOOL || type.id == SX_TYPE_NULLTYPE)
        return random_integer(c, type);
    if (type.id == SX_TYPE_DECIMAL)
        highest = power_of_ten(type.precision) - 1, lowest = -highest;
    if (type.id == SX_TYPE_DATE || type.id == SX_TYPE_TIMESTAMP)
        lowest++; /* highest and -highest are the infinities */
    switch (conformance_random(c) % 5) {
    case 0: return highest;
    case 1: return lowest;
    case 2: return is_signed ? -1 : 1;
    case 3: return 0;
    default: return random_integer(c, type);
    }
}

static double extreme_double(struct conformance *c) {
    const double values[] = {
        0.0, -0.0, __builtin_nan(""), __builtin_inf(), -__builtin_inf(), DBL_MAX, -DBL_MAX, DBL_MIN,
        1.0, -1.5};
    return values[conformance_random(c) % (sizeof values / sizeof values[0])];
}

static uint32_t random_text(struct conformance *c, enum conformance_fill fill, char *bytes) {
    static const char *const pieces[] = {
        "a", "B", "z", "0", " ", "%", "_", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    uint32_t wanted = (uint32_t)(conformance_random(c) % (MAX_STRING_BYTES + 1)), length = 0;
    if (fill == FILL_EXTREMES) {
        static const uint32_t lengths[] = {0, 1, 4, 5, 11, 12, 13, MAX_STRING_BYTES};
        wanted = lengths[conformance_random(c) % 8];
        memset(bytes, conformance_random(c) & 1 ? 'x' : '\xc2', wanted);
        for (uint32_t i = 1; bytes[0] == '\xc2' && i < wanted; i += 2)
            bytes[i] = '\x80';
        if (wanted % 2)
            bytes[wanted - 1] = 'y';
        return wanted;
    }
    for (;;) {
        const char *piece = pieces[conformance_random(c) % 10];
        if (length + strlen(piece) > wanted)
            return length;
        while (*piece)
            bytes[length++] = *piece++;
    }
}

static struct sx_interval random_interval(struct conformance *c) {
    return (struct sx_interval){(int32_t)random_signed(c, 10), (int32_t)random_signed(c, 12),
                                (int64_t)random_signed(c, 40)};
}

/* `heap`: where a string's bytes may go, MAX_STRING_BYTES of them. */
static void make_value(struct conformance *c, struct sx_type type, enum conformance_fill fill, char *heap,
                       void *place) {
    bool extreme = fill == FILL_EXTREMES;
    switch (sx_type_phys(type)) {
    case SX_PHYS_STRING: {
        char text[MAX_STRING_BYTES];
        const uint32_t length = random_text(c, fill, text);
        if (heap)
            memcpy(heap, text, length);
        const struct sx_string view = sx_string_make(heap ? heap : "", heap ? length : 0);
        memcpy(place, &view, sizeof view);
        break;
    }
    case SX_PHYS_INTERVAL: *(struct sx_interval *)place = random_interval(c); break;
    case SX_PHYS_F32: *(float *)place = (float)(extreme ? extreme_double(c) : random_double(c)); break;
    case SX_PHYS_F64: *(double *)place = extreme ? extreme_double(c) : random_double(c); break;
    default: {
        sx_i128 value = extreme ? extreme_integer(c, type) : random_integer(c, type);
        memcpy(place, &value, sx_type_bytes(type));
    }
    }
}

/* ---- columns ---- */

#define COMPARE(name, ctype)                                  \
    static int compare_##name(const void *a, const void *b) { \
        ctype x, y;                                           \
        memcpy(&x, a, sizeof x);                              \
        memcpy(&y, b, sizeof y);                              \
        return x < y ? -1 : x > y;                            \
    }
COMPARE(I8, int8_t)
COMPARE(I16, int16_t)
COMPARE(I32, int32_t)
COMPARE(I64, int64_t)
COMPARE(I128, sx_i128)
COMPARE(U8, uint8_t)
COMPARE(U16, uint16_t)
COMPARE(U32, uint32_t)
COMPARE(U64, uint64_t)
COMPARE(U128, sx_u128)
COMPARE(F32, float)
COMPARE(F64, double)

static int compare_STRING(const void *a, const void *b) {
    return sx_string_compare(a, b);
}

static int compare_INTERVAL(const void *a, const void *b) {
    return memcmp(a, b, sizeof(struct sx_interval));
}

static int (*const compare_functions[SX_PHYS_COUNT])(const void *, const void *) = {
#define COMPARE_ROW(name, ctype) [SX_PHYS_##name] = compare_##name,
    SX_PHYS_LIST(COMPARE_ROW)
#undef COMPARE_ROW
};

static void fill_values(struct conformance *c, enum conformance_fill fill, struct sx_tensor *column) {
    size_t width = sx_type_bytes(column->type);
    char *values = column->values, *heap = column->heap ? column->heap->data : NULL;
    for (int64_t i = 0; i < column->length; i++) {
        char *place = values + (size_t)i * width;
        if (fill == FILL_FEW_VALUES && i >= N_FEW_VALUES)
            memcpy(place, values + conformance_random(c) % N_FEW_VALUES * width, width);
        else
            make_value(c, column->type, fill, heap ? heap + i * MAX_STRING_BYTES : NULL, place);
    }
    if (fill == FILL_SORTED && column->length > 1)
        qsort(values, (size_t)column->length, width, compare_functions[sx_type_phys(column->type)]);
}

enum sx_status conformance_column(struct conformance *c, struct sx_type type, int64_t rows,
                                  enum conformance_fill fill, double null_share,
                                  struct sx_tensor *out_column) {
    struct sx_tensor column = {0};
    enum sx_status status;
    SX_GO(sx_tensor_create(c->pool, type, rows, null_share > 0, &column, &c->error));
    if (type.id == SX_TYPE_VARCHAR)
        SX_GO(sx_buffer_create(c->pool, (size_t)rows * MAX_STRING_BYTES, &column.heap, &c->error));
    fill_values(c, fill, &column);
    for (int64_t i = 0; column.valid && i < rows; i++)
        column.valid[i] = (double)(conformance_random(c) >> 11) >= null_share * 0x1p53;
    *out_column = column;
    return SX_OK;
out:
    sx_tensor_release(&column);
    return status;
}

/* Entries: the distinct strings in order; one at least. Sets codes. */
static int64_t index_entries(const struct sx_tensor *flat, struct sx_string *entries, int32_t *codes) {
    const struct sx_string *strings = flat->values;
    int64_t n = 0;
    for (int64_t i = 0; i < flat->length; i++)
        entries[n++] = strings[i];
    qsort(entries, (size_t)n, sizeof *entries, compare_STRING);
    int64_t distinct = 0;
    for (int64_t i = 0; i < n; i++)
        if (distinct == 0 || !sx_string_equal(&entries[distinct - 1], &entries[i]))
            entries[distinct++] = entries[i];
    for (int64_t i = 0; i < flat->length; i++) {
        const struct sx_string *entry =
            bsearch(&strings[i], entries, (size_t)distinct, sizeof *entries, compare_STRING);
        codes[i] = (int32_t)(entry - entries);
    }
    return distinct;
}

enum sx_status conformance_dictionary(struct conformance *c, const struct sx_tensor *flat,
                                      struct sx_tensor *out_column) {
    struct sx_tensor values = {0}, column = {0};
    struct sx_dict *dict = NULL;
    enum sx_status status;
    SX_GO(sx_tensor_create(c->pool, flat->type, flat->length + 1, false, &values, &c->error));
    memset(values.values, 0, sizeof(struct sx_string));
    SX_GO(sx_dict_create(&values, &dict, &c->error));
    SX_GO(sx_tensor_create_codes(c->pool, dict, flat->length, flat->valid != NULL, &column, &c->error));
    int64_t distinct = index_entries(flat, dict->values.values, column.values);
    dict->values.length = distinct ? distinct : 1;
    dict->values.heap = sx_buffer_retain(flat->heap);
    if (flat->valid && flat->length)
        memcpy(column.valid, flat->valid, (size_t)flat->length);
    *out_column = column;
    column = (struct sx_tensor){0};
out:
    sx_dict_release(dict);
    sx_tensor_release(&values);
    sx_tensor_release(&column);
    return status;
}

enum sx_status conformance_code_values(struct conformance *c, struct sx_tensor *column) {
    const int64_t rows = column->length;
    struct sx_tensor coded = {0};
    struct sx_tensor entries = {.type = column->type,
                                .length = rows,
                                .values = column->values,
                                .values_buffer = sx_buffer_retain(column->values_buffer),
                                .heap = sx_buffer_retain(column->heap)};
    struct sx_dict *dict = NULL;
    enum sx_status status;
    SX_GO(sx_dict_create(&entries, &dict, &c->error));
    SX_GO(sx_tensor_create_codes(c->pool, dict, rows, column->valid != NULL, &coded, &c->error));
    for (int64_t i = 0; i < rows; i++)
        ((int32_t *)coded.values)[i] = (int32_t)(conformance_random(c) % (uint64_t)rows);
    if (column->valid)
        memcpy(coded.valid, column->valid, (size_t)rows);
    sx_tensor_release(column);
    *column = coded;
    coded = (struct sx_tensor){0};
out:
    sx_dict_release(dict);
    sx_tensor_release(&entries);
    sx_tensor_release(&coded);
    return status;
}

void conformance_select(const struct conformance *c, struct sx_tensor *column) {
    if (column->layout == SX_DICT && !column->valid && column->type.id != SX_TYPE_VARCHAR &&
        !c->backend->traits.is_host)
        column->layout = SX_SELECTED;
}

typedef enum sx_status (*batch_move)(struct sx_stream *stream, const struct sx_batch *batch,
                                     struct sx_batch *out_batch);

static enum sx_status move_column(struct conformance *c, const struct sx_tensor *column, batch_move move,
                                  struct sx_tensor *out_column) {
    struct sx_batch one = {.rows = column->length, .rows_bound = column->length, .n_columns = 1};
    struct sx_batch moved = {0};
    one.columns = (struct sx_tensor *)column; /* borrowed */
    enum sx_status status = move(c->stream, &one, &moved);
    if (status != SX_OK) {
        c->error = c->stream->error;
        return status;
    }
    *out_column = moved.columns[0];
    moved.columns[0] = (struct sx_tensor){0};
    sx_batch_release(&moved);
    return SX_OK;
}

enum sx_status conformance_send(struct conformance *c, const struct sx_tensor *host,
                                struct sx_tensor *out_column) {
    return move_column(c, host, c->backend->ops.batch_from_host, out_column);
}

enum sx_status conformance_receive(struct conformance *c, const struct sx_tensor *column,
                                   struct sx_tensor *out_host) {
    return move_column(c, column, c->backend->ops.batch_to_host, out_host);
}

bool conformance_scalar_equal(const struct sx_scalar *a, const struct sx_scalar *b) {
    if (!sx_type_equal(a->type, b->type) || a->is_null != b->is_null)
        return false;
    if (a->is_null)
        return true;
    switch (sx_type_phys(a->type)) {
    case SX_PHYS_F32: return sx_f64_equal((double)a->v.f32, (double)b->v.f32);
    case SX_PHYS_F64: return sx_f64_equal(a->v.f64, b->v.f64);
    case SX_PHYS_I128: return a->v.i128 == b->v.i128;
    case SX_PHYS_U128: return a->v.u128 == b->v.u128;
    case SX_PHYS_STRING:
        return a->v.text.length_bytes == b->v.text.length_bytes &&
               (a->v.text.length_bytes == 0 ||
                memcmp(a->v.text.bytes, b->v.text.bytes, a->v.text.length_bytes) == 0);
    case SX_PHYS_INTERVAL:
        return a->v.interval.months == b->v.interval.months && a->v.interval.days == b->v.interval.days &&
               a->v.interval.micros == b->v.interval.micros;
    default: return a->v.u64 == b->v.u64;
    }
}
