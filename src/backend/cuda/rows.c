/* Rows as frames, on the host's side. */
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda.h"
#include "backend/cuda/launch.h"
#include "backend/cuda/launch_rows.h"
#include "backend/cuda/rows_dictionary.h"
#include "backend/cuda/rows_tiles.h"
#include "tensor/pack_words.h"
#include "tensor/rows.h"

/* ---- packing ---- */

/* A call of rows_pack. Host arrays are from malloc. */
struct packing {
    struct cuda_stream *stream;
    const struct sx_batch *given;
    const struct sx_row_parts *asked;
    bool packs;
    struct sx_batch stored;                    /* of columns that go with their dictionaries: the codes */
    struct cuda_rows_dictionary *dictionaries; /* per column */
    struct cuda_rows_parts parts;              /* the same, for kernels */
    struct cuda_rows_blocks blocks;
    int64_t *firsts; /* the blocks', on the host */
    struct sx_buffer *device_offsets, *device_firsts, *scratch, *part_sums, *device_places;
    struct sx_buffer **sums;    /* per column: of its strings, or of its blocks' words; or NULL */
    struct sx_buffer **entries; /* per column: its blocks, if they have been measured */
    int64_t *ends;              /* [column × (n_parts + 1) + part]: sums at the parts' begins; behind them
                                 * [2 × column + 1]: bytes of a dictionary's strings */
    struct cuda_rows_place *places; /* [column × n_parts + part] */
    char *head;
    struct sx_rows_shape *shapes; /* per column */
};

static int64_t *ends_of(const struct packing *packing, int column) {
    return packing->ends + (size_t)column * ((size_t)packing->asked->n_parts + 1);
}

static bool is_string(const struct sx_batch *batch, int column) {
    return batch->columns[column].type.id == SX_TYPE_VARCHAR;
}

static bool is_left_out(const struct packing *packing, int part) {
    return part == packing->asked->own || packing->asked->offsets[part + 1] == packing->asked->offsets[part];
}

static int vectors_of(const struct packing *packing, int column) {
    const struct sx_tensor *tensor = &packing->stored.columns[column];
    return sx_rows_vectors(tensor->type, tensor->valid != NULL);
}

static bool is_measured(const struct packing *packing, int column) {
    return packing->packs && sx_rows_may_pack(packing->stored.columns[column].type);
}

static bool make_lists(struct packing *packing) {
    const size_t n_columns = (size_t)packing->stored.n_columns, n_ends = (size_t)packing->asked->n_parts + 1;
    packing->sums = calloc(n_columns + 1, sizeof *packing->sums);
    packing->entries = calloc(n_columns + 1, sizeof *packing->entries);
    packing->ends = calloc(n_columns * (n_ends + 2) + 1, sizeof *packing->ends);
    packing->firsts = calloc(n_ends, sizeof *packing->firsts);
    packing->places = calloc(n_columns * n_ends + 1, sizeof *packing->places);
    packing->shapes = calloc(n_columns + 1, sizeof *packing->shapes);
    packing->head = calloc(1, sx_rows_head_bytes(packing->stored.n_columns));
    packing->stored.columns = calloc(n_columns + 1, sizeof *packing->stored.columns);
    packing->dictionaries = calloc(n_columns + 1, sizeof *packing->dictionaries);
    return packing->sums && packing->entries && packing->ends && packing->firsts && packing->places &&
           packing->shapes && packing->head && packing->stored.columns && packing->dictionaries;
}

static int64_t rows_sent(const struct packing *packing) {
    const int64_t *offsets = packing->asked->offsets;
    const int own = packing->asked->own;
    return offsets[packing->asked->n_parts] - offsets[0] - (own >= 0 ? offsets[own + 1] - offsets[own] : 0);
}

static void choose_dictionaries(struct packing *packing) {
    int n_frames = 0;
    for (int p = 0; p < packing->asked->n_parts; p++)
        n_frames += !is_left_out(packing, p);
    for (int c = 0; c < packing->given->n_columns; c++) {
        const struct sx_tensor *column = &packing->given->columns[c];
        packing->stored.columns[c] = *column;
        if (n_frames == 0 || !sx_rows_sends_dictionary(column, rows_sent(packing), n_frames))
            continue;
        packing->stored.columns[c] = sx_rows_codes(column);
        packing->dictionaries[c].entries = &column->dict->values;
        packing->shapes[c].n_entries = (uint64_t)column->dict->values.length;
    }
}

