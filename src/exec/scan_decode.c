/* The row groups that a worker has taken, the chunks that they fall into, and their decoding. */
#include <stdlib.h>

#include "exec/scan.h"

static int32_t column_count(const struct sx_scan_source *scan) {
    return scan->plan->u.scan.n_columns;
}

static struct sx_decoder **decoder_of(const struct sx_scan_source *scan, const struct scan_taken *batch,
                                      int group, int32_t column) {
    return &batch->decoders[(size_t)group * (size_t)column_count(scan) + (size_t)column];
}

/* ---- row groups ---- */

static enum sx_status list_groups(const struct sx_scan_source *scan, struct scan_taken *batch,
                                  struct sx_error *error) {
    int n = 0, n_ranges = 0;
    for (const struct sx_row_group *group = batch->first; group; group = group->next, n++)
        n_ranges += group->n_ranges;
    batch->groups = calloc((size_t)n + 1, sizeof(struct sx_row_group *));
    batch->decoders = calloc((size_t)n * (size_t)column_count(scan) + 1, sizeof(struct sx_decoder *));
    batch->segments = calloc((size_t)n_ranges + 1, sizeof *batch->segments);
    batch->parts = calloc((size_t)n_ranges * (size_t)column_count(scan) + 1, sizeof *batch->parts);
    if (!batch->groups || !batch->decoders || !batch->segments || !batch->parts)
        return sx_no_memory(error, "a scan");
    for (struct sx_row_group *group = batch->first; group; group = group->next)
        batch->groups[batch->n_groups++] = group;
    return SX_OK;
}

void scan_drop_batch(struct sx_scan_source *scan, struct sx_worker *worker, struct scan_taken *batch) {
    for (int g = 0; batch->decoders && g < batch->n_groups; g++)
        for (int32_t c = 0; c < column_count(scan); c++)
            if (*decoder_of(scan, batch, g, c))
                sx_ops(worker)->decoder_destroy(worker->stream, *decoder_of(scan, batch, g, c));
    sx_row_group_release(batch->first);
    free(batch->groups);
    free(batch->decoders);
    free(batch->segments);
    free(batch->parts);
    *batch = (struct scan_taken){0};
}

enum sx_status scan_take_batch(struct sx_scan_source *scan, struct sx_worker *worker,
                               struct scan_worker *state) {
    struct scan_taken *now = &state->now;
    scan_drop_batch(scan, worker, now);
    *now = state->next;
    state->next = (struct scan_taken){0};
    if (!now->first) {
        SX_TRY(sx_scan_next(scan->scan, &now->first, sx_worker_error(worker)));
        if (now->first)
            SX_TRY(list_groups(scan, now, sx_worker_error(worker)));
    }
    state->group = state->range = 0;
    state->row = 0;
    return SX_OK;
}

enum sx_status scan_take_early(struct sx_scan_source *scan, struct sx_worker *worker,
                               struct scan_worker *state) {
    struct scan_taken *next = &state->next;
    if (next->first)
        return SX_OK;
    SX_TRY(sx_scan_next_early(scan->scan, &next->first, sx_worker_error(worker)));
    worker->n_early += next->first != NULL;
    return next->first ? list_groups(scan, next, sx_worker_error(worker)) : SX_OK;
}

/* ---- chunks ---- */

/* Goes to the next range where one ends; false: there is none. */
static bool find_range(struct scan_worker *state) {
    while (state->group < state->now.n_groups) {
        const struct sx_row_group *group = state->now.groups[state->group];
        if (state->range < group->n_ranges) {
            const struct sx_row_range *range = &group->ranges[state->range];
            if (state->row < range->first)
                state->row = range->first;
            if (state->row < range->first + range->rows)
                return true;
            state->range++;
            continue;
        }
        state->group++;
        state->range = 0;
        state->row = 0;
    }
    return false;
}

bool scan_has_chunk(const struct scan_worker *state) {
    struct scan_worker at = *state;
    return find_range(&at);
}

int64_t scan_next_chunk(const struct sx_scan_source *scan, struct scan_worker *state) {
    int64_t rows = 0;
    state->n_segments = 0;
    while (rows < scan->chunk_rows && find_range(state)) {
        const struct sx_row_range *range = &state->now.groups[state->group]->ranges[state->range];
        const int64_t left = range->first + range->rows - state->row, room = scan->chunk_rows - rows;
        const int64_t n = left < room ? left : room;
        state->now.segments[state->n_segments++] = (struct scan_segment){state->group, state->row, n};
        state->row += n;
        rows += n;
        if (!scan->joins_groups)
            break;
    }
    return rows;
}

