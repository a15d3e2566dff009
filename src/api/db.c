#include "api/db.h"

#include <stdlib.h>
#include <string.h>

#include "api/control_group.h"
#include "api/files.h"
#include "api/launch.h"
#include "api/library.h"
#include "api/parts.h"
#include "api/processors.h"
#include "api/ranks.h"
#include "api/system.h"
#include "base/huge_pages.h"
#include "base/signals.h"
#include "storage/stand_in.h"

enum { MAX_THREADS = 4096, DIRECT_SLAB_BYTES = 16 << 20 };

void stachio_options_init(struct stachio_options *options) {
    *options = (struct stachio_options){.size_bytes = sizeof *options};
}

static bool is_engine(enum stachio_engine engine) {
    return (int)engine >= STACHIO_ENGINE_AUTO && engine <= STACHIO_ENGINE_DUCKDB;
}

/* The caller's options as far as its header knew them, then defaults. */
static enum stachio_status read_options(const struct stachio_options *given,
                                        struct stachio_options *out_options, struct stachio_error *error) {
    stachio_options_init(out_options);
    if (given) {
        if (given->size_bytes < offsetof(struct stachio_options, threads) || given->size_bytes > 4096)
            return sx_api_error(error, STACHIO_USAGE,
                                "options: size_bytes is %zu; call stachio_options_init first",
                                given->size_bytes);
        size_t known = given->size_bytes < sizeof *given ? given->size_bytes : sizeof *given;
        memcpy(out_options, given, known);
    }
    if (out_options->threads < 0 || out_options->threads > MAX_THREADS)
        return sx_api_error(error, STACHIO_USAGE, "threads: %d is not within 1 and %d", out_options->threads,
                            (int)MAX_THREADS);
    if (!is_engine(out_options->engine))
        return sx_api_error(error, STACHIO_USAGE, "engine: there is no number %d", (int)out_options->engine);
    if ((int)out_options->device < STACHIO_DEVICE_AUTO || out_options->device > STACHIO_DEVICE_CUDA)
        return sx_api_error(error, STACHIO_USAGE, "device: there is no number %d", (int)out_options->device);
    if ((int)out_options->io < STACHIO_IO_AUTO || out_options->io > STACHIO_IO_GDS)
        return sx_api_error(error, STACHIO_USAGE, "io: there is no number %d", (int)out_options->io);
    if ((int)out_options->cache < STACHIO_CACHE_AUTO || out_options->cache > STACHIO_CACHE_DEVICE)
        return sx_api_error(error, STACHIO_USAGE, "cache: there is no number %d", (int)out_options->cache);
    if ((int)out_options->overlap < STACHIO_OVERLAP_FULL || out_options->overlap > STACHIO_OVERLAP_BLOCKING)
        return sx_api_error(error, STACHIO_USAGE, "overlap: there is no number %d",
                            (int)out_options->overlap);
    if ((int)out_options->shuffle_compression < STACHIO_SHUFFLE_COMPRESSION_AUTO ||
        out_options->shuffle_compression > STACHIO_SHUFFLE_COMPRESSION_ON)
        return sx_api_error(error, STACHIO_USAGE, "shuffle compression: there is no number %d",
                            (int)out_options->shuffle_compression);
    if ((int)out_options->shuffle < STACHIO_SHUFFLE_AUTO || out_options->shuffle > STACHIO_SHUFFLE_TWO_LEVEL)
        return sx_api_error(error, STACHIO_USAGE, "shuffle: there is no number %d",
                            (int)out_options->shuffle);
    return STACHIO_OK;
}

size_t sx_db_queue_bytes(const struct stachio_db *db) {
    const size_t most = SX_QUEUE_BYTES, least = (size_t)8 << 20;
    const size_t limit = sx_pool_usage(db->pool).limit_bytes;
    if (!limit || limit / 8 > most)
        return most;
    return limit / 8 > least ? limit / 8 : least;
}

/* Of those that it may run on, and of those that its control group, with all ranks of the host, has the time
 * of. */
static int own_processors(const struct sx_sharing *sharing) {
    const struct sx_processors own = sx_processors_own();
    return sx_processors_part(sx_processors_count(&own), sharing->processors, sx_group_processors(""),
                              sharing->host);
}