/* Which blocks there are. */
static enum sx_status count_blocks(struct packing *packing) {
    for (int p = 0; p < packing->asked->n_parts; p++) {
        const int64_t rows = packing->asked->offsets[p + 1] - packing->asked->offsets[p];
        packing->firsts[p + 1] = packing->firsts[p] + (p == packing->asked->own ? 0 : pack_blocks_of(rows));
    }
    SX_TRY(cuda_upload_buffer(packing->stream, packing->firsts,
                              ((size_t)packing->asked->n_parts + 1) * sizeof *packing->firsts,
                              &packing->device_firsts));
    packing->blocks =
        (struct cuda_rows_blocks){packing->device_firsts->data, packing->firsts[packing->asked->n_parts]};
    return SX_OK;
}

static enum sx_status begin(struct packing *packing) {
    const struct sx_tensor *order = packing->asked->order;
    struct cuda_stream *stream = packing->stream;
    const size_t n_ends = (size_t)packing->asked->n_parts + 1;
    if (!make_lists(packing))
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory to pack %d columns",
                            packing->stored.n_columns);
    choose_dictionaries(packing);
    SX_TRY(cuda_upload_buffer(stream, packing->asked->offsets, n_ends * sizeof(int64_t),
                              &packing->device_offsets));
    packing->parts = (struct cuda_rows_parts){.order = order ? order->values : NULL,
                                              .offsets = packing->device_offsets->data,
                                              .first = packing->asked->offsets[0],
                                              .n = packing->asked->offsets[packing->asked->n_parts] -
                                                   packing->asked->offsets[0],
                                              .n_parts = packing->asked->n_parts,
                                              .skip = packing->asked->own};
    return packing->packs ? count_blocks(packing) : SX_OK;
}

static void end(struct packing *packing) {
    for (int c = 0; packing->sums && c < packing->stored.n_columns; c++)
        sx_buffer_release(packing->sums[c]);
    for (int c = 0; packing->entries && c < packing->stored.n_columns; c++)
        sx_buffer_release(packing->entries[c]);
    for (int c = 0; packing->dictionaries && c < packing->stored.n_columns; c++)
        cuda_rows_release_dictionary(&packing->dictionaries[c]);
    sx_buffer_release(packing->device_offsets);
    sx_buffer_release(packing->device_firsts);
    sx_buffer_release(packing->scratch);
    sx_buffer_release(packing->part_sums);
    sx_buffer_release(packing->device_places);
    free(packing->sums);
    free(packing->entries);
    free(packing->ends);
    free(packing->firsts);
    free(packing->places);
    free(packing->shapes);
    free(packing->head);
    free(packing->stored.columns);
    free(packing->dictionaries);
}

/* Bytes behind long views, added up over the rows. */
static enum sx_status measure_strings(struct packing *packing, int c, int64_t *out_ends) {
    struct cuda_stream *stream = packing->stream;
    const int64_t n = packing->parts.n;
    SX_TRY(sx_buffer_create(stream->base.pool, ((size_t)n + 1) * sizeof(int64_t), &packing->sums[c],
                            &stream->base.error));
    int64_t *sums = packing->sums[c]->data;
    cuda_rows_long_bytes(stream->handle, cuda_column_of(&packing->stored.columns[c]), &packing->parts, sums);
    cuda_exclusive_sum(stream->handle, sums, n, sums, packing->scratch->data);
    cuda_rows_part_sums(stream->handle, sums, packing->parts.offsets, packing->asked->n_parts, 1, out_ends);
    return SX_OK;
}

/* Ranges of blocks, and the bytes of their words, added up. */
static enum sx_status measure_blocks(struct packing *packing, int c, int64_t *out_ends) {
    struct cuda_stream *stream = packing->stream;
    const struct sx_tensor *column = &packing->stored.columns[c];
    const int n_vectors = vectors_of(packing, c);
    const int64_t n = packing->blocks.n * n_vectors;
    SX_TRY(sx_buffer_create(stream->base.pool, ((size_t)n + 1) * sizeof(int64_t), &packing->sums[c],
                            &stream->base.error));
    SX_TRY(sx_buffer_create(stream->base.pool, ((size_t)n + 1) * sizeof(struct sx_pack_block),
                            &packing->entries[c], &stream->base.error));
    int64_t *sums = packing->sums[c]->data;
    cuda_rows_measure(stream->handle, cuda_column_of(column), (int)sx_type_bytes(column->type),
                      &packing->parts, &packing->blocks, n_vectors, packing->entries[c]->data, sums);
    cuda_exclusive_sum(stream->handle, sums, n, sums, packing->scratch->data);
    cuda_rows_part_sums(stream->handle, sums, packing->blocks.firsts, packing->asked->n_parts, n_vectors,
                        out_ends);
    return SX_OK;
}

