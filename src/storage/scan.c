#include "storage/scan.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/signals.h"
#include "storage/scan_state.h"
#include "storage/stand_in.h"

static enum sx_status no_memory(struct sx_error *error) {
    return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for a scan");
}

/* ---- storage ---- */

static enum sx_status start_threads(struct sx_storage *storage, int n_threads, struct sx_error *error) {
    sigset_t previous;
    storage->threads = calloc((size_t)n_threads + 1, sizeof *storage->threads);
    if (!storage->threads)
        return no_memory(error);
    sx_signals_block(&previous);
    int failure = 0;
    while (storage->n_threads < n_threads && !failure) {
        failure = pthread_create(&storage->threads[storage->n_threads], NULL, scan_reader_main, storage);
        storage->n_threads += failure == 0;
    }
    sx_signals_restore(&previous);
    if (failure)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: a reader thread could not start: %s",
                            strerror(failure));
    return SX_OK;
}

/* None where it is not asked for, or there is no way. */
static enum sx_status create_device_reader(struct sx_storage *storage,
                                           const struct sx_storage_options *options, struct sx_error *error) {
    const bool is_forced = options->io == SX_IO_DEVICE;
    const struct sx_backend *backend = options->backend;
    if (!is_forced && (options->io != SX_IO_AUTO || !backend || !backend->files))
        return SX_OK;
    if (backend && backend->cache_usage && backend->cache_usage(backend).limit_bytes > 0)
        SX_TRY(sx_chunk_cache_create(storage->budget, SX_PLACES_BYTES, &storage->on_device, error));
    const struct sx_device_reader_options reader = {options->backend, options->pool, is_forced};
    return sx_device_reader_create(&reader, &storage->device_reader, error);
}

enum sx_status sx_storage_create(const struct sx_storage_options *options, struct sx_storage **out_storage,
                                 struct sx_error *error) {
    struct sx_storage *storage = calloc(1, sizeof *storage);
    if (!storage)
        return no_memory(error);
    storage->pool = options->pool;
    storage->budget = options->budget ? options->budget : options->pool;
    storage->backend = options->backend;
    pthread_mutex_init(&storage->lock, NULL);
    pthread_cond_init(&storage->work, NULL);
    enum sx_status status = sx_footer_cache_create(&storage->footers, error);
    if (status == SX_OK && options->cache_bytes)
        status = sx_chunk_cache_create(storage->budget, options->cache_bytes, &storage->cache, error);
    if (status == SX_OK)
        status = sx_reader_create(options->pool, options->direct_pool, options->io, options->page_cache_bytes,
                                  &storage->reader, error);
    if (status == SX_OK)
        status = create_device_reader(storage, options, error);
    if (status == SX_OK)
        status = start_threads(storage, options->n_reader_threads, error);
    if (status != SX_OK) {
        sx_storage_destroy(storage);
        return status;
    }
    *out_storage = storage;
    return SX_OK;
}

void sx_storage_destroy(struct sx_storage *storage) {
    if (!storage)
        return;
    pthread_mutex_lock(&storage->lock);
    storage->stopping = true;
    pthread_cond_broadcast(&storage->work);
    pthread_mutex_unlock(&storage->lock);
    for (int i = 0; i < storage->n_threads; i++)
        pthread_join(storage->threads[i], NULL);
    free(storage->threads);
    sx_device_reader_destroy(storage->device_reader);
    sx_reader_destroy(storage->reader);
    sx_chunk_cache_destroy(storage->cache);
    sx_chunk_cache_destroy(storage->on_device);
    sx_stand_ins_destroy(storage->stand_ins);
    sx_footer_cache_destroy(storage->footers);
    pthread_cond_destroy(&storage->work);
    pthread_mutex_destroy(&storage->lock);
    free(storage);
}

void sx_storage_device_reason(struct sx_storage *storage, char out_reason[SX_STORAGE_REASON_BYTES]) {
    out_reason[0] = 0;
    if (storage->device_reader)
        sx_device_reader_reason(storage->device_reader, out_reason, SX_STORAGE_REASON_BYTES);
}

