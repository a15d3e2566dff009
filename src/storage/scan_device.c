/* Which row groups of a scan are read straight into the device's memory, and which of their columns. */
#include "storage/scan_state.h"

void scan_file_close(struct sx_scan *scan, struct scan_file *file) {
    sx_device_reader_close(scan->storage->device_reader, file->device);
    sx_file_close(file->fd);
    file->fd = -1;
    file->device = NULL;
    file->was_offered = false;
}

/* Unless it is forced, what memory can hold is better there. */
static bool is_wanted(const struct sx_scan *scan) {
    const struct sx_storage *storage = scan->storage;
    if (!storage->device_reader || scan->n_columns == 0)
        return false;
    return sx_device_reader_is_forced(storage->device_reader) ||
           (sx_reader_is_direct(storage->reader, scan->files_bytes) &&
            (!storage->cache ||
             (uint64_t)scan->files_bytes > sx_chunk_cache_usage(storage->cache).limit_bytes));
}

/* What is in memory is better taken from it. */
static bool is_in_memory(const struct sx_scan *scan, const struct scan_unit *unit, int fd) {
    uint8_t probe;
    return sx_file_read_cached(fd, sx_chunk_begin(scan_chunk(scan, unit, 0)), 1, &probe) > 0;
}

enum sx_status scan_device_source(struct sx_scan *scan, const struct scan_unit *unit,
                                  struct sx_device_source **out_source, struct sx_error *error) {
    struct scan_file *file = &scan->files[unit->file];
    enum sx_status status = SX_OK;
    int fd;
    *out_source = NULL;
    if (!is_wanted(scan))
        return SX_OK;
    SX_TRY(scan_file_fd(scan, unit->file, &fd, error));
    if (!sx_device_reader_is_forced(scan->storage->device_reader) && is_in_memory(scan, unit, fd))
        return SX_OK;
    pthread_mutex_lock(&scan->files_lock);
    if (!file->was_offered)
        status = sx_device_reader_open(scan->storage->device_reader, fd, &file->stamp, &file->device, error);
    file->was_offered = status == SX_OK;
    *out_source = file->device;
    pthread_mutex_unlock(&scan->files_lock);
    return status == SX_FILE ? sx_error_prefix(error, "%s", file->path) : status;
}

bool scan_column_on_device(const struct sx_scan *scan, const struct scan_unit *unit, int column) {
    const struct sx_file_column *found = scan_column(scan, unit, column);
    return !atomic_load_explicit(&found->has_checksums, memory_order_relaxed) &&
           sx_device_reader_takes(scan->storage->device_reader, scan_chunk(scan, unit, column)->codec);
}
