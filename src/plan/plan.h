/* The logical plan: what the front end makes of a query and what src/exec runs. Data only, in the plan's
 * arena; nothing of DuckDB's is in it. */
#ifndef SX_PLAN_PLAN_H
#define SX_PLAN_PLAN_H

#include "plan/expression.h"

/* X(name, text for explain) */
#define SX_PLAN_LIST(X)                                                                            \
    X(SCAN, "SCAN")                                                                                \
    X(VALUES, "VALUES") /* constant rows, possibly none (empty result) */                          \
    X(MEMORY, "MEMORY") /* rows that the run is given: sx_exec_options.tables */                   \
    X(FILTER, "FILTER")                                                                            \
    X(PROJECT, "PROJECT")                                                                          \
    X(JOIN, "JOIN")           /* children: probe side (left), build side (right) */                \
    X(AGGREGATE, "AGGREGATE") /* also distinct: keys and no aggregates */                          \
    X(SORT, "SORT")                                                                                \
    X(TOP_N, "TOP_N")                                                                              \
    X(LIMIT, "LIMIT")                                                                              \
    X(UNION_ALL, "UNION_ALL")                                                                      \
    X(SET_ALL, "SET_ALL")         /* INTERSECT ALL and EXCEPT ALL: children left, right */         \
    X(MATERIALIZE, "MATERIALIZE") /* children: definition, body; the body reads it by REFERENCE */ \
    X(REFERENCE, "REFERENCE")                                                                      \
    X(EXCHANGE, "EXCHANGE") /* between ranks; sx_plan_distribute puts it in */

enum sx_plan_kind {
#define SX_PLAN_ENUM(name, text) SX_PLAN_##name,
    SX_PLAN_LIST(SX_PLAN_ENUM)
#undef SX_PLAN_ENUM
};

struct sx_column_info {
    const char *name;
    struct sx_type type;
};

/* A scanned column. `source` names it in the file (case as in the file's schema). */
struct sx_scan_column {
    const char *source;
    struct sx_type type;
};

/* A table whose files are not all in every rank's reach. */
struct sx_table_parts {
    const bool *is_local; /* of each file: this rank can read more than its footer */
    int share, n_shares;  /* of the local ones: so many ranks have them, and this is one of these */
};

struct sx_scan_plan {
    const char *table;
    const char *const *files; /* expanded, in order */
    int32_t n_files;
    bool is_replicated;                   /* every rank reads the whole table; else a share of it */
    const struct sx_table_parts *parts;   /* NULL: all files are everywhere */
    const struct sx_scan_column *columns; /* every column read: the filters' inputs */
    int32_t n_columns;
    const int32_t *projection; /* output column i is columns[projection[i]] */
    int32_t n_projection;
    struct sx_expression **filters; /* BOOL conjuncts over `columns`; a row passes when all are true */
    int32_t n_filters;
};

/* X(name, text): LEFT is the probe side (first child) and RIGHT the build side. Output columns: probe side's
 * (as probe_output lists them), then build side's (build_output). SEMI, ANTI: probe side's only. MARK: probe
 * side's, then one BOOL column (TRUE match; NULL unknown; FALSE). RIGHT_SEMI, RIGHT_ANTI: build side's only.
 * SINGLE: as LEFT, at most one match a row, more is an error. */
#define SX_JOIN_LIST(X)         \
    X(INNER, "INNER")           \
    X(LEFT, "LEFT")             \
    X(RIGHT, "RIGHT")           \
    X(FULL, "FULL")             \
    X(SEMI, "SEMI")             \
    X(ANTI, "ANTI")             \
    X(MARK, "MARK")             \
    X(SINGLE, "SINGLE")         \
    X(RIGHT_SEMI, "RIGHT_SEMI") \
    X(RIGHT_ANTI, "RIGHT_ANTI")

enum sx_join_kind {
#define SX_JOIN_ENUM(name, text) SX_JOIN_##name,
    SX_JOIN_LIST(SX_JOIN_ENUM)
#undef SX_JOIN_ENUM
};

/* Equality of one expression over each side. */
struct sx_join_key {
    struct sx_expression *probe; /* over the probe child's columns */
    struct sx_expression *build; /* over the build child's columns; same type */
    bool null_equal;             /* IS NOT DISTINCT FROM */
};

struct sx_join_plan {
    enum sx_join_kind kind;
    const struct sx_join_key *keys;
    int32_t n_keys; /* 0: cross product with residual */
    /* Further condition over (probe child's columns, then build child's columns), all conjuncts; part of the
     * match. */
    struct sx_expression **residual;
    int32_t n_residual;
    const int32_t *probe_output; /* columns of the probe child that are output */
    int32_t n_probe_output;
    const int32_t *build_output;
    int32_t n_build_output;
    /* MARK with keys beyond the first n_mark_group (correlated): NULL is decided within the rows that agree
     * on the first n_mark_group keys (which are null_equal). 0 for a plain IN. */
    int32_t n_mark_group;
    bool build_is_everywhere; /* several ranks, and each has all of the build side */
    /* Several ranks, one key: rows of both sides are where an exchange with these ends would send them,
     * unless the build side turns out to be broadcast. NULL: no. */
    const int64_t *ends;
};

struct sx_aggregate_call {
    enum sx_aggregate_function {
        SX_CALL_COUNT_STAR,
        SX_CALL_COUNT,
        SX_CALL_SUM,
        SX_CALL_AVG,
        SX_CALL_MIN,
        SX_CALL_MAX,
        SX_CALL_FIRST,
        SX_CALL_ANY_VALUE
    } function;
    struct sx_expression *argument; /* NULL for COUNT_STAR */
    struct sx_expression *filter;   /* BOOL, or NULL */
    bool distinct;
    struct sx_type type;
};