enum sx_status sx_storage_count_rows(struct sx_storage *storage, const char *const *files, int n_files,
                                     int64_t *out_rows, struct sx_error *error) {
    int64_t rows = 0;
    for (int f = 0; f < n_files; f++) {
        struct sx_footer *footer;
        struct sx_file_stamp stamp;
        SX_TRY(sx_footer_cache_get(storage->footers, files[f], &footer, &stamp, error));
        bool overflows = __builtin_add_overflow(rows, footer->n_rows, &rows);
        sx_footer_release(footer);
        if (overflows)
            return sx_error_set(error, SX_FILE, "%s: the table has more than 2^63 rows", files[f]);
    }
    *out_rows = rows;
    return SX_OK;
}

static int64_t column_bytes(const struct sx_footer *footer, const char *column) {
    const int at = sx_footer_find(footer, column);
    int64_t bytes = 0;
    for (int g = 0; at >= 0 && g < footer->n_groups; g++) {
        const int64_t more = footer->groups[g].chunks[footer->columns[at].leaf].plain_bytes;
        if (more < 0 || __builtin_add_overflow(bytes, more, &bytes))
            return INT64_MAX;
    }
    return bytes;
}

enum sx_status sx_storage_plain_bytes(struct sx_storage *storage, const char *const *files, int n_files,
                                      const char *const *columns, int n_columns, int64_t *out_bytes,
                                      struct sx_error *error) {
    int64_t bytes = 0;
    for (int f = 0; f < n_files; f++) {
        struct sx_footer *footer;
        struct sx_file_stamp stamp;
        SX_TRY(sx_footer_cache_get(storage->footers, files[f], &footer, &stamp, error));
        for (int c = 0; c < n_columns; c++)
            if (__builtin_add_overflow(bytes, column_bytes(footer, columns[c]), &bytes))
                bytes = INT64_MAX;
        sx_footer_release(footer);
    }
    *out_bytes = bytes;
    return SX_OK;
}

/* ---- opening ---- */

static enum sx_status copy_prune(struct sx_scan *scan, const struct sx_prune *from, struct sx_prune *to,
                                 struct sx_error *error) {
    struct sx_scalar *values = SX_ARENA_ARRAY(&scan->arena, from->n_values, struct sx_scalar);
    if (!values)
        return no_memory(error);
    for (int i = 0; i < from->n_values; i++) {
        values[i] = from->values[i];
        if (values[i].type.id != SX_TYPE_VARCHAR || values[i].is_null)
            continue;
        values[i].v.text.bytes = sx_arena_copy_text(&scan->arena, from->values[i].v.text.bytes,
                                                    from->values[i].v.text.length_bytes);
        if (!values[i].v.text.bytes)
            return no_memory(error);
    }
    *to = *from;
    to->values = values;
    return SX_OK;
}

static enum sx_status copy_request(struct sx_scan *scan, const struct sx_scan_request *request,
                                   struct sx_error *error) {
    struct sx_arena *arena = &scan->arena;
    scan->table = sx_arena_format(arena, "%s", request->table ? request->table : "");
    scan->column_names = SX_ARENA_ARRAY(arena, request->n_columns, const char *);
    scan->column_types = SX_ARENA_ARRAY(arena, request->n_columns, struct sx_type);
    scan->is_restricted = SX_ARENA_ARRAY(arena, request->n_columns, bool);
    scan->restricted_min = SX_ARENA_ARRAY(arena, request->n_columns, int64_t);
    scan->restricted_max = SX_ARENA_ARRAY(arena, request->n_columns, int64_t);
    scan->n_readers = SX_ARENA_ARRAY(arena, request->n_columns, int);
    scan->prunes = SX_ARENA_ARRAY(arena, request->n_prunes, struct sx_prune);
    scan->files = SX_ARENA_ARRAY(arena, request->n_files, struct scan_file);
    if (!scan->table || !scan->column_names || !scan->column_types || !scan->is_restricted ||
        !scan->restricted_min || !scan->restricted_max || !scan->n_readers || !scan->prunes || !scan->files)
        return no_memory(error);
    for (int c = 0; c < request->n_columns; c++) {
        scan->column_types[c] = request->column_types[c];
        scan->column_names[c] = sx_arena_format(arena, "%s", request->column_names[c]);
        if (!scan->column_names[c])
            return no_memory(error);
    }
    scan->n_columns = request->n_columns;
    for (int i = 0; i < request->n_prunes; i++)
        SX_TRY(copy_prune(scan, &request->prunes[i], &scan->prunes[i], error));
    scan->n_prunes = request->n_prunes;
    scan->keep_dictionaries = request->keep_dictionaries;
    scan->batch_rows = request->batch_rows;
    scan->queue_bytes = request->queue_bytes;
    scan->reuse = request->reuse;
    for (int c = 0; request->n_readers && c < request->n_columns; c++)
        scan->n_readers[c] = request->n_readers[c];
    return SX_OK;
}

