/* How fast pages are decompressed on the device (backend/cuda/inflate.h): GB/s of decompressed bytes, from
 * the issue to the end of a synchronisation, best and median of REPEATS. All pages differ in memory, every
 * 32nd in content. `checks` is the share of the time that looking for damage takes; `host` one thread of the
 * codec's library.
 *
 *     inflate_rates LIBRARY [PAGES...]        LIBRARY: libstachio_cuda.so; PAGES: 1000 4000 10000 by default
 */
#include <dlfcn.h>
#include <lz4.h>
#include <snappy-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zstd.h>

#include "backend/cuda/inflate.h"
#include "tensor/codec.h"

enum { N_DISTINCT = 32, REPEATS = 7, GAP_BYTES = 3, MAX_GIB = 12 };

struct bench {
    const struct sx_backend *backend;
    struct sx_stream *stream;
    struct sx_pool *pool;
    struct sx_error error;
    __typeof__(&cuda_inflate_has) has;
    __typeof__(&cuda_inflate) inflate;
};

/* One kind of page. */
struct pages {
    enum sx_parquet_codec codec;
    size_t plain_bytes;
    uint8_t *plain[N_DISTINCT], *stored[N_DISTINCT];
    size_t stored_bytes[N_DISTINCT];
};

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void fail(const char *what) {
    fprintf(stderr, "inflate_rates: %s\n", what);
    exit(1);
}

/* ---- pages ---- */

static uint64_t next_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Comments of words, or keys and prices of 8 bytes: about what pages of lineitem hold. */
static void fill_page(bool is_text, uint64_t *random, uint8_t *page, size_t bytes) {
    static const char *const words[] = {"furiously ", "quickly ", "the ",       "deposits ", "requests ",
                                        "sleep ",     "even ",    "packages. ", "final ",    "above "};
    uint64_t key = 0;
    for (size_t at = 0; at < bytes;) {
        char piece[16];
        size_t length = sizeof key;
        if (is_text) {
            const char *word = words[next_random(random) % 10];
            length = strlen(word);
            memcpy(piece, word, length);
        } else {
            key = next_random(random) % 4 ? next_random(random) % 100000 : key + 1;
            memcpy(piece, &key, length);
        }
        length = length < bytes - at ? length : bytes - at;
        memcpy(page + at, piece, length);
        at += length;
    }
}

static size_t compress_page(enum sx_parquet_codec codec, const uint8_t *plain, size_t bytes, uint8_t *out,
                            size_t room) {
    size_t size = room;
    if (codec == SX_CODEC_SNAPPY)
        (void)snappy_compress((const char *)plain, bytes, (char *)out, &size);
    else if (codec == SX_CODEC_ZSTD)
        size = ZSTD_compress(out, room, plain, bytes, 1);
    else
        size = (size_t)LZ4_compress_default((const char *)plain, (char *)out, (int)bytes, (int)room);
    return size;
}

static void make_pages(struct pages *pages, bool is_text) {
    const size_t room = 2 * pages->plain_bytes + 1024;
    uint64_t random = 42;
    for (int i = 0; i < N_DISTINCT; i++) {
        pages->plain[i] = malloc(pages->plain_bytes);
        pages->stored[i] = malloc(room);
        if (!pages->plain[i] || !pages->stored[i])
            fail("no memory");
        fill_page(is_text, &random, pages->plain[i], pages->plain_bytes);
        pages->stored_bytes[i] =
            compress_page(pages->codec, pages->plain[i], pages->plain_bytes, pages->stored[i], room);
    }
}

static void free_pages(struct pages *pages) {
    for (int i = 0; i < N_DISTINCT; i++) {
        free(pages->plain[i]);
        free(pages->stored[i]);
    }
}

/* ---- the device ---- */

static void must(struct bench *bench, enum sx_status status) {
    if (status != SX_OK)
        fail(bench->stream ? bench->stream->error.text : bench->error.text);
}

