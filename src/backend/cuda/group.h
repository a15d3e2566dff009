/* The group by on the host's side.
 *
 * Groups are numbered from 0 in the order in which they came. Everything about them is in arrays by number:
 * keys, hashes, and one to three arrays for each aggregate. One hash table finds the number from the keys,
 * but where batches come in the order of theirs (group_runs.c); all workers share it, one update at a time.
 *
 * Device bytes per group: hash 8 (until the end), slots 16 to 32 (the load is at most a half, with all of a
 * batch's rows counted as groups), per key its width (strings: 16 and their bytes beyond 12) and 1; COUNT 8;
 * SUM of integers 17, of 128 bits 25, of floating point 4 and 8 for each word (mostly 3); AVG 8 more, less 1
 * for integers; MIN and MAX to 64 bits 9, others and FIRST and ANY_VALUE the width and 5. Arrays have up to
 * twice (large ones 1.5 times) the room, and while one grows its old copy is there too. So 10^8 groups of one
 * BIGINT key with a SUM and a COUNT are 42 B and slots of 21 to 43 B each: 6.3 to 8.5 GB, at most half as
 * much again of spare room. */
#ifndef SX_BACKEND_CUDA_GROUP_H
#define SX_BACKEND_CUDA_GROUP_H

#include "backend/cuda/cuda.h"
#include "backend/cuda/launch_group.h"

/* An array with one element for each group. */
struct cuda_group_array {
    struct sx_buffer *buffer; /* with the elements; others that have grown with them may be in it, too */
    void *data;               /* the first element; NULL without a buffer */
    size_t width;             /* bytes of an element; 0: the array is not used */
};

struct cuda_group_key_store {
    struct sx_type type;
    struct cuda_group_array values;
    struct cuda_group_array valid;
};

/* Kinds of states. KEPT: values of 128 bits, strings, FIRST and ANY_VALUE. */
enum cuda_group_kind { CUDA_GROUP_COUNT, CUDA_GROUP_SUM, CUDA_GROUP_BEST, CUDA_GROUP_KEPT };

struct cuda_group_aggregate {
    struct sx_aggregate_spec spec;
    enum sx_phys phys;
    enum cuda_group_kind kind;
    struct cuda_group_array states; /* counts; words of sums; images; values */
    struct cuda_group_array counts; /* AVG */
    struct cuda_group_array seen;   /* see launch_group.h; not for COUNT */
    struct cuda_group_array winners;
    int32_t first_word; /* of a floating-point sum */
    int range;          /* of a floating-point sum: which pair of counters; else -1 */
};
enum { CUDA_GROUP_STATE_ARRAYS = 4 };

/* Keys from `least` to `most` that batches in order have brought, and the groups of these two. */
struct cuda_group_stretch {
    int64_t least, most;
    int64_t least_group, most_group;
};
enum cuda_group_order { CUDA_GROUP_ORDER_UNKNOWN, CUDA_GROUP_IN_ORDER, CUDA_GROUP_NOT_IN_ORDER };

struct sx_group {
    pthread_mutex_t lock; /* held during an update */
    /* The last update's: its groups are in the table; it has added to them. The next one's stream waits for
     * each before it does the same: while rows are added, those of the next batch are looked up. */
    cudaEvent_t found, added;
    /* Of an update that failed half-way: the table may lead into its batch. All later ones fail with it, too,
     * so that the query's error is this one, whichever worker is the first to report. */
    struct sx_error failure;
    int n_keys;
    struct cuda_group_key_store *keys;
    int n_aggregates;
    struct cuda_group_aggregate *aggregates;
    int64_t n_groups;
    int64_t key_capacity, state_capacity; /* elements that the arrays have room for */
    int64_t most_expected;                /* groups for which memory is taken before they are there */
    double rows_left;                     /* that are expected after this update */
    _Atomic(int64_t) rows_waiting;        /* of them, those of updates that wait for this one */
    double new_share;                     /* of the last update's rows, those that made a group */
    struct cuda_group_array hashes;
    struct sx_buffer *slots;
    int64_t n_slots; /* 0 or a power of two; 0 while groups come in order */
    /* group_runs.c */
    _Atomic(enum cuda_group_order) order;
    struct cuda_group_stretch *stretches; /* ascending, no two meet */
    int n_stretches;
    int64_t room_stretches;
    /* bytes of strings: blocks, the last of which has room */
    struct sx_buffer **blocks;
    int n_blocks;
    size_t block_used;
    /* heaps of batches, each once, that strings of keys lead into */
    struct sx_buffer **kept;
    int n_kept;
    size_t kept_bytes;
    struct sx_buffer *heap; /* all blocks and what is kept, from finish on */
};