/* What decides about the sizes of frames; the host gets the sums at the parts' begins. */
static enum sx_status measure(struct packing *packing) {
    struct cuda_stream *stream = packing->stream;
    const int64_t n = packing->parts.n, n_blocks = packing->blocks.n * SX_ROWS_VECTORS;
    const int n_columns = packing->stored.n_columns;
    const size_t n_ends = (size_t)packing->asked->n_parts + 1,
                 ends_bytes = (size_t)n_columns * (n_ends + 2) * sizeof(int64_t);
    struct sx_pool *pool = stream->base.pool;
    struct sx_error *error = &stream->base.error;
    bool any = false;
    SX_TRY(sx_buffer_create(pool, cuda_exclusive_sum_bytes(n > n_blocks ? n : n_blocks), &packing->scratch,
                            error));
    SX_TRY(sx_buffer_create(pool, ends_bytes, &packing->part_sums, error));
    for (int c = 0; c < n_columns; c++) {
        int64_t *all = packing->part_sums->data, *ends = all + (size_t)c * n_ends;
        struct cuda_rows_dictionary *dictionary = &packing->dictionaries[c];
        any = any || is_string(&packing->stored, c) || is_measured(packing, c) || dictionary->entries;
        if (dictionary->entries)
            SX_TRY(cuda_rows_measure_dictionary(stream, dictionary, packing->scratch,
                                                all + (size_t)n_columns * n_ends + 2 * (size_t)c));
        if (is_string(&packing->stored, c))
            SX_TRY(measure_strings(packing, c, ends));
        else if (is_measured(packing, c))
            SX_TRY(measure_blocks(packing, c, ends));
    }
    SX_TRY(cuda_launched(stream, "measuring rows to pack"));
    return any ? cuda_download(stream, packing->ends, packing->part_sums->data, ends_bytes,
                               "bytes of rows to pack")
               : SX_OK;
}

/* Columns' encodings, and their dictionaries: the same in all parts. */
static enum sx_status choose(struct packing *packing) {
    const int n_columns = packing->stored.n_columns;
    const int64_t *strings_bytes = ends_of(packing, n_columns);
    for (int c = 0; c < n_columns; c++) {
        const struct sx_tensor *column = &packing->stored.columns[c];
        struct cuda_rows_dictionary *dictionary = &packing->dictionaries[c];
        if (is_measured(packing, c))
            packing->shapes[c].encoding = sx_rows_choose(
                column->type, column->valid != NULL, rows_sent(packing), packing->blocks.n,
                (uint64_t)(ends_of(packing, c)[packing->asked->n_parts] - ends_of(packing, c)[0]));
        if (dictionary->entries)
            SX_TRY(
                cuda_rows_make_dictionary(packing->stream, dictionary, (uint64_t)strings_bytes[2 * c + 1]));
    }
    return SX_OK;
}

static enum sx_status copy_dictionary(struct packing *packing, int c, char *to) {
    struct cuda_stream *stream = packing->stream;
    const struct sx_buffer *block = packing->dictionaries[c].block;
    return !block ? SX_OK
                  : cuda_check(stream,
                               cudaMemcpyAsync(to, block->data, block->size_bytes, cudaMemcpyDeviceToDevice,
                                               stream->handle),
                               "a dictionary for another rank");
}

/* Makes the part's frame, with its head, and notes where its columns are. */
static enum sx_status make_part(struct packing *packing, int part, int64_t sequence,
                                struct sx_buffer **out_part) {
    struct cuda_stream *stream = packing->stream;
    const struct sx_batch *batch = &packing->stored;
    for (int c = 0; c < batch->n_columns; c++) {
        const uint64_t bytes = (uint64_t)(ends_of(packing, c)[part + 1] - ends_of(packing, c)[part]);
        struct sx_rows_shape *shape = &packing->shapes[c];
        const struct sx_buffer *dictionary = packing->dictionaries[c].block;
        shape->heap_bytes = is_string(batch, c) ? bytes : dictionary ? dictionary->size_bytes : 0;
        shape->words_bytes = shape->encoding == SX_ROWS_PACKED ? bytes : 0;
    }
    const size_t bytes =
        sx_rows_make_head(batch, packing->asked->offsets[part + 1] - packing->asked->offsets[part], sequence,
                          packing->shapes, packing->head);
    SX_TRY(sx_buffer_create(stream->base.pool, bytes, out_part, &stream->base.error));
    char *frame = (*out_part)->data;
    const struct sx_rows_column *columns = sx_rows_columns(packing->head);
    for (int c = 0; c < batch->n_columns; c++) {
        const uint64_t words = columns[c].values + columns[c].values_bytes - packing->shapes[c].words_bytes;
        packing->places[c * packing->asked->n_parts + part] = (struct cuda_rows_place){
            .values = frame + columns[c].values,
            .valid = columns[c].valid ? (uint8_t *)frame + columns[c].valid : NULL,
            .heap = frame + (columns[c].encoding == SX_ROWS_PACKED ? words : columns[c].heap),
            .heap_first = ends_of(packing, c)[part],
        };
        SX_TRY(copy_dictionary(packing, c, frame + columns[c].heap));
    }
    return cuda_upload(stream, frame, packing->head, sx_rows_head_bytes(batch->n_columns));
}

