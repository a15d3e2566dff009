/* How the values of a column lie in the shares of a scan. */
#include <stdlib.h>

#include "storage/bounds.h"
#include "storage/scan_state.h"

/* A row group whose least value is an earlier share's has this many values at the least: else too many of its
 * rows may be the earlier share's. */
enum { LEAST_WIDTH = 16 };

/* A table as it is walked through, row group by row group. */
struct walk {
    const char *const *columns;
    int n_columns, key, n_shares;
    int *leaves;           /* the columns' in the file that is looked at; -1: it has none */
    sx_u128 total, before; /* bytes */
    int share;             /* the last row group's; -1: none yet */
    bool has_two;          /* shares with row groups */
    int64_t most, floor;   /* the largest value so far, and that of the shares before */
    int64_t *ends;
};

/* As scan_unit_bytes. */
static size_t group_bytes(const struct walk *walk, const struct sx_footer *footer, int group) {
    size_t bytes = 1;
    for (int c = 0; c < walk->n_columns && footer->groups[group].n_rows > 0; c++)
        if (walk->leaves[c] >= 0)
            bytes += (size_t)footer->groups[group].chunks[walk->leaves[c]].stored_bytes;
    return bytes;
}

static void find_leaves(struct walk *walk, const struct sx_footer *footer) {
    for (int c = 0; c < walk->n_columns; c++) {
        const int at = sx_footer_find(footer, walk->columns[c]);
        walk->leaves[c] = at < 0 ? -1 : footer->columns[at].leaf;
    }
}

static void add_bytes(struct walk *walk, const struct sx_footer *footer) {
    find_leaves(walk, footer);
    for (int g = 0; g < footer->n_groups; g++)
        walk->total += group_bytes(walk, footer, g);
}

static void begin_share(struct walk *walk, int share) {
    if (walk->share >= 0) {
        walk->has_two = true;
        walk->floor = walk->most;
    }
    for (int s = walk->share; s >= 0 && s < share; s++)
        walk->ends[s] = walk->most;
    walk->share = share;
}

/* False: the shares are no ranges that follow each other, or it is not known. */
static bool add_groups(struct walk *walk, const struct sx_footer *footer) {
    const int at = sx_footer_find(footer, walk->columns[walk->key]);
    if (at < 0 || walk->total == 0)
        return false;
    find_leaves(walk, footer);
    const struct sx_file_column *column = &footer->columns[at];
    for (int g = 0; g < footer->n_groups; g++) {
        const size_t bytes = group_bytes(walk, footer, g);
        const int share = sx_share_of(walk->before, bytes, walk->total, walk->n_shares);
        const struct sx_bounds bounds = sx_chunk_bounds(column, &footer->groups[g].chunks[column->leaf]);
        int64_t min, max;
        walk->before += bytes;
        if (footer->groups[g].n_rows == 0)
            continue;
        if (!sx_bounds_integers(column, &bounds, &min, &max))
            return false;
        if (walk->share < 0 && share > 0)
            return false; /* no value is the end of what is in front */
        if (share != walk->share)
            begin_share(walk, share);
        const bool is_narrow = (uint64_t)max - (uint64_t)min < LEAST_WIDTH;
        if (min < walk->floor || (walk->has_two && min == walk->floor && is_narrow))
            return false;
        walk->most = max > walk->most ? max : walk->most;
    }
    return true;
}

static bool find_ends(struct walk *walk, struct sx_footer *const *footers, int n_files) {
    for (int f = 0; f < n_files; f++)
        add_bytes(walk, footers[f]);
    for (int f = 0; f < n_files; f++)
        if (!add_groups(walk, footers[f]))
            return false;
    for (int s = walk->share; s >= 0 && s < walk->n_shares - 1; s++)
        walk->ends[s] = walk->most;
    return walk->has_two;
}

enum sx_status sx_storage_share_ends(struct sx_storage *storage, const char *const *files, int n_files,
                                     const char *const *columns, int n_columns, int key, int n_shares,
                                     int64_t *out_ends, bool *out_found, struct sx_error *error) {
    struct walk walk = {.columns = columns,
                        .n_columns = n_columns,
                        .key = key,
                        .n_shares = n_shares,
                        .share = -1,
                        .most = INT64_MIN,
                        .floor = INT64_MIN,
                        .ends = out_ends};
    enum sx_status status = SX_OK;
    struct sx_footer **footers = calloc((size_t)n_files + 1, sizeof(struct sx_footer *));
    walk.leaves = calloc((size_t)n_columns + 1, sizeof *walk.leaves);
    if (!walk.leaves || !footers)
        SX_GO(sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a table's shares"));
    for (int f = 0; f < n_files; f++) {
        struct sx_file_stamp stamp;
        SX_GO(sx_footer_cache_get(storage->footers, files[f], &footers[f], &stamp, error));
    }
    *out_found = find_ends(&walk, footers, n_files);
out:
    for (int f = 0; footers && f < n_files; f++)
        sx_footer_release(footers[f]);
    free(footers);
    free(walk.leaves);
    return status;
}