static enum sx_status open_files(struct sx_scan *scan, const struct sx_scan_request *request,
                                 struct sx_error *error) {
    for (int f = 0; f < request->n_files; f++) {
        struct scan_file *file = &scan->files[f];
        file->fd = -1;
        file->path = sx_arena_format(&scan->arena, "%s", request->files[f]);
        if (!file->path)
            return no_memory(error);
        if (scan->trace)
            file->trace_name = sx_trace_text(scan->trace, "%s", file->path);
        SX_TRY(sx_footer_cache_get(scan->storage->footers, file->path, &file->footer, &file->stamp, error));
        scan->n_files++;
        if (!request->is_local || request->is_local[f])
            scan->files_bytes += file->stamp.size_bytes;
        SX_TRY(scan_match_columns(scan, f, error));
        if (__builtin_add_overflow(scan->n_units, file->footer->n_groups, &scan->n_units) ||
            __builtin_add_overflow(scan->total_rows, file->footer->n_rows, &scan->total_rows))
            return sx_error_set(error, SX_FILE, "%s: the table has too many row groups or rows", file->path);
        file->n_units_left = file->footer->n_groups;
    }
    return SX_OK;
}

static enum sx_status list_units(struct sx_scan *scan, struct sx_error *error) {
    scan->units = SX_ARENA_ARRAY(&scan->arena, scan->n_units, struct scan_unit);
    if (!scan->units)
        return no_memory(error);
    struct scan_unit *unit = scan->units;
    int64_t first_row = 0;
    for (int f = 0; f < scan->n_files; f++) {
        const struct sx_footer *footer = scan->files[f].footer;
        for (int g = 0; g < footer->n_groups; g++) {
            *unit++ = (struct scan_unit){.file = f, .group = g, .first_row = first_row};
            first_row += footer->groups[g].n_rows;
        }
    }
    return SX_OK;
}

/* What is to be kept of the list is added to its front, one after another. */
static void keep_none(struct sx_scan *scan) {
    for (int f = 0; f < scan->n_files; f++)
        scan->files[f].n_units_left = 0;
    scan->total_rows = 0;
    scan->n_units = 0;
}

static void keep_unit(struct sx_scan *scan, struct scan_unit unit) {
    scan->units[scan->n_units++] = unit;
    scan->files[unit.file].n_units_left++;
    scan->total_rows += scan_unit_rows(scan, &unit);
}

/* Drops all but the share's row groups: those of local files whose middle byte is in it. */
static void keep_share(struct sx_scan *scan, const struct sx_scan_request *request) {
    const bool *is_local = request->is_local;
    const int n_units = scan->n_units;
    sx_u128 total = 0, before = 0;
    for (int u = 0; u < n_units; u++)
        if (!is_local || is_local[scan->units[u].file])
            total += scan_unit_bytes(scan, &scan->units[u]);
    if (total == 0)
        total = 1;
    keep_none(scan);
    for (int u = 0; u < n_units; u++) {
        const struct scan_unit unit = scan->units[u];
        if (is_local && !is_local[unit.file])
            continue;
        const size_t bytes = scan_unit_bytes(scan, &unit);
        const bool is_ours = sx_share_of(before, bytes, total, request->n_shares) == request->share;
        before += bytes;
        if (is_ours)
            keep_unit(scan, unit);
    }
}

/* Drops all but some row groups, evenly spaced. */
static void keep_sample(struct sx_scan *scan, int64_t rows) {
    const int64_t n_units = scan->n_units;
    if (scan->total_rows <= rows)
        return;
    const int64_t wanted = (int64_t)((double)n_units * (double)rows / (double)scan->total_rows);
    const int64_t n = wanted > 1 ? wanted : 1;
    keep_none(scan);
    for (int64_t i = 0; i < n; i++)
        keep_unit(scan, scan->units[i * n_units / n]);
}

