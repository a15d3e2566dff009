/* Rows that went over the wire are the rows that were sent, whatever their types and layouts; and no cut or
 * damaged message is read past its end. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/build.h"
#include "tensor/wire.h"

enum {
    MOST_ROWS = 300,
    MOST_PACKED_ROWS = 5000,
    N_TYPES = SX_TYPE_COUNT + 1,
    ROUNDS = 200,
    PACKED_ROUNDS = 60
};

static struct sx_pool *pool;
static struct sx_error error;
static uint64_t state = 1;

static uint64_t draw(void) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 20;
}

/* Every type, and a wide decimal behind them. */
static struct sx_type type_of(int column) {
    if (column == SX_TYPE_COUNT)
        return sx_type_decimal(30, 4);
    return column == SX_TYPE_DECIMAL ? sx_type_decimal(12, 2) : sx_type_of((enum sx_type_id)column);
}

static char texts[64][64];

static struct sx_string random_string(void) {
    char *text = texts[draw() % 64];
    return sx_string_make(text, (uint32_t)strlen(text));
}

/* Integers as columns have them: one value, few bits, ascending, runs, all bits. */
static void fill_pattern(struct sx_tensor *column) {
    const size_t width = sx_type_bytes(column->type);
    const uint64_t pattern = draw() % 5, begin = draw() << 30;
    sx_u128 value = begin;
    for (int64_t i = 0; i < column->length; i++) {
        if (pattern == 1)
            value = begin + draw() % 1000;
        else if (pattern == 2)
            value += draw() % 50;
        else if (pattern == 3 && draw() % 5 == 0)
            value = (sx_u128)0 - draw() % 9;
        else if (pattern == 4)
            value = ((sx_u128)draw() << 100) ^ ((sx_u128)draw() << 40) ^ draw();
        memcpy((char *)column->values + (size_t)i * width, &value, width);
    }
}

static void fill_values(struct sx_tensor *column) {
    const size_t width = sx_type_bytes(column->type);
    const enum sx_type_id id = column->type.id;
    if (id != SX_TYPE_VARCHAR && id != SX_TYPE_F32 && id != SX_TYPE_F64 && id != SX_TYPE_BOOL && draw() % 2) {
        fill_pattern(column);
        return;
    }
    for (int64_t i = 0; i < column->length; i++) {
        char *at = (char *)column->values + (size_t)i * width;
        if (column->type.id == SX_TYPE_VARCHAR) {
            struct sx_string string = random_string();
            memcpy(at, &string, sizeof string);
        } else {
            for (size_t b = 0; b < width; b++)
                at[b] = (char)(column->type.id == SX_TYPE_F32 || column->type.id == SX_TYPE_F64
                                   ? 7 * i
                                   : (int64_t)draw());
            if (column->type.id == SX_TYPE_BOOL)
                *at &= 1;
        }
    }
}

static void fill_valid(struct sx_tensor *column, int64_t n) {
    for (int64_t i = 0; column->valid && i < n; i++)
        column->valid[i] = draw() % 3 > 0;
}

static void make_dict(struct sx_type type, int64_t rows, bool with_valid, struct sx_tensor *out_column) {
    struct sx_tensor entries = {0};
    struct sx_dict *dict;
    const int64_t n = draw() % 2 ? 1 + (int64_t)(draw() % 5) : rows + 1;
    assert(sx_tensor_create(pool, type, n, false, &entries, &error) == SX_OK);
    fill_values(&entries);
    assert(sx_dict_create(&entries, &dict, &error) == SX_OK);
    assert(sx_tensor_create_codes(pool, dict, rows, with_valid, out_column, &error) == SX_OK);
    for (int64_t i = 0; i < rows; i++)
        ((int32_t *)out_column->values)[i] = (int32_t)(draw() % (uint64_t)n);
    sx_dict_release(dict);
}

static void make_column(struct sx_type type, int64_t rows, struct sx_tensor *out_column) {
    const bool with_valid = draw() % 2;
    const uint64_t layout = draw() % 3;
    if (layout == SX_DICT) {
        make_dict(type, rows, with_valid, out_column);
    } else {
        assert(sx_tensor_create(pool, type, layout == SX_CONSTANT ? 1 : rows, with_valid, out_column,
                                &error) == SX_OK);
        fill_values(out_column);
        out_column->layout = (enum sx_layout)layout;
        out_column->length = rows;
    }
    fill_valid(out_column, layout == SX_CONSTANT ? 1 : rows);
}

