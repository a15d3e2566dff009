/* Runs with rows of one width. Parameters: SX_ROW (unsigned), SX_NAME(stem). */

/* Not a row, but: the run ends here. */
#define LAST ((SX_ROW)1 << (8 * sizeof(SX_ROW) - 1))

/* Of rows [first, last). */
static void SX_NAME(count_groups)(const SX_ROW *groups, int64_t first, int64_t last, SX_ROW *counts) {
    for (int64_t row = first; row < last; row++)
        if (groups[row])
            counts[groups[row] - 1]++;
}

/* counts[g] of groups [first, last) becomes where the group's run ends; that row of the runs is marked.
 * Returns the end of the last run, from that of the one before. */
static SX_ROW SX_NAME(end_runs)(int64_t first, int64_t last, SX_ROW end, SX_ROW *counts, SX_ROW *runs) {
    for (int64_t g = first; g < last; g++) {
        if (!counts[g])
            continue;
        end += counts[g];
        counts[g] = end;
        runs[end - 1] = LAST;
    }
    return end;
}

/* Fills the runs from their ends, with rows [first, last); when all have been, downwards, ends[g] is where
 * the run of group g begins. */
static void SX_NAME(scatter_rows)(const SX_ROW *groups, int64_t first, int64_t last, SX_ROW *ends,
                                  SX_ROW *runs) {
    for (int64_t row = last; row-- > first;)
        if (groups[row])
            runs[--ends[groups[row] - 1]] |= (SX_ROW)row;
}

/* Entries of slots [first, last) that are rows become entries that are positions. */
static void SX_NAME(rewrite_table)(struct sx_join *join, const SX_ROW *starts, int64_t first, int64_t last) {
    for (int64_t s = first; s < last; s++)
        if (join->kind == SX_JOIN_DIRECT && join->direct[s])
            join->direct[s] = (uint32_t)starts[join->direct[s] - 1] + 1;
        else if (join->kind == SX_JOIN_SPARSE && join->sparse[s].entry)
            join->sparse[s].entry = (uint64_t)starts[join->sparse[s].entry - 1] + 1;
}

/* A step at a time, so that cancelling takes effect. */
static enum sx_status SX_NAME(make_runs)(struct sx_stream *stream, struct sx_join *join) {
    const SX_ROW *groups = join->groups;
    SX_ROW *starts = join->starts, *runs = join->runs, end = 0;
    const int64_t rows = join->rows, n_slots = (int64_t)join->table_slots;
    for (int64_t at = 0; at < rows; at += STEP_ROWS) {
        SX_TRY(sx_cpu_check_cancel(stream));
        SX_NAME(count_groups)(groups, at, step_end(at, rows), starts);
    }
    for (int64_t at = 0; at < rows; at += STEP_ROWS) {
        SX_TRY(sx_cpu_check_cancel(stream));
        end = SX_NAME(end_runs)(at, step_end(at, rows), end, starts, runs);
    }
    for (int64_t at = rows; at > 0; at -= STEP_ROWS) {
        SX_TRY(sx_cpu_check_cancel(stream));
        SX_NAME(scatter_rows)(groups, at > STEP_ROWS ? at - STEP_ROWS : 0, at, starts, runs);
    }
    for (int64_t at = 0; join->kind != SX_JOIN_GENERIC && at < n_slots; at += STEP_ROWS) {
        SX_TRY(sx_cpu_check_cancel(stream));
        SX_NAME(rewrite_table)(join, starts, at, step_end(at, n_slots));
    }
    return SX_OK;
}

static void SX_NAME(first_rows)(const struct sx_join *join, uint64_t *entries, int64_t n) {
    const SX_ROW *runs = join->runs;
    for (int64_t i = 0; i < n; i++)
        if (entries[i])
            entries[i] = (uint64_t)(runs[entries[i] - 1] & ~LAST) + 1;
}

static void SX_NAME(map_entries)(const void *starts_memory, uint64_t *entries, int64_t n) {
    const SX_ROW *starts = starts_memory;
    for (int64_t i = 0; i < n; i++)
        if (entries[i])
            entries[i] = (uint64_t)starts[entries[i] - 1] + 1;
}

static void SX_NAME(emit_runs)(const struct sx_join *join, struct sx_join_emission *emission) {
    const SX_ROW *runs = join->runs;
    int64_t n = 0, i = 0;
    for (int64_t k = 0; k < emission->n_rows; k++)
        __builtin_prefetch(&runs[emission->entries[k] ? emission->entries[k] - 1 : 0]);
    for (; i < emission->n_rows; i++) {
        uint64_t entry = emission->entries[i];
        while (entry && n < emission->room) {
            SX_ROW row = runs[entry - 1];
            emission->probe_rows[n] = (int32_t)(emission->row + i);
            emission->build_rows[n++] = (int64_t)(row & ~LAST);
            entry = row & LAST ? 0 : entry + 1;
        }
        emission->entries[i] = entry;
        if (entry)
            break;
    }
    emission->row += i;
    emission->n_rows -= i;
    emission->entries += i;
    emission->n_pairs = n;
}

#undef LAST
#undef SX_ROW
#undef SX_NAME
