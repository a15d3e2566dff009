/* Which pages a read needs, and what their headers tell of them. */
#include <stdlib.h>

#include "backend/cuda/decode.h"

/* ---- lists ---- */

static enum sx_status no_memory(struct decode_call *call) {
    return sx_error_set(&call->stream->base.error, SX_OUT_OF_MEMORY, "no memory for a list of pages");
}

void decode_column_release(struct decode_column *column) {
    for (int i = 0; i < N_ARRAYS; i++)
        sx_buffer_release(column->arrays[i]);
    sx_buffer_release(column->plain);
    sx_buffer_release(column->rebuilt);
    sx_tensor_release(&column->whole);
    sx_tensor_release(&column->column);
    free(column->listed);
    free(column->pages);
}

/* Number of the last page that begins at or in front of `row` and has rows. */
static int page_of(const struct sx_decoder *decoder, int64_t row) {
    int low = 0, high = decoder->chunk.n_pages; /* first page that begins behind `row` */
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (decoder->first_rows[middle] <= row)
            low = middle + 1;
        else
            high = middle;
    }
    low--;
    while (!decode_has_rows(&decoder->chunk.pages[low]))
        low--;
    return low;
}

static bool reserve_column(struct decode_column *column, int64_t n_pages) {
    column->listed = calloc((size_t)n_pages + 1, sizeof *column->listed);
    column->pages = calloc((size_t)n_pages + 1, sizeof *column->pages);
    return column->listed && column->pages;
}

/* Pages that the parts need, at most; there may not be too many tiles. */
static enum sx_status reserve(struct decode_call *call, struct decode_column *column,
                              struct decode_column *entries, const struct sx_column_read *read) {
    int64_t n_pages = 0, n_tiles = 0, n_entry_tiles = 0;
    for (int p = 0; p < read->n_parts; p++) {
        const struct sx_decode_part *part = &read->parts[p];
        const struct sx_decoder *decoder = part->decoder;
        const int end_page = part->rows ? page_of(decoder, part->first + part->rows - 1) + 1 : 0;
        for (int i = part->rows ? page_of(decoder, part->first) : 0; i < end_page; i++) {
            n_pages++;
            n_tiles += (decoder->chunk.pages[i].n_values + DECODE_TILE - 1) / DECODE_TILE;
        }
        if (decoder->dictionary_page >= 0 && (p == 0 || read->parts[p - 1].decoder != decoder))
            n_entry_tiles += decoder->chunk.pages[decoder->dictionary_page].n_values / DECODE_TILE + 1;
    }
    if (n_pages > INT32_MAX || n_tiles > INT32_MAX || n_entry_tiles > INT32_MAX)
        return no_memory(call);
    if (!reserve_column(column, n_pages) || !reserve_column(entries, read->n_parts))
        return no_memory(call);
    return SX_OK;
}

/* ---- a page ---- */

static enum decode_source source_of(const struct sx_chunk_spec *spec, const struct sx_page *page) {
    const enum sx_parquet_encoding encoding =
        page->kind == SX_PAGE_DICTIONARY ? SX_ENCODING_PLAIN : page->encoding; /* whichever it names */
    switch (encoding) {
    case SX_ENCODING_PLAIN:
        return spec->physical == SX_PARQUET_BOOLEAN      ? DECODE_BITS
               : spec->physical == SX_PARQUET_BYTE_ARRAY ? DECODE_PLAIN_BYTES
                                                         : DECODE_PLAIN;
    case SX_ENCODING_RLE: return DECODE_RLE_BITS;
    case SX_ENCODING_DELTA_BINARY_PACKED: return DECODE_DELTA;
    case SX_ENCODING_DELTA_LENGTH_BYTE_ARRAY: return DECODE_LENGTHS;
    case SX_ENCODING_DELTA_BYTE_ARRAY: return DECODE_FRONT_CODED;
    case SX_ENCODING_BYTE_STREAM_SPLIT: return DECODE_SPLIT;
    default: return DECODE_CODES;
    }
}

/* Miniblocks have at least 32 values. */
static void reserve_miniblocks(struct decode_column *column, struct decode_page_told *page) {
    enum { LEAST_VALUES = 32 };
    const int64_t room = page->n_rows / LEAST_VALUES + 1;
    const int n_deltas = page->source == DECODE_FRONT_CODED                               ? 2
                         : page->source == DECODE_DELTA || page->source == DECODE_LENGTHS ? 1
                                                                                          : 0;
    for (int d = 0; d < n_deltas; d++) {
        page->first_miniblock[d] = (int32_t)column->n_miniblocks;
        column->n_miniblocks += room;
    }
}

