/* Footers: Thrift, schemas typed as DuckDB types them, bounds, hashes, damaged files. */
#include <math.h>

#include "storage/bloom.h"
#include "storage/file.h"
#include "unit/storage_files.h"

static void test_thrift(void) {
    /* {1: i32 -3, 2: "ab", 4: [true, false], 40: {}} and an unknown field to skip */
    const uint8_t bytes[] = {0x15, 0x05, 0x18, 0x02, 'a',  'b',  0x29, 0x21,
                             1,    2,    0x0c, 0x50, 0x15, 0x01, 0,    0};
    struct sx_thrift in = sx_thrift_from(bytes, sizeof bytes);
    struct sx_thrift_field field = {0};
    assert(sx_thrift_next(&in, &field) && field.id == 1 && sx_thrift_i32(&in, &field) == -3);
    assert(sx_thrift_next(&in, &field) && field.id == 2 && sx_thrift_binary(&in, &field).length_bytes == 2);
    assert(sx_thrift_next(&in, &field) && field.id == 4 && sx_thrift_list(&in, &field, SX_THRIFT_TRUE) == 2);
    assert(sx_thrift_element_bool(&in) && !sx_thrift_element_bool(&in));
    assert(sx_thrift_next(&in, &field) && field.id == 40);
    sx_thrift_skip(&in, &field);
    assert(!sx_thrift_next(&in, &field) && !in.wrong && in.at == in.end);
    for (size_t cut = 0; cut < sizeof bytes; cut++) {
        in = sx_thrift_from(bytes, cut);
        field = (struct sx_thrift_field){0};
        while (sx_thrift_next(&in, &field))
            sx_thrift_skip(&in, &field);
        assert(in.wrong);
    }
    uint8_t deep[256];
    memset(deep, 0x1c, sizeof deep);
    in = sx_thrift_from(deep, sizeof deep);
    field = (struct sx_thrift_field){0};
    while (sx_thrift_next(&in, &field))
        sx_thrift_skip(&in, &field);
    assert(in.wrong && strstr(in.wrong, "deep"));
}

static void test_hash(void) {
    const char *text = "Nobody inspects the spammish repetition";
    assert(sx_xxhash64((const uint8_t *)"", 0) == UINT64_C(0xef46db3751d8e999));
    assert(sx_xxhash64((const uint8_t *)"a", 1) == UINT64_C(0xd24ec4f1a98c6e5b));
    assert(sx_xxhash64((const uint8_t *)"abc", 3) == UINT64_C(0x44bc2cf5ad770999));
    assert(sx_xxhash64((const uint8_t *)text, strlen(text)) == UINT64_C(0xfbcea83c8a378bf1));
}

/* What the engine reads has the type that DuckDB gives it. */
static void check_types(const char *path) {
    struct sx_footer *footer = load_footer(path);
    if (!footer)
        return;
    char sql[512], name[SX_TYPE_NAME_BYTES];
    snprintf(sql, sizeof sql,
             "SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM read_parquet('%s'))", path);
    duckdb_result result;
    run_sql(&result, sql);
    assert(duckdb_row_count(&result) == (idx_t)footer->n_columns);
    for (int c = 0; c < footer->n_columns; c++) {
        const struct sx_file_column *column = &footer->columns[c];
        char *found = duckdb_value_varchar(&result, 0, (idx_t)c);
        char *type = duckdb_value_varchar(&result, 1, (idx_t)c);
        assert(footer->has_twins || strcmp(found, column->name) == 0);
        bool equal = !column->unreadable && strcmp(type, sx_type_name(column->type, name)) == 0;
        bool is_json = strcmp(type, "JSON") == 0 && column->type.id == SX_TYPE_VARCHAR;
        if (!column->unreadable && !equal && !is_json) {
            fprintf(stderr, "%s, %s: %s, DuckDB %s\n", path, column->name, name, type);
            abort();
        }
        duckdb_free(found);
        duckdb_free(type);
    }
    duckdb_destroy_result(&result);
    sx_footer_release(footer);
}