static void make_batch(int64_t rows, struct sx_type *types, struct sx_batch *out_batch) {
    assert(sx_batch_create(N_TYPES, rows, out_batch, &error) == SX_OK);
    for (int c = 0; c < N_TYPES; c++) {
        types[c] = type_of(c);
        make_column(types[c], rows, &out_batch->columns[c]);
    }
}

static void check_frame(const struct sx_batch *sent, const int32_t *rows, int64_t n_rows,
                        const struct sx_batch *came) {
    assert(came->rows == n_rows && came->rows_bound == n_rows && came->n_columns == sent->n_columns);
    for (int c = 0; c < sent->n_columns; c++)
        for (int64_t i = 0; i < n_rows; i++) {
            struct sx_scalar a, b;
            sx_tensor_scalar(&sent->columns[c], rows ? rows[i] : i, &a);
            sx_tensor_scalar(&came->columns[c], i, &b);
            assert(sx_scalar_same(&a, &b));
        }
}

/* Two frames in one message: some rows in any order, and the first rows. */
static struct sx_buffer *pack_message(const struct sx_batch *batch, const int32_t *rows, int64_t n_rows) {
    const size_t first = sx_wire_bytes(batch, rows, n_rows), second = sx_wire_bytes(batch, NULL, batch->rows);
    struct sx_buffer *message;
    assert(first % 16 == 0 && second % 16 == 0);
    assert(sx_buffer_create(pool, first + second, &message, &error) == SX_OK);
    sx_wire_pack(batch, rows, n_rows, 42, message->data);
    sx_wire_pack(batch, NULL, batch->rows, 43, (char *)message->data + first);
    return message;
}

static void test_round(void) {
    const int64_t n = (int64_t)(draw() % MOST_ROWS), n_rows = n ? (int64_t)(draw() % MOST_ROWS) : 0;
    int32_t rows[MOST_ROWS];
    struct sx_type types[N_TYPES];
    struct sx_batch batch = {0}, some = {0}, all = {0};
    int64_t sequences[2];
    make_batch(n, types, &batch);
    for (int64_t i = 0; i < n_rows; i++)
        rows[i] = (int32_t)(draw() % (uint64_t)(n > 0 ? n : 1));
    struct sx_buffer *message = pack_message(&batch, rows, n_rows);
    struct sx_wire_reader reader = {message, message->size_bytes, types, N_TYPES, 0};
    assert(sx_wire_unpack(&reader, pool, &some, &sequences[0], &error) == SX_OK);
    assert(sx_wire_unpack(&reader, pool, &all, &sequences[1], &error) == SX_OK);
    assert(reader.offset == message->size_bytes && sequences[0] == 42 && sequences[1] == 43);
    sx_buffer_release(message); /* the batches keep it */
    check_frame(&batch, rows, n_rows, &some);
    check_frame(&batch, NULL, n, &all);
    sx_batch_release(&batch);
    sx_batch_release(&some);
    sx_batch_release(&all);
}

/* Reads until the end or an error. */
static void read_all(struct sx_buffer *message, size_t bytes, const struct sx_type *types) {
    struct sx_wire_reader reader = {message, bytes, types, N_TYPES, 0};
    while (reader.offset < bytes) {
        struct sx_batch batch = {0};
        int64_t sequence;
        if (sx_wire_unpack(&reader, pool, &batch, &sequence, &error) != SX_OK) {
            assert(error.status == SX_INTERNAL && strstr(error.text, "message of another rank"));
            return;
        }
        sx_batch_release(&batch);
    }
}

/* Frames of a packer are frames, whatever it chose; and its choices hold for rows that they were not made
 * for. */