/* Output: keys, then aggregates. Several grouping sets are not in this node: the front end makes them a
 * UNION_ALL. */
struct sx_aggregate_plan {
    struct sx_expression **keys;
    int32_t n_keys;
    const struct sx_aggregate_call *calls;
    int32_t n_calls;
};

struct sx_order {
    struct sx_expression *expression;
    bool descending;
    bool nulls_first;
};

struct sx_sort_plan {
    const struct sx_order *orders;
    int32_t n_orders;
    const int32_t *projection; /* columns of the child that are output */
    int32_t n_projection;
};

struct sx_limit_plan {
    int64_t limit; /* rows; -1: no limit */
    int64_t offset;
};

/* Which rank gets a row. X(name, text) */
#define SX_EXCHANGE_LIST(X)                                                                               \
    X(HASH, "HASH")                   /* that which the hash of the keys tells */                         \
    X(BROADCAST, "BROADCAST")         /* every rank */                                                    \
    X(GATHER, "GATHER")               /* rank 0 */                                                        \
    X(RANGE, "RANGE")                 /* that whose range of the keys' order it is in, ranks in ascending \
                                       * order; rank 0, where rows are few */                             \
    X(GATHER_RANGES, "GATHER RANGES") /* rank 0, which has each rank's rows behind those of the           \
                                       * ranks before it */                                               \
    X(ROOT_ONLY, "ROOT ONLY")         /* nobody but rank 0 keeps rows; none travel */

enum sx_exchange_kind {
#define SX_EXCHANGE_ENUM(name, text) SX_EXCHANGE_##name,
    SX_EXCHANGE_LIST(SX_EXCHANGE_ENUM)
#undef SX_EXCHANGE_ENUM
};

struct sx_exchange_plan {
    enum sx_exchange_kind kind;
    struct sx_expression **keys; /* HASH, RANGE; over the child's columns */
    int32_t n_keys;
    const struct sx_order *orders; /* RANGE: of the keys */
    /* HASH by one key, an integer or a date: in place of its hash the first rank r whose ends[r] is not below
     * it, else the last one; rank 0 for NULL. n_ranks - 1; NULL: by hash. */
    const int64_t *ends;
    int32_t n_ends;
    const struct sx_scan_plan *scan; /* with ends: whose scan->columns[scan_column] the key is, if rows */
    int32_t scan_column;             /* come straight from there; else NULL */
    /* HASH, directly below a join: when the build side turns out to be small, its exchange becomes a
     * BROADCAST and the probe side's rows stay where they are. */
    bool adaptive;
    /* A HASH of an aggregate's result, this exchange or one below: where that turns out to be small, its rows
     * are rank 0's, all of them, and those above have nothing to send. NULL: there is none. */
    const struct sx_plan *root_choice;
};

struct sx_plan {
    enum sx_plan_kind kind;
    int32_t n_children;
    struct sx_plan **children;
    int32_t n_columns;
    const struct sx_column_info *columns; /* output */
    double estimated_rows;                /* < 0: unknown */
    union {
        struct sx_scan_plan scan;
        struct {
            const struct sx_scalar *cells; /* row-major, n_rows x n_columns */
            int64_t n_rows;
        } values;
        struct {
            struct sx_expression **conjuncts;
            int32_t n_conjuncts;
            const int32_t *projection; /* columns of the child that are output */
            int32_t n_projection;
        } filter;
        struct {
            struct sx_expression **expressions; /* one an output column */
        } project;
        struct sx_join_plan join;
        struct sx_aggregate_plan aggregate;
        struct sx_sort_plan sort; /* SORT, and TOP_N together with limit below */
        struct {
            struct sx_sort_plan sort; /* first, so that .sort reads it too */
            struct sx_limit_plan limit;
        } top_n;
        struct sx_limit_plan limit;
        struct {
            bool except; /* else intersect */
        } set_all;
        struct {
            int32_t id; /* MATERIALIZE defines it, REFERENCE reads it */
        } materialize;
        struct sx_exchange_plan exchange;
        struct {
            int32_t id; /* position among the run's tables */
        } memory;
    } u;
};

struct sx_shared_plan;

/* A bound query: the plan's root gives the answer's columns in order, with their names. */
struct sx_query_plan {
    struct sx_arena arena;         /* owns everything below, */
    struct sx_shared_plan *shared; /* unless this does: then nothing below may be changed */
    struct sx_plan *root;
    int32_t n_materialized; /* ids are below */
    bool is_known;          /* made of what DuckDB planned when the query came before */
    bool names_files;       /* a scan is of files that are no table's stand-in */
    uint64_t text_hash;     /* once it is distributed: of its text, for ranks to compare */
};

void sx_query_plan_release(struct sx_query_plan *query);

/* A plan that several queries may run, at the same time, too. Takes `query` over, with one user, who calls
 * sx_shared_plan_release; NULL: no memory, and `query` is as it was. */
struct sx_shared_plan *sx_shared_plan_create(struct sx_query_plan *query);
/* One more user, who releases *out_query. */
void sx_shared_plan_use(struct sx_shared_plan *shared, struct sx_query_plan *out_query);
/* NULL may be released. */
void sx_shared_plan_release(struct sx_shared_plan *shared);

/* Tree drawing for --explain; text in `arena`. */
const char *sx_plan_text(struct sx_arena *arena, const struct sx_plan *plan);

#endif
