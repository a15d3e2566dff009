/* The codecs of Parquet pages, on the host: for every backend. Each comes from its library, but decompression
 * of snappy is ours. */
#ifndef SX_TENSOR_CODEC_H
#define SX_TENSOR_CODEC_H

#include "tensor/page.h"

/* The libraries' contexts, made when first needed; of one thread at a time. */
struct sx_codecs;

/* SX_FILE when no stored bytes of that number could become so many: before memory is taken for them. */
SX_MUST_CHECK enum sx_status sx_codec_check(enum sx_parquet_codec codec, size_t stored_bytes,
                                            size_t plain_bytes, struct sx_error *error);
/* Decompresses exactly `plain_bytes`, after sx_codec_check. *codecs starts NULL. Damaged bytes are SX_FILE;
 * the text names the codec, not the page. */
SX_MUST_CHECK enum sx_status sx_codec_decompress(struct sx_codecs **codecs, enum sx_parquet_codec codec,
                                                 const uint8_t *stored, size_t stored_bytes, uint8_t *plain,
                                                 size_t plain_bytes, struct sx_error *error);
void sx_codecs_destroy(struct sx_codecs *codecs); /* NULL allowed */

/* ---- codec_compress.c: SNAPPY, LZ4_RAW and ZSTD ---- */

/* As sx_codecs. */
struct sx_compressor;

/* Most bytes that so many can become when compressed; 0: they are too many, or the codec is none of the
 * three. */
size_t sx_codec_bound(enum sx_parquet_codec codec, size_t plain_bytes);
/* *stored_bytes: room at `stored`, at least sx_codec_bound; then the bytes written. `level` is for ZSTD.
 * *compressor starts NULL. */
SX_MUST_CHECK enum sx_status sx_codec_compress(struct sx_compressor **compressor, enum sx_parquet_codec codec,
                                               int level, const uint8_t *plain, size_t plain_bytes,
                                               uint8_t *stored, size_t *stored_bytes, struct sx_error *error);
void sx_compressor_destroy(struct sx_compressor *compressor); /* NULL allowed */

#endif