bool scan_chunk_is_within(const struct scan_worker *state, int32_t column, int64_t least, int64_t most,
                          bool are_nulls) {
    for (int s = 0; s < state->n_segments; s++) {
        int64_t min, max;
        bool has_nulls;
        if (!sx_row_group_integers(state->now.groups[state->now.segments[s].group], column, &min, &max,
                                   &has_nulls) ||
            min < least || max > most || (has_nulls && !are_nulls))
            return false;
    }
    return true;
}

int64_t scan_chunk_sequence(const struct scan_worker *state) {
    const struct scan_segment *first = &state->now.segments[0];
    return state->now.groups[first->group]->first_row + first->first;
}

/* ---- decoding ---- */

static enum sx_status make_decoder(struct sx_scan_source *scan, struct sx_worker *worker,
                                   const struct scan_taken *batch, int group, int32_t column) {
    struct sx_decoder **decoder = decoder_of(scan, batch, group, column);
    if (*decoder)
        return SX_OK;
    enum sx_status status =
        sx_ops(worker)->decoder_create(worker->stream, &batch->groups[group]->columns[column], decoder);
    if (status == SX_FILE)
        return sx_row_group_error(batch->groups[group], scan->scan, column, sx_worker_error(worker));
    return status;
}

/* One read for each column that is not decoded yet; *out_n of them. */
static enum sx_status make_reads(struct sx_scan_source *scan, struct sx_worker *worker,
                                 struct scan_worker *state, const int32_t *columns, int32_t n_columns,
                                 int *out_n) {
    struct sx_decode_part *part = state->now.parts;
    *out_n = 0;
    for (int32_t i = 0; i < n_columns; i++) {
        const int32_t column = columns[i];
        if (state->work.decoded[column])
            continue;
        state->read_columns[*out_n] = column;
        state->reads[(*out_n)++] =
            (struct sx_column_read){part, state->n_segments, &state->work.columns.columns[column]};
        for (int s = 0; s < state->n_segments; s++) {
            const struct scan_segment *segment = &state->now.segments[s];
            SX_TRY(make_decoder(scan, worker, &state->now, segment->group, column));
            *part++ = (struct sx_decode_part){*decoder_of(scan, &state->now, segment->group, column),
                                              segment->first, segment->rows};
        }
        state->work.decoded[column] = true; /* so that a column that is named twice is read once */
    }
    return SX_OK;
}

enum sx_status scan_decode(struct sx_scan_source *scan, struct sx_worker *worker, struct scan_worker *state,
                           const int32_t *columns, int32_t n_columns) {
    struct scan_chunk *chunk = &state->work;
    struct sx_decode_place place = {-1, -1};
    int n = 0;
    enum sx_status status = make_reads(scan, worker, state, columns, n_columns, &n);
    if (status == SX_OK && n > 0)
        status = sx_ops(worker)->decode(worker->stream, state->reads, n,
                                        chunk->selection.length < 0 ? NULL : &chunk->selection, &place);
    for (int i = 0; status != SX_OK && i < n; i++)
        chunk->decoded[state->read_columns[i]] = false;
    if (status == SX_FILE && place.read >= 0) {
        const int group = state->now.segments[place.part].group;
        return sx_row_group_error(state->now.groups[group], scan->scan, state->read_columns[place.read],
                                  sx_worker_error(worker));
    }
    return status;
}

enum sx_status scan_bring(struct sx_scan_source *scan, struct sx_worker *worker, struct scan_taken *batch,
                          const int32_t *columns, int32_t n_columns) {
    struct sx_decoder **decoders =
        calloc((size_t)batch->n_groups * (size_t)n_columns + 1, sizeof(struct sx_decoder *));
    int n = 0;
    enum sx_status status = SX_OK;
    if (!decoders)
        return sx_no_memory(sx_worker_error(worker), "a scan");
    for (int32_t i = 0; i < n_columns; i++)
        for (int g = 0; g < batch->n_groups && status == SX_OK; g++) {
            status = make_decoder(scan, worker, batch, g, columns[i]);
            if (status == SX_OK)
                decoders[n++] = *decoder_of(scan, batch, g, columns[i]);
        }
    if (status == SX_OK)
        status = sx_ops(worker)->decode_ahead(worker->stream, decoders, n);
    free(decoders);
    return status;
}
