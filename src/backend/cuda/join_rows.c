/* A join's payload, by columns or by rows. A row's columns lie side by side where there are several and the
 * table is large, so that a build row at random costs its sectors once and not one a column: 32 bytes in
 * place of 32 a column. Making rows moves them twice, in order. */
#include <string.h>

#include "backend/cuda/gather.h"
#include "backend/cuda/join.h"

enum {
    SECTOR = 32,
#ifdef SX_CUDA_EMULATED
    LEAST_BYTES = 1 << 10
#else
    LEAST_BYTES = 1 << 20
#endif
};

static uint32_t width_of(const struct sx_tensor *column) {
    return column->layout == SX_DICT ? (uint32_t)sizeof(int32_t) : (uint32_t)sx_type_bytes(column->type);
}

/* Wide columns first, so that each is aligned; then validity. */
static uint32_t place_columns(const struct sx_join *join, uint32_t *at, uint32_t *valid_at) {
    uint32_t end = 0;
    for (uint32_t width = 16; width > 0; width /= 2)
        for (int k = 0; k < join->n_payload; k++)
            if (width_of(&join->payload[k]) == width) {
                at[k] = end;
                end += width;
            }
    for (int k = 0; k < join->n_payload; k++)
        if (join->payload[k].valid)
            valid_at[k] = end++;
    uint32_t step = 8;
    while (step < end && step < SECTOR)
        step *= 2;
    return end <= step ? step : (end + SECTOR - 1) / SECTOR * SECTOR;
}

static bool are_movable(const struct sx_join *join) {
    for (int k = 0; k < join->n_payload; k++)
        if (join->payload[k].layout == SX_CONSTANT)
            return false;
    return join->n_payload > 1;
}

static void launch_moves(struct cuda_stream *stream, const struct sx_join *join, uint8_t *rows,
                         uint32_t step) {
    struct cuda_moves moves = {.n = 0};
    for (int k = 0; k < join->n_payload; k++) {
        const struct sx_tensor *column = &join->payload[k];
        moves.columns[moves.n++] = (struct cuda_move){
            .from = column->values,
            .from_valid = column->valid,
            .to = rows + join->rows_at[k],
            .to_valid = column->valid ? rows + join->rows_valid_at[k] : NULL,
            .from_step = width_of(column),
            .from_valid_step = 1,
            .to_step = step,
            .to_valid_step = step,
            .width = width_of(column),
        };
        if (moves.n < CUDA_MOVES && k + 1 < join->n_payload)
            continue;
        cuda_move_rows(stream->handle, &moves, NULL, false, join->rows);
        moves.n = 0;
    }
}

/* What stays of a column: its type, its dictionary or its strings' bytes. */
static void drop_values(struct sx_tensor *column) {
    sx_buffer_release(column->values_buffer);
    sx_buffer_release(column->valid_buffer);
    column->values_buffer = column->valid_buffer = NULL;
    column->values = NULL;
    column->valid = NULL;
}

enum sx_status cuda_join_make_rows(struct cuda_stream *stream, struct sx_join *join) {
    struct sx_error ignored = {0};
    if (!are_movable(join))
        return SX_OK;
    const uint32_t step = place_columns(join, join->rows_at, join->rows_valid_at);
    const size_t bytes = (size_t)step * (size_t)join->rows;
    if (step > CUDA_MOST_STEP || bytes < LEAST_BYTES)
        return SX_OK;
    /* Columns do where there is no memory for both. */
    cuda_spare_cache(stream, true);
    const enum sx_status status = sx_buffer_create(stream->base.pool, bytes, &join->payload_rows, &ignored);
    cuda_spare_cache(stream, false);
    if (status != SX_OK)
        return SX_OK;
    launch_moves(stream, join, join->payload_rows->data, step);
    /* Busy, before columns of other streams are released. */
    SX_TRY(cuda_launched(stream, "rows of a build side"));
    join->rows_step = step;
    for (int k = 0; k < join->n_payload; k++)
        drop_values(&join->payload[k]);
    return SX_OK;
}

/* Column k of the payload, from the rows or from itself. */
static enum sx_status add_payload(struct gather *gather, const struct sx_join *join, int k,
                                  struct sx_tensor *out_column) {
    const uint8_t *rows = gather->table;
    if (!rows)
        return gather_add_column(gather, &join->payload[k], out_column);
    const struct gather_from from = {rows + join->rows_at[k],
                                     join->rows_valid_at[k] ? rows + join->rows_valid_at[k] : NULL,
                                     join->rows_step};
    return gather_add(gather, &join->payload[k], &from, out_column);
}

enum sx_status sx_cuda_join_gather(struct sx_stream *base, const struct sx_join *join, const int32_t *payload,
                                   int n, const struct sx_tensor *build_rows, struct sx_tensor *out_columns) {
    struct cuda_stream *stream;
    SX_TRY(cuda_enter(base, &stream));
    struct gather gather = {.stream = stream,
                            .index = build_rows,
                            .rows = build_rows->length,
                            .table = join->payload_rows ? join->payload_rows->data : NULL,
                            .step = join->rows_step};
    enum sx_status status = SX_OK;
    int made = 0;
    while (made < n && status == SX_OK) {
        status = add_payload(&gather, join, payload[made], &out_columns[made]);
        made += status == SX_OK;
    }
    return gather_end(&gather, status, out_columns, made);
}
