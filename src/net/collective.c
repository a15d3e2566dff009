#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "net/state.h"

enum { CANCEL_LOOK_NS = 20000000 };

/* ---- waiting ---- */

int sx_net_unsent(const struct sx_net *net, const void *context) {
    (void)context;
    return net->in_flight > 0 || net->parcels > 0 || net->lingering > 0 ? net->rank : -1;
}

/* Returns now and then where somebody may cancel without a signal to `changed`. */
static void wait_changed(struct sx_net *net, const atomic_bool *cancel) {
    if (!cancel) {
        sx_net_await(net, NULL);
        return;
    }
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += CANCEL_LOOK_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    sx_net_await(net, &until);
}

enum sx_status sx_net_wait(struct sx_net *net, int (*missing)(const struct sx_net *net, const void *context),
                           const void *context, bool past_failure, const atomic_bool *cancel,
                           struct sx_error *error) {
    for (;;) {
        const int rank = missing(net, context);
        if (net->is_lost || (net->failure.status != SX_OK && !past_failure))
            return sx_net_failure(net, error);
        if (rank < 0)
            return SX_OK;
        if (cancel && atomic_load(cancel))
            return sx_error_set(error, SX_CANCELLED, "the query was cancelled");
        if (rank != net->rank && net->left[rank] && !net->left[net->rank])
            sx_net_set_lost(net, rank, SX_NET_LEFT_TEXT);
        else
            wait_changed(net, cancel);
    }
}

/* Unlocks. A call that ends early must not leave others waiting for this rank's next one. */
static enum sx_status finish(struct sx_net *net, enum sx_status status, struct sx_error *error) {
    struct sx_error cancelled = {0};
    const bool failed = net->failure.status != SX_OK;
    sx_net_unlock(net);
    if (status == SX_OK || failed)
        return status;
    if (error)
        cancelled = *error;
    else
        (void)sx_error_set(&cancelled, status, "%s", sx_status_phrase(status));
    sx_net_fail(net, &cancelled);
    return status;
}

/* ---- gather and broadcast ---- */

struct part {
    uint32_t kind;
    uint64_t number;
    int root; /* the one rank that gives something; -1: all do */
};

static bool is_part(const struct sx_net *net, const struct part *part, const struct sx_kept *kept, int rank) {
    return kept->frame.kind == part->kind && kept->frame.epoch == net->epoch &&
           kept->frame.value == part->number && kept->message.rank == rank;
}

static int missing_part(const struct sx_net *net, const void *context) {
    const struct part *part = context;
    for (int r = 0; r < net->size; r++) {
        const struct sx_kept *kept = net->collectives.first;
        if (r == net->rank || (part->root >= 0 && r != part->root))
            continue;
        while (kept && !is_part(net, part, kept, r))
            kept = kept->next;
        if (!kept)
            return r;
    }
    return -1;
}

/* It has come. */
static struct sx_kept *take_part(struct sx_net *net, const struct part *part, int rank) {
    struct sx_kept_list rest = {0};
    struct sx_kept *kept, *found = NULL;
    while ((kept = sx_kept_pop(&net->collectives)) != NULL)
        if (!found && is_part(net, part, kept, rank))
            found = kept;
        else
            sx_kept_append(&rest, kept);
    net->collectives = rest;
    return found;
}

static void send_part(struct sx_net *net, const struct part *part, struct sx_buffer *buffer, size_t bytes) {
    const struct sx_frame frame = {.kind = part->kind, .epoch = net->epoch, .value = part->number};
    sx_net_send_all(net, &frame, buffer, bytes);
}

static enum sx_status gather_parts(struct sx_net *net, const struct part *part, size_t bytes_each, char *out,
                                   struct sx_error *error) {
    enum sx_status status = SX_OK;
    for (int r = 0; r < net->size; r++) {
        if (r == net->rank)
            continue;
        struct sx_kept *kept = take_part(net, part, r);
        if (kept->message.bytes != bytes_each)
            status = sx_error_set(error, SX_INTERNAL, "gather: %s gave %zu bytes, not %zu",
                                  net->transport->rank_names[r], kept->message.bytes, bytes_each);
        else if (bytes_each)
            memcpy(out + (size_t)r * bytes_each, kept->message.buffer->data, bytes_each);
        sx_kept_release(kept);
    }
    return status;
}

enum sx_status sx_net_gather(struct sx_net *net, const void *data, size_t bytes_each, void *out,
                             const atomic_bool *cancel, struct sx_error *error) {
    struct sx_buffer *copy;
    struct part part = {.kind = SX_FRAME_GATHER, .root = -1};
    SX_TRY(sx_net_copy(net, data, bytes_each, &copy, error));
    pthread_mutex_lock(&net->lock);
    enum sx_status status = sx_net_failure(net, error);
    if (status == SX_OK) {
        part.number = net->next_collective++;
        send_part(net, &part, copy, bytes_each);
        status = sx_net_wait(net, missing_part, &part, false, cancel, error);
    }
    if (status == SX_OK)
        status = gather_parts(net, &part, bytes_each, out, error);
    if (status == SX_OK && bytes_each)
        memmove((char *)out + (size_t)net->rank * bytes_each, data, bytes_each);
    sx_buffer_release(copy);
    return finish(net, status, error);
}

