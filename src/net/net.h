/* Messages between the ranks of a run, and the few collective calls that a query needs. Who moves the bytes
 * is a transport: "self" (one rank), "local" (ranks that are threads of one process: tests), "ucx"
 * (processes; MPI launches them and tells who is there, UCX active messages carry the bytes).
 *
 * Everything here is thread-safe unless said otherwise, and nothing blocks unless said so. Faults end
 * everything: once a rank is lost, or one has called sx_net_fail, every call of every rank that can fail
 * gives that error. */
#ifndef SX_NET_NET_H
#define SX_NET_NET_H

#include "base/arena.h"
#include "tensor/tensor.h"

struct sx_net;
struct sx_channel;

/* The net of a run of one rank. */
SX_MUST_CHECK enum sx_status sx_net_self_create(struct sx_net **out_net, struct sx_error *error);

int sx_net_rank(const struct sx_net *net);
int sx_net_size(const struct sx_net *net);
/* "self", "local", "ucx" and what it goes over; borrowed from the net. */
const char *sx_net_transport(const struct sx_net *net);
/* Messages may be on devices: they go from one to the other. */
bool sx_net_has_link(const struct sx_net *net);
/* A round of it that has ended: this rank's messages of several exchanges, or slices of them; or a message
 * that this rank has pulled (net/pull.h). */
struct sx_net_round {
    bool is_pull;
    int place; /* rounds that are under way at the same time have different ones, from 0 on; a pull has the
                * rank's that it is from */
    int64_t began_ns;
    size_t sent_bytes, received_bytes;
};
struct sx_round_watch {
    void (*ended)(void *context, const struct sx_net_round *round); /* with the net's lock held */
    void *context;
};
/* Who is told of rounds from now on; NULL: nobody, also not by a call that is under way. */
void sx_net_watch_rounds(struct sx_net *net, const struct sx_round_watch *watch);
/* How long a thread that waits for others looks again and again before it sleeps: a sleeping one takes tens
 * of microseconds to wake, on each of the half dozen steps from one rank's rows to another's, and it takes a
 * processor as long as it looks. 0, as at first: not at all, or as long as the transport likes. */
void sx_net_set_spin(struct sx_net *net, int64_t spin_ns);
int64_t sx_net_spin_ns(struct sx_net *net);
/* "rank 3 (host node7, pid 4242)"; borrowed from the net. */
const char *sx_net_rank_name(const struct sx_net *net, int rank);

/* Bytes of channels' messages that have left this rank since the net was created. */
int64_t sx_net_sent_bytes(const struct sx_net *net);
/* Ranks with the same number are on one host. */
int sx_net_host(const struct sx_net *net, int rank);

enum sx_shuffle {
    SX_SHUFFLE_AUTO, /* two levels where messages would be small */
    SX_SHUFFLE_ONE_LEVEL,
    SX_SHUFFLE_TWO_LEVEL
};
/* Whether channels with messages of so many bytes shall be is_two_level. Never where that makes no
 * difference: with one host, or one rank on each. */
bool sx_net_in_two_levels(const struct sx_net *net, enum sx_shuffle shuffle, size_t message_bytes);

/* Where messages go: to ranks of this host or of others, by the transport, or by the link. */
enum sx_net_way { SX_NET_OWN_HOST, SX_NET_OTHER_HOSTS, SX_NET_LINK, SX_NET_WAYS };

/* How fast messages leave by a way, since the net was created. */
struct sx_net_pace {
    int64_t bytes;    /* that have gone */
    int64_t busy_ns;  /* while any were on their way (waiting for credit does not count) */
    double ns_a_byte; /* the link's: of its best times, since a busy processor makes it look slow; 0: not
                       * known yet */
};
struct sx_net_pace sx_net_pace(struct sx_net *net, enum sx_net_way way);

/* SX_OK until something was lost. SX_RANK_LOST names the lost rank; else it is the error that a rank gave to
 * sx_net_fail, with that rank's name in front of the text if there are several. Cheap: to be called often. */
SX_MUST_CHECK enum sx_status sx_net_check(struct sx_net *net, struct sx_error *error);
/* Tells all ranks that this one's query has failed with `error`. The first one counts. */
void sx_net_fail(struct sx_net *net, const struct sx_error *error);

/* ---- collective: every rank calls the same ones in the same order, one thread at a time; they block until
 * all ranks have come, or the net has failed, or *cancel (may be NULL), which fails the net with SX_CANCELLED
 * ---- */

/* out[r * bytes_each ...] = what rank r gave. bytes_each is the same everywhere. */
SX_MUST_CHECK enum sx_status sx_net_gather(struct sx_net *net, const void *data, size_t bytes_each, void *out,
                                           const atomic_bool *cancel, struct sx_error *error);
