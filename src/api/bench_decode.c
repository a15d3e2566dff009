#include "api/bench_decode.h"

#include <stdlib.h>

struct sx_bench_decoders {
    const struct sx_backend *backend;
    struct sx_stream **streams;
    int n_streams;
};

/* A batch of row groups on its way: every array has an entry for each column of each group, the groups of a
 * column one after another. */
struct decoding {
    const struct sx_backend *backend;
    struct sx_stream *stream;
    const struct sx_scan *scan;
    const struct sx_row_group **groups;
    int n_groups, n_columns;
    struct sx_decoder **decoders;
    struct sx_decode_part *parts;
    struct sx_column_read *reads;
    struct sx_tensor *columns;
};

enum sx_status sx_bench_decoders_create(const struct sx_backend *backend, struct sx_pool *pool, int n_threads,
                                        struct sx_bench_decoders **out_decoders, struct sx_error *error) {
    struct sx_bench_decoders *decoders = calloc(1, sizeof *decoders);
    enum sx_status status = SX_OK;
    if (decoders)
        decoders->streams = calloc((size_t)n_threads, sizeof(struct sx_stream *));
    if (!decoders || !decoders->streams)
        status = sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for decoding");
    for (int i = 0; i < n_threads && status == SX_OK; i++) {
        decoders->backend = backend;
        status = backend->ops.stream_create(backend, pool, NULL, &decoders->streams[i], error);
        decoders->n_streams += status == SX_OK;
    }
    if (status == SX_OK)
        *out_decoders = decoders;
    else if (decoders)
        sx_bench_decoders_destroy(decoders);
    return status;
}

void sx_bench_decoders_destroy(struct sx_bench_decoders *decoders) {
    if (!decoders)
        return;
    for (int i = 0; i < decoders->n_streams; i++)
        decoders->backend->ops.stream_destroy(decoders->streams[i]);
    free(decoders->streams);
    free(decoders);
}

static int64_t made_bytes(const struct decoding *decoding) {
    int64_t bytes = 0;
    for (int c = 0; c < decoding->n_columns; c++) {
        const struct sx_tensor *column = &decoding->columns[c];
        const size_t width = column->layout == SX_DICT ? sizeof(int32_t) : sx_type_bytes(column->type);
        bytes += column->length * (int64_t)(width + (column->valid ? 1 : 0));
    }
    return bytes;
}

static void drop_columns(struct decoding *decoding) {
    for (int c = 0; c < decoding->n_columns; c++) {
        sx_tensor_release(&decoding->columns[c]);
        decoding->columns[c] = (struct sx_tensor){0};
    }
}

static enum sx_status name_column(const struct decoding *decoding, int group, int column,
                                  enum sx_status status) {
    if (status != SX_FILE || group < 0)
        return status;
    return sx_row_group_error(decoding->groups[group], decoding->scan, column, &decoding->stream->error);
}

/* Rows [first, first + rows) of `n` groups from `group` on. */
static enum sx_status decode_rows(struct decoding *decoding, int group, int n, int64_t first, int64_t rows,
                                  int64_t *value_bytes) {
    struct sx_decode_place place = {-1, -1};
    struct sx_decode_part *part = decoding->parts;
    for (int c = 0; c < decoding->n_columns; c++) {
        decoding->reads[c] = (struct sx_column_read){part, n, &decoding->columns[c]};
        for (int g = group; g < group + n; g++) {
            const int64_t left = decoding->groups[g]->n_rows - first;
            *part++ = (struct sx_decode_part){decoding->decoders[c * decoding->n_groups + g], first,
                                              left < rows ? left : rows};
        }
    }
    enum sx_status status =
        decoding->backend->ops.decode(decoding->stream, decoding->reads, decoding->n_columns, NULL, &place);
    if (status == SX_OK)
        *value_bytes += made_bytes(decoding);
    drop_columns(decoding);
    return name_column(decoding, place.read < 0 ? -1 : group + place.part, place.read, status);
}

/* All groups in one call where the backend takes that, else a chunk's rows of a group in each. */
static enum sx_status decode_groups(struct decoding *decoding, int64_t *value_bytes) {
    const struct sx_backend_traits *traits = &decoding->backend->traits;
    enum sx_status status = SX_OK;
    if (traits->joins_groups)
        status = decode_rows(decoding, 0, decoding->n_groups, 0, INT64_MAX, value_bytes);
    for (int g = 0; !traits->joins_groups && g < decoding->n_groups; g++)
        for (int64_t at = 0; at < decoding->groups[g]->n_rows && status == SX_OK; at += traits->chunk_rows)
            status = decode_rows(decoding, g, 1, at, traits->chunk_rows, value_bytes);
    return status == SX_OK ? decoding->backend->ops.synchronise(decoding->stream, "a batch has been decoded")
                           : status;
}

static enum sx_status create_decoders(struct decoding *decoding) {
    for (int c = 0; c < decoding->n_columns; c++)
        for (int g = 0; g < decoding->n_groups; g++) {
            const enum sx_status status =
                decoding->backend->ops.decoder_create(decoding->stream, &decoding->groups[g]->columns[c],
                                                      &decoding->decoders[c * decoding->n_groups + g]);
            if (status != SX_OK)
                return name_column(decoding, g, c, status);
        }
    return SX_OK;
}

static enum sx_status make_lists(struct decoding *decoding, const struct sx_row_group *batch,
                                 struct sx_error *error) {
    decoding->n_columns = batch->n_columns;
    for (const struct sx_row_group *group = batch; group; group = group->next)
        decoding->n_groups++;
    const size_t n = (size_t)decoding->n_groups * (size_t)decoding->n_columns + 1;
    decoding->groups = calloc(n, sizeof(struct sx_row_group *));
    decoding->decoders = calloc(n, sizeof(struct sx_decoder *));
    decoding->parts = calloc(n, sizeof *decoding->parts);
    decoding->reads = calloc(n, sizeof *decoding->reads);
    decoding->columns = calloc(n, sizeof *decoding->columns);
    if (!decoding->groups || !decoding->decoders || !decoding->parts || !decoding->reads ||
        !decoding->columns)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for decoding");
    int g = 0;
    for (const struct sx_row_group *group = batch; group; group = group->next)
        decoding->groups[g++] = group;
    return SX_OK;
}

static void release(struct decoding *decoding) {
    for (int i = 0; decoding->decoders && i < decoding->n_groups * decoding->n_columns; i++)
        if (decoding->decoders[i])
            decoding->backend->ops.decoder_destroy(decoding->stream, decoding->decoders[i]);
    free(decoding->groups);
    free(decoding->decoders);
    free(decoding->parts);
    free(decoding->reads);
    free(decoding->columns);
}

enum sx_status sx_bench_decode(struct sx_bench_decoders *decoders, int thread, const struct sx_scan *scan,
                               const struct sx_row_group *batch, int64_t *value_bytes,
                               struct sx_error *error) {
    struct decoding decoding = {
        .backend = decoders->backend, .stream = decoders->streams[thread], .scan = scan};
    enum sx_status status = make_lists(&decoding, batch, error);
    if (status == SX_OK && decoding.n_columns > 0) {
        status = create_decoders(&decoding);
        if (status == SX_OK)
            status = decode_groups(&decoding, value_bytes);
        if (status != SX_OK)
            *error = decoding.stream->error;
    }
    release(&decoding);
    return status;
}
