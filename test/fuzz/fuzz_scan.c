/* Any bytes as a Parquet file: its readable columns scanned with filters on all of them, so that page
 * headers, page index and bloom filters are met too. The end is made to look like that of a file. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "storage/scan_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_COLUMNS = 8, LEAST_BYTES = 12 };

struct request {
    const char *names[MOST_COLUMNS];
    struct sx_type types[MOST_COLUMNS];
    struct sx_scalar values[MOST_COLUMNS];
    struct sx_prune prunes[MOST_COLUMNS];
    int n_columns;
};

static int write_file(const uint8_t *data, size_t size) {
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    uint8_t *bytes = malloc(size);
    static const uint8_t magic[] = {'P', 'A', 'R', '1'};
    if (fd >= 0 && bytes) {
        uint32_t length;
        memcpy(bytes, data, size);
        memcpy(&length, bytes + size - 8, sizeof length);
        if (length == 0 || length > size - LEAST_BYTES)
            length = (uint32_t)(size - LEAST_BYTES);
        memcpy(bytes + size - 8, &length, sizeof length);
        memcpy(bytes + size - sizeof magic, magic, sizeof magic);
        if (write(fd, bytes, size) != (ssize_t)size) {
            close(fd);
            fd = -1;
        }
    }
    free(bytes);
    return fd;
}

static void choose_columns(const struct sx_footer *footer, uint8_t seed, struct request *request) {
    for (int c = 0; c < footer->n_columns && request->n_columns < MOST_COLUMNS; c++) {
        if (footer->columns[c].unreadable)
            continue;
        int n = request->n_columns++;
        request->names[n] = footer->columns[c].name;
        request->types[n] = footer->columns[c].type;
        request->values[n] = (struct sx_scalar){.type = footer->columns[c].type};
        if (footer->columns[c].type.id == SX_TYPE_VARCHAR)
            request->values[n].v.text.bytes = "x", request->values[n].v.text.length_bytes = 1;
        request->prunes[n] = (struct sx_prune){.column = n,
                                               .op = (enum sx_prune_op)((seed + n) % (SX_PRUNE_NOT_NULL + 1)),
                                               .values = &request->values[n],
                                               .n_values = 1};
    }
}

static void touch(const struct sx_row_group *group) {
    volatile uint8_t sum = 0;
    for (int c = 0; c < group->n_columns; c++) {
        int64_t rows = 0;
        for (int p = 0; p < group->columns[c].n_pages; p++) {
            const struct sx_page *page = &group->columns[c].pages[p];
            if (page->bytes && page->stored_bytes > 0)
                sum = (uint8_t)(sum + page->bytes[0] + page->bytes[page->stored_bytes - 1]);
            rows += page->bytes && page->kind == SX_PAGE_DICTIONARY ? 0 : page->n_values;
        }
        assert(rows == group->n_rows);
    }
}

static void scan_all(struct sx_storage *storage, const char *path, struct request *request, int n_prunes) {
    struct sx_error error = {0};
    struct sx_scan *scan;
    struct sx_row_group *group;
    struct sx_scan_request full = {
        .files = &path,
        .n_files = 1,
        .column_names = request->names,
        .column_types = request->types,
        .n_columns = request->n_columns,
        .prunes = request->prunes,
        .n_prunes = n_prunes,
    };
    if (sx_scan_open(storage, &full, NULL, &scan, &error) != SX_OK) {
        assert(error.text[0]);
        return;
    }
    while (sx_scan_next(scan, &group, &error) == SX_OK && group) {
        touch(group);
        sx_row_group_release(group);
    }
    sx_scan_close(scan);
}

static void try_file(struct sx_pool *pool, const char *path, uint8_t seed) {
    struct sx_error error = {0};
    struct sx_storage *storage;
    struct sx_footer *footer;
    struct sx_file_stamp stamp;
    struct request request = {0};
    const struct sx_storage_options options = {.pool = pool};
    assert(sx_storage_create(&options, &storage, &error) == SX_OK);
    if (sx_footer_cache_get(storage->footers, path, &footer, &stamp, &error) == SX_OK) {
        choose_columns(footer, seed, &request);
        scan_all(storage, path, &request, 0);
        scan_all(storage, path, &request, request.n_columns);
        sx_footer_release(footer);
    }
    sx_storage_destroy(storage);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct sx_error error = {0};
    struct sx_pool *pool;
    char path[64];
    if (size <= LEAST_BYTES || size > (size_t)1 << 20)
        return 0;
    int fd = write_file(data, size);
    if (fd < 0)
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert(sx_pool_create((size_t)64 << 20, &pool, &error) == SX_OK);
    try_file(pool, path, data[0]);
    assert(sx_pool_usage(pool).used_bytes == 0);
    sx_pool_destroy(pool);
    close(fd);
    return 0;
}
