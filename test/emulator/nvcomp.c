/* Stands in for nvCOMP where there is no GPU: the functions that backend/cuda/inflate.c looks up, over the
 * codecs' libraries. Strict: what is undefined with nvCOMP ends the program. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "backend/cuda/nvcomp.h"
#include "tensor/codec.h"

#define EXPORT __attribute__((visibility("default")))

/* Bytes of temporary memory: like nvCOMP's, and needed in full. */
enum { ZSTD_CHUNK_BYTES = 6936, ZSTD_PLAIN_BYTES = 3, TEMP_ALIGNMENT = 8 };

struct batch {
    enum sx_parquet_codec codec;
    const void *const *stored;
    const size_t *stored_bytes, *room_bytes;
    size_t *out_bytes;
    size_t n;
    void *const *plain;
    enum nvcomp_status *out_statuses;
};

static void refuse(const char *what) {
    fprintf(stderr, "nvCOMP emulated: %s\n", what);
    abort();
}

/* Device memory can be touched between the two calls (emulator.cpp); the emulator is in the folder of this
 * library.
 */
static void open_memory(bool open) {
    static void (*function)(bool);
    char path[PATH_MAX];
    Dl_info own;
    if (!function && dladdr((void *)(uintptr_t)open_memory, &own)) {
        const char *slash = strrchr(own.dli_fname, '/');
        snprintf(path, sizeof path, "%.*slibstachio_cuda_emulated.so", (int)(slash - own.dli_fname) + 1,
                 own.dli_fname);
        void *emulator = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
        if (emulator)
            function = (void (*)(bool))(uintptr_t)dlsym(emulator, "emulator_open_memory");
    }
    if (!function)
        refuse("no emulator");
    function(open);
}

/* As nvCOMP's kernel ends where there are so many blocks that its scratch memory does not do. */
static void check_blocks(const uint8_t *stored, size_t stored_bytes, size_t room) {
    enum { MOST_HEADER = 18, LEAST_MEAN = 32 << 10, REPEATED = 1 };
    static const size_t size_bytes[] = {0, 2, 4, 8}, dictionary_bytes[] = {0, 1, 2, 4};
    if (stored_bytes < MOST_HEADER)
        return;
    const bool is_single = stored[4] >> 5 & 1;
    const size_t kind = stored[4] >> 6;
    size_t at = 5 + (size_t)!is_single + dictionary_bytes[stored[4] & 3] +
                (kind ? size_bytes[kind] : is_single),
           n = 0;
    for (bool is_last = false; !is_last && at + 3 <= stored_bytes; n++) {
        const uint32_t header = stored[at] | (uint32_t)stored[at + 1] << 8 | (uint32_t)stored[at + 2] << 16;
        is_last = header & 1;
        at += 3 + ((header >> 1 & 3) == REPEATED ? 1 : header >> 3);
    }
    if (n > room / LEAST_MEAN + 1)
        refuse("a frame of many small blocks");
}

/* Of memory of exactly these sizes, so that the address sanitizer sees what goes past them. */
static enum nvcomp_status decompress_chunk(struct sx_codecs **codecs, const struct batch *batch, size_t i) {
    const size_t stored_bytes = batch->stored_bytes[i], room = batch->room_bytes[i];
    uint8_t *stored = malloc(stored_bytes), *plain = malloc(room);
    struct sx_error error = {0};
    if (!stored || !plain)
        refuse("no memory");
    memcpy(stored, batch->stored[i], stored_bytes);
    if (batch->codec == SX_CODEC_ZSTD && ZSTD_getFrameContentSize(stored, stored_bytes) > room)
        refuse("a frame that may become more than there is room for");
    if (batch->codec == SX_CODEC_ZSTD)
        check_blocks(stored, stored_bytes, room);
    enum sx_status status =
        sx_codec_decompress(codecs, batch->codec, stored, stored_bytes, plain, room, &error);
    if (status == SX_OK)
        memcpy(batch->plain[i], plain, room);
    free(stored);
    free(plain);
    if (status != SX_OK && batch->codec != SX_CODEC_ZSTD)
        refuse("damaged bytes that can be seen to be damaged");
    return status == SX_OK ? NVCOMP_SUCCESS : NVCOMP_CANNOT_DECOMPRESS;
}

