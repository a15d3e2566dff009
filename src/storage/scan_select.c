/* Which rows of a row group can pass: by statistics, then bloom filters, then the page index. */
#include "storage/bloom.h"
#include "storage/scan_state.h"

enum { TRIALS = 16 };

/* Whether going on pays: at least one row in 32 is dropped. */
static bool pays(const struct scan_profit *profit) {
    return atomic_load_explicit(&profit->tried, memory_order_relaxed) < TRIALS ||
           atomic_load_explicit(&profit->rows_dropped, memory_order_relaxed) >=
               atomic_load_explicit(&profit->rows_in, memory_order_relaxed) / 32;
}

static void note_profit(struct scan_profit *profit, int64_t rows_in, int64_t rows_dropped) {
    atomic_fetch_add_explicit(&profit->tried, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&profit->rows_in, rows_in, memory_order_relaxed);
    atomic_fetch_add_explicit(&profit->rows_dropped, rows_dropped, memory_order_relaxed);
}

/* ---- conjuncts: the request's, and those found while running ---- */

struct tests {
    struct sx_prune *prunes;
    int count;
};

static struct sx_scalar restriction_value(struct sx_type type, int64_t value) {
    struct sx_scalar scalar = {.type = type};
    enum sx_phys phys = sx_type_phys(type);
    if (phys == SX_PHYS_I128)
        scalar.v.i128 = value;
    else
        scalar.v.i64 = value; /* u64 too: restrictions of unsigned columns are not negative */
    return scalar;
}

static enum sx_status add_restriction(struct sx_arena *arena, struct tests *tests, int column,
                                      struct sx_type type, int64_t min, int64_t max, struct sx_error *error) {
    struct sx_scalar *ends = SX_ARENA_ARRAY(arena, 2, struct sx_scalar);
    if (!ends)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for a scan's filters");
    ends[0] = restriction_value(type, min);
    ends[1] = restriction_value(type, max);
    tests->prunes[tests->count++] =
        (struct sx_prune){.column = column, .op = SX_PRUNE_GE, .values = &ends[0], .n_values = 1};
    tests->prunes[tests->count++] =
        (struct sx_prune){.column = column, .op = SX_PRUNE_LE, .values = &ends[1], .n_values = 1};
    return SX_OK;
}

static enum sx_status collect_tests(struct sx_scan *scan, struct sx_arena *arena, struct tests *tests,
                                    struct sx_error *error) {
    tests->prunes = SX_ARENA_ARRAY(arena, scan->n_prunes + 2 * scan->n_columns, struct sx_prune);
    if (!tests->prunes)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for a scan's filters");
    tests->count = 0;
    for (int i = 0; i < scan->n_prunes; i++)
        tests->prunes[tests->count++] = scan->prunes[i];
    enum sx_status status = SX_OK;
    pthread_mutex_lock(&scan->storage->lock);
    for (int c = 0; c < scan->n_columns && status == SX_OK; c++)
        if (scan->is_restricted[c])
            status = add_restriction(arena, tests, c, scan->column_types[c], scan->restricted_min[c],
                                     scan->restricted_max[c], error);
    pthread_mutex_unlock(&scan->storage->lock);
    return status;
}

/* ---- statistics and bloom filters ---- */

static bool statistics_exclude(const struct sx_scan *scan, const struct scan_unit *unit,
                               const struct tests *tests) {
    for (int i = 0; i < tests->count; i++) {
        const struct sx_prune *prune = &tests->prunes[i];
        const struct sx_file_column *column = scan_column(scan, unit, prune->column);
        struct sx_bounds bounds = sx_chunk_bounds(column, scan_chunk(scan, unit, prune->column));
        if (sx_bounds_exclude(column, &bounds, prune))
            return true;
    }
    return false;
}

