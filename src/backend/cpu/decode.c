#include <stdlib.h>

#include "backend/cpu/decode.h"
#include "backend/cpu/move.h"

/* ---- the column that is being read ---- */

struct output {
    struct sx_tensor column;
    int64_t at; /* rows written */
    bool as_codes;
    size_t value_bytes;
    struct sx_buffer **heaps; /* behind string views; room for a power of two */
    int n_heaps;
};

static enum sx_status keep_heap(struct sx_stream *stream, struct output *out, struct sx_buffer *heap) {
    int n = out->n_heaps;
    if (!heap || (n > 0 && out->heaps[n - 1] == heap)) {
        sx_buffer_release(heap);
        return SX_OK;
    }
    if ((n & (n - 1)) == 0) {
        struct sx_buffer **grown = realloc(out->heaps, (n ? 2 * (size_t)n : 1) * sizeof(struct sx_buffer *));
        if (!grown) {
            sx_buffer_release(heap);
            return sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for a list of buffers");
        }
        out->heaps = grown;
    }
    out->heaps[out->n_heaps++] = heap;
    return SX_OK;
}

static void release_output(struct output *out) {
    for (int i = 0; i < out->n_heaps; i++)
        sx_buffer_release(out->heaps[i]);
    free(out->heaps);
    sx_tensor_release(&out->column);
}

/* Validity is made at the first null. */
static enum sx_status need_valid(struct sx_stream *stream, struct output *out) {
    if (out->column.valid)
        return SX_OK;
    size_t rows = (size_t)out->column.length;
    SX_TRY(sx_buffer_create(stream->pool, rows, &out->column.valid_buffer, &stream->error));
    out->column.valid = out->column.valid_buffer->data;
    memset(out->column.valid, 1, rows);
    return SX_OK;
}

static void *next_value(const struct output *out) {
    return (char *)out->column.values + (size_t)out->at * out->value_bytes;
}

/* ---- rows of one page ---- */

/* What of a page's next rows is wanted. */
struct step {
    int64_t rows;
    const int32_t *selection; /* rows wanted, those at selection[i] - base; NULL: all */
    int32_t base;
    int64_t n;
};

/* The step's definition levels as bytes in decoder->levels, unless no row is null. */
static enum sx_status read_levels(struct sx_stream *stream, struct sx_decoder *decoder, int64_t rows,
                                  int64_t *out_valid) {
    struct decode_page *page = &decoder->page;
    struct decode_hybrid *levels = &page->levels;
    *out_valid = rows;
    if (!page->has_levels)
        return SX_OK;
    if (decode_hybrid_run(levels) && !levels->is_packed && levels->value == 1 &&
        levels->run_left >= (uint64_t)rows) {
        levels->run_left -= (uint64_t)rows;
        return SX_OK;
    }
    SX_TRY(decode_reserve(stream, &decoder->levels, DECODE_STEP_ROWS));
    if (decode_hybrid_read_bits(levels, rows, decoder->levels.memory, out_valid) < rows)
        return decode_error(stream, page->index, "the definition levels are cut off or damaged");
    return SX_OK;
}

/* Of the wanted rows: validity, and where the valid ones are among the values. Returns their number. */
static int64_t locate(const uint8_t *levels, const struct step *step, uint8_t *out_valid,
                      int32_t *out_positions) {
    int64_t row = 0, found = 0;
    int32_t values = 0;
    for (int64_t i = 0; i < step->n; i++) {
        int64_t wanted = step->selection[i] - step->base;
        for (; row < wanted; row++)
            values += levels[row];
        out_valid[i] = levels[row];
        out_positions[found] = values;
        found += levels[row];
    }
    return found;
}

static enum sx_status read_values(struct sx_stream *stream, struct sx_decoder *decoder,
                                  const struct decode_pick *pick, struct output *out) {
    struct sx_buffer *heap = NULL;
    SX_TRY(decode_page_values(stream, decoder, &decoder->page, pick, out->as_codes, next_value(out), &heap));
    return keep_heap(stream, out, heap);
}