/* What levels there are, and for V2 where. */
static enum sx_status find_levels(struct decode_call *call, const struct decode_listed *listed,
                                  const struct sx_page *stored, struct decode_page_told *page,
                                  uint32_t *out_lead_bytes) {
    struct sx_page_levels levels = {0};
    const bool has_levels = listed->decoder->chunk.spec.optional && stored->kind != SX_PAGE_DICTIONARY;
    page->level_kind = has_levels ? DECODE_HYBRID_LEVELS : DECODE_NO_LEVELS;
    *out_lead_bytes = 0;
    if (stored->kind == SX_PAGE_DATA_V2) {
        SX_TRY(sx_page_levels_v2(stored, listed->index, &levels, &call->stream->base.error));
        page->level_bytes = (uint32_t)levels.length;
        *out_lead_bytes = (uint32_t)(levels.skip + levels.length);
        return SX_OK;
    }
    if (!has_levels)
        return SX_OK;
    bool is_bit_packed;
    SX_TRY(sx_page_level_encoding(stored, listed->index, &is_bit_packed, &call->stream->base.error));
    if (is_bit_packed)
        page->level_kind = DECODE_BIT_PACKED_LEVELS;
    return SX_OK;
}

static enum sx_status check_page(struct decode_call *call, const struct decode_listed *listed,
                                 const struct sx_page *stored) {
    const struct sx_chunk_spec *spec = &listed->decoder->chunk.spec;
    struct sx_error *error = &call->stream->base.error;
    SX_TRY(sx_page_check(stored, listed->index, spec->physical, error));
    if (stored->n_values > INT32_MAX)
        return sx_error_set(error, SX_FILE, "page %d: %lld values", listed->index,
                            (long long)stored->n_values);
    const uint32_t bytes = stored->is_compressed ? stored->plain_bytes : stored->stored_bytes;
    if (stored->kind == SX_PAGE_DICTIONARY && stored->n_values > sx_plain_most(spec, bytes))
        return sx_error_set(error, SX_FILE, "page %d: a dictionary of %lld entries in %u bytes",
                            listed->index, (long long)stored->n_values, bytes);
    return SX_OK;
}

/* The last page of the list, if it is the decoder's; -1. Parts of a decoder follow each other. */
static int32_t last_listed(const struct decode_column *column, const struct sx_decoder *decoder) {
    const int32_t last = column->n_pages - 1;
    return last >= 0 && column->listed[last].decoder == decoder ? last : -1;
}

/* The page of the list that is this one too; -1. */
static int32_t listed_before(const struct decode_column *column, const struct sx_decoder *decoder,
                             int index) {
    const int32_t last = last_listed(column, decoder);
    return last >= 0 && column->listed[last].index == index ? last : -1;
}

/* Adds it with all its rows wanted. */
static enum sx_status add_page(struct decode_call *call, struct decode_column *column,
                               struct sx_decoder *decoder, int part, int index,
                               struct decode_page_told **out_page) {
    const struct sx_page *stored = &decoder->chunk.pages[index];
    struct decode_listed *listed = &column->listed[column->n_pages];
    struct decode_page_told *page = &column->pages[column->n_pages];
    *listed = (struct decode_listed){.decoder = decoder,
                                     .part = part,
                                     .index = index,
                                     .plain_at = -1,
                                     .same_as = listed_before(column, decoder, index)};
    SX_TRY(check_page(call, listed, stored));
    page->source = (uint8_t)source_of(&decoder->chunk.spec, stored);
    page->first_row = page->out_row = column->rows;
    page->n_rows = page->end_wanted = (int32_t)stored->n_values;
    page->n_entries = -1;
    SX_TRY(find_levels(call, listed, stored, page, &listed->lead_bytes));
    page->first_tile = column->n_tiles;
    column->n_tiles += DECODE_TILES(page->n_rows);
    reserve_miniblocks(column, page);
    column->n_pages++;
    column->rows += stored->n_values;
    column->sources |= 1u << page->source;
    column->has_levels |= page->level_kind != DECODE_NO_LEVELS;
    *out_page = page;
    return SX_OK;
}

/* ---- a part ---- */

static enum sx_status past_the_end(struct decode_call *call, const struct sx_decoder *decoder) {
    return sx_error_set(&call->stream->base.error, SX_FILE, "the pages hold %lld rows, the row group %lld",
                        (long long)decoder->page_rows, (long long)decoder->chunk.spec.n_rows);
}

