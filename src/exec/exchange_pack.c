/* Whether an exchange's frames are packed: a sender's own matter, since a frame tells how it is packed. By
 * default that depends on the link to other hosts. Within a host bytes are moved by processors, as fast as
 * they could be packed. */
#include "base/clock.h"
#include "exec/exchange.h"

enum {
    LOOK_NS = 20000000, /* from one look at the pace to the next */
    MARGIN = 2,         /* a byte is worth so many times less than its time on the way */
    BUSY = 2            /* the network is the bound if it would be busy for 1 / BUSY of the time */
};
static const double new_worth = 1.5; /* times the former one, or less: worth choosing anew */

/* What a byte less is worth, in nanoseconds of one worker; 0: packing would not pay, because the network
 * waits for the workers (seen since the last look). */
static double worth_of(const struct sx_exchange *exchange, const struct sx_worker *worker,
                       const struct exchange_packing *packing, const struct sx_net_pace *pace,
                       int64_t now_ns) {
    const double busy_ns = (double)(pace->busy_ns - packing->pace.busy_ns);
    const double plain = (double)exchange->plain_bytes, packed = (double)exchange->packed_bytes;
    const double would_be_busy_ns = packed > 0 ? busy_ns * plain / packed : busy_ns;
    if (would_be_busy_ns * BUSY < (double)(now_ns - packing->looked_ns))
        return 0;
    return pace->ns_a_byte * worker->run->n_workers / MARGIN;
}

/* Looks now and then. */
static void look(const struct sx_exchange *exchange, const struct sx_worker *worker,
                 struct exchange_packing *packing) {
    const int64_t now_ns = sx_clock_ns();
    if (now_ns - packing->looked_ns < LOOK_NS)
        return;
    const struct sx_net_pace pace = sx_net_pace(worker->run->options.net, SX_NET_OTHER_HOSTS);
    const double worth =
        packing->looked_ns ? worth_of(exchange, worker, packing, &pace, now_ns) : packing->worth;
    packing->looked_ns = now_ns;
    packing->pace = pace;
    packing->is_on = worth > 0;
    if (worth > packing->worth * new_worth || worth < packing->worth / new_worth)
        packing->worth = worth;
}

struct exchange_packing *exchange_packing_for(struct sx_exchange *exchange, struct sx_worker *worker,
                                              int rank) {
    const struct sx_net *net = worker->run->options.net;
    const int own_host = sx_net_host(net, exchange->rank);
    bool to_other_hosts = sx_net_host(net, rank) != own_host;
    if (exchange->compression == SX_COMPRESSION_OFF)
        return NULL;
    for (int r = 0; exchange->mode == EXCHANGE_TO_ALL && r < exchange->n_ranks; r++)
        to_other_hosts = to_other_hosts || sx_net_host(net, r) != own_host;
    struct exchange_packing *packing = &exchange->workers[worker->index].packing[to_other_hosts];
    if (exchange->compression == SX_COMPRESSION_ON) {
        packing->is_on = true;
        packing->worth = SX_WIRE_FEWEST;
    } else if (to_other_hosts) {
        look(exchange, worker, packing);
    }
    return packing->is_on ? packing : NULL;
}

enum sx_status exchange_pack(struct sx_exchange *exchange, struct sx_worker *worker,
                             struct exchange_packing *packing, const struct sx_batch *batch,
                             const int32_t *rows, int64_t n_rows, size_t plain_bytes, const void **out_frame,
                             size_t *out_bytes) {
    if (!packing->packer)
        SX_TRY(sx_wire_packer_create(worker->run->options.pool, batch->n_columns, &packing->packer,
                                     sx_worker_error(worker)));
    sx_wire_packer_set_worth(packing->packer, packing->worth);
    return sx_wire_packer_pack(packing->packer, batch, rows, n_rows, exchange_place(exchange, worker),
                               plain_bytes, out_frame, out_bytes, sx_worker_error(worker));
}

void exchange_packing_release(struct exchange_worker *state) {
    for (int i = 0; i < 2; i++) {
        sx_wire_packer_destroy(state->packing[i].packer);
        state->packing[i] = (struct exchange_packing){0};
    }
}
