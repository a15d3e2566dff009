#include <fcntl.h>
#include <stdlib.h>

#include "storage/scan_state.h"

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

void scan_file_done(struct sx_scan *scan, int file) {
    pthread_mutex_lock(&scan->files_lock);
    if (--scan->files[file].n_units_left == 0) {
        sx_file_close(scan->files[file].fd);
        scan->files[file].fd = -1;
    }
    pthread_mutex_unlock(&scan->files_lock);
}

/* ---- lifetime ---- */

void scan_unreference(struct sx_scan *scan) {
    if (atomic_fetch_sub(&scan->references, 1) != 1)
        return;
    for (int f = 0; f < scan->n_files; f++) {
        sx_file_close(scan->files[f].fd);
        sx_footer_release(scan->files[f].footer);
    }
    pthread_mutex_destroy(&scan->files_lock);
    pthread_cond_destroy(&scan->changed);
    struct sx_arena arena = scan->arena;
    free(scan);
    sx_arena_release(&arena);
}

void scan_group_free(struct scan_group *group) {
    if (!group)
        return;
    for (int c = 0; c < group->group.n_columns; c++)
        sx_buffer_release(group->group.columns[c].owner);
    free(group->group.columns);
    free((void *)group->group.ranges);
    free(group->pages.pages);
    scan_unreference(group->scan);
    free(group);
}

/* ---- units ---- */

size_t scan_unit_bytes(const struct sx_scan *scan, const struct scan_unit *unit) {
    size_t bytes = 1;
    for (int c = 0; c < scan->n_columns && scan_unit_rows(scan, unit) > 0; c++)
        bytes += (size_t)scan_chunk(scan, unit, c)->stored_bytes;
    return bytes;
}

enum sx_status scan_read_unit(struct sx_scan *scan, int unit, struct scan_group **out_group,
                              bool *out_is_cold, struct sx_error *error) {
    const struct scan_unit *of = &scan->units[unit];
    struct scan_selection selection = {0};
    *out_group = NULL;
    *out_is_cold = false;
    enum sx_status status = scan_select(scan, of, &selection, error);
    int64_t rows = scan_unit_rows(scan, of), kept = sx_row_ranges_rows(&selection.rows);
    if (status == SX_OK && kept > 0)
        status = scan_fetch(scan, of, &selection, out_group, out_is_cold, error);
    sx_arena_release(&selection.arena);
    SX_TRY(status);
    if (*out_group)
        (*out_group)->unit = unit;
    atomic_fetch_add_explicit(&scan->pruned_rows, rows - kept, memory_order_relaxed);
    if (kept == 0) {
        atomic_fetch_add_explicit(&scan->done_rows, rows, memory_order_relaxed);
        atomic_fetch_add_explicit(&scan->pruned_groups, 1, memory_order_relaxed);
    }
    return SX_OK;
}
