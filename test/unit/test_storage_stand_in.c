/* Stand-ins tell DuckDB the same as the files themselves. */
#include "storage/file.h"
#include "storage/scan.h"
#include "storage/stand_in.h"
#include "unit/storage_files.h"

enum { MOST_FILES = 4 };

/* NULL: there is none. */
static const char *write_stand_in(const char *name, const char *const *paths, int n) {
    struct sx_error error = {0};
    struct sx_footer *footers[MOST_FILES];
    struct sx_pool *pool;
    assert(sx_pool_create(0, &pool, &error) == SX_OK);
    struct sx_bytes bytes = sx_bytes_in(pool, &error);
    for (int i = 0; i < n; i++)
        assert((footers[i] = load_footer(paths[i])) != NULL);
    const char *path =
        sx_stand_in_write(footers, n, &bytes) ? write_whole(name, bytes.data, bytes.size) : NULL;
    for (int i = 0; i < n; i++)
        sx_footer_release(footers[i]);
    sx_bytes_release(&bytes);
    sx_pool_destroy(pool);
    return path;
}

/* The first value of the answer; the caller's to free. */
static char *ask(const char *format, const char *path, const char *column) {
    char sql[1024];
    duckdb_result result;
    snprintf(sql, sizeof sql, format, path, column);
    run_sql(&result, sql);
    assert(duckdb_row_count(&result) > 0);
    char *value = duckdb_value_varchar(&result, 0, 0);
    assert(value);
    duckdb_destroy_result(&result);
    return value;
}

static bool is_same(const char *format_a, const char *a, const char *format_b, const char *b,
                    const char *column) {
    char *of_a = ask(format_a, a, column), *of_b = ask(format_b, b, column);
    const bool same = strcmp(of_a, of_b) == 0;
    if (!same)
        fprintf(stderr, "%s: %s, %s\n", column, of_a, of_b);
    duckdb_free(of_a);
    duckdb_free(of_b);
    return same;
}

static const char counts[] = "SELECT count(*) FROM read_parquet('%s')";
static const char schema[] =
    "SELECT string_agg(column_name || column_type, ',') FROM (DESCRIBE SELECT * FROM read_parquet('%s'))";
/* of the row groups, each in a line; of the rows */
static const char told[] =
    "SELECT coalesce(string_agg(coalesce(stats_min_value, '') || ' to ' || coalesce(stats_max_value, '') || "
    "', ' || "
    "stats_null_count, chr(10)), 'nothing') FROM parquet_metadata('%s') WHERE path_in_schema = '%s'";
static const char rows[] =
    "SELECT min(\"%2$s\") || ' to ' || max(\"%2$s\") || ', ' || (count(*) - count(\"%2$s\")) "
    "FROM read_parquet('%1$s')";

static const char *const columns[] = {"i", "n", "u", "s", "d", "w", "f", "t", "ts", "ms"};
static const char table[] =
    "SELECT i::INTEGER - 5000 AS i, CASE WHEN i %% 3 > 0 THEN i END AS n, NULL::INTEGER AS none, "
    "(i * 200000)::UINTEGER AS u, 'text ' || ((i * 7919) %% 20000) AS s, (i - 300)::DECIMAL(9,2) AS d, "
    "(i * 1000000007 - 999)::DECIMAL(30,3) AS w, i / 7 - 100 AS f, DATE '2020-01-01' + i::INTEGER %% 900 AS "
    "t, "
    "TIMESTAMP '2020-01-01' + INTERVAL 1 MINUTE * i AS ts, CASE WHEN i > 9000 THEN i END AS late, "
    "i > 12000 AS b, (TIMESTAMP '2020-01-01' + INTERVAL 1 SECOND * i)::TIMESTAMP_MS AS ms, "
    "[i, i + 1] AS list, {'x': i} AS nested, 'y'::BLOB AS blob FROM range(%d, %d) r(i)";

static bool tells(const char *stand_in, const char *column, const char *expected) {
    char *found = ask(told, stand_in, column);
    const bool is_expected = strcmp(found, expected) == 0;
    if (!is_expected)
        fprintf(stderr, "%s: %s instead of %s\n", column, found, expected);
    duckdb_free(found);
    return is_expected;
}

