/* Scans: whole tables, pruning that never loses a row, several callers, cold files, little memory,
 * cancelling. Values are functions of the row number, so the row numbers that come out tell all. */
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

#include "unit/storage_taken.h"

static enum sx_status open_fails(struct fixture *fixture, const struct table *table, const char *mention) {
    struct sx_error error = {0};
    struct sx_scan *scan;
    const struct sx_scan_request request = request_of(table);
    enum sx_status status = sx_scan_open(fixture->storage, &request, NULL, &scan, &error);
    assert(status != SX_OK);
    if (!strstr(error.text, mention)) {
        fprintf(stderr, "%s: should mention %s\n", error.text, mention);
        abort();
    }
    return status;
}

/* ---- the large table: 300000 rows, row groups of 20480, two files ---- */

enum { ROWS = 300000, FIRST_FILE_ROWS = 100000 };

static int64_t scattered(int64_t row) {
    return row * 7919 % 10007;
}

static const char large_query[] =
    "SELECT i AS id, (i // 100)::INTEGER AS k, i * 7919 %% 10007 AS r, "
    "'s' || lpad((i // 50)::VARCHAR, 6, '0') AS s, "
    "CASE WHEN (i // 1000) %% 2 = 1 THEN NULL ELSE i::INTEGER END AS n, (i / 4)::DECIMAL(12, 2) AS d "
    "FROM range(%d, %d) t(i)";

static struct table write_large(void) {
    char query[1024];
    struct table table = {
        .names = {"id", "k", "r", "s", "n", "d"},
        .types = {{SX_TYPE_I64, 0, 0},
                  {SX_TYPE_I32, 0, 0},
                  {SX_TYPE_I64, 0, 0},
                  {SX_TYPE_VARCHAR, 0, 0},
                  {SX_TYPE_I32, 0, 0},
                  {SX_TYPE_DECIMAL, 12, 2}},
        .n_columns = 6,
        .n_files = 2,
    };
    snprintf(query, sizeof query, large_query, 0, FIRST_FILE_ROWS);
    table.files[0] = strdup(write_by_duckdb("large-0.parquet", query, ", ROW_GROUP_SIZE 20480"));
    snprintf(query, sizeof query, large_query, FIRST_FILE_ROWS, ROWS);
    table.files[1] =
        strdup(write_by_duckdb("large-1.parquet", query, ", ROW_GROUP_SIZE 20480, COMPRESSION zstd"));
    return table;
}

static void free_table(struct table *table) {
    for (int f = 0; f < table->n_files; f++)
        free((char *)table->files[f]);
}

static void check_all_rows(const struct taken *taken) {
    if (taken->error.status != SX_OK)
        fprintf(stderr, "%s\n", taken->error.text);
    assert(taken->error.status == SX_OK);
    for (int i = 0; i < ROWS; i++)
        assert(taken->rows[i] == 1);
}

static void test_whole(struct table *table, int n_threads, int n_callers) {
    struct fixture fixture = fixture_create(0, n_threads);
    struct taken taken = taken_create();
    struct sx_scan_progress progress;
    for (int n_columns = 0; n_columns <= 6; n_columns += 3) {
        table->n_columns = n_columns;
        struct sx_scan *scan = open_table(&fixture, table, NULL, 0, NULL);
        sx_scan_prefetch(scan);
        take_by(scan, n_callers, &taken);
        check_all_rows(&taken);
        sx_scan_progress(scan, &progress);
        assert(progress.total_rows == ROWS && progress.done_rows == ROWS && progress.pruned_rows == 0);
        assert((progress.read_bytes > 0) == (n_columns > 0));
        sx_scan_close(scan);
    }
    int64_t rows;
    struct sx_error error = {0};
    assert(sx_storage_count_rows(fixture.storage, table->files, 2, &rows, &error) == SX_OK && rows == ROWS);
    free(taken.rows);
    fixture_destroy(&fixture);
}