/* Counters of an update; pairs of ranges are at CUDA_GROUP_RANGES and on. */
enum {
    CUDA_GROUP_NEW,
    CUDA_GROUP_KEY_BYTES,
    CUDA_GROUP_KEPT_BYTES,
    CUDA_GROUP_USED_BYTES,
    CUDA_GROUP_RANGES,
    CUDA_GROUP_N_RANGES = (CUDA_COUNTERS - CUDA_GROUP_RANGES) / 2
};

/* ---- group.c ---- */

/* Arrays that are to grow. Starts zeroed. */
enum { CUDA_GROUP_GROWING = CUDA_COPIES / 2 };
struct cuda_group_growth {
    struct cuda_group_array *array;
    size_t used_bytes, bytes;
    bool is_zeroed;
};
struct cuda_group_growing {
    struct cuda_group_growth of[CUDA_GROUP_GROWING];
    int n;
    size_t bytes; /* of all of them */
};
/* Notes it: room for `capacity` elements, of which `used` are kept; the others are zeroed if wanted, where
 * the old ones take a multiple of 8 bytes. Where there are too many or too large ones for one buffer, those
 * noted before grow now. */
SX_MUST_CHECK enum sx_status cuda_group_array_grow(struct cuda_stream *stream, struct cuda_group_array *array,
                                                   int64_t used, int64_t capacity, bool zeroed,
                                                   struct cuda_group_growing *growing);
/* All that are noted grow, into one buffer and by one kernel, or none; none is noted then. */
SX_MUST_CHECK enum sx_status cuda_group_grow_noted(struct cuda_stream *stream,
                                                   struct cuda_group_growing *growing);
/* Groups that there will be if the rows that are left, or at least those that wait, make as many as the last
 * ones did, but up to 64 times as many as there are; not above `needed` where they would take more than 1/16
 * of the device's memory. */
int64_t cuda_group_expected(const struct sx_group *group, int64_t needed);
/* The capacity for `needed` elements, of `expected` in the end, where there are `capacity`: the same, or
 * larger by a good part, and of few different sizes, so that memory is found again. */
int64_t cuda_group_capacity(int64_t capacity, int64_t needed, int64_t expected);
typedef enum sx_status cuda_group_grow_some(struct cuda_stream *stream, struct sx_group *group,
                                            int64_t capacity, struct cuda_group_growing *growing);
/* Makes room for `n_groups` by `grow` where `capacity` is too small: for those that are expected, or, where
 * there is not that much memory, for fewer. */
SX_MUST_CHECK enum sx_status cuda_group_grow(struct cuda_stream *stream, struct sx_group *group,
                                             int64_t capacity, int64_t n_groups, cuda_group_grow_some *grow);
/* Room for the states of all groups. */
SX_MUST_CHECK enum sx_status cuda_group_grow_states(struct cuda_stream *stream, struct sx_group *group,
                                                    int64_t n_groups);
/* Work that the stream gets from now on comes after the event, which is one of the group's two. The caller
 * holds the lock, as below. */
SX_MUST_CHECK enum sx_status cuda_group_follow(struct cuda_stream *stream, cudaEvent_t event);
/* The event is there once the stream has done what it has got. */
SX_MUST_CHECK enum sx_status cuda_group_tell(struct cuda_stream *stream, cudaEvent_t *event);
/* `bytes` that stay where they are until the group is destroyed. */
SX_MUST_CHECK enum sx_status cuda_group_heap_alloc(struct cuda_stream *stream, struct sx_group *group,
                                                   size_t bytes, char **out_memory);
