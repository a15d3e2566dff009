#include <stdlib.h>
#include <string.h>

#include <brotli/decode.h>
#include <libdeflate.h>
#include <lz4.h>
#include <lz4frame.h>
#include <zlib.h>
#include <zstd.h>

#include "tensor/codec.h"
#include "tensor/snappy.h"

struct sx_codecs {
    ZSTD_DCtx *zstd;
    struct libdeflate_decompressor *deflate;
    LZ4F_dctx *lz4_frame;
};

/* One call's bytes. */
struct packed {
    const uint8_t *stored;
    size_t stored_bytes;
    uint8_t *plain;
    size_t plain_bytes;
};

static enum sx_status wrong(struct sx_error *error, const char *codec, const char *problem) {
    return sx_error_set(error, SX_FILE, "%s: %s", codec, problem);
}

static enum sx_status no_memory(struct sx_error *error, const char *codec) {
    return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a decompressor (%s)", codec);
}

static enum sx_status open_snappy(struct sx_codecs *codecs, struct packed packed, struct sx_error *error) {
    (void)codecs;
    size_t plain_bytes = 0;
    if (sx_snappy_length(packed.stored, packed.stored_bytes, &plain_bytes) == 0)
        return wrong(error, "snappy", "the length is damaged");
    if (plain_bytes != packed.plain_bytes)
        return wrong(error, "snappy", "another length than the page header tells");
    if (!sx_snappy_open(packed.stored, packed.stored_bytes, packed.plain, plain_bytes))
        return wrong(error, "snappy", "the bytes are damaged");
    return SX_OK;
}

static enum sx_status open_zstd(struct sx_codecs *codecs, struct packed packed, struct sx_error *error) {
    if (!codecs->zstd)
        codecs->zstd = ZSTD_createDCtx();
    if (!codecs->zstd)
        return no_memory(error, "zstd");
    size_t got = ZSTD_decompressDCtx(codecs->zstd, packed.plain, packed.plain_bytes, packed.stored,
                                     packed.stored_bytes);
    if (ZSTD_isError(got))
        return wrong(error, "zstd", ZSTD_getErrorName(got));
    return got == packed.plain_bytes ? SX_OK : wrong(error, "zstd", "fewer bytes than the page header tells");
}

/* gzip and zlib streams as zlib understands them: slower, but more tolerant. */
static bool inflate_members(struct packed packed) {
    enum { GZIP_OR_ZLIB = 15 + 32 };
    z_stream z = {.next_in = (Bytef *)(uintptr_t)packed.stored, .avail_in = (uInt)packed.stored_bytes};
    if (packed.stored_bytes > UINT32_MAX || packed.plain_bytes > UINT32_MAX ||
        inflateInit2(&z, GZIP_OR_ZLIB) != Z_OK)
        return false;
    z.next_out = packed.plain;
    z.avail_out = (uInt)packed.plain_bytes;
    int result;
    do
        result = inflate(&z, Z_FINISH);
    while (result == Z_STREAM_END && z.avail_out > 0 && z.avail_in > 0 && inflateReset(&z) == Z_OK);
    bool done = result == Z_STREAM_END && z.avail_out == 0;
    inflateEnd(&z);
    return done;
}

static enum sx_status open_gzip(struct sx_codecs *codecs, struct packed packed, struct sx_error *error) {
    if (!codecs->deflate)
        codecs->deflate = libdeflate_alloc_decompressor();
    if (!codecs->deflate)
        return no_memory(error, "gzip");
    struct packed rest = packed;
    while (rest.plain_bytes > 0 && rest.stored_bytes > 0) {
        size_t used = 0, got = 0;
        if (libdeflate_gzip_decompress_ex(codecs->deflate, rest.stored, rest.stored_bytes, rest.plain,
                                          rest.plain_bytes, &used, &got) != LIBDEFLATE_SUCCESS)
            break;
        rest.stored += used, rest.stored_bytes -= used;
        rest.plain += got, rest.plain_bytes -= got;
    }
    if (rest.plain_bytes == 0 || inflate_members(packed))
        return SX_OK;
    return wrong(error, "gzip", "the bytes are damaged, or not as many as the page header tells");
}

static enum sx_status open_brotli(struct sx_codecs *codecs, struct packed packed, struct sx_error *error) {
    (void)codecs;
    size_t got = packed.plain_bytes;
    if (BrotliDecoderDecompress(packed.stored_bytes, packed.stored, &got, packed.plain) !=
            BROTLI_DECODER_RESULT_SUCCESS ||
        got != packed.plain_bytes)
        return wrong(error, "brotli", "the bytes are damaged, or not as many as the page header tells");
    return SX_OK;
}

