/* Reading a table's column chunks by the storage path alone, with one optimisation after another (PystachIO,
 * figures 9 to 12), beside raw reads of the same files on as many threads; then decoding them, too. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/bench_decode.h"
#include "api/db.h"
#include "api/files.h"
#include "api/raw_read.h"
#include "api/system.h"
#include "base/median.h"
#include "storage/file.h"
#include "storage/scan.h"

enum { MOST_THREADS = 8, MOST_RUNS = 101 };
static const int64_t request_bytes = (int64_t)4 << 20;

struct variant {
    const char *name;
    enum sx_io io;
    bool is_blocking;     /* one thread, and nothing is read ahead */
    bool rereads_footers; /* with every row group */
    bool is_pinned;
    bool is_cached; /* as scanned before; only warm */
    bool only_cold;
    bool decodes;
    bool is_on_device; /* the device's cache has the chunks */
    bool is_raw;       /* no scan, but reads into as much memory as one has */
};

/* Each adds to the one before it, but for what is raw. */
static const struct variant variants[] = {
    {.name = "blocking", .io = SX_IO_BUFFERED, .is_blocking = true, .rereads_footers = true},
    {.name = "chunked", .io = SX_IO_BUFFERED, .rereads_footers = true},
    {.name = "metadata cached", .io = SX_IO_BUFFERED},
    {.name = "pinned memory", .io = SX_IO_BUFFERED, .is_pinned = true},
    {.name = "direct", .io = SX_IO_DIRECT, .is_pinned = true, .only_cold = true},
    {.name = "raw, into more", .io = SX_IO_DIRECT, .is_pinned = true, .only_cold = true, .is_raw = true},
    {.name = "gds", .io = SX_IO_DEVICE, .is_pinned = true, .only_cold = true},
    {.name = "chunks cached", .io = SX_IO_BUFFERED, .is_pinned = true, .is_cached = true},
    {.name = "decoded", .io = SX_IO_BUFFERED, .is_pinned = true, .is_cached = true, .decodes = true},
    {.name = "decoded there",
     .io = SX_IO_BUFFERED,
     .is_pinned = true,
     .is_cached = true,
     .decodes = true,
     .is_on_device = true},
};
enum { N_VARIANTS = sizeof variants / sizeof *variants };

struct bench_scan {
    struct stachio_db *db;
    struct sx_arena arena;
    struct sx_file_list files;
    int64_t files_bytes;
    bool takes_direct;  /* so does the file system of the first file */
    bool has_gds;       /* straight into the device's memory, too */
    const char **names; /* of the columns that can be read */
    struct sx_type *types;
    int n_columns;
    int runs;
    void (*result)(void *context, const struct stachio_bench_scan_result *result);
    void *context;
};

/* A variant under measurement. */
struct attempt {
    const struct variant *variant;
    struct sx_storage *storage;
    struct sx_bench_decoders *decoders; /* NULL: it does not decode */
    double seconds[MOST_RUNS];
    int64_t bytes, value_bytes; /* of a run */
};

/* What one scan shares among its threads. */
struct run {
    const struct attempt *attempt;
    struct sx_scan *scan;
    atomic_int_fast64_t value_bytes;
    pthread_mutex_t lock;
    struct sx_error error;
};

static void note_error(struct run *run, const struct sx_error *error) {
    pthread_mutex_lock(&run->lock);
    if (run->error.status == SX_OK)
        run->error = *error;
    pthread_mutex_unlock(&run->lock);
}

/* ---- the table ---- */

static enum sx_status list_columns(struct bench_scan *bench, const struct sx_footer *footer,
                                   struct sx_error *error) {
    bench->names = SX_ARENA_ARRAY(&bench->arena, footer->n_columns, const char *);
    bench->types = SX_ARENA_ARRAY(&bench->arena, footer->n_columns, struct sx_type);
    for (int c = 0; bench->names && bench->types && c < footer->n_columns; c++) {
        const struct sx_file_column *column = &footer->columns[c];
        if (column->unreadable)
            continue;
        bench->types[bench->n_columns] = column->type;
        bench->names[bench->n_columns] = sx_arena_format(&bench->arena, "%s", column->name);
        if (!bench->names[bench->n_columns++])
            bench->names = NULL;
    }
    return bench->names && bench->types ? SX_OK
                                        : sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for columns");
}

static int open_direct(const struct bench_scan *bench) {
    return open(bench->files.paths[0], O_RDONLY | O_CLOEXEC | O_DIRECT);
}

static bool takes_direct(const struct bench_scan *bench) {
    const int fd = open_direct(bench);
    sx_file_close(fd);
    return fd >= 0;
}