static void test_packer(double worth) {
    static int32_t rows[MOST_PACKED_ROWS];
    struct sx_wire_packer *packer;
    struct sx_type types[N_TYPES];
    assert(sx_wire_packer_create(pool, N_TYPES, &packer, &error) == SX_OK);
    sx_wire_packer_set_worth(packer, worth);
    for (int round = 0; round < PACKED_ROUNDS; round++) {
        const int64_t n = 1 + (int64_t)(draw() % MOST_PACKED_ROWS), n_rows = (int64_t)(draw() % (uint64_t)n);
        const bool is_all = draw() % 2;
        struct sx_batch batch = {0}, came = {0};
        struct sx_buffer *message;
        const void *frame;
        size_t bytes;
        int64_t sequence;
        make_batch(n, types, &batch);
        for (int64_t i = 0; i < n_rows; i++)
            rows[i] = (int32_t)(draw() % 4 ? i : (int64_t)(draw() % (uint64_t)n));
        const size_t plain = sx_wire_bytes(&batch, is_all ? NULL : rows, is_all ? n : n_rows);
        assert(sx_wire_packer_pack(packer, &batch, is_all ? NULL : rows, is_all ? n : n_rows, round, plain,
                                   &frame, &bytes, &error) == SX_OK);
        assert(bytes % 16 == 0 && bytes <= plain);
        assert(sx_buffer_create(pool, bytes, &message, &error) == SX_OK);
        memcpy(message->data, frame, bytes);
        struct sx_wire_reader reader = {message, bytes, types, N_TYPES, 0};
        assert(sx_wire_unpack(&reader, pool, &came, &sequence, &error) == SX_OK);
        assert(sequence == round && reader.offset == bytes);
        sx_buffer_release(message);
        check_frame(&batch, is_all ? NULL : rows, is_all ? n : n_rows, &came);
        sx_batch_release(&batch);
        sx_batch_release(&came);
    }
    sx_wire_packer_destroy(packer);
}

/* What a column of the type takes packed, of `n` rows. */
static size_t packed_bytes(struct sx_tensor *column, size_t *out_plain_bytes) {
    struct sx_batch batch = {
        .rows = column->length, .rows_bound = column->length, .n_columns = 1, .columns = column};
    struct sx_wire_packer *packer;
    const void *frame;
    size_t bytes;
    assert(sx_wire_packer_create(pool, 1, &packer, &error) == SX_OK);
    sx_wire_packer_set_worth(packer, SX_WIRE_FEWEST);
    *out_plain_bytes = sx_wire_bytes(&batch, NULL, batch.rows);
    assert(sx_wire_packer_pack(packer, &batch, NULL, batch.rows, 0, *out_plain_bytes, &frame, &bytes,
                               &error) == SX_OK);
    sx_wire_packer_destroy(packer);
    return bytes;
}

static void test_ratios(void) {
    enum { N = 20000 };
    struct sx_tensor keys = {0}, strings = {0};
    size_t plain;
    assert(sx_tensor_create(pool, sx_type_of(SX_TYPE_I64), N, false, &keys, &error) == SX_OK);
    int64_t *values = keys.values;
    for (int i = 0; i < N; i++)
        values[i] = (int64_t)(draw() % 1000) - 500; /* 10 bits */
    assert(packed_bytes(&keys, &plain) < plain * 11 / 64 && plain > (size_t)N * 8);
    for (int i = 0; i < N; i++)
        values[i] = INT64_MAX - 5 * (int64_t)i; /* differences of no bits */
    assert(packed_bytes(&keys, &plain) < plain / 40);
    for (int i = 0; i < N; i++)
        values[i] = (int64_t)(i / 400) * (int64_t)draw(); /* runs of zero, else at random */
    assert(packed_bytes(&keys, &plain) < plain);
    for (int i = 0; i < N; i++)
        values[i] = i / 7 * 3; /* runs with deltas */
    assert(packed_bytes(&keys, &plain) < plain / 40);
    for (int i = 0; i < N; i++)
        values[i] = (int64_t)(draw() << 40 ^ draw());
    assert(packed_bytes(&keys, &plain) <= plain);
    sx_tensor_release(&keys);
    assert(sx_tensor_create(pool, sx_type_of(SX_TYPE_VARCHAR), N, false, &strings, &error) == SX_OK);
    for (int i = 0; i < N; i++)
        ((struct sx_string *)strings.values)[i] = random_string();
    assert(packed_bytes(&strings, &plain) < plain / 4); /* 64 texts */
    sx_tensor_release(&strings);
}

static void test_damage(void) {
    struct sx_type types[N_TYPES];
    struct sx_batch batch = {0};
    make_batch(50, types, &batch);
    struct sx_buffer *message = pack_message(&batch, NULL, 20);
    assert(message->size_bytes > 0);
    for (size_t bytes = 0; bytes < message->size_bytes; bytes += 16)
        read_all(message, bytes, types);
    for (int i = 0; i < 2000; i++) {
        uint8_t *at = (uint8_t *)message->data + draw() % message->size_bytes, before = *at;
        *at = (uint8_t)draw();
        read_all(message, message->size_bytes, types);
        *at = before;
    }
    types[3] = sx_type_of(SX_TYPE_DATE);
    struct sx_wire_reader reader = {message, message->size_bytes, types, N_TYPES, 0};
    struct sx_batch none = {0};
    int64_t sequence;
    assert(sx_wire_unpack(&reader, pool, &none, &sequence, &error) == SX_INTERNAL);
    assert(strstr(error.text, "another type"));
    sx_buffer_release(message);
    sx_batch_release(&batch);
}

