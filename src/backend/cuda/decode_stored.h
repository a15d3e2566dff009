/* Bringing pages to the device: what decode_stored.c, decode_image.c and decode_inflate.c share. */
#ifndef SX_BACKEND_CUDA_DECODE_STORED_H
#define SX_BACKEND_CUDA_DECODE_STORED_H

#include "backend/cuda/decode.h"
#include "backend/cuda/inflate.h"

enum { DECODE_N_CODECS = SX_CODEC_LZ4_RAW + 1 };

/* Host memory that grows. */
struct decode_room {
    void *memory;
    size_t bytes;
};

/* What the device decompresses, by codec; and what the host needs for the rest. */
struct decode_inflater {
    struct decode_call *call;
    struct {
        struct cuda_inflate_item *items;
        int64_t n, room;
    } lists[DECODE_N_CODECS];
    struct {
        size_t most, all; /* plain bytes of a page, and of all pages of the call */
    } sizes[DECODE_N_CODECS];
    struct sx_codecs *codecs;
    struct decode_room stored, plain; /* of one page */
};

/* A page's compressed bytes, behind `lead_bytes` of levels, and where they become how many. */
struct decode_piece {
    struct sx_decoder *decoder;
    int index; /* in the chunk */
    uint32_t lead_bytes;
    void *plain; /* on the device */
    uint32_t plain_bytes;
    uint32_t number; /* for faults */
};

static inline bool decode_is_compressed(const struct sx_decoder *decoder, int index) {
    return decoder->chunk.spec.codec != SX_CODEC_UNCOMPRESSED && decoder->chunk.pages[index].is_compressed;
}

/* ---- decode_inflate.c ---- */

/* A column's pages that may have to be decompressed, before any of the call is. */
void decode_inflate_count(struct decode_inflater *inflater, const struct decode_column *column);
/* Whether pages of that codec, which the device serves, are many and long enough for it. */
bool decode_inflates_there(const struct decode_inflater *inflater, enum sx_parquet_codec codec);
/* Decompresses on the host and uploads, or lists it for the device. */
SX_MUST_CHECK enum sx_status decode_inflate(struct decode_inflater *inflater,
                                            const struct decode_piece *piece);
/* Issues the decompression of all that is listed. */
SX_MUST_CHECK enum sx_status decode_inflate_listed(struct decode_inflater *inflater);
void decode_inflater_release(struct decode_inflater *inflater);

/* ---- decode_stored.c ---- */

/* Whether the page's bytes are the span's. */
bool decode_span_holds(const struct sx_stored_span *span, const struct sx_page *page);
/* Which of the decoder's copies has the page, and the bytes that it is of. */
SX_MUST_CHECK enum sx_status decode_span_find(struct decode_call *call, struct sx_decoder *decoder, int index,
                                              int *out_copy, struct sx_stored_span *out_span);
/* Uploads the span, unless that is done. */
SX_MUST_CHECK enum sx_status decode_span_bring(struct decode_call *call, struct sx_decoder *decoder, int copy,
                                               const struct sx_stored_span *span);
/* Where the page's stored bytes are on the device. */
SX_MUST_CHECK enum sx_status decode_stored_bring(struct decode_call *call, struct sx_decoder *decoder,
                                                 int index, const uint8_t **out_device);

/* ---- decode_image.c ---- */

/* Looks for the page in the device's cache. Where the cache lacks the span, and takes it, an image of it is
 * begun, which the cache gets once the call has succeeded. *out_page NULL: the page's stored bytes are to be
 * brought (they may be there already). */
SX_MUST_CHECK enum sx_status decode_image_find(struct decode_inflater *inflater, struct sx_decoder *decoder,
                                               int index, struct cuda_image **out_image,
                                               const struct cuda_image_page **out_page);

#endif