static enum sx_status check_part(struct decode_call *call, const struct sx_decoder *first,
                                 const struct sx_decode_part *part) {
    const struct sx_decoder *decoder = part->decoder;
    struct sx_error *error = &call->stream->base.error;
    if (decoder->conversion != first->conversion || decoder->stored_bytes != first->stored_bytes ||
        decoder->chunk.spec.physical != first->chunk.spec.physical)
        return sx_error_set(error, SX_INTERNAL, "a read of chunks with values in different forms");
    if (part->rows < 0 || part->first < decoder->row)
        return sx_error_set(error, SX_INTERNAL, "a read of %lld rows from row %lld on, after row %lld",
                            (long long)part->rows, (long long)part->first, (long long)decoder->row);
    if (part->first > decoder->page_rows || part->rows > decoder->page_rows - part->first)
        return past_the_end(call, decoder);
    return SX_OK;
}

/* The dictionary, behind those of the chunks in front, once for all parts of a chunk; nothing where it has
 * none. */
static enum sx_status add_dictionary(struct decode_call *call, struct decode_column *entries,
                                     struct sx_decoder *decoder, int part, uint32_t *out_base,
                                     int64_t *out_entries) {
    struct decode_page_told *page;
    *out_base = (uint32_t)entries->rows;
    *out_entries = -1;
    if (decoder->dictionary_page < 0)
        return SX_OK;
    const int32_t known = last_listed(entries, decoder);
    if (known >= 0) {
        *out_base = (uint32_t)entries->pages[known].first_row;
        *out_entries = entries->pages[known].n_rows;
        return SX_OK;
    }
    SX_TRY(add_page(call, entries, decoder, part, decoder->dictionary_page, &page));
    *out_entries = page->n_rows;
    if (entries->rows > INT32_MAX)
        return sx_error_set(&call->stream->base.error, SX_FILE, "page %d: too many dictionary entries",
                            decoder->dictionary_page);
    return SX_OK;
}

static enum sx_status add_part(struct decode_call *call, struct decode_column *column,
                               struct decode_column *entries, int part_index,
                               const struct sx_decode_part *part) {
    struct sx_decoder *decoder = part->decoder;
    uint32_t code_base = 0;
    int64_t n_entries = 0;
    bool has_dictionary = false;
    if (part->rows == 0)
        return SX_OK;
    const int end_page = page_of(decoder, part->first + part->rows - 1) + 1;
    for (int i = page_of(decoder, part->first); i < end_page; i++) {
        struct decode_page_told *page;
        if (!decode_has_rows(&decoder->chunk.pages[i]))
            continue;
        SX_TRY(add_page(call, column, decoder, part_index, i, &page));
        if (page->source == DECODE_CODES && !has_dictionary)
            SX_TRY(add_dictionary(call, entries, decoder, part_index, &code_base, &n_entries));
        has_dictionary |= page->source == DECODE_CODES;
        page->code_base = code_base;
        page->n_entries = page->source == DECODE_CODES ? n_entries : -1;
        const int64_t first = part->first - decoder->first_rows[i], end = first + part->rows;
        page->first_wanted = first > 0 ? (int32_t)first : 0;
        page->end_wanted = end < page->n_rows ? (int32_t)end : page->n_rows;
        page->out_row = column->out_rows - page->first_wanted;
        column->out_rows += page->end_wanted - page->first_wanted;
    }
    return SX_OK;
}

enum sx_status decode_list(struct decode_call *call, int r) {
    const struct sx_column_read *read = &call->reads[r];
    struct decode_column *column = &call->columns[r], *entries = &call->dictionaries[r];
    bool keeps_codes = true;
    *column = (struct decode_column){.read = r, .first = read->parts[0].decoder};
    *entries = (struct decode_column){.read = r, .first = column->first, .is_dictionary = true};
    call->place = (struct sx_decode_place){r, -1};
    for (int p = 0; p < read->n_parts; p++) {
        call->place.part = p;
        SX_TRY(check_part(call, column->first, &read->parts[p]));
    }
    if (decode_kept_find(call, read, column))
        return SX_OK;
    SX_TRY(reserve(call, column, entries, read));
    for (int p = 0; p < read->n_parts; p++) {
        call->place.part = p;
        SX_TRY(add_part(call, column, entries, p, &read->parts[p]));
        keeps_codes &= read->parts[p].decoder->chunk.spec.keep_dictionary;
    }
    entries->out_rows = entries->rows;
    column->as_codes = keeps_codes && column->first->chunk.spec.type.id == SX_TYPE_VARCHAR &&
                       column->sources == 1u << DECODE_CODES && entries->rows > 0;
    if (column->out_rows > INT32_MAX || column->n_miniblocks > INT32_MAX || entries->n_miniblocks > INT32_MAX)
        return sx_error_set(&call->stream->base.error, SX_INTERNAL, "a read of %lld rows",
                            (long long)column->out_rows);
    return SX_OK;
}