/* `root` gives *data (any length); the others get a copy in `arena` (the root its own pointer). Only the root
 * does not wait for others. */
SX_MUST_CHECK enum sx_status sx_net_broadcast(struct sx_net *net, int root, struct sx_arena *arena,
                                              const void **data, size_t *bytes, const atomic_bool *cancel,
                                              struct sx_error *error);
/* Between queries: all ranks have come here, nothing is on its way any more, and what failed before is
 * forgotten if no rank was lost (an error of a query must not end a shell): it is what the barrier gives, on
 * all ranks, whenever they came to it. This rank's channels have been destroyed before. A barrier that was
 * cancelled may be called again. */
SX_MUST_CHECK enum sx_status sx_net_barrier(struct sx_net *net, const atomic_bool *cancel,
                                            struct sx_error *error);

/* ---- channels: streams of messages among all ranks; those of one rank to another may overtake each other
 * ---- */

/* A message's bytes, at the start of a buffer of host memory, or of this rank's device where the net has a
 * link (net/link.h). A received one is of the channel's pool; of the sender's where that is this rank, and of
 * the net's where it came before the channel was there. One without bytes may have no buffer; of an optional
 * channel neither may one that there was no memory for, whose `bytes` and `on_device` are as it was sent. */
struct sx_net_message {
    int rank;                 /* whom it is for, or from */
    struct sx_buffer *buffer; /* one reference, which goes with the message */
    size_t bytes;
    bool on_device; /* never to the own rank */
};

struct sx_channel_options {
    struct sx_pool *pool; /* of received messages; like the pools of those sent it is in use until the next
                           * barrier, or the net's end */
    size_t window_bytes; /* of messages that a rank may have on the way to another (or to itself) that has not
                          * taken them yet (received, not given out by sx_channel_receive): flow control by
                          * credits, so that a slow rank slows its senders and nobody's memory fills. The same
                          * on all ranks. At least one message may always go, however large. */
    /* What this rank sends to ranks of other hosts goes by way of the rank of its own host that has the same
     * place there, together with what others send by that way; so a rank sends to those of its host, and to
     * one of each other host. Each rank's own matter; but where any rank does so, all come to a barrier
     * before they close. */
    bool is_two_level;
    /* What is sent can be done without: a message that its receiver has no memory for comes there without a
     * buffer, where else the net would fail. The same on all ranks. */
    bool is_optional;
    /* May be NULL: called when a message has come, when bytes have gone, when the channel has ended or the
     * net has failed. By any thread, also by one that is in a call of this interface: it must not block, and
     * who calls holds no lock that it takes. It may call what does not block, but not sx_channel_destroy. */
    void (*wake)(void *context);
    void *context;
};

/* Collective in order (all ranks create the same channels in the same order), but does not block: messages
 * that come for a channel before it is created are kept within the window. */
SX_MUST_CHECK enum sx_status sx_channel_create(struct sx_net *net, const struct sx_channel_options *options,
                                               struct sx_channel **out_channel, struct sx_error *error);
/* Ends it, if that was not done. What was sent still goes (unless the net has failed); messages not taken,
 * and those that still come, are dropped. Waits until no wake is being called. NULL allowed. */
void sx_channel_destroy(struct sx_channel *channel);
/* Takes the messages over in every case. To the own rank, too: that one goes by no transport. Those that go
 * from device to device go together, if there is credit. */
SX_MUST_CHECK enum sx_status sx_channel_send(struct sx_channel *channel,
                                             const struct sx_net_message *messages, int n,
                                             struct sx_error *error);
/* Bytes given to send that have not left this rank: who makes messages waits while these are many. */
size_t sx_channel_unsent_bytes(const struct sx_channel *channel);
/* This rank sends no more. */
SX_MUST_CHECK enum sx_status sx_channel_end(struct sx_channel *channel, struct sx_error *error);
/* False: none is there now. */
bool sx_channel_receive(struct sx_channel *channel, struct sx_net_message *out_message);
/* All ranks have ended, and all that came has been taken. */
bool sx_channel_ended(const struct sx_channel *channel);

struct sx_channel_report {
    int64_t sent_bytes, received_bytes; /* own rank left out */
    int64_t sent_messages, received_messages;
};
struct sx_channel_report sx_channel_report(const struct sx_channel *channel);

/* Waits until everything that was sent has gone and all ranks have left, or one was lost. Channels have been
 * destroyed. A rank that leaves while others wait for it counts as lost. NULL allowed. */
void sx_net_close(struct sx_net *net);

#endif