static void test_types(void) {
    const char *path = write_by_duckdb(
        "types.parquet",
        "SELECT true AS a, 1::TINYINT AS b, 2::SMALLINT AS c, 3::INTEGER AS d, 4::BIGINT AS e, "
        "5::UTINYINT AS f, 6::USMALLINT AS g, 7::UINTEGER AS h, 8::UBIGINT AS i, 9::FLOAT AS j, "
        "10::DOUBLE AS k, 1.5::DECIMAL(4,1) AS l, 1.5::DECIMAL(9,2) AS m, 1.5::DECIMAL(18,3) AS n, "
        "1.5::DECIMAL(38,4) AS o, DATE '2020-01-02' AS p, TIMESTAMP '2020-01-02 03:04:05' AS q, 'x' AS r, "
        "'y'::BLOB AS s, [1, 2] AS t, {'u': 1} AS u, uuid() AS v, INTERVAL 1 DAY AS w, TIME '01:02:03' AS x, "
        "TIMESTAMPTZ '2020-01-02 03:04:05+00' AS y, TIMESTAMP_NS '2020-01-02 03:04:05' AS z, "
        "TIMESTAMP_MS '2020-01-02 03:04:05' AS aa, 3::HUGEINT AS ab",
        "");
    check_types(path);
    struct sx_footer *footer = load_footer(path);
    const char *unreadable[] = {"s", "t", "u", "v", "w", "x", "y", "z"};
    int n_unreadable = 0;
    for (int c = 0; c < footer->n_columns; c++)
        n_unreadable += footer->columns[c].unreadable != NULL;
    assert(n_unreadable == (int)(sizeof unreadable / sizeof *unreadable));
    for (int i = 0; i < n_unreadable; i++)
        assert(footer->columns[sx_footer_find(footer, unreadable[i])].unreadable);
    assert(sx_footer_find(footer, "AA") == sx_footer_find(footer, "aa"));
    assert(sx_footer_find(footer, "none") < 0 && !footer->has_twins);
    sx_footer_release(footer);
}

static void test_other_writers(void) {
    const char *folder = getenv("PARQUET_TESTING");
    char pattern[512];
    if (!folder || access(folder, R_OK) != 0)
        return;
    snprintf(pattern, sizeof pattern, "SELECT file FROM glob('%s/*.parquet') ORDER BY ALL", folder);
    duckdb_result result;
    run_sql(&result, pattern);
    for (idx_t i = 0; i < duckdb_row_count(&result); i++) {
        char *path = duckdb_value_varchar(&result, 0, i);
        if (!strstr(path, "bad-"))
            check_types(path);
        duckdb_free(path);
    }
    duckdb_destroy_result(&result);
}

/* ---- bounds ---- */

static struct sx_slice slice(const void *bytes, size_t length) {
    return (struct sx_slice){bytes, (uint32_t)length};
}

static bool excludes(const struct sx_file_column *column, const struct sx_bounds *bounds, enum sx_prune_op op,
                     struct sx_scalar value) {
    value.type = column->type;
    struct sx_prune prune = {.op = op, .values = &value, .n_values = 1};
    return sx_bounds_exclude(column, bounds, &prune);
}

