/* How fast pages are decompressed on the device (backend/cuda/inflate.h): GB/s of decompressed bytes, from
 * the issue to the end of a synchronisation, best and median of REPEATS, and the best time. All pages differ
 * in memory, every 32nd in content. `host` is one thread of sx_codec_decompress.
 *
 *     inflate_rates LIBRARY [CODEC | FILE COLUMN | PAGES]...
 *
 * LIBRARY: libstachio_cuda.so; CODEC: snappy, gzip, lz4 or zstd, by default all; FILE COLUMN: the dictionary
 * and data pages of a Parquet file's column in place of made ones; PAGES: counts, 1 100 1000 5000 by default.
 */
#include <dlfcn.h>
#include <libdeflate.h>
#include <lz4.h>
#include <snappy-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zstd.h>

#include "backend/cuda/inflate.h"
#include "storage/file.h"
#include "storage/page_walk.h"
#include "tensor/codec.h"

enum { N_DISTINCT = 32, REPEATS = 7, GAP_BYTES = 3, PLAIN_ALIGNMENT = 16, MAX_GIB = 12, MAX_ARGUMENTS = 16 };

struct bench {
    const struct sx_backend *backend;
    struct sx_stream *stream;
    struct sx_pool *pool;
    struct sx_error error;
    __typeof__(&cuda_inflate_takes) takes;
    __typeof__(&cuda_inflate) inflate;
};

/* One kind of page. */
struct pages {
    char name[64];
    enum sx_parquet_codec codec;
    int n;
    uint8_t *plain[N_DISTINCT], *stored[N_DISTINCT];
    size_t plain_bytes[N_DISTINCT], stored_bytes[N_DISTINCT];
};

struct wishes {
    const char *codec; /* NULL: all */
    const char *files[MAX_ARGUMENTS], *columns[MAX_ARGUMENTS];
    int n_files;
    int64_t counts[MAX_ARGUMENTS];
    int n_counts;
};

static const struct {
    enum sx_parquet_codec codec;
    const char *name;
} codecs[] = {
    {SX_CODEC_SNAPPY, "snappy"}, {SX_CODEC_GZIP, "gzip"}, {SX_CODEC_LZ4_RAW, "lz4"}, {SX_CODEC_ZSTD, "zstd"}};
enum { N_CODECS = sizeof codecs / sizeof codecs[0] };

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

enum content { NUMBERS, TEXT, PRICES, NOISE, RUNS, N_CONTENTS };
static const char *const content_names[] = {"numbers", "text", "prices", "noise", "runs"};

/* The next bytes of a page, at most 16: what pages of lineitem hold. Text: comments of words; prices: a
 * dictionary of them; noise: codes in few bits; runs: RLE. */
static size_t next_piece(enum content content, uint64_t *random, uint64_t *key, char *piece) {
    static const char *const words[] = {"furiously ", "quickly ", "the ",       "deposits ", "requests ",
                                        "sleep ",     "even ",    "packages. ", "final ",    "above "};
    const char *word = words[next_random(random) % 10];
    switch (content) {
    case NUMBERS: *key = next_random(random) % 4 ? next_random(random) % 100000 : *key + 1; break;
    case TEXT: memcpy(piece, word, strlen(word) + 1); return strlen(word);
    case PRICES: *key = 90000 + next_random(random) % 10400000; break;
    case NOISE: *key = next_random(random) << 33 ^ next_random(random) << 11 ^ next_random(random); break;
    default: *key += next_random(random) % 64 == 0;
    }
    memcpy(piece, key, sizeof *key);
    return sizeof *key;
}

static void fill_page(enum content content, uint64_t *random, uint8_t *page, size_t bytes) {
    uint64_t key = 0;
    for (size_t at = 0; at < bytes;) {
        char piece[16];
        size_t length = next_piece(content, random, &key, piece);
        length = length < bytes - at ? length : bytes - at;
        memcpy(page + at, piece, length);
        at += length;
    }
}

static size_t compress_gzip(const uint8_t *plain, size_t bytes, uint8_t *out, size_t room) {
    enum { LEVEL = 6 };
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(LEVEL);
    if (!compressor)
        fail("no memory");
    const size_t size = libdeflate_gzip_compress(compressor, plain, bytes, out, room);
    libdeflate_free_compressor(compressor);
    return size;
}

static size_t compress_page(enum sx_parquet_codec codec, const uint8_t *plain, size_t bytes, uint8_t *out,
                            size_t room) {
    size_t size = room;
    if (codec == SX_CODEC_SNAPPY)
        (void)snappy_compress((const char *)plain, bytes, (char *)out, &size);
    else if (codec == SX_CODEC_GZIP)
        size = compress_gzip(plain, bytes, out, room);
    else if (codec == SX_CODEC_ZSTD)
        size = ZSTD_compress(out, room, plain, bytes, 1);
    else
        size = (size_t)LZ4_compress_default((const char *)plain, (char *)out, (int)bytes, (int)room);
    return size;
}