/* All pages' stored bytes, in device memory, each behind a gap so that pages begin anywhere. */
static struct sx_tensor send_stored(struct bench *bench, const struct pages *pages, int64_t n) {
    struct sx_batch host = {0}, device = {0};
    size_t bytes = 0;
    for (int64_t i = 0; i < n; i++)
        bytes += pages->stored_bytes[i % N_DISTINCT] + GAP_BYTES;
    must(bench, sx_batch_create(1, (int64_t)(bytes / 8 + 1), &host, &bench->stream->error));
    must(bench, sx_tensor_create(bench->pool, sx_type_of(SX_TYPE_U64), host.rows, false, &host.columns[0],
                                 &bench->stream->error));
    uint8_t *at = host.columns[0].values;
    for (int64_t i = 0; i < n; i++) {
        memcpy(at + GAP_BYTES, pages->stored[i % N_DISTINCT], pages->stored_bytes[i % N_DISTINCT]);
        at += GAP_BYTES + pages->stored_bytes[i % N_DISTINCT];
    }
    must(bench, bench->backend->ops.batch_from_host(bench->stream, &host, &device));
    struct sx_tensor stored;
    sx_tensor_share(&device.columns[0], &stored);
    sx_batch_release(&host);
    sx_batch_release(&device);
    return stored;
}

