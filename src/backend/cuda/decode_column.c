/* A column from its pages: memory, kernels, and what is known only after they have run. */
#include <stdlib.h>

#include "backend/cuda/cache.h"
#include "backend/cuda/decode.h"

static bool has_source(const struct decode_column *column, enum decode_source source) {
    return column->sources >> source & 1;
}

/* ---- arrays ---- */

static enum sx_status make_array(struct decode_call *call, struct decode_column *column,
                                 enum decode_array array, int64_t n, size_t bytes, void *out_pointer) {
    struct cuda_stream *stream = call->stream;
    SX_TRY(
        sx_buffer_create(stream->base.pool, (size_t)n * bytes, &column->arrays[array], &stream->base.error));
    *(void **)out_pointer = column->arrays[array]->data;
    return SX_OK;
}

static enum sx_status upload_array(struct decode_call *call, struct decode_column *column,
                                   enum decode_array array, const void *from, int64_t n, size_t bytes,
                                   void *out_pointer) {
    SX_TRY(make_array(call, column, array, n, bytes, out_pointer));
    return cuda_upload(call->stream, column->arrays[array]->data, from, (size_t)n * bytes);
}

/* Whether values are staged as they are wanted and where: whole pages of them, none NULL. Then the column is
 * where they are staged, and nothing is left to be moved. */
static bool stages_column(const struct decode_column *column) {
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
    const bool has_front = has_source(column, DECODE_FRONT_CODED);
    const bool has_bytes =
        has_front || has_source(column, DECODE_PLAIN_BYTES) || has_source(column, DECODE_LENGTHS);
    const size_t stored_bytes = column->first->stored_bytes;
    const int64_t n = column->rows;
    bool has_staged = false;
    for (int i = 0; i < DECODE_N_SOURCES; i++)
        has_staged |= has_source(column, (enum decode_source)i) && is_staged((enum decode_source)i);
    if (has_staged && stages_column(column))
        work->staged = work->out;
    else if (has_staged)
        SX_TRY(make_array(call, column, ARRAY_STAGED, n, stored_bytes, &work->staged));
    if (has_source(column, DECODE_CODES))
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
    SX_TRY(upload_array(call, column, ARRAY_PAGES, column->pages,
                        (int64_t)(column->tiles_at + (size_t)column->n_tiles * sizeof *column->tiles), 1,
                        &work->pages));
    work->tiles = (const struct decode_tile *)(const void *)((const char *)work->pages + column->tiles_at);
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

static enum sx_status prepare(struct decode_call *call, struct decode_column *column,
                              const struct decode_column *entries) {
    struct decode_work *work = &column->work;
    const struct sx_decoder *first = column->first;
    if (!column->is_dictionary && call->selection) {
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

/* ---- the kernels ---- */

/* Memory for the values of front-coded pages, whose size only their lengths tell; one more synchronisation.
 */
static enum sx_status rebuild(struct decode_call *call, struct decode_column *column) {
    struct cuda_stream *stream = call->stream;
    struct decode_work *work = &column->work;
    struct decode_state *states = calloc((size_t)column->n_pages, sizeof *states);
    int64_t *at = calloc((size_t)column->n_pages, sizeof *at), *device_at, bytes = 0;
    enum sx_status status;
    if (!states || !at)
        SX_GO(sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for a list of pages"));
    SX_GO(cuda_download(stream, states, work->states, (size_t)column->n_pages * sizeof *states,
                        "lengths of front-coded strings"));
    for (int32_t i = 0; i < column->n_pages; i++) {
        at[i] = bytes;
        bytes += states[i].text_bytes;
    }
    SX_GO(sx_buffer_create(stream->base.pool, (size_t)bytes, &column->rebuilt, &stream->base.error));
    SX_GO(upload_array(call, column, ARRAY_REBUILT_AT, at, column->n_pages, sizeof *at, &device_at));
    cuda_decode_rebuild(stream->handle, work, column->rebuilt->data, device_at);
out:
    free(states);
    free(at);
    return status;
}

static enum sx_status decode_front_coded(struct decode_call *call, struct decode_column *column) {
    const struct sx_decoder *first = column->first;
    const bool is_fixed = first->chunk.spec.physical == SX_PARQUET_FIXED_LEN_BYTE_ARRAY;
    cuda_decode_front_coded(call->stream->handle, &column->work,
                            is_fixed ? (uint32_t)first->stored_bytes : 0);
    SX_TRY(cuda_launched(call->stream, "front-coded lengths"));
    return rebuild(call, column);
}

/* Stored values, codes, or where strings are. */
static enum sx_status decode_stored(struct decode_call *call, struct decode_column *column) {
    cudaStream_t handle = call->stream->handle;
    const struct decode_work *work = &column->work;
    cuda_decode_open(handle, work);
    cuda_decode_levels(handle, work);
    if (has_source(column, DECODE_BITS))
        cuda_decode_bits(handle, work);
    if (has_source(column, DECODE_RLE_BITS))
        cuda_decode_rle_bits(handle, work);
    if (has_source(column, DECODE_SPLIT))
        cuda_decode_split(handle, work);
    if (has_source(column, DECODE_CODES))
        cuda_decode_codes(handle, work);
    if (has_source(column, DECODE_PLAIN_BYTES))
        cuda_decode_plain_bytes(handle, work);
    if (has_source(column, DECODE_DELTA))
        cuda_decode_deltas(handle, work);
    if (has_source(column, DECODE_LENGTHS) || has_source(column, DECODE_FRONT_CODED))
        cuda_decode_coded_lengths(handle, work);
    if (has_source(column, DECODE_LENGTHS))
        cuda_decode_lengths(handle, work);
    return has_source(column, DECODE_FRONT_CODED) ? decode_front_coded(call, column) : SX_OK;
}

static void decode_rows(struct decode_call *call, struct decode_column *column) {
    const struct sx_decoder *first = column->first;
    cudaStream_t handle = call->stream->handle;
    const struct decode_work *work = &column->work;
    if (has_source(column, DECODE_CODES))
        cuda_decode_take_codes(handle, work, column->as_codes);
    if (!(column->sources & ~(1u << DECODE_CODES)) || stages_column(column))
        return;
    if (first->conversion != DECODE_NO_CONVERSION)
        cuda_decode_convert(handle, work, first->conversion);
    else if (first->chunk.spec.physical != SX_PARQUET_BYTE_ARRAY)
        cuda_decode_fixed_views(handle, work);
    else if (first->chunk.spec.type.id == SX_TYPE_VARCHAR)
        cuda_decode_views(handle, work);
    else
        cuda_decode_byte_decimals(handle, work);
}

enum sx_status decode_column_issue(struct decode_call *call, struct decode_column *column,
                                   const struct decode_column *entries) {
    SX_TRY(prepare(call, column, entries));
    if (column->n_tiles == 0)
        return SX_OK;
    SX_TRY(decode_stored(call, column));
    decode_rows(call, column);
    return cuda_launched(call->stream, "decoding pages");
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
