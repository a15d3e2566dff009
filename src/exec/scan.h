/* Inside of the scan operator: its filter steps (scan_step.c), row groups and decoding (scan_decode.c),
 * chunks (scan.c). */
#ifndef SX_EXEC_SCAN_H
#define SX_EXEC_SCAN_H

#include "exec/operators.h"

/* One thing that drops rows: a conjunct of the query or a join's runtime filter. What it costs and what it
 * drops is measured while running, and the steps are taken in the order of their worth. */
struct scan_step {
    int32_t *columns; /* read by it */
    int32_t n_columns;
    struct sx_evaluator conjunct; /* unless join is set */
    bool fallible;                /* the conjunct may raise an error */
    bool is_wide;                 /* a guess: some row of every batch passes the conjunct */
    struct sx_join_build *join;
    const int32_t *keys; /* columns of the join's keys */
    enum sx_filter_reach reach;
    bool is_near; /* the join's table tells of rows with keys from `least` to `most`, and of no others, */
    int64_t least, most;        /* unless all ranks have all of it */
    struct sx_evaluator others; /* near: of the key, and whether the table has it: whether the row passes */
    bool is_off;                /* it needs a filter that the join does not have */
    atomic_int_fast64_t rows_in;
    atomic_int_fast64_t rows_out;
    atomic_int_fast64_t nanoseconds;
};

/* Rows of one chunk while they are filtered. */
struct scan_chunk {
    int64_t chunk_rows;         /* rows of the chunk in the file */
    int64_t rows;               /* left */
    struct sx_tensor selection; /* their positions in the chunk; length -1: all */
    struct sx_batch columns;    /* all of the scan's columns; those decoded hold `rows` rows */
    bool *decoded;
};

/* Rows of a row group that are in a chunk. */
struct scan_segment {
    int group; /* index into the worker's */
    int64_t first, rows;
};

/* Row groups that a worker has taken. */
struct scan_taken {
    struct sx_row_group *first; /* NULL: none */
    struct sx_row_group **groups;
    int n_groups;
    struct sx_decoder **decoders;  /* one a row group and column, made when first read */
    struct scan_segment *segments; /* room for a chunk's, and for the parts of a decoding */
    struct sx_decode_part *parts;
};

struct scan_worker {
    struct scan_taken now, next; /* in work, and what may come to the device meanwhile */
    int group, range;            /* where the next chunk begins */
    int64_t row;
    int n_segments;               /* of the chunk */
    struct sx_column_read *reads; /* scratch of a decoding: a read for each column, its column */
    int32_t *read_columns;
    int32_t *order; /* steps in the order in which this worker takes them */
    int32_t n_order;
    int32_t *bring; /* scratch: columns */
    struct scan_chunk work;
};

struct sx_scan_source {
    struct sx_source source;
    const struct sx_plan *plan;
    struct sx_scan *scan;
    int64_t chunk_rows;
    bool joins_groups; /* a chunk may be of several row groups */
    bool brings_ahead; /* what is decoded later may come to the device meanwhile */
    struct scan_step *steps;
    int32_t n_steps;
    bool *projected;             /* per column */
    bool never;                  /* a join that filters it has no rows: nothing comes */
    atomic_int_fast64_t n_tried; /* chunks of which some rows were to pass a first step, */
    atomic_int_fast64_t n_empty; /* and those of which none did */
    struct scan_worker *workers;
};

/* ---- scan_decode.c ---- */

/* The next row groups; none are left where state->now.first is NULL afterwards. */
SX_MUST_CHECK enum sx_status scan_take_batch(struct sx_scan_source *scan, struct sx_worker *worker,
                                             struct scan_worker *state);
/* Fills state->next for scan_take_batch, or leaves it: see sx_scan_next_early. */
SX_MUST_CHECK enum sx_status scan_take_early(struct sx_scan_source *scan, struct sx_worker *worker,
                                             struct scan_worker *state);
void scan_drop_batch(struct sx_scan_source *scan, struct sx_worker *worker, struct scan_taken *batch);
/* The columns' bytes may begin to come to the device, for all of the batch. */
SX_MUST_CHECK enum sx_status scan_bring(struct sx_scan_source *scan, struct sx_worker *worker,
                                        struct scan_taken *batch, const int32_t *columns, int32_t n_columns);
/* Takes rows of the batch for the next chunk, and tells how many; 0: the batch is through. */
int64_t scan_next_chunk(const struct sx_scan_source *scan, struct scan_worker *state);
/* Whether all values of the column in the chunk are in [least, most], or NULL and are_nulls. */
bool scan_chunk_is_within(const struct scan_worker *state, int32_t column, int64_t least, int64_t most,
                          bool are_nulls);
/* Whether it will tell of some. */
bool scan_has_chunk(const struct scan_worker *state);
/* Number of the chunk's first row in the table. */
int64_t scan_chunk_sequence(const struct scan_worker *state);
/* Decodes columns for the rows that are left of the chunk, unless that is done. */
SX_MUST_CHECK enum sx_status scan_decode(struct sx_scan_source *scan, struct sx_worker *worker,
                                         struct scan_worker *state, const int32_t *columns,
                                         int32_t n_columns);

/* ---- scan_step.c ---- */

/* Steps from the plan's filters and the runtime filters. */
SX_MUST_CHECK enum sx_status scan_steps_create(struct sx_scan_source *scan, struct sx_run *run,
                                               const struct sx_runtime_filter *filters, int n_filters,
                                               struct sx_error *error);
/* Whether some row of each of so many batches is likely to pass. The join, if it is one's, is built. */
bool scan_step_passes_some(const struct scan_step *step, int64_t n_batches);
/* It looks at the join's bloom filter, which its table can't stand in for. */
bool scan_step_needs_bloom(const struct scan_step *step);
/* Sets worker->order by what has been measured so far; steps that drop next to nothing are left out if they
 * may be. */
void scan_steps_order(struct sx_scan_source *scan, struct scan_worker *state);
/* Rows of the chunk that pass: I32 positions among the rows that are left. */
SX_MUST_CHECK enum sx_status scan_step_select(struct scan_step *step, struct sx_worker *worker,
                                              const struct scan_worker *state,
                                              struct sx_tensor *out_selection);

#endif
