/* Several ranks, and a query that rank 0 answers sooner by itself. */
#include "api/alone.h"
#include "api/library.h"
#include "api/ranks.h"
#include "base/clock.h"

/* What a rank scans, in bytes that are not compressed, while one more exchange takes place. Two processes of
 * one thread each, TPC-H SF 0.1, geometric mean: 7.6 ms; with 1 and 2 MiB 8.2, always together 8.5. Two GPUs
 * together were 1.0 to 1.4 times as fast as one in queries with 11 to 26 MB an exchange. */
static const int64_t host_bytes = (int64_t)512 << 10, device_bytes = (int64_t)8 << 20;

/* Joins may make more of few rows than can be seen before. */
static const int64_t most_ms = 50;

int64_t sx_alone_exchange_bytes(const struct stachio_db *db) {
    return sx_environment_integer("STACHIO_ALONE_BYTES",
                                  db->backend->traits.is_host ? host_bytes : device_bytes);
}

bool sx_alone_is_worth_it(const struct stachio_query *query) {
    return sx_alone_memory_way(&query->db->alone, query->sql) == SX_WAY_ALONE;
}

int64_t sx_alone_most_ns(const struct stachio_query *query) {
    const int64_t ns_of_ms = 1000000, day_ms = 86400000;
    const int64_t ms = sx_environment_integer("STACHIO_ALONE_MS", most_ms);
    const int patience = sx_alone_memory_patience(&query->db->alone, query->sql);
    return ms <= 0 ? 1 : (ms < day_ms ? ms : day_ms) * ns_of_ms * patience;
}

enum sx_status sx_alone_check(struct stachio_db *db, struct sx_error *error) {
    const enum sx_status status = sx_net_check(db->net, error);
    return status == SX_OK ? SX_OK : sx_ranks_meet(db, status, error);
}

/* The others plan what rank 0 answers: those that are slower must not fall behind without end. */
static enum sx_status wait_for_slow_ones(struct stachio_db *db, struct sx_error *error) {
    enum { QUERIES_AHEAD = 64 };
    if (++db->n_alone % QUERIES_AHEAD != 0)
        return sx_alone_check(db, error);
    return sx_ranks_wait(db, error);
}

enum sx_status sx_alone_execute(struct stachio_query *query, bool *out_done, struct sx_error *error) {
    struct sx_alone_memory *memory = &query->db->alone;
    *out_done = true;
    SX_TRY(wait_for_slow_ones(query->db, error));
    const int64_t began_ns = sx_clock_ns();
    const enum sx_status status = sx_run_execute(query->run, error);
    if (status == SX_OK) {
        sx_alone_memory_ran(memory, query->sql, SX_WAY_ALONE, sx_clock_ns() - began_ns);
        return sx_alone_check(query->db, error);
    }
    *out_done = status != SX_OUT_OF_MEMORY && (status != SX_CANCELLED || atomic_load(&query->cancel));
    if (*out_done)
        return status;
    *error = (struct sx_error){0};
    sx_alone_memory_gave_up(memory, query->sql);
    return SX_OK;
}

void sx_alone_ended_together(struct stachio_query *query, enum sx_status status, int64_t ns) {
    if (status == SX_OK)
        sx_alone_memory_ran(&query->db->alone, query->sql, SX_WAY_TOGETHER, ns);
    else if (status != SX_CANCELLED)
        sx_alone_memory_failed_together(&query->db->alone, query->sql);
}
