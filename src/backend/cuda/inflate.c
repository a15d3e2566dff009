/* Decompression on the device: the library, and batches for it. See inflate.h. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda.h"
#include "backend/cuda/inflate.h"
#include "backend/cuda/launch_inflate.h"

/* MAX_TEMP_BYTES of zstd: the pieces of a launch hold a third of it, enough for every processor. */
enum { MAX_PIECE_BYTES = INT32_MAX, MAX_LAUNCH = 32 << 10, MAX_TEMP_BYTES = 1 << 30, TEMP_SHARE = 16 };

static const struct nvcomp_options options = {.backend = NVCOMP_BACKEND_CUDA};

static const struct {
    enum sx_parquet_codec codec;
    const char *name; /* nvCOMP's */
    uint8_t spare[INFLATE_SPARE_BYTES];
    uint32_t spare_bytes;
} codecs[INFLATE_N_CODECS] = {
    [INFLATE_LZ4] = {SX_CODEC_LZ4_RAW, "LZ4", {0x10, 'x'}, 2},
    [INFLATE_ZSTD] = {SX_CODEC_ZSTD, "Zstd", {0x28, 0xb5, 0x2f, 0xfd, 0x20, 1, 9, 0, 0, 'x'}, 10},
};

static enum inflate_codec find_codec(enum sx_parquet_codec codec) {
    int at = 0;
    while (at < INFLATE_N_CODECS && codecs[at].codec != codec)
        at++;
    return (enum inflate_codec)at;
}

/* ---- the library ---- */

/* NULLs where the library or the codec is not there. */
struct cuda_inflate_library {
    struct {
        nvcomp_get_temp_bytes *temp_bytes;
        nvcomp_decompress *decompress;
    } codecs[INFLATE_N_CODECS];
};

static uintptr_t find_function(void *handle, enum inflate_codec codec, const char *function) {
    char name[128];
    snprintf(name, sizeof name, "nvcompBatched%s%s", codecs[codec].name, function);
    return (uintptr_t)dlsym(handle, name);
}

/* Pieces lie at any address: a version that wants more is not used for that codec. */
static bool takes_any_address(void *handle, enum inflate_codec codec) {
    struct nvcomp_alignments found = {0};
    nvcomp_get_alignments *alignments =
        (nvcomp_get_alignments *)find_function(handle, codec, "DecompressGetRequiredAlignments");
    return alignments && alignments(options, &found) == NVCOMP_SUCCESS && found.input == 1 &&
           found.output == 1;
}

/* It stays loaded to the end of the process, since it has registered its kernels with the driver. */
static void find_functions(struct cuda_inflate_library *library) {
    void *handle = cuda_library_open(NVCOMP_LIBRARY, "STACHIO_NVCOMP_LIBRARY");
    for (int c = 0; handle && c < INFLATE_N_CODECS; c++) {
        const enum inflate_codec codec = (enum inflate_codec)c;
        const uintptr_t temp_bytes = find_function(handle, codec, "DecompressGetTempSizeAsync");
        const uintptr_t decompress = find_function(handle, codec, "DecompressAsync");
        if (!temp_bytes || !decompress || !takes_any_address(handle, codec))
            continue;
        library->codecs[c].temp_bytes = (nvcomp_get_temp_bytes *)temp_bytes;
        library->codecs[c].decompress = (nvcomp_decompress *)decompress;
    }
}

static const struct cuda_inflate_library *library_of(struct cuda_device *device) {
    static const struct cuda_inflate_library none;
    const struct cuda_inflate_library *library = atomic_load(&device->inflate);
    if (library)
        return library;
    pthread_mutex_lock(&device->lock);
    library = atomic_load(&device->inflate);
    if (!library) {
        struct cuda_inflate_library *made = calloc(1, sizeof *made);
        if (made)
            find_functions(made);
        atomic_store(&device->inflate, made);
        library = made;
    }
    pthread_mutex_unlock(&device->lock);
    return library ? library : &none;
}

void cuda_inflate_library_destroy(const struct cuda_inflate_library *library) {
    free((void *)(uintptr_t)library);
}

static bool is_in_library(struct cuda_device *device, enum sx_parquet_codec codec) {
    const enum inflate_codec found = find_codec(codec);
    return found != INFLATE_N_CODECS && library_of(device)->codecs[found].decompress;
}

/* Of our own; NULL: there is none. */
static cuda_inflate_kernel *find_kernel(const struct cuda_device *device, enum sx_parquet_codec codec) {
    switch (codec) {
    case SX_CODEC_SNAPPY: return cuda_snappy;
    case SX_CODEC_GZIP: return cuda_gzip;
    case SX_CODEC_ZSTD: return device->opens_zstd ? cuda_zstd : NULL;
    default: return NULL;
    }
}

bool cuda_inflate_has(struct cuda_device *device, enum sx_parquet_codec codec) {
    return find_kernel(device, codec) || is_in_library(device, codec);
}

