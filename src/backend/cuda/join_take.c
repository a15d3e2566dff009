/* Probing with payload. Where keys are unique and payload lies in rows, one kernel finds, selects and takes
 * (join_take.cu); else pairs come first. That kernel writes columns with room for a match of every probe row,
 * so it is for batches of which enough match, as far as the last one tells, and for small ones. Columns with
 * more than about twice the room that they need are copied. */
#include <limits.h>

#include "backend/cuda/join.h"

enum {
    COUNTER_PAIRS = 0,
#ifdef SX_CUDA_EMULATED
    FEW_ROWS = 1 << 10,
#else
    FEW_ROWS = 1 << 16, /* whose copy costs less than the launches that are saved (a guess) */
#endif
    ENOUGH = 7 /* matches of 16 rows; not half, which may be on either side from batch to batch */
};

/* Whether there are few. */
static bool note_share(const struct sx_join *join, int64_t rows, int64_t pairs) {
    const bool finds_few = pairs < rows * ENOUGH / 16;
    atomic_store_explicit(&join->users->finds_few, finds_few, memory_order_relaxed);
    return finds_few;
}

static bool is_worth_trying(const struct sx_join *join, int64_t rows) {
    return rows <= FEW_ROWS || (!atomic_load_explicit(&join->users->finds_few, memory_order_relaxed) &&
                                !atomic_load_explicit(&join->users->lacks_room, memory_order_relaxed));
}

static bool can_take_at_once(const struct sx_join *join, const struct sx_tensor *keys, int64_t rows,
                             int64_t max_pairs, int n) {
    return rows > 0 && rows <= max_pairs && n <= CUDA_MOVES && join->payload_rows &&
           join->rows_step <= CUDA_JOIN_MOST_TAKEN && !join->has_duplicates &&
           (join->table.ranked || join->lays_key) && !cuda_join_is_coded(join, keys, rows);
}

/* ---- at once ---- */

/* Part of a column in a row's word number `word`. */
struct part {
    uint32_t word;
    struct cuda_join_piece piece;
};

static struct part part_of(const uint8_t *from, const uint8_t *rows, uint32_t width, uint8_t *to,
                           uint32_t step) {
    const uint32_t at = (uint32_t)(from - rows), word = (uint32_t)sizeof(uint64_t);
    return (struct part){at / word, {to, (uint8_t)step, (uint8_t)width, (uint8_t)(at % word * CHAR_BIT)}};
}

static int list_parts(const struct cuda_moves *moves, const uint8_t *rows, struct part *out_parts) {
    const uint32_t word = (uint32_t)sizeof(uint64_t);
    int n = 0;
    for (int c = 0; c < moves->n; c++) {
        const struct cuda_move *move = &moves->columns[c];
        for (uint32_t at = 0; at < move->width; at += word)
            out_parts[n++] = part_of(move->from + at, rows, move->width < word ? move->width : word,
                                     move->to + at, move->to_step);
        if (move->from_valid)
            out_parts[n++] = part_of(move->from_valid, rows, 1, move->to_valid, move->to_valid_step);
    }
    return n;
}

static void set_pieces(const struct cuda_moves *moves, struct cuda_join_take *take) {
    struct part parts[3 * CUDA_MOVES];
    const int n = list_parts(moves, take->rows, parts);
    int placed = 0;
    for (uint32_t w = 0; w < CUDA_JOIN_TAKEN_WORDS; w++) {
        take->first_piece[w] = (uint8_t)placed;
        for (int p = 0; p < n; p++)
            if (parts[p].word == w)
                take->pieces[placed++] = parts[p].piece;
    }
    take->first_piece[CUDA_JOIN_TAKEN_WORDS] = (uint8_t)placed;
}

/* Issues it; columns, and both lists, have room for `rows`. */
static enum sx_status issue(struct cuda_stream *stream, const struct sx_join *join,
                            const struct cuda_join_keys *keys, const struct gather *gather,
                            struct sx_tensor *probe_rows, struct sx_tensor *build_rows) {
    struct sx_buffer *made = NULL;
    const int64_t rows = gather->rows;
    struct cuda_join_take take = {.table = join->table,
                                  .keys = *keys,
                                  .n = rows,
                                  .rows = join->payload_rows->data,
                                  .step = join->rows_step,
                                  .key_at = join->rows_at[join->n_payload],
                                  .out_probe_rows = probe_rows->values,
                                  .out_build_rows = build_rows ? build_rows->values : NULL,
                                  .out_count = cuda_counter_place(stream, COUNTER_PAIRS)};
    set_pieces(&gather->moves, &take);
    SX_TRY(cuda_tile_scratch(stream, cuda_join_take_tiles(rows), &made, &take.scratch));
    cuda_join_take(stream->handle, &take);
    const enum sx_status status = cuda_launched(stream, "a probe with payload");
    sx_buffer_release(made);
    return status;
}

