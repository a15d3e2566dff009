#include <stdlib.h>

#include "backend/cpu/decode.h"

static enum sx_status init(struct sx_stream *stream, struct sx_decoder *decoder) {
    const struct sx_chunk_spec *spec = &decoder->spec;
    if (spec->physical == SX_PARQUET_FIXED_LEN_BYTE_ARRAY && spec->type_length <= 0)
        return sx_error_set(&stream->error, SX_FILE, "values of fixed length %d", (int)spec->type_length);
    SX_TRY(decode_conversion_find(stream, spec, &decoder->conversion));
    decoder->stored_bytes = sx_stored_bytes(spec);
    decoder->value_bytes = sx_type_bytes(spec->type);
    return sx_pages_check(spec, decoder->pages, decoder->n_pages, &decoder->dictionary_page,
                          &decoder->page_rows, &stream->error);
}

enum sx_status sx_cpu_decoder_create(struct sx_stream *stream, const struct sx_stored_chunk *chunk,
                                     struct sx_decoder **out_decoder) {
    struct sx_decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder)
        return sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for a decoder");
    decoder->spec = chunk->spec;
    decoder->pages = chunk->pages;
    decoder->n_pages = chunk->n_pages;
    enum sx_status status = init(stream, decoder);
    if (status != SX_OK) {
        free(decoder);
        return status;
    }
    decoder->owner = sx_buffer_retain(chunk->owner);
    *out_decoder = decoder;
    return SX_OK;
}

static void release_scratch(struct sx_stream *stream, struct decode_scratch *scratch) {
    sx_pool_free(stream->pool, scratch->memory, scratch->size_bytes);
}

void sx_cpu_decoder_destroy(struct sx_stream *stream, struct sx_decoder *decoder) {
    if (!decoder)
        return;
    decode_page_close(&decoder->page);
    sx_dict_release(decoder->dict);
    sx_codecs_destroy(decoder->codecs);
    release_scratch(stream, &decoder->levels);
    release_scratch(stream, &decoder->positions);
    release_scratch(stream, &decoder->staged);
    release_scratch(stream, &decoder->lengths);
    release_scratch(stream, &decoder->previous);
    release_scratch(stream, &decoder->reversed);
    sx_buffer_release(decoder->owner);
    free(decoder);
}

/* ---- the dictionary ---- */

static enum sx_status read_dictionary(struct sx_stream *stream, struct sx_decoder *decoder,
                                      struct decode_page *page) {
    int64_t n = decoder->pages[page->index].n_values;
    int64_t most = sx_plain_most(&decoder->spec, decode_left(&page->body));
    if (n > most || n > INT32_MAX)
        return decode_error(stream, page->index, "a dictionary of %lld entries in %zu bytes", (long long)n,
                            decode_left(&page->body));
    struct sx_tensor values = {0};
    struct decode_pick pick = {.n_values = n, .n = n};
    enum sx_status status;
    SX_GO(sx_tensor_create(stream->pool, decoder->spec.type, n, false, &values, &stream->error));
    SX_GO(decode_page_values(stream, decoder, page, &pick, false, values.values, &values.heap));
    SX_GO(sx_dict_create(&values, &decoder->dict, &stream->error));
out:
    sx_tensor_release(&values);
    return status;
}

enum sx_status decode_dictionary(struct sx_stream *stream, struct sx_decoder *decoder) {
    if (decoder->dict || decoder->dictionary_page < 0)
        return SX_OK;
    struct decode_page page = {0};
    SX_TRY(decode_page_open(stream, decoder, decoder->dictionary_page, &page));
    enum sx_status status = read_dictionary(stream, decoder, &page);
    decode_page_close(&page);
    return status;
}
