/* Inside of src/api: the database and what its queries take from it. */
#ifndef SX_API_DB_H
#define SX_API_DB_H

#include <pthread.h>
#include <stachio.h>
#include <stdatomic.h>

#include "api/alone_memory.h"
#include "api/seat.h"
#include "base/arena.h"
#include "exec/execute.h"
#include "exec/filter_memory.h"
#include "exec/skew_memory.h"
#include "plan/frontend.h"

/* Bytes per second; 0: not measured yet. See floor.c. */
struct sx_rates {
    double disk;
    double link;
    double memory;
};

/* Counted: queries, streams and exported arrays keep it. */
struct stachio_db {
    atomic_int references;
    atomic_int engine;    /* enum stachio_engine of new queries */
    pthread_mutex_t lock; /* held by whoever plans, runs or asks for tables */
    int threads;
    int processors; /* that it may use: its part of those that ranks share */
    enum stachio_io io;
    enum stachio_overlap overlap;
    enum stachio_shuffle_compression shuffle_compression;
    enum sx_shuffle shuffle;
    size_t cache_bytes; /* of the storage's cache; 0: none */
    size_t
        reuse_bytes; /* of the device's, for a query's own scans; 0: none, or the cache is for all queries */
    struct sx_pool *pool;
    const struct sx_backend *backend;
    struct sx_device device; /* zeroed: the CPU */
    struct sx_frontend *frontend;
    struct sx_pool *io_pool;     /* the backend's memory for reading; NULL: `pool` serves */
    struct sx_pool *direct_pool; /* for direct reads where there is no io_pool */
    struct sx_storage *storage;  /* these three start with the first query that stachio runs */
    struct sx_team *team;
    struct sx_rates rates;
    struct sx_arena describe_arena;
    struct sx_arena split_arena;
    struct sx_arena inspect_arena;
    struct sx_arena topology_arena;
    struct sx_net *net;           /* NULL: there is one rank */
    struct sx_seat *seats;        /* one a rank; NULL: there is one */
    char network[384];            /* how rows travel between them */
    unsigned n_alone;             /* queries that rank 0 began without the others */
    struct sx_alone_memory alone; /* of such queries */
    struct sx_skew_memory skew;   /* of samples that this rank has read */
    struct sx_filter_memory filters;
    struct stachio_query *ahead;   /* planned before rank 0 runs it; ranks that follow; NULL: none */
    struct sx_trace *follow_trace; /* of queries that this rank follows; NULL: none */
    bool is_launched;              /* the ranks are processes, and this is one of them */
    struct sx_parts *parts;        /* files of which each rank has its own; NULL: there are none */
    struct sx_ranks *ranks;        /* rank 0, where the others are threads of this process; else NULL */
};

/* "cpu", or the GPU's name. */
/* Bytes that all scans of a query may read ahead: enough for large requests, little beside the limit. */
size_t sx_db_queue_bytes(const struct stachio_db *db);

static inline const char *sx_db_device(const struct stachio_db *db) {
    return db->device.name ? db->device.name : "cpu";
}

/* Where tensors are. */
static inline struct sx_pool_usage sx_db_memory(const struct stachio_db *db) {
    return db->backend->memory_usage ? db->backend->memory_usage(db->backend) : sx_pool_usage(db->pool);
}
/* The most since the database was opened. */
static inline int64_t sx_db_peak_memory(const struct stachio_db *db) {
    return (int64_t)sx_db_memory(db).peak_bytes;
}

/* stachio_open of one rank. `net` (NULL: there is one rank) serves to share out the GPUs: collective. */
enum stachio_status sx_db_open(const struct stachio_options *options, struct sx_net *net,
                               struct stachio_db **out_db, struct stachio_error *error);
struct stachio_db *sx_db_retain(struct stachio_db *db);
void sx_db_release(struct stachio_db *db);

/* Starts threads and storage; with the lock held. */
SX_MUST_CHECK enum sx_status sx_db_start(struct stachio_db *db, struct sx_error *error);

/* What the database says of how queries run; the query's own is left zeroed. After sx_db_start. */
struct sx_exec_options sx_db_exec_options(struct stachio_db *db);

/* Translates a status; fills `out_error` (NULL allowed) when it is a failure. */
enum stachio_status sx_api_fail(const struct sx_error *error, struct stachio_error *out_error);
enum stachio_status sx_api_status(enum sx_status status);
enum stachio_status sx_api_error(struct stachio_error *out_error, enum stachio_status status,
                                 const char *format, ...) SX_PRINTF(3, 4);

#endif
