/* For the tests of scans: storage, a table that is asked for, and what comes out of it. */
#ifndef TEST_UNIT_STORAGE_TAKEN_H
#define TEST_UNIT_STORAGE_TAKEN_H

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "storage/scan.h"
#include "unit/storage_files.h"

/* What storages are made with; tests of scans, also of damaged files, run with each of the variants. */
static const struct sx_storage_options *variant;
static const struct sx_storage_options variants[] = {
    {0},
    {.cache_bytes = (size_t)256 << 20},
    {.cache_bytes = (size_t)200 << 10},
    {.io = SX_IO_DIRECT},
    {.io = SX_IO_DIRECT, .cache_bytes = (size_t)256 << 20},
    {.io = SX_IO_AUTO, .page_cache_bytes = 1},
};

/* False: the scratch folder's file system lacks what it needs. */
static inline bool use_variant(size_t i) {
    const int fd = open(write_whole("direct", "", 0), O_RDONLY | O_DIRECT);
    const bool has_direct = fd >= 0;
    if (has_direct)
        close(fd);
    variant = &variants[i];
    return variant->io != SX_IO_DIRECT || has_direct;
}

struct fixture {
    struct sx_pool *pool;
    struct sx_storage *storage;
};

static inline struct fixture fixture_create(size_t limit_bytes, int n_threads) {
    struct sx_error error = {0};
    struct fixture fixture;
    assert(sx_pool_create(limit_bytes, &fixture.pool, &error) == SX_OK);
    struct sx_storage_options options = *variant;
    options.pool = fixture.pool;
    options.n_reader_threads = n_threads;
    assert(sx_storage_create(&options, &fixture.storage, &error) == SX_OK);
    return fixture;
}

static inline void fixture_destroy(struct fixture *fixture) {
    sx_storage_destroy(fixture->storage);
    assert(sx_pool_usage(fixture->pool).used_bytes == 0);
    sx_pool_destroy(fixture->pool);
}

/* ---- taking everything ---- */

enum { MOST_ROWS = 400000 };

struct taken {
    struct sx_scan *scan;
    uint8_t *rows; /* how often each row came */
    atomic_int groups, batches;
    int64_t batch_rows;
    atomic_int pages_read;
    pthread_mutex_t lock;
    struct sx_error error;
};

/* Of a dictionary one, of a run of pages one for each 16, and at its ends 8, 4, 2 and 1. */
static inline void check_spans(const struct sx_stored_chunk *chunk) {
    int most = 1, most_of_run = chunk->n_pages / 16 + 8;
    for (int p = 0; p < chunk->n_pages; p++)
        if (chunk->pages[p].bytes && (p == 0 || !chunk->pages[p - 1].bytes))
            most += most_of_run;
    assert(chunk->n_spans <= most);
    for (int p = 0; p < chunk->n_pages; p++) {
        const struct sx_page *page = &chunk->pages[p];
        int at = 0;
        while (page->bytes && at < chunk->n_spans &&
               (page->bytes < chunk->spans[at].bytes ||
                page->bytes + page->stored_bytes > chunk->spans[at].bytes + chunk->spans[at].length_bytes))
            at++;
        assert(at < chunk->n_spans || !page->bytes);
    }
}

/* Every row of the ranges has to be in a page that was read, in each column. */
static inline void check_column(const struct sx_row_group *group, const struct sx_stored_chunk *chunk,
                                struct taken *taken) {
    int64_t row = 0;
    int range = 0;
    check_spans(chunk);
    for (int p = 0; p < chunk->n_pages; p++) {
        const struct sx_page *page = &chunk->pages[p];
        if (page->bytes) /* the bytes can be read to their end */
            assert(page->stored_bytes == 0 || page->bytes[page->stored_bytes - 1] + 1 > 0);
        if (page->bytes && page->kind == SX_PAGE_DICTIONARY) {
            assert(p == 0);
            continue;
        }
        atomic_fetch_add(&taken->pages_read, page->bytes != NULL);
        while (range < group->n_ranges && group->ranges[range].first + group->ranges[range].rows <= row)
            range++;
        if (!page->bytes)
            assert(range == group->n_ranges || group->ranges[range].first >= row + page->n_values);
        row += page->n_values;
    }
    assert(row == group->n_rows && chunk->spec.n_rows == group->n_rows);
}

