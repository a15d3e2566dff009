#include <stdlib.h>

#include <lz4.h>
#include <snappy-c.h>
#include <zstd.h>

#include "tensor/codec.h"

struct sx_compressor {
    ZSTD_CCtx *zstd;
};

size_t sx_codec_bound(enum sx_parquet_codec codec, size_t plain_bytes) {
    switch (codec) {
    case SX_CODEC_SNAPPY: return snappy_max_compressed_length(plain_bytes);
    case SX_CODEC_LZ4_RAW:
        return plain_bytes <= LZ4_MAX_INPUT_SIZE ? (size_t)LZ4_compressBound((int)plain_bytes) : 0;
    case SX_CODEC_ZSTD: return ZSTD_compressBound(plain_bytes);
    default: return 0;
    }
}

static enum sx_status failed(struct sx_error *error, const char *codec, const char *problem) {
    return sx_error_set(error, SX_INTERNAL, "%s can't compress a page: %s", codec, problem);
}

static enum sx_status pack_zstd(struct sx_compressor *compressor, int level, const uint8_t *plain,
                                size_t plain_bytes, uint8_t *stored, size_t *stored_bytes,
                                struct sx_error *error) {
    if (!compressor->zstd)
        compressor->zstd = ZSTD_createCCtx();
    if (!compressor->zstd)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a compressor (zstd)");
    *stored_bytes = ZSTD_compressCCtx(compressor->zstd, stored, *stored_bytes, plain, plain_bytes, level);
    return ZSTD_isError(*stored_bytes) ? failed(error, "zstd", ZSTD_getErrorName(*stored_bytes)) : SX_OK;
}

enum sx_status sx_codec_compress(struct sx_compressor **compressor, enum sx_parquet_codec codec, int level,
                                 const uint8_t *plain, size_t plain_bytes, uint8_t *stored,
                                 size_t *stored_bytes, struct sx_error *error) {
    if (!*compressor)
        *compressor = calloc(1, sizeof **compressor);
    if (!*compressor)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a compressor");
    switch (codec) {
    case SX_CODEC_SNAPPY:
        if (snappy_compress((const char *)plain, plain_bytes, (char *)stored, stored_bytes) != SNAPPY_OK)
            return failed(error, "snappy", "the library refuses it");
        return SX_OK;
    case SX_CODEC_LZ4_RAW: {
        int got =
            LZ4_compress_default((const char *)plain, (char *)stored, (int)plain_bytes, (int)*stored_bytes);
        *stored_bytes = (size_t)got;
        return got > 0 ? SX_OK : failed(error, "LZ4", "the library refuses it");
    }
    case SX_CODEC_ZSTD: return pack_zstd(*compressor, level, plain, plain_bytes, stored, stored_bytes, error);
    default: return failed(error, "this codec", "it is for reading only");
    }
}

void sx_compressor_destroy(struct sx_compressor *compressor) {
    if (!compressor)
        return;
    ZSTD_freeCCtx(compressor->zstd);
    free(compressor);
}
