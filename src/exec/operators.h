/* Makers of all operators; one file each. Every maker allocates in the run's arena and registers the
 * operator. */
#ifndef SX_EXEC_OPERATORS_H
#define SX_EXEC_OPERATORS_H

#include "exec/evaluator.h"
#include "exec/join_bloom.h"

/* ---- collect.c: batches kept in order ---- */

/* Keeps all batches, in the order of their sequence numbers once sealed. */
struct sx_collector {
    struct sx_sink sink;
    int n_columns;
    const struct sx_type *types;
    struct sx_worker_batches *workers;
    struct sx_batch *batches; /* after seal */
    int64_t *sequences;       /* of the batches: their places on this rank (of what was put together the first
                                 one's); where there are several ranks, else NULL */
    int64_t n_batches;
    int64_t rows;
    int64_t limit;  /* rows kept at the most; -1: all */
    int64_t offset; /* rows dropped in front */
    bool combines;  /* small batches are put together */
};
SX_MUST_CHECK enum sx_status sx_collector_create(struct sx_run *run, const struct sx_plan *plan,
                                                 const char *name, struct sx_collector **out_collector,
                                                 struct sx_error *error);
/* All columns of a sealed collector as one batch of FLAT columns. */
SX_MUST_CHECK enum sx_status sx_collector_concat(struct sx_collector *collector, struct sx_worker *worker,
                                                 struct sx_batch *out_batch);
/* collect_combine.c: neighbours of its batches as one, as far as they are small. */
SX_MUST_CHECK enum sx_status sx_collector_combine(struct sx_collector *collector, struct sx_worker *worker);
/* Any batches with columns of these types as one. */
SX_MUST_CHECK enum sx_status sx_batches_concat(struct sx_worker *worker, const struct sx_type *types,
                                               int32_t n_columns, const struct sx_batch *batches,
                                               int64_t n_batches, enum sx_concat how,
                                               struct sx_batch *out_batch);
/* Gives up the batches of a sealed collector. */
void sx_collector_drop(struct sx_collector *collector);
/* Gives the batches of a sealed collector; several sources may read one collector. */
SX_MUST_CHECK enum sx_status sx_collector_source(struct sx_run *run, struct sx_collector *collector,
                                                 const char *name, struct sx_source **out_source,
                                                 struct sx_error *error);

/* ---- exchange_ends.c ---- */

/* The keys that an exchange with these ends sends to this rank; none: most is below least. */
void sx_ends_range(const int64_t *ends, const struct sx_net *net, int64_t *out_least, int64_t *out_most);

/* ---- scan.c ---- */

struct sx_join_build;

/* Whose rows a filter's join meets those that it drops with. */
enum sx_filter_reach {
    SX_REACH_RANK,  /* this rank's: there is no exchange in between */
    SX_REACH_RANKS, /* any rank's: what holds for all ranks' tables counts, or for that which a row goes to */
    SX_REACH_ALIKE  /* all of them: what is dropped has to be the same on all ranks */
};

/* A join's build side limits the rows of a scan. */
struct sx_runtime_filter {
    struct sx_join_build *join;
    const int32_t
        *columns; /* of the scan's columns (not of its projection): one for each of the join's keys */
    enum sx_filter_reach reach;
};

SX_MUST_CHECK enum sx_status sx_scan_create(struct sx_run *run, const struct sx_plan *plan,
                                            const struct sx_runtime_filter *filters, int n_filters,
                                            struct sx_source **out_source, struct sx_error *error);
/* About so many of the rank's rows, from row groups far apart. */
SX_MUST_CHECK enum sx_status sx_scan_create_sample(struct sx_run *run, const struct sx_plan *plan,
                                                   int64_t rows, struct sx_source **out_source,
                                                   struct sx_error *error);
/* From now on rows whose value in `column` (of the scan's columns) is NULL or outside of [min, max] need not
 * come. Columns of types without a range are left alone. Thread-safe. */
void sx_scan_source_restrict(struct sx_scan_source *source, int32_t column, int64_t min, int64_t max);
/* Whether all of the worker's last batch, or of rows that it was made of, have values in [least, most] in the
 * column (of the scan's columns), or NULL and are_nulls. False: it is not known. */
bool sx_scan_source_is_within(const struct sx_scan_source *source, const struct sx_worker *worker,
                              int32_t column, int64_t least, int64_t most, bool are_nulls);
const struct sx_plan *sx_scan_source_plan(const struct sx_scan_source *source);
void sx_scan_source_progress(const struct sx_scan_source *source, struct sx_exec_progress *progress);

/* ---- memory.c, values.c, filter.c, project.c, repeat.c ---- */

SX_MUST_CHECK enum sx_status sx_memory_create(struct sx_run *run, const struct sx_plan *plan,
                                              struct sx_source **out_source, struct sx_error *error);

SX_MUST_CHECK enum sx_status sx_values_create(struct sx_run *run, const struct sx_plan *plan,
                                              struct sx_source **out_source, struct sx_error *error);
SX_MUST_CHECK enum sx_status sx_filter_create(struct sx_run *run, const struct sx_plan *plan,
                                              struct sx_transform **out_transform, struct sx_error *error);
SX_MUST_CHECK enum sx_status sx_project_create(struct sx_run *run, const struct sx_plan *plan,
                                               struct sx_transform **out_transform, struct sx_error *error);
/* Each row as often as its last column (BIGINT, not null, 0 or less: not at all) says; that column is
 * dropped. */
SX_MUST_CHECK enum sx_status sx_repeat_create(struct sx_run *run, int n_columns,
                                              struct sx_transform **out_transform, struct sx_error *error);

