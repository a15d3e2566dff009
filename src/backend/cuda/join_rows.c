/* A join's payload, by columns or by rows. A row's columns, and the key where it is looked at beside them,
 * lie side by side where these are several and the table is large, so that a build row at random costs its
 * sectors once and not one a column: 32 bytes in place of 32 a column. Making rows moves them once, in order,
 * from the batches that were appended. */
#include "backend/cuda/join.h"

enum {
    SECTOR = 32,
#ifdef SX_CUDA_EMULATED
    LEAST_BATCH_ROWS = 1 << 4,
    LEAST_BYTES = 1 << 10
#else
    LEAST_BATCH_ROWS = 1 << 14, /* in the mean: each costs a launch */
    LEAST_BYTES = 1 << 20
#endif
};

/* Rows of a hashed table whose only key is unique have the key, too, so that who looks one up finds the
 * payload beside it (join_take.cu). */
static bool can_lay_key(const struct sx_join *join) {
    return join->n_keys == 1 && !join->table.ranked && !join->table.keys.all && !join->null_equal[0] &&
           !join->has_duplicates && join->table.slot_bytes == sizeof(uint32_t);
}

/* ---- columns that are still in the batches: without values in join->payload, or join->keys ---- */

/* Of payload, or, behind it, the only key. */
static const struct sx_tensor *column_of(const struct sx_join *join, const struct join_batch *batch, int k) {
    return &batch->columns[k < join->n_payload ? join->n_keys + k : 0];
}

/* Whether rows can be made of column k as it lies in the batches. */
static bool is_plain(const struct sx_join *join, int k) {
    bool plain = join->types[join->n_keys + k].id != SX_TYPE_VARCHAR;
    for (int64_t b = 0; b < join->n_batches && plain; b++) {
        const enum sx_layout layout = column_of(join, join->batches[b], k)->layout;
        plain = layout == SX_FLAT || layout == SX_NARROW;
    }
    return plain;
}

static bool may_be_null(const struct sx_join *join, int k) {
    bool may = join->payload[k].valid != NULL;
    if (join->payload[k].values)
        return may;
    for (int64_t b = 0; b < join->n_batches && !may; b++)
        may = column_of(join, join->batches[b], k)->valid != NULL;
    return may;
}

static bool is_key(const struct sx_join *join, int k) {
    for (int64_t b = 0; b < join->n_batches; b++) {
        const struct sx_tensor *key = &join->batches[b]->columns[0],
                               *column = column_of(join, join->batches[b], k);
        if (column->values != key->values || column->valid != key->valid || column->layout != SX_FLAT ||
            key->layout != SX_FLAT || sx_tensor_step(column) != sx_tensor_step(key))
            return false;
    }
    return join->n_keys == 1 && join->n_batches > 0;
}

void cuda_join_find_key_payload(struct sx_join *join) {
    join->key_payload = join->n_payload - 1;
    while (join->key_payload >= 0 && !is_key(join, join->key_payload))
        join->key_payload--;
}

/* All columns that are not in join->payload yet, or those that have to be there. */
static enum sx_status take_columns(struct cuda_stream *stream, struct sx_join *join, bool leaves_plain) {
    for (int k = 0; k < join->n_payload; k++) {
        if (join->payload[k].values)
            continue;
        if (leaves_plain && is_plain(join, k))
            join->payload[k] = (struct sx_tensor){
                .type = join->types[join->n_keys + k], .layout = SX_FLAT, .length = join->rows};
        else
            SX_TRY(cuda_join_take_column(stream, join, join->n_keys + k, &join->payload[k]));
    }
    return SX_OK;
}

/* ---- rows ---- */

/* The payload, and behind it the key, unless that is among it. */
static int count_laid(const struct sx_join *join) {
    return join->n_payload + (join->lays_key && join->key_payload < 0);
}
static const struct sx_tensor *laid_column(const struct sx_join *join, int k) {
    return k < join->n_payload ? &join->payload[k] : &join->keys[0];
}

/* Wide columns first, so that each is aligned; then validity. */
static uint32_t place_columns(const struct sx_join *join, uint32_t *at, uint32_t *valid_at) {
    uint32_t end = 0;
    for (uint32_t width = 16; width > 0; width /= 2)
        for (int k = 0; k < count_laid(join); k++)
            if (gather_width(laid_column(join, k)) == width) {
                at[k] = end;
                end += width;
            }
    if (join->lays_key && join->key_payload >= 0)
        at[join->n_payload] = at[join->key_payload];
    for (int k = 0; k < join->n_payload; k++)
        if (may_be_null(join, k))
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
    return true;
}

