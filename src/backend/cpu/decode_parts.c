/* Columns of several parts. */
#include <stdlib.h>

#include "backend/cpu/decode.h"

static enum sx_status read_part(struct sx_stream *stream, const struct sx_decode_part *part,
                                const struct sx_tensor *selection, struct sx_tensor *out_column) {
    struct sx_decoder *decoder = part->decoder;
    if (part->first < decoder->row)
        return sx_error_set(&stream->error, SX_INTERNAL, "a read backwards, from row %lld to row %lld",
                            (long long)decoder->row, (long long)part->first);
    SX_TRY(decode_skip(stream, decoder, part->first - decoder->row));
    return decode_read(stream, decoder, part->rows, selection, out_column);
}

/* Positions of `selection`, from entry *at on, that are among rows [first, first + rows), counted from there;
 * moves *at behind them. */
static enum sx_status part_of_selection(struct sx_stream *stream, const struct sx_tensor *selection,
                                        int64_t first, int64_t rows, int64_t *at, struct sx_tensor *out) {
    const int32_t *positions = selection->values;
    int64_t end = *at;
    while (end < selection->length && positions[end] < first + rows)
        end++;
    SX_TRY(sx_tensor_create_index(stream->pool, SX_TYPE_I32, end - *at, out, &stream->error));
    for (int64_t i = *at; i < end; i++)
        ((int32_t *)out->values)[i - *at] = (int32_t)(positions[i] - first);
    *at = end;
    return SX_OK;
}

static enum sx_status read_parts(struct sx_stream *stream, const struct sx_column_read *read,
                                 const struct sx_tensor *selection, struct sx_tensor *columns,
                                 int *out_part) {
    int64_t first = 0, at = 0;
    for (int p = 0; p < read->n_parts; p++) {
        struct sx_tensor own = {0};
        *out_part = p;
        if (selection)
            SX_TRY(part_of_selection(stream, selection, first, read->parts[p].rows, &at, &own));
        enum sx_status status = read_part(stream, &read->parts[p], selection ? &own : NULL, &columns[p]);
        sx_tensor_release(&own);
        SX_TRY(status);
        first += read->parts[p].rows;
    }
    return SX_OK;
}

static enum sx_status join_parts(struct sx_stream *stream, const struct sx_tensor *columns, int n,
                                 struct sx_tensor *out_column) {
    const struct sx_tensor **pointers = calloc((size_t)n, sizeof *pointers);
    if (!pointers)
        return sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for a column of %d parts", n);
    for (int p = 0; p < n; p++)
        pointers[p] = &columns[p];
    enum sx_status status = sx_cpu_concat(stream, columns[0].type, pointers, n, SX_CONCAT_SHARED, out_column);
    free(pointers);
    return status;
}

static enum sx_status read_column(struct sx_stream *stream, const struct sx_column_read *read,
                                  const struct sx_tensor *selection, int *out_part) {
    *out_part = 0;
    if (read->n_parts == 1)
        return read_part(stream, &read->parts[0], selection, read->out_column);
    struct sx_tensor *columns = calloc((size_t)read->n_parts, sizeof *columns);
    if (!columns)
        return sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for a column of %d parts",
                            read->n_parts);
    enum sx_status status = read_parts(stream, read, selection, columns, out_part);
    if (status == SX_OK)
        status = join_parts(stream, columns, read->n_parts, read->out_column);
    for (int p = 0; p < read->n_parts; p++)
        sx_tensor_release(&columns[p]);
    free(columns);
    return status;
}

enum sx_status sx_cpu_decode(struct sx_stream *stream, const struct sx_column_read *reads, int n_reads,
                             const struct sx_tensor *selection, struct sx_decode_place *out_place) {
    for (int r = 0; r < n_reads; r++) {
        int part;
        enum sx_status status = read_column(stream, &reads[r], selection, &part);
        if (status == SX_OK)
            continue;
        *out_place = (struct sx_decode_place){r, part};
        for (int done = 0; done < r; done++)
            sx_tensor_release(reads[done].out_column);
        return status;
    }
    return SX_OK;
}

/* Bytes are where decoding wants them. */
enum sx_status sx_cpu_decode_ahead(struct sx_stream *stream, struct sx_decoder *const *decoders, int n) {
    (void)stream;
    (void)decoders;
    (void)n;
    return SX_OK;
}
