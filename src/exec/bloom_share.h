/* What ranks have put into a bloom filter, for all of them. */
#ifndef SX_EXEC_BLOOM_SHARE_H
#define SX_EXEC_BLOOM_SHARE_H

#include "exec/run.h"

/* Words of a filter: [first, first + n). */
struct bloom_span {
    int64_t first, n;
};

/* Collective: adds each other rank's span, as it is there, to the words, and gives the own one to all.
 * `spans`: by rank; all ranks' words are as many, and in place when the call returns. Small spans, and all
 * without a link between devices, go by way of the host's memory. With `is_optional`, the same on all ranks,
 * it goes on where pools have no memory: a rank without words (length 0) gives no span and merges none; of a
 * span that there is no memory for, there or here, all bits are set; where that is not possible either the
 * words are released. */
SX_MUST_CHECK enum sx_status bloom_share(struct sx_worker *worker, const struct bloom_span *spans,
                                         bool is_optional, struct sx_tensor *words);

#endif
