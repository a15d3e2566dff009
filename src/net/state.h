/* Inside of src/net: a net's state, under one lock. */
#ifndef SX_NET_STATE_H
#define SX_NET_STATE_H

#include <pthread.h>

#include "net/transport.h"

/* A frame that is kept: a channel's message to be sent or taken, a part of a collective call, or one that
 * came early. */
struct sx_kept {
    struct sx_kept *next;
    struct sx_frame frame;
    struct sx_net_message message;
    size_t gone_bytes; /* of one between devices: rounds have taken them */
};

struct sx_kept_list {
    struct sx_kept *first, *last;
};

struct sx_rounds;
struct sx_pulls;

/* A channel's traffic with one rank, the own one included. */
struct sx_flow {
    struct sx_kept_list waiting;               /* for credit */
    size_t outstanding_bytes;                  /* sent, no credit has come back */
    size_t held_bytes;                         /* received, not taken */
    size_t taken_bytes;                        /* no credit was given back */
    uint64_t sent_messages, received_messages; /* handed to the transport; come */
    uint64_t end_messages;                     /* that the rank sent in all, once it has ended */
    bool end_sent, end_received;
};

struct sx_channel {
    struct sx_net *net;
    struct sx_channel *next;
    uint32_t epoch, number;
    struct sx_channel_options options;
    struct sx_flow *flows; /* one a rank */
    struct sx_kept_list received;
    atomic_size_t unsent_bytes;
    bool is_ended;     /* by this rank */
    bool is_destroyed; /* stays until all that was sent has gone */
    bool wake_due;
    int pins; /* by threads that use it without the lock */
    struct sx_channel_report report;
};

/* A frame of a channel on its way in two levels. */
struct sx_parcel {
    struct sx_parcel *next;
    int from, to;
    struct sx_frame frame;
    struct sx_buffer *buffer; /* its bytes are at the offset */
    size_t offset, bytes;
};

/* From this rank to another one, of what goes in two levels. */
struct sx_way {
    struct sx_parcel *first, *last;
    size_t queued_bytes;
    size_t flying_bytes; /* in frames that the transport has */
    int flying;
};

/* Messages that the transport has. */
struct sx_paced {
    size_t bytes; /* on their way */
    int64_t since_ns;
    int64_t periods;           /* of time in which some are, so far; */
    int64_t before_window;     /* those until the window began */
    struct sx_net_pace gone;   /* without what is on its way */
    struct sx_net_pace window; /* what `gone` was at its beginning */
    int windows;               /* that told something */
};

struct sx_net {
    struct sx_transport *transport;
    int rank, size;
    struct sx_pool *control_pool; /* without limit: what collectives, failures and early messages carry */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* see sx_net_changed and sx_net_await */
    atomic_uint n_changes;
    int64_t spin_ns;         /* as sx_net_set_spin; by the lock */
    atomic_int status;       /* of `failure` */
    struct sx_error failure; /* written once in an epoch */
    int lost_rank;
    bool is_lost;                 /* it is not forgotten at a barrier */
    struct sx_error next_failure; /* of the epoch to come, by a rank that is there already */
    struct sx_error last_failure; /* of the epoch before this one */
    uint32_t epoch;
    uint32_t next_channel; /* number in this epoch */
    uint64_t next_collective;
    uint32_t *barriers; /* per rank: how many rounds of barriers it has come to */
    bool *left;         /* per rank */
    size_t in_flight;   /* frames given to the transport */
    struct sx_paced paced[SX_NET_WAYS];
    int *hops; /* per rank: the next one on the way to it in two levels */
    bool has_levels;
    struct sx_way *ways; /* per rank */
    size_t parcels;      /* that have not been given to the transport */
    struct sx_channel *channels;
    int lingering;                   /* channels that have been destroyed and have not sent all */
    struct sx_kept_list early;       /* of channels that are not there yet */
    struct sx_kept_list collectives; /* parts that have come */
    int wakes_due;
    struct sx_rounds *rounds;       /* NULL: there is no link */
    struct sx_pulls *pulls;         /* NULL: there is no puller */
    struct sx_round_watch watch;    /* of both */
    atomic_int_fast64_t sent_bytes; /* of channels' messages, once they have gone */
};

/* ---- lists ---- */

void sx_kept_append(struct sx_kept_list *list, struct sx_kept *kept);
struct sx_kept *sx_kept_pop(struct sx_kept_list *list);
void sx_kept_release(struct sx_kept *kept); /* and its buffer */
void sx_kept_clear(struct sx_kept_list *list);

/* Whether the net can do without the message's bytes, which there was no memory for. */
static inline bool sx_net_can_lack(const struct sx_frame *frame, const struct sx_error *error) {
    return error->status == SX_OUT_OF_MEMORY && (frame->flags & SX_FRAME_OPTIONAL);
}

/* ---- net.c; with the lock held ---- */

void sx_net_set_failure(struct sx_net *net, const struct sx_error *failure, bool is_lost);
#define SX_NET_LEFT_TEXT "has ended while others wait for it"
/* SX_RANK_LOST, as the failure of the net. */
void sx_net_set_lost(struct sx_net *net, int rank, const char *what);
/* Gives the failure to the caller. */
enum sx_status sx_net_failure(const struct sx_net *net, struct sx_error *error);
/* sx_net_fail; the others get no text but that of the status. */
void sx_net_fail_locked(struct sx_net *net, const struct sx_error *error);
void sx_net_send(struct sx_net *net, int rank, const struct sx_frame *frame, struct sx_buffer *buffer,
                 size_t bytes);
