/* Hash join on the device, shared by join*.c.
 *
 * join_append keeps the workers' batches as they are, unless their rows claim slots at once (join_ahead.c).
 * join_finish orders them; join_build, whose only part it is, puts their keys behind each other, looks at the
 * keys' ranges, makes the table (launch_join.h has its form), and puts the payload where it stays. The
 * joining kernels read keys in the types they came in.
 *
 * A probe looks all rows of a batch up at its first call and keeps what it found for the calls that follow:
 * they only need the place of the cursor in there, which is one thread's binary search and one
 * synchronisation. */
#ifndef SX_BACKEND_CUDA_JOIN_H
#define SX_BACKEND_CUDA_JOIN_H

#include "backend/cuda/cuda.h"
#include "backend/cuda/gather.h"
#include "backend/cuda/launch_join.h"

/* Counters while a table is made; those from JOIN_BOUNDS on are bounds of keys. */
enum { JOIN_DUPLICATES = 1, JOIN_SLOTS, JOIN_BOUNDS = 8 };
#ifdef SX_CUDA_EMULATED
enum { JOIN_MOST_BOUNDS = 2 };
#else
enum { JOIN_MOST_BOUNDS = (CUDA_COUNTERS - JOIN_BOUNDS) / CUDA_JOIN_BOUNDS_WORDS };
#endif

/* Of a key's words; min > max: no row is valid. */
struct join_range {
    int64_t min, max;
    bool has_null;
};

struct join_batch {
    int64_t rows, ahead_row;   /* the first one's number, if the rows have slots already; else -1 */
    struct sx_tensor *columns; /* keys, then payload */
};

struct join_worker {
    struct join_batch *batches;
    int64_t n_batches, capacity;
    cudaEvent_t appended; /* NULL, or after what made the batches */
};

/* Open addressing while it is made. */
struct join_slots {
    struct cuda_join_table table;
    struct sx_buffer *slots;      /* what it points to */
    struct sx_buffer *of_rows;    /* int64_t [rows]: the slot of each, -1 where it matches nothing */
    struct sx_buffer *duplicates; /* int64_t; 0: none so far */
};

/* See join_ahead.c; where `room` is 0 there are no slots. */
struct join_ahead {
    pthread_mutex_t lock; /* of what follows, while batches are appended */
    int64_t expected;     /* rows; 0: not known */
    bool is_decided, is_ended;
    int64_t room, rows; /* rows that have their keys and slots here, or will */
    struct sx_tensor keys;
    struct sx_buffer *bounds; /* a cuda_join_bounds, of these keys */
    struct join_slots slots;
    cudaStream_t behind; /* where rows claim them */
    cudaEvent_t claimed; /* after all that was issued there */
};

/* What was found for the rows of a probe batch: either the rows that match, with one build row each, or sums
 * of the numbers of matches and where the runs begin. */
struct join_lookup {
    struct sx_tensor *keys; /* [n_keys], second owners; NULL: there is nothing */
    int64_t rows;
    bool is_first; /* one build row each: */
    struct sx_tensor index;
    struct sx_buffer *n_index; /* int64_t */
    struct sx_buffer *sums;    /* otherwise: int64_t [rows + 1] */
    struct sx_buffer *entries; /* int64_t [rows] */
};

/* What a join remembers of a stream that uses it. */
struct join_user {
    struct join_user *next;
    const struct cuda_stream *stream;
    struct join_lookup lookup;
    cudaEvent_t marked; /* NULL, or after its last join_mark */
};

struct join_users {
    pthread_mutex_t lock; /* of the list; a user is its stream's */
    struct join_user *first;
    atomic_bool finds_few;  /* of the last batch few rows matched */
    atomic_bool lacks_room; /* payload could not be taken at once */
};

/* Made when the first scan asks for it. */
struct join_filter {
    pthread_mutex_t lock;
    struct sx_buffer *words; /* NULL: not yet */
    uint64_t n_words;
};

struct sx_join {
    int n_keys, n_payload, n_workers;
    struct sx_type *types; /* keys, then payload */
    bool *null_equal;      /* [n_keys] */
    bool track_matches;
    struct join_worker *workers;
    struct join_users *users;
    struct join_filter *filter;
    struct join_ahead *ahead;

    /* set by join_finish */
    int64_t rows, n_batches;
    struct join_batch **batches; /* of all workers, in the order of their rows */
    int key_payload;             /* the column of payload that is the only key; -1: none is */

    /* set by join_build */
    struct join_range *ranges;         /* [n_keys] */
    struct sx_tensor *keys;            /* [n_keys], FLAT; before they are taken without values */
    struct sx_buffer *marks;           /* a byte per row */
    struct sx_tensor *payload;         /* [n_payload]; with payload_rows without values */
    struct sx_buffer *payload_rows;    /* NULL: payload has the values */
    uint32_t *rows_at, *rows_valid_at; /* [n_payload + 1]: bytes into a row; rows_valid_at 0: no nulls */
    uint32_t rows_step;                /* bytes of a row */
    bool lays_key;                     /* a row has the only key, where rows_at's last says */
    bool has_duplicates;
    struct cuda_join_table table;
    struct sx_buffer *key_list, *slots, *ranked, *row_of, *starts, *runs; /* what it points to */
};

/* ---- join.c ---- */