static enum sx_status filters_exclude(struct sx_scan *scan, const struct scan_unit *unit,
                                      const struct tests *tests, bool *out_excluded, struct sx_error *error) {
    bool tried = false, excluded = false;
    for (int i = 0; i < tests->count && !excluded && pays(&scan->bloom_profit); i++) {
        const struct sx_prune *prune = &tests->prunes[i];
        const struct sx_chunk_meta *chunk = scan_chunk(scan, unit, prune->column);
        if ((prune->op != SX_PRUNE_EQ && prune->op != SX_PRUNE_IN) || chunk->bloom_offset <= 0)
            continue;
        int fd;
        SX_TRY(scan_file_fd(scan, unit->file, &fd, error));
        tried = true;
        excluded = sx_bloom_exclude(fd, scan->files[unit->file].footer->file_bytes,
                                    scan_column(scan, unit, prune->column), chunk, prune);
    }
    int64_t rows = scan_unit_rows(scan, unit);
    if (tried)
        note_profit(&scan->bloom_profit, rows, excluded ? rows : 0);
    *out_excluded = excluded;
    return SX_OK;
}

/* ---- the page index ---- */

static enum sx_status read_places(struct sx_scan *scan, const struct scan_unit *unit, int column,
                                  struct scan_selection *selection, struct sx_error *error) {
    struct sx_page_places *places = &selection->places[column];
    if (places->places)
        return SX_OK;
    int fd;
    SX_TRY(scan_file_fd(scan, unit->file, &fd, error));
    return sx_offset_index_read(fd, scan->files[unit->file].footer->file_bytes,
                                scan_chunk(scan, unit, column), scan_unit_rows(scan, unit), selection->arena,
                                places, error);
}

/* Rows of the pages that one conjunct does not exclude. */
static enum sx_status passing_pages(struct sx_arena *arena, const struct sx_file_column *column,
                                    const struct sx_page_places *places, const struct sx_bounds *bounds,
                                    const struct sx_prune *prune, struct sx_row_ranges *out_rows,
                                    struct sx_error *error) {
    struct sx_row_range *ranges = SX_ARENA_ARRAY(arena, places->count, struct sx_row_range);
    if (!ranges)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for a page index");
    int count = 0;
    for (int p = 0; p < places->count; p++) {
        const struct sx_page_place *place = &places->places[p];
        if (sx_bounds_exclude(column, &bounds[p], prune))
            continue;
        if (count > 0 && ranges[count - 1].first + ranges[count - 1].rows == place->first_row)
            ranges[count - 1].rows += place->rows;
        else
            ranges[count++] = (struct sx_row_range){place->first_row, place->rows};
    }
    *out_rows = (struct sx_row_ranges){ranges, count};
    return SX_OK;
}

/* Applies the conjuncts on one column. */
static enum sx_status narrow_by_column(struct sx_scan *scan, const struct scan_unit *unit, int column,
                                       const struct tests *tests, struct scan_selection *selection,
                                       struct sx_error *error) {
    const struct sx_chunk_meta *chunk = scan_chunk(scan, unit, column);
    const struct sx_file_column *found = scan_column(scan, unit, column);
    if (chunk->column_index_offset <= 0 || chunk->offset_index_offset <= 0 || !found->has_order)
        return SX_OK;
    int fd;
    struct sx_bounds *bounds = NULL;
    SX_TRY(scan_file_fd(scan, unit->file, &fd, error));
    SX_TRY(read_places(scan, unit, column, selection, error));
    const struct sx_page_places *places = &selection->places[column];
    if (places->count < 2)
        return SX_OK;
    SX_TRY(sx_column_index_read(fd, scan->files[unit->file].footer->file_bytes, chunk, places,
                                selection->arena, &bounds, error));
    for (int i = 0; bounds && i < tests->count; i++) {
        if (tests->prunes[i].column != column)
            continue;
        struct sx_row_ranges rows;
        SX_TRY(passing_pages(selection->arena, found, places, bounds, &tests->prunes[i], &rows, error));
        SX_TRY(sx_row_ranges_intersect(selection->arena, &selection->rows, &rows, error));
    }
    return SX_OK;
}

/* Whether less than one byte in LEAST_LEFT_OUT of the chunk's pages is left out. Each of the others would be
 * asked for, and brought to a GPU, by itself, and a whole chunk is also what other scans ask for. */