/* ---- join_build.c, join_probe.c, join_rest.c ---- */

/* The hash table of a join and its build side's sink. */
struct sx_join_build {
    struct sx_sink sink;
    const struct sx_plan *plan;
    struct sx_evaluator keys;
    struct sx_join *table;
    const int32_t *payload; /* columns of the build child that the table keeps */
    int32_t n_payload;
    atomic_llong n_rows; /* at most, that have been appended so far */
    int n_parts;         /* of the table, after finish */
    bool is_right;       /* the build side's rows are remembered when they match */
    /* MARK within groups: tables of the first n_mark_group keys, over all build rows and over those whose
     * mark key is null */
    struct sx_join *group_rows;
    struct sx_join *group_nulls;
    struct sx_join_info info;   /* after seal */
    struct sx_join_info all;    /* after seal, if it is wanted: rows, range and uniqueness of all ranks' */
    bool is_all_wanted;         /* by a scan; set while pipelines are made */
    struct sx_join_bloom bloom; /* of all ranks' keys, where scans ask for it */
    struct exchange_skew *skew; /* of an adaptive join between ranks; may be NULL */
    struct exchange_filter *filter; /* of its probe side's exchange; may be NULL */
    bool is_everywhere; /* several ranks, and all have the whole table; known before its pipeline runs */
    bool scheduled;     /* while pipelines are made: those that build it are there */
};
SX_MUST_CHECK enum sx_status sx_join_build_create(struct sx_run *run, const struct sx_plan *plan,
                                                  struct sx_join_build **out_build, struct sx_error *error);
/* Where build child's column `column` is in the table's payload; and that of each build output column, in the
 * run's arena (NULL: no memory). */
int32_t sx_join_payload_index(const struct sx_join_build *build, int32_t column);
const int32_t *sx_join_payload_of(struct sx_run *run, const struct sx_join_build *build);
SX_MUST_CHECK enum sx_status sx_join_probe_create(struct sx_run *run, struct sx_join_build *build,
                                                  struct sx_transform **out_transform,
                                                  struct sx_error *error);
/* The build rows that no probe row matched (RIGHT, FULL, RIGHT_ANTI) or that some did (RIGHT_SEMI). */
SX_MUST_CHECK enum sx_status sx_join_rest_create(struct sx_run *run, struct sx_join_build *build,
                                                 struct sx_source **out_source, struct sx_error *error);
bool sx_join_is_right(enum sx_join_kind kind);

/* ---- aggregate.c ---- */

SX_MUST_CHECK enum sx_status sx_aggregate_create(struct sx_run *run, const struct sx_plan *plan,
                                                 struct sx_sink **out_sink, struct sx_source **out_source,
                                                 struct sx_error *error);

/* ---- sort.c, limit.c ---- */

SX_MUST_CHECK enum sx_status sx_sort_create(struct sx_run *run, const struct sx_plan *plan,
                                            struct sx_sink **out_sink, struct sx_source **out_source,
                                            struct sx_error *error);
SX_MUST_CHECK enum sx_status sx_top_n_create(struct sx_run *run, const struct sx_plan *plan,
                                             struct sx_sink **out_sink, struct sx_source **out_source,
                                             struct sx_error *error);
SX_MUST_CHECK enum sx_status sx_limit_create(struct sx_run *run, const struct sx_plan *plan,
                                             struct sx_sink **out_sink, struct sx_source **out_source,
                                             struct sx_error *error);

/* ---- write.c ---- */

/* The answer's sink where the run's options say that it is written; sets run->write. */
SX_MUST_CHECK enum sx_status sx_write_create(struct sx_run *run, const struct sx_plan *plan,
                                             struct sx_sink **out_sink, struct sx_error *error);
/* Rows in files so far. From any thread. */
int64_t sx_write_rows(const struct sx_write_sink *sink);

/* ---- exchange.c ---- */

/* Rows from rank to rank, as `plan` says. Pipelines into *out_sink are driven by the one that *out_source
 * feeds. `join`: that whose build side (is_build) or probe side it is; NULL for others. */
SX_MUST_CHECK enum sx_status sx_exchange_create(struct sx_run *run, const struct sx_plan *plan,
                                                struct sx_join_build *join, bool is_build,
                                                struct sx_sink **out_sink, struct sx_source **out_source,
                                                struct sx_error *error);
/* Whether the rows are first kept on their ranks, so that their number is known. */
bool sx_exchange_wants_size(const struct sx_plan *plan, bool is_build);
/* Those kept rows, which the exchange's only pipeline gives. */
void sx_exchange_set_kept(struct sx_sink *exchange, struct sx_collector *kept);
/* Collective, after a run: compares what the ranks have got, for the report. */
SX_MUST_CHECK enum sx_status sx_exchanges_compare(struct sx_run *run, struct sx_error *error);
/* Connects all exchanges of a run with the other ranks; then, whatever became of the run, lets go of them. */
SX_MUST_CHECK enum sx_status sx_exchanges_open(struct sx_run *run, struct sx_error *error);
void sx_exchanges_close(struct sx_run *run);
/* Their names tell what they have done, once they are closed. */
void sx_exchanges_describe(struct sx_run *run);
/* Rows of ranks other than 0 are dropped. */
SX_MUST_CHECK enum sx_status sx_root_only_create(struct sx_run *run, struct sx_transform **out_transform,
                                                 struct sx_error *error);

/* ---- required.c ---- */

/* Whether an output column can have no nulls, as far as the files' schemas tell. */
SX_MUST_CHECK enum sx_status sx_plan_is_required(struct sx_run *run, const struct sx_plan *plan,
                                                 int32_t column, bool *out_required, struct sx_error *error);

#endif