static uint32_t load_u32(const uint8_t *bytes) {
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static bool lz4_block(struct packed packed) {
    if (packed.stored_bytes > INT32_MAX || packed.plain_bytes > INT32_MAX)
        return false;
    int got = LZ4_decompress_safe((const char *)packed.stored, (char *)packed.plain, (int)packed.stored_bytes,
                                  (int)packed.plain_bytes);
    return got >= 0 && (size_t)got == packed.plain_bytes;
}

static enum sx_status open_lz4_raw(struct sx_codecs *codecs, struct packed packed, struct sx_error *error) {
    (void)codecs;
    if (!lz4_block(packed))
        return wrong(error, "LZ4", "the bytes are damaged, or not as many as the page header tells");
    return SX_OK;
}

/* Hadoop: blocks, each behind its plain and its stored length, big-endian. */
static bool lz4_hadoop(struct packed rest) {
    enum { HEADER_BYTES = 8 };
    while (rest.stored_bytes >= HEADER_BYTES) {
        size_t plain = __builtin_bswap32(load_u32(rest.stored));
        size_t stored = __builtin_bswap32(load_u32(rest.stored + 4));
        if (stored > rest.stored_bytes - HEADER_BYTES || plain > rest.plain_bytes ||
            !lz4_block((struct packed){rest.stored + HEADER_BYTES, stored, rest.plain, plain}))
            return false;
        rest.stored += HEADER_BYTES + stored, rest.stored_bytes -= HEADER_BYTES + stored;
        rest.plain += plain, rest.plain_bytes -= plain;
    }
    return rest.stored_bytes == 0 && rest.plain_bytes == 0;
}

static bool lz4_frame(struct sx_codecs *codecs, struct packed rest) {
    if (!codecs->lz4_frame && LZ4F_isError(LZ4F_createDecompressionContext(&codecs->lz4_frame, LZ4F_VERSION)))
        return false;
    LZ4F_resetDecompressionContext(codecs->lz4_frame);
    for (;;) {
        size_t got = rest.plain_bytes, used = rest.stored_bytes;
        size_t more = LZ4F_decompress(codecs->lz4_frame, rest.plain, &got, rest.stored, &used, NULL);
        if (LZ4F_isError(more) || (got == 0 && used == 0))
            return false;
        rest.stored += used, rest.stored_bytes -= used;
        rest.plain += got, rest.plain_bytes -= got;
        if (more == 0 && rest.plain_bytes == 0)
            return true;
    }
}

/* The codec that was named before its framing was agreed on: writers have used three. */
static enum sx_status open_lz4(struct sx_codecs *codecs, struct packed packed, struct sx_error *error) {
    const uint32_t frame_magic = 0x184d2204;
    bool is_frame = packed.stored_bytes >= 4 && load_u32(packed.stored) == frame_magic;
    if (lz4_hadoop(packed) || (is_frame && lz4_frame(codecs, packed)))
        return SX_OK;
    return open_lz4_raw(codecs, packed, error);
}

/* What a stored byte can become at most, so that a page header can't ask for more; 0: not known. */
static const struct {
    enum sx_parquet_codec codec;
    const char *name;
    size_t max_ratio;
    enum sx_status (*open)(struct sx_codecs *codecs, struct packed packed, struct sx_error *error);
} codec_table[] = {
    {SX_CODEC_SNAPPY, "snappy", 32, open_snappy}, {SX_CODEC_GZIP, "gzip", 1032, open_gzip},
    {SX_CODEC_BROTLI, "brotli", 0, open_brotli},  {SX_CODEC_LZ4, "LZ4", 256, open_lz4},
    {SX_CODEC_ZSTD, "zstd", 0, open_zstd},        {SX_CODEC_LZ4_RAW, "LZ4", 256, open_lz4_raw},
};
enum { N_CODECS = sizeof codec_table / sizeof codec_table[0] };

static int find_codec(enum sx_parquet_codec codec) {
    int at = 0;
    while (at < N_CODECS && codec_table[at].codec != codec)
        at++;
    return at;
}

enum sx_status sx_codec_check(enum sx_parquet_codec codec, size_t stored_bytes, size_t plain_bytes,
                              struct sx_error *error) {
    int at = find_codec(codec);
    if (at == N_CODECS)
        return sx_error_set(error, SX_FILE, "compression codec %d is not supported", (int)codec);
    size_t ratio = codec_table[at].max_ratio;
    if (ratio && plain_bytes / ratio > stored_bytes)
        return sx_error_set(error, SX_FILE, "%s: %zu bytes can't become %zu", codec_table[at].name,
                            stored_bytes, plain_bytes);
    return SX_OK;
}

enum sx_status sx_codec_decompress(struct sx_codecs **codecs, enum sx_parquet_codec codec,
                                   const uint8_t *stored, size_t stored_bytes, uint8_t *plain,
                                   size_t plain_bytes, struct sx_error *error) {
    int at = find_codec(codec);
    if (!*codecs)
        *codecs = calloc(1, sizeof **codecs);
    if (!*codecs)
        return no_memory(error, codec_table[at].name);
    return codec_table[at].open(*codecs, (struct packed){stored, stored_bytes, plain, plain_bytes}, error);
}

void sx_codecs_destroy(struct sx_codecs *codecs) {
    if (!codecs)
        return;
    ZSTD_freeDCtx(codecs->zstd);
    libdeflate_free_decompressor(codecs->deflate);
    LZ4F_freeDecompressionContext(codecs->lz4_frame);
    free(codecs);
}
