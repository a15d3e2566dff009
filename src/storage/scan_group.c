#include <fcntl.h>
#include <stdlib.h>

#include "storage/scan_layout.h"

/* ---- files ---- */

static enum sx_status open_again(const struct scan_file *file, int *out_fd, struct sx_error *error) {
    struct sx_file_stamp stamp;
    SX_TRY(sx_file_open(file->path, out_fd, &stamp, error));
    posix_fadvise(*out_fd, 0, 0, POSIX_FADV_RANDOM);
    if (sx_file_stamp_equal(&stamp, &file->stamp))
        return SX_OK;
    sx_file_close(*out_fd);
    *out_fd = -1;
    return sx_error_set(error, SX_FILE, "%s: the file was changed while it was read", file->path);
}

enum sx_status scan_file_fd(struct sx_scan *scan, int file, int *out_fd, struct sx_error *error) {
    enum sx_status status = SX_OK;
    pthread_mutex_lock(&scan->files_lock);
    if (scan->files[file].fd < 0)
        status = open_again(&scan->files[file], &scan->files[file].fd, error);
    *out_fd = scan->files[file].fd;
    pthread_mutex_unlock(&scan->files_lock);
    return status;
}

/* `change` more of each file's row groups are to be read. */
static void count_units(struct sx_scan *scan, const struct scan_batch *batch, int change) {
    pthread_mutex_lock(&scan->files_lock);
    for (int i = 0; i < batch->n_units; i++) {
        struct scan_file *file = &scan->files[scan->units[batch->first_unit + i].file];
        file->n_units_left += change;
        if (file->n_units_left > 0)
            continue;
        scan_file_close(scan, file);
    }
    pthread_mutex_unlock(&scan->files_lock);
}

/* ---- lifetime ---- */

void scan_unreference(struct sx_scan *scan) {
    if (atomic_fetch_sub(&scan->references, 1) != 1)
        return;
    for (int f = 0; f < scan->n_files; f++) {
        scan_file_close(scan, &scan->files[f]);
        sx_footer_release(scan->files[f].footer);
    }
    pthread_mutex_destroy(&scan->files_lock);
    pthread_cond_destroy(&scan->changed);
    struct sx_arena arena = scan->arena;
    free(scan);
    sx_arena_release(&arena);
}

static struct scan_group *group_of(struct sx_row_group *group) {
    return (struct scan_group *)group;
}

static void free_group(struct scan_group *group) {
    for (int c = 0; c < group->group.n_columns; c++)
        sx_buffer_release(group->group.columns[c].owner);
    free(group->group.columns);
    free((void *)group->group.ranges);
    free(group->pages.pages);
    for (int i = 0; i < group->n_spans; i++)
        if (group->spans[i].held)
            group->scan->storage->backend->cache_release(group->spans[i].held);
    free(group->spans);
    scan_unreference(group->scan);
    free(group);
}

void scan_group_free(struct scan_group *first) {
    while (first) {
        struct scan_group *next = group_of(first->group.next);
        free_group(first);
        first = next;
    }
}

bool sx_row_group_integers(const struct sx_row_group *group, int column, int64_t *out_min, int64_t *out_max,
                           bool *out_nulls) {
    const struct scan_group *own = (const struct scan_group *)group;
    const struct scan_unit *unit = &own->scan->units[own->unit];
    const struct sx_file_column *stored = scan_column(own->scan, unit, column);
    const struct sx_bounds bounds = sx_chunk_bounds(stored, scan_chunk(own->scan, unit, column));
    *out_nulls = stored->is_optional && bounds.n_nulls != 0;
    return sx_bounds_integers(stored, &bounds, out_min, out_max);
}

/* ---- row groups and batches ---- */

size_t scan_unit_bytes(const struct sx_scan *scan, const struct scan_unit *unit) {
    size_t bytes = 1;
    for (int c = 0; c < scan->n_columns && scan_unit_rows(scan, unit) > 0; c++)
        bytes += (size_t)scan_chunk(scan, unit, c)->stored_bytes;
    return bytes;
}

