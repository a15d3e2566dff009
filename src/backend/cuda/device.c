/* The device, and the table of the backend's primitives. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cache.h"
#include "backend/cuda/inflate.h"
#include "backend/cuda/sort.h"

/* Rows that a scan puts into a batch: enough pages to keep all processors at work, and so few that some
 * batches fit into the device's memory, with CHUNK_BYTES for each row. */
enum { MOST_CHUNK_ROWS = 16 << 20, LEAST_CHUNK_ROWS = 128 << 10, CHUNK_BYTES = 4096 };

static int64_t chunk_rows(size_t limit_bytes) {
    const int64_t rows = (int64_t)(limit_bytes / CHUNK_BYTES);
    return rows < LEAST_CHUNK_ROWS ? LEAST_CHUNK_ROWS : rows > MOST_CHUNK_ROWS ? MOST_CHUNK_ROWS : rows;
}

static const struct sx_backend_ops operations = {
    .stream_create = sx_cuda_stream_create,
    .stream_destroy = sx_cuda_stream_destroy,
    .synchronise = sx_cuda_synchronise,
    .prioritise = sx_cuda_prioritise,
    .batch_rows = sx_cuda_batch_rows,
    .batch_to_host = sx_cuda_batch_to_host,
    .batch_from_host = sx_cuda_batch_from_host,
    .constant = sx_cuda_constant,
    .eval_create = sx_cuda_eval_create,
    .eval_destroy = sx_cuda_eval_destroy,
    .eval_run = sx_cuda_eval_run,
    .eval_select = sx_cuda_eval_select,
    .gather = sx_cuda_gather,
    .gather_columns = sx_cuda_gather_columns,
    .concat = sx_cuda_concat,
    .iota = sx_cuda_iota,
    .index_to_mask = sx_cuda_index_to_mask,
    .mask_to_index = sx_cuda_mask_to_index,
    .hash = sx_cuda_hash,
    .partition = sx_cuda_partition,
    .partition_keys = sx_cuda_partition_keys,
    .bloom_add = sx_cuda_bloom_add,
    .bloom_add_keys = sx_cuda_bloom_add_keys,
    .bloom_merge = sx_cuda_bloom_merge,
    .bloom_test = sx_cuda_bloom_test,
    .rows_pack = sx_cuda_rows_pack,
    .rows_unpack = sx_cuda_rows_unpack,
    .bytes_to_host = sx_cuda_bytes_to_host,
    .bytes_from_host = sx_cuda_bytes_from_host,
    .bytes_to_send = sx_cuda_bytes_to_send,
    .group_create = sx_cuda_group_create,
    .group_destroy = sx_cuda_group_destroy,
    .group_update = sx_cuda_group_update,
    .group_finish = sx_cuda_group_finish,
    .group_emit = sx_cuda_group_emit,
    .join_create = sx_cuda_join_create,
    .join_destroy = sx_cuda_join_destroy,
    .join_expect = sx_cuda_join_expect,
    .join_append = sx_cuda_join_append,
    .join_finish = sx_cuda_join_finish,
    .join_build = sx_cuda_join_build,
    .join_info = sx_cuda_join_info,
    .join_gather = sx_cuda_join_gather,
    .join_probe = sx_cuda_join_probe,
    .join_take = sx_cuda_join_take,
    .join_filter = sx_cuda_join_filter,
    .join_mark = sx_cuda_join_mark,
    .join_marked = sx_cuda_join_marked,
    .sort = sx_cuda_sort,
    .decoder_create = sx_cuda_decoder_create,
    .decoder_destroy = sx_cuda_decoder_destroy,
    .decode = sx_cuda_decode,
    .decode_ahead = sx_cuda_decode_ahead,
};

/* ---- choosing ---- */

enum { MOST_DEVICES = 64 };

/* CUDA's own order is by speed. */
static int compare_by_bus(const void *a, const void *b) {
    return strcmp(((const struct sx_cuda_choice *)a)->bus, ((const struct sx_cuda_choice *)b)->bus);
}