void cuda_inflate_choose(struct cuda_device *device) {
    const char *wanted = getenv("STACHIO_INFLATE");
    device->opens_gzip = wanted && strstr(wanted, "gzip");
    device->opens_zstd = wanted && strstr(wanted, "zstd");
}

enum cuda_inflate_trust cuda_inflate_trust(struct cuda_device *device, enum sx_parquet_codec codec) {
    if (!cuda_inflate_has(device, codec) || (codec == SX_CODEC_GZIP && !device->opens_gzip))
        return CUDA_INFLATE_NONE;
    return codec != SX_CODEC_ZSTD || find_kernel(device, codec) ? CUDA_INFLATE_ANY : CUDA_INFLATE_CHECKED;
}

/* ---- scratch memory ---- */

static size_t max_temp_bytes(const struct cuda_device *device) {
    const size_t share = device->limit_bytes / TEMP_SHARE;
    return share < MAX_TEMP_BYTES ? share : MAX_TEMP_BYTES;
}

/* SIZE_MAX: nvCOMP does not take so many. Some more than it asks for, which does not count a frame's blocks.
 */
static size_t temp_bytes_of(struct cuda_device *device, enum inflate_codec codec, size_t n, size_t max_plain,
                            size_t all_plain) {
    size_t bytes = 0;
    const enum nvcomp_status status =
        library_of(device)->codecs[codec].temp_bytes(n, max_plain, options, &bytes, all_plain);
    return status == NVCOMP_SUCCESS ? bytes + bytes / 8 : SIZE_MAX;
}

bool cuda_inflate_takes(struct cuda_device *device, enum sx_parquet_codec codec, size_t stored_bytes,
                        size_t plain_bytes) {
    if (!cuda_inflate_has(device, codec) || stored_bytes > MAX_PIECE_BYTES || plain_bytes > MAX_PIECE_BYTES)
        return false;
    return find_kernel(device, codec) ||
           temp_bytes_of(device, find_codec(codec), 1, plain_bytes, plain_bytes) <= max_temp_bytes(device);
}

/* ---- batches ---- */

/* What is uploaded. */
struct upload {
    uint8_t spare[2 * INFLATE_SPARE_BYTES];
    struct inflate_piece pieces[];
};

struct batch {
    struct cuda_stream *stream;
    struct upload *upload;
    struct inflate_work work;
    struct sx_buffer *scratch, *temp;
};

struct plain_sizes {
    size_t most, all;
};

static struct plain_sizes sizes_of(const struct batch *batch, int64_t first, int64_t n) {
    struct plain_sizes sizes = {0, 0};
    for (int64_t i = first; i < first + n; i++) {
        const size_t bytes = batch->upload->pieces[i].plain_bytes;
        sizes.most = bytes > sizes.most ? bytes : sizes.most;
        sizes.all += bytes;
    }
    return sizes;
}

/* Temporary memory for `n` pieces from `first` on. */
static size_t temp_bytes_for(const struct batch *batch, int64_t first, int64_t n) {
    const struct plain_sizes sizes = sizes_of(batch, first, n);
    return temp_bytes_of(batch->stream->device, batch->work.codec, (size_t)n, sizes.most, sizes.all);
}

/* The caller has not asked cuda_inflate_takes. */
static enum sx_status too_large(struct batch *batch, size_t plain_bytes) {
    return sx_error_set(&batch->stream->base.error, SX_INTERNAL, "a page of %zu bytes is not for the device",
                        plain_bytes);
}

static enum sx_status collect(struct batch *batch, const struct cuda_inflate_item *items, int64_t n) {
    batch->upload = calloc(1, sizeof *batch->upload + (size_t)n * sizeof *batch->upload->pieces);
    if (!batch->upload)
        return sx_error_set(&batch->stream->base.error, SX_OUT_OF_MEMORY,
                            "no memory for a list of %lld pages", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        const struct cuda_inflate_item *item = &items[i];
        if (item->plain_bytes == 0)
            continue;
        if (item->stored_bytes > MAX_PIECE_BYTES || item->plain_bytes > MAX_PIECE_BYTES)
            return too_large(batch, item->plain_bytes);
        batch->upload->pieces[batch->work.n++] = (struct inflate_piece){
            item->stored, item->plain, (uint32_t)item->stored_bytes, (uint32_t)item->plain_bytes, item->what};
    }
    return SX_OK;
}