/* 15 row groups, which go into batches of at most so many rows; the last of many into smaller ones. */
static void test_batches(struct table table) {
    static const struct {
        int64_t batch_rows;
        int batches;
    } cases[] = {{0, 15}, {1, 15}, {20480 * 2, 11}, {1 << 20, 3}, {1 << 30, 1}, {ROWS, 5}};
    struct fixture fixture = fixture_create(0, 2);
    struct taken taken = taken_create();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        table.batch_rows = taken.batch_rows = cases[i].batch_rows;
        struct sx_scan *scan = open_table(&fixture, &table, NULL, 0, NULL);
        take_by(scan, 2, &taken);
        check_all_rows(&taken);
        assert(taken.batches == cases[i].batches && taken.groups == 15);
        sx_scan_close(scan);
    }
    free(taken.rows);
    fixture_destroy(&fixture);
}

/* Takes one share; adds how often each row came, and returns the number of row groups. */
static int take_share(struct fixture *fixture, const struct table *table, int share, int n_shares,
                      struct taken *taken, uint8_t *rows) {
    struct sx_error error = {0};
    struct sx_scan *scan;
    struct sx_scan_request request = request_of(table);
    struct sx_scan_progress progress;
    int64_t n_rows = 0;
    request.share = share;
    request.n_shares = n_shares;
    assert(sx_scan_open(fixture->storage, &request, NULL, &scan, &error) == SX_OK);
    take_by(scan, 2, taken);
    assert(taken->error.status == SX_OK);
    for (int i = 0; i < ROWS; i++) {
        rows[i] = (uint8_t)(rows[i] + taken->rows[i]);
        n_rows += taken->rows[i];
    }
    sx_scan_progress(scan, &progress);
    assert(progress.total_rows == n_rows && progress.done_rows == n_rows);
    sx_scan_close(scan);
    return taken->groups;
}

/* Every row is in one share; shares are about as large; there may be more of them than the 15 row groups. */
static void test_shares(struct table table) {
    static const int sizes[] = {1, 2, 3, 15, 40};
    struct fixture fixture = fixture_create(0, 2);
    struct taken taken = taken_create();
    uint8_t *rows = malloc(ROWS);
    assert(rows);
    for (table.n_columns = 0; table.n_columns <= 3; table.n_columns += 3)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            memset(rows, 0, ROWS);
            for (int share = 0; share < sizes[i]; share++) {
                const int groups = take_share(&fixture, &table, share, sizes[i], &taken, rows);
                if (table.n_columns == 0) /* then row groups count alike */
                    assert(groups >= 15 / sizes[i] && groups <= (15 + sizes[i] - 1) / sizes[i]);
            }
            for (int row = 0; row < ROWS; row++)
                assert(rows[row] == 1);
        }
    free(rows);
    free(taken.rows);
    fixture_destroy(&fixture);
}

/* Whole row groups of a share, about as many rows as wanted, from the share's beginning and behind its
 * middle. */
static void test_sample(struct table table) {
    static const struct {
        int64_t sample_rows;
        int n_shares, groups;
    } cases[] = {{1, 0, 1}, {1, 3, 1}, {ROWS / 3, 0, 5}, {ROWS / 6, 2, 2}, {ROWS, 0, 15}, {ROWS, 3, 5}};
    struct fixture fixture = fixture_create(0, 2);
    struct taken taken = taken_create();
    table.n_columns = 0; /* then row groups count alike */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sx_error error = {0};
        struct sx_scan *scan;
        struct sx_scan_request request = request_of(&table);
        request.n_shares = cases[i].n_shares;
        request.sample_rows = cases[i].sample_rows;
        assert(sx_scan_open(fixture.storage, &request, NULL, &scan, &error) == SX_OK);
        take_by(scan, 2, &taken);
        assert(taken.error.status == SX_OK && taken.groups == cases[i].groups && taken.rows[0] == 1);
        sx_scan_close(scan);
    }
    free(taken.rows);
    fixture_destroy(&fixture);
}