static void fill_column(struct packing *packing, int c, const struct cuda_rows_place *places) {
    struct cuda_stream *stream = packing->stream;
    const struct cuda_column column = cuda_column_of(&packing->stored.columns[c]);
    const int width = (int)sx_type_bytes(packing->stored.columns[c].type);
    const int64_t *sums = packing->sums[c] ? packing->sums[c]->data : NULL;
    if (packing->shapes[c].encoding == SX_ROWS_PACKED)
        cuda_rows_pack_blocks(stream->handle, column, width, &packing->parts, &packing->blocks,
                              vectors_of(packing, c), packing->entries[c]->data, sums, places);
    else
        cuda_rows_pack(stream->handle, column, width, &packing->parts, places, sums);
}

static enum sx_status fill_parts(struct packing *packing, struct sx_batch *own) {
    struct cuda_stream *stream = packing->stream;
    const size_t n_places = (size_t)packing->stored.n_columns * (size_t)packing->asked->n_parts;
    const bool tiles = cuda_rows_can_tile(packing->asked);
    SX_TRY(cuda_upload_buffer(stream, packing->places, n_places * sizeof *packing->places,
                              &packing->device_places));
    const struct cuda_rows_place *places = packing->device_places->data;
    for (int c = 0; c < packing->stored.n_columns; c++) {
        if (!tiles || !cuda_rows_is_tiled(&packing->stored, packing->shapes, c))
            fill_column(packing, c, places + (size_t)c * (size_t)packing->asked->n_parts);
    }
    SX_TRY(cuda_launched(stream, "packing rows"));
    return tiles ? cuda_rows_tile(stream, packing->given, &packing->stored, packing->asked, &packing->parts,
                                  packing->places, packing->shapes, own)
                 : cuda_rows_gather_own(stream, packing->given, packing->asked, own);
}

enum sx_status sx_cuda_rows_pack(struct sx_stream *base, const struct sx_batch *batch,
                                 const struct sx_row_parts *parts, int64_t sequence, bool packs,
                                 struct sx_buffer **out_parts, struct sx_batch *out_own) {
    const int n_parts = parts->n_parts;
    struct packing packing = {.given = batch, .asked = parts, .packs = packs, .stored = *batch};
    packing.stored.columns = NULL;
    enum sx_status status;
    memset(out_parts, 0, (size_t)n_parts * sizeof *out_parts);
    *out_own = (struct sx_batch){0};
    SX_TRY(cuda_enter(base, &packing.stream));
    SX_GO(begin(&packing));
    const bool any = packing.parts.n > 0 && batch->n_columns > 0;
    if (any) {
        SX_GO(measure(&packing));
        SX_GO(choose(&packing));
    }
    for (int p = 0; p < n_parts; p++)
        if (!is_left_out(&packing, p))
            SX_GO(make_part(&packing, p, sequence, &out_parts[p]));
    if (any)
        SX_GO(fill_parts(&packing, out_own));
    else
        SX_GO(cuda_rows_gather_own(packing.stream, batch, parts, out_own));
    SX_GO(cuda_sync(packing.stream, "rows for other ranks"));
out:
    end(&packing);
    for (int p = 0; p < n_parts && status != SX_OK; p++) {
        sx_buffer_release(out_parts[p]);
        out_parts[p] = NULL;
    }
    if (status != SX_OK)
        sx_batch_release(out_own);
    return status;
}

/* ---- unpacking ---- */

