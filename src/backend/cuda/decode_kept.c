/* Columns that several scans of a query read: the first decode of a chunk leaves its values in the chunk's
 * image (cache.h), and later ones take the column from there. */
#include "backend/cuda/cache.h"
#include "backend/cuda/decode_stored.h"

/* ---- taking them ---- */

/* NULL: the chunk is not one span, or has no values there. */
static const struct cuda_image *image_of(struct decode_call *call, struct sx_decoder *decoder) {
    if (decoder->chunk.n_spans != 1)
        return NULL;
    const struct cuda_image *image = decode_image_seek(call, decoder, 0, &decoder->chunk.spans[0]);
    return image && image->values ? image : NULL;
}

/* Values behind those of the last piece are of that one, too. False: there is no room for another piece. */
static bool add_piece(struct decode_column *column, const struct cuda_image *image,
                      const struct sx_decode_part *part) {
    struct decode_pieces *pieces = &column->pieces;
    const size_t value_bytes = column->first->value_bytes;
    const uint8_t *values = image->values + (size_t)part->first * value_bytes;
    const int32_t last = pieces->n - 1;
    const bool is_next =
        last >= 0 && column->pieces_buffer == image->values_buffer &&
        values == pieces->values[last] + (size_t)(column->out_rows - pieces->begins[last]) * value_bytes;
    if (!is_next) {
        if (pieces->n == DECODE_PIECES)
            return false;
        pieces->values[pieces->n] = values;
        pieces->begins[pieces->n++] = (int32_t)column->out_rows;
        column->pieces_buffer = image->values_buffer;
    }
    column->out_rows += part->rows;
    return true;
}

bool decode_kept_find(struct decode_call *call, const struct sx_column_read *read,
                      struct decode_column *column) {
    bool is_kept = column->first->chunk.spec.type.id != SX_TYPE_VARCHAR;
    for (int p = 0; p < read->n_parts && is_kept; p++) {
        const struct sx_decode_part *part = &read->parts[p];
        const struct cuda_image *image = part->rows > 0 ? image_of(call, part->decoder) : NULL;
        is_kept = part->rows == 0 || (image && add_piece(column, image, part));
    }
    if (!is_kept || column->out_rows == 0 || column->out_rows > INT32_MAX) {
        column->pieces.n = 0;
        column->out_rows = 0;
        return false;
    }
    cuda_cache_note_taken(call->stream->device->cache);
    return true;
}

/* All rows, of one piece: the column is those values. */
static void share_piece(struct decode_column *column) {
    column->column = (struct sx_tensor){.type = column->first->chunk.spec.type,
                                        .layout = SX_FLAT,
                                        .length = column->out_rows,
                                        .values = (void *)(uintptr_t)column->pieces.values[0],
                                        .values_buffer = sx_buffer_retain(column->pieces_buffer)};
}

static enum sx_status make_column(struct decode_call *call, struct decode_column *column) {
    struct decode_pieces *pieces = &column->pieces;
    const struct sx_tensor *selection = call->selection;
    SX_TRY(sx_tensor_create(call->stream->base.pool, column->first->chunk.spec.type,
                            selection ? selection->length : column->out_rows, false, &column->column,
                            &call->stream->base.error));
    pieces->selection = selection ? selection->values : NULL;
    pieces->n_rows = column->column.length;
    pieces->out = column->column.values;
    return SX_OK;
}

/* Columns from number `r` on that are still to be made and have values of the same width, up to as many as
 * one launch takes. */
static void take_together(struct decode_call *call, int r) {
    struct decode_pieces_list list = {.n = 0};
    const size_t value_bytes = call->columns[r].first->value_bytes;
    for (; r < call->n_reads && list.n < DECODE_WORKS; r++) {
        struct decode_column *column = &call->columns[r];
        if (!column->pieces.out || column->first->value_bytes != value_bytes)
            continue;
        list.of[list.n++] = column->pieces;
        column->pieces.out = NULL;
    }
    cuda_decode_take_pieces(call->stream->handle, &list, (uint32_t)value_bytes);
}

