/* Column chunks on the device: decodes far ahead, since scans read forwards, and gives slices of that. */
#include <stdlib.h>

#include "backend/cuda/decode.h"
#include "backend/cuda/launch.h"

/* Rows that are decoded at a time, if a read does not ask for more. */
enum { AHEAD_ROWS = 4 << 20 };

/* ---- life ---- */

static void list_first_rows(struct sx_decoder *decoder) {
    int64_t row = 0;
    for (int i = 0; i < decoder->n_pages; i++) {
        decoder->first_rows[i] = row;
        row += decode_has_rows(&decoder->pages[i]) ? decoder->pages[i].n_values : 0;
    }
    decoder->first_rows[decoder->n_pages] = row;
}

static enum sx_status init(struct cuda_stream *stream, struct sx_decoder *decoder) {
    const struct sx_chunk_spec *spec = &decoder->spec;
    struct sx_error *error = &stream->base.error;
    if (spec->physical == SX_PARQUET_FIXED_LEN_BYTE_ARRAY && spec->type_length <= 0)
        return sx_error_set(error, SX_FILE, "values of fixed length %d", (int)spec->type_length);
    SX_TRY(decode_conversion_find(stream, decoder));
    decoder->stored_bytes = sx_stored_bytes(spec);
    decoder->value_bytes = sx_type_bytes(spec->type);
    SX_TRY(sx_pages_check(spec, decoder->pages, decoder->n_pages, &decoder->dictionary_page,
                          &decoder->page_rows, error));
    decoder->first_rows = calloc((size_t)decoder->n_pages + 1, sizeof *decoder->first_rows);
    if (!decoder->first_rows)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a decoder");
    list_first_rows(decoder);
    return SX_OK;
}

void sx_cuda_decoder_destroy(struct sx_stream *base, struct sx_decoder *decoder) {
    if (!decoder)
        return;
    sx_tensor_release(&decoder->ahead);
    sx_dict_release(decoder->dict);
    sx_codecs_destroy(decoder->codecs);
    sx_pool_free(cuda_stream_of(base)->host_pool, decoder->plain, decoder->plain_bytes);
    sx_buffer_release(decoder->owner);
    free(decoder->first_rows);
    free(decoder);
}

enum sx_status sx_cuda_decoder_create(struct sx_stream *base, const struct sx_chunk_spec *spec,
                                      const struct sx_page *pages, int n_pages, struct sx_buffer *owner,
                                      struct sx_decoder **out_decoder) {
    struct cuda_stream *stream;
    SX_TRY(cuda_enter(base, &stream));
    struct sx_decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder)
        return sx_error_set(&base->error, SX_OUT_OF_MEMORY, "no memory for a decoder");
    decoder->spec = *spec;
    decoder->pages = pages;
    decoder->n_pages = n_pages;
    decoder->owner = sx_buffer_retain(owner);
    enum sx_status status = init(stream, decoder);
    if (status != SX_OK) {
        sx_cuda_decoder_destroy(base, decoder);
        return status;
    }
    *out_decoder = decoder;
    return SX_OK;
}

/* ---- the dictionary ---- */

static enum sx_status read_dictionary(struct cuda_stream *stream, struct sx_decoder *decoder) {
    struct sx_tensor entries = {0};
    const int page = decoder->dictionary_page;
    int bad_page;
    if (decoder->dict || page < 0)
        return SX_OK;
    SX_TRY(decode_range(stream, decoder, page, page + 1, true, false, &entries, &bad_page));
    enum sx_status status = sx_dict_create(&entries, &decoder->dict, &stream->base.error);
    sx_tensor_release(&entries);
    return status;
}

enum sx_status sx_cuda_decoder_dictionary(struct sx_stream *base, struct sx_decoder *decoder,
                                          struct sx_dict **out_dict) {
    struct cuda_stream *stream;
    bool all = true;
    SX_TRY(cuda_enter(base, &stream));
    for (int i = 0; i < decoder->n_pages; i++) {
        const struct sx_page *page = &decoder->pages[i];
        if (page->kind != SX_PAGE_DICTIONARY && page->bytes) /* pruned pages are not read */
            all &= sx_encoding_is_dictionary(page->encoding);
    }
    if (all)
        SX_TRY(read_dictionary(stream, decoder));
    *out_dict = all ? decoder->dict : NULL;
    return SX_OK;
}