/* Column k of a batch that begins at row `begin`, to `rows` and those behind them. */
static struct cuda_move move_of(const struct sx_join *join, int k, const struct join_batch *batch,
                                int64_t begin, uint8_t *rows) {
    const bool is_here = laid_column(join, k)->values;
    const struct sx_tensor *column = is_here ? laid_column(join, k) : column_of(join, batch, k);
    const int64_t skipped = is_here ? begin : 0;
    const struct gather_from from = {.values = (const uint8_t *)column->values +
                                               skipped * (int64_t)sx_tensor_step(column),
                                     .valid = column->valid ? column->valid + skipped : NULL};
    struct cuda_move move = gather_move(column, &from, rows + join->rows_at[k],
                                        join->rows_valid_at[k] ? rows + join->rows_valid_at[k] : NULL);
    move.to_step = move.to_valid_step = join->rows_step;
    return move;
}

/* At once, if they are few enough. */
static void lay_batch(struct cuda_stream *stream, const struct sx_join *join, const struct join_batch *batch,
                      int64_t begin, const int64_t *places) {
    struct cuda_moves moves = {.n = 0};
    uint8_t *rows = join->payload_rows->data;
    if (!places)
        rows += begin * join->rows_step;
    const int n = count_laid(join);
    for (int k = 0; k < n; k++) {
        moves.columns[moves.n++] = move_of(join, k, batch, begin, rows);
        if (moves.n < CUDA_MOVES && k + 1 < n)
            continue;
        if (moves.n == n)
            cuda_lay_rows(stream->handle, &moves, rows, join->rows_step, places ? places + begin : NULL,
                          batch->rows);
        else
            cuda_move_rows(stream->handle, &moves, NULL, false, batch->rows);
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

enum sx_status cuda_join_lay_payload(struct cuda_stream *stream, struct sx_join *join,
                                     const int64_t *places) {
    int64_t begin = 0;
    if (!join->payload_rows)
        return SX_OK;
    for (int64_t b = 0; b < join->n_batches; b++) {
        lay_batch(stream, join, join->batches[b], begin, places);
        begin += join->batches[b]->rows;
    }
    /* Busy, before columns of other streams are released. */
    SX_TRY(cuda_launched(stream, "rows of a build side"));
    for (int k = 0; k < join->n_payload; k++) {
        drop_values(&join->payload[k]);
        cuda_join_drop_column(join, join->n_keys + k);
    }
    return SX_OK;
}

/* Room for rows, where these pay; join->payload_rows stays NULL where they don't, or there is no memory. */
static void make_room(struct cuda_stream *stream, struct sx_join *join, int least_columns) {
    struct sx_error ignored = {0};
    if (join->n_keys == 0 || join->n_payload == 0 || !are_movable(join) ||
        (join->n_payload < least_columns && !can_lay_key(join)))
        return;
    join->lays_key = can_lay_key(join);
    if (!join->keys[0].values)
        join->keys[0] = (struct sx_tensor){.type = join->types[0], .layout = SX_FLAT, .length = join->rows};
    uint32_t step = place_columns(join, join->rows_at, join->rows_valid_at);
    if (join->lays_key && step > CUDA_JOIN_MOST_TAKEN) {
        join->lays_key = false;
        step = place_columns(join, join->rows_at, join->rows_valid_at);
    }
    const size_t bytes = (size_t)step * (size_t)join->rows;
    if (step > CUDA_MOST_STEP || bytes < LEAST_BYTES)
        return;
    cuda_spare_cache(stream, true);
    if (sx_buffer_create(stream->base.pool, bytes, &join->payload_rows, &ignored) == SX_OK)
        join->rows_step = step;
    cuda_spare_cache(stream, false);
}

enum sx_status cuda_join_prepare_payload(struct cuda_stream *stream, struct sx_join *join,
                                         int least_columns) {
    const bool leaves_plain = join->rows > 0 && join->rows / LEAST_BATCH_ROWS >= join->n_batches;
    SX_TRY(take_columns(stream, join, leaves_plain));
    make_room(stream, join, least_columns);
    return leaves_plain && !join->payload_rows ? take_columns(stream, join, false) : SX_OK;
}

bool cuda_join_can_order(const struct sx_join *join) {
    return join->n_payload == 0 || (join->payload_rows && join->n_payload <= CUDA_MOVES);
}

enum sx_status cuda_join_add_payload(struct gather *gather, const struct sx_join *join, int k,
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
        status = cuda_join_add_payload(&gather, join, payload[made], &out_columns[made]);
        made += status == SX_OK;
    }
    return gather_end(&gather, status, out_columns, made);
}