size_t scan_batch_bytes(const struct sx_scan *scan, const struct scan_batch *batch) {
    size_t bytes = 0;
    for (int i = 0; i < batch->n_units; i++)
        bytes += scan_unit_bytes(scan, &scan->units[batch->first_unit + i]);
    return bytes;
}

static void count_pruned(const struct sx_scan *scan, const struct scan_batch *batch,
                         const struct scan_selection *selections, struct scan_tally *tally) {
    for (int i = 0; i < batch->n_units; i++) {
        const int64_t rows = scan_unit_rows(scan, &scan->units[batch->first_unit + i]);
        const int64_t kept = sx_row_ranges_rows(&selections[i].rows);
        tally->pruned_rows += rows - kept;
        if (kept > 0)
            continue;
        tally->rows_of_pruned_groups += rows;
        tally->pruned_groups++;
    }
}

static void note_tally(struct sx_scan *scan, const struct scan_tally *tally, int sign) {
    atomic_fetch_add_explicit(&scan->pruned_rows, sign * tally->pruned_rows, memory_order_relaxed);
    atomic_fetch_add_explicit(&scan->pruned_groups, sign * tally->pruned_groups, memory_order_relaxed);
    atomic_fetch_add_explicit(&scan->done_rows, sign * tally->rows_of_pruned_groups, memory_order_relaxed);
}

/* *out_first NULL: all are pruned. */
static enum sx_status fetch_units(struct scan_layout *layout, struct scan_group **out_first,
                                  bool *out_is_cold, struct sx_error *error) {
    struct sx_scan *scan = layout->scan;
    struct scan_group *last = NULL, *group;
    for (int i = 0; i < layout->batch->n_units; i++) {
        const struct scan_unit *unit = &scan->units[layout->batch->first_unit + i];
        bool is_cold = false;
        if (sx_row_ranges_rows(&layout->selections[i].rows) == 0)
            continue;
        SX_TRY(scan_fetch(scan, unit, &layout->selections[i], layout, &group, &is_cold, error));
        *out_is_cold |= is_cold;
        group->unit = (int)(unit - scan->units);
        if (last)
            last->group.next = &group->group;
        else
            *out_first = group;
        last = group;
    }
    return SX_OK;
}

static enum sx_status read_units(struct sx_scan *scan, const struct scan_batch *batch,
                                 struct scan_tally *tally, struct scan_group **out_first, bool *out_is_cold,
                                 struct sx_error *error) {
    struct sx_arena arena = {0};
    struct scan_selection *selections = SX_ARENA_ARRAY(&arena, batch->n_units, struct scan_selection);
    enum sx_status status =
        selections ? scan_select(scan, batch, &arena, selections, error)
                   : sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for a scan");
    if (status == SX_OK) {
        struct scan_layout layout;
        count_pruned(scan, batch, selections, tally);
        scan_layout_begin(scan, batch, selections, &layout);
        status = fetch_units(&layout, out_first, out_is_cold, error);
        scan_layout_end(&layout);
    }
    sx_arena_release(&arena);
    return status;
}

enum sx_status scan_read_batch(struct sx_scan *scan, int batch, struct scan_group **out_first,
                               bool *out_is_cold, struct sx_error *error) {
    const struct scan_batch *of = &scan->batches[batch];
    struct scan_group *first = NULL;
    struct scan_tally tally = {0};
    *out_first = NULL;
    *out_is_cold = false;
    const enum sx_status status = read_units(scan, of, &tally, &first, out_is_cold, error);
    if (status != SX_OK) {
        scan_group_free(first);
        return status;
    }
    note_tally(scan, &tally, 1);
    count_units(scan, of, -1);
    if (first) {
        first->batch = batch;
        first->tally = tally;
    }
    *out_first = first;
    return SX_OK;
}

void scan_unread_batch(struct sx_scan *scan, const struct scan_group *first) {
    note_tally(scan, &first->tally, -1);
    count_units(scan, &scan->batches[first->batch], 1);
}