static void check(const char *stand_in, const char *whole) {
    assert(stand_in);
    assert(is_same(counts, whole, counts, stand_in, "count") &&
           is_same(schema, whole, schema, stand_in, "schema"));
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
        assert(is_same(rows, whole, told, stand_in, columns[c]));
    assert(tells(stand_in, "none", " to , 20000")); /* row groups of NULLs have no bounds */
    assert(tells(stand_in, "late", " to , 9001"));
}

static void test_statistics(void) {
    char query[2048];
    snprintf(query, sizeof query, table, 0, 20000);
    const char *whole = write_by_duckdb("whole.parquet", query, ", ROW_GROUP_SIZE 2048");
    check(write_stand_in("stand_in.parquet", &whole, 1), whole);
}

/* As of one file that has the rows of both. */
static void test_several_files(void) {
    char query[2048];
    const char *parts[2];
    snprintf(query, sizeof query, table, 0, 20000);
    const char *whole = write_by_duckdb("whole.parquet", query, ", ROW_GROUP_SIZE 2048");
    snprintf(query, sizeof query, table, 7000, 20000);
    parts[0] = write_by_duckdb("a.parquet", query, ", ROW_GROUP_SIZE 2048");
    snprintf(query, sizeof query, table, 0, 7000);
    parts[1] = write_by_duckdb("b.parquet", query, "");
    check(write_stand_in("stand_in.parquet", parts, 2), whole);
}

/* What is stored in another way, or lacks in a file, is not known. */
static void test_other_schema(void) {
    const char *parts[] = {write_by_duckdb("a.parquet", "SELECT 1::INTEGER AS a, 2 AS b, 3 AS c", ""),
                           write_by_duckdb("b.parquet", "SELECT 9::BIGINT AS a, 0 AS b", "")};
    const char *stand_in = write_stand_in("stand_in.parquet", parts, 2);
    assert(tells(stand_in, "a", "nothing") && tells(stand_in, "b", "0 to 2, 0") &&
           tells(stand_in, "c", "nothing"));
}

static void test_none(void) {
    const char *empty = write_by_duckdb("empty.parquet", "SELECT 1 AS a WHERE false", "");
    assert(!write_stand_in("stand_in.parquet", &empty, 1));
}

/* Another path once the file has changed, and one that DuckDB reads anew. */
static void test_changes(void) {
    struct sx_error error = {0};
    struct sx_pool *pool;
    struct sx_storage *storage;
    assert(sx_pool_create(0, &pool, &error) == SX_OK);
    const struct sx_storage_options options = {.pool = pool};
    assert(sx_storage_create(&options, &storage, &error) == SX_OK);
    const char *file = in_scratch("changes.parquet");
    char before[64] = "";
    int version = 0, same;
    for (int n = 1; n < 20; n++) {
        char query[64], expected[16];
        snprintf(query, sizeof query, "SELECT * FROM range(%d) r(a)", n);
        snprintf(expected, sizeof expected, "%d", n);
        (void)write_by_duckdb("changes.parquet", query, "");
        const int previous = version;
        const char *path = sx_storage_stand_in(storage, &file, 1, &version);
        assert(path && strcmp(path, before) != 0 && sx_storage_stand_in(storage, &file, 1, &same) == path);
        assert(version > previous && same == version);
        char *found = ask(counts, path, "");
        assert(strcmp(found, expected) == 0);
        duckdb_free(found);
        snprintf(before, sizeof before, "%s", path);
    }
    assert(unlink(file) == 0 && !sx_storage_stand_in(storage, &file, 1, &version));
    sx_storage_destroy(storage);
    sx_pool_destroy(pool);
}

int main(void) {
    make_scratch();
    run_sql(NULL, "SET parquet_metadata_cache = true");
    test_statistics();
    test_several_files();
    test_other_schema();
    test_none();
    test_changes();
    run_sql(NULL, NULL);
    remove_scratch();
    return 0;
}