/* Whether the words of a key are its values, or, of UBIGINT, tell them. */
bool cuda_join_has_range(struct sx_type type);
/* What kernels get of key columns; *out_list (NULL where there is none) keeps the list. */
SX_MUST_CHECK enum sx_status cuda_join_keys_of(struct cuda_stream *stream, const struct sx_join *join,
                                               const struct sx_tensor *columns,
                                               struct cuda_join_keys *out_keys, struct sx_buffer **out_list);
/* The stream's own; it stays until the join is destroyed. */
SX_MUST_CHECK enum sx_status cuda_join_user(struct cuda_stream *stream, const struct sx_join *join,
                                            struct join_user **out_user);
void cuda_join_lookup_release(const struct sx_join *join, struct join_lookup *lookup);
/* The table with its filter, of a join with one key; any stream may use it. */
SX_MUST_CHECK enum sx_status cuda_join_filtered(struct cuda_stream *stream, const struct sx_join *join,
                                                struct cuda_join_table *out_table);
/* Column i of all batches, which leaves them; flat or coded, behind each other. */
SX_MUST_CHECK enum sx_status cuda_join_take_column(struct cuda_stream *stream, struct sx_join *join, int i,
                                                   struct sx_tensor *out);
/* The batches have it no more. */
void cuda_join_drop_column(struct sx_join *join, int i);
/* Memory of zeros, in stream order. */
SX_MUST_CHECK enum sx_status cuda_join_zeroed(struct cuda_stream *stream, size_t bytes,
                                              struct sx_buffer **out_buffer);
/* Lists the rows of each slot next to each other; slots: [rows], -1 for none. */
SX_MUST_CHECK enum sx_status cuda_join_make_runs(struct cuda_stream *stream, struct sx_join *join,
                                                 const int64_t *slots);
struct join_range cuda_join_range_of(const struct cuda_join_bounds *bounds);
/* Widens *bounds, on the device, by a column of key k. False: it has nothing that counts, and no kernel is
 * launched. */
bool cuda_join_note_range(cudaStream_t stream, const struct sx_join *join, int k,
                          const struct sx_tensor *column, struct cuda_join_bounds *bounds);
/* For up to `rows` rows, without keys; also in part where it fails. */
SX_MUST_CHECK enum sx_status cuda_join_slots_create(struct cuda_stream *stream, int64_t rows,
                                                    struct join_slots *out_slots);
/* Other streams use them, too. */
void cuda_join_slots_share(struct cuda_stream *stream, const struct join_slots *slots);
void cuda_join_slots_release(struct join_slots *slots);
/* Whether the only key is DICT with fewer entries than `rows`, so that these are looked up. */
bool cuda_join_is_coded(const struct sx_join *join, const struct sx_tensor *keys, int64_t rows);

/* ---- join_ahead.c ---- */

struct join_ahead *cuda_join_ahead_create(void); /* NULL: no memory */
void cuda_join_ahead_destroy(struct join_ahead *ahead);
/* Sets the batch's ahead_row where its rows get slots. `appended`: after what made the batch. */
SX_MUST_CHECK enum sx_status cuda_join_claim_ahead(struct cuda_stream *stream, struct sx_join *join,
                                                   struct join_batch *batch, cudaEvent_t appended);
/* The stream waits for all claims; the rows' keys are as many as have slots. */
SX_MUST_CHECK enum sx_status cuda_join_end_ahead(struct cuda_stream *stream, struct sx_join *join);
/* Waits for all claims where nothing has been told to do so. */
void cuda_join_settle_ahead(struct join_ahead *ahead);
/* Of the keys of all rows that have slots; waits for it. */
SX_MUST_CHECK enum sx_status cuda_join_range_ahead(struct cuda_stream *stream, const struct sx_join *join,
                                                   struct join_range *out_range);
/* Whether all rows of the build side have slots, or will once they have claimed them. */
bool cuda_join_are_ahead(const struct sx_join *join);
/* Slots with room for all rows, of which the first *out_rows have claimed theirs; false: there are none, or
 * for too few rows, and these are released. */
bool cuda_join_take_ahead(struct sx_join *join, struct join_slots *out_slots, int64_t *out_rows);
void cuda_join_drop_ahead(struct join_ahead *ahead);

/* ---- join_rows.c ---- */

/* Sets key_payload, while the batches have their keys. */
void cuda_join_find_key_payload(struct sx_join *join);

/* The payload of all batches leaves them, or gets room to lie in rows where these pay, if it has at least so
 * many columns. Who reads it waits for the stream first. */
SX_MUST_CHECK enum sx_status cuda_join_prepare_payload(struct cuda_stream *stream, struct sx_join *join,
                                                       int least_columns);
/* Whether prepared payload can have another order than that of appending. */
bool cuda_join_can_order(const struct sx_join *join);
/* Lays prepared payload into rows, where it has room for them; places: of each row (NULL: as appended). */
SX_MUST_CHECK enum sx_status cuda_join_lay_payload(struct cuda_stream *stream, struct sx_join *join,
                                                   const int64_t *places);

/* Column k of the payload, from the rows or from itself. */
SX_MUST_CHECK enum sx_status cuda_join_add_payload(struct gather *gather, const struct sx_join *join, int k,
                                                   struct sx_tensor *out_column);

/* ---- join_ranked.c ---- */

/* Whether the only key's words are few enough for ranks. Where they are not, those of a wider range of no
 * more rows are not either, unless rows are too many for ranks. */
bool cuda_join_is_dense(const struct sx_join *join, const struct join_range *range, int64_t rows);
/* Sets the table, the payload and has_duplicates. */
SX_MUST_CHECK enum sx_status cuda_join_make_ranked(struct cuda_stream *stream, struct sx_join *join);

#endif
