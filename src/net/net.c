#include <stdlib.h>
#include <string.h>

#include "net/state.h"

/* ---- lists ---- */

void sx_kept_append(struct sx_kept_list *list, struct sx_kept *kept) {
    kept->next = NULL;
    if (list->last)
        list->last->next = kept;
    else
        list->first = kept;
    list->last = kept;
}

struct sx_kept *sx_kept_pop(struct sx_kept_list *list) {
    struct sx_kept *kept = list->first;
    if (kept) {
        list->first = kept->next;
        if (!list->first)
            list->last = NULL;
    }
    return kept;
}

void sx_kept_release(struct sx_kept *kept) {
    if (!kept)
        return;
    sx_buffer_release(kept->message.buffer);
    free(kept);
}

void sx_kept_clear(struct sx_kept_list *list) {
    while (list->first)
        sx_kept_release(sx_kept_pop(list));
}

/* ---- failures ---- */

void sx_net_set_failure(struct sx_net *net, const struct sx_error *failure, bool is_lost) {
    if (net->is_lost || (net->failure.status != SX_OK && !is_lost))
        return;
    net->failure = *failure;
    net->is_lost = is_lost;
    atomic_store(&net->status, (int)failure->status);
    for (struct sx_channel *channel = net->channels, *next; channel; channel = next) {
        next = channel->next;
        sx_channel_drop_waiting(channel);
        sx_channel_wake(channel);
        sx_channel_bury(channel);
    }
    sx_net_changed(net);
}

void sx_net_set_lost(struct sx_net *net, int rank, const char *what) {
    struct sx_error lost = {0};
    if (net->is_lost)
        return;
    net->lost_rank = rank;
    (void)sx_error_set(&lost, SX_RANK_LOST, "%s %s", net->transport->rank_names[rank], what);
    sx_net_set_failure(net, &lost, true);
}

enum sx_status sx_net_failure(const struct sx_net *net, struct sx_error *error) {
    if (error && net->failure.status != SX_OK)
        *error = net->failure;
    return net->failure.status;
}

enum sx_status sx_net_check(struct sx_net *net, struct sx_error *error) {
    if (atomic_load_explicit(&net->status, memory_order_relaxed) == SX_OK)
        return SX_OK;
    pthread_mutex_lock(&net->lock);
    const enum sx_status status = sx_net_failure(net, error);
    pthread_mutex_unlock(&net->lock);
    return status;
}

void sx_net_fail(struct sx_net *net, const struct sx_error *error) {
    struct sx_error own = *error;
    struct sx_buffer *text = NULL;
    if (net->size > 1)
        sx_error_prefix(&own, "%s", sx_net_rank_name(net, net->rank));
    const size_t bytes = strnlen(own.text, sizeof own.text);
    if (net->size > 1 && sx_net_copy(net, own.text, bytes, &text, NULL) != SX_OK)
        text = NULL;
    pthread_mutex_lock(&net->lock);
    if (net->failure.status == SX_OK) {
        const struct sx_frame frame = {
            .kind = SX_FRAME_FAIL, .epoch = net->epoch, .value = (uint64_t)own.status};
        sx_net_set_failure(net, &own, false);
        sx_net_send_all(net, &frame, text, text ? bytes : 0);
    }
    sx_net_unlock(net);
    sx_buffer_release(text);
}

void sx_net_fail_locked(struct sx_net *net, const struct sx_error *error) {
    const struct sx_frame frame = {
        .kind = SX_FRAME_FAIL, .epoch = net->epoch, .value = (uint64_t)error->status};
    if (net->failure.status != SX_OK)
        return;
    sx_net_set_failure(net, error, false);
    sx_net_send_all(net, &frame, NULL, 0);
}

/* ---- sending; wakes ---- */

void sx_net_send(struct sx_net *net, int rank, const struct sx_frame *frame, struct sx_buffer *buffer,
                 size_t bytes) {
    net->in_flight++;
    if (frame->flags & SX_FRAME_ON_DEVICE) {
        if (net->pulls && sx_pulls_send(net->pulls, rank, frame, buffer, bytes))
            return;
        sx_rounds_send(net->rounds, rank, frame, buffer, bytes);
        return;
    }
    if (frame->kind == SX_FRAME_MESSAGE || frame->kind == SX_FRAME_BUNDLE)
        sx_net_pace_begin(net, sx_net_way_to(net, rank), bytes);
    net->transport->ops->send(net->transport, rank, frame, buffer, bytes);
}

void sx_net_send_all(struct sx_net *net, const struct sx_frame *frame, struct sx_buffer *buffer,
                     size_t bytes) {
    for (int r = 0; r < net->size; r++)
        if (r != net->rank)
            sx_net_send(net, r, frame, sx_buffer_retain(buffer), bytes);
}

static struct sx_channel *find_due(const struct sx_net *net) {
    struct sx_channel *channel = net->channels;
    while (channel && !channel->wake_due)
        channel = channel->next;
    return channel;
}