/* As many of the processors as the memory is enough for: a worker at work has a few blocks of some megabytes.
 */
static int most_threads(uint64_t limit_bytes, int processors) {
    const uint64_t worker_bytes = (uint64_t)24 << 20, most = limit_bytes / worker_bytes;
    if (most >= (uint64_t)processors)
        return processors;
    return most > 0 ? (int)most : 1;
}

/* By what the process may use and does not share. The workers of a GPU hardly compute: they keep it at work,
 * and with more of them than that takes it shares itself out among more batches at a time, which are all
 * late. */
static int default_threads(uint64_t limit_bytes, int processors, bool has_gpu) {
    enum { GPU_THREADS = 8 };
    const int most = most_threads(limit_bytes, processors);
    return has_gpu && most > GPU_THREADS ? GPU_THREADS : most;
}

/* Without a GPU the operating system's cache of files does as well. */
static size_t choose_cache(const struct stachio_options *options, const struct sx_backend *backend,
                           size_t limit) {
    if (options->cache == STACHIO_CACHE_OFF ||
        (options->cache == STACHIO_CACHE_AUTO && !backend->io_pool_create))
        return 0;
    const uint64_t wanted = options->cache_bytes ? options->cache_bytes : limit / 2;
    return wanted < limit ? (size_t)wanted : limit;
}

/* Beside the one in the host's memory, of which its entries have their numbers; or for one query at a time.
 * Several ranks can't try again without, so they take less. */
static enum sx_status open_device_cache(struct stachio_db *db, const struct sx_net *net,
                                        const struct stachio_options *options, struct sx_error *error) {
    enum { RANKS_PART = 8 };
    const char *reason = db->device.reason;
    const size_t most = db->backend->traits.memory_bytes;
    if (!db->backend->cache_limit && options->cache != STACHIO_CACHE_DEVICE)
        return SX_OK;
    if (!db->backend->cache_limit)
        return sx_error_set(error, SX_USAGE, "cache device: the device is the CPU%s%s%s; use host or off",
                            *reason ? " (" : "", reason, *reason ? ")" : "");
    const uint64_t wanted = options->device_cache_bytes ? options->device_cache_bytes : most / 2;
    const size_t bytes = wanted < most ? (size_t)wanted : most;
    if (options->cache == STACHIO_CACHE_DEVICE)
        db->backend->cache_limit(db->backend, bytes, 0);
    else
        db->reuse_bytes = net && bytes > most / RANKS_PART ? most / RANKS_PART : bytes;
    return SX_OK;
}

/* The ranks of a host get its GPUs in turn, and processors near to them. */
static enum sx_status take_seat(struct stachio_db *db, struct sx_net *net,
                                const struct stachio_options *options, struct sx_sharing *out_sharing,
                                struct sx_error *error) {
    int local_rank = 0;
    *out_sharing = (struct sx_sharing){1, 1, 1};
    if (net) {
        db->seats = calloc((size_t)sx_net_size(net), sizeof *db->seats);
        if (!db->seats)
            return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for %d ranks", sx_net_size(net));
        SX_TRY(sx_seats_meet(net, db->seats, &local_rank, error));
    }
    SX_TRY(sx_device_choose(options->device, local_rank, &db->device, error));
    if (!net)
        return SX_OK;
    sx_processors_settle(db->device.library ? db->device.choice.bus : "", local_rank);
    return sx_seats_tell(net, &db->device, db->seats, out_sharing, error);
}

/* The threads of a GPU's workers hardly compute, those of DuckDB, where it answers, do. */
static int duckdb_threads(const struct stachio_db *db, size_t limit_bytes) {
    const int most = most_threads(limit_bytes, db->processors);
    return db->device.library && db->threads < most ? most : db->threads;
}

static const enum sx_shuffle shuffles[] = {[STACHIO_SHUFFLE_AUTO] = SX_SHUFFLE_AUTO,
                                           [STACHIO_SHUFFLE_ONE_LEVEL] = SX_SHUFFLE_ONE_LEVEL,
                                           [STACHIO_SHUFFLE_TWO_LEVEL] = SX_SHUFFLE_TWO_LEVEL};