/* Also by way of the host's memory. The driver may open where it then takes no file. */
static bool has_gds(const struct bench_scan *bench) {
    const struct sx_device_files_ops *ops = bench->db->backend->files;
    struct sx_device_files *files;
    struct sx_device_file *file;
    if (!bench->takes_direct || !ops || ops->open(bench->db->backend, true, &files, NULL) != SX_OK)
        return false;
    const int fd = open_direct(bench);
    const bool has = fd >= 0 && ops->file_open(files, fd, &file, NULL) == SX_OK;
    if (has)
        ops->file_close(files, file);
    sx_file_close(fd);
    ops->close(files);
    return has;
}

static enum sx_status find_table(struct bench_scan *bench, const char *pattern, struct sx_error *error) {
    SX_TRY(sx_files_match(&bench->arena, pattern, &bench->files, error));
    for (int f = 0; f < bench->files.n_paths; f++) {
        const char *path = bench->files.paths[f];
        struct sx_file_stamp stamp;
        struct sx_footer *footer = NULL;
        int fd = -1;
        SX_TRY(sx_file_open(path, &fd, &stamp, error));
        enum sx_status status = f == 0 ? sx_footer_read(path, fd, stamp.size_bytes, &footer, error) : SX_OK;
        if (status == SX_OK && f == 0)
            status = list_columns(bench, footer, error);
        bench->files_bytes += stamp.size_bytes;
        sx_footer_release(footer);
        sx_file_close(fd);
        SX_TRY(status);
    }
    bench->takes_direct = takes_direct(bench);
    bench->has_gds = has_gds(bench);
    return SX_OK;
}

/* Brings all files into the page cache, or asks the kernel to drop them. */
static enum sx_status set_warmth(const struct bench_scan *bench, bool is_warm, struct sx_error *error) {
    char *room = malloc((size_t)request_bytes);
    enum sx_status status = room ? SX_OK : sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for reading");
    for (int f = 0; f < bench->files.n_paths && status == SX_OK; f++) {
        struct sx_file_stamp stamp;
        int fd = -1;
        status = sx_file_open(bench->files.paths[f], &fd, &stamp, error);
        if (status == SX_OK && !is_warm && fdatasync(fd) == 0)
            posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        for (int64_t at = 0; is_warm && status == SX_OK && at < stamp.size_bytes; at += request_bytes) {
            const int64_t left = stamp.size_bytes - at;
            status = sx_file_read(fd, at, (size_t)(left < request_bytes ? left : request_bytes), room, error);
        }
        sx_file_close(fd);
    }
    free(room);
    return status;
}

/* ---- scans ---- */

static enum sx_status reread_footer(const char *path, struct sx_error *error) {
    struct sx_file_stamp stamp;
    struct sx_footer *footer;
    int fd;
    SX_TRY(sx_file_open(path, &fd, &stamp, error));
    enum sx_status status = sx_footer_read(path, fd, stamp.size_bytes, &footer, error);
    if (status == SX_OK)
        sx_footer_release(footer);
    sx_file_close(fd);
    return status;
}

static enum sx_status take_group(struct run *run, int thread, const struct sx_row_group *group,
                                 struct sx_error *error) {
    const struct attempt *attempt = run->attempt;
    int64_t value_bytes = 0;
    if (attempt->variant->rereads_footers)
        SX_TRY(reread_footer(group->path, error));
    if (attempt->decoders)
        SX_TRY(sx_bench_decode(attempt->decoders, thread, run->scan, group, &value_bytes, error));
    atomic_fetch_add(&run->value_bytes, value_bytes);
    return SX_OK;
}

static void take_groups(int member, void *context) {
    struct run *run = context;
    struct sx_error error = {0};
    struct sx_row_group *group = NULL;
    while (sx_scan_next(run->scan, &group, &error) == SX_OK && group) {
        enum sx_status status = take_group(run, member, group, &error);
        sx_row_group_release(group);
        if (status != SX_OK)
            break;
    }
    if (error.status != SX_OK)
        note_error(run, &error);
}

static enum sx_status run_all(struct run *run, int n_threads, double *out_seconds, struct sx_error *error) {
    struct sx_team *team;
    *out_seconds = 0;
    SX_TRY(sx_team_create(n_threads, &team, error));
    const double began = sx_system_seconds();
    sx_team_run(team, take_groups, run);
    *out_seconds = sx_system_seconds() - began;
    sx_team_destroy(team);
    if (run->error.status != SX_OK)
        *error = run->error;
    return error->status;
}