void sx_net_unlock(struct sx_net *net) {
    struct sx_channel *channel;
    while (sx_relay_pump(net))
        continue;
    while (net->wakes_due > 0 && (channel = find_due(net)) != NULL) {
        channel->wake_due = false;
        net->wakes_due--;
        channel->pins++;
        pthread_mutex_unlock(&net->lock);
        channel->options.wake(channel->options.context);
        pthread_mutex_lock(&net->lock);
        if (--channel->pins == 0)
            sx_net_changed(net);
    }
    pthread_mutex_unlock(&net->lock);
}

enum sx_status sx_net_copy(struct sx_net *net, const void *data, size_t bytes, struct sx_buffer **out_buffer,
                           struct sx_error *error) {
    *out_buffer = NULL;
    if (bytes == 0)
        return SX_OK;
    SX_TRY(sx_buffer_create(net->control_pool, bytes, out_buffer, error));
    memcpy((*out_buffer)->data, data, bytes);
    return SX_OK;
}

/* ---- what a net tells of itself ---- */

int sx_net_rank(const struct sx_net *net) {
    return net->rank;
}

int sx_net_size(const struct sx_net *net) {
    return net->size;
}

int sx_net_host(const struct sx_net *net, int rank) {
    return net->transport->hosts ? net->transport->hosts[rank] : 0;
}

const char *sx_net_transport(const struct sx_net *net) {
    return net->transport->name;
}

struct sx_transport *sx_net_get_transport(const struct sx_net *net) {
    return net->transport;
}

const char *sx_net_rank_name(const struct sx_net *net, int rank) {
    return net->transport->rank_names[rank];
}

int64_t sx_net_sent_bytes(const struct sx_net *net) {
    return atomic_load_explicit(&net->sent_bytes, memory_order_relaxed);
}

/* ---- beginning and end ---- */

static void destroy(struct sx_net *net) {
    sx_relay_release(net);
    sx_kept_clear(&net->early);
    sx_kept_clear(&net->collectives);
    sx_pool_destroy(net->control_pool);
    pthread_cond_destroy(&net->changed);
    pthread_mutex_destroy(&net->lock);
    free(net->barriers);
    free(net->left);
    free(net);
}

static enum sx_status make(struct sx_transport *transport, struct sx_net **out_net, struct sx_error *error) {
    struct sx_net *net = calloc(1, sizeof *net);
    if (!net)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the network");
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&net->lock, NULL);
    pthread_cond_init(&net->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    net->transport = transport;
    net->rank = transport->rank;
    net->size = transport->size;
    net->barriers = calloc((size_t)net->size, sizeof *net->barriers);
    net->left = calloc((size_t)net->size, sizeof *net->left);
    enum sx_status status = net->barriers && net->left
                                ? sx_pool_create(0, &net->control_pool, error)
                                : sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for %d ranks", net->size);
    if (status == SX_OK)
        status = sx_relay_init(net, error);
    if (status != SX_OK) {
        destroy(net);
        return status;
    }
    *out_net = net;
    return SX_OK;
}

enum sx_status sx_net_create(struct sx_transport *transport, struct sx_net **out_net,
                             struct sx_error *error) {
    struct sx_net *net = NULL;
    enum sx_status status = make(transport, &net, error);
    if (status == SX_OK)
        status = transport->ops->start(transport, &sx_net_events, net, error);
    if (status != SX_OK) {
        if (transport->ops->close(transport) && net)
            destroy(net);
        return status;
    }
    *out_net = net;
    return SX_OK;
}

static int not_left(const struct sx_net *net, const void *context) {
    (void)context;
    for (int r = 0; r < net->size; r++)
        if (!net->left[r])
            return r;
    return -1;
}

void sx_net_close(struct sx_net *net) {
    if (!net)
        return;
    pthread_mutex_lock(&net->lock);
    enum sx_status status = sx_net_wait(net, sx_net_unsent, NULL, true, NULL, NULL);
    if (status == SX_OK)
        status = sx_pulls_let_go(net);
    const struct sx_frame last = {.kind = net->is_lost ? SX_FRAME_LOST : SX_FRAME_LEAVE,
                                  .value = (uint64_t)net->lost_rank};
    net->left[net->rank] = true;
    sx_net_send_all(net, &last, NULL, 0);
    if (status == SX_OK)
        status = sx_net_wait(net, not_left, NULL, true, NULL, NULL);
    if (status == SX_OK)
        status = sx_net_wait(net, sx_net_unsent, NULL, true, NULL, NULL);
    sx_net_unlock(net);
    (void)status; /* a lost rank has been told of; there is nothing to wait for then */
    sx_rounds_close(net);
    sx_pulls_close(net); /* and the memory that messages of rounds may be in */
    if (net->transport->ops->close(net->transport))
        destroy(net);
}