/* Those that are new enough. */
static int list_devices(int n, struct sx_cuda_choice *choices) {
    int found = 0;
    for (int i = 0; i < n && i < MOST_DEVICES; i++) {
        struct sx_cuda_choice *choice = &choices[found];
        int major = 0;
        *choice = (struct sx_cuda_choice){.ordinal = i};
        if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, i) != cudaSuccess ||
            major < SX_CUDA_LEAST_MAJOR ||
            cudaDeviceGetPCIBusId(choice->bus, (int)sizeof choice->bus, i) != cudaSuccess)
            continue;
        for (char *at = choice->bus; *at; at++)
            *at = (char)tolower((unsigned char)*at);
        found++;
    }
    qsort(choices, (size_t)found, sizeof *choices, compare_by_bus);
    return found;
}

/* cudaSuccess: it works. Else what it says, as when others have all of its memory. */
static cudaError_t try_device(struct sx_cuda_choice *choice) {
    struct cudaDeviceProp properties;
    cudaError_t result = cudaGetDeviceProperties(&properties, choice->ordinal);
    if (result == cudaSuccess)
        result = cuda_choose_device(choice->ordinal);
    if (result == cudaSuccess)
        result = cudaFree(NULL);
    if (result == cudaSuccess)
        snprintf(choice->name, sizeof choice->name, "%.255s", properties.name);
    return result;
}

enum sx_status sx_cuda_choose(int number, struct sx_cuda_choice *out_choice, struct sx_error *error) {
    struct sx_cuda_choice choices[MOST_DEVICES];
    int n = 0;
    cudaError_t result = cudaGetDeviceCount(&n);
    if (result != cudaSuccess || n == 0)
        return sx_error_set(error, SX_UNSUPPORTED, "no CUDA device: %s",
                            result == cudaSuccess ? "none found" : cudaGetErrorString(result));
    n = list_devices(n, choices);
    if (n == 0)
        return sx_error_set(error, SX_UNSUPPORTED, "no CUDA device of compute capability 8.0 or later");
    for (int i = 0; i < n; i++) {
        struct sx_cuda_choice *choice = &choices[(number + i) % n];
        result = try_device(choice);
        if (result != cudaSuccess)
            continue;
        *out_choice = *choice;
        return SX_OK;
    }
    return sx_error_set(error, SX_UNSUPPORTED, "no CUDA device that works (%d tried): %s", n,
                        cudaGetErrorString(result));
}

/* ---- opening ---- */

/* Freed memory stays with the process. */
static void keep_memory(int ordinal) {
    cudaMemPool_t pool;
    uint64_t all = UINT64_MAX;
    if (cudaDeviceGetDefaultMemPool(&pool, ordinal) == cudaSuccess)
        (void)cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all);
    (void)cudaGetLastError();
}

static void set_cache_limit(const struct sx_backend *backend, size_t limit_bytes, size_t values_bytes) {
    cuda_cache_limit(((const struct cuda_device *)backend)->cache, limit_bytes, values_bytes);
}

static struct sx_cache_usage get_cache_usage(const struct sx_backend *backend) {
    return cuda_cache_usage(((const struct cuda_device *)backend)->cache);
}

static void *hold_cached(const struct sx_backend *backend, uint64_t cache_id) {
    return cuda_cache_find(((const struct cuda_device *)backend)->cache, cache_id);
}

static void release_cached(void *held) {
    cuda_image_release(held);
}

static struct sx_pool_usage get_memory_usage(const struct sx_backend *backend) {
    return sx_pool_usage(((const struct cuda_device *)backend)->budget);
}

/* Two words of the bus a clock. */
static double memory_rate(int ordinal) {
    int clock_khz = 0, bus_bits = 0;
    if (cudaDeviceGetAttribute(&clock_khz, cudaDevAttrMemoryClockRate, ordinal) != cudaSuccess ||
        cudaDeviceGetAttribute(&bus_bits, cudaDevAttrGlobalMemoryBusWidth, ordinal) != cudaSuccess)
        return 0;
    return 2e3 * clock_khz * bus_bits / 8;
}