/* What was decoded, of which a selection is taken. */
static void set_aside(struct decode_column *column) {
    column->whole = column->column;
    column->column = (struct sx_tensor){0};
    column->pieces = (struct decode_pieces){.values = {column->whole.values}, .n = 1};
    column->pieces_buffer = column->whole.values_buffer;
}

enum sx_status decode_kept_issue(struct decode_call *call) {
    bool is_taken = false;
    for (int r = 0; r < call->n_reads; r++) {
        struct decode_column *column = &call->columns[r];
        if (column->is_to_keep && call->selection)
            set_aside(column);
        if (column->pieces.n == 1 && !call->selection)
            share_piece(column);
        else if (column->pieces.n > 0)
            SX_TRY(make_column(call, column));
    }
    for (int r = 0; r < call->n_reads; r++)
        if (call->columns[r].pieces.out) {
            take_together(call, r);
            is_taken = true;
        }
    return is_taken ? cuda_launched(call->stream, "taking decoded columns") : SX_OK;
}

/* ---- keeping them ---- */

static bool is_for_others(const struct decode_begun *begun) {
    return begun->image->n_left > 0 && begun->decoder->chunk.n_spans == 1;
}

/* Row of the column with the chunk's first one; -1: not all of the chunk's rows are there, one behind the
 * other. */
static int64_t find_chunk(const struct decode_column *column, const struct sx_decoder *decoder) {
    int64_t first = -1, rows = 0;
    for (int32_t i = 0; i < column->n_pages; i++) {
        const struct decode_page_told *page = &column->pages[i];
        if (column->listed[i].decoder != decoder)
            continue;
        if (decoder->first_rows[column->listed[i].index] + page->first_wanted != rows)
            return -1;
        if (rows == 0)
            first = page->out_row + page->first_wanted;
        rows += page->end_wanted - page->first_wanted;
    }
    return rows == decoder->page_rows ? first : -1;
}

/* Rows of whole chunks that later scans want. */
static int64_t rows_for_others(const struct decode_call *call, const struct decode_column *column) {
    const struct sx_decoder *last = NULL;
    int64_t rows = 0;
    for (int32_t k = 0; k < column->n_pages; k++) {
        const struct sx_decoder *decoder = column->listed[k].decoder;
        for (int i = 0; decoder != last && i < call->n_begun; i++)
            if (call->begun[i].decoder == decoder && is_for_others(&call->begun[i]) &&
                find_chunk(column, decoder) >= 0)
                rows += decoder->page_rows;
        last = decoder;
    }
    return rows;
}

/* Not where few of many rows are wanted now: they are decoded alone. Nor where few would be kept: all that
 * are decoded stay with them. */
bool decode_is_to_keep(const struct decode_call *call, const struct decode_column *column) {
    enum { LEAST_SHARE = 8 };
    const struct sx_tensor *selection = call->selection;
    const size_t bytes = (size_t)column->out_rows * column->first->value_bytes;
    if (column->is_dictionary || column->n_pages == 0 || column->first->chunk.spec.type.id == SX_TYPE_VARCHAR)
        return false;
    if (selection && (column->has_levels || selection->length < column->out_rows / LEAST_SHARE))
        return false;
    return call->n_begun > 0 && 2 * rows_for_others(call, column) >= column->out_rows &&
           cuda_cache_takes_values(call->stream->device->cache, bytes);
}

static void keep(const struct decode_call *call, const struct decode_column *column,
                 const struct sx_decoder *decoder, struct cuda_image *image) {
    const struct sx_tensor *decoded = call->selection ? &column->whole : &column->column;
    const int64_t first = find_chunk(column, decoder);
    if (first < 0 || cuda_counter(call->stream, column->counter) > 0) /* NULLs */
        return;
    image->values = (const uint8_t *)decoded->values + (size_t)first * decoder->value_bytes;
    image->values_buffer = sx_buffer_retain(decoded->values_buffer);
    image->values_bytes = (size_t)decoder->page_rows * decoder->value_bytes;
}

void decode_kept_note(const struct decode_call *call, const struct decode_begun *begun) {
    for (int r = 0; r < call->n_reads && is_for_others(begun) && !begun->image->values; r++)
        if (call->columns[r].is_to_keep)
            keep(call, &call->columns[r], begun->decoder, begun->image);
}