static void check_page(struct bench *bench, const struct pages *pages, const struct sx_tensor *plain,
                       int64_t i) {
    struct sx_batch device = {0}, host = {0};
    const int64_t words = (int64_t)(pages->plain_bytes / 8);
    must(bench, sx_batch_create(1, words, &device, &bench->stream->error));
    sx_tensor_slice(plain, i * words, words, &device.columns[0]);
    must(bench, bench->backend->ops.batch_to_host(bench->stream, &device, &host));
    if (memcmp(host.columns[0].values, pages->plain[i % N_DISTINCT], pages->plain_bytes) != 0)
        fail("a page came out wrong");
    sx_batch_release(&device);
    sx_batch_release(&host);
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Ascending times; a fault is one of all pages. */
static void time_items(struct bench *bench, enum sx_parquet_codec codec,
                       const struct cuda_inflate_item *items, int64_t n, bool is_damaged, double *out_times) {
    for (int r = -1; r < REPEATS; r++) {
        const double begin = seconds();
        must(bench, bench->inflate((struct cuda_stream *)bench->stream, codec, items, n));
        const enum sx_status status = bench->backend->ops.synchronise(bench->stream, "the pages are there");
        if (status != (is_damaged ? SX_FILE : SX_OK))
            fail(bench->stream->error.text);
        if (r >= 0)
            out_times[r] = seconds() - begin;
    }
    qsort(out_times, REPEATS, sizeof *out_times, compare_doubles);
}

static double host_rate(const struct pages *pages) {
    struct sx_codecs *codecs = NULL;
    struct sx_error error;
    uint8_t *plain = malloc(pages->plain_bytes);
    if (!plain)
        fail("no memory");
    const double begin = seconds();
    for (int i = 0; i < N_DISTINCT; i++)
        if (sx_codec_decompress(&codecs, pages->codec, pages->stored[i], pages->stored_bytes[i], plain,
                                pages->plain_bytes, &error) != SX_OK)
            fail(error.text);
    const double taken = seconds() - begin;
    sx_codecs_destroy(codecs);
    free(plain);
    return (double)pages->plain_bytes * N_DISTINCT / taken / 1e9;
}

static void run(struct bench *bench, const struct pages *pages, const char *name, int64_t n) {
    double times[REPEATS], checks[REPEATS];
    struct sx_tensor stored = send_stored(bench, pages, n), plain = {0};
    must(bench,
         sx_tensor_create(bench->stream->pool, sx_type_of(SX_TYPE_U64), n * (int64_t)(pages->plain_bytes / 8),
                          false, &plain, &bench->stream->error));
    struct cuda_inflate_item *items = calloc((size_t)n, sizeof *items);
    if (!items)
        fail("no memory");
    char *at = stored.values;
    for (int64_t i = 0; i < n; i++) {
        const size_t bytes = pages->stored_bytes[i % N_DISTINCT];
        items[i] = (struct cuda_inflate_item){at + GAP_BYTES, bytes,
                                              (char *)plain.values + i * (int64_t)pages->plain_bytes,
                                              pages->plain_bytes, (uint32_t)i};
        at += GAP_BYTES + bytes;
    }
    time_items(bench, pages->codec, items, n, false, times);
    check_page(bench, pages, &plain, 0);
    check_page(bench, pages, &plain, n - 1);
    /* with a byte too many all of a page is checked, and nothing of it decompressed */
    for (int64_t i = 0; i < n; i++)
        items[i].stored_bytes++;
    checks[REPEATS / 2] = 0;
    if (pages->codec != SX_CODEC_LZ4_RAW)
        time_items(bench, pages->codec, items, n, true, checks);
    const double gigabytes = (double)n * (double)pages->plain_bytes / 1e9;
    printf("%-16s %6zu %7lld %6.2f %9.1f %9.1f %8.0f%% %8.2f\n", name, pages->plain_bytes >> 10, (long long)n,
           (double)pages->plain_bytes / (double)pages->stored_bytes[0], gigabytes / times[0],
           gigabytes / times[REPEATS / 2], 100 * checks[REPEATS / 2] / times[REPEATS / 2], host_rate(pages));
    fflush(stdout);
    free(items);
    sx_tensor_release(&stored);
    sx_tensor_release(&plain);
}

/* ---- all of them ---- */

static void run_all(struct bench *bench, int n_counts, const int64_t *counts) {
    static const struct {
        enum sx_parquet_codec codec;
        const char *name[2];
    } codecs[] = {{SX_CODEC_SNAPPY, {"snappy, numbers", "snappy, text"}},
                  {SX_CODEC_LZ4_RAW, {"lz4, numbers", "lz4, text"}},
                  {SX_CODEC_ZSTD, {"zstd, numbers", "zstd, text"}}};
    static const size_t sizes[] = {160 << 10, 1 << 20};
    printf("%-16s %6s %7s %6s %9s %9s %9s %8s\n", "codec, content", "KiB", "pages", "ratio", "best GB/s",
           "median", "checks", "host");
    for (int k = 0; k < 6; k++)
        for (int s = 0; s < 2; s++) {
            struct pages pages = {.codec = codecs[k / 2].codec, .plain_bytes = sizes[s]};
            if (!bench->has((struct cuda_device *)(uintptr_t)bench->backend, pages.codec))
                continue; /* nvCOMP was not found */
            make_pages(&pages, k % 2);
            for (int i = 0; i < n_counts; i++)
                if (counts[i] * (int64_t)sizes[s] <= (int64_t)MAX_GIB << 30)
                    run(bench, &pages, codecs[k / 2].name[k % 2], counts[i]);
            free_pages(&pages);
        }
}

int main(int argc, char **argv) {
    int64_t counts[16] = {1000, 4000, 10000};
    int n_counts = argc > 2 ? 0 : 3;
    for (int i = 2; i < argc && n_counts < 16; i++)
        if (atoll(argv[i]) > 0)
            counts[n_counts++] = atoll(argv[i]);
    if (argc < 2 || n_counts == 0) {
        fprintf(stderr, "usage: inflate_rates LIBRARY [PAGES...]\n");
        return 2;
    }
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail(dlerror());
    struct bench bench = {.has = (__typeof__(bench.has))(uintptr_t)dlsym(library, "cuda_inflate_has"),
                          .inflate = (__typeof__(bench.inflate))(uintptr_t)dlsym(library, "cuda_inflate")};
    sx_cuda_open_function open_device = (sx_cuda_open_function)(uintptr_t)dlsym(library, "sx_cuda_open");
    sx_cuda_close_function close_device = (sx_cuda_close_function)(uintptr_t)dlsym(library, "sx_cuda_close");
    const char *name;
    if (!bench.has || !bench.inflate || !open_device || !close_device)
        fail("this is not the CUDA backend");
    must(&bench, open_device(0, &bench.backend, &name, &bench.error));
    must(&bench, sx_pool_create(0, &bench.pool, &bench.error));
    must(&bench,
         bench.backend->ops.stream_create(bench.backend, bench.pool, NULL, &bench.stream, &bench.error));
    printf("%s\n", name);
    run_all(&bench, n_counts, counts);
    bench.backend->ops.stream_destroy(bench.stream);
    close_device(bench.backend);
    sx_pool_destroy(bench.pool);
    return 0;
}
