/* Pulls: a rank copies a message out of another rank's device by itself, where it reaches that device's
 * memory, so that the copy waits for no other rank, and for no kernel of any (pulls.c). What nobody can reach
 * goes by the link's rounds. It is made by whoever knows the devices. */
#ifndef SX_NET_PULL_H
#define SX_NET_PULL_H

#include "net/net.h"

/* Where the bytes of a message are, as the puller tells it to others. */
struct sx_pull_source {
    _Alignas(8) char bytes[96];
};

struct sx_puller;

struct sx_puller_ops {
    /* Whether the buffer is where other ranks reach it; then where. Calls of any thread. */
    bool (*tell)(struct sx_puller *puller, const struct sx_buffer *buffer, struct sx_pull_source *out_source);
    /* Begins to copy so many bytes of the rank's into a new buffer: one reference, which stays until the pull
     * has ended. This and `test` are one thread's. */
    SX_MUST_CHECK enum sx_status (*start)(struct sx_puller *puller, int rank,
                                          const struct sx_pull_source *source, size_t bytes,
                                          struct sx_buffer **out_buffer, struct sx_error *error);
    /* Whether the oldest pull from the rank, of those that no call has told the end of, has ended: any stream
     * may read its buffer then, and the rank have its own back. */
    SX_MUST_CHECK enum sx_status (*test)(struct sx_puller *puller, int rank, bool *out_ended,
                                         struct sx_error *error);
    /* A rank is lost: nothing more is read from any, and pulls that `test` has not told the end of end with
     * an error, once what is under way has. None begins any more. The same thread's; does not wait, and may
     * be called again. */
    void (*abandon)(struct sx_puller *puller);
    /* Closes what it has open of other ranks' memory; no pull is under way. The same thread's. */
    void (*let_go)(struct sx_puller *puller);
    /* Pulls have ended, or nobody asks for what they bring. Unless a rank is lost, all have let go. */
    void (*destroy)(struct sx_puller *puller);
};

/* A puller's struct begins with it. */
struct sx_puller {
    const struct sx_puller_ops *ops;
    const bool *reached_by; /* by rank: whether it reaches this rank's memory; the puller's own */
};

/* Beside a link, and before it: messages on devices may then be sent as sx_net_set_link says. Takes the
 * puller over in every case; sx_net_close destroys it. */
SX_MUST_CHECK enum sx_status sx_net_set_puller(struct sx_net *net, struct sx_puller *puller,
                                               struct sx_error *error);

#endif
