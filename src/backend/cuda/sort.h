/* Sorting, shared by sort_*.c. See launch_sort.h for the keys' words.
 *
 * Rows are put in order by their first word in which any differ, then those that are still tied by the next
 * such word, and so on: a round. Only the bits of the word that differ are looked at, together with the
 * number of the rows' tie above them. Keys whose ranges take at most 64 bits together need one round. Few
 * rows are sorted by comparing them instead. */
#ifndef SX_BACKEND_CUDA_SORT_H
#define SX_BACKEND_CUDA_SORT_H

#include "backend/cuda/cuda.h"
#include "backend/cuda/launch_sort.h"

/* Words of some keys over `rows` rows. The tensors that it was opened with must stay. Starts zeroed and may
 * be closed zeroed. */
struct cuda_sort_plan {
    int64_t rows;
    struct cuda_sort_words words; /* no parts: all rows are equal */
    struct sx_buffer *parts;      /* behind words.parts */
    struct sx_buffer **ranks;     /* n_ranks, from malloc: of dictionaries */
    int n_ranks;
};

/* Up to how many rows are sorted by comparing them (sort_few.cu): STACHIO_SORT_FEW_ROWS, or a number of its
 * own. */
void cuda_sort_choose(struct cuda_device *device);

/* `rows` > 0. Synchronises. */
SX_MUST_CHECK enum sx_status cuda_sort_open(struct cuda_stream *stream, const struct sx_tensor *keys,
                                            const struct sx_sort_key *orders, int n_keys, int64_t rows,
                                            struct cuda_sort_plan *out_plan);
void cuda_sort_close(struct cuda_sort_plan *plan);

/* The first `limit` (1 to plan->rows) rows in order: I64. */
SX_MUST_CHECK enum sx_status cuda_sort_order(struct cuda_stream *stream, const struct cuda_sort_plan *plan,
                                             int64_t limit, struct sx_tensor *out_order);

#endif