/* Takes the scratch memory, and lays the arrays out in it behind what is uploaded. */
static enum sx_status prepare(struct batch *batch) {
    struct cuda_stream *stream = batch->stream;
    struct inflate_work *work = &batch->work;
    const size_t n = (size_t)work->n;
    const size_t uploaded_bytes = sizeof *batch->upload + n * sizeof *batch->upload->pieces;
    const size_t scratch_bytes = uploaded_bytes + n * (5 * sizeof(uint64_t) + sizeof *work->statuses);
    SX_TRY(sx_buffer_create(stream->base.pool, scratch_bytes, &batch->scratch, &stream->base.error));
    struct upload *uploaded = batch->scratch->data;
    memcpy(batch->upload->spare, codecs[work->codec].spare, INFLATE_SPARE_BYTES);
    work->spare = (uint8_t *)uploaded;
    work->spare_bytes = codecs[work->codec].spare_bytes;
    work->pieces = (struct inflate_piece *)((char *)uploaded + offsetof(struct upload, pieces));
    work->stored = (const void **)((char *)uploaded + uploaded_bytes);
    work->plain = (void **)(work->stored + n);
    work->stored_bytes = (size_t *)(work->plain + n);
    work->plain_bytes = work->stored_bytes + n;
    work->got_bytes = work->plain_bytes + n;
    work->statuses = (enum nvcomp_status *)(work->got_bytes + n);
    work->control = stream->control;
    return cuda_upload(stream, uploaded, batch->upload, uploaded_bytes);
}

/* For all pieces at once, or as much as there is; for the largest one at least. */
static enum sx_status take_temp(struct batch *batch, size_t *out_bytes) {
    struct cuda_stream *stream = batch->stream;
    const size_t limit = max_temp_bytes(stream->device), all = temp_bytes_for(batch, 0, batch->work.n);
    const size_t most = sizes_of(batch, 0, batch->work.n).most;
    const size_t least = temp_bytes_of(stream->device, batch->work.codec, 1, most, most);
    size_t bytes = all < limit ? all : limit;
    enum sx_status status;
    if (least > bytes)
        return too_large(batch, most);
    for (;; bytes /= 2) {
        status = sx_buffer_create(stream->base.pool, bytes, &batch->temp, &stream->base.error);
        if (status != SX_OUT_OF_MEMORY || bytes / 2 < least)
            break;
    }
    *out_bytes = bytes;
    return status;
}

/* All pieces, in as few launches as temporary memory allows. */
static enum sx_status launch(struct batch *batch) {
    struct cuda_stream *stream = batch->stream;
    const struct inflate_work *work = &batch->work;
    nvcomp_decompress *decompress = library_of(stream->device)->codecs[work->codec].decompress;
    size_t temp_bytes = 0;
    SX_TRY(take_temp(batch, &temp_bytes));
    for (int64_t first = 0, n; first < work->n; first += n) {
        n = work->n - first < MAX_LAUNCH ? work->n - first : MAX_LAUNCH;
        while (n > 1 && temp_bytes_for(batch, first, n) > temp_bytes)
            n = (n + 1) / 2;
        const enum nvcomp_status status =
            decompress(work->stored + first, work->stored_bytes + first, work->plain_bytes + first,
                       work->got_bytes + first, (size_t)n, batch->temp->data, temp_bytes, work->plain + first,
                       options, work->statuses + first, stream->handle);
        if (status != NVCOMP_SUCCESS)
            return sx_error_set(&stream->base.error, SX_INTERNAL, "nvCOMP, %s: status %d",
                                codecs[work->codec].name, (int)status);
    }
    return cuda_launched(stream, "decompression");
}

static enum sx_status inflate_by_kernel(struct batch *batch, cuda_inflate_kernel *kernel) {
    struct cuda_stream *stream = batch->stream;
    SX_TRY(cuda_upload_buffer(stream, batch->upload->pieces,
                              (size_t)batch->work.n * sizeof *batch->upload->pieces, &batch->scratch));
    kernel(stream->handle, batch->scratch->data, batch->work.n, stream->control);
    return cuda_launched(stream, "decompression");
}

static enum sx_status inflate_by_library(struct batch *batch) {
    struct cuda_stream *stream = batch->stream;
    SX_TRY(prepare(batch));
    cuda_inflate_check(stream->handle, &batch->work);
    SX_TRY(cuda_launched(stream, "checks of compressed pages"));
    SX_TRY(launch(batch));
    cuda_inflate_confirm(stream->handle, &batch->work);
    return cuda_launched(stream, "results of decompression");
}

enum sx_status cuda_inflate(struct cuda_stream *stream, enum sx_parquet_codec codec,
                            const struct cuda_inflate_item *items, int64_t n) {
    struct batch batch = {.stream = stream, .work.codec = find_codec(codec)};
    SX_TRY(cuda_enter(&stream->base, &stream));
    if (!cuda_inflate_has(stream->device, codec))
        return sx_error_set(&stream->base.error, SX_INTERNAL, "codec %d is not for the device", (int)codec);
    cuda_inflate_kernel *kernel = find_kernel(stream->device, codec);
    enum sx_status status = collect(&batch, items, n);
    if (status == SX_OK && batch.work.n > 0)
        status = kernel ? inflate_by_kernel(&batch, kernel) : inflate_by_library(&batch);
    free(batch.upload);
    sx_buffer_release(batch.scratch);
    sx_buffer_release(batch.temp);
    return status;
}