static bool is_nearly_whole(const struct scan_selection *selection, const struct sx_page_places *places) {
    enum { LEAST_LEFT_OUT = 8 };
    int64_t bytes = 0, left_out_bytes = 0;
    for (int p = 0; p < places->count; p++) {
        const struct sx_page_place *place = &places->places[p];
        bytes += place->stored_bytes;
        if (!sx_row_ranges_touch(&selection->rows, place->first_row, place->rows))
            left_out_bytes += place->stored_bytes;
    }
    return left_out_bytes < bytes / LEAST_LEFT_OUT;
}

static bool is_tested(const struct tests *tests, int column) {
    for (int i = 0; i < tests->count; i++)
        if (tests->prunes[i].column == column)
            return true;
    return false;
}

static enum sx_status narrow_by_pages(struct sx_scan *scan, const struct scan_unit *unit,
                                      const struct tests *tests, struct scan_selection *selection,
                                      struct sx_error *error) {
    int64_t n_rows = scan_unit_rows(scan, unit);
    selection->places = SX_ARENA_ARRAY(selection->arena, scan->n_columns, struct sx_page_places);
    selection->is_whole = SX_ARENA_ARRAY(selection->arena, scan->n_columns, bool);
    if (!selection->places || !selection->is_whole)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for a page index");
    for (int c = 0; c < scan->n_columns && selection->rows.count > 0; c++)
        if (is_tested(tests, c))
            SX_TRY(narrow_by_column(scan, unit, c, tests, selection, error));
    int64_t kept = sx_row_ranges_rows(&selection->rows);
    note_profit(&scan->index_profit, n_rows, n_rows - kept);
    if (kept == n_rows)
        selection->places = NULL;
    for (int c = 0; selection->places && kept > 0 && c < scan->n_columns; c++) {
        SX_TRY(read_places(scan, unit, c, selection, error));
        const struct sx_page_places *places = &selection->places[c];
        selection->is_whole[c] = places->places && is_nearly_whole(selection, places);
    }
    return SX_OK;
}

static bool has_page_index(const struct sx_scan *scan, const struct scan_unit *unit,
                           const struct tests *tests) {
    for (int i = 0; i < tests->count; i++)
        if (scan_chunk(scan, unit, tests->prunes[i].column)->column_index_offset > 0)
            return true;
    return false;
}

static enum sx_status select_rows(struct sx_scan *scan, const struct scan_unit *unit,
                                  const struct tests *tests, struct scan_selection *selection,
                                  struct sx_error *error) {
    bool excluded = false;
    struct sx_row_range *all = SX_ARENA_NEW(selection->arena, struct sx_row_range);
    if (!all)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for a scan");
    *all = (struct sx_row_range){0, scan_unit_rows(scan, unit)};
    selection->rows = (struct sx_row_ranges){all, all->rows > 0};
    excluded = all->rows == 0 || statistics_exclude(scan, unit, tests);
    if (!excluded)
        SX_TRY(filters_exclude(scan, unit, tests, &excluded, error));
    if (excluded)
        selection->rows.count = 0;
    else if (has_page_index(scan, unit, tests) && pays(&scan->index_profit))
        return narrow_by_pages(scan, unit, tests, selection, error);
    return SX_OK;
}

/* Conjuncts are collected again only where there are new ones: that takes the lock that all scans of the
 * storage share. */
enum sx_status scan_select(struct sx_scan *scan, const struct scan_batch *batch, struct sx_arena *arena,
                           struct scan_selection *out_selections, struct sx_error *error) {
    struct tests tests = {0};
    int n_known = -1;
    for (int i = 0; i < batch->n_units; i++) {
        const int n = atomic_load_explicit(&scan->n_restrictions, memory_order_acquire);
        if (scan_is_cancelled(scan))
            return sx_error_set(error, SX_CANCELLED, "the query was cancelled");
        if (n != n_known)
            SX_TRY(collect_tests(scan, arena, &tests, error));
        n_known = n;
        out_selections[i] = (struct scan_selection){.arena = arena};
        SX_TRY(select_rows(scan, &scan->units[batch->first_unit + i], &tests, &out_selections[i], error));
    }
    return SX_OK;
}