static void unpack_column(struct cuda_stream *stream, int c, const struct sx_rows_column *place,
                          const char *frame, struct sx_tensor *column) {
    const int n_vectors = sx_rows_vectors(column->type, column->valid != NULL);
    const uint64_t directory_bytes = sx_rows_directory_bytes(column->length, n_vectors);
    const struct cuda_rows_packed packed = {.entries = (const void *)(frame + place->values),
                                            .words = frame + place->values + directory_bytes,
                                            .words_bytes = place->values_bytes - directory_bytes,
                                            .rows = column->length,
                                            .n_vectors = n_vectors,
                                            .column = c};
    cuda_rows_unpack_blocks(stream->handle, &packed, (int)sx_type_bytes(column->type), column->values,
                            column->valid, stream->control);
}

enum sx_status sx_cuda_rows_unpack(struct sx_stream *base, struct sx_buffer *frame, size_t bytes,
                                   const struct sx_type *types, int n_columns, struct sx_batch *out_batch,
                                   int64_t *out_sequence) {
    struct cuda_stream *stream;
    struct sx_batch made = {0};
    const size_t head_bytes = sx_rows_head_bytes(n_columns);
    enum sx_status status;
    SX_TRY(cuda_enter(base, &stream));
    char *head = calloc(1, head_bytes);
    if (!head)
        SX_GO(sx_error_set(&base->error, SX_OUT_OF_MEMORY, "no memory for the head of a frame"));
    if (bytes < head_bytes)
        SX_GO(sx_error_set(&base->error, SX_INTERNAL, "rows of another rank: %zu bytes", bytes));
    SX_GO(cuda_read(stream, head, frame->data, head_bytes, "the head of rows that came"));
    SX_GO(sx_rows_check_head(head, bytes, types, n_columns, &base->error));
    SX_GO(sx_rows_place(head, frame, base->pool, &made, &base->error));
    const struct sx_rows_column *columns = sx_rows_columns(head);
    for (int c = 0; c < n_columns; c++)
        if (columns[c].encoding == SX_ROWS_PACKED)
            unpack_column(stream, c, &columns[c], frame->data, &made.columns[c]);
        else if (types[c].id == SX_TYPE_VARCHAR && columns[c].n_entries == 0 && made.rows > 0)
            cuda_rows_place_strings(stream->handle, made.columns[c].values, made.rows,
                                    (const char *)frame->data + columns[c].heap, columns[c].heap_bytes, c,
                                    stream->control);
    for (int c = 0; c < n_columns; c++)
        if (columns[c].n_entries > 0)
            SX_GO(cuda_rows_place_dictionary(stream, &columns[c], frame->data, c, &made.columns[c]));
    SX_GO(cuda_launched(stream, "rows that came"));
    *out_sequence = ((const struct sx_rows_frame *)head)->sequence;
    *out_batch = made;
    made = (struct sx_batch){0};
out:
    free(head);
    sx_batch_release(&made);
    return status;
}

/* ---- between the host's memory and the device's ---- */

enum sx_status sx_cuda_bytes_to_host(struct sx_stream *base, struct sx_buffer *buffer, size_t bytes,
                                     struct sx_pool *pool, struct sx_buffer **out_buffer) {
    static const char why[] = "bytes for other ranks";
    struct cuda_stream *stream;
    struct sx_buffer *host;
    SX_TRY(cuda_enter(base, &stream));
    SX_TRY(sx_buffer_create(pool, bytes, &host, &base->error));
    enum sx_status status;
    if (sx_pool_is_pinned(pool)) {
        SX_GO(cuda_check(
            stream, cudaMemcpyAsync(host->data, buffer->data, bytes, cudaMemcpyDeviceToHost, stream->handle),
            why));
        SX_GO(cuda_sync(stream, why));
    } else {
        SX_GO(cuda_download(stream, host->data, buffer->data, bytes, why));
    }
    *out_buffer = host;
    return SX_OK;
out:
    sx_buffer_release(host);
    return status;
}

enum sx_status sx_cuda_bytes_from_host(struct sx_stream *base, struct sx_buffer *buffer, size_t bytes,
                                       struct sx_buffer **out_buffer) {
    static const char why[] = "bytes of other ranks";
    struct cuda_stream *stream;
    struct sx_buffer *device;
    SX_TRY(cuda_enter(base, &stream));
    SX_TRY(sx_buffer_create(base->pool, bytes, &device, &base->error));
    enum sx_status status;
    if (sx_pool_is_pinned(buffer->pool)) {
        SX_GO(cuda_upload_pinned(stream, device->data, buffer->data, bytes));
    } else {
        SX_GO(cuda_upload(stream, device->data, buffer->data, bytes));
    }
    SX_GO(cuda_sync(stream, why)); /* the caller may release it, and read the other one */
    *out_buffer = device;
    return SX_OK;
out:
    sx_buffer_release(device);
    return status;
}
