/* Rows as frames, on the host's side. */
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda.h"
#include "backend/cuda/launch.h"
#include "backend/cuda/launch_rows.h"
#include "backend/cuda/rows_dictionary.h"
#include "backend/cuda/rows_narrow.h"
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
    struct sx_rows_narrow *narrow;             /* NULL: no column is */
    int64_t *misfits;                          /* a counter */
    struct sx_batch stored;                    /* of columns that go with their dictionaries: the codes */
    struct cuda_rows_dictionary *dictionaries; /* per column */
    struct cuda_rows_parts parts;              /* the same, for kernels */
    struct cuda_rows_blocks blocks;
    int64_t *begins; /* of the parts, n_parts + 1; behind them, of their blocks */
    struct sx_buffer *device_begins, *part_sums, *device_places;
    struct cuda_rows_measure *measures; /* per column */
    int64_t *ends;                      /* see ends_of; behind those of all columns, dictionary_ends */
    struct cuda_rows_place *places;     /* [column × n_parts + part] */
    char *head;
    struct sx_rows_shape *shapes; /* per column */
};

static size_t n_ends(const struct packing *packing) {
    return (size_t)packing->asked->n_parts + 1;
}

/* A column's sums at the begins of parts; of a series that it has. */
static const int64_t *ends_of(const struct packing *packing, int column, enum cuda_rows_series series) {
    return packing->ends + ((size_t)column * CUDA_ROWS_SERIES + series) * n_ends(packing);
}

static size_t dictionary_ends(const struct packing *packing, int column) {
    return ((size_t)packing->stored.n_columns * n_ends(packing) + (size_t)column * 2) * CUDA_ROWS_SERIES;
}

static bool is_string(const struct sx_batch *batch, int column) {
    return batch->columns[column].type.id == SX_TYPE_VARCHAR;
}

static bool is_left_out(const struct packing *packing, int part) {
    return part == packing->asked->own || packing->asked->offsets[part + 1] == packing->asked->offsets[part];
}

static bool is_measured(const struct packing *packing, int column) {
    return packing->packs || is_string(&packing->stored, column);
}