static enum sx_status open_parts(struct stachio_db *db, struct sx_net *net, struct stachio_options *options,
                                 struct sx_error *error) {
    struct sx_sharing sharing;
    SX_TRY(take_seat(db, net, options, &sharing, error));
    if (!options->memory_limit_bytes)
        options->memory_limit_bytes = sx_system_memory() / 5 * 4 / (uint64_t)sharing.host;
    const size_t limit =
        options->memory_limit_bytes < SIZE_MAX ? (size_t)options->memory_limit_bytes : SIZE_MAX;
    SX_TRY(sx_pool_create(limit, &db->pool, error));
    SX_TRY(sx_device_open(&db->device, (size_t)options->device_memory_limit_bytes, sharing.device,
                          &db->backend, error));
    db->processors = own_processors(&sharing);
    db->threads = options->threads;
    if (!db->threads)
        db->threads =
            default_threads(options->memory_limit_bytes, db->processors, db->device.library != NULL);
    if (options->io == STACHIO_IO_GDS && !db->backend->files)
        return sx_error_set(error, SX_USAGE, "io gds: the device is the CPU; use another");
    db->io = options->io;
    db->overlap = options->overlap;
    db->shuffle_compression = options->shuffle_compression;
    db->shuffle = shuffles[options->shuffle];
    db->cache_bytes = choose_cache(options, db->backend, limit);
    SX_TRY(open_device_cache(db, net, options, error));
    sigset_t previous;
    sx_signals_block(&previous);
    enum sx_status status = sx_frontend_open(duckdb_threads(db, limit), limit, &db->frontend, error);
    sx_signals_restore(&previous);
    return status;
}

enum stachio_status sx_db_open(const struct stachio_options *options, struct sx_net *net,
                               struct stachio_db **out_db, struct stachio_error *error) {
    struct stachio_options known;
    enum stachio_status status = read_options(options, &known, error);
    if (status)
        return status;
    struct stachio_db *db = calloc(1, sizeof *db);
    if (!db)
        return sx_api_error(error, STACHIO_OUT_OF_MEMORY, "no memory for a database");
    atomic_init(&db->references, 1);
    atomic_init(&db->engine, (int)known.engine);
    pthread_mutex_init(&db->lock, NULL);
    struct sx_error inner = {0};
    if (open_parts(db, net, &known, &inner) != SX_OK) {
        sx_db_release(db);
        return sx_api_fail(&inner, error);
    }
    *out_db = db;
    return STACHIO_OK;
}

/* STACHIO_LOCAL_RANKS=N: N ranks in this process, for tests. */
enum stachio_status stachio_open(const struct stachio_options *options, struct stachio_db **out_db,
                                 struct stachio_error *error) {
    enum { MOST_RANKS = 128 };
    struct stachio_options known;
    if (read_options(options, &known, error))
        stachio_options_init(&known); /* what is wrong is told by all ranks together, below */
    const char *ranks = sx_environment("STACHIO_LOCAL_RANKS");
    const int n = ranks ? atoi(ranks) : 1;
    const bool is_launched = sx_launch_ranks() > 1;
    sx_processors_unbind();
    sx_device_prepare(known.device, known.owns_process && !is_launched && n <= 1);
    if (is_launched)
        return sx_ranks_open_launched(options, out_db, error);
    if (n > MOST_RANKS)
        return sx_api_error(error, STACHIO_USAGE, "STACHIO_LOCAL_RANKS: %d is more than %d", n,
                            (int)MOST_RANKS);
    return n > 1 ? sx_ranks_open_local(options, n, out_db, error) : sx_db_open(options, NULL, out_db, error);
}

struct stachio_db *sx_db_retain(struct stachio_db *db) {
    atomic_fetch_add_explicit(&db->references, 1, memory_order_relaxed);
    return db;
}

void sx_db_release(struct stachio_db *db) {
    if (!db || atomic_fetch_sub_explicit(&db->references, 1, memory_order_acq_rel) != 1)
        return;
    sx_ranks_leave(db);
    sx_ranks_stop(db);
    sx_arena_release(&db->topology_arena);
    sx_arena_release(&db->inspect_arena);
    sx_arena_release(&db->split_arena);
    sx_arena_release(&db->describe_arena);
    sx_team_destroy(db->team);
    if (db->storage)
        sx_storage_destroy(db->storage);
    if (db->frontend)
        sx_frontend_close(db->frontend);
    sx_pool_destroy(db->direct_pool);
    sx_pool_destroy(db->io_pool);
    sx_parts_destroy(db->parts);
    sx_device_close(&db->device);
    if (db->pool)
        sx_pool_destroy(db->pool);
    pthread_mutex_destroy(&db->lock);
    sx_trace_release(db->follow_trace);
    free(db->seats);
    free(db);
}