static bool reads_host(int ordinal) {
    int reads = 0;
    return cudaDeviceGetAttribute(&reads, cudaDevAttrCanUseHostPointerForRegisteredMem, ordinal) ==
               cudaSuccess &&
           reads;
}

enum sx_status sx_cuda_open(const struct sx_cuda_choice *choice, size_t limit_bytes, int n_sharing,
                            const struct sx_backend **out_backend, const char **out_name,
                            struct sx_error *error) {
    size_t free_bytes = 0, total_bytes = 0;
    struct sx_cuda_choice first;
    if (!choice)
        SX_TRY(sx_cuda_choose(0, &first, error));
    choice = choice ? choice : &first;
    cudaError_t result = cuda_choose_device(choice->ordinal);
    if (result == cudaSuccess)
        result = cudaMemGetInfo(&free_bytes, &total_bytes);
    if (result != cudaSuccess)
        return sx_error_set(error, SX_UNSUPPORTED, "the device at %s: %s", choice->bus,
                            cudaGetErrorString(result));
    struct cuda_device *device = calloc(1, sizeof *device);
    if (!device)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a device");
    device->ordinal = choice->ordinal;
    device->limit_bytes = limit_bytes ? limit_bytes : free_bytes / 10 * 9 / (size_t)n_sharing;
    memcpy(device->name, choice->name, sizeof device->name);
    enum sx_status status = sx_pool_create(device->limit_bytes, &device->budget, error);
    if (status == SX_OK)
        status = cuda_cache_create(&device->cache, error);
    if (status != SX_OK) {
        sx_pool_destroy(device->budget);
        free(device);
        return status;
    }
    pthread_mutex_init(&device->lock, NULL);
    pthread_mutex_init(&device->making, NULL);
    for (int i = 0; i < CUDA_BRING_FEW; i++)
        pthread_mutex_init(&device->bringers[i].issuing, NULL);
    keep_memory(device->ordinal);
    device->reads_host = reads_host(device->ordinal);
    cuda_inflate_choose(device);
    cuda_sort_choose(device);
    device->backend = (struct sx_backend){
        .name = "cuda",
        .traits = {.chunk_rows = chunk_rows(device->limit_bytes),
                   .joins_groups = true,
                   .memory_bytes = device->limit_bytes,
                   .memory_bytes_per_second = memory_rate(choice->ordinal)},
        .ops = operations,
        .io_pool_create = sx_cuda_io_pool_create,
        .link_measure = sx_cuda_link_measure,
        .cache_limit = set_cache_limit,
        .cache_usage = get_cache_usage,
        .cache_hold = hold_cached,
        .cache_release = release_cached,
        .memory_usage = get_memory_usage,
        .files = &sx_cuda_files,
    };
    *out_backend = &device->backend;
    *out_name = device->name;
    return SX_OK;
}

static void free_bringers(struct cuda_device *device) {
    for (int i = 0; i < CUDA_BRING_FEW; i++) {
        if (atomic_load(&device->bringers[i].stream))
            cuda_stream_free(atomic_load(&device->bringers[i].stream));
        pthread_mutex_destroy(&device->bringers[i].issuing);
    }
}

void sx_cuda_close(const struct sx_backend *backend) {
    struct cuda_device *device = (struct cuda_device *)(uintptr_t)backend;
    if (!device)
        return;
    cuda_wait(device);
    cuda_cache_destroy(device->cache);
    if (device->behind)
        (void)cudaStreamDestroy(device->behind);
    free_bringers(device);
    if (atomic_load(&device->keeper))
        cuda_stream_free(atomic_load(&device->keeper));
    while (device->idle) {
        struct cuda_stream *stream = device->idle;
        device->idle = stream->next_idle;
        cuda_stream_free(stream);
    }
    pthread_mutex_destroy(&device->lock);
    pthread_mutex_destroy(&device->making);
    sx_pool_destroy(device->budget);
    free(device);
}