static enum sx_status fill(struct sx_scan *scan, const struct sx_scan_request *request,
                           struct sx_error *error) {
    SX_TRY(copy_request(scan, request, error));
    SX_TRY(open_files(scan, request, error));
    SX_TRY(list_units(scan, error));
    if (request->n_shares > 0)
        keep_share(scan, request);
    if (request->sample_rows > 0)
        keep_sample(scan, request->sample_rows);
    return scan_list_batches(scan, error);
}

/* At the end of the list, so that the readers serve scans in order of opening. */
static void enlist(struct sx_scan *scan) {
    pthread_mutex_lock(&scan->storage->lock);
    struct sx_scan **at = &scan->storage->scans;
    while (*at)
        at = &(*at)->next;
    *at = scan;
    pthread_mutex_unlock(&scan->storage->lock);
}

enum sx_status sx_scan_open(struct sx_storage *storage, const struct sx_scan_request *request,
                            const atomic_bool *cancel, struct sx_scan **out_scan, struct sx_error *error) {
    struct sx_scan *scan = calloc(1, sizeof *scan);
    if (!scan)
        return no_memory(error);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&scan->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&scan->files_lock, NULL);
    atomic_init(&scan->references, 1);
    scan->storage = storage;
    scan->cancel = cancel;
    scan->trace = request->trace;
    scan->footprint = request->footprint;
    enum sx_status status = fill(scan, request, error);
    if (status != SX_OK) {
        scan_unreference(scan);
        return status;
    }
    enlist(scan);
    *out_scan = scan;
    return SX_OK;
}

void sx_scan_close(struct sx_scan *scan) {
    if (!scan)
        return;
    struct sx_storage *storage = scan->storage;
    pthread_mutex_lock(&storage->lock);
    scan->is_closed = true;
    struct sx_scan **at = &storage->scans;
    while (*at != scan)
        at = &(*at)->next;
    *at = scan->next;
    while (scan->n_reading > 0)
        pthread_cond_wait(&scan->changed, &storage->lock);
    scan_drop_ready(scan);
    pthread_mutex_unlock(&storage->lock);
    scan_unreference(scan);
}

/* ---- reading ahead ---- */

/* Whether the begin of a unit is missing in the page cache, or that is not asked. */
static bool is_cold(struct sx_scan *scan, const struct scan_unit *unit) {
    uint8_t probe[512];
    int fd;
    if (scan->n_columns > 0 &&
        (sx_reader_is_direct(scan->storage->reader, scan->files_bytes) ||
         (scan->storage->device_reader && sx_device_reader_is_forced(scan->storage->device_reader))))
        return true;
    if (scan->n_columns == 0 || scan_unit_rows(scan, unit) == 0 ||
        scan_file_fd(scan, unit->file, &fd, NULL) != SX_OK)
        return false;
    return sx_file_read_cached(fd, sx_chunk_begin(scan_chunk(scan, unit, 0)), sizeof probe, probe) == 0;
}

void sx_scan_size(const struct sx_scan *scan, int64_t *out_batches, int64_t *out_bytes) {
    *out_batches = scan->n_batches;
    *out_bytes = scan->stored_bytes;
}

bool sx_scan_is_spent(struct sx_scan *scan) {
    pthread_mutex_lock(&scan->storage->lock);
    const bool is_spent = !scan->ready && scan->n_ahead == 0 && scan_peek(scan) < 0;
    pthread_mutex_unlock(&scan->storage->lock);
    return is_spent;
}

bool sx_scan_is_cached(struct sx_scan *scan) {
    struct sx_chunk_cache *cache = scan->storage->cache;
    if (!cache || scan->n_columns == 0)
        return false;
    pthread_mutex_lock(&scan->storage->lock);
    const int batch = scan_peek(scan);
    pthread_mutex_unlock(&scan->storage->lock);
    if (batch < 0)
        return false;
    const struct scan_unit *unit = &scan->units[scan->batches[batch].first_unit];
    const struct sx_chunk_place place = scan_chunk_place(scan, unit, 0);
    return sx_chunk_cache_has(cache, &place);
}

void sx_scan_prefetch(struct sx_scan *scan) {
    if (scan->n_units == 0)
        return;
    bool cold = is_cold(scan, &scan->units[0]) || is_cold(scan, &scan->units[scan->n_units - 1]);
    pthread_mutex_lock(&scan->storage->lock);
    scan->is_started = true;
    if (cold) {
        scan->cold_batches = scan->n_batches;
        pthread_cond_broadcast(&scan->storage->work);
    }
    pthread_mutex_unlock(&scan->storage->lock);
}

