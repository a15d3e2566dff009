/* T_min: the bytes that a query needs over what can bring them. Each rate is measured once a database, when
 * it is asked for. */
#include "api/query.h"
#include "api/raw_read.h"
#include "bench/bench.h"

static const size_t most_memory_bytes = (size_t)512 << 20, least_memory_bytes = (size_t)16 << 20;
static const double disk_seconds = 0.1;

/* A rate from fewer is mostly that of one request: it serves the query that has no more, but no other. */
static const int64_t enough_disk_bytes = (int64_t)32 << 20;

/* ---- rates ---- */

/* Of an even share of what is left of the limit, but the memory is not the pool's, whose peak would tell it.
 */
static enum sx_status measure_memory(struct stachio_db *db, struct sx_error *error) {
    const struct sx_pool_usage usage = sx_pool_usage(db->pool);
    const size_t left = usage.limit_bytes > usage.used_bytes ? (usage.limit_bytes - usage.used_bytes) / 2 : 0;
    const size_t bytes = left < least_memory_bytes  ? least_memory_bytes
                         : left > most_memory_bytes ? most_memory_bytes
                                                    : left;
    return sx_bench_memory_rate(db->team, bytes, &db->rates.memory, error);
}

static enum sx_status measure_disk(struct stachio_db *db, const char *path, double *out_rate,
                                   struct sx_error *error) {
    struct sx_raw_read raw = {.paths = &path, .n_paths = 1, .n_in_flight = 4, .most_seconds = disk_seconds};
    int64_t bytes = 0;
    double seconds = 0;
    SX_TRY(sx_reader_create(db->pool, NULL, SX_IO_DIRECT, 1, &raw.reader, error));
    enum sx_status status = sx_raw_read(db->team, &raw, &bytes, &seconds, error);
    sx_reader_destroy(raw.reader);
    *out_rate = seconds > 0 ? (double)bytes / seconds : 0;
    if (status == SX_OK && bytes >= enough_disk_bytes)
        db->rates.disk = *out_rate;
    return status;
}

/* 0: the file system has no direct reads. */
static double disk_rate(struct stachio_db *db, const char *path) {
    struct sx_error refused = {0};
    double rate;
    if (db->rates.disk > 0)
        return db->rates.disk;
    return measure_disk(db, path, &rate, &refused) == SX_OK ? rate : 0;
}

/* ---- the floor ---- */

/* The longer of what was found and of the bytes at the measured rate, or at the one that the query itself has
 * reached, where the machine had less to give when it was measured. */
static void take_longer(struct stachio_floor *floor, const char *bound, int64_t bytes, double measured,
                        double query_seconds) {
    const double reached = query_seconds > 0 ? (double)bytes / query_seconds : 0;
    const double rate = measured > reached ? measured : reached;
    if (bytes <= 0 || measured <= 0 || (double)bytes / rate <= floor->seconds)
        return;
    *floor = (struct stachio_floor){(double)bytes / rate, bound, bytes, rate};
}

/* What the device's cache has had for queries came over no link; a span that was looked for twice counts
 * twice there. What the query's own scans had brought did come. */
static enum sx_status find_floor(struct stachio_query *query, const struct sx_footprint_total *total,
                                 struct stachio_floor *floor, struct sx_error *error) {
    struct stachio_db *db = query->db;
    const struct sx_backend *backend = db->backend;
    const double seconds = query->execute_seconds;
    const int64_t link_bytes = total->bytes - (db->reuse_bytes > 0 ? 0 : query->device_cache_bytes);
    if (total->bytes == 0)
        return SX_OK;
    if (backend->link_measure && db->rates.link <= 0)
        SX_TRY(backend->link_measure(backend, db->io_pool, &db->rates.link, error));
    if (!backend->link_measure && db->rates.memory <= 0)
        SX_TRY(measure_memory(db, error));
    if (total->cold_bytes > 0)
        take_longer(floor, "disk", total->cold_bytes, disk_rate(db, total->cold_path), seconds);
    take_longer(floor, "link", link_bytes, db->rates.link, 0); /* nobody else has the device */
    take_longer(floor, "memory", total->bytes, db->rates.memory, seconds);
    return SX_OK;
}

enum stachio_status stachio_query_floor(struct stachio_query *query, struct stachio_floor *out_floor,
                                        struct stachio_error *error) {
    struct sx_error inner = {0};
    struct sx_footprint_total total;
    struct stachio_floor floor = {.bound = "nothing"};
    if (!query->succeeded)
        return sx_api_error(error, STACHIO_USAGE, "the query has not been executed");
    if (query->engine == STACHIO_ENGINE_STACHIO) {
        pthread_mutex_lock(&query->db->lock);
        sx_footprint_total(query->footprint, &total);
        enum sx_status status = find_floor(query, &total, &floor, &inner);
        pthread_mutex_unlock(&query->db->lock);
        if (status != SX_OK)
            return sx_api_fail(&inner, error);
    }
    *out_floor = floor;
    return STACHIO_OK;
}
