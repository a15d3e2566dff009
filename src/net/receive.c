/* What happens with frames that come: the transport's events, called by its thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/state.h"

/* The net fails by this rank's fault. */
static void fail(struct sx_net *net, struct sx_error *error, const char *what) {
    sx_error_prefix(error, "%s", what);
    sx_net_fail(net, error);
}

/* The sender of an offer that this rank has no memory to keep waits for an answer. */
static void give_back_offer(struct sx_net *net, int rank, const struct sx_frame *frame) {
    if (frame->kind == SX_FRAME_OFFER)
        sx_pulls_give_back(net, rank, frame->value);
}

static bool expect(void *context, int rank, const struct sx_frame *frame, size_t bytes,
                   struct sx_buffer **out_buffer) {
    struct sx_net *net = context;
    struct sx_pool *pool = net->control_pool;
    struct sx_channel *channel = NULL;
    struct sx_error error = {0};
    bool wanted = true;
    *out_buffer = NULL;
    pthread_mutex_lock(&net->lock);
    if (frame->kind == SX_FRAME_MESSAGE && !sx_channel_is_early(net, frame)) {
        channel = sx_channel_find(net, frame);
        wanted = channel != NULL;
        if (channel) {
            channel->pins++;
            pool = channel->options.pool;
        } else
            sx_channel_refuse(net, rank, frame, bytes);
    }
    sx_net_unlock(net);
    if (wanted && bytes && sx_buffer_create(pool, bytes, out_buffer, &error) != SX_OK) {
        wanted = false;
        if (sx_net_can_lack(frame, &error)) {
            sx_net_events.received(net, rank, frame, NULL, bytes);
        } else {
            fail(net, &error, "a message that came");
            give_back_offer(net, rank, frame);
        }
    }
    if (channel) {
        pthread_mutex_lock(&net->lock);
        if (--channel->pins == 0)
            sx_net_changed(net);
        sx_net_unlock(net);
    }
    return wanted;
}

/* Of a channel. NULL: the frame has been taken over. */
static struct sx_kept *take_channel(struct sx_net *net, struct sx_kept *kept) {
    struct sx_channel *channel = sx_channel_find(net, &kept->frame);
    if (channel)
        sx_channel_take(channel, kept);
    else if (sx_channel_is_early(net, &kept->frame))
        sx_kept_append(&net->early, kept);
    else {
        if (kept->frame.kind == SX_FRAME_MESSAGE)
            sx_channel_refuse(net, kept->message.rank, &kept->frame, kept->message.bytes);
        return kept;
    }
    return NULL;
}

static void take_failure(struct sx_net *net, const struct sx_kept *kept) {
    struct sx_error failure = {0};
    const struct sx_net_message *message = &kept->message;
    const enum sx_status status = (enum sx_status)kept->frame.value;
    if (message->bytes)
        (void)sx_error_set(&failure, status, "%.*s", (int)message->bytes,
                           (const char *)message->buffer->data);
    else
        (void)sx_error_set(&failure, status, "%s: %s", net->transport->rank_names[message->rank],
                           sx_status_phrase(status));
    if (kept->frame.epoch == net->epoch)
        sx_net_set_failure(net, &failure, false);
    else if (kept->frame.epoch > net->epoch && net->next_failure.status == SX_OK)
        net->next_failure = failure;
}

/* Whoever still expects something of the rank waits in vain. */
static void take_leave(struct sx_net *net, int rank) {
    net->left[rank] = true;
    for (const struct sx_channel *channel = net->channels; channel; channel = channel->next)
        if (!channel->is_destroyed && !channel->flows[rank].end_received) {
            sx_net_set_lost(net, rank, SX_NET_LEFT_TEXT);
            return;
        }
}

