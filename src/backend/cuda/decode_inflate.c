/* Decompression of pages: on the device, many at once, or on the host where that can't be. */
#include <stdlib.h>

#include "backend/cuda/decode_stored.h"

static enum sx_status make_room(struct decode_inflater *inflater, struct decode_room *room, size_t bytes) {
    struct cuda_stream *stream = inflater->call->stream;
    if (bytes < room->bytes)
        return SX_OK;
    SX_TRY(sx_pool_resize(stream->host_pool, &room->memory, room->bytes, bytes + 1, &stream->base.error));
    room->bytes = bytes + 1;
    return SX_OK;
}

/* The piece's compressed bytes, for the host. */
static enum sx_status find_stored(struct decode_inflater *inflater, const struct decode_piece *piece,
                                  size_t stored_bytes, const uint8_t **out_bytes) {
    struct decode_call *call = inflater->call;
    struct sx_stored_span span;
    int copy;
    *out_bytes = piece->decoder->chunk.pages[piece->index].bytes + piece->lead_bytes;
    SX_TRY(decode_span_find(call, piece->decoder, piece->index, &copy, &span));
    if (!span.on_device)
        return SX_OK;
    SX_TRY(make_room(inflater, &inflater->stored, stored_bytes));
    SX_TRY(cuda_download(call->stream, inflater->stored.memory, *out_bytes, stored_bytes,
                         "a page that the host decompresses"));
    *out_bytes = inflater->stored.memory;
    return SX_OK;
}

static enum sx_status inflate_here(struct decode_inflater *inflater, const struct decode_piece *piece,
                                   size_t stored_bytes) {
    struct cuda_stream *stream = inflater->call->stream;
    struct sx_error *error = &stream->base.error;
    const size_t plain_bytes = piece->plain_bytes;
    const uint8_t *stored;
    SX_TRY(make_room(inflater, &inflater->plain, plain_bytes));
    SX_TRY(find_stored(inflater, piece, stored_bytes, &stored));
    enum sx_status status = sx_codec_decompress(&inflater->codecs, piece->decoder->chunk.spec.codec, stored,
                                                stored_bytes, inflater->plain.memory, plain_bytes, error);
    if (status == SX_FILE)
        return sx_error_prefix(error, "page %d", piece->index);
    SX_TRY(status);
    return cuda_upload(stream, piece->plain, inflater->plain.memory, plain_bytes);
}

static enum sx_status inflate_later(struct decode_inflater *inflater, enum sx_parquet_codec codec,
                                    struct cuda_inflate_item item) {
    enum { FIRST_ROOM = 256 };
    int64_t *n = &inflater->lists[codec].n, *room = &inflater->lists[codec].room;
    if (*n == *room) {
        const int64_t wanted = *room ? 2 * *room : FIRST_ROOM;
        struct cuda_inflate_item *grown =
            realloc(inflater->lists[codec].items, (size_t)wanted * sizeof *grown);
        if (!grown)
            return sx_error_set(&inflater->call->stream->base.error, SX_OUT_OF_MEMORY,
                                "no memory for a list of pages");
        inflater->lists[codec].items = grown;
        *room = wanted;
    }
    inflater->lists[codec].items[(*n)++] = item;
    return SX_OK;
}

void decode_inflate_count(struct decode_inflater *inflater, const struct decode_column *column) {
    for (int32_t i = 0; i < column->n_pages; i++) {
        const struct sx_stored_chunk *chunk = &column->listed[i].decoder->chunk;
        const size_t bytes = chunk->pages[column->listed[i].index].plain_bytes;
        if (!decode_is_compressed(column->listed[i].decoder, column->listed[i].index) ||
            (int)chunk->spec.codec >= DECODE_N_CODECS)
            continue;
        inflater->sizes[chunk->spec.codec].all += bytes;
        if (bytes > inflater->sizes[chunk->spec.codec].most)
            inflater->sizes[chunk->spec.codec].most = bytes;
    }
}

bool decode_inflates_there(const struct decode_inflater *inflater, enum sx_parquet_codec codec) {
    return !inflater->call->way->inflates_here &&
           cuda_inflate_pays(inflater->call->stream->device, codec, inflater->sizes[codec].most,
                             inflater->sizes[codec].all);
}

/* Whether the device may have it. */
static bool is_for_device(const struct decode_inflater *inflater, const struct decode_piece *piece,
                          size_t stored_bytes) {
    const enum sx_parquet_codec codec = piece->decoder->chunk.spec.codec;
    return cuda_inflate_takes(codec, stored_bytes, piece->plain_bytes) &&
           decode_inflates_there(inflater, codec);
}

enum sx_status decode_inflate(struct decode_inflater *inflater, const struct decode_piece *piece) {
    struct decode_call *call = inflater->call;
    const struct sx_stored_chunk *chunk = &piece->decoder->chunk;
    const size_t stored_bytes = chunk->pages[piece->index].stored_bytes - piece->lead_bytes;
    const uint8_t *device;
    SX_TRY(sx_codec_check(chunk->spec.codec, stored_bytes, piece->plain_bytes, &call->stream->base.error));
    if (!is_for_device(inflater, piece, stored_bytes))
        return inflate_here(inflater, piece, stored_bytes);
    SX_TRY(decode_stored_bring(call, piece->decoder, piece->index, &device));
    return inflate_later(inflater, chunk->spec.codec,
                         (struct cuda_inflate_item){device + piece->lead_bytes, stored_bytes, piece->plain,
                                                    piece->plain_bytes, piece->number});
}

enum sx_status decode_inflate_listed(struct decode_inflater *inflater) {
    struct cuda_stream *stream = inflater->call->stream;
    for (int codec = 0; codec < DECODE_N_CODECS; codec++)
        if (inflater->lists[codec].n > 0)
            SX_TRY(cuda_inflate(stream, (enum sx_parquet_codec)codec, inflater->lists[codec].items,
                                inflater->lists[codec].n));
    return SX_OK;
}

void decode_inflater_release(struct decode_inflater *inflater) {
    for (int codec = 0; codec < DECODE_N_CODECS; codec++)
        free(inflater->lists[codec].items);
    sx_codecs_destroy(inflater->codecs);
    sx_pool_free(inflater->call->stream->host_pool, inflater->plain.memory, inflater->plain.bytes);
    sx_pool_free(inflater->call->stream->host_pool, inflater->stored.memory, inflater->stored.bytes);
}