/* ---- taking row groups ---- */

enum { WAIT_MS = 20, PATIENCE_MS = 30000 };

/* `why`: for the trace. */
static void wait_changed(struct sx_scan *scan, const char *why) {
    struct sx_lane *lane = sx_trace_thread_lane(scan->trace, "reader");
    const int64_t began_ns = sx_span_begin(lane);
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += WAIT_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    pthread_cond_timedwait(&scan->changed, &scan->storage->lock, &until);
    sx_span_end(lane, SX_SPAN_WAIT, why, began_ns, 0, 0);
}

/* After the pool refused: waits until others of this scan give memory back. False: nobody will. `alone`:
 * nobody else had any when it refused. */
static bool wait_for_memory(struct sx_scan *scan, bool alone) {
    if (scan_reclaim_others(scan))
        return true;
    if (scan->ready) { /* the caller comes to it only after the batch that it has */
        scan->is_starved = true;
        return scan_drop_ready(scan);
    }
    if (scan->n_taken + scan->n_ready + scan->n_reading == 0)
        return !alone;
    int64_t n_releases = scan->n_releases;
    int waited_ms = 0;
    while (scan->n_releases == n_releases && scan->n_taken + scan->n_reading > 0 && !scan->ready &&
           scan->error.status == SX_OK && !scan_is_cancelled(scan) && waited_ms < PATIENCE_MS) {
        wait_changed(scan, "memory for a row group");
        waited_ms += WAIT_MS;
    }
    return waited_ms < PATIENCE_MS;
}

/* Reads the batch on this thread, again and again while memory lacks: later batches must not come to this
 * caller before. Leaves *out_group NULL when there is nothing in it, or the scan has ended. A caller that may
 * not wait has no memory then, but others may: the scan goes on. */
static enum sx_status read_here(struct sx_scan *scan, int batch, bool may_wait, struct scan_group **out_group,
                                struct sx_error *error) {
    for (;;) {
        bool alone = scan->n_taken + scan->n_ready + scan->n_reading == 0;
        enum sx_status status = scan_read_claimed(scan, batch, out_group, error);
        if (status != SX_OUT_OF_MEMORY)
            return status;
        if (!may_wait || !wait_for_memory(scan, alone))
            break;
        *error = (struct sx_error){0};
        if (scan->error.status != SX_OK || scan_is_cancelled(scan)) {
            scan_give_back(scan, batch);
            return SX_OK;
        }
    }
    scan_give_back(scan, batch);
    sx_error_prefix(error, "scan of %s", scan->table);
    if (may_wait && scan->error.status == SX_OK)
        scan->error = *error;
    pthread_cond_broadcast(&scan->changed);
    return SX_OUT_OF_MEMORY;
}

/* Under the lock. *out_group NULL: the end, or what only a wait would bring. */
static enum sx_status take_next(struct sx_scan *scan, bool may_wait, struct scan_group **out_group,
                                struct sx_error *error) {
    for (;;) {
        if (scan_is_cancelled(scan))
            return sx_error_set(error, SX_CANCELLED, "the query was cancelled");
        if (scan->error.status != SX_OK) {
            *error = scan->error;
            return error->status;
        }
        *out_group = scan_take_ready(scan);
        if (*out_group)
            return SX_OK;
        int batch = scan->n_ahead > 0 ? -1 : scan_peek(scan);
        if (batch >= 0) {
            SX_TRY(read_here(scan, batch, may_wait, out_group, error));
            if (*out_group)
                return SX_OK;
        } else if (scan->n_reading == 0 || !may_wait) {
            return SX_OK;
        } else {
            wait_changed(scan, "a row group is being read");
        }
    }
}

