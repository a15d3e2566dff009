/* A column from its pages: memory, and what is known only after the kernels (decode_issue.c) have run. */
#include <stdlib.h>

#include "backend/cuda/cache.h"
#include "backend/cuda/decode.h"

/* ---- arrays ---- */

static enum sx_status make_array(struct decode_call *call, struct decode_column *column,
                                 enum decode_array array, int64_t n, size_t bytes, void *out_pointer) {
    struct cuda_stream *stream = call->stream;
    SX_TRY(
        sx_buffer_create(stream->base.pool, (size_t)n * bytes, &column->arrays[array], &stream->base.error));
    *(void **)out_pointer = column->arrays[array]->data;
    return SX_OK;
}

/* Whether values are staged as they are wanted and where: whole pages of them, none NULL. Then the column is
 * where they are staged, and nothing is left to be moved. */
bool decode_stages_column(const struct decode_column *column) {
    const uint32_t other = ~(1u << DECODE_DELTA | 1u << DECODE_SPLIT);
    const enum decode_conversion conversion = column->first->conversion;
    return !(column->sources & other) && (conversion == DECODE_4_to_4 || conversion == DECODE_8_to_8) &&
           !column->has_levels && !column->work.selection && column->rows == column->out_rows;
}

static bool is_staged(enum decode_source source) {
    return source == DECODE_BITS || source == DECODE_RLE_BITS || source == DECODE_SPLIT ||
           source == DECODE_DELTA;
}

/* What each encoding needs one of for each value. */
static enum sx_status make_value_arrays(struct decode_call *call, struct decode_column *column) {
    struct decode_work *work = &column->work;
    const bool has_front = decode_has_source(column, DECODE_FRONT_CODED);
    const bool has_bytes = has_front || decode_has_source(column, DECODE_PLAIN_BYTES) ||
                           decode_has_source(column, DECODE_LENGTHS);
    const size_t stored_bytes = column->first->stored_bytes;
    const int64_t n = column->rows;
    bool has_staged = false;
    for (int i = 0; i < DECODE_N_SOURCES; i++)
        has_staged |= decode_has_source(column, (enum decode_source)i) && is_staged((enum decode_source)i);
    if (has_staged && decode_stages_column(column))
        work->staged = work->out;
    else if (has_staged)
        SX_TRY(make_array(call, column, ARRAY_STAGED, n, stored_bytes, &work->staged));
    if (decode_has_source(column, DECODE_CODES) && column->has_levels)
        SX_TRY(make_array(call, column, ARRAY_CODES, n, sizeof *work->codes, &work->codes));
    if (has_bytes) {
        SX_TRY(make_array(call, column, ARRAY_OFFSETS, n, sizeof *work->offsets, &work->offsets));
        SX_TRY(make_array(call, column, ARRAY_LENGTHS, n, sizeof *work->lengths, &work->lengths));
    }
    if (has_front) {
        SX_TRY(make_array(call, column, ARRAY_PREFIXES, n, sizeof *work->prefixes, &work->prefixes));
        SX_TRY(make_array(call, column, ARRAY_SOURCES, n, sizeof *work->sources, &work->sources));
    }
    for (int32_t i = 0; i < column->n_pages; i++)
        if (is_staged((enum decode_source)column->pages[i].source))
            column->pages[i].stored = work->staged + (size_t)column->pages[i].first_row * stored_bytes;
    return SX_OK;
}

static enum sx_status make_arrays(struct decode_call *call, struct decode_column *column) {
    struct decode_work *work = &column->work;
    SX_TRY(make_value_arrays(call, column));
    void *told;
    SX_TRY(make_array(call, column, ARRAY_TOLD, column->n_pages, sizeof *column->pages, &told));
    SX_TRY(cuda_upload_later(call->stream, &call->uploads, told, column->pages,
                             (size_t)column->n_pages * sizeof *column->pages));
    work->told = told;
    SX_TRY(make_array(call, column, ARRAY_PAGES, column->n_pages, DECODE_PAGE_BYTES, &work->pages));
    SX_TRY(make_array(call, column, ARRAY_TILES, column->n_tiles, sizeof *work->tiles, &work->tiles));
    SX_TRY(make_array(call, column, ARRAY_MINIBLOCKS, column->n_miniblocks, sizeof *work->miniblocks,
                      &work->miniblocks));
    SX_TRY(make_array(call, column, ARRAY_STATES, column->n_pages, sizeof *work->states, &work->states));
    SX_TRY(make_array(call, column, ARRAY_RUNS, column->n_tiles, sizeof *work->runs, &work->runs));
    SX_TRY(make_array(call, column, ARRAY_TILE_VALUES, column->n_tiles, sizeof *work->tile_values,
                      &work->tile_values));
    if (column->has_levels) {
        SX_TRY(make_array(call, column, ARRAY_IN_TILE, column->rows, sizeof *work->in_tile, &work->in_tile));
        SX_TRY(make_array(call, column, ARRAY_VALID, column->rows, sizeof *work->valid, &work->valid));
    }
    if (!work->selection)
        return SX_OK;
    return make_array(call, column, ARRAY_SELECTED, column->n_tiles, sizeof *work->selected, &work->selected);
}