void stachio_close(struct stachio_db *db) {
    sx_db_release(db);
}

/* Whatever the number of workers: they wait for the disk, each with a row group's columns in flight, which
 * may be small. */
enum { READER_THREADS = 16 };

static const char *find_stand_in(void *context, const char *const *files, int n_files, int *out_version) {
    return sx_storage_stand_in(context, files, n_files, out_version);
}

static enum sx_status start_storage(struct stachio_db *db, struct sx_error *error) {
    static const enum sx_io ios[] = {SX_IO_AUTO, SX_IO_BUFFERED, SX_IO_DIRECT, SX_IO_DEVICE};
    const int64_t memory_bytes = (int64_t)sx_system_memory(), cache_bytes = (int64_t)db->cache_bytes;
    if (db->backend->io_pool_create && !db->io_pool)
        SX_TRY(db->backend->io_pool_create(db->backend, db->pool, &db->io_pool, error));
    if (!db->io_pool && !db->direct_pool)
        SX_TRY(sx_slab_pool_create(db->pool, DIRECT_SLAB_BYTES, sx_huge_pages_source(), &db->direct_pool,
                                   error));
    const struct sx_storage_options options = {
        .pool = db->io_pool ? db->io_pool : db->pool,
        .direct_pool = db->direct_pool,
        .budget = db->pool,
        .n_reader_threads = READER_THREADS,
        .io = ios[db->io],
        .backend = db->backend,
        .page_cache_bytes = memory_bytes > cache_bytes ? (memory_bytes - cache_bytes) / 2 : 1,
        .cache_bytes = db->cache_bytes,
    };
    SX_TRY(sx_storage_create(&options, &db->storage, error));
    sx_frontend_set_stand_ins(db->frontend, (struct sx_stand_in_source){find_stand_in, db->storage});
    return SX_OK;
}

/* Its members look before they sleep where threads that wait for other ranks do. */
static enum sx_status start_team(struct stachio_db *db, struct sx_error *error) {
    SX_TRY(sx_team_create(db->threads, &db->team, error));
    sx_team_set_spin(db->team, db->net ? sx_net_spin_ns(db->net) : 0);
    return SX_OK;
}

enum sx_status sx_db_start(struct stachio_db *db, struct sx_error *error) {
    enum sx_status status = SX_OK;
    sigset_t previous;
    sx_signals_block(&previous);
    if (!db->team)
        status = start_team(db, error);
    if (status == SX_OK && !db->storage)
        status = start_storage(db, error);
    sx_signals_restore(&previous);
    return status;
}

enum stachio_status stachio_set_engine(struct stachio_db *db, enum stachio_engine engine) {
    if (!is_engine(engine))
        return STACHIO_USAGE;
    atomic_store(&db->engine, (int)engine);
    return STACHIO_OK;
}

/* On all ranks. */
static enum sx_status add_table(struct stachio_db *db, const char *name, const struct sx_file_list *files,
                                struct sx_error *error) {
    SX_TRY(sx_frontend_add_table(db->frontend, name, files->paths, files->n_paths, NULL, error));
    sx_parts_drop(db->parts, name);
    return sx_ranks_add_table(db, name, files->paths, files->n_paths, error);
}

static enum sx_status add_directory(struct stachio_db *db, struct sx_arena *arena, const char *path,
                                    struct sx_error *error) {
    struct sx_table_files *tables;
    int n;
    SX_TRY(sx_parts_pattern(arena, path, &path, error));
    SX_TRY(sx_files_tables(arena, path, &tables, &n, error));
    for (int i = 0; i < n; i++)
        SX_TRY(add_table(db, tables[i].name, &tables[i].files, error));
    return SX_OK;
}