static uint8_t *take_bytes(size_t bytes) {
    uint8_t *taken = malloc(bytes);
    if (!taken)
        fail("no memory");
    return taken;
}

static void make_pages(struct pages *pages, enum content content, size_t bytes) {
    const size_t room = 2 * bytes + 1024;
    uint64_t random = 42;
    for (int i = 0; i < N_DISTINCT; i++) {
        pages->plain[i] = take_bytes(bytes);
        pages->stored[i] = take_bytes(room);
        fill_page(content, &random, pages->plain[i], bytes);
        pages->plain_bytes[i] = bytes;
        pages->stored_bytes[i] = compress_page(pages->codec, pages->plain[i], bytes, pages->stored[i], room);
    }
    pages->n = N_DISTINCT;
}

/* The chunk's dictionary page, or its first data page. */
static void add_page(struct pages *pages, const struct sx_page_list *list, bool wants_dictionary) {
    struct sx_codecs *state = NULL;
    struct sx_error error;
    for (int p = 0; p < list->count; p++) {
        const struct sx_page *page = &list->pages[p];
        const size_t levels = page->definition_bytes + page->repetition_bytes;
        const int i = pages->n;
        if ((page->kind == SX_PAGE_DICTIONARY) != wants_dictionary || !page->is_compressed ||
            page->plain_bytes <= levels)
            continue;
        pages->stored_bytes[i] = page->stored_bytes - levels;
        pages->plain_bytes[i] = page->plain_bytes - levels;
        pages->stored[i] = take_bytes(pages->stored_bytes[i]);
        pages->plain[i] = take_bytes(pages->plain_bytes[i]);
        memcpy(pages->stored[i], page->bytes + levels, pages->stored_bytes[i]);
        if (sx_codec_decompress(&state, pages->codec, pages->stored[i], pages->stored_bytes[i],
                                pages->plain[i], pages->plain_bytes[i], &error) != SX_OK)
            fail(error.text);
        pages->n++;
        break;
    }
    sx_codecs_destroy(state);
}

/* Of the first row groups. */
static void read_pages(struct pages *pages, const char *path, const char *name, bool wants_dictionary) {
    struct sx_file_stamp stamp;
    struct sx_footer *footer = NULL;
    struct sx_error error = {0};
    int fd = -1;
    if (sx_file_open(path, &fd, &stamp, &error) != SX_OK ||
        sx_footer_read(path, fd, stamp.size_bytes, &footer, &error) != SX_OK)
        fail(error.text);
    const int found = sx_footer_find(footer, name);
    if (found < 0)
        fail("the file has no such column");
    for (int g = 0; g < footer->n_groups && g < N_DISTINCT; g++) {
        struct sx_file_column *column = &footer->columns[found];
        const struct sx_chunk_meta *chunk = &footer->groups[g].chunks[column->leaf];
        struct sx_page_list list = {0};
        struct sx_page_walk walk = {.column = column, .chunk = chunk, .list = &list};
        uint8_t *bytes = take_bytes((size_t)chunk->stored_bytes);
        if (sx_file_read(fd, sx_chunk_begin(chunk), (size_t)chunk->stored_bytes, bytes, &error) != SX_OK ||
            sx_page_walk_chunk(&walk, bytes, (size_t)chunk->stored_bytes, &error) != SX_OK)
            fail(error.text);
        pages->codec = (enum sx_parquet_codec)chunk->codec;
        add_page(pages, &list, wants_dictionary);
        free(list.pages);
        free(bytes);
    }
    sx_footer_release(footer);
    sx_file_close(fd);
}

static void free_pages(struct pages *pages) {
    for (int i = 0; i < pages->n; i++) {
        free(pages->plain[i]);
        free(pages->stored[i]);
    }
}

/* Of n pages; plain bytes with what aligns each page. */
struct sizes {
    size_t stored, plain, room;
};

static size_t room_of(const struct pages *pages, int64_t i) {
    return (pages->plain_bytes[i % pages->n] + PLAIN_ALIGNMENT - 1) / PLAIN_ALIGNMENT * PLAIN_ALIGNMENT;
}

static struct sizes sizes_of(const struct pages *pages, int64_t n) {
    struct sizes sizes = {0};
    for (int64_t i = 0; i < n; i++) {
        sizes.stored += pages->stored_bytes[i % pages->n] + GAP_BYTES;
        sizes.plain += pages->plain_bytes[i % pages->n];
        sizes.room += room_of(pages, i);
    }
    return sizes;
}

/* ---- the device ---- */

