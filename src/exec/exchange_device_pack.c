/* Whether frames of a device are packed: where the link is the bound, and the bytes that need not travel are
 * worth more than what packing and unpacking move in the device's memory. (Not by the time that packing takes
 * on the host's clock: packing waits for the device, and so for all that was asked of it before.) And which
 * columns of large batches are NARROW where they are not packed: all that can be, since to make offsets and
 * to add the base again moves no more bytes in both devices' memories than values do that are as wide
 * everywhere. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "exec/exchange.h"
#include "tensor/rows.h"

enum {
    LOOK_NS = 5000000,  /* from one look at the pace to the next */
    BUSY = 2,           /* the link is the bound if it would be busy for 1 / BUSY of the time */
    A_BATCH_NS = 50000, /* what a batch's packing takes however few rows it has: its sizes come to the host */
    LEAST_ROWS = 8192   /* of a batch that tells something */
};
/* A byte is worth less than its time on the way by this factor. Links are far above or far below the border,
 * and a fast one's pace may be that of short messages. */
static const double margin = 3;
/* Kernels that pack reach about this part of the memory's best rate. */
static const double kernels_reach = 0.33;
/* Of a byte that is packed to nothing, in all: read twice in place of once, its order read again, and written
 * once more by the receiver. A packed byte is read once more by each. */
static const double moved_a_plain_byte = 1.5, moved_a_packed_byte = 2;
/* Before any were packed. */
static const double guessed_ratio = 0.5;
/* Where a device does not tell. */
static const double guessed_rate = 1e12;

void exchange_device_packing_init(struct exchange_device_packing *packing) {
    pthread_mutex_init(&packing->lock, NULL);
}

void exchange_device_packing_release(struct exchange_device_packing *packing) {
    pthread_mutex_destroy(&packing->lock);
    free(packing->narrow);
}

static enum sx_net_way way_of(const struct sx_exchange *exchange, const struct sx_worker *worker) {
    const struct sx_net *net = worker->run->options.net;
    if (sx_net_has_link(net))
        return SX_NET_LINK;
    for (int r = 0; r < exchange->n_ranks; r++)
        if (sx_net_host(net, r) != sx_net_host(net, exchange->rank))
            return SX_NET_OTHER_HOSTS;
    return SX_NET_OWN_HOST;
}

static double ratio(const struct exchange_device_packing *packing) {
    return packing->row_bytes[1] > 0 ? packing->row_bytes[1] / packing->row_bytes[0] : guessed_ratio;
}

static bool pays(const struct exchange_device_packing *packing, double ns_a_byte, double memory_ns_a_byte) {
    const double packed = ratio(packing), moved = moved_a_plain_byte + packed * moved_a_packed_byte;
    return (1 - packed) * ns_a_byte / margin > moved * memory_ns_a_byte / kernels_reach;
}

/* Since the last look, or by what it would have been without packing. */
static bool is_bound(const struct exchange_device_packing *packing, const struct sx_net_pace *pace,
                     int64_t now_ns) {
    double busy_ns = (double)(pace->busy_ns - packing->pace.busy_ns);
    if (packing->is_on && !packing->went_plain)
        busy_ns /= ratio(packing);
    return busy_ns * BUSY >= (double)(now_ns - packing->looked_ns);
}

void exchange_device_decide(struct exchange_device_packing *packing, const struct sx_net_pace *pace,
                            double memory_ns_a_byte, int64_t now_ns) {
    const bool is_first = packing->looked_ns == 0;
    if (pace->ns_a_byte > 0 && (is_first || packing->row_bytes[0] > 0))
        packing->is_on =
            (is_first || is_bound(packing, pace, now_ns)) && pays(packing, pace->ns_a_byte, memory_ns_a_byte);
    packing->looked_ns = now_ns;
    packing->pace = *pace;
}

