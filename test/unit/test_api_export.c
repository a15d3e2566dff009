/* Batches as Arrow arrays: bits, offsets, widths, life times. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/export.h"

enum { ROWS = 37, FIRST = 5 };

/* A database of which only the pool is used. */
static struct stachio_db *make_db(void) {
    struct stachio_db *db = calloc(1, sizeof *db);
    assert(db);
    atomic_init(&db->references, 1);
    pthread_mutex_init(&db->lock, NULL);
    assert(sx_pool_create(0, &db->pool, NULL) == SX_OK);
    return db;
}

static bool is_valid(int64_t row) {
    return row % 3 != 1;
}

static void fill_values(struct sx_tensor *tensor, struct sx_type type) {
    static const char heap[] = "a text that is longer than twelve bytes";
    for (int64_t i = 0; i < ROWS; i++) {
        tensor->valid[i] = is_valid(i);
        switch (sx_type_phys(type)) {
        case SX_PHYS_U8: ((uint8_t *)tensor->values)[i] = i % 2 == 0; break;
        case SX_PHYS_I64: ((int64_t *)tensor->values)[i] = -i; break;
        case SX_PHYS_I128: ((sx_i128 *)tensor->values)[i] = (sx_i128)i << 70; break;
        case SX_PHYS_INTERVAL:
            ((struct sx_interval *)tensor->values)[i] = (struct sx_interval){(int)i, 2, 3};
            break;
        default:
            ((struct sx_string *)tensor->values)[i] = sx_string_make(heap, (uint32_t)(i % (int)sizeof heap));
        }
    }
}

static struct ArrowArray export_rows(struct stachio_db *db, struct sx_type type, bool with_valid) {
    struct sx_batch batch;
    assert(sx_batch_create(1, ROWS, &batch, NULL) == SX_OK);
    assert(sx_tensor_create(db->pool, type, ROWS, true, &batch.columns[0], NULL) == SX_OK);
    fill_values(&batch.columns[0], type);
    uint8_t *valid = batch.columns[0].valid;
    if (!with_valid)
        batch.columns[0].valid = NULL;
    int64_t rows;
    assert(sx_export_rows(&batch, FIRST, &rows, NULL) == SX_OK && rows == ROWS - FIRST);
    struct ArrowArray array;
    assert(sx_export_batch(db, &batch, FIRST, rows, &array, NULL) == SX_OK);
    batch.columns[0].valid = valid;
    sx_batch_release(&batch);
    assert(array.length == ROWS - FIRST && array.n_children == 1);
    return array;
}

static bool read_bit(const void *bits, int64_t at) {
    return ((const uint8_t *)bits)[at / 8] >> (at % 8) & 1;
}

static void check_valid(const struct ArrowArray *column) {
    int64_t nulls = 0;
    for (int64_t i = 0; i < column->length; i++) {
        nulls += !is_valid(i + FIRST);
        assert(read_bit(column->buffers[0], i) == is_valid(i + FIRST));
    }
    assert(column->null_count == nulls);
}

static void test_bools(struct stachio_db *db) {
    struct ArrowArray array = export_rows(db, sx_type_of(SX_TYPE_BOOL), true);
    const struct ArrowArray *column = array.children[0];
    check_valid(column);
    for (int64_t i = 0; i < column->length; i++)
        assert(read_bit(column->buffers[1], i) == ((i + FIRST) % 2 == 0));
    array.release(&array);
}

static void test_numbers(struct stachio_db *db) {
    struct ArrowArray array = export_rows(db, sx_type_of(SX_TYPE_I64), false);
    const struct ArrowArray *column = array.children[0];
    assert(column->null_count == 0 && !column->buffers[0] &&
           ((const int64_t *)column->buffers[1])[2] == -2 - FIRST);
    array.release(&array);
    array = export_rows(db, sx_type_decimal(15, 2), true);
    column = array.children[0];
    check_valid(column);
    for (int64_t i = 0; i < column->length; i++)
        assert(((const sx_i128 *)column->buffers[1])[i] == -i - FIRST);
    array.release(&array);
    array = export_rows(db, sx_type_decimal(38, 0), true);
    assert(((const sx_i128 *)array.children[0]->buffers[1])[1] == (sx_i128)(1 + FIRST) << 70);
    array.release(&array);
    array = export_rows(db, sx_type_of(SX_TYPE_INTERVAL), false);
    const int64_t *intervals = array.children[0]->buffers[1];
    assert(intervals[1] == 3000 && intervals[0] == (((int64_t)2 << 32) | FIRST));
    array.release(&array);
}

static void test_texts(struct stachio_db *db) {
    struct ArrowArray array = export_rows(db, sx_type_of(SX_TYPE_VARCHAR), true);
    const struct ArrowArray *column = array.children[0];
    check_valid(column);
    const int32_t *offsets = column->buffers[1];
    for (int64_t i = 0; i < column->length; i++) {
        int32_t length = is_valid(i + FIRST) ? (int32_t)(i + FIRST) : 0;
        assert(offsets[i + 1] - offsets[i] == length);
        assert(memcmp((const char *)column->buffers[2] + offsets[i],
                      "a text that is longer than twelve bytes", (size_t)length) == 0);
    }
    array.release(&array);
}

/* Columns may be moved out of their struct, and arrays outlive the caller's hold on the database. */
static void test_life_time(void) {
    struct stachio_db *db = make_db();
    struct ArrowArray array = export_rows(db, sx_type_of(SX_TYPE_I64), true);
    sx_db_release(db);
    struct ArrowArray column = *array.children[0];
    array.children[0]->release = NULL;
    array.release(&array);
    assert(((const int64_t *)column.buffers[1])[0] == -FIRST);
    column.release(&column);
}

static void test_schema(void) {
    const struct sx_column_info columns[] = {
        {"flag", sx_type_of(SX_TYPE_BOOL)},
        {"money", sx_type_decimal(15, 2)},
        {"huge", sx_type_of(SX_TYPE_U128)},
        {"at", sx_type_of(SX_TYPE_TIMESTAMP)},
    };
    static const char *const formats[] = {"b", "d:15,2", "d:38,0", "tsu:"};
    struct ArrowSchema schema;
    assert(sx_export_schema(columns, 4, &schema, NULL) == SX_OK);
    assert(strcmp(schema.format, "+s") == 0 && schema.n_children == 4);
    for (int i = 0; i < 4; i++)
        assert(!strcmp(schema.children[i]->name, columns[i].name) &&
               !strcmp(schema.children[i]->format, formats[i]));
    assert(schema.children[2]->metadata && !schema.children[1]->metadata);
    schema.release(&schema);
    assert(!schema.release);
}

int main(void) {
    struct stachio_db *db = make_db();
    test_bools(db);
    test_numbers(db);
    test_texts(db);
    sx_db_release(db);
    test_life_time();
    test_schema();
    return 0;
}
