/* Runs with rows of one width. Parameters: SX_ROW (unsigned), SX_NAME(stem). */

/* Not a row, but: the run ends here. */
#define LAST ((SX_ROW)1 << (8 * sizeof(SX_ROW) - 1))

/* counts[g] of group g becomes where its run ends; that row of the runs is marked. */
static void SX_NAME(count_groups)(const SX_ROW *groups, int64_t rows, SX_ROW *counts, SX_ROW *runs) {
    for (int64_t row = 0; row < rows; row++)
        if (groups[row])
            counts[groups[row] - 1]++;
    SX_ROW end = 0;
    for (int64_t g = 0; g < rows; g++) {
        if (!counts[g])
            continue;
        end += counts[g];
        counts[g] = end;
        runs[end - 1] = LAST;
    }
}

/* Fills the runs from their ends; ends[g] becomes where the run of group g begins. */
static void SX_NAME(scatter_rows)(const SX_ROW *groups, int64_t rows, SX_ROW *ends, SX_ROW *runs) {
    for (int64_t row = rows; row-- > 0;)
        if (groups[row])
            runs[--ends[groups[row] - 1]] |= (SX_ROW)row;
}

/* Entries that are rows become entries that are positions. */
static void SX_NAME(rewrite_table)(struct sx_join *join, const SX_ROW *starts) {
    for (uint64_t s = 0; s < join->table_slots; s++)
        if (join->kind == SX_JOIN_DIRECT && join->direct[s])
            join->direct[s] = (uint32_t)starts[join->direct[s] - 1] + 1;
        else if (join->kind == SX_JOIN_SPARSE && join->sparse[s].entry)
            join->sparse[s].entry = (uint64_t)starts[join->sparse[s].entry - 1] + 1;
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
