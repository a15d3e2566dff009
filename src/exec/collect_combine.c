/* Small batches that are kept, put together on a device: each costs whoever reads it as many calls, and as
 * many waits, as a large one does. */
#include "exec/operators.h"

enum { ENOUGH_ROWS = 1 << 20 };

/* Where there are several ranks: in the order of all, their batches of a pipeline come in front of the next
 * pipeline's. */
static bool are_of_one_pipeline(const struct sx_collector *collector, int64_t a, int64_t b) {
    const int64_t *places = collector->sequences;
    return !places || sx_pipeline_of_place(places[a]) == sx_pipeline_of_place(places[b]);
}

/* So many batches from `first` on go together. */
static int64_t count_together(const struct sx_collector *collector, int64_t first) {
    int64_t n = 0, rows = 0;
    while (first + n < collector->n_batches && are_of_one_pipeline(collector, first, first + n) &&
           (rows += collector->batches[first + n].rows) <= (int64_t)ENOUGH_ROWS)
        n++;
    return n < 1 ? 1 : n;
}

/* Batches that there is no memory for stay as they are. */
static enum sx_status combine(struct sx_collector *collector, struct sx_worker *worker, int64_t first,
                              int64_t n) {
    struct sx_batch made = {0};
    const enum sx_status status = sx_batches_concat(worker, collector->types, collector->n_columns,
                                                    &collector->batches[first], n, SX_CONCAT_CODED, &made);
    if (sx_lacks_memory(worker, status))
        return SX_OK;
    SX_TRY(status);
    for (int64_t i = 0; i < n; i++)
        sx_batch_release(&collector->batches[first + i]);
    collector->batches[first] = made;
    return SX_OK;
}

static void close_gaps(struct sx_collector *collector) {
    int64_t n = 0;
    for (int64_t i = 0; i < collector->n_batches; i++) {
        if (collector->batches[i].rows == 0) {
            sx_batch_release(&collector->batches[i]);
        } else if (n++ < i) {
            collector->batches[n - 1] = collector->batches[i];
            if (collector->sequences)
                collector->sequences[n - 1] = collector->sequences[i];
        }
    }
    collector->n_batches = n;
}

enum sx_status sx_collector_combine(struct sx_collector *collector, struct sx_worker *worker) {
    enum sx_status status = SX_OK;
    for (int64_t first = 0, n; first < collector->n_batches && status == SX_OK; first += n) {
        n = count_together(collector, first);
        if (n > 1)
            status = combine(collector, worker, first, n);
    }
    close_gaps(collector);
    return status;
}