/* Asks the kernel to drop the files from the page cache; where it does, the reader threads have to work. */
static void test_cold(struct table *table) {
    struct fixture fixture = fixture_create(0, 3);
    struct taken taken = taken_create();
    for (int repeat = 0; repeat < 3; repeat++) {
        for (int f = 0; f < table->n_files; f++) {
            int fd = open(table->files[f], O_RDONLY);
            assert(fd >= 0 && fdatasync(fd) == 0);
            posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
            close(fd);
        }
        struct sx_scan *scan = open_table(&fixture, table, NULL, 0, NULL);
        if (repeat)
            sx_scan_prefetch(scan);
        take_by(scan, 2, &taken);
        check_all_rows(&taken);
        sx_scan_close(scan);
    }
    struct sx_scan *unread = open_table(&fixture, table, NULL, 0, NULL);
    sx_scan_prefetch(unread);
    sx_scan_close(unread);
    free(taken.rows);
    fixture_destroy(&fixture);
}

static void test_little_memory(struct table *table) {
    struct fixture fixture = fixture_create((size_t)1 << 20, 2);
    struct taken taken = taken_create();
    struct sx_scan *scan = open_table(&fixture, table, NULL, 0, NULL);
    take_by(scan, 4, &taken);
    check_all_rows(&taken);
    sx_scan_close(scan);
    fixture_destroy(&fixture);
    fixture = fixture_create((size_t)64 << 10, 2);
    scan = open_table(&fixture, table, NULL, 0, NULL);
    take_by(scan, 4, &taken);
    assert(taken.error.status == SX_OUT_OF_MEMORY);
    struct sx_row_group *group;
    struct sx_error error = {0};
    assert(sx_scan_next(scan, &group, &error) == SX_OUT_OF_MEMORY && strstr(error.text, "scan of t"));
    sx_scan_close(scan);
    fixture_destroy(&fixture);
    free(taken.rows);
}

static size_t used_by(struct fixture *fixture, struct sx_scan *scan, struct sx_row_group **out_group) {
    struct sx_error error = {0};
    const size_t before = sx_pool_usage(fixture->pool).used_bytes;
    assert(sx_scan_next(scan, out_group, &error) == SX_OK && *out_group);
    return sx_pool_usage(fixture->pool).used_bytes - before;
}

/* A batch that fits once another scan's has gone: early there is none, and the scan goes on. */
static void test_early(struct table large) {
    struct table small = large;
    struct sx_row_group *held, *group;
    struct sx_error error = {0};
    size_t held_bytes = 0, bytes = 0;
    small.batch_rows = ROWS / 10;
    large.batch_rows = INT64_C(1) << 30;
    for (int limited = 0; limited < 2; limited++) {
        struct fixture fixture = fixture_create(limited ? bytes + held_bytes / 2 : 0, 0);
        struct sx_scan *first = open_table(&fixture, &small, NULL, 0, NULL),
                       *second = open_table(&fixture, &large, NULL, 0, NULL);
        held_bytes = used_by(&fixture, first, &held);
        if (limited)
            assert(sx_scan_next_early(second, &group, &error) == SX_OK && !group);
        sx_row_group_release(limited ? held : NULL);
        bytes = used_by(&fixture, second, &group);
        sx_row_group_release(limited ? NULL : held);
        sx_row_group_release(group);
        sx_scan_close(first);
        sx_scan_close(second);
        fixture_destroy(&fixture);
    }
}

static void test_cancel(struct table *table) {
    struct fixture fixture = fixture_create(0, 2);
    atomic_bool cancel = false;
    struct sx_error error = {0};
    struct sx_row_group *group, *kept;
    struct sx_scan *scan = open_table(&fixture, table, NULL, 0, &cancel);
    assert(sx_scan_next(scan, &kept, &error) == SX_OK && kept);
    atomic_store(&cancel, true);
    assert(sx_scan_next(scan, &group, &error) == SX_CANCELLED && !group);
    sx_scan_close(scan);
    assert(kept->n_rows > 0 && kept->columns[0].pages[0].bytes); /* valid beyond the scan */
    sx_row_group_release(kept);
    fixture_destroy(&fixture);
}