/* Codes become a DICT column when their dictionary is there. */
static enum sx_status make_tensor(struct decode_call *call, struct decode_column *column) {
    struct decode_work *work = &column->work;
    const struct sx_type type = column->as_codes ? sx_type_of(SX_TYPE_I32) : column->first->chunk.spec.type;
    const int64_t rows = work->selection ? work->n_selected : column->out_rows;
    SX_TRY(sx_tensor_create(call->stream->base.pool, type, rows, column->has_levels, &column->column,
                            &call->stream->base.error));
    work->out = column->column.values;
    work->out_valid = column->column.valid;
    return SX_OK;
}

enum sx_status decode_column_prepare(struct decode_call *call, struct decode_column *column,
                                     const struct decode_column *entries) {
    struct decode_work *work = &column->work;
    const struct sx_decoder *first = column->first;
    column->is_to_keep = decode_is_to_keep(call, column);
    call->way->is_whole |= column->is_to_keep && call->selection;
    if (!column->is_dictionary && call->selection && !column->is_to_keep) {
        work->selection = call->selection->values;
        work->n_selected = call->selection->length;
    }
    SX_TRY(make_tensor(call, column));
    SX_TRY(make_arrays(call, column));
    work->n_pages = column->n_pages;
    work->n_tiles = column->n_tiles;
    work->rows = column->rows;
    work->stored_bytes = (uint32_t)first->stored_bytes;
    work->value_bytes = (uint32_t)first->value_bytes;
    work->entries = entries ? entries->work.out : NULL;
    work->is_text = first->chunk.spec.type.id == SX_TYPE_VARCHAR;
    work->control = call->stream->control;
    work->n_null = &call->stream->control->counters[column->counter];
    work->n_long = work->n_null + 1;
    return SX_OK;
}

/* ---- the end ---- */

/* What keeps the bytes behind views alive. Stored values of fixed length that are put together by a kernel
 * are no page's. */
static enum sx_status make_heap(struct decode_call *call, struct decode_column *column,
                                const struct decode_column *entries) {
    const struct sx_decoder *last = NULL;
    int n = 0, room = 4;
    for (int32_t i = 0; i < column->n_pages; i++) {
        room += column->listed[i].decoder != last ? 2 * column->listed[i].decoder->n_copies : 0;
        last = column->listed[i].decoder;
    }
    struct sx_buffer **buffers = calloc((size_t)room, sizeof *buffers);
    if (!buffers)
        return sx_error_set(&call->stream->base.error, SX_OUT_OF_MEMORY, "no memory for a list of buffers");
    if (cuda_counter(call->stream, column->counter + 1)) {
        last = NULL;
        for (int32_t i = 0; i < column->n_pages; i++) {
            const struct sx_decoder *decoder = column->listed[i].decoder;
            for (int k = 0; decoder != last && k < decoder->n_copies; k++) {
                const struct decode_copy *copy = &decoder->copies[k];
                buffers[n++] = copy->stored;
                buffers[n++] = copy->image ? copy->image->buffer : NULL;
            }
            last = decoder;
        }
        buffers[n++] = column->plain;
        buffers[n++] = column->rebuilt;
        buffers[n++] = column->arrays[ARRAY_STAGED];
    }
    if (entries)
        buffers[n++] = entries->column.heap;
    enum sx_status status =
        sx_buffer_join(call->stream->base.pool, buffers, n, &column->column.heap, &call->stream->base.error);
    free(buffers);
    return status;
}

static void drop_validity(struct sx_tensor *column) {
    sx_buffer_release(column->valid_buffer);
    column->valid_buffer = NULL;
    column->valid = NULL;
}

static enum sx_status attach_dictionary(struct decode_call *call, struct decode_column *column,
                                        struct decode_column *entries) {
    struct sx_dict *dict;
    SX_TRY(sx_dict_create(&entries->column, &dict, &call->stream->base.error));
    column->column.type = dict->values.type;
    column->column.layout = SX_DICT;
    column->column.dict = dict;
    return SX_OK;
}

enum sx_status decode_column_finish(struct decode_call *call, struct decode_column *column,
                                    struct decode_column *entries, struct sx_tensor *out_column) {
    const bool is_text = column->first->chunk.spec.type.id == SX_TYPE_VARCHAR;
    if (cuda_counter(call->stream, column->counter) == 0 && column->column.valid)
        drop_validity(&column->column);
    if (entries && is_text)
        SX_TRY(make_heap(call, entries, NULL));
    if (column->as_codes)
        SX_TRY(attach_dictionary(call, column, entries));
    else if (is_text)
        SX_TRY(make_heap(call, column, entries));
    *out_column = column->column;
    column->column = (struct sx_tensor){0};
    return SX_OK;
}