/* NULL: the frame has been taken over. */
static struct sx_kept *take(struct sx_net *net, struct sx_kept *kept) {
    switch ((enum sx_frame_kind)kept->frame.kind) {
    case SX_FRAME_MESSAGE:
    case SX_FRAME_CREDIT:
    case SX_FRAME_END: return take_channel(net, kept);
    case SX_FRAME_GATHER:
    case SX_FRAME_BROADCAST:
        if (kept->frame.epoch < net->epoch)
            return kept;
        sx_kept_append(&net->collectives, kept);
        sx_net_changed(net);
        return NULL;
    case SX_FRAME_BARRIER:
        net->barriers[kept->message.rank]++;
        sx_net_pass_barrier(net);
        break;
    case SX_FRAME_FAIL: take_failure(net, kept); break;
    case SX_FRAME_ROUND:
        if (!net->rounds)
            break;
        sx_rounds_take(net->rounds, kept);
        return NULL;
    case SX_FRAME_OFFER:
        if (!net->pulls)
            break;
        sx_pulls_take(net->pulls, kept);
        return NULL;
    case SX_FRAME_LOST:
        net->left[kept->message.rank] = true;
        if (kept->frame.value < (uint64_t)net->size && (int)kept->frame.value != net->rank)
            sx_net_set_lost(net, (int)kept->frame.value, "was lost");
        break;
    case SX_FRAME_LEAVE: take_leave(net, kept->message.rank); break;
    case SX_FRAME_BUNDLE: break; /* has been taken apart */
    case SX_FRAME_TAKEN: break;  /* and told of */
    }
    sx_net_changed(net);
    return kept;
}

static void received(void *context, int rank, const struct sx_frame *frame, struct sx_buffer *buffer,
                     size_t bytes) {
    struct sx_net *net = context;
    if (frame->kind == SX_FRAME_BUNDLE) {
        sx_relay_take(net, buffer, bytes);
        sx_buffer_release(buffer);
        return;
    }
    if (frame->kind == SX_FRAME_TAKEN) {
        sx_pulls_taken(net, frame->value);
        return;
    }
    struct sx_kept *kept = malloc(sizeof *kept);
    if (!kept) {
        struct sx_error error = {0};
        (void)sx_error_set(&error, SX_OUT_OF_MEMORY, "no memory for a message");
        sx_buffer_release(buffer);
        sx_net_fail(net, &error);
        give_back_offer(net, rank, frame);
        return;
    }
    *kept = (struct sx_kept){.frame = *frame,
                             .message = {.rank = rank,
                                         .buffer = buffer,
                                         .bytes = bytes,
                                         .on_device = (frame->flags & SX_FRAME_ON_DEVICE) != 0}};
    pthread_mutex_lock(&net->lock);
    kept = take(net, kept);
    sx_net_unlock(net);
    sx_kept_release(kept);
}

static void sent(void *context, int rank, const struct sx_frame *frame, size_t bytes) {
    struct sx_net *net = context;
    pthread_mutex_lock(&net->lock);
    const bool is_paced = (frame->kind == SX_FRAME_MESSAGE && !(frame->flags & SX_FRAME_ON_DEVICE)) ||
                          frame->kind == SX_FRAME_BUNDLE;
    if (is_paced)
        sx_net_pace_end(net, sx_net_way_to(net, rank), bytes);
    if (frame->flags & SX_FRAME_LINKED)
        sx_relay_sent(net, rank, bytes);
    if (--net->in_flight == 0)
        sx_net_changed(net);
    struct sx_channel *channel = frame->kind == SX_FRAME_MESSAGE ? sx_channel_find(net, frame) : NULL;
    if (frame->kind == SX_FRAME_MESSAGE || frame->kind == SX_FRAME_BUNDLE)
        atomic_fetch_add(&net->sent_bytes, (int_fast64_t)bytes);
    if (channel)
        sx_channel_sent(channel, bytes);
    sx_net_unlock(net);
}

static void lost(void *context, int rank, const char *why) {
    struct sx_net *net = context;
    char what[128] = "was lost";
    if (why)
        snprintf(what, sizeof what, "was lost: %s", why);
    pthread_mutex_lock(&net->lock);
    if (!net->left[rank])
        sx_net_set_lost(net, rank, what);
    sx_net_unlock(net);
}

const struct sx_transport_events sx_net_events = {
    .expect = expect, .received = received, .sent = sent, .lost = lost};