static void must(struct bench *bench, enum sx_status status) {
    if (status != SX_OK)
        fail(bench->stream ? bench->stream->error.text : bench->error.text);
}

static struct sx_tensor take_tensor(struct bench *bench, struct sx_pool *pool, size_t bytes) {
    struct sx_tensor tensor = {0};
    must(bench, sx_tensor_create(pool, sx_type_of(SX_TYPE_U8), (int64_t)bytes, false, &tensor,
                                 &bench->stream->error));
    return tensor;
}

/* All pages' stored bytes, in device memory, each behind a gap so that pages begin anywhere. */
static struct sx_tensor send_stored(struct bench *bench, const struct pages *pages, int64_t n) {
    struct sx_batch host = {0}, device = {0};
    const size_t bytes = sizes_of(pages, n).stored;
    must(bench, sx_batch_create(1, (int64_t)bytes, &host, &bench->stream->error));
    host.columns[0] = take_tensor(bench, bench->pool, bytes);
    uint8_t *at = host.columns[0].values;
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = i % pages->n;
        memcpy(at + GAP_BYTES, pages->stored[k], pages->stored_bytes[k]);
        at += GAP_BYTES + pages->stored_bytes[k];
    }
    must(bench, bench->backend->ops.batch_from_host(bench->stream, &host, &device));
    struct sx_tensor stored;
    sx_tensor_share(&device.columns[0], &stored);
    sx_batch_release(&host);
    sx_batch_release(&device);
    return stored;
}

static void check_page(struct bench *bench, const struct pages *pages, const struct sx_tensor *plain,
                       const struct cuda_inflate_item *item) {
    struct sx_batch device = {0}, host = {0};
    const int64_t bytes = (int64_t)item->plain_bytes;
    must(bench, sx_batch_create(1, bytes, &device, &bench->stream->error));
    sx_tensor_slice(plain, (char *)item->plain - (char *)plain->values, bytes, &device.columns[0]);
    must(bench, bench->backend->ops.batch_to_host(bench->stream, &device, &host));
    if (memcmp(host.columns[0].values, pages->plain[item->what % (uint32_t)pages->n], item->plain_bytes) != 0)
        fail("a page came out wrong");
    sx_batch_release(&device);
    sx_batch_release(&host);
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Ascending times. */
static void time_items(struct bench *bench, enum sx_parquet_codec codec,
                       const struct cuda_inflate_item *items, int64_t n, double *out_times) {
    for (int r = -1; r < REPEATS; r++) {
        const double begin = seconds();
        must(bench, bench->inflate((struct cuda_stream *)bench->stream, codec, items, n));
        must(bench, bench->backend->ops.synchronise(bench->stream, "the pages are there"));
        if (r >= 0)
            out_times[r] = seconds() - begin;
    }
    qsort(out_times, REPEATS, sizeof *out_times, compare_doubles);
}

static double host_rate(const struct pages *pages) {
    struct sx_codecs *state = NULL;
    struct sx_error error;
    double taken = 0;
    for (int i = 0; i < pages->n; i++) {
        uint8_t *plain = take_bytes(pages->plain_bytes[i]);
        const double begin = seconds();
        if (sx_codec_decompress(&state, pages->codec, pages->stored[i], pages->stored_bytes[i], plain,
                                pages->plain_bytes[i], &error) != SX_OK)
            fail(error.text);
        taken += seconds() - begin;
        free(plain);
    }
    sx_codecs_destroy(state);
    return (double)sizes_of(pages, pages->n).plain / taken / 1e9;
}

static struct cuda_inflate_item *list_items(const struct pages *pages, int64_t n, char *stored, char *plain) {
    struct cuda_inflate_item *items = calloc((size_t)n, sizeof *items);
    if (!items)
        fail("no memory");
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = i % pages->n;
        items[i] = (struct cuda_inflate_item){stored + GAP_BYTES, pages->stored_bytes[k], plain,
                                              pages->plain_bytes[k], (uint32_t)i};
        stored += GAP_BYTES + pages->stored_bytes[k];
        plain += room_of(pages, i);
    }
    return items;
}

static void run(struct bench *bench, const struct pages *pages, int64_t n) {
    double times[REPEATS];
    const struct sizes sizes = sizes_of(pages, n);
    struct sx_tensor stored = send_stored(bench, pages, n);
    struct sx_tensor plain = take_tensor(bench, bench->stream->pool, sizes.room);
    struct cuda_inflate_item *items = list_items(pages, n, stored.values, plain.values);
    time_items(bench, pages->codec, items, n, times);
    check_page(bench, pages, &plain, &items[0]);
    check_page(bench, pages, &plain, &items[n - 1]);
    const double gigabytes = (double)sizes.plain / 1e9;
    printf("%-32s %6.0f %7lld %6.2f %9.3f %9.1f %9.1f %8.2f\n", pages->name,
           (double)sizes.plain / (double)n / 1024, (long long)n, (double)sizes.plain / (double)sizes.stored,
           times[0] * 1e3, gigabytes / times[0], gigabytes / times[REPEATS / 2], host_rate(pages));
    fflush(stdout);
    free(items);
    sx_tensor_release(&stored);
    sx_tensor_release(&plain);
}