enum stachio_status stachio_add_directory(struct stachio_db *db, const char *path,
                                          struct stachio_error *error) {
    struct sx_error inner = {0};
    struct sx_arena arena = {0};
    pthread_mutex_lock(&db->lock);
    enum sx_status status = db->net && sx_parts_are_in(path) ? sx_ranks_add_parts(db, NULL, &path, 1, &inner)
                                                             : add_directory(db, &arena, path, &inner);
    pthread_mutex_unlock(&db->lock);
    sx_arena_release(&arena);
    return status == SX_OK ? STACHIO_OK : sx_api_fail(&inner, error);
}

static enum sx_status add_files(struct stachio_db *db, struct sx_arena *arena, const char *name,
                                const char *const *patterns, int n_patterns, struct sx_error *error) {
    struct sx_file_list files;
    const char **own = SX_ARENA_ARRAY(arena, n_patterns, const char *);
    if (!*name)
        return sx_error_set(error, SX_USAGE, "a table has no name");
    if (!own)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for table %s", name);
    for (int i = 0; i < n_patterns; i++) {
        if (db->net && sx_parts_are_in(patterns[i]))
            return sx_ranks_add_parts(db, name, patterns, n_patterns, error);
        SX_TRY(sx_parts_pattern(arena, patterns[i], &own[i], error));
    }
    SX_TRY(sx_files_match_all(arena, own, n_patterns, &files, error));
    return add_table(db, name, &files, error);
}

enum stachio_status stachio_add_files(struct stachio_db *db, const char *name, const char *const *patterns,
                                      int n_patterns, struct stachio_error *error) {
    struct sx_error inner = {0};
    struct sx_arena arena = {0};
    pthread_mutex_lock(&db->lock);
    enum sx_status status = add_files(db, &arena, name, patterns, n_patterns, &inner);
    pthread_mutex_unlock(&db->lock);
    sx_arena_release(&arena);
    return status == SX_OK ? STACHIO_OK : sx_api_fail(&inner, error);
}

enum stachio_status stachio_add_table(struct stachio_db *db, const char *name, const char *pattern,
                                      struct stachio_error *error) {
    return stachio_add_files(db, name, &pattern, 1, error);
}

int stachio_tables(struct stachio_db *db, const char *const **out_names) {
    pthread_mutex_lock(&db->lock);
    int n = sx_frontend_tables(db->frontend, out_names);
    pthread_mutex_unlock(&db->lock);
    return n;
}

static enum sx_status describe(struct stachio_db *db, const char *table,
                               const struct stachio_column **out_columns, int *out_n,
                               struct sx_error *error) {
    struct sx_arena *arena = &db->describe_arena;
    sx_arena_release(arena);
    struct sx_column_info *infos;
    int n;
    SX_TRY(sx_frontend_describe(db->frontend, arena, table, &infos, &n, error));
    struct stachio_column *columns = SX_ARENA_ARRAY(arena, n, struct stachio_column);
    for (int i = 0; columns && i < n; i++) {
        char name[SX_TYPE_NAME_BYTES];
        columns[i].name = infos[i].name;
        columns[i].type = sx_arena_format(arena, "%s", sx_type_name(infos[i].type, name));
        if (!columns[i].type)
            columns = NULL;
    }
    if (!columns)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the columns of %s", table);
    *out_columns = columns;
    *out_n = n;
    return SX_OK;
}

enum stachio_status stachio_describe(struct stachio_db *db, const char *table,
                                     const struct stachio_column **out_columns, int *out_n_columns,
                                     struct stachio_error *error) {
    struct sx_error inner = {0};
    pthread_mutex_lock(&db->lock);
    enum sx_status status =
        sx_parts_explain(db->parts, describe(db, table, out_columns, out_n_columns, &inner), &inner);
    pthread_mutex_unlock(&db->lock);
    return status == SX_OK ? STACHIO_OK : sx_api_fail(&inner, error);
}

enum stachio_status stachio_split(struct stachio_db *db, const char *script,
                                  const char *const **out_statements, int *out_n_statements,
                                  struct stachio_error *error) {
    struct sx_error inner = {0};
    pthread_mutex_lock(&db->lock);
    sx_arena_release(&db->split_arena);
    enum sx_status status =
        sx_frontend_split(db->frontend, &db->split_arena, script, out_statements, out_n_statements, &inner);
    pthread_mutex_unlock(&db->lock);
    return status == SX_OK ? STACHIO_OK : sx_api_fail(&inner, error);
}
