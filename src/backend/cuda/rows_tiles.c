/* Rows into parts by tiles: a list of columns, each with its places, for one kernel. Frames get what has a
 * fixed width; the part that stays gets views and codes as they are, too. */
#include "backend/cuda/rows_tiles.h"

#include <stdlib.h>

#include "backend/cuda/gather.h"

struct tiling {
    struct cuda_stream *stream;
    const struct sx_batch *batch, *stored;
    const struct sx_row_parts *parts;
    int64_t own_rows;
    int64_t *misfits;
    struct cuda_tile_column *columns; /* each once for frames, and once for the own part, at most */
    struct cuda_rows_place *places;   /* n_parts for each of these */
    int n;
    struct sx_buffer *device_places, *device_columns, *runs, *bounds;
};

static int64_t own_rows(const struct sx_row_parts *parts) {
    return parts->own < 0 ? 0 : parts->offsets[parts->own + 1] - parts->offsets[parts->own];
}

bool cuda_rows_can_tile(const struct sx_row_parts *parts) {
    return parts->order && parts->runs && parts->n_runs <= CUDA_TILE_RUNS && parts->n_parts <= parts->n_runs;
}

/* ---- the list ---- */

/* Its places are zeroed. */
static struct cuda_rows_place *add_column(struct tiling *tiling, const struct cuda_column *column,
                                          uint32_t width) {
    struct cuda_rows_place *places = tiling->places + (size_t)tiling->n * (size_t)tiling->parts->n_parts;
    tiling->columns[tiling->n++] = (struct cuda_tile_column){.column = *column, .width = (int32_t)width};
    return places;
}

/* The column as it goes to frames; its own part goes with it where that has the same layout. *out_places:
 * where to put that; NULL: elsewhere. */
static void add_to_frames(struct tiling *tiling, int c, const struct cuda_rows_place *places,
                          const struct sx_rows_shape *shape, struct cuda_rows_place **out_places) {
    const struct sx_tensor *column = &tiling->stored->columns[c];
    const struct cuda_column as_is = cuda_column_of(column);
    struct cuda_rows_place *to = add_column(tiling, &as_is, (uint32_t)sx_type_bytes(column->type));
    struct cuda_tile_column *added = &tiling->columns[tiling->n - 1];
    added->is_narrow = shape->encoding == SX_ROWS_NARROW;
    added->bit = (uint8_t)c;
    added->base = shape->base;
    for (int p = 0; p < tiling->parts->n_parts; p++)
        if (p != tiling->parts->own)
            to[p] = places[p];
    *out_places = tiling->batch->columns[c].layout == SX_FLAT ? to : NULL;
}

/* The column's own part. `places`: of the column, or NULL. */
static enum sx_status add_own(struct tiling *tiling, int c, struct cuda_rows_place *places,
                              struct sx_tensor *out) {
    const struct sx_tensor *column = &tiling->batch->columns[c];
    if (column->layout == SX_CONSTANT) {
        sx_tensor_share(column, out);
        out->length = tiling->own_rows;
        return SX_OK;
    }
    SX_TRY(gather_make(tiling->stream, column, tiling->own_rows, column->valid != NULL, out));
    if (!places) {
        const struct cuda_column stored = {
            .values = column->values, .valid = column->valid, .layout = CUDA_FLAT};
        places = add_column(tiling, &stored, gather_width(column));
    }
    places[tiling->parts->own] = (struct cuda_rows_place){.values = out->values, .valid = out->valid};
    return SX_OK;
}

static enum sx_status list_columns(struct tiling *tiling, const struct cuda_rows_place *places,
                                   const struct sx_rows_shape *shapes, struct sx_batch *own) {
    const size_t n_parts = (size_t)tiling->parts->n_parts, most = 2 * (size_t)tiling->batch->n_columns;
    tiling->columns = calloc(most + 1, sizeof *tiling->columns);
    tiling->places = calloc(most * n_parts + 1, sizeof *tiling->places);
    if (!tiling->columns || !tiling->places)
        return sx_error_set(&tiling->stream->base.error, SX_OUT_OF_MEMORY, "no memory to pack %d columns",
                            tiling->batch->n_columns);
    for (int c = 0; c < tiling->batch->n_columns; c++) {
        struct cuda_rows_place *shared = NULL;
        if (cuda_rows_is_tiled(tiling->stored, shapes, c))
            add_to_frames(tiling, c, places + (size_t)c * n_parts, &shapes[c], &shared);
        if (own->columns)
            SX_TRY(add_own(tiling, c, shared, &own->columns[c]));
    }
    return SX_OK;
}