static void test_packed_damage(void) {
    struct sx_type types[N_TYPES];
    struct sx_batch batch = {0};
    struct sx_wire_packer *packer;
    struct sx_buffer *message;
    const void *frame;
    size_t bytes;
    make_batch(1500, types, &batch);
    assert(sx_wire_packer_create(pool, N_TYPES, &packer, &error) == SX_OK);
    sx_wire_packer_set_worth(packer, SX_WIRE_FEWEST);
    const size_t plain = sx_wire_bytes(&batch, NULL, 1500);
    assert(sx_wire_packer_pack(packer, &batch, NULL, 1500, 0, plain, &frame, &bytes, &error) == SX_OK);
    assert(sx_buffer_create(pool, bytes, &message, &error) == SX_OK);
    memcpy(message->data, frame, bytes);
    sx_wire_packer_destroy(packer);
    for (size_t cut = 0; cut < bytes; cut += 16)
        read_all(message, cut, types);
    for (int i = 0; i < 20000; i++) {
        const uint64_t place = draw() % 2 ? draw() % bytes : draw() % (bytes / 16) * 16 + draw() % 8;
        uint8_t *at = (uint8_t *)message->data + place, before = *at;
        *at = (uint8_t)draw();
        read_all(message, bytes, types);
        *at = before;
    }
    sx_buffer_release(message);
    sx_batch_release(&batch);
}

/* A dictionary without entries has null rows only. Sent by the packer, too, if `worth` says so. */
static void test_no_entries(double worth) {
    enum { N = 64 };
    const struct sx_type type = sx_type_of(SX_TYPE_VARCHAR);
    struct sx_tensor entries = {0}, column = {0};
    struct sx_batch batch = {.rows = N, .rows_bound = N, .n_columns = 1, .columns = &column};
    struct sx_wire_packer *packer;
    struct sx_dict *dict;
    assert(sx_tensor_create(pool, type, 0, false, &entries, &error) == SX_OK);
    assert(sx_dict_create(&entries, &dict, &error) == SX_OK);
    assert(sx_tensor_create_codes(pool, dict, N, true, &column, &error) == SX_OK);
    sx_dict_release(dict);
    memset(column.values, 0, N * sizeof(int32_t));
    assert(sx_wire_packer_create(pool, 1, &packer, &error) == SX_OK);
    sx_wire_packer_set_worth(packer, worth);
    for (int n_valid = 0; n_valid < 2; n_valid++) {
        struct sx_batch came = {0};
        struct sx_buffer *message;
        const void *frame;
        size_t bytes;
        int64_t sequence;
        memset(column.valid, 0, N);
        column.valid[N / 2] = (uint8_t)n_valid;
        assert(sx_wire_packer_pack(packer, &batch, NULL, N, 0, sx_wire_bytes(&batch, NULL, N), &frame, &bytes,
                                   &error) == SX_OK);
        assert(worth == 0 || bytes < sx_wire_bytes(&batch, NULL, N));
        assert(sx_buffer_create(pool, bytes, &message, &error) == SX_OK);
        memcpy(message->data, frame, bytes);
        struct sx_wire_reader reader = {message, bytes, &type, 1, 0};
        const enum sx_status status = sx_wire_unpack(&reader, pool, &came, &sequence, &error);
        assert(status == (n_valid ? SX_INTERNAL : SX_OK));
        assert(!n_valid || strstr(error.text, "outside of its dictionary"));
        sx_buffer_release(message);
        sx_batch_release(&came);
    }
    sx_wire_packer_destroy(packer);
    sx_tensor_release(&column);
}

int main(void) {
    assert(sx_pool_create(0, &pool, &error) == SX_OK);
    for (int i = 0; i < 64; i++)
        for (int b = 0; b < i % 40; b++)
            texts[i][b] = (char)('a' + (i + b) % 26);
    for (int round = 0; round < ROUNDS; round++)
        test_round();
    test_packer(0);
    test_packer(2);
    test_packer(SX_WIRE_FEWEST);
    test_ratios();
    test_no_entries(0);
    test_no_entries(SX_WIRE_FEWEST);
    test_damage();
    for (int i = 0; i < 4; i++)
        test_packed_damage();
    assert(sx_pool_usage(pool).used_bytes == 0);
    sx_pool_destroy(pool);
    return 0;
}