/* ---- pruning ---- */

typedef bool (*passes_fn)(int64_t row);

struct pruning {
    struct sx_prune prune;
    passes_fn passes;
    bool prunes_groups;
};

static bool id_is_5(int64_t row) {
    return row == 5;
}
static bool k_from_2900(int64_t row) {
    return row / 100 >= 2900;
}
static bool k_below_100(int64_t row) {
    return row / 100 < 100;
}
static bool k_of_three(int64_t row) {
    return row / 100 == 3 || row / 100 == 1500 || row / 100 == 99999;
}
static bool r_is_4(int64_t row) {
    return scattered(row) == 4;
}
static bool s_is_one(int64_t row) {
    return row / 50 == 2001;
}
static bool s_above(int64_t row) {
    return row / 50 > 5990;
}
static bool n_is_null(int64_t row) {
    return row / 1000 % 2 == 1;
}
static bool n_is_odd(int64_t row) {
    return row == 1500 && !n_is_null(row);
}
static bool d_at_most_ten(int64_t row) {
    return row <= 40;
}
static bool never(int64_t row) {
    return row < 0;
}

static const struct sx_type big = {SX_TYPE_I64, 0, 0}, plain = {SX_TYPE_I32, 0, 0},
                            text = {SX_TYPE_VARCHAR, 0, 0};
static const struct sx_scalar five = {.type = {SX_TYPE_I64, 0, 0}, .v.i64 = 5},
                              four = {.type = {SX_TYPE_I64, 0, 0}, .v.i64 = 4},
                              k2900 = {.type = {SX_TYPE_I32, 0, 0}, .v.i64 = 2900},
                              k100 = {.type = {SX_TYPE_I32, 0, 0}, .v.i64 = 100},
                              three[] = {{.type = {SX_TYPE_I32, 0, 0}, .v.i64 = 3},
                                         {.type = {SX_TYPE_I32, 0, 0}, .is_null = true},
                                         {.type = {SX_TYPE_I32, 0, 0}, .v.i64 = 1500},
                                         {.type = {SX_TYPE_I32, 0, 0}, .v.i64 = 99999}},
                              s2001 = {.type = {SX_TYPE_VARCHAR, 0, 0}, .v.text = {"s002001", 7}},
                              s5990 = {.type = {SX_TYPE_VARCHAR, 0, 0}, .v.text = {"s005990", 7}},
                              s_inside = {.type = {SX_TYPE_VARCHAR, 0, 0}, .v.text = {"s000100x", 8}},
                              n1500 = {.type = {SX_TYPE_I32, 0, 0}, .v.i64 = 1500},
                              ten = {.type = {SX_TYPE_DECIMAL, 12, 2}, .v.i64 = 1000};

static const struct pruning prunings[] = {
    {{0, SX_PRUNE_EQ, &five, 1}, id_is_5, true},      {{1, SX_PRUNE_GE, &k2900, 1}, k_from_2900, true},
    {{1, SX_PRUNE_LT, &k100, 1}, k_below_100, true},  {{1, SX_PRUNE_IN, three, 4}, k_of_three, true},
    {{2, SX_PRUNE_EQ, &four, 1}, r_is_4, false},      {{3, SX_PRUNE_EQ, &s2001, 1}, s_is_one, true},
    {{3, SX_PRUNE_GT, &s5990, 1}, s_above, true},     {{3, SX_PRUNE_EQ, &s_inside, 1}, never, true},
    {{4, SX_PRUNE_NULL, NULL, 0}, n_is_null, false},  {{4, SX_PRUNE_EQ, &n1500, 1}, n_is_odd, true},
    {{5, SX_PRUNE_LE, &ten, 1}, d_at_most_ten, true},
};
enum { N_PRUNINGS = sizeof prunings / sizeof *prunings };