static enum sx_status next(struct sx_scan *scan, bool may_wait, struct sx_row_group **out_group,
                           struct sx_error *error) {
    struct sx_error own = {0};
    struct scan_group *group = NULL;
    pthread_mutex_lock(&scan->storage->lock);
    scan->is_started = true;
    enum sx_status status = take_next(scan, may_wait, &group, &own);
    if (status == SX_OUT_OF_MEMORY && !may_wait && scan->error.status == SX_OK)
        status = SX_OK;
    if (group)
        scan->n_taken++;
    pthread_mutex_unlock(&scan->storage->lock);
    *out_group = NULL;
    if (status != SX_OK)
        return sx_error_set(error, own.status, "%s", own.text);
    if (group) {
        *out_group = &group->group;
        for (const struct sx_row_group *each = *out_group; each; each = each->next)
            atomic_fetch_add_explicit(&scan->done_rows, each->n_rows, memory_order_relaxed);
    }
    return SX_OK;
}

enum sx_status sx_scan_next(struct sx_scan *scan, struct sx_row_group **out_group, struct sx_error *error) {
    return next(scan, true, out_group, error);
}

/* Never waits: it may be the caller who has what others wait for. */
enum sx_status sx_scan_next_early(struct sx_scan *scan, struct sx_row_group **out_group,
                                  struct sx_error *error) {
    const struct sx_pool_usage usage = sx_pool_usage(scan->storage->pool);
    pthread_mutex_lock(&scan->storage->lock);
    const bool is_warm = scan->cold_batches == 0 && !scan->ready && scan->error.status == SX_OK;
    pthread_mutex_unlock(&scan->storage->lock);
    *out_group = NULL;
    if (!is_warm || (usage.limit_bytes > 0 && usage.used_bytes > usage.limit_bytes / 2))
        return SX_OK;
    return next(scan, false, out_group, error);
}

void sx_row_group_release(struct sx_row_group *first) {
    if (!first)
        return;
    struct scan_group *group = (struct scan_group *)first;
    struct sx_scan *scan = group->scan;
    struct sx_storage *storage = scan->storage;
    atomic_fetch_add(&scan->references, 1);
    scan_group_free(group);
    pthread_mutex_lock(&storage->lock);
    scan->n_taken--;
    scan->n_releases++;
    scan->is_starved = false;
    pthread_cond_broadcast(&scan->changed);
    if (scan->cold_batches > 0)
        pthread_cond_signal(&storage->work);
    pthread_mutex_unlock(&storage->lock);
    scan_unreference(scan);
}

/* ---- the rest ---- */

void sx_scan_restrict(struct sx_scan *scan, int column, int64_t min, int64_t max) {
    enum sx_type_id id = scan->column_types[column].id;
    bool is_unsigned = id == SX_TYPE_U8 || id == SX_TYPE_U16 || id == SX_TYPE_U32 || id == SX_TYPE_U64;
    if (is_unsigned && max < 0)
        min = max = INT64_MAX;
    if (is_unsigned && min < 0)
        min = 0;
    pthread_mutex_lock(&scan->storage->lock);
    if (!scan->is_restricted[column] || min > scan->restricted_min[column])
        scan->restricted_min[column] = min;
    if (!scan->is_restricted[column] || max < scan->restricted_max[column])
        scan->restricted_max[column] = max;
    scan->is_restricted[column] = true;
    atomic_fetch_add_explicit(&scan->n_restrictions, 1, memory_order_release);
    atomic_store_explicit(&scan->index_profit.tried, 0, memory_order_relaxed);
    pthread_mutex_unlock(&scan->storage->lock);
}

enum sx_status sx_row_group_error(const struct sx_row_group *group, const struct sx_scan *scan, int column,
                                  struct sx_error *error) {
    return sx_error_prefix(error, "%s, row group %d, column %s", group->path, group->index,
                           scan->column_names[column]);
}

void sx_scan_progress(const struct sx_scan *scan, struct sx_scan_progress *out_progress) {
    *out_progress = (struct sx_scan_progress){
        .total_rows = scan->total_rows,
        .done_rows = atomic_load_explicit(&scan->done_rows, memory_order_relaxed),
        .pruned_rows = atomic_load_explicit(&scan->pruned_rows, memory_order_relaxed),
        .read_bytes = atomic_load_explicit(&scan->read_bytes, memory_order_relaxed),
        .device_bytes = atomic_load_explicit(&scan->device_bytes, memory_order_relaxed),
        .cached_bytes = atomic_load_explicit(&scan->cached_bytes, memory_order_relaxed),
        .row_groups = scan->n_units,
        .pruned_row_groups = atomic_load_explicit(&scan->pruned_groups, memory_order_relaxed),
    };
}