/* ---- decoding ahead ---- */

/* Number of the last page that begins at or in front of `row` and has rows. */
static int page_of(const struct sx_decoder *decoder, int64_t row) {
    int low = 0, high = decoder->n_pages; /* first page that begins behind `row` */
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (decoder->first_rows[middle] <= row)
            low = middle + 1;
        else
            high = middle;
    }
    low--;
    while (!decode_has_rows(&decoder->pages[low]))
        low--;
    return low;
}

/* Whether the page's rows, if it has any, can be in a column of codes. */
static bool can_be_codes(const struct sx_page *page) {
    return !decode_has_rows(page) || !page->bytes || sx_encoding_is_dictionary(page->encoding);
}

static bool all_codes(const struct sx_decoder *decoder, int first_page, int end_page) {
    bool all = true, any = false;
    for (int i = first_page; i < end_page; i++) {
        const struct sx_page *page = &decoder->pages[i];
        all &= can_be_codes(page);
        any |= decode_has_rows(page) && page->bytes;
    }
    return all && any;
}

static bool any_codes(const struct sx_decoder *decoder, int first_page, int end_page) {
    for (int i = first_page; i < end_page; i++)
        if (decode_has_rows(&decoder->pages[i]) && decoder->pages[i].bytes &&
            sx_encoding_is_dictionary(decoder->pages[i].encoding))
            return true;
    return false;
}

static enum sx_status decode_pages(struct cuda_stream *stream, struct sx_decoder *decoder, int first_page,
                                   int end_page, bool as_codes, struct sx_tensor *out_column,
                                   int *out_bad_page) {
    *out_bad_page = -1;
    if (any_codes(decoder, first_page, end_page))
        SX_TRY(read_dictionary(stream, decoder));
    as_codes = as_codes && decoder->dict && decoder->dict->values.length > 0;
    return decode_range(stream, decoder, first_page, end_page, false, as_codes, out_column, out_bad_page);
}

/* A damaged page ends the range in front of it; that is a failure only if one of the pages up to `needed_end`
 * is damaged, and then the first of them is told. */
static enum sx_status decode_good_pages(struct cuda_stream *stream, struct sx_decoder *decoder,
                                        int first_page, int needed_end, int end_page, bool as_codes,
                                        struct sx_tensor *out_column) {
    struct sx_error found = {0};
    for (;;) {
        int bad_page;
        const enum sx_status status =
            decode_pages(stream, decoder, first_page, end_page, as_codes, out_column, &bad_page);
        if (status == SX_OK && found.status == SX_OK)
            return SX_OK;
        if (status == SX_OK) {
            sx_tensor_release(out_column);
            stream->base.error = found;
            return found.status;
        }
        if (bad_page <= first_page)
            return status;
        if (bad_page < needed_end)
            found = stream->base.error;
        end_page = bad_page;
    }
}

/* Rows [row, row + rows) are in decoder->ahead afterwards. */
static enum sx_status decode_ahead(struct cuda_stream *stream, struct sx_decoder *decoder, int64_t row,
                                   int64_t rows) {
    if (row >= decoder->ahead_row && row + rows <= decoder->ahead_row + decoder->ahead.length)
        return SX_OK;
    const int first_page = page_of(decoder, row), needed_end = page_of(decoder, row + rows - 1) + 1;
    const int64_t first_row = decoder->first_rows[first_page];
    const bool as_codes = decoder->spec.keep_dictionary && decoder->spec.type.id == SX_TYPE_VARCHAR &&
                          all_codes(decoder, first_page, needed_end);
    int end_page = needed_end;
    while (end_page < decoder->n_pages && decoder->first_rows[end_page + 1] - first_row <= AHEAD_ROWS &&
           (!as_codes || can_be_codes(&decoder->pages[end_page])))
        end_page++;
    struct sx_tensor column;
    sx_tensor_release(&decoder->ahead);
    SX_TRY(decode_good_pages(stream, decoder, first_page, needed_end, end_page, as_codes, &column));
    decoder->ahead = column;
    decoder->ahead_row = first_row;
    return SX_OK;
}

