/* Several dictionaries made one. */
#ifndef SX_BACKEND_CPU_MOVE_UNIFY_H
#define SX_BACKEND_CPU_MOVE_UNIFY_H

#include "backend/cpu/move.h"

/* Distinct strings, numbered as they come, with bytes of their own. Memory is from the stream's pool. Starts
 * zeroed, may be released zeroed. */
struct sx_unified {
    struct sx_string *strings; /* [capacity], `n` of them set */
    int32_t n, capacity;
    int32_t *slots; /* [n_slots], by hash: number + 1, 0: empty */
    int64_t n_slots;
    struct sx_string_heap heap;
    /* of the dictionary met last: numbers of its entries, -1 where not asked for yet */
    uint64_t dict_id;
    int32_t *numbers; /* [n_numbers] */
    int64_t n_numbers;
};

/* So many distinct strings are worth codes for `rows` rows. */
int32_t sx_unified_limit(int64_t rows);

/* Numbers of the rows of a VARCHAR column; those of null rows are 0. Only entries that rows use are added;
 * rows of a FLAT column are looked up one by one. *out_fits is false, and out_numbers undefined, when there
 * would be more than `limit` strings. */
SX_MUST_CHECK enum sx_status sx_unified_recode(struct sx_stream *stream, struct sx_unified *unified,
                                               const struct sx_tensor *column, int32_t limit,
                                               int32_t *out_numbers, bool *out_fits);
/* out_numbers[from->n]: what the strings of `from` are in `unified`. */
SX_MUST_CHECK enum sx_status sx_unified_merge(struct sx_stream *stream, struct sx_unified *unified,
                                              const struct sx_unified *from, int32_t limit,
                                              int32_t *out_numbers, bool *out_fits);
/* A dictionary whose codes are the numbers. */
SX_MUST_CHECK enum sx_status sx_unified_dict(struct sx_stream *stream, const struct sx_unified *unified,
                                             struct sx_dict **out_dict);
void sx_unified_release(struct sx_pool *pool, struct sx_unified *unified);

#endif
