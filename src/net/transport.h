/* What a transport does for a net: it moves frames between ranks, and tells of lost ranks. Channels, credits,
 * collectives and failures are made of frames, above it, once for all transports. */
#ifndef SX_NET_TRANSPORT_H
#define SX_NET_TRANSPORT_H

#include <stdatomic.h>
#include <stdio.h>

#include "net/net.h"

enum sx_frame_kind {
    SX_FRAME_MESSAGE,   /* of a channel; payload */
    SX_FRAME_CREDIT,    /* of a channel; value: bytes that have been taken */
    SX_FRAME_END,       /* of a channel; value: messages that were sent to this rank */
    SX_FRAME_BUNDLE,    /* frames of channels, by way of the receiver or for it; payload (relay.c) */
    SX_FRAME_GATHER,    /* value: number of the collective call in its epoch; payload */
    SX_FRAME_BROADCAST, /* the same */
    SX_FRAME_BARRIER,   /* ends the epoch */
    SX_FRAME_FAIL,      /* value: status; payload: text */
    SX_FRAME_LEAVE,     /* the sender needs nobody any more */
    SX_FRAME_ROUND,     /* of messages between devices; value: its number; payload: see rounds.c */
    SX_FRAME_OFFER,     /* of a message between devices; value: its number; payload: see pulls.c */
    SX_FRAME_TAKEN,     /* value: number of the offer whose message has been taken, or never will be */
    SX_FRAME_LOST       /* value: the rank that is lost, because of which the sender leaves */
};

/* What goes in front of the payload, as it stands in memory: ranks are of one architecture. */
struct sx_frame {
    uint32_t kind;
    uint32_t epoch;   /* barriers that the sender has left behind */
    uint32_t channel; /* number in its epoch */
    uint32_t flags;   /* SX_FRAME_ON_DEVICE, SX_FRAME_LINKED, SX_FRAME_OPTIONAL */
    uint64_t value;
};

enum {
    SX_FRAME_ON_DEVICE = 1, /* of a message: its buffer is device memory, which no transport carries */
    SX_FRAME_LINKED = 2,    /* the sender's: it counts for the way that it went by (relay.c) */
    SX_FRAME_OPTIONAL = 4   /* of a message: its channel is */
};

struct sx_transport;
struct sx_transport_raw;

/* What the net gives to its transport. All are called by one thread of the transport, which holds no lock of
 * its own while it calls. */
struct sx_transport_events {
    /* Room for the payload of a frame that is on its way. False: the payload is not wanted, or there is no
     * memory (then the net has failed, or can do without); `received` is not called for it. *out_buffer: one
     * reference; NULL for no bytes. */
    bool (*expect)(void *context, int rank, const struct sx_frame *frame, size_t bytes,
                   struct sx_buffer **out_buffer);
    /* The frame has come; takes the buffer over. Frames without payload come in the order they were sent in,
     * after those with payload whose sending has ended before. */
    void (*received)(void *context, int rank, const struct sx_frame *frame, struct sx_buffer *buffer,
                     size_t bytes);
    /* The bytes of a frame given to `send` have gone, or never will; once for each. */
    void (*sent)(void *context, int rank, const struct sx_frame *frame, size_t bytes);
    /* A rank is gone without a word. why: how that was noticed; NULL: by another rank, or not known. */
    void (*lost)(void *context, int rank, const char *why);
};

struct sx_transport_ops {
    /* Events may come from now on. */
    SX_MUST_CHECK enum sx_status (*start)(struct sx_transport *transport,
                                          const struct sx_transport_events *events, void *context,
                                          struct sx_error *error);
    /* Does not block and calls no event; may be called with locks held that events take. Takes the buffer
     * over (NULL for no bytes) and releases it when its bytes have gone. Never to the own rank. */
    void (*send)(struct sx_transport *transport, int rank, const struct sx_frame *frame,
                 struct sx_buffer *buffer, size_t bytes);
    /* No event comes after this. What has not gone is dropped: without a loss, nothing is there any more.
     * False: after a loss a thread could not be ended; what it uses, the net included, stays. */
    bool (*close)(struct sx_transport *transport);

    /* For benchmarks; NULL where there is nothing to compare with. All to all by the transport's own means
     * alone: `count` messages of `bytes` to each other rank, kept nowhere. All ranks begin, then all exchange
     * (which blocks until this rank's have gone and the others' have come), then all end. */
    SX_MUST_CHECK enum sx_status (*raw_begin)(struct sx_transport *transport, size_t bytes, int64_t count,
                                              struct sx_transport_raw **out_raw, struct sx_error *error);
    void (*raw_exchange)(struct sx_transport_raw *raw);
    void (*raw_end)(struct sx_transport_raw *raw);
};

/* A transport's struct begins with it. */
struct sx_transport {
    const struct sx_transport_ops *ops;
    int rank, size;
    const char *name;
    char **rank_names;           /* `size` texts, sx_rank_name */
    const int *hosts;            /* `size` numbers: ranks with the same one are on one host; NULL: all are */
    atomic_int_fast64_t spin_ns; /* of its thread, as sx_net_set_spin */
};

/* The text of sx_net_rank_name, from malloc; NULL: no memory. */
static inline char *sx_rank_name(int rank, const char *host, long pid) {
    char *name;
    return asprintf(&name, "rank %d (host %s, pid %ld)", rank, host, pid) < 0 ? NULL : name;
}

/* Takes the transport over in every case, and starts it. */
SX_MUST_CHECK enum sx_status sx_net_create(struct sx_transport *transport, struct sx_net **out_net,
                                           struct sx_error *error);

/* The net's own; NULL ops->raw_begin: it has no raw exchange. */
struct sx_transport *sx_net_get_transport(const struct sx_net *net);

#endif
