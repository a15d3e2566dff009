/* The least a scan of one column can take: its pages are read and decompressed by the codec's library, on N
 * threads, and nothing else is done. Prints: rows, stored bytes, plain bytes, seconds.
 *
 *     scan_bound THREADS COLUMN TYPE FILE...        TYPE: i64 | decimal:P:S | varchar | date | i32 | f64 */
#include <pthread.h>
#include <snappy-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zstd.h>

#include "storage/scan.h"

struct bound {
    struct sx_scan *scan;
    int64_t rows;
    int64_t stored_bytes;
    int64_t plain_bytes;
    pthread_mutex_t lock;
};

static int parse_type(const char *text, struct sx_type *out_type) {
    int precision, scale;
    if (sscanf(text, "decimal:%d:%d", &precision, &scale) == 2) {
        *out_type = sx_type_decimal(precision, scale);
        return 0;
    }
    static const struct {
        const char *name;
        enum sx_type_id id;
    } names[] = {{"i32", SX_TYPE_I32},
                 {"i64", SX_TYPE_I64},
                 {"date", SX_TYPE_DATE},
                 {"f64", SX_TYPE_F64},
                 {"varchar", SX_TYPE_VARCHAR}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i].name, text) != 0)
            continue;
        *out_type = sx_type_of(names[i].id);
        return 0;
    }
    return -1;
}

/* Decompresses one page into `scratch`; uncompressed bytes are copied. */
static void expand(enum sx_parquet_codec codec, const struct sx_page *page, char *scratch) {
    size_t plain = page->plain_bytes;
    if (!page->is_compressed || codec == SX_CODEC_UNCOMPRESSED)
        memcpy(scratch, page->bytes, page->stored_bytes);
    else if (codec == SX_CODEC_SNAPPY)
        (void)snappy_uncompress((const char *)page->bytes, page->stored_bytes, scratch, &plain);
    else if (codec == SX_CODEC_ZSTD)
        (void)ZSTD_decompress(scratch, plain, page->bytes, page->stored_bytes);
}

static void *work(void *argument) {
    struct bound *bound = argument;
    size_t scratch_bytes = (size_t)64 << 20;
    char *scratch = malloc(scratch_bytes);
    int64_t rows = 0, stored = 0, plain = 0;
    struct sx_row_group *group;
    while (scratch && sx_scan_next(bound->scan, &group, NULL) == SX_OK && group) {
        const struct sx_stored_chunk *chunk = &group->columns[0];
        for (int i = 0; i < chunk->n_pages; i++) {
            if (chunk->pages[i].plain_bytes > scratch_bytes)
                continue;
            expand(chunk->spec.codec, &chunk->pages[i], scratch);
            stored += chunk->pages[i].stored_bytes;
            plain += chunk->pages[i].plain_bytes;
        }
        rows += group->n_rows;
        sx_row_group_release(group);
    }
    free(scratch);
    pthread_mutex_lock(&bound->lock);
    bound->rows += rows;
    bound->stored_bytes += stored;
    bound->plain_bytes += plain;
    pthread_mutex_unlock(&bound->lock);
    return NULL;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    struct sx_error error = {0};
    struct sx_storage *storage;
    struct bound bound = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct sx_type type;
    if (argc < 5 || parse_type(argv[3], &type) != 0) {
        fprintf(stderr, "usage: scan_bound THREADS COLUMN TYPE FILE...\n");
        return 2;
    }
    int threads = atoi(argv[1]);
    struct sx_scan_request request = {.table = "bound",
                                      .files = (const char *const *)&argv[4],
                                      .n_files = argc - 4,
                                      .column_names = (const char *const *)&argv[2],
                                      .column_types = &type,
                                      .n_columns = 1,
                                      .keep_dictionaries = true,
                                      .queue_bytes = (size_t)64 << 20};
    struct sx_storage_options options = {.n_reader_threads = threads};
    double begin = seconds();
    if (threads < 1 || threads > 256 || sx_pool_create(0, &options.pool, &error) != SX_OK ||
        sx_storage_create(&options, &storage, &error) != SX_OK ||
        sx_scan_open(storage, &request, NULL, &bound.scan, &error) != SX_OK) {
        fprintf(stderr, "scan_bound: %s\n", error.text);
        return 1;
    }
    pthread_t members[256];
    for (int i = 0; i < threads; i++)
        if (pthread_create(&members[i], NULL, work, &bound) != 0)
            return 1;
    for (int i = 0; i < threads; i++)
        pthread_join(members[i], NULL);
    printf("%lld %lld %lld %.6f\n", (long long)bound.rows, (long long)bound.stored_bytes,
           (long long)bound.plain_bytes, seconds() - begin);
    sx_scan_close(bound.scan);
    sx_storage_destroy(storage);
    sx_pool_destroy(options.pool);
    return 0;
}
