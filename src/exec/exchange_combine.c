/* Small batches put together behind an exchange on a device. Of a batch that n ranks share out each gets n-th
 * parts, and behind the next exchange n-th parts of those; each costs a device as many calls, and as many
 * waits, as a large batch does. */
#include "exec/exchange.h"

enum { ENOUGH_ROWS = 512 << 10 };

int64_t exchange_enough_rows(const struct sx_exchange *exchange, const struct sx_worker *worker) {
    const struct sx_backend_traits *traits = &worker->stream->backend->traits;
    if (exchange->mode != EXCHANGE_TO_HASH || exchange->is_blocking || traits->is_host)
        return 0;
    return traits->chunk_rows < ENOUGH_ROWS ? traits->chunk_rows : ENOUGH_ROWS;
}

bool exchange_put_by(struct exchange_few *few, int64_t enough_rows, struct sx_batch *batch,
                     int64_t sequence) {
    if (few->n == 0 && batch->rows >= enough_rows / 2)
        return false;
    if (few->n == 0)
        few->sequence = sequence;
    few->rows += batch->rows;
    few->batches[few->n++] = *batch;
    *batch = (struct sx_batch){0};
    return true;
}

bool exchange_has_enough(const struct exchange_few *few, int64_t enough_rows) {
    return few->n == EXCHANGE_MOST_FEW || few->rows >= enough_rows;
}

void exchange_few_release(struct exchange_few *few) {
    for (int i = 0; i < few->n; i++)
        sx_batch_release(&few->batches[i]);
    few->n = 0;
    few->rows = 0;
}

enum sx_status exchange_combine(struct sx_exchange *exchange, struct sx_worker *worker,
                                struct sx_batch *out_batch) {
    struct exchange_few *few = &exchange->workers[worker->index].few;
    enum sx_status status = SX_OK;
    worker->sequence = few->sequence;
    if (few->n == 1) {
        *out_batch = few->batches[0];
        few->n = 0;
    } else {
        status = sx_batches_concat(worker, exchange->types, exchange->plan->n_columns, few->batches, few->n,
                                   SX_CONCAT_CODED, out_batch);
    }
    exchange_few_release(few);
    return status;
}