void sx_net_send_all(struct sx_net *net, const struct sx_frame *frame, struct sx_buffer *buffer,
                     size_t bytes);
/* Unlocks, then calls the wakes that are due. */
void sx_net_unlock(struct sx_net *net);
/* A buffer of the control pool with the bytes. */
SX_MUST_CHECK enum sx_status sx_net_copy(struct sx_net *net, const void *data, size_t bytes,
                                         struct sx_buffer **out_buffer, struct sx_error *error);

/* ---- wait.c; with the lock held ---- */

/* Wakes who waits. */
void sx_net_changed(struct sx_net *net);
/* Gives the lock up until something has changed, or `until` (CLOCK_MONOTONIC; NULL: never); may return
 * earlier. */
void sx_net_await(struct sx_net *net, const struct timespec *until);

/* ---- pace.c; with the lock held ---- */

/* Of the transport's messages to `rank`. */
enum sx_net_way sx_net_way_to(const struct sx_net *net, int rank);
void sx_net_pace_begin(struct sx_net *net, enum sx_net_way way, size_t bytes);
void sx_net_pace_end(struct sx_net *net, enum sx_net_way way, size_t bytes);

/* ---- collective.c; with the lock held ---- */

/* All barriers of this epoch have come: it ends. */
void sx_net_pass_barrier(struct sx_net *net);
/* For sx_net_wait: something of this rank has not gone. */
int sx_net_unsent(const struct sx_net *net, const void *context);
/* Waits until missing(net, context) is -1, no rank. It returns a rank that is waited for. */
SX_MUST_CHECK enum sx_status sx_net_wait(struct sx_net *net,
                                         int (*missing)(const struct sx_net *net, const void *context),
                                         const void *context, bool past_failure, const atomic_bool *cancel,
                                         struct sx_error *error);

/* ---- channel.c; with the lock held ---- */

/* NULL: there is none, or it has been destroyed and takes only credit. */
struct sx_channel *sx_channel_find(const struct sx_net *net, const struct sx_frame *frame);
/* The frame is for a channel that this rank has not created yet. */
bool sx_channel_is_early(const struct sx_net *net, const struct sx_frame *frame);
/* A frame of a channel: message (taken over), credit or end. */
void sx_channel_take(struct sx_channel *channel, struct sx_kept *kept);
/* Whether a message between devices is wanted; else gives back its credit. */
bool sx_channel_wants(struct sx_net *net, int rank, const struct sx_frame *frame, size_t bytes);
/* Gives back the credit of a message for a channel that has been destroyed. */
void sx_channel_refuse(struct sx_net *net, int rank, const struct sx_frame *frame, size_t bytes);
void sx_channel_sent(struct sx_channel *channel, size_t bytes);
/* Drops what has not left. */
void sx_channel_drop_waiting(struct sx_channel *channel);
void sx_channel_wake(struct sx_channel *channel);
/* Frees it if it has been destroyed and nothing is left to send. */
void sx_channel_bury(struct sx_channel *channel);

/* ---- rounds.c; with the lock held ---- */

/* A message between devices, and another rank's announcement: both are taken over. */
void sx_rounds_send(struct sx_rounds *rounds, int rank, const struct sx_frame *frame,
                    struct sx_buffer *buffer, size_t bytes);
void sx_rounds_take(struct sx_rounds *rounds, struct sx_kept *kept);
/* Without the lock: nothing is on its way any more, or a rank is lost. */
void sx_rounds_close(struct sx_net *net);

/* ---- pulls.c; with the lock held unless said otherwise ---- */

/* Offers a message between devices, and takes it over; false: the rank can't reach it. */
bool sx_pulls_send(struct sx_pulls *pulls, int rank, const struct sx_frame *frame, struct sx_buffer *buffer,
                   size_t bytes);
/* Another rank's offer, which is taken over. */
void sx_pulls_take(struct sx_pulls *pulls, struct sx_kept *kept);
/* Tells the rank that its message of that number is its own again: it has been taken, or never will. Without
 * the lock. */
void sx_pulls_give_back(struct sx_net *net, int rank, uint64_t number);
/* Another rank has done so. Without the lock. */
void sx_pulls_taken(struct sx_net *net, uint64_t number);
/* Before this rank leaves: nothing of others' memory is open here any more. Gives the lock up meanwhile. */
SX_MUST_CHECK enum sx_status sx_pulls_let_go(struct sx_net *net);
/* As sx_rounds_close, and after it. Without the lock. */
void sx_pulls_close(struct sx_net *net);

/* ---- relay.c; with the lock held unless said otherwise ---- */

SX_MUST_CHECK enum sx_status sx_relay_init(struct sx_net *net, struct sx_error *error); /* without it */
void sx_relay_release(struct sx_net *net);                                              /* without it */
/* Sends a frame of a channel in two levels; takes the buffer over. sx_net_unlock does the work. */
void sx_relay_post(struct sx_net *net, int rank, const struct sx_frame *frame, struct sx_buffer *buffer,
                   size_t bytes);
/* A frame that was sent from such a queue has gone. */
void sx_relay_sent(struct sx_net *net, int rank, size_t bytes);
/* Sends what may go; lets the lock go meanwhile. False: there was nothing. */
bool sx_relay_pump(struct sx_net *net);
/* Takes a bundle that has come; without the lock. The buffer stays the caller's. */
void sx_relay_take(struct sx_net *net, struct sx_buffer *buffer, size_t bytes);

/* ---- receive.c ---- */

extern const struct sx_transport_events sx_net_events;

#endif