/* ---- reading ---- */

static enum sx_status past_the_end(struct sx_stream *stream, const struct sx_decoder *decoder) {
    return sx_error_set(&stream->error, SX_FILE, "the pages hold %lld rows, the row group %lld",
                        (long long)decoder->page_rows, (long long)decoder->spec.n_rows);
}

/* Without a selection every page has to be there. */
static enum sx_status check_pruned(struct sx_stream *stream, const struct sx_decoder *decoder, int64_t rows) {
    const int end_page = page_of(decoder, decoder->row + rows - 1) + 1;
    for (int i = page_of(decoder, decoder->row); i < end_page; i++)
        if (decode_has_rows(&decoder->pages[i]) && !decoder->pages[i].bytes)
            return sx_page_check(&decoder->pages[i], i, decoder->spec.physical, &stream->error);
    return SX_OK;
}

/* Rows of a column by an index without negatives. */
static enum sx_status gather_rows(struct cuda_stream *stream, const struct sx_tensor *column,
                                  const struct sx_tensor *index, struct sx_tensor *out_column) {
    const bool is_codes = column->layout == SX_DICT;
    struct sx_tensor flat = *column, made;
    struct sx_error *error = &stream->base.error;
    if (is_codes) {
        flat.layout = SX_FLAT;
        flat.type = sx_type_of(SX_TYPE_I32);
        SX_TRY(sx_tensor_create_codes(stream->base.pool, column->dict, index->length, column->valid != NULL,
                                      &made, error));
    } else {
        SX_TRY(sx_tensor_create(stream->base.pool, column->type, index->length, column->valid != NULL, &made,
                                error));
    }
    cuda_gather_values(stream->handle, cuda_column_of(&flat), index->values, index->type.id == SX_TYPE_I64,
                       (int)sx_type_bytes(flat.type), index->length, made.values, made.valid);
    made.heap = sx_buffer_retain(column->heap);
    enum sx_status status = cuda_launched(stream, "reading selected rows");
    if (status != SX_OK) {
        sx_tensor_release(&made);
        return status;
    }
    *out_column = made;
    return SX_OK;
}

enum sx_status sx_cuda_decoder_read(struct sx_stream *base, struct sx_decoder *decoder, int64_t rows,
                                    const struct sx_tensor *selection, struct sx_tensor *out_column) {
    struct cuda_stream *stream;
    struct sx_tensor column;
    SX_TRY(cuda_enter(base, &stream));
    if (rows < 0 || rows > INT32_MAX)
        return sx_error_set(&base->error, SX_INTERNAL, "a read of %lld rows", (long long)rows);
    if (rows > decoder->page_rows - decoder->row)
        return past_the_end(base, decoder);
    if (rows == 0 || (selection && selection->length == 0)) {
        SX_TRY(sx_tensor_create(base->pool, decoder->spec.type, 0, false, out_column, &base->error));
        decoder->row += rows;
        return SX_OK;
    }
    if (!selection)
        SX_TRY(check_pruned(base, decoder, rows));
    SX_TRY(decode_ahead(stream, decoder, decoder->row, rows));
    sx_tensor_slice(&decoder->ahead, decoder->row - decoder->ahead_row, rows, &column);
    if (selection) {
        struct sx_tensor all = column;
        enum sx_status status = gather_rows(stream, &all, selection, &column);
        sx_tensor_release(&all);
        SX_TRY(status);
    }
    *out_column = column;
    decoder->row += rows;
    return SX_OK;
}

enum sx_status sx_cuda_decoder_skip(struct sx_stream *base, struct sx_decoder *decoder, int64_t rows) {
    if (rows < 0)
        return sx_error_set(&base->error, SX_INTERNAL, "a skip of %lld rows", (long long)rows);
    if (rows > decoder->page_rows - decoder->row)
        return past_the_end(base, decoder);
    decoder->row += rows;
    return SX_OK;
}