static enum sx_status upload_list(struct tiling *tiling) {
    const size_t n_parts = (size_t)tiling->parts->n_parts, n = (size_t)tiling->n;
    SX_TRY(cuda_upload_buffer(tiling->stream, tiling->places, n * n_parts * sizeof *tiling->places,
                              &tiling->device_places));
    for (size_t i = 0; i < n; i++)
        tiling->columns[i].places = (const struct cuda_rows_place *)tiling->device_places->data + i * n_parts;
    return cuda_upload_buffer(tiling->stream, tiling->columns, n * sizeof *tiling->columns,
                              &tiling->device_columns);
}

/* ---- the kernels ---- */

static enum sx_status launch(struct tiling *tiling, const struct cuda_rows_parts *on_device) {
    struct cuda_stream *stream = tiling->stream;
    const int n_runs = tiling->parts->n_runs;
    const int64_t n_tiles = (tiling->batch->rows + CUDA_TILE_ROWS - 1) / CUDA_TILE_ROWS;
    SX_TRY(cuda_upload_buffer(stream, tiling->parts->runs, ((size_t)n_runs + 1) * sizeof(int64_t),
                              &tiling->runs));
    SX_TRY(sx_buffer_create(stream->base.pool, ((size_t)n_tiles + 1) * (size_t)n_runs * sizeof(int32_t),
                            &tiling->bounds, &stream->base.error));
    const struct cuda_rows_tiles tiles = {.runs = tiling->runs->data,
                                          .bounds = tiling->bounds->data,
                                          .n = n_runs,
                                          .n_tiles = n_tiles,
                                          .own = tiling->parts->own,
                                          .misfits = tiling->misfits};
    cuda_rows_find_bounds(stream->handle, on_device->order, &tiles);
    cuda_rows_pack_tiles(stream->handle, tiling->device_columns->data, tiling->n, on_device, &tiles);
    return cuda_launched(stream, "packing rows by tiles");
}

enum sx_status cuda_rows_tile(struct cuda_stream *stream, const struct sx_batch *batch,
                              const struct sx_batch *stored, const struct sx_row_parts *parts,
                              const struct cuda_rows_parts *on_device, const struct cuda_rows_place *places,
                              const struct sx_rows_shape *shapes, int64_t *misfits,
                              struct sx_batch *out_own) {
    struct tiling tiling = {.stream = stream,
                            .batch = batch,
                            .stored = stored,
                            .parts = parts,
                            .own_rows = own_rows(parts),
                            .misfits = misfits};
    struct sx_batch own = {0};
    enum sx_status status = SX_OK;
    if (tiling.own_rows > 0)
        SX_GO(sx_batch_create(batch->n_columns, tiling.own_rows, &own, &stream->base.error));
    SX_GO(list_columns(&tiling, places, shapes, &own));
    if (tiling.n > 0) {
        SX_GO(upload_list(&tiling));
        SX_GO(launch(&tiling, on_device));
    }
    *out_own = own;
    own = (struct sx_batch){0};
out:
    sx_batch_release(&own);
    sx_buffer_release(tiling.device_places);
    sx_buffer_release(tiling.device_columns);
    sx_buffer_release(tiling.runs);
    sx_buffer_release(tiling.bounds);
    free(tiling.columns);
    free(tiling.places);
    return status;
}

/* ---- without tiles ---- */

enum sx_status cuda_rows_gather_own(struct cuda_stream *stream, const struct sx_batch *batch,
                                    const struct sx_row_parts *parts, struct sx_batch *out_own) {
    const int64_t n = own_rows(parts);
    struct sx_tensor index = {0};
    enum sx_status status;
    if (n == 0)
        return SX_OK;
    if (!parts->order)
        return sx_batch_slice(batch, parts->offsets[parts->own], n, out_own, &stream->base.error);
    SX_TRY(sx_batch_create(batch->n_columns, n, out_own, &stream->base.error));
    sx_tensor_slice(parts->order, parts->offsets[parts->own], n, &index);
    struct gather gather = {.stream = stream, .index = &index, .rows = n};
    for (int c = 0; c < batch->n_columns; c++)
        SX_GO(gather_add_column(&gather, &batch->columns[c], &out_own->columns[c]));
    status = gather_end(&gather, SX_OK, out_own->columns, batch->n_columns);
out:
    sx_tensor_release(&index);
    return status;
}
