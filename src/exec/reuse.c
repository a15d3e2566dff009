#include "exec/reuse.h"

#include <string.h>

struct scan_list {
    const struct sx_scan_plan **scans;
    int n;
};

int sx_plan_scans(const struct sx_plan *plan) {
    int n = plan->kind == SX_PLAN_SCAN;
    for (int32_t i = 0; i < plan->n_children; i++)
        n += sx_plan_scans(plan->children[i]);
    return n;
}

static void list_scans(const struct sx_plan *plan, struct scan_list *list) {
    if (plan->kind == SX_PLAN_SCAN)
        list->scans[list->n++] = &plan->u.scan;
    for (int32_t i = 0; i < plan->n_children; i++)
        list_scans(plan->children[i], list);
}

bool sx_scans_same_files(const struct sx_scan_plan *a, const struct sx_scan_plan *b) {
    if (a->n_files != b->n_files)
        return false;
    for (int32_t f = 0; a->files != b->files && f < a->n_files; f++)
        if (strcmp(a->files[f], b->files[f]) != 0)
            return false;
    return true;
}

static bool reads(const struct sx_scan_plan *scan, const char *source) {
    for (int32_t c = 0; c < scan->n_columns; c++)
        if (strcmp(scan->columns[c].source, source) == 0)
            return true;
    return false;
}

static int count_readers(const struct scan_list *list, const struct sx_scan_plan *scan, const char *source) {
    int n = 0;
    for (int i = 0; i < list->n; i++)
        n += reads(list->scans[i], source) && sx_scans_same_files(list->scans[i], scan);
    return n;
}

static const struct sx_reused_column *find(const struct sx_run *run, const struct sx_scan_plan *scan,
                                           const char *source) {
    for (int i = 0; i < run->n_reused; i++)
        if (strcmp(run->reused[i].source, source) == 0 && sx_scans_same_files(run->reused[i].scan, scan))
            return &run->reused[i];
    return NULL;
}

/* What this rank reads of a column, about; INT64_MAX: it can't be told. */
static int64_t own_bytes(const struct sx_run *run, const struct sx_reused_column *column) {
    const struct sx_scan_plan *scan = column->scan;
    const struct sx_table_parts *parts = scan->parts;
    const int n_shares = parts                                      ? parts->n_shares
                         : run->options.net && !scan->is_replicated ? sx_net_size(run->options.net)
                                                                    : 1;
    int64_t bytes = 0;
    for (int f = 0; f < scan->n_files; f++) {
        int64_t more = 0;
        if ((!parts || parts->is_local[f]) &&
            sx_storage_plain_bytes(run->options.storage, &scan->files[f], 1, &column->source, 1, &more, NULL))
            return INT64_MAX;
        if (__builtin_add_overflow(bytes, more, &bytes))
            return INT64_MAX;
    }
    return bytes / (n_shares ? n_shares : 1);
}

/* The device's cache has all of it, or else what comes in drives out what the next scan reads first. */
static void add(struct sx_run *run, const struct sx_reused_column *column, int64_t *bytes_left) {
    const int64_t bytes = own_bytes(run, column);
    if (bytes > *bytes_left)
        return;
    *bytes_left -= bytes;
    run->reused[run->n_reused++] = *column;
}

enum sx_status sx_reuse_plan(struct sx_run *run, const struct sx_plan *root, struct sx_error *error) {
    const size_t limit = run->options.reuse_bytes;
    struct scan_list list = {SX_ARENA_ARRAY(&run->arena, sx_plan_scans(root), const struct sx_scan_plan *),
                             0};
    int64_t bytes_left = limit < INT64_MAX ? (int64_t)limit : INT64_MAX;
    int n = 0;
    if (limit == 0 || run->options.write)
        return SX_OK;
    if (!list.scans)
        return sx_no_memory(error, "a list of scans");
    list_scans(root, &list);
    for (int i = 0; i < list.n; i++)
        n += list.scans[i]->n_columns;
    run->reused = SX_ARENA_ARRAY(&run->arena, n, struct sx_reused_column);
    if (!run->reused)
        return sx_no_memory(error, "a list of columns");
    for (int i = 0; i < list.n; i++)
        for (int32_t c = 0; c < list.scans[i]->n_columns; c++) {
            const char *source = list.scans[i]->columns[c].source;
            const struct sx_reused_column column = {list.scans[i], source,
                                                    count_readers(&list, list.scans[i], source)};
            if (column.n_readers > 1 && !find(run, column.scan, source))
                add(run, &column, &bytes_left);
        }
    if (run->n_reused == 0)
        return SX_OK;
    /* decoded columns have what the stored ones leave, but not more than half */
    const size_t left = (size_t)bytes_left, half = limit / 2;
    return sx_reuse_create(run->options.storage, limit, left < half ? left : half, &run->reuse, error);
}

int sx_reuse_readers(const struct sx_run *run, const struct sx_scan_plan *scan, int32_t column) {
    const struct sx_reused_column *found = find(run, scan, scan->columns[column].source);
    return found ? found->n_readers : 0;
}
