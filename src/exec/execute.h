/* Runs a logical plan on one backend. */
#ifndef SX_EXEC_EXECUTE_H
#define SX_EXEC_EXECUTE_H

#include "base/team.h"
#include "net/net.h"
#include "observe/trace.h"
#include "plan/plan.h"
#include "storage/scan.h"
#include "storage/write.h"
#include "tensor/backend.h"

/* Where the answer goes instead of memory: Parquet files. `options` and `path` as sx_write_table_create has
 * them, and borrowed for the run. */
struct sx_exec_write {
    const char *path;
    struct sx_write_options options;
};

/* Rows of this rank for MEMORY nodes: batches of the backend's memory, borrowed for the run. */
struct sx_exec_table {
    const struct sx_batch *batches;
    int64_t n_batches;
};

/* How far reading, computing and the network overlap (PystachIO, sections 3 and 5); the others are there to
 * be compared with FULL. Each has what the ones above it have not. */
enum sx_overlap {
    SX_OVERLAP_FULL, /* short pipelines run beside others, an exchange sends and gives rows as they come */
    SX_OVERLAP_COMBINED, /* none does, and it sends and gives nothing before it has all */
    SX_OVERLAP_IO,       /* and scans of later pipelines read nothing ahead */
    SX_OVERLAP_BLOCKING  /* and messages are small */
};

/* Whether frames that go to other ranks are packed (tensor/wire.h). Each rank's own matter. */
enum sx_shuffle_compression {
    SX_COMPRESSION_AUTO, /* as the pace of the network says */
    SX_COMPRESSION_OFF,
    SX_COMPRESSION_ON
};

struct sx_filter_memory;
struct sx_skew_memory;

struct sx_exec_options {
    const struct sx_backend *backend;
    struct sx_pool *pool;         /* tensors, tables, queues */
    struct sx_pool *message_pool; /* what a device copies to other ranks and from them; NULL: `pool` */
    struct sx_storage *storage;
    struct sx_team *team;              /* its members are the workers */
    const atomic_bool *cancel;         /* may be NULL */
    int64_t most_ns;                   /* SX_CANCELLED when it takes longer; 0: no limit */
    size_t queue_bytes;                /* most bytes a scan reads ahead */
    struct sx_trace *trace;            /* may be NULL; outlives the run */
    struct sx_footprint *footprint;    /* gets what the scans need; may be NULL; outlives the run */
    const struct sx_exec_write *write; /* NULL: the answer is kept for sx_run_next */
    /* NULL: there is one rank. Else all ranks run the same plan, which sx_plan_distribute has made, and rank
     * 0 gets the answer; `write` is rank 0's. */
    struct sx_net *net;
    /* Batches from this size on a device packs one by one, before others' work, NARROW where they fit, and
     * rows for joins with tables of four such are sent early; 0: all. */
    int64_t large_rows;
    size_t link_bytes;       /* messages from this size on go from device to device */
    int64_t broadcast_bytes; /* build sides up to this size are sent to all ranks */
    int64_t filter_rows;     /* from such a build side on exchanges filter probe rows; < 0: never */
    size_t filter_bytes;     /* most of such a filter */
    int64_t root_sort_rows;  /* so many rows rank 0 sorts alone (on a device more of them) */
    int64_t few_groups;      /* so many of all ranks are rank 0's from then on (on a device more of them) */
    const struct sx_exec_table *tables; /* of MEMORY nodes, by id */
    int n_tables;
    enum sx_overlap overlap;
    size_t message_bytes; /* of an exchange; 0: it chooses */
    bool counts_early;    /* rows are counted after every operator, for comparison; no difference on a host */
    enum sx_shuffle_compression shuffle_compression;
    enum sx_shuffle shuffle;
    /* Most bytes of the backend's memory for columns that several scans of the query read: the first brings
     * them for all. The backend's cache serves, which must be off otherwise. 0: none. */
    size_t reuse_bytes;
    /* Of earlier queries' samples, and of their filters; may be NULL; they outlive the run. */
    struct sx_skew_memory *skew_memory;
    struct sx_filter_memory *filter_memory;
};

static inline struct sx_pool *sx_message_pool(const struct sx_exec_options *options) {
    return options->message_pool ? options->message_pool : options->pool;
}

/* What one operator did, for --analyze. */
struct sx_operator_report {
    int pipeline;     /* operators of one pipeline follow each other from source to sink */
    const char *name; /* "SCAN lineitem", "JOIN probe INNER" */
    int64_t rows;     /* that it gave */
    int64_t batches;
    double seconds; /* summed over workers, without the operators that it called */
};

/* Shared with other threads while the query runs. */
struct sx_exec_progress {
    int64_t total_rows; /* of all scans */
    int64_t done_rows;
    int64_t read_bytes;
    int64_t device_bytes; /* of them, straight into the device's memory */
    int64_t cached_bytes; /* that the storage's caches had */
    int64_t pruned_rows;
    int64_t written_rows; /* of Parquet files */
};

struct sx_run;

/* Builds the pipelines. `plan`, `options` and what they point to must outlive the run. */
SX_MUST_CHECK enum sx_status sx_run_create(const struct sx_exec_options *options,
                                           const struct sx_query_plan *plan, struct sx_run **out_run,
                                           struct sx_error *error);
/* Between several ranks: to be called by all of them, in the same order. An error, or the cancellation of one
 * rank ends them all; sx_net_barrier has to come next. Runs to the end; the answer is then taken by
 * sx_run_next, or is in the files. */
SX_MUST_CHECK enum sx_status sx_run_execute(struct sx_run *run, struct sx_error *error);
/* Next batch of the answer in host memory with FLAT columns, in order; rows 0: the end. The batch may outlive
 * the run, not the pool. */
SX_MUST_CHECK enum sx_status sx_run_next(struct sx_run *run, struct sx_batch *out_batch,
                                         struct sx_error *error);
void sx_run_destroy(struct sx_run *run);
/* Whether it keeps columns for later scans; without (reuse_bytes 0) the query takes less memory. */
bool sx_run_reuses(const struct sx_run *run);
/* Before it is executed: the memory of the rank's device that has least, by which windows are sized on all
 * ranks. */
void sx_run_set_least_memory(struct sx_run *run, size_t bytes);

/* From any thread, between create and destroy. */
void sx_run_progress(struct sx_run *run, struct sx_exec_progress *out_progress);
/* After execute; the array belongs to the run. */
int sx_run_report(struct sx_run *run, const struct sx_operator_report **out_reports);
/* The pipelines as text, for --explain; in `arena`. */
const char *sx_run_text(struct sx_run *run, struct sx_arena *arena);
/* Of the same, for ranks to compare; without_last: but for the last one, not counting what that drives. */
uint64_t sx_run_hash(const struct sx_run *run, bool without_last);

#endif