static enum sx_status read_with_nulls(struct sx_stream *stream, struct sx_decoder *decoder,
                                      const struct step *step, int64_t n_values, struct output *out) {
    struct decode_pick pick = {.n_values = n_values, .n = n_values};
    const uint8_t *levels = decoder->levels.memory;
    SX_TRY(need_valid(stream, out));
    uint8_t *valid = out->column.valid + out->at;
    if (step->selection) {
        SX_TRY(decode_reserve(stream, &decoder->positions, (DECODE_STEP_ROWS + 1) * sizeof(int32_t)));
        pick.n = locate(levels, step, valid, decoder->positions.memory);
        pick.positions = decoder->positions.memory;
    } else {
        memcpy(valid, levels, (size_t)step->rows);
    }
    SX_TRY(read_values(stream, decoder, &pick, out));
    decode_spread(next_value(out), out->value_bytes, valid, step->n, pick.n);
    return SX_OK;
}

/* At most DECODE_STEP_ROWS rows of the open page. */
static enum sx_status read_step(struct sx_stream *stream, struct sx_decoder *decoder, const struct step *step,
                                struct output *out) {
    int64_t n_values;
    SX_TRY(read_levels(stream, decoder, step->rows, &n_values));
    if (n_values < step->rows) {
        SX_TRY(read_with_nulls(stream, decoder, step, n_values, out));
    } else {
        struct decode_pick pick = {step->rows, step->selection, step->base, step->n};
        SX_TRY(read_values(stream, decoder, &pick, out));
    }
    decoder->page.rows_done += step->rows;
    out->at += step->n;
    return SX_OK;
}

static enum sx_status skip_in_page(struct sx_stream *stream, struct sx_decoder *decoder, int64_t rows) {
    struct decode_page *page = &decoder->page;
    int64_t n_values = rows;
    if (page->has_levels && decode_hybrid_skip_bits(&page->levels, rows, &n_values) < rows)
        return decode_error(stream, page->index, "the definition levels are cut off or damaged");
    SX_TRY(decode_page_skip(stream, decoder, page, n_values));
    page->rows_done += rows;
    return SX_OK;
}

/* ---- the way through the pages ---- */

static bool is_data(const struct sx_page *page) {
    return page->kind != SX_PAGE_DICTIONARY;
}

static enum sx_status past_the_end(struct sx_stream *stream, const struct sx_decoder *decoder) {
    return sx_error_set(&stream->error, SX_FILE, "the pages hold %lld rows, the row group %lld",
                        (long long)decoder->page_rows, (long long)decoder->spec.n_rows);
}

/* Opens the page that holds `row`, and skips to it. */
static enum sx_status seek(struct sx_stream *stream, struct sx_decoder *decoder, int64_t row) {
    const struct sx_page *pages = decoder->pages;
    int index = decoder->page_index;
    int64_t first = decoder->page_first_row;
    while (index < decoder->n_pages && (!is_data(&pages[index]) || row - first >= pages[index].n_values)) {
        first += is_data(&pages[index]) ? pages[index].n_values : 0;
        index++;
    }
    if (index == decoder->n_pages)
        return past_the_end(stream, decoder);
    if (index != decoder->page_index)
        decode_page_close(&decoder->page);
    decoder->page_index = index;
    decoder->page_first_row = first;
    if (!decoder->page.is_open)
        SX_TRY(decode_page_open(stream, decoder, index, &decoder->page));
    int64_t skipped = row - first - decoder->page.rows_done;
    return skipped > 0 ? skip_in_page(stream, decoder, skipped) : SX_OK;
}

/* Rows of the open page from `row` on. */
static int64_t rows_left_in_page(const struct sx_decoder *decoder, int64_t row) {
    return decoder->page_first_row + decoder->pages[decoder->page_index].n_values - row;
}