/* The root's text, for this rank. */
static enum sx_status copy_part(struct sx_kept *kept, struct sx_arena *arena, const void **data,
                                size_t *bytes, struct sx_error *error) {
    char *copy = sx_arena_alloc(arena, kept->message.bytes);
    if (copy && kept->message.bytes)
        memcpy(copy, kept->message.buffer->data, kept->message.bytes);
    *data = copy;
    *bytes = kept->message.bytes;
    sx_kept_release(kept);
    return copy ? SX_OK : sx_error_set(error, SX_OUT_OF_MEMORY, "broadcast: no memory for %zu bytes", *bytes);
}

enum sx_status sx_net_broadcast(struct sx_net *net, int root, struct sx_arena *arena, const void **data,
                                size_t *bytes, const atomic_bool *cancel, struct sx_error *error) {
    const bool is_root = root == net->rank;
    struct sx_buffer *copy = NULL;
    struct part part = {.kind = SX_FRAME_BROADCAST, .root = root};
    if (is_root)
        SX_TRY(sx_net_copy(net, *data, *bytes, &copy, error));
    pthread_mutex_lock(&net->lock);
    enum sx_status status = sx_net_failure(net, error);
    if (status == SX_OK) {
        part.number = net->next_collective++;
        if (is_root)
            send_part(net, &part, copy, *bytes);
        else
            status = sx_net_wait(net, missing_part, &part, false, cancel, error);
    }
    if (status == SX_OK && !is_root)
        status = copy_part(take_part(net, &part, root), arena, data, bytes, error);
    sx_buffer_release(copy);
    return finish(net, status, error);
}

/* ---- barrier ---- */

/* Keeps what ranks have sent that are in the next epoch already. */
static void drop_older(struct sx_kept_list *list, uint32_t epoch) {
    struct sx_kept_list rest = {0};
    struct sx_kept *kept;
    while ((kept = sx_kept_pop(list)) != NULL)
        if (kept->frame.epoch < epoch)
            sx_kept_release(kept);
        else
            sx_kept_append(&rest, kept);
    *list = rest;
}

/* One round tells that what ranks have sent has gone; in two levels a second one, that what they sent on for
 * others has gone, too: after the first nothing more comes to be sent on. */
static uint32_t rounds(const struct sx_net *net) {
    return net->has_levels ? 2 : 1;
}

void sx_net_pass_barrier(struct sx_net *net) {
    for (int r = 0; r < net->size; r++)
        if (net->barriers[r] < rounds(net) * (net->epoch + 1))
            return;
    net->epoch++;
    net->next_channel = 0;
    net->next_collective = 0;
    net->last_failure = net->failure;
    if (!net->is_lost) {
        net->failure = net->next_failure;
        atomic_store(&net->status, (int)net->failure.status);
    }
    net->next_failure = (struct sx_error){0};
    drop_older(&net->early, net->epoch);
    drop_older(&net->collectives, net->epoch);
    sx_net_changed(net);
}

/* A rank that has not come to as many rounds as this one, in the epoch. */
static int not_passed(const struct sx_net *net, const void *context) {
    const uint32_t *epoch = context;
    for (int r = 0; r < net->size && net->epoch == *epoch; r++)
        if (net->barriers[r] < net->barriers[net->rank])
            return r;
    return -1;
}

enum sx_status sx_net_barrier(struct sx_net *net, const atomic_bool *cancel, struct sx_error *error) {
    pthread_mutex_lock(&net->lock);
    const uint32_t epoch = net->epoch;
    enum sx_status status = sx_net_wait(net, not_passed, &epoch, true, cancel, error);
    while (status == SX_OK && net->epoch == epoch) {
        const struct sx_frame frame = {.kind = SX_FRAME_BARRIER, .epoch = epoch};
        status = sx_net_wait(net, sx_net_unsent, NULL, true, cancel, error);
        if (status != SX_OK)
            break;
        net->barriers[net->rank]++;
        sx_net_send_all(net, &frame, NULL, 0);
        sx_net_pass_barrier(net);
        status = sx_net_wait(net, not_passed, &epoch, true, cancel, error);
    }
    if (status == SX_OK && net->last_failure.status != SX_OK) { /* some may have come before it was known */
        status = net->last_failure.status;
        if (error)
            *error = net->last_failure;
    }
    sx_net_unlock(net);
    return status;
}