bool exchange_device_gains(const struct exchange_device_packing *packing, double plain_bytes) {
    return (1 - ratio(packing)) * plain_bytes * packing->pace.ns_a_byte / margin > A_BATCH_NS;
}

bool exchange_device_packs(struct sx_exchange *exchange, struct sx_worker *worker, int64_t rows) {
    struct exchange_device_packing *packing = &exchange->device_packing;
    if (exchange->compression != SX_COMPRESSION_AUTO)
        return exchange->compression == SX_COMPRESSION_ON;
    const int64_t now_ns = sx_clock_ns();
    pthread_mutex_lock(&packing->lock);
    if (now_ns - packing->looked_ns >= LOOK_NS) {
        const struct sx_net_pace pace = sx_net_pace(worker->run->options.net, way_of(exchange, worker));
        const double rate = worker->run->options.backend->traits.memory_bytes_per_second;
        exchange_device_decide(packing, &pace, 1e9 / (rate > 0 ? rate : guessed_rate), now_ns);
    }
    const double row_bytes =
        packing->row_bytes[0] > 0 ? packing->row_bytes[0] : (double)exchange_row_bytes(exchange);
    const bool packs = packing->is_on && exchange_device_gains(packing, (double)rows * row_bytes);
    packing->went_plain = !packs;
    pthread_mutex_unlock(&packing->lock);
    return packs;
}

void exchange_device_note(struct sx_exchange *exchange, bool packs, int64_t rows, size_t bytes,
                          size_t plain_bytes) {
    struct exchange_device_packing *packing = &exchange->device_packing;
    atomic_fetch_add(&exchange->plain_bytes, (long long)plain_bytes);
    atomic_fetch_add(&exchange->packed_bytes, (long long)bytes);
    if (packs)
        atomic_store(&exchange->has_packed, true);
    if (rows < LEAST_ROWS)
        return;
    pthread_mutex_lock(&packing->lock);
    if (!packs)
        packing->narrowed = (double)bytes / (double)plain_bytes;
    packing->row_bytes[0] =
        (double)plain_bytes / (double)rows * (packing->narrowed > 0 ? packing->narrowed : 1);
    if (packs)
        packing->row_bytes[1] = (double)bytes / (double)rows;
    pthread_mutex_unlock(&packing->lock);
}

/* ---- narrow columns ---- */

enum sx_status exchange_device_narrow(struct sx_exchange *exchange, struct sx_worker *worker, int64_t rows,
                                      struct sx_rows_narrow **out_narrow) {
    struct exchange_device_packing *packing = &exchange->device_packing;
    const size_t n = (size_t)exchange->plan->n_columns;
    *out_narrow = NULL;
    if (exchange->compression == SX_COMPRESSION_OFF || rows < worker->run->options.large_rows)
        return SX_OK;
    struct sx_rows_narrow *narrow = calloc(n + 1, sizeof *narrow);
    if (!narrow)
        return sx_no_memory(sx_worker_error(worker), "what is known of columns");
    pthread_mutex_lock(&packing->lock);
    if (packing->narrow)
        memcpy(narrow, packing->narrow, n * sizeof *narrow);
    pthread_mutex_unlock(&packing->lock);
    *out_narrow = narrow;
    return SX_OK;
}

void exchange_device_note_narrow(struct sx_exchange *exchange, const struct sx_rows_narrow *narrow) {
    struct exchange_device_packing *packing = &exchange->device_packing;
    const size_t n = (size_t)exchange->plan->n_columns;
    pthread_mutex_lock(&packing->lock);
    if (!packing->narrow)
        packing->narrow = calloc(n + 1, sizeof *packing->narrow);
    for (size_t c = 0; packing->narrow && c < n; c++)
        if (narrow[c].fit == SX_ROWS_FITS_NOT || packing->narrow[c].fit == SX_ROWS_FIT_UNKNOWN)
            packing->narrow[c] = narrow[c];
    pthread_mutex_unlock(&packing->lock);
}