static void test_integer_bounds(void) {
    int32_t low = -10, high = 20;
    struct sx_file_column column = {
        .physical = SX_PARQUET_INT32, .type = {SX_TYPE_I32, 0, 0}, .is_optional = true};
    struct sx_bounds bounds = {slice(&low, 4), slice(&high, 4), 100, 0};
    const struct {
        int64_t value;
        enum sx_prune_op op;
        bool excluded;
    } cases[] = {
        {-11, SX_PRUNE_EQ, true}, {-10, SX_PRUNE_EQ, false}, {20, SX_PRUNE_EQ, false},
        {21, SX_PRUNE_EQ, true},  {-10, SX_PRUNE_LT, true},  {-9, SX_PRUNE_LT, false},
        {-11, SX_PRUNE_LE, true}, {-10, SX_PRUNE_LE, false}, {20, SX_PRUNE_GT, true},
        {19, SX_PRUNE_GT, false}, {21, SX_PRUNE_GE, true},   {20, SX_PRUNE_GE, false},
        {21, SX_PRUNE_IN, true},  {0, SX_PRUNE_NULL, true},  {0, SX_PRUNE_NOT_NULL, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert(excludes(&column, &bounds, cases[i].op, (struct sx_scalar){.v.i64 = cases[i].value}) ==
               cases[i].excluded);
    bounds.n_nulls = 100;
    assert(excludes(&column, &bounds, SX_PRUNE_EQ, (struct sx_scalar){.v.i64 = 0}));
    assert(!excludes(&column, &bounds, SX_PRUNE_NULL, (struct sx_scalar){.v.i64 = 0}));
    bounds.n_nulls = -1;
    assert(!excludes(&column, &bounds, SX_PRUNE_NULL, (struct sx_scalar){.v.i64 = 0}));
    column.type.id = SX_TYPE_U32; /* -10 is 4294967286 now, above 20: nonsense is not believed */
    assert(!excludes(&column, &bounds, SX_PRUNE_EQ, (struct sx_scalar){.v.u64 = 100}));
    column.type.id = SX_TYPE_I32;
    bounds.max.length_bytes = 3;
    assert(!excludes(&column, &bounds, SX_PRUNE_EQ, (struct sx_scalar){.v.i64 = 100}));
}

static void test_float_bounds(void) {
    double low = 1, high = 2, nan_bound = NAN, zero = 0.0;
    struct sx_file_column column = {.physical = SX_PARQUET_DOUBLE, .type = {SX_TYPE_F64, 0, 0}};
    struct sx_bounds bounds = {slice(&low, 8), slice(&high, 8), 100, 0};
    assert(excludes(&column, &bounds, SX_PRUNE_EQ, (struct sx_scalar){.v.f64 = 3}));
    assert(excludes(&column, &bounds, SX_PRUNE_LT, (struct sx_scalar){.v.f64 = 1}));
    assert(!excludes(&column, &bounds, SX_PRUNE_GT, (struct sx_scalar){.v.f64 = 3})); /* NaN > 3 */
    assert(!excludes(&column, &bounds, SX_PRUNE_EQ, (struct sx_scalar){.v.f64 = NAN}));
    assert(!excludes(&column, &bounds, SX_PRUNE_LT, (struct sx_scalar){.v.f64 = NAN}));
    bounds.min = slice(&nan_bound, 8);
    assert(!excludes(&column, &bounds, SX_PRUNE_LT, (struct sx_scalar){.v.f64 = -5}));
    bounds.min = slice(&zero, 8);
    assert(!excludes(&column, &bounds, SX_PRUNE_EQ, (struct sx_scalar){.v.f64 = -0.0}));
}

static void test_wide_bounds(void) {
    const uint8_t minus_two[] = {0xff, 0xff, 0xfe}, plus_three[] = {0, 0, 3};
    struct sx_file_column column = {.physical = SX_PARQUET_FIXED_LEN_BYTE_ARRAY,
                                    .type_length = 3,
                                    .type = {SX_TYPE_DECIMAL, 6, 2},
                                    .conversion = SX_CONVERT_DECIMAL};
    struct sx_bounds bounds = {slice(minus_two, 3), slice(plus_three, 3), 10, 0};
    assert(excludes(&column, &bounds, SX_PRUNE_EQ, (struct sx_scalar){.v.i64 = -3}));
    assert(!excludes(&column, &bounds, SX_PRUNE_EQ, (struct sx_scalar){.v.i64 = -1}));
    assert(excludes(&column, &bounds, SX_PRUNE_GT, (struct sx_scalar){.v.i64 = 3}));
    column.type = sx_type_decimal(30, 2);
    assert(excludes(&column, &bounds, SX_PRUNE_LT, (struct sx_scalar){.v.i128 = -2}));
    struct sx_file_column text = {.physical = SX_PARQUET_BYTE_ARRAY, .type = {SX_TYPE_VARCHAR, 0, 0}};
    bounds = (struct sx_bounds){slice("b", 1), slice("b\xc3", 2), 10, 0};
    assert(excludes(&text, &bounds, SX_PRUNE_EQ, (struct sx_scalar){.v.text = {"a\xff", 2}}));
    assert(!excludes(&text, &bounds, SX_PRUNE_EQ, (struct sx_scalar){.v.text = {"bzz", 3}}));
    assert(excludes(&text, &bounds, SX_PRUNE_GE, (struct sx_scalar){.v.text = {"b\xc3\x80", 3}}));
    assert(!excludes(&text, &bounds, SX_PRUNE_LT, (struct sx_scalar){.v.text = {"ba", 2}}));
}

static void test_old_bounds(void) {
    int32_t low = 1, high = 5;
    struct sx_file_column column = {.physical = SX_PARQUET_INT32, .type = {SX_TYPE_I32, 0, 0}};
    struct sx_chunk_meta chunk = {.n_values = 10,
                                  .statistics = {.old_min = slice(&low, 4), .old_max = slice(&high, 4)}};
    assert(sx_chunk_bounds(&column, &chunk).min.bytes);
    column.type.id = SX_TYPE_U32;
    assert(!sx_chunk_bounds(&column, &chunk).min.bytes);
    column = (struct sx_file_column){.physical = SX_PARQUET_BYTE_ARRAY, .type = {SX_TYPE_VARCHAR, 0, 0}};
    assert(!sx_chunk_bounds(&column, &chunk).min.bytes);
    chunk.statistics.min = chunk.statistics.max = slice("x", 1);
    assert(!sx_chunk_bounds(&column, &chunk).min.bytes);
    column.has_order = true;
    assert(sx_chunk_bounds(&column, &chunk).min.bytes);
}

/* ---- bad files ---- */

static void expect_refused(const char *path, const char *mention) {
    struct sx_error error = {0};
    struct sx_footer_cache *cache;
    struct sx_footer *footer;
    struct sx_file_stamp stamp;
    assert(sx_footer_cache_create(&cache, &error) == SX_OK);
    assert(sx_footer_cache_get(cache, path, &footer, &stamp, &error) == SX_FILE);
    sx_footer_cache_destroy(cache);
    if (!strstr(error.text, mention) || strncmp(error.text, path, strlen(path)) != 0) {
        fprintf(stderr, "%s: should mention %s\n", error.text, mention);
        abort();
    }
}

static void test_refused(void) {
    size_t size;
    uint8_t *bytes =
        read_whole(write_by_duckdb("sound.parquet", "SELECT range AS a FROM range(10)", ""), &size);
    expect_refused(in_scratch("missing.parquet"), "no such file");
    expect_refused(scratch, "directory");
    expect_refused(write_whole("empty", "", 0), "empty");
    expect_refused(write_whole("short", "PAR1PAR1", 8), "only 8 bytes");
    expect_refused(write_whole("text", "name,value\none,1\ntwo,2\n", 23), "not a Parquet file");
    expect_refused(write_whole("cut", bytes, size - 5), "truncated");
    expect_refused(write_whole("magic", "PAR1\0\0\0\0PAR1", 12), "0 bytes");
    bytes[size - 1] = 'E';
    expect_refused(write_whole("encrypted", bytes, size), "encrypted");
    bytes[size - 1] = '1';
    uint8_t length[4];
    memcpy(length, bytes + size - 8, 4);
    memset(bytes + size - 8, 0x7f, 4);
    expect_refused(write_whole("long", bytes, size), "footer");
    memcpy(bytes + size - 8, &(uint32_t){32}, 4);
    expect_refused(write_whole("shifted", bytes, size), "corrupt");
    memcpy(bytes + size - 8, length, 4);
    free(bytes);
}

static void test_cache(void) {
    struct sx_error error = {0};
    struct sx_footer_cache *cache;
    struct sx_footer *first, *again, *changed;
    struct sx_file_stamp stamp;
    const char *path = write_by_duckdb("cached.parquet", "SELECT 1 AS a", "");
    assert(sx_footer_cache_create(&cache, &error) == SX_OK);
    assert(sx_footer_cache_get(cache, path, &first, &stamp, &error) == SX_OK);
    assert(sx_footer_cache_get(cache, path, &again, &stamp, &error) == SX_OK);
    assert(first == again);
    write_by_duckdb("cached.parquet", "SELECT 1 AS a, 2 AS b", "");
    assert(sx_footer_cache_get(cache, path, &changed, &stamp, &error) == SX_OK);
    assert(changed != first && changed->n_columns == 2 && first->n_columns == 1);
    sx_footer_release(first);
    sx_footer_release(again);
    sx_footer_release(changed);
    sx_footer_cache_destroy(cache);
}

int main(void) {
    make_scratch();
    test_thrift();
    test_hash();
    test_integer_bounds();
    test_float_bounds();
    test_wide_bounds();
    test_old_bounds();
    test_types();
    test_other_writers();
    test_refused();
    test_cache();
    run_sql(NULL, NULL);
    remove_scratch();
    puts("ok");
    return 0;
}