/* Columns with room for no more than their rows. */
static enum sx_status shrink(struct cuda_stream *stream, struct sx_tensor *columns, int n) {
    struct gather gather = {.stream = stream, .rows = n > 0 ? columns[0].length : 0};
    struct sx_tensor exact[CUDA_MOVES] = {0};
    enum sx_status status = SX_OK;
    int made = 0;
    while (made < n && status == SX_OK) {
        const struct gather_from from = {columns[made].values, columns[made].valid, 0};
        status = gather_add(&gather, &columns[made], &from, &exact[made]);
        made += status == SX_OK;
    }
    if (status == SX_OK && gather.rows > 0) {
        cuda_move_rows(stream->handle, &gather.moves, NULL, false, gather.rows);
        status = cuda_launched(stream, "payload that is kept");
    }
    for (int k = 0; k < made; k++) {
        sx_tensor_release(status == SX_OK ? &columns[k] : &exact[k]);
        if (status == SX_OK)
            columns[k] = exact[k];
    }
    return status;
}

static enum sx_status take_at_once(struct cuda_stream *stream, const struct sx_join *join,
                                   const struct sx_tensor *keys, int64_t rows, const int32_t *payload, int n,
                                   struct sx_tensor *out_probe_rows, struct sx_tensor *out_build_rows,
                                   struct sx_tensor *out_columns) {
    struct sx_pool *pool = stream->base.pool;
    struct sx_error *error = &stream->base.error;
    struct gather gather = {
        .stream = stream, .rows = rows, .table = join->payload_rows->data, .step = join->rows_step};
    struct sx_tensor probe_rows = {0}, build_rows = {0};
    struct cuda_join_keys probe_keys;
    struct sx_buffer *list = NULL;
    enum sx_status status;
    int made = 0;
    SX_GO(cuda_join_keys_of(stream, join, keys, &probe_keys, &list));
    SX_GO(sx_tensor_create_index(pool, SX_TYPE_I32, rows, &probe_rows, error));
    if (out_build_rows)
        SX_GO(sx_tensor_create_index(pool, SX_TYPE_I64, rows, &build_rows, error));
    for (; made < n; made++)
        SX_GO(cuda_join_add_payload(&gather, join, payload[made], &out_columns[made]));
    SX_GO(issue(stream, join, &probe_keys, &gather, &probe_rows, out_build_rows ? &build_rows : NULL));
    SX_GO(cuda_sync(stream, "pairs of a probe"));
    const int64_t pairs = cuda_counter(stream, COUNTER_PAIRS);
    probe_rows.length = build_rows.length = pairs;
    for (int k = 0; k < n; k++)
        out_columns[k].length = pairs;
    if (note_share(join, rows, pairs))
        SX_GO(shrink(stream, out_columns, n));
    *out_probe_rows = probe_rows;
    if (out_build_rows)
        *out_build_rows = build_rows;
    sx_buffer_release(list);
    return SX_OK;
out:
    for (int k = 0; k < made; k++)
        sx_tensor_release(&out_columns[k]);
    sx_tensor_release(&probe_rows);
    sx_tensor_release(&build_rows);
    sx_buffer_release(list);
    return status;
}

enum sx_status sx_cuda_join_take(struct sx_stream *base, const struct sx_join *join,
                                 const struct sx_tensor *keys, int64_t rows, int64_t max_pairs,
                                 struct sx_probe_cursor *cursor, const int32_t *payload, int n,
                                 struct sx_tensor *out_probe_rows, struct sx_tensor *out_build_rows,
                                 struct sx_tensor *out_columns) {
    struct cuda_stream *stream;
    SX_TRY(cuda_enter(base, &stream));
    const bool is_whole = cursor->row == 0 && cursor->entry == 0;
    if (is_whole && is_worth_trying(join, rows) && can_take_at_once(join, keys, rows, max_pairs, n)) {
        cuda_spare_cache(stream, true); /* pairs need less */
        const enum sx_status status =
            take_at_once(stream, join, keys, rows, payload, n, out_probe_rows, out_build_rows, out_columns);
        cuda_spare_cache(stream, false);
        if (status == SX_OK)
            *cursor = (struct sx_probe_cursor){rows, 0, true};
        if (status != SX_OUT_OF_MEMORY)
            return status;
        base->error = (struct sx_error){0};
        atomic_store_explicit(&join->users->lacks_room, true, memory_order_relaxed);
    }
    SX_TRY(sx_join_take_pairs(base, join, keys, rows, max_pairs, cursor, payload, n, out_probe_rows,
                              out_build_rows, out_columns));
    if (is_whole && cursor->done && rows > 0)
        (void)note_share(join, rows, out_probe_rows->length);
    return SX_OK;
}
