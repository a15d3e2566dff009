/* Whether frames of a device are packed. What is known of an exchange, a row's least time in rows_pack (with
 * the way to the host's memory, where it goes there) and its bytes, plain and packed, is weighed against the
 * pace of the link: packing pays where the link is the bound and what it saves there is more than what it
 * costs here and at the receiver. */
#include "base/clock.h"
#include "exec/exchange.h"

enum {
    LOOK_NS = 5000000, /* from one look at the pace to the next */
    BUSY = 2,          /* the link is the bound if it would be busy for 1 / BUSY of the time */
    LEAST_ROWS = 8192, /* of a batch that tells something */
    LEAST_PLAIN = 2    /* batches to compare with: the first one may have waited for memory */
};

void exchange_device_packing_init(struct exchange_device_packing *packing) {
    pthread_mutex_init(&packing->lock, NULL);
}

void exchange_device_packing_release(struct exchange_device_packing *packing) {
    pthread_mutex_destroy(&packing->lock);
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

/* A byte is worth less than its time on the way by this factor. */
static const double margin = 1.25;

/* With none packed yet: as if it took no longer and left half of the bytes, so that a link that makes it
 * likely gets some, by which is decided from the next look on. */
static struct exchange_device_rate packed_rate(const struct exchange_device_packing *packing) {
    const struct exchange_device_rate *plain = &packing->rates[0];
    return packing->rates[1].n > 0 ? packing->rates[1]
                                   : (struct exchange_device_rate){plain->ns, plain->bytes / 2, 0};
}

/* The receiver reads packed bytes and writes plain ones, where packing plain ones reads and writes them. */
static bool pays(const struct exchange_device_packing *packing, double ns_a_byte) {
    const struct exchange_device_rate plain = packing->rates[0], packed = packed_rate(packing);
    const double unpacking_ns = plain.ns / 2 * (1 + packed.bytes / plain.bytes);
    return (plain.bytes - packed.bytes) * ns_a_byte / margin > packed.ns - plain.ns + unpacking_ns;
}

/* Since the last look, or by what it would have been without packing. */
static bool is_bound(const struct exchange_device_packing *packing, const struct sx_net_pace *pace,
                     int64_t now_ns) {
    double busy_ns = (double)(pace->busy_ns - packing->pace.busy_ns);
    if (packing->is_on)
        busy_ns *= packing->rates[0].bytes / packed_rate(packing).bytes;
    return busy_ns * BUSY >= (double)(now_ns - packing->looked_ns);
}

static void look(struct exchange_device_packing *packing, const struct sx_net_pace *pace, int64_t now_ns) {
    if (packing->looked_ns && packing->rates[0].n >= LEAST_PLAIN && pace->ns_a_byte > 0)
        packing->is_on = is_bound(packing, pace, now_ns) && pays(packing, pace->ns_a_byte);
    packing->looked_ns = now_ns;
    packing->pace = *pace;
}

bool exchange_device_packs(struct sx_exchange *exchange, struct sx_worker *worker) {
    struct exchange_device_packing *packing = &exchange->device_packing;
    if (exchange->compression != SX_COMPRESSION_AUTO)
        return exchange->compression == SX_COMPRESSION_ON;
    const struct sx_net_pace pace = sx_net_pace(worker->run->options.net, way_of(exchange, worker));
    const int64_t now_ns = sx_clock_ns();
    pthread_mutex_lock(&packing->lock);
    if (now_ns - packing->looked_ns >= LOOK_NS)
        look(packing, &pace, now_ns);
    const bool packs = packing->is_on;
    pthread_mutex_unlock(&packing->lock);
    return packs;
}

/* 0: it has strings, whose bytes are not known here. */
static size_t plain_bytes_a_row(const struct sx_batch *batch) {
    size_t bytes = 0;
    for (int c = 0; c < batch->n_columns; c++) {
        if (batch->columns[c].type.id == SX_TYPE_VARCHAR)
            return 0;
        bytes += sx_type_bytes(batch->columns[c].type) + (batch->columns[c].valid != NULL);
    }
    return bytes;
}

void exchange_device_note(struct sx_exchange *exchange, const struct sx_batch *batch, bool packs,
                          int64_t rows, size_t bytes, int64_t ns) {
    struct exchange_device_packing *packing = &exchange->device_packing;
    const size_t plain_bytes = plain_bytes_a_row(batch) * (size_t)rows;
    if (plain_bytes > 0) {
        atomic_fetch_add(&exchange->plain_bytes, (long long)(packs ? plain_bytes : bytes));
        atomic_fetch_add(&exchange->packed_bytes, (long long)bytes);
    }
    if (rows < LEAST_ROWS)
        return;
    pthread_mutex_lock(&packing->lock);
    struct exchange_device_rate *rate = &packing->rates[packs];
    const double ns_a_row = (double)ns / (double)rows;
    if (rate->n++ == 0 || ns_a_row < rate->ns) {
        rate->ns = ns_a_row;
        rate->bytes = (double)bytes / (double)rows;
    }
    pthread_mutex_unlock(&packing->lock);
}