struct cuda_group_sum cuda_group_sum_of(const struct cuda_group_aggregate *aggregate);
bool cuda_group_is_float(const struct cuda_group_aggregate *aggregate);

/* ---- group_table.c: group numbers of a batch's rows ---- */

struct cuda_group_search {
    const struct sx_tensor *keys;
    int64_t rows;
    struct cuda_group_numbers numbers; /* the result */
    struct sx_buffer *numbers_buffer;
    struct sx_buffer *new_rows; /* int32_t; where runs begin */
    struct sx_buffer *flags;    /* of rows where they do */
    struct sx_buffer **hashes;  /* of dictionaries' entries, by key */
    bool *borrowed;             /* by key: see group_strings.c */
};

/* Issues the search. Its counters are there after the caller's cuda_sync. */
SX_MUST_CHECK enum sx_status cuda_group_search_begin(struct cuda_stream *stream, struct sx_group *group,
                                                     struct cuda_group_search *search);
/* Makes the new groups. */
SX_MUST_CHECK enum sx_status cuda_group_search_end(struct cuda_stream *stream, struct sx_group *group,
                                                   struct cuda_group_search *search);
/* Makes groups of these rows, which no table tells of. */
SX_MUST_CHECK enum sx_status cuda_group_append(struct cuda_stream *stream, struct sx_group *group,
                                               const struct cuda_group_search *search,
                                               const int32_t *new_rows, int64_t n_new);
void cuda_group_search_release(const struct sx_group *group, struct cuda_group_search *search);

/* ---- group_runs.c: group numbers without a table, as long as batches come in the order of their key ---- */

struct cuda_group_order_of_batch {
    bool is_known; /* else nothing was looked for */
    bool is_ascending;
    bool are_short; /* see struct cuda_group_runs */
    int64_t n_runs;
    int64_t least, most; /* keys */
};

/* Whether the rows come in the order of their key, and where runs of equal ones begin. Waits for the stream,
 * in front of the caller's turn. */
SX_MUST_CHECK enum sx_status cuda_group_find_runs(struct cuda_stream *stream, const struct sx_group *group,
                                                  struct cuda_group_search *search,
                                                  struct cuda_group_order_of_batch *out_order);
/* The caller's turn: the numbers, if the batch's keys are between those of others or meet them at an end;
 * *out_taken false: they are not, and a table will be needed from now on. */
SX_MUST_CHECK enum sx_status cuda_group_take_runs(struct cuda_stream *stream, struct sx_group *group,
                                                  struct cuda_group_search *search,
                                                  const struct cuda_group_order_of_batch *order,
                                                  bool *out_taken);

/* ---- group_strings.c; `borrowed` is by key ---- */

/* Of which keys new groups' strings may stay where `keys` have them. The array is the caller's to free. */
SX_MUST_CHECK enum sx_status cuda_group_choose_borrowed(struct cuda_stream *stream,
                                                        const struct sx_group *group,
                                                        const struct sx_tensor *keys, bool **out_borrowed);
/* Whether there are strings of others. */
bool cuda_group_copies_strings(const struct sx_group *group, const bool *borrowed);
/* There are new groups: what their strings lead into is kept. */
SX_MUST_CHECK enum sx_status cuda_group_borrow_strings(struct cuda_stream *stream, struct sx_group *group,
                                                       const struct sx_tensor *keys, const bool *borrowed);
/* Copies those of the `n_new` groups from group->n_groups on, `bytes` in all, to the group's heap. */
SX_MUST_CHECK enum sx_status cuda_group_copy_strings(struct cuda_stream *stream, struct sx_group *group,
                                                     const bool *borrowed, int64_t n_new, size_t bytes);
/* Makes group->heap; NULL where there are no strings. */
SX_MUST_CHECK enum sx_status cuda_group_join_heaps(struct cuda_stream *stream, struct sx_group *group);

#endif