/* The files' bytes as they are; into `kept_bytes` of memory, or (0) little. *out_bytes: so many came. */
static enum sx_status raw_once(const struct bench_scan *bench, bool is_warm, size_t kept_bytes, int n_threads,
                               int64_t *out_bytes, double *out_seconds, struct sx_error *error) {
    const struct stachio_db *db = bench->db;
    struct sx_pool *cold_pool = db->io_pool ? db->io_pool : db->direct_pool; /* as scans have it */
    struct sx_raw_read raw = {.paths = bench->files.paths,
                              .n_paths = bench->files.n_paths,
                              .n_in_flight = 1,
                              .kept_bytes = (int64_t)kept_bytes};
    struct sx_team *team;
    SX_TRY(sx_team_create(n_threads, &team, error));
    enum sx_status status = sx_reader_create(is_warm ? db->pool : cold_pool, NULL,
                                             is_warm ? SX_IO_BUFFERED : SX_IO_AUTO, 1, &raw.reader, error);
    if (status == SX_OK)
        status = sx_raw_read(team, &raw, out_bytes, out_seconds, error);
    sx_reader_destroy(raw.reader);
    sx_team_destroy(team);
    return status;
}

static enum sx_status scan_once(const struct bench_scan *bench, struct attempt *attempt, int n_threads,
                                double *out_seconds, struct sx_error *error) {
    const struct variant *variant = attempt->variant;
    const struct sx_backend_traits *traits = &bench->db->backend->traits;
    const struct sx_scan_request request = {
        .table = "bench",
        .files = bench->files.paths,
        .n_files = bench->files.n_paths,
        .column_names = bench->names,
        .column_types = bench->types,
        .n_columns = bench->n_columns,
        .keep_dictionaries = true,
        .batch_rows = variant->decodes && traits->joins_groups ? traits->chunk_rows : 0,
        .queue_bytes = sx_db_queue_bytes(bench->db),
    };
    struct run run = {.attempt = attempt, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct sx_scan_progress progress;
    if (variant->is_raw)
        return raw_once(bench, false, sx_db_queue_bytes(bench->db), n_threads, &attempt->bytes, out_seconds,
                        error);
    const double began = sx_system_seconds();
    SX_TRY(sx_scan_open(attempt->storage, &request, NULL, &run.scan, error));
    if (!variant->is_blocking)
        sx_scan_prefetch(run.scan);
    const double opened = sx_system_seconds() - began;
    enum sx_status status = run_all(&run, n_threads, out_seconds, error);
    *out_seconds += opened;
    sx_scan_progress(run.scan, &progress);
    if (progress.read_bytes > 0)
        attempt->bytes = progress.read_bytes;
    attempt->value_bytes = atomic_load(&run.value_bytes);
    sx_scan_close(run.scan);
    return status;
}

static enum sx_status open_attempt(const struct bench_scan *bench, struct attempt *attempt, int n_threads,
                                   struct sx_error *error) {
    struct stachio_db *db = bench->db;
    const struct variant *variant = attempt->variant;
    const struct sx_storage_options options = {
        .pool = variant->is_pinned && db->io_pool ? db->io_pool : db->pool,
        .direct_pool = db->direct_pool,
        .budget = db->pool,
        .n_reader_threads = variant->is_blocking ? 0 : n_threads,
        .io = variant->io,
        .backend = db->backend,
        .cache_bytes = variant->is_cached ? SIZE_MAX : 0,
    };
    double ignored;
    SX_TRY(sx_storage_create(&options, &attempt->storage, error));
    if (variant->decodes)
        SX_TRY(sx_bench_decoders_create(db->backend, db->pool, n_threads, &attempt->decoders, error));
    return variant->is_cached ? scan_once(bench, attempt, n_threads, &ignored, error) : SX_OK;
}

/* The chunks are where the variant has them, and only there. */
static enum sx_status place_chunks(const struct bench_scan *bench, struct attempt *attempt, bool is_warm,
                                   int n_threads, struct sx_error *error) {
    const struct sx_backend *backend = bench->db->backend;
    const bool is_on_device = attempt->variant->is_on_device;
    double ignored;
    if (backend->cache_limit)
        backend->cache_limit(backend, is_on_device ? backend->traits.memory_bytes / 2 : 0, 0);
    if (is_on_device)
        SX_TRY(scan_once(bench, attempt, n_threads, &ignored, error));
    return set_warmth(bench, is_warm, error);
}

static void report(const struct bench_scan *bench, struct attempt *attempt, bool is_warm, int n_threads,
                   double raw_seconds) {
    const struct stachio_bench_scan_result result = {
        .name = attempt->variant->name,
        .is_warm = is_warm,
        .device = sx_db_device(bench->db),
        .threads = n_threads,
        .files = bench->files.n_paths,
        .runs = bench->runs,
        .bytes = attempt->bytes,
        .value_bytes = attempt->value_bytes,
        .seconds = sx_median(attempt->seconds, bench->runs),
        .bound_bytes_per_second = (double)bench->files_bytes / raw_seconds,
    };
    bench->result(bench->context, &result);
}

/* One run of each in turn, raw reads first: disks that others use, or that have a budget, change. */
static enum sx_status run_attempts(const struct bench_scan *bench, struct attempt *attempts, int n_attempts,
                                   bool is_warm, int n_threads, struct sx_error *error) {
    double raw_seconds[MOST_RUNS];
    int64_t raw_bytes;
    for (int r = 0; r < bench->runs; r++) {
        SX_TRY(set_warmth(bench, is_warm, error));
        SX_TRY(raw_once(bench, is_warm, 0, n_threads, &raw_bytes, &raw_seconds[r], error));
        for (int a = 0; a < n_attempts; a++) {
            struct attempt *attempt = &attempts[a];
            SX_TRY(place_chunks(bench, attempt, is_warm, n_threads, error));
            SX_TRY(scan_once(bench, attempt, n_threads, &attempt->seconds[r], error));
        }
    }
    const double raw = sx_median(raw_seconds, bench->runs);
    for (int a = 0; a < n_attempts; a++)
        report(bench, &attempts[a], is_warm, n_threads, raw);
    return SX_OK;
}

static bool is_wanted(const struct bench_scan *bench, const struct variant *variant, bool is_warm,
                      int n_threads) {
    if ((variant->is_blocking && n_threads > 1) || (variant->io == SX_IO_DIRECT && !bench->takes_direct) ||
        (variant->io == SX_IO_DEVICE && !bench->has_gds) ||
        (variant->is_on_device && !bench->db->backend->cache_limit))
        return false;
    if (!strcmp(variant->name, "pinned memory") && !bench->db->io_pool)
        return false;
    return is_warm ? !variant->only_cold : !variant->is_cached;
}

static enum sx_status measure_all(const struct bench_scan *bench, bool is_warm, int n_threads,
                                  struct sx_error *error) {
    struct attempt attempts[N_VARIANTS] = {0};
    int n_attempts = 0;
    enum sx_status status = SX_OK;
    for (int v = 0; v < N_VARIANTS && status == SX_OK; v++)
        if (is_wanted(bench, &variants[v], is_warm, n_threads)) {
            attempts[n_attempts].variant = &variants[v];
            status = open_attempt(bench, &attempts[n_attempts++], n_threads, error);
        }
    if (status == SX_OK)
        status = run_attempts(bench, attempts, n_attempts, is_warm, n_threads, error);
    for (int a = 0; a < n_attempts; a++) {
        sx_bench_decoders_destroy(attempts[a].decoders);
        sx_storage_destroy(attempts[a].storage);
    }
    return status;
}

static enum sx_status measure(const struct bench_scan *bench, int most_threads, struct sx_error *error) {
    const struct sx_backend *backend = bench->db->backend;
    const size_t cache_bytes = backend->cache_limit ? backend->cache_usage(backend).limit_bytes : 0;
    enum sx_status status = SX_OK;
    for (int is_warm = 0; is_warm <= 1; is_warm++)
        for (int n_threads = 1; n_threads <= most_threads && status == SX_OK; n_threads *= 2)
            status = measure_all(bench, is_warm, n_threads, error);
    if (backend->cache_limit)
        backend->cache_limit(backend, cache_bytes, 0);
    return status;
}

enum stachio_status stachio_bench_scan(struct stachio_db *db,
                                       const struct stachio_bench_scan_options *options,
                                       void (*result)(void *context,
                                                      const struct stachio_bench_scan_result *result),
                                       void *context, struct stachio_error *error) {
    struct sx_error inner = {0};
    if (options->size_bytes < sizeof *options)
        return sx_api_error(error, STACHIO_USAGE, "bench options: size_bytes is %zu", options->size_bytes);
    if (options->runs < 1 || options->runs > MOST_RUNS)
        return sx_api_error(error, STACHIO_USAGE, "runs: %d is not within 1 and %d", options->runs,
                            (int)MOST_RUNS);
    struct bench_scan bench = {.db = db, .runs = options->runs, .result = result, .context = context};
    pthread_mutex_lock(&db->lock);
    enum sx_status status = sx_db_start(db, &inner);
    if (status == SX_OK)
        status = find_table(&bench, options->pattern, &inner);
    if (status == SX_OK)
        status = measure(&bench, options->threads > 0 ? options->threads : MOST_THREADS, &inner);
    pthread_mutex_unlock(&db->lock);
    sx_arena_release(&bench.arena);
    return status == SX_OK ? STACHIO_OK : sx_api_fail(&inner, error);
}