static void check_passing(const struct taken *taken, int64_t n_rows, passes_fn first, passes_fn second) {
    if (taken->error.status != SX_OK)
        fprintf(stderr, "%s\n", taken->error.text);
    assert(taken->error.status == SX_OK);
    for (int64_t row = 0; row < n_rows; row++) {
        assert(taken->rows[row] <= 1);
        if (first(row) && second(row))
            assert(taken->rows[row] == 1);
    }
}

static void test_pruning(struct table *table) {
    struct fixture fixture = fixture_create(0, 2);
    struct taken taken = taken_create();
    struct sx_scan_progress progress;
    for (int i = 0; i < N_PRUNINGS; i++) {
        for (int j = 0; j < N_PRUNINGS; j++) {
            const struct sx_prune both[] = {prunings[i].prune, prunings[j].prune};
            struct sx_scan *scan = open_table(&fixture, table, both, 2, NULL);
            take_by(scan, 1 + (i + j) % 2, &taken);
            check_passing(&taken, ROWS, prunings[i].passes, prunings[j].passes);
            sx_scan_progress(scan, &progress);
            assert(progress.done_rows == ROWS);
            assert(!prunings[i].prunes_groups || progress.pruned_row_groups > 0);
            assert(progress.pruned_row_groups + atomic_load(&taken.groups) == progress.row_groups);
            if (prunings[i].passes == never)
                assert(atomic_load(&taken.groups) == 0); /* inside the bounds: the bloom filters tell */
            sx_scan_close(scan);
        }
    }
    free(taken.rows);
    fixture_destroy(&fixture);
}

static void test_restrict(struct table *table) {
    struct fixture fixture = fixture_create(0, 2);
    struct taken taken = taken_create();
    struct sx_scan *scan = open_table(&fixture, table, NULL, 0, NULL);
    sx_scan_restrict(scan, 1, 500, 2000);
    sx_scan_restrict(scan, 1, 0, 599);
    take_by(scan, 2, &taken);
    assert(taken.error.status == SX_OK && atomic_load(&taken.groups) <= 3);
    for (int64_t row = 0; row < ROWS; row++)
        assert(taken.rows[row] == 1 || row / 100 < 500 || row / 100 > 599);
    sx_scan_close(scan);
    scan = open_table(&fixture, table, NULL, 0, NULL);
    sx_scan_restrict(scan, 5, 10000000, 20000000); /* beyond all values */
    take_by(scan, 2, &taken);
    assert(taken.error.status == SX_OK && atomic_load(&taken.groups) == 0);
    sx_scan_close(scan);
    free(taken.rows);
    fixture_destroy(&fixture);
}

/* ---- the page index: written by pyarrow, pages of other sizes in each column ---- */

static const char indexed_program[] =
    "import sys, pyarrow as pa, pyarrow.parquet as pq\n"
    "N = 60000\n"
    "i = range(N)\n"
    "t = pa.table({'id': pa.array(i, pa.int64()), 'k': pa.array([x // 100 for x in i], pa.int32()),\n"
    "  'r': pa.array([x * 7919 % 10007 for x in i], pa.int64()), 's': [f's{x // 50:06d}' for x in i],\n"
    "  'n': pa.array([None if x // 1000 % 2 else x for x in i], pa.int32()),\n"
    "  'd': pa.array([x * 25 for x in i], pa.int64()).cast(pa.decimal128(21, 0)).cast(pa.decimal128(12, "
    "0))})\n"
    "import decimal\n"
    "t = t.set_column(5, 'd', pa.array([decimal.Decimal(x * 25) / 100 for x in i], pa.decimal128(12, 2)))\n"
    "for version in ('1.0', '2.0'):\n"
    "  pq.write_table(t, sys.argv[1] + version, row_group_size=25000, write_page_index=True,\n"
    "    data_page_size=4096, write_batch_size=512, data_page_version=version, write_page_checksum=True,\n"
    "    use_dictionary=['s'] if version == '2.0' else False)\n";

