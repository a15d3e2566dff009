/* A link moves messages whose buffers are device memory between all ranks of a net, in rounds (rounds.c). It
 * is made by whoever knows the devices. */
#ifndef SX_NET_LINK_H
#define SX_NET_LINK_H

#include "net/net.h"

/* Bytes to a rank, or from it: so many of the buffer's, from the offset on. */
struct sx_link_part {
    int rank;
    struct sx_buffer *buffer; /* of a receive NULL: the bytes are not kept */
    size_t offset;
    size_t bytes; /* > 0 */
};

static inline size_t sx_link_bytes(const struct sx_link_part *parts, int n) {
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += parts[i].bytes;
    return bytes;
}

struct sx_link;

/* Rounds that may have begun and not ended. */
enum { SX_LINK_FLIGHTS = 3 };

struct sx_link_ops {
    /* Every rank calls it before its first `start`, or before each; later calls tell what became of the link.
     * Where gives_up(context) becomes true it ends soon, as below. */
    SX_MUST_CHECK enum sx_status (*connect)(struct sx_link *link, bool (*gives_up)(void *context),
                                            void *context, struct sx_error *error);
    /* Room for a message that comes: one reference. */
    SX_MUST_CHECK enum sx_status (*allocate)(struct sx_link *link, size_t bytes,
                                             struct sx_buffer **out_buffer, struct sx_error *error);
    /* Begins a round. Every rank calls it, with parts that match: between two ranks they are in the same
     * order. `flight`: 0 … SX_LINK_FLIGHTS - 1, one that is free; rounds take them in turn. Where
     * gives_up(context) becomes true this and `finish` end soon, with SX_RANK_LOST; after an error of either
     * the link is of no use any more. A round that a rank has given up does not end well on those that it has
     * parts with. */
    SX_MUST_CHECK enum sx_status (*start)(struct sx_link *link, int flight, const struct sx_link_part *sends,
                                          int n_sends, const struct sx_link_part *receives, int n_receives,
                                          bool (*gives_up)(void *context), void *context,
                                          struct sx_error *error);
    /* Blocks until all sent bytes of the flight may be reused and all received ones can be read by any
     * stream. The oldest flight comes first; another thread may start the next one meanwhile. */
    SX_MUST_CHECK enum sx_status (*finish)(struct sx_link *link, int flight, bool (*gives_up)(void *context),
                                           void *context, struct sx_error *error);
    /* `clean`: all ranks do so, and nothing is on its way. */
    void (*destroy)(struct sx_link *link, bool clean);
};

/* A link's struct begins with it. */
struct sx_link {
    const struct sx_link_ops *ops;
    const char *name;   /* "NCCL 2.28.3" */
    size_t round_bytes; /* of a rank in a round, to all others: more wait for the next one */
};

/* For whoever uses a link without the net; the context is that. */
static inline bool sx_link_gives_up(void *net) {
    return sx_net_check(net, NULL) != SX_OK;
}

/* What such a call ends with: the net's failure, where it was given up for that. */
SX_MUST_CHECK static inline enum sx_status sx_link_outcome(struct sx_net *net, enum sx_status status,
                                                           struct sx_error *error) {
    const enum sx_status failure = status == SX_RANK_LOST ? sx_net_check(net, error) : SX_OK;
    return failure != SX_OK ? failure : status;
}

/* A round on its own, of all ranks. */
SX_MUST_CHECK static inline enum sx_status sx_link_exchange(struct sx_link *link,
                                                            const struct sx_link_part *sends, int n_sends,
                                                            const struct sx_link_part *receives,
                                                            int n_receives, bool (*gives_up)(void *context),
                                                            void *context, struct sx_error *error) {
    SX_TRY(link->ops->connect(link, gives_up, context, error));
    SX_TRY(link->ops->start(link, 0, sends, n_sends, receives, n_receives, gives_up, context, error));
    return link->ops->finish(link, 0, gives_up, context, error);
}

/* Messages on devices may be sent once all ranks have come back from it: all call it, before they create
 * channels. Takes the link over in every case; sx_net_close destroys it. */
SX_MUST_CHECK enum sx_status sx_net_set_link(struct sx_net *net, struct sx_link *link,
                                             struct sx_error *error);

/* For benchmarks: while no rank has a channel it may be used without the net. NULL: there is none. */
struct sx_link *sx_net_get_link(const struct sx_net *net);

#endif