static bool make_lists(struct packing *packing) {
    const size_t n_columns = (size_t)packing->stored.n_columns;
    packing->measures = calloc(n_columns + 1, sizeof *packing->measures);
    packing->ends = calloc(dictionary_ends(packing, packing->stored.n_columns) + 1, sizeof *packing->ends);
    packing->begins = calloc(n_ends(packing), 2 * sizeof *packing->begins);
    packing->places = calloc(n_columns * n_ends(packing) + 1, sizeof *packing->places);
    packing->shapes = calloc(n_columns + 1, sizeof *packing->shapes);
    packing->head = calloc(1, sx_rows_head_bytes(packing->stored.n_columns));
    packing->stored.columns = calloc(n_columns + 1, sizeof *packing->stored.columns);
    packing->dictionaries = calloc(n_columns + 1, sizeof *packing->dictionaries);
    return packing->measures && packing->ends && packing->begins && packing->places && packing->shapes &&
           packing->head && packing->stored.columns && packing->dictionaries;
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

/* Which parts there are, and which blocks. */
static enum sx_status send_begins(struct packing *packing) {
    const struct sx_row_parts *asked = packing->asked;
    int64_t *firsts = packing->begins + n_ends(packing);
    memcpy(packing->begins, asked->offsets, n_ends(packing) * sizeof *packing->begins);
    for (int p = 0; p < asked->n_parts; p++) {
        const int64_t rows = asked->offsets[p + 1] - asked->offsets[p];
        firsts[p + 1] = firsts[p] + (p == asked->own ? 0 : pack_blocks_of(rows));
    }
    SX_TRY(cuda_upload_buffer(packing->stream, packing->begins, 2 * n_ends(packing) * sizeof *packing->begins,
                              &packing->device_begins));
    const int64_t *on_device = packing->device_begins->data;
    packing->parts = (struct cuda_rows_parts){.order = asked->order ? asked->order->values : NULL,
                                              .offsets = on_device,
                                              .first = asked->offsets[0],
                                              .n = asked->offsets[asked->n_parts] - asked->offsets[0],
                                              .n_parts = asked->n_parts};
    packing->blocks = (struct cuda_rows_blocks){on_device + n_ends(packing), firsts[asked->n_parts]};
    return SX_OK;
}

static enum sx_status begin(struct packing *packing) {
    if (!make_lists(packing))
        return sx_error_set(&packing->stream->base.error, SX_OUT_OF_MEMORY, "no memory to pack %d columns",
                            packing->stored.n_columns);
    choose_dictionaries(packing);
    return send_begins(packing);
}

static void end(struct packing *packing) {
    for (int c = 0; packing->measures && c < packing->stored.n_columns; c++)
        cuda_rows_measure_release(&packing->measures[c]);
    for (int c = 0; packing->dictionaries && c < packing->stored.n_columns; c++)
        cuda_rows_release_dictionary(&packing->dictionaries[c]);
    sx_buffer_release(packing->device_begins);
    sx_buffer_release(packing->part_sums);
    sx_buffer_release(packing->device_places);
    free(packing->measures);
    free(packing->ends);
    free(packing->begins);
    free(packing->places);
    free(packing->shapes);
    free(packing->head);
    free(packing->stored.columns);
    free(packing->dictionaries);
}

/* What decides about the sizes of frames; the host gets the sums at the parts' begins. */
static enum sx_status measure(struct packing *packing) {
    struct cuda_stream *stream = packing->stream;
    const int n_columns = packing->stored.n_columns;
    const size_t ends_bytes = dictionary_ends(packing, n_columns) * sizeof *packing->ends;
    bool any = false;
    SX_TRY(sx_buffer_create(stream->base.pool, ends_bytes, &packing->part_sums, &stream->base.error));
    int64_t *ends = packing->part_sums->data;
    for (int c = 0; c < n_columns; c++) {
        struct cuda_rows_dictionary *dictionary = &packing->dictionaries[c];
        any = any || is_measured(packing, c) || dictionary->entries;
        if (dictionary->entries)
            SX_TRY(cuda_rows_measure_dictionary(stream, dictionary, ends + dictionary_ends(packing, c)));
        if (is_measured(packing, c))
            SX_TRY(cuda_rows_measure_column(stream, &packing->stored.columns[c], packing->packs,
                                            &packing->parts, &packing->blocks, &packing->measures[c],
                                            ends + (ends_of(packing, c, CUDA_ROWS_WORDS) - packing->ends)));
    }
    return any ? cuda_download(stream, packing->ends, ends, ends_bytes, "bytes of rows to pack") : SX_OK;
}

/* Of parts [first, end). */
static uint64_t bytes_of(const struct packing *packing, int column, enum cuda_rows_series series, int first,
                         int end) {
    const int64_t *ends = ends_of(packing, column, series);
    const bool has_series = series == CUDA_ROWS_WORDS ? packing->packs : is_string(&packing->stored, column);
    return has_series ? (uint64_t)(ends[end] - ends[first]) : 0;
}

static void note_bytes(const struct packing *packing, int column, int first, int end) {
    struct sx_rows_shape *shape = &packing->shapes[column];
    shape->words_bytes = bytes_of(packing, column, CUDA_ROWS_WORDS, first, end);
    shape->characters_bytes = bytes_of(packing, column, CUDA_ROWS_CHARACTERS, first, end);
    shape->long_bytes = bytes_of(packing, column, CUDA_ROWS_LONG, first, end);
}

/* Columns' encodings, and their dictionaries: the same in all parts. */
static enum sx_status choose(struct packing *packing) {
    for (int c = 0; c < packing->stored.n_columns; c++) {
        const struct sx_tensor *column = &packing->stored.columns[c];
        struct cuda_rows_dictionary *dictionary = &packing->dictionaries[c];
        struct sx_rows_shape *shape = &packing->shapes[c];
        note_bytes(packing, c, 0, packing->asked->n_parts);
        if (packing->packs)
            shape->encoding = sx_rows_choose(column->type, column->valid != NULL, rows_sent(packing),
                                             packing->blocks.n, shape);
        else if (cuda_rows_is_narrow(packing->narrow, c))
            *shape = (struct sx_rows_shape){.encoding = SX_ROWS_NARROW, .base = packing->narrow[c].base};
        if (!dictionary->entries)
            continue;
        SX_TRY(cuda_rows_make_dictionary(packing->stream, dictionary,
                                         packing->ends + dictionary_ends(packing, c)));
        shape->dictionary_bytes = dictionary->block->size_bytes;
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

/* Where the column is in a part's frame. */
static struct cuda_rows_place place_of(const struct packing *packing, int c, int part,
                                       const struct sx_rows_column *column, char *frame) {
    const bool is_packed = column->encoding == SX_ROWS_PACKED;
    const enum cuda_rows_series series = is_packed ? CUDA_ROWS_CHARACTERS : CUDA_ROWS_LONG;
    return (struct cuda_rows_place){
        .values = frame + column->values,
        .valid = column->valid ? (uint8_t *)frame + column->valid : NULL,
        .words = frame + column->values + column->values_bytes - packing->shapes[c].words_bytes,
        .heap = frame + column->heap,
        .words_first = ends_of(packing, c, CUDA_ROWS_WORDS)[part],
        .heap_first = ends_of(packing, c, series)[part],
    };
}

/* Makes the part's frame, with its head, and notes where its columns are. */
static enum sx_status make_part(struct packing *packing, int part, int64_t sequence,
                                struct sx_buffer **out_part, size_t *plain_bytes) {
    struct cuda_stream *stream = packing->stream;
    const struct sx_batch *batch = &packing->stored;
    const int64_t rows = packing->asked->offsets[part + 1] - packing->asked->offsets[part];
    for (int c = 0; c < batch->n_columns; c++)
        note_bytes(packing, c, part, part + 1);
    const size_t bytes = sx_rows_make_head(batch, rows, sequence, packing->shapes, packing->head);
    *plain_bytes += sx_rows_plain_bytes(batch, rows, packing->shapes);
    SX_TRY(cuda_message_create(stream, bytes, out_part));
    char *frame = (*out_part)->data;
    const struct sx_rows_column *columns = sx_rows_columns(packing->head);
    for (int c = 0; c < batch->n_columns; c++) {
        packing->places[c * packing->asked->n_parts + part] = place_of(packing, c, part, &columns[c], frame);
        SX_TRY(copy_dictionary(packing, c, frame + columns[c].heap));
    }
    return cuda_upload(stream, frame, packing->head, sx_rows_head_bytes(batch->n_columns));
}

static void fill_column(struct packing *packing, int c, const struct cuda_rows_place *places) {
    struct cuda_stream *stream = packing->stream;
    const struct cuda_column column = cuda_column_of(&packing->stored.columns[c]);
    const struct cuda_rows_measured *measured = &packing->measures[c].measured;
    const int width = (int)sx_type_bytes(packing->stored.columns[c].type);
    const bool is_packed = packing->shapes[c].encoding == SX_ROWS_PACKED;
    if (is_string(&packing->stored, c))
        cuda_rows_pack_strings(stream->handle, column, &packing->parts, &packing->blocks, measured, is_packed,
                               places);
    else if (is_packed)
        cuda_rows_pack_blocks(stream->handle, column, width, &packing->parts, &packing->blocks, measured,
                              places);
    else
        cuda_rows_pack(stream->handle, column, width, &packing->parts, places);
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
                                  packing->places, packing->shapes, packing->misfits, own)
                 : cuda_rows_gather_own(stream, packing->given, packing->asked, own);
}

static void drop_frames(int n_parts, struct sx_buffer **parts, struct sx_batch *own) {
    for (int p = 0; p < n_parts; p++) {
        sx_buffer_release(parts[p]);
        parts[p] = NULL;
    }
    sx_batch_release(own);
}

/* *out_again: a column does not fit, as is known now. */
static enum sx_status pack(struct packing *packing, int64_t sequence, struct sx_buffer **out_parts,
                           size_t *out_plain_bytes, struct sx_batch *out_own, bool *out_again) {
    struct cuda_stream *stream = packing->stream;
    enum sx_status status;
    *out_plain_bytes = 0;
    SX_GO(begin(packing));
    const bool any = packing->parts.n > 0 && packing->given->n_columns > 0;
    if (any) {
        if (packing->narrow) {
            SX_GO(cuda_rows_try_narrow(stream, packing->given, packing->narrow));
            SX_GO(cuda_counter_reset(stream, 0, &packing->misfits));
        }
        SX_GO(measure(packing));
        SX_GO(choose(packing));
    }
    for (int p = 0; p < packing->asked->n_parts; p++)
        if (!is_left_out(packing, p))
            SX_GO(make_part(packing, p, sequence, &out_parts[p], out_plain_bytes));
    if (any)
        SX_GO(fill_parts(packing, out_own));
    else
        SX_GO(cuda_rows_gather_own(stream, packing->given, packing->asked, out_own));
    SX_GO(cuda_sync(stream, "rows for other ranks"));
out:
    if (status != SX_OK)
        (void)cudaStreamSynchronize(stream->handle);
    end(packing);
    *out_again = status == SX_OK && packing->misfits &&
                 cuda_rows_note_misfits((uint64_t)cuda_counter(stream, 0), packing->narrow);
    if (status != SX_OK || *out_again)
        drop_frames(packing->asked->n_parts, out_parts, out_own);
    return status;
}

enum sx_status sx_cuda_rows_pack(struct sx_stream *base, const struct sx_batch *batch,
                                 const struct sx_row_parts *parts, int64_t sequence, bool packs,
                                 struct sx_rows_narrow *narrow, struct sx_buffer **out_parts,
                                 size_t *out_plain_bytes, struct sx_batch *out_own) {
    struct cuda_stream *stream;
    bool again = true;
    memset(out_parts, 0, (size_t)parts->n_parts * sizeof *out_parts);
    *out_own = (struct sx_batch){0};
    SX_TRY(cuda_enter(base, &stream));
    while (again) {
        struct packing packing = {
            .stream = stream, .given = batch, .asked = parts, .packs = packs, .stored = *batch};
        packing.stored.columns = NULL;
        packing.narrow = packs || !cuda_rows_can_tile(parts) ? NULL : narrow;
        SX_TRY(pack(&packing, sequence, out_parts, out_plain_bytes, out_own, &again));
    }
    return SX_OK;
}

/* ---- from the host's memory ---- */

/* The host's memory may be released then. `waits`: other streams may read what has been brought, too. Else
 * few bytes are noted, which is quicker than a wait. */
static enum sx_status bring(struct cuda_stream *stream, const struct sx_buffer *host, size_t bytes,
                            bool waits, struct sx_buffer **out_buffer) {
    enum { MOST_NOTED = 64 << 10 };
    struct sx_buffer *device;
    const bool notes = !sx_pool_is_pinned(host->pool) || (bytes <= MOST_NOTED && !waits);
    SX_TRY(sx_buffer_create(stream->base.pool, bytes, &device, &stream->base.error));
    enum sx_status status = notes ? cuda_upload(stream, device->data, host->data, bytes)
                            : bytes <= CUDA_FEW_BYTES
                                ? cuda_upload_few(stream, device->data, host->data, bytes)
                                : cuda_upload_pinned(stream, device->data, host->data, bytes);
    if (status == SX_OK && (waits || !notes))
        status = cuda_sync(stream, "bytes of other ranks");
    if (status != SX_OK) {
        sx_buffer_release(device);
        return status;
    }
    *out_buffer = device;
    return SX_OK;
}

/* ---- unpacking ---- */

static void unpack_column(struct cuda_stream *stream, int c, const struct sx_rows_column *place,
                          const char *frame, struct sx_tensor *column) {
    const int n_vectors = sx_rows_vectors(column->type, column->valid != NULL);
    const uint64_t directory_bytes = sx_rows_directory_bytes(column->length, n_vectors);
    const struct cuda_rows_packed packed = {.entries = (const void *)(frame + place->values),
                                            .words = frame + place->values + directory_bytes,
                                            .heap = frame + place->heap,
                                            .words_bytes = place->values_bytes - directory_bytes,
                                            .heap_bytes = place->heap_bytes,
                                            .rows = column->length,
                                            .n_vectors = n_vectors,
                                            .column = c,
                                            .has_long = column->heap != NULL};
    if (column->type.id == SX_TYPE_VARCHAR)
        cuda_rows_unpack_strings(stream->handle, &packed, column->values, column->valid, stream->control);
    else
        cuda_rows_unpack_blocks(stream->handle, &packed, (int)sx_type_bytes(column->type), column->values,
                                column->valid, stream->control);
}

/* A reference to the frame in the device's memory. The host's may be released then. */
static enum sx_status place_frame(struct cuda_stream *stream, struct sx_buffer *frame, size_t bytes,
                                  bool from_host, struct sx_buffer **out_frame) {
    if (from_host)
        return bring(stream, frame, bytes, false, out_frame);
    *out_frame = sx_buffer_retain(frame);
    return SX_OK;
}

static enum sx_status read_head(struct cuda_stream *stream, const struct sx_buffer *frame, bool from_host,
                                size_t head_bytes, char *head) {
    if (!from_host)
        return cuda_read(stream, head, frame->data, head_bytes, "the head of rows that came");
    memcpy(head, frame->data, head_bytes);
    return SX_OK;
}

enum sx_status sx_cuda_rows_unpack(struct sx_stream *base, struct sx_buffer *frame, size_t bytes,
                                   bool from_host, const struct sx_type *types, int n_columns,
                                   const bool *are_moved, struct sx_batch *out_batch, int64_t *out_sequence) {
    struct cuda_stream *stream;
    struct sx_batch made = {0};
    struct sx_buffer *placed = NULL;
    const size_t head_bytes = sx_rows_head_bytes(n_columns);
    enum sx_status status;
    SX_TRY(cuda_enter(base, &stream));
    char *head = calloc(1, head_bytes);
    if (!head)
        SX_GO(sx_error_set(&base->error, SX_OUT_OF_MEMORY, "no memory for the head of a frame"));
    if (bytes < head_bytes)
        SX_GO(sx_error_set(&base->error, SX_INTERNAL, "rows of another rank: %zu bytes", bytes));
    SX_GO(read_head(stream, frame, from_host, head_bytes, head));
    SX_GO(sx_rows_check_head(head, bytes, types, n_columns, &base->error));
    SX_GO(place_frame(stream, frame, bytes, from_host, &placed));
    SX_GO(sx_rows_place(head, placed, base->pool, are_moved, &made, &base->error));
    const struct sx_rows_column *columns = sx_rows_columns(head);
    for (int c = 0; c < n_columns; c++)
        if (columns[c].encoding == SX_ROWS_PACKED)
            unpack_column(stream, c, &columns[c], placed->data, &made.columns[c]);
        else if (types[c].id == SX_TYPE_VARCHAR && columns[c].n_entries == 0 && made.rows > 0)
            cuda_rows_place_strings(stream->handle, made.columns[c].values, made.rows,
                                    (const char *)placed->data + columns[c].heap, columns[c].heap_bytes, c,
                                    stream->control);
    cuda_rows_widen_columns(stream, columns, placed->data, &made);
    for (int c = 0; c < n_columns; c++)
        if (columns[c].n_entries > 0)
            SX_GO(cuda_rows_place_dictionary(stream, &columns[c], placed->data, c, &made.columns[c]));
    SX_GO(cuda_launched(stream, "rows that came"));
    *out_sequence = ((const struct sx_rows_frame *)head)->sequence;
    *out_batch = made;
    made = (struct sx_batch){0};
out:
    free(head);
    sx_buffer_release(placed);
    sx_batch_release(&made);
    return status;
}

/* ---- between the host's memory and the device's ---- */

enum sx_status sx_cuda_bytes_to_host(struct sx_stream *base, struct sx_buffer *const *buffers, int n,
                                     struct sx_pool *pool, struct sx_buffer **out_buffers) {
    static const char why[] = "bytes for other ranks";
    struct cuda_stream *stream;
    struct cuda_downloads downloads = {.n = 0};
    const bool is_pinned = sx_pool_is_pinned(pool);
    enum sx_status status;
    memset(out_buffers, 0, (size_t)n * sizeof *out_buffers);
    SX_TRY(cuda_enter(base, &stream));
    for (int i = 0; i < n; i++) {
        const size_t bytes = buffers[i]->size_bytes;
        SX_GO(sx_buffer_create(pool, bytes, &out_buffers[i], &base->error));
        if (is_pinned)
            SX_GO(cuda_download_pinned(stream, out_buffers[i]->data, buffers[i]->data, bytes, why));
        else
            SX_GO(
                cuda_download_later(stream, &downloads, out_buffers[i]->data, buffers[i]->data, bytes, why));
    }
    SX_GO(cuda_downloads_land(stream, &downloads, why));
    return SX_OK;
out:
    (void)cudaStreamSynchronize(stream->handle);
    for (int i = 0; i < n; i++) {
        sx_buffer_release(out_buffers[i]);
        out_buffers[i] = NULL;
    }
    return status;
}

enum sx_status sx_cuda_bytes_from_host(struct sx_stream *base, struct sx_buffer *buffer, size_t bytes,
                                       struct sx_buffer **out_buffer) {
    struct cuda_stream *stream;
    SX_TRY(cuda_enter(base, &stream));
    return bring(stream, buffer, bytes, true, out_buffer);
}

enum sx_status sx_cuda_bytes_to_send(struct sx_stream *base, const struct sx_buffer *buffer, size_t first,
                                     size_t bytes, struct sx_buffer **out_buffer) {
    static const char why[] = "bytes for other ranks";
    struct cuda_stream *stream;
    struct sx_buffer *message;
    SX_TRY(cuda_enter(base, &stream));
    SX_TRY(cuda_message_create(stream, bytes, &message));
    enum sx_status status = cuda_check(stream,
                                       cudaMemcpyAsync(message->data, (const char *)buffer->data + first,
                                                       bytes, cudaMemcpyDeviceToDevice, stream->handle),
                                       why);
    if (status == SX_OK)
        status = cuda_sync(stream, why);
    if (status != SX_OK) {
        sx_buffer_release(message);
        return status;
    }
    *out_buffer = message;
    return SX_OK;
}