/* Rows of k from `least` on, 100 of each, in groups of 25000. */
static struct sx_scan_progress take_from(struct fixture *fixture, const struct table *table, int64_t least) {
    struct taken taken = taken_create();
    struct sx_scan_progress progress;
    struct sx_scan *scan = open_table(fixture, table, NULL, 0, NULL);
    sx_scan_restrict(scan, 1, least, 1000);
    take_by(scan, 1, &taken);
    for (int64_t row = 0; row < 60000; row++)
        assert(taken.rows[row] == 1 || (row < 100 * least && taken.rows[row] == 0));
    sx_scan_progress(scan, &progress);
    sx_scan_close(scan);
    free(taken.rows);
    return progress;
}

/* A row group that lacks few of its first pages is read whole; of some columns, where it lacks more. */
static void test_first_pages(struct fixture *fixture, const struct table *table,
                             const struct sx_scan_progress *whole) {
    const struct sx_scan_progress few = take_from(fixture, table, 15);
    assert(few.pruned_rows > 0 && few.pruned_rows <= 1500 && few.read_bytes <= whole->read_bytes);
    if (variant->cache_bytes == 0)
        assert(few.read_bytes == whole->read_bytes);
    else if (variant->cache_bytes > (size_t)1 << 20)
        assert(few.read_bytes == 0);
    int64_t read_bytes = 0;
    for (int64_t least = 20; least < 240; least += 10) {
        const struct sx_scan_progress fewer = take_from(fixture, table, least);
        assert(fewer.pruned_rows >= 100 * (least - 10));
        read_bytes += fewer.read_bytes;
    }
    if (variant->cache_bytes > (size_t)1 << 20) /* most blocks of pages are the same */
        assert(read_bytes < whole->read_bytes);
}

static bool test_page_index(struct table table) {
    const char *base = write_by_python("indexed", indexed_program);
    if (!base)
        return false;
    struct fixture fixture = fixture_create(0, 2);
    struct taken taken = taken_create();
    struct sx_scan_progress whole, pruned;
    for (int version = 1; version <= 2; version++) {
        char path[256];
        snprintf(path, sizeof path, "%s%d.0", base, version);
        table.files[0] = path;
        table.n_files = 1;
        struct sx_scan *scan = open_table(&fixture, &table, NULL, 0, NULL);
        take_by(scan, 1, &taken);
        sx_scan_progress(scan, &whole);
        sx_scan_close(scan);
        assert(taken.error.status == SX_OK && atomic_load(&taken.groups) == 3);
        for (int i = 0; i < N_PRUNINGS; i++) {
            for (int j = 0; j < N_PRUNINGS; j++) {
                const struct sx_prune both[] = {prunings[i].prune, prunings[j].prune};
                scan = open_table(&fixture, &table, both, 2, NULL);
                take_by(scan, 1, &taken);
                check_passing(&taken, 60000, prunings[i].passes, prunings[j].passes);
                sx_scan_progress(scan, &pruned);
                assert(pruned.done_rows == 60000);
                if (prunings[i].passes == id_is_5) /* one page of each column, of 25000 rows */
                    assert(pruned.pruned_rows > 55000 && pruned.read_bytes < whole.read_bytes / 5);
                sx_scan_close(scan);
            }
        }
        scan = open_table(&fixture, &table, NULL, 0, NULL);
        sx_scan_restrict(scan, 1, 300, 301);
        take_by(scan, 1, &taken);
        for (int64_t row = 30000; row < 30200; row++)
            assert(taken.rows[row] == 1);
        sx_scan_progress(scan, &pruned);
        assert(atomic_load(&taken.groups) == 1 && pruned.pruned_rows > 55000);
        sx_scan_close(scan);
        test_first_pages(&fixture, &table, &whole);
    }
    free(taken.rows);
    fixture_destroy(&fixture);
    return true;
}

/* ---- requests that can't be served ---- */