static enum nvcomp_status decompress(const struct batch *batch, const struct nvcomp_options *options) {
    struct sx_codecs *codecs = NULL;
    if (options->backend != NVCOMP_BACKEND_CUDA)
        refuse("another backend");
    open_memory(true);
    for (size_t i = 0; i < batch->n; i++) {
        if (batch->stored_bytes[i] == 0 || batch->room_bytes[i] == 0)
            refuse("an empty chunk");
        batch->out_statuses[i] = decompress_chunk(&codecs, batch, i);
        batch->out_bytes[i] = batch->out_statuses[i] == NVCOMP_SUCCESS ? batch->room_bytes[i] : 0;
    }
    open_memory(false);
    sx_codecs_destroy(codecs);
    return NVCOMP_SUCCESS;
}

static size_t temp_bytes_of(enum sx_parquet_codec codec, size_t n, size_t max_plain) {
    return codec == SX_CODEC_ZSTD ? n * (ZSTD_CHUNK_BYTES + ZSTD_PLAIN_BYTES * max_plain) : 0;
}

/* Uses all that it asked for. */
static void use_temp(const struct batch *batch, void *temp, size_t temp_bytes) {
    size_t max_plain = 0;
    open_memory(true);
    for (size_t i = 0; i < batch->n; i++)
        max_plain = batch->room_bytes[i] > max_plain ? batch->room_bytes[i] : max_plain;
    const size_t wanted = temp_bytes_of(batch->codec, batch->n, max_plain);
    if (temp_bytes < wanted || (uintptr_t)temp % TEMP_ALIGNMENT)
        refuse("too little temporary memory, or at a wrong address");
    if (wanted > 0)
        memset(temp, 0x5a, wanted);
    open_memory(false);
}

#define CODEC(name, number)                                                                                  \
    EXPORT NVCOMP_GET_ALIGNMENTS(nvcompBatched##name##DecompressGetRequiredAlignments, enum nvcomp_status,   \
                                 struct nvcomp_options, struct nvcomp_alignments);                           \
    EXPORT NVCOMP_GET_TEMP_BYTES(nvcompBatched##name##DecompressGetTempSizeAsync, enum nvcomp_status,        \
                                 struct nvcomp_options);                                                     \
    EXPORT NVCOMP_DECOMPRESS(nvcompBatched##name##DecompressAsync, enum nvcomp_status,                       \
                             struct nvcomp_options);                                                         \
    enum nvcomp_status nvcompBatched##name##DecompressGetRequiredAlignments(struct nvcomp_options options,   \
                                                                            struct nvcomp_alignments *out) { \
        (void)options;                                                                                       \
        *out = (struct nvcomp_alignments){1, 1, TEMP_ALIGNMENT};                                             \
        return NVCOMP_SUCCESS;                                                                               \
    }                                                                                                        \
    enum nvcomp_status nvcompBatched##name##DecompressGetTempSizeAsync(                                      \
        size_t n, size_t max_plain, struct nvcomp_options options, size_t *out, size_t all_plain) {          \
        (void)options, (void)all_plain;                                                                      \
        *out = temp_bytes_of(number, n, max_plain);                                                          \
        return NVCOMP_SUCCESS;                                                                               \
    }                                                                                                        \
    enum nvcomp_status nvcompBatched##name##DecompressAsync(                                                 \
        const void *const *stored, const size_t *stored_bytes, const size_t *room_bytes, size_t *out_bytes,  \
        size_t n, void *temp, size_t temp_bytes, void *const *plain, struct nvcomp_options options,          \
        enum nvcomp_status *out_statuses, cudaStream_t stream) {                                             \
        (void)stream;                                                                                        \
        const struct batch batch = {number,    stored, stored_bytes, room_bytes,                             \
                                    out_bytes, n,      plain,        out_statuses};                          \
        use_temp(&batch, temp, temp_bytes);                                                                  \
        return decompress(&batch, &options);                                                                 \
    }

CODEC(LZ4, SX_CODEC_LZ4_RAW)
CODEC(Zstd, SX_CODEC_ZSTD)
