/* The transport of a run of one rank: nothing is ever sent. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "net/transport.h"

struct self {
    struct sx_transport base;
    char *rank_name;
};

static enum sx_status start(struct sx_transport *transport, const struct sx_transport_events *events,
                            void *context, struct sx_error *error) {
    (void)transport, (void)events, (void)context, (void)error;
    return SX_OK;
}

static void send(struct sx_transport *transport, int rank, const struct sx_frame *frame,
                 struct sx_buffer *buffer, size_t bytes) {
    (void)transport, (void)rank, (void)frame, (void)bytes;
    sx_buffer_release(buffer);
}

static bool close_self(struct sx_transport *transport) {
    struct self *self = (struct self *)transport;
    free(self->rank_name);
    free(self);
    return true;
}

enum sx_status sx_net_self_create(struct sx_net **out_net, struct sx_error *error) {
    static const struct sx_transport_ops ops = {.start = start, .send = send, .close = close_self};
    char host[256] = "";
    if (gethostname(host, sizeof host - 1) != 0)
        snprintf(host, sizeof host, "unknown");
    struct self *self = calloc(1, sizeof *self);
    char *name = sx_rank_name(0, host, (long)getpid());
    if (!self || !name) {
        free(self);
        free(name);
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the network");
    }
    self->rank_name = name;
    self->base = (struct sx_transport){
        .ops = &ops, .rank = 0, .size = 1, .name = "self", .rank_names = &self->rank_name};
    return sx_net_create(&self->base, out_net, error);
}