/* Rows up to the next page's first, without opening one. */
static int64_t page_end(const struct sx_decoder *decoder, int64_t row) {
    int64_t first = decoder->page_first_row;
    for (int index = decoder->page_index; index < decoder->n_pages; index++) {
        if (!is_data(&decoder->pages[index]))
            continue;
        first += decoder->pages[index].n_values;
        if (first > row)
            return first;
    }
    return first;
}

/* Whether the read can give codes: all its pages are in dictionary encoding. */
static bool all_in_dictionary(const struct sx_decoder *decoder, int64_t row, int64_t rows) {
    int64_t first = decoder->page_first_row;
    for (int index = decoder->page_index; index < decoder->n_pages && first < row + rows; index++) {
        const struct sx_page *page = &decoder->pages[index];
        if (!is_data(page))
            continue;
        first += page->n_values;
        if (first > row && page->n_values > 0 && !sx_encoding_is_dictionary(page->encoding))
            return false;
    }
    return true;
}

/* Position in selection[from..n) of the first row that is not below `end`. */
static int64_t selected_below(const int32_t *selection, int64_t from, int64_t n, int64_t end) {
    int64_t low = from, high = n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (selection[middle] < end)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- reading ---- */

static enum sx_status read_all(struct sx_stream *stream, struct sx_decoder *decoder, int64_t rows,
                               struct output *out) {
    int64_t row = decoder->row, end = row + rows;
    while (row < end) {
        SX_TRY(sx_cpu_check_cancel(stream));
        SX_TRY(seek(stream, decoder, row));
        int64_t n = rows_left_in_page(decoder, row);
        n = n < end - row ? n : end - row;
        n = n < DECODE_STEP_ROWS ? n : DECODE_STEP_ROWS;
        struct step step = {.rows = n, .n = n};
        SX_TRY(read_step(stream, decoder, &step, out));
        row += n;
    }
    return SX_OK;
}

/* Steps begin at a selected row, so that what lies between is skipped. */
static enum sx_status read_selected(struct sx_stream *stream, struct sx_decoder *decoder,
                                    const struct sx_tensor *selection, struct output *out) {
    const int32_t *rows = selection->values;
    for (int64_t i = 0; i < selection->length;) {
        SX_TRY(sx_cpu_check_cancel(stream));
        SX_TRY(seek(stream, decoder, decoder->row + rows[i]));
        int64_t first = rows[i], end = first + rows_left_in_page(decoder, decoder->row + first);
        end = end < first + DECODE_STEP_ROWS ? end : first + DECODE_STEP_ROWS;
        int64_t next = selected_below(rows, i, selection->length, end);
        struct step step = {rows[next - 1] + 1 - first, rows + i, (int32_t)first, next - i};
        if (step.n == step.rows)
            step.selection = NULL;
        SX_TRY(read_step(stream, decoder, &step, out));
        i = next;
    }
    return SX_OK;
}

static enum sx_status create_column(struct sx_stream *stream, struct sx_decoder *decoder, int64_t rows,
                                    int64_t length, struct output *out) {
    out->as_codes = decoder->spec.keep_dictionary && decoder->spec.type.id == SX_TYPE_VARCHAR && length > 0 &&
                    all_in_dictionary(decoder, decoder->row, rows);
    if (out->as_codes)
        SX_TRY(decode_dictionary(stream, decoder));
    out->as_codes = out->as_codes && decoder->dict && decoder->dict->values.length > 0;
    out->value_bytes = out->as_codes ? sizeof(int32_t) : decoder->value_bytes;
    if (out->as_codes)
        return sx_tensor_create_codes(stream->pool, decoder->dict, length, false, &out->column,
                                      &stream->error);
    return sx_tensor_create(stream->pool, decoder->spec.type, length, false, &out->column, &stream->error);
}

static enum sx_status check_request(struct sx_stream *stream, const struct sx_decoder *decoder, int64_t rows,
                                    const struct sx_tensor *selection) {
    if (rows < 0 || rows > INT32_MAX)
        return sx_error_set(&stream->error, SX_INTERNAL, "a read of %lld rows", (long long)rows);
    if (rows > decoder->page_rows - decoder->row)
        return past_the_end(stream, decoder);
    if (!selection || selection->length == 0)
        return SX_OK;
    const int32_t *wanted = selection->values;
    if (wanted[0] < 0 || wanted[selection->length - 1] >= rows)
        return sx_error_set(&stream->error, SX_INTERNAL, "a selection outside of the rows read");
    return SX_OK;
}

/* The page's own bytes, where they are the values and no row is null. False: they have to be copied. */
static enum sx_status share_page(struct sx_stream *stream, struct sx_decoder *decoder, int64_t rows,
                                 struct sx_tensor *out_column, bool *out_done) {
    *out_done = false;
    bool is_plain = decoder->conversion.is_copy && decoder->spec.physical != SX_PARQUET_BOOLEAN;
    if (!is_plain || rows == 0 || page_end(decoder, decoder->row) - decoder->row < rows)
        return SX_OK;
    SX_TRY(seek(stream, decoder, decoder->row));
    struct decode_page *page = &decoder->page;
    const struct decode_hybrid *levels = &page->levels;
    if (page->encoding != SX_ENCODING_PLAIN || !page->buffer ||
        (uintptr_t)page->body.at % decoder->value_bytes ||
        decode_left(&page->body) / decoder->value_bytes < (uint64_t)rows)
        return SX_OK;
    if (page->has_levels && !(decode_hybrid_run(&page->levels) && !levels->is_packed && levels->value == 1 &&
                              levels->run_left >= (uint64_t)rows))
        return SX_OK;
    if (page->has_levels)
        page->levels.run_left -= (uint64_t)rows;
    *out_column = (struct sx_tensor){.type = decoder->spec.type, .layout = SX_FLAT, .length = rows};
    out_column->values = (void *)(uintptr_t)page->body.at;
    out_column->values_buffer = sx_buffer_retain(page->buffer);
    page->body.at += (size_t)rows * decoder->value_bytes;
    page->rows_done += rows;
    *out_done = true;
    return SX_OK;
}

static enum sx_status read_column(struct sx_stream *stream, struct sx_decoder *decoder, int64_t rows,
                                  const struct sx_tensor *selection, struct output *out) {
    int64_t length = selection ? selection->length : rows;
    bool shared = false;
    if (!selection)
        SX_TRY(share_page(stream, decoder, rows, &out->column, &shared));
    if (shared)
        return SX_OK;
    SX_TRY(create_column(stream, decoder, rows, length, out));
    SX_TRY(selection ? read_selected(stream, decoder, selection, out) : read_all(stream, decoder, rows, out));
    return sx_buffer_join(stream->pool, out->heaps, out->n_heaps, &out->column.heap, &stream->error);
}

enum sx_status decode_read(struct sx_stream *stream, struct sx_decoder *decoder, int64_t rows,
                           const struct sx_tensor *selection, struct sx_tensor *out_column) {
    struct output out = {0};
    int page_index = decoder->page_index;
    int64_t page_first_row = decoder->page_first_row;
    SX_TRY(sx_cpu_check_cancel(stream));
    SX_TRY(check_request(stream, decoder, rows, selection));
    enum sx_status status = read_column(stream, decoder, rows, selection, &out);
    if (status == SX_OK) {
        decoder->row += rows;
        *out_column = out.column;
        out.column = (struct sx_tensor){0};
    } else {
        decode_page_close(&decoder->page); /* it may stand behind decoder->row */
        decoder->page_index = page_index;
        decoder->page_first_row = page_first_row;
    }
    release_output(&out);
    return status;
}

enum sx_status decode_skip(struct sx_stream *stream, struct sx_decoder *decoder, int64_t rows) {
    if (rows < 0)
        return sx_error_set(&stream->error, SX_INTERNAL, "a skip of %lld rows", (long long)rows);
    if (rows > decoder->page_rows - decoder->row)
        return past_the_end(stream, decoder);
    decoder->row += rows;
    return SX_OK;
}