/* ---- all of them ---- */

/* With each number of pages. */
static void run_pages(struct bench *bench, const struct wishes *wishes, struct pages *pages) {
    static const int64_t usual[] = {1, 100, 1000, 5000};
    const int64_t *counts = wishes->n_counts ? wishes->counts : usual;
    const int n_counts = wishes->n_counts ? wishes->n_counts : (int)(sizeof usual / sizeof usual[0]);
    if (pages->n > 0 && bench->takes(pages->codec, pages->stored_bytes[0], pages->plain_bytes[0]))
        for (int i = 0; i < n_counts; i++)
            if (sizes_of(pages, counts[i]).room <= (size_t)MAX_GIB << 30)
                run(bench, pages, counts[i]);
    free_pages(pages);
}

static void run_files(struct bench *bench, const struct wishes *wishes) {
    for (int f = 0; f < wishes->n_files; f++)
        for (int k = 0; k < 2; k++) {
            struct pages pages = {0};
            read_pages(&pages, wishes->files[f], wishes->columns[f], k == 0);
            snprintf(pages.name, sizeof pages.name, "%s, %s", wishes->columns[f], k ? "data" : "dictionary");
            run_pages(bench, wishes, &pages);
        }
}

static void run_made(struct bench *bench, const struct wishes *wishes) {
    static const size_t sizes[] = {160 << 10, 1 << 20};
    for (int c = 0; c < N_CODECS; c++)
        for (int k = 0; k < 2 * N_CONTENTS; k++) {
            struct pages pages = {.codec = codecs[c].codec};
            if (wishes->codec && strcmp(wishes->codec, codecs[c].name) != 0)
                continue;
            snprintf(pages.name, sizeof pages.name, "%s, %s", codecs[c].name, content_names[k / 2]);
            make_pages(&pages, (enum content)(k / 2), sizes[k % 2]);
            run_pages(bench, wishes, &pages);
        }
}

/* False: what isn't known. */
static bool parse_wishes(int argc, char **argv, struct wishes *wishes) {
    if (argc < 2 || argc > MAX_ARGUMENTS)
        return false;
    for (int i = 2; i < argc; i++) {
        bool is_codec = false;
        for (int c = 0; c < N_CODECS; c++)
            is_codec |= strcmp(argv[i], codecs[c].name) == 0;
        if (is_codec) {
            wishes->codec = argv[i];
        } else if (atoll(argv[i]) > 0) {
            wishes->counts[wishes->n_counts++] = atoll(argv[i]);
        } else if (i + 1 < argc) {
            wishes->files[wishes->n_files] = argv[i];
            wishes->columns[wishes->n_files++] = argv[++i];
        } else {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv) {
    struct wishes wishes = {0};
    if (!parse_wishes(argc, argv, &wishes)) {
        fprintf(stderr, "usage: inflate_rates LIBRARY [CODEC | FILE COLUMN | PAGES]...\n");
        return 2;
    }
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail(dlerror());
    struct bench bench = {.takes = (__typeof__(bench.takes))(uintptr_t)dlsym(library, "cuda_inflate_takes"),
                          .inflate = (__typeof__(bench.inflate))(uintptr_t)dlsym(library, "cuda_inflate")};
    sx_cuda_open_function open_device = (sx_cuda_open_function)(uintptr_t)dlsym(library, "sx_cuda_open");
    sx_cuda_close_function close_device = (sx_cuda_close_function)(uintptr_t)dlsym(library, "sx_cuda_close");
    const char *name;
    if (!bench.takes || !bench.inflate || !open_device || !close_device)
        fail("this is not the CUDA backend");
    must(&bench, open_device(NULL, 0, 1, &bench.backend, &name, &bench.error));
    must(&bench, sx_pool_create(0, &bench.pool, &bench.error));
    must(&bench,
         bench.backend->ops.stream_create(bench.backend, bench.pool, NULL, &bench.stream, &bench.error));
    printf("%s\n%-32s %6s %7s %6s %9s %9s %9s %8s\n", name, "content", "KiB", "pages", "ratio", "best ms",
           "best GB/s", "median", "host");
    if (wishes.n_files)
        run_files(&bench, &wishes);
    else
        run_made(&bench, &wishes);
    bench.backend->ops.stream_destroy(bench.stream);
    close_device(bench.backend);
    sx_pool_destroy(bench.pool);
    return 0;
}
