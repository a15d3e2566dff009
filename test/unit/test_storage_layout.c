/* Chunks of a batch in page-locked memory: a column's lie behind each other, whether they are read through
 * the page cache or past it; their bytes are those of the file; and the cache keeps them by blocks. */
#include <fcntl.h>
#include <sys/mman.h>

#include "base/slab_pool.h"
#include "storage/scan_state.h"
#include "unit/storage_taken.h"

enum { ROWS = 300000, GROUP_ROWS = 20480, N_GROUPS = 15, N_COLUMNS = 3, SLAB_BYTES = 64 << 20 };

/* ---- memory that says that it is page-locked ---- */

static void *map_slab(void *context, size_t bytes) {
    (void)context;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void unmap_slab(void *context, void *memory, size_t bytes) {
    (void)context;
    munmap(memory, bytes);
}

static bool is_pinned(void *context) {
    return *(const bool *)context;
}

struct setting {
    bool pinned;
    struct sx_pool *budget, *pool;
    struct sx_storage *storage;
};

static void create(struct setting *setting, bool pinned, enum sx_io io, size_t cache_bytes) {
    setting->pinned = pinned;
    const struct sx_slab_source source = {
        .map = map_slab, .unmap = unmap_slab, .is_pinned = is_pinned, .context = &setting->pinned};
    assert(sx_pool_create(0, &setting->budget, NULL) == SX_OK);
    assert(sx_slab_pool_create(setting->budget, SLAB_BYTES, source, &setting->pool, NULL) == SX_OK);
    const struct sx_storage_options options = {.pool = setting->pool,
                                               .budget = setting->budget,
                                               .n_reader_threads = 2,
                                               .io = io,
                                               .page_cache_bytes = (int64_t)1 << 40,
                                               .cache_bytes = cache_bytes};
    assert(sx_storage_create(&options, &setting->storage, NULL) == SX_OK);
}

static void destroy(struct setting *setting) {
    sx_storage_destroy(setting->storage);
    assert(sx_pool_usage(setting->pool).used_bytes == 0);
    sx_pool_destroy(setting->pool);
    sx_pool_destroy(setting->budget);
}

/* ---- what a scan gives ---- */

struct seen {
    uint64_t marks[N_GROUPS][N_COLUMNS]; /* of the pages' bytes */
    int n_near;                          /* chunks behind the one before, of their column */
    int64_t rows;
};

static uint64_t mark_of(const struct sx_stored_chunk *chunk) {
    uint64_t mark = 0;
    for (int p = 0; p < chunk->n_pages; p++)
        for (uint32_t i = 0; i < chunk->pages[p].stored_bytes; i++)
            mark = mark * 31 + chunk->pages[p].bytes[i];
    return mark;
}

static bool lies_behind(const struct sx_stored_span *before, const struct sx_stored_span *span) {
    const ptrdiff_t gap = span->bytes - (before->bytes + before->length_bytes);
    return span->owner == before->owner && gap >= 0 && gap < 2 * 4096;
}

static void look_at_group(const struct sx_row_group *group, const struct sx_row_group *before,
                          struct seen *seen) {
    for (int c = 0; c < group->n_columns; c++) {
        const struct sx_stored_chunk *chunk = &group->columns[c];
        assert(chunk->n_spans == 1);
        seen->marks[group->first_row / GROUP_ROWS][c] = mark_of(chunk);
        if (before)
            seen->n_near += lies_behind(&before->columns[c].spans[0], &chunk->spans[0]);
    }
    seen->rows += group->n_rows;
}

static struct seen scan_some(struct setting *setting, struct table table, int n_columns,
                             const struct sx_prune *prune) {
    struct fixture fixture = {setting->pool, setting->storage};
    struct seen seen = {0};
    struct sx_row_group *first;
    table.n_columns = n_columns;
    struct sx_scan *scan = open_table(&fixture, &table, prune, prune ? 1 : 0, NULL);
    for (;;) {
        assert(sx_scan_next(scan, &first, NULL) == SX_OK);
        if (!first)
            break;
        const struct sx_row_group *before = NULL;
        for (const struct sx_row_group *group = first; group; before = group, group = group->next)
            look_at_group(group, before, &seen);
        sx_row_group_release(first);
    }
    sx_scan_close(scan);
    return seen;
}

static struct seen scan_all(struct setting *setting, struct table table, int n_columns) {
    const struct seen seen = scan_some(setting, table, n_columns, NULL);
    assert(seen.rows == ROWS);
    return seen;
}

static void check_same(const struct seen *a, const struct seen *b, int n_columns) {
    for (int g = 0; g < N_GROUPS; g++)
        for (int c = 0; c < n_columns; c++)
            assert(a->marks[g][c] == b->marks[g][c]);
}

/* ---- tests ---- */

static void test_near(const struct table *table, const struct seen *expected, enum sx_io io) {
    struct setting setting;
    create(&setting, true, io, (size_t)256 << 20);
    struct seen seen = scan_all(&setting, *table, 1);
    check_same(&seen, expected, 1);
    assert(seen.n_near == N_GROUPS - 1);
    for (int round = 0; round < 2; round++) { /* the others are read, then nothing is */
        seen = scan_all(&setting, *table, N_COLUMNS);
        check_same(&seen, expected, N_COLUMNS);
        assert(seen.n_near == N_COLUMNS * (N_GROUPS - 1));
    }
    const struct sx_cache_usage usage = sx_chunk_cache_usage(setting.storage->cache);
    assert(usage.n_entries == N_COLUMNS * N_GROUPS && usage.n_hits == (1 + N_COLUMNS) * N_GROUPS);
    assert(usage.held_bytes <= sx_pool_usage(setting.pool).used_bytes);
    destroy(&setting);
}

/* Where a copy gains nothing, chunks have memory of their own. */
static void test_apart(const struct table *table, const struct seen *expected) {
    struct setting setting;
    create(&setting, false, SX_IO_BUFFERED, (size_t)256 << 20);
    struct seen seen = scan_all(&setting, *table, N_COLUMNS);
    check_same(&seen, expected, N_COLUMNS);
    assert(seen.n_near == 0);
    destroy(&setting);
}

/* Blocks are a part of the cache, and what it has lost is read again. */
static void test_little_cache(const struct table *table, const struct seen *expected, size_t cache_bytes) {
    struct setting setting;
    create(&setting, true, SX_IO_BUFFERED, cache_bytes);
    for (int round = 0; round < 4; round++) {
        const int n_columns = round % 2 ? N_COLUMNS : 2;
        const struct seen seen = scan_all(&setting, *table, n_columns);
        check_same(&seen, expected, n_columns);
        assert(sx_chunk_cache_usage(setting.storage->cache).held_bytes <= cache_bytes);
    }
    destroy(&setting);
}

/* There is room for what is read, not for row groups that are pruned. */
static void test_pruned(const struct table *table) {
    const struct sx_scalar value = {.type = {SX_TYPE_I64, 0, 0}, .v.i64 = 3 * GROUP_ROWS};
    const struct sx_prune below = {.column = 0, .op = SX_PRUNE_LT, .values = &value, .n_values = 1};
    struct setting setting;
    create(&setting, true, SX_IO_BUFFERED, (size_t)256 << 20);
    const struct seen seen = scan_some(&setting, *table, N_COLUMNS, &below);
    assert(seen.rows == 3 * GROUP_ROWS && seen.n_near == N_COLUMNS * 2);
    const size_t held = sx_chunk_cache_usage(setting.storage->cache).held_bytes;
    (void)scan_all(&setting, *table, N_COLUMNS);
    assert(held < sx_chunk_cache_usage(setting.storage->cache).held_bytes / 4);
    destroy(&setting);
}

int main(void) {
    char query[512];
    make_scratch();
    struct table table = {.names = {"id", "r", "s"},
                          .types = {{SX_TYPE_I64, 0, 0}, {SX_TYPE_I64, 0, 0}, {SX_TYPE_VARCHAR, 0, 0}},
                          .n_columns = N_COLUMNS,
                          .n_files = 1,
                          .batch_rows = 1 << 30};
    snprintf(query, sizeof query,
             "SELECT i AS id, i * 7919 %% 10007 AS r, 's' || (i // 50)::VARCHAR AS s FROM range(%d) t(i)",
             ROWS);
    table.files[0] = strdup(write_by_duckdb("layout.parquet", query, ", ROW_GROUP_SIZE 20480"));
    struct setting plain;
    create(&plain, false, SX_IO_BUFFERED, 0);
    const struct seen expected = scan_all(&plain, table, N_COLUMNS);
    destroy(&plain);
    test_near(&table, &expected, SX_IO_BUFFERED);
    const int fd = open(table.files[0], O_RDONLY | O_DIRECT);
    if (fd >= 0)
        test_near(&table, &expected, SX_IO_DIRECT);
    close(fd);
    test_apart(&table, &expected);
    test_pruned(&table);
    for (size_t bytes = 64 << 10; bytes <= 4 << 20; bytes *= 4)
        test_little_cache(&table, &expected, bytes);
    free((char *)table.files[0]);
    run_sql(NULL, NULL);
    remove_scratch();
    return 0;
}