static inline void note_group(const struct sx_row_group *group, struct taken *taken) {
    int64_t end = 0;
    for (int i = 0; i < group->n_ranges; i++) {
        const struct sx_row_range *range = &group->ranges[i];
        assert(range->rows > 0 && range->first >= end && range->first + range->rows <= group->n_rows);
        end = range->first + range->rows;
        for (int64_t r = range->first; r < end; r++)
            __atomic_fetch_add(&taken->rows[group->first_row + r], 1, __ATOMIC_RELAXED);
    }
    for (int c = 0; c < group->n_columns; c++)
        check_column(group, &group->columns[c], taken);
    atomic_fetch_add(&taken->groups, 1);
}

/* Row groups of a batch follow each other; more than one where so many rows were asked for. */
static inline void note_batch(const struct sx_row_group *first, struct taken *taken) {
    int64_t rows = 0, end = 0;
    assert(first);
    for (const struct sx_row_group *group = first; group; group = group->next) {
        assert(group == first || group->first_row >= end);
        end = group->first_row + group->n_rows;
        rows += group->n_rows;
        note_group(group, taken);
    }
    assert(!first->next || rows <= taken->batch_rows);
    atomic_fetch_add(&taken->batches, 1);
}

static inline void *take_all(void *context) {
    struct taken *taken = context;
    struct sx_error error = {0};
    struct sx_row_group *group;
    int64_t last_row = -1;
    while (sx_scan_next(taken->scan, &group, &error) == SX_OK) {
        if (!group)
            return NULL;
        assert(group->first_row > last_row); /* each caller gets batches in ascending order */
        last_row = group->first_row;
        note_batch(group, taken);
        sx_row_group_release(group);
    }
    pthread_mutex_lock(&taken->lock);
    taken->error = error;
    pthread_mutex_unlock(&taken->lock);
    return NULL;
}

static inline void take_by(struct sx_scan *scan, int n_callers, struct taken *taken) {
    pthread_t threads[8];
    memset(taken->rows, 0, MOST_ROWS);
    taken->scan = scan;
    taken->error = (struct sx_error){0};
    atomic_store(&taken->groups, 0);
    atomic_store(&taken->batches, 0);
    atomic_store(&taken->pages_read, 0);
    for (int i = 1; i < n_callers; i++)
        assert(pthread_create(&threads[i], NULL, take_all, taken) == 0);
    take_all(taken);
    for (int i = 1; i < n_callers; i++)
        pthread_join(threads[i], NULL);
}

static inline struct taken taken_create(void) {
    struct taken taken = {.rows = malloc(MOST_ROWS), .lock = PTHREAD_MUTEX_INITIALIZER};
    assert(taken.rows);
    return taken;
}

/* ---- requests ---- */

struct table {
    const char *files[4];
    int n_files;
    const char *names[8];
    struct sx_type types[8];
    int n_columns;
    int64_t batch_rows;
};

static inline struct sx_scan_request request_of(const struct table *table) {
    return (struct sx_scan_request){.table = "t",
                                    .files = table->files,
                                    .n_files = table->n_files,
                                    .column_names = table->names,
                                    .column_types = table->types,
                                    .n_columns = table->n_columns,
                                    .batch_rows = table->batch_rows,
                                    .queue_bytes = (size_t)64 << 20};
}

static inline struct sx_scan *open_table(struct fixture *fixture, const struct table *table,
                                         const struct sx_prune *prunes, int n_prunes,
                                         const atomic_bool *cancel) {
    struct sx_error error = {0};
    struct sx_scan *scan;
    struct sx_scan_request request = request_of(table);
    request.prunes = prunes;
    request.n_prunes = n_prunes;
    enum sx_status status = sx_scan_open(fixture->storage, &request, cancel, &scan, &error);
    if (status != SX_OK)
        fprintf(stderr, "%s\n", error.text);
    assert(status == SX_OK);
    return scan;
}

#endif