static void test_misfits(void) {
    struct fixture fixture = fixture_create(0, 1);
    struct table table = {.names = {"a", "b"}, .types = {plain, text}, .n_files = 2, .n_columns = 2};
    table.files[0] = strdup(write_by_duckdb("fit-0.parquet", "SELECT 1::INTEGER AS a, 'x' AS b", ""));
    table.files[1] = write_by_duckdb("fit-1.parquet", "SELECT 'y' AS b, 2::INTEGER AS A", "");
    sx_scan_close(open_table(&fixture, &table, NULL, 0, NULL));
    table.files[1] = write_by_duckdb("fit-1.parquet", "SELECT 'x' AS a, 'x' AS b", "");
    assert(open_fails(&fixture, &table,
                      "fit-1.parquet: files of one table with different types: column a is VARCHAR") ==
           SX_FILE);
    table.files[1] = write_by_duckdb("fit-2.parquet", "SELECT 1::INTEGER AS a", "");
    assert(open_fails(&fixture, &table, "fit-2.parquet: the file has no column b") == SX_FILE);
    table.files[1] = write_by_duckdb("fit-3.parquet", "SELECT 1::BIGINT AS a, 'x' AS b", "");
    assert(open_fails(&fixture, &table, "different types") == SX_UNSUPPORTED);
    table.files[1] = write_by_duckdb("fit-4.parquet", "SELECT [1] AS a, 'x' AS b", "");
    assert(open_fails(&fixture, &table, "nested") == SX_UNSUPPORTED);
    table.n_columns = 0;
    sx_scan_close(open_table(&fixture, &table, NULL, 0, NULL));
    table.n_columns = 1;
    table.n_files = 1;
    table.types[0] = big;
    assert(open_fails(&fixture, &table, "column a") == SX_UNSUPPORTED);
    table.files[1] = in_scratch("gone.parquet");
    table.n_files = 2;
    table.types[0] = plain;
    assert(open_fails(&fixture, &table, "no such file") == SX_FILE);
    free((char *)table.files[0]);
    fixture_destroy(&fixture);
}

/* ---- the cache ---- */

static int64_t scan_bytes(struct fixture *fixture, const struct table *table, struct taken *taken) {
    struct sx_scan_progress progress;
    struct sx_scan *scan = open_table(fixture, table, NULL, 0, NULL);
    take_by(scan, 4, taken);
    assert(taken->error.status == SX_OK);
    sx_scan_progress(scan, &progress);
    for (int64_t i = 0; i < progress.total_rows; i++)
        assert(taken->rows[i] == 1);
    sx_scan_close(scan);
    return progress.read_bytes;
}

/* What was read once is not read again, until the file changes. */
static void test_cached(struct table table) {
    struct fixture fixture = fixture_create(0, 2);
    struct taken taken = taken_create();
    const int64_t whole = scan_bytes(&fixture, &table, &taken);
    assert(whole > 0 && scan_bytes(&fixture, &table, &taken) == 0);
    table.n_columns = 1;
    assert(scan_bytes(&fixture, &table, &taken) == 0);
    table.n_columns = 6;
    const struct timespec now[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    assert(utimensat(AT_FDCWD, table.files[0], now, 0) == 0);
    const int64_t again = scan_bytes(&fixture, &table, &taken);
    assert(again > 0 && again < whole && scan_bytes(&fixture, &table, &taken) == 0);
    fixture_destroy(&fixture);
    free(taken.rows);
}

static bool test_variant(const struct table *shared) {
    struct table table = *shared;
    test_whole(&table, 0, 1);
    test_whole(&table, 2, 3);
    test_batches(table);
    test_shares(table);
    test_sample(table);
    test_cold(&table);
    test_little_memory(&table);
    test_cancel(&table);
    test_pruning(&table);
    test_restrict(&table);
    bool has_python = test_page_index(table);
    test_misfits();
    return has_python;
}

int main(void) {
    make_scratch();
    bool has_python = false;
    struct table table = write_large();
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        if (use_variant(i))
            has_python = test_variant(&table);
    variant = &variants[0];
    test_early(table);
    variant = &variants[1];
    test_cached(table);
    free_table(&table);
    run_sql(NULL, NULL);
    remove_scratch();
    puts(has_python ? "ok" : "ok, but without pyarrow (PYTHON) the page index was not tried");
    return 0;
}
