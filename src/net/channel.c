#include <stdlib.h>

#include "net/state.h"

enum {
    MESSAGE_OVERHEAD_BYTES = 64, /* of the window, so that empty messages are counted, too */
    CREDIT_SHARE = 4 /* of the window: credit goes back in such parts, or when nothing is left to take */
};

static size_t charge(size_t bytes) {
    return bytes + MESSAGE_OVERHEAD_BYTES;
}

void sx_channel_wake(struct sx_channel *channel) {
    if (channel->options.wake && !channel->wake_due) {
        channel->wake_due = true;
        channel->net->wakes_due++;
    }
}

static struct sx_frame make_frame(const struct sx_channel *channel, enum sx_frame_kind kind, uint64_t value) {
    return (struct sx_frame){
        .kind = kind, .epoch = channel->epoch, .channel = channel->number, .value = value};
}

/* To another rank; takes the buffer over. */
static void send_frame(const struct sx_channel *channel, int rank, const struct sx_frame *frame,
                       struct sx_buffer *buffer, size_t bytes) {
    if (channel->options.is_two_level && !(frame->flags & SX_FRAME_ON_DEVICE))
        sx_relay_post(channel->net, rank, frame, buffer, bytes);
    else
        sx_net_send(channel->net, rank, frame, buffer, bytes);
}

static bool has_ended(const struct sx_channel *channel) {
    for (int r = 0; r < channel->net->size; r++) {
        const struct sx_flow *flow = &channel->flows[r];
        if (!flow->end_received || flow->received_messages != flow->end_messages)
            return false;
    }
    return !channel->received.first;
}

/* ---- out ---- */

static void take_message(struct sx_channel *channel, struct sx_kept *kept) {
    struct sx_flow *flow = &channel->flows[kept->message.rank];
    flow->received_messages++;
    flow->held_bytes += charge(kept->message.bytes);
    sx_kept_append(&channel->received, kept);
    sx_channel_wake(channel);
}

static void take_end(struct sx_channel *channel, int rank, uint64_t messages) {
    struct sx_flow *flow = &channel->flows[rank];
    flow->end_received = true;
    flow->end_messages = messages;
    sx_channel_wake(channel);
}

static void deliver(struct sx_channel *channel, struct sx_kept *kept) {
    struct sx_net *net = channel->net;
    const struct sx_net_message message = kept->message;
    if (message.rank == net->rank) {
        sx_channel_sent(channel, message.bytes);
        take_message(channel, kept);
        return;
    }
    struct sx_frame frame = make_frame(channel, SX_FRAME_MESSAGE, 0);
    frame.flags =
        (message.on_device ? SX_FRAME_ON_DEVICE : 0) | (channel->options.is_optional ? SX_FRAME_OPTIONAL : 0);
    channel->report.sent_bytes += (int64_t)message.bytes;
    channel->report.sent_messages++;
    free(kept);
    send_frame(channel, message.rank, &frame, message.buffer, message.bytes);
}

/* Sends what there is credit for, and the end after the last. */
static void pump(struct sx_channel *channel, int rank) {
    struct sx_net *net = channel->net;
    struct sx_flow *flow = &channel->flows[rank];
    while (flow->waiting.first) {
        const size_t bytes = charge(flow->waiting.first->message.bytes);
        if (flow->outstanding_bytes && flow->outstanding_bytes + bytes > channel->options.window_bytes)
            return;
        flow->outstanding_bytes += bytes;
        flow->sent_messages++;
        deliver(channel, sx_kept_pop(&flow->waiting));
    }
    if (!channel->is_ended || flow->end_sent)
        return;
    flow->end_sent = true;
    if (rank == net->rank) {
        take_end(channel, rank, flow->sent_messages);
        return;
    }
    const struct sx_frame frame = make_frame(channel, SX_FRAME_END, flow->sent_messages);
    send_frame(channel, rank, &frame, NULL, 0);
}

/* Takes the buffers over in every case. */
static enum sx_status keep_all(const struct sx_net_message *messages, int n, struct sx_kept_list *out_list,
                               struct sx_error *error) {
    for (int i = 0; i < n; i++) {
        struct sx_kept *kept = malloc(sizeof *kept);
        if (!kept) {
            for (; i < n; i++)
                sx_buffer_release(messages[i].buffer);
            return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a message");
        }
        *kept = (struct sx_kept){.message = messages[i]};
        sx_kept_append(out_list, kept);
    }
    return SX_OK;
}

/* With the lock held. */
static void send_list(struct sx_channel *channel, struct sx_kept_list *list) {
    struct sx_kept *kept;
    while ((kept = sx_kept_pop(list)) != NULL) {
        const int rank = kept->message.rank;
        atomic_fetch_add(&channel->unsent_bytes, kept->message.bytes);
        sx_kept_append(&channel->flows[rank].waiting, kept);
        pump(channel, rank);
    }
}

enum sx_status sx_channel_send(struct sx_channel *channel, const struct sx_net_message *messages, int n,
                               struct sx_error *error) {
    struct sx_net *net = channel->net;
    struct sx_kept_list list = {0};
    enum sx_status status = keep_all(messages, n, &list, error);
    pthread_mutex_lock(&net->lock);
    if (status == SX_OK)
        status = sx_net_failure(net, error);
    if (status == SX_OK && channel->is_ended)
        status = sx_error_set(error, SX_INTERNAL, "channel %u: a message after its end", channel->number);
    if (status == SX_OK)
        send_list(channel, &list);
    sx_net_unlock(net);
    sx_kept_clear(&list);
    return status;
}

enum sx_status sx_channel_end(struct sx_channel *channel, struct sx_error *error) {
    struct sx_net *net = channel->net;
    pthread_mutex_lock(&net->lock);
    enum sx_status status = sx_net_failure(net, error);
    channel->is_ended = true;
    for (int r = 0; status == SX_OK && r < net->size; r++)
        pump(channel, r);
    sx_net_unlock(net);
    return status;
}

void sx_channel_sent(struct sx_channel *channel, size_t bytes) {
    atomic_fetch_sub(&channel->unsent_bytes, bytes);
    sx_channel_wake(channel);
}

size_t sx_channel_unsent_bytes(const struct sx_channel *channel) {
    return atomic_load(&channel->unsent_bytes);
}

void sx_channel_drop_waiting(struct sx_channel *channel) {
    for (int r = 0; r < channel->net->size; r++) {
        struct sx_kept *kept;
        while ((kept = sx_kept_pop(&channel->flows[r].waiting)) != NULL) {
            atomic_fetch_sub(&channel->unsent_bytes, kept->message.bytes);
            sx_kept_release(kept);
        }
    }
}

/* ---- in ---- */

/* Credit of `bytes` has come back from the rank. */
static void take_credit(struct sx_channel *channel, int rank, size_t bytes) {
    channel->flows[rank].outstanding_bytes -= bytes;
    if (channel->net->failure.status == SX_OK)
        pump(channel, rank);
}

static void give_credit(struct sx_channel *channel, int rank) {
    struct sx_flow *flow = &channel->flows[rank];
    const size_t bytes = flow->taken_bytes;
    if (!bytes || (flow->held_bytes && bytes < channel->options.window_bytes / CREDIT_SHARE))
        return;
    flow->taken_bytes = 0;
    if (rank == channel->net->rank) {
        take_credit(channel, rank, bytes);
        return;
    }
    const struct sx_frame frame = make_frame(channel, SX_FRAME_CREDIT, bytes);
    send_frame(channel, rank, &frame, NULL, 0);
}

void sx_channel_refuse(struct sx_net *net, int rank, const struct sx_frame *frame, size_t bytes) {
    if (frame->epoch != net->epoch)
        return;
    const struct sx_frame credit = {
        .kind = SX_FRAME_CREDIT, .epoch = frame->epoch, .channel = frame->channel, .value = charge(bytes)};
    sx_net_send(net, rank, &credit, NULL, 0);
}

bool sx_channel_wants(struct sx_net *net, int rank, const struct sx_frame *frame, size_t bytes) {
    if (sx_channel_is_early(net, frame) || sx_channel_find(net, frame))
        return true;
    sx_channel_refuse(net, rank, frame, bytes);
    return false;
}

void sx_channel_take(struct sx_channel *channel, struct sx_kept *kept) {
    const int rank = kept->message.rank;
    if (kept->frame.kind == SX_FRAME_MESSAGE) {
        channel->report.received_bytes += (int64_t)kept->message.bytes;
        channel->report.received_messages++;
        take_message(channel, kept);
        return;
    }
    if (kept->frame.kind == SX_FRAME_CREDIT)
        take_credit(channel, rank, (size_t)kept->frame.value);
    else
        take_end(channel, rank, kept->frame.value);
    sx_kept_release(kept);
    sx_channel_bury(channel);
}

static void take_out(struct sx_channel *channel, struct sx_kept *kept) {
    struct sx_flow *flow = &channel->flows[kept->message.rank];
    const size_t bytes = charge(kept->message.bytes);
    flow->held_bytes -= bytes;
    flow->taken_bytes += bytes;
    give_credit(channel, kept->message.rank);
    if (has_ended(channel))
        sx_channel_wake(channel);
}

bool sx_channel_receive(struct sx_channel *channel, struct sx_net_message *out_message) {
    struct sx_net *net = channel->net;
    pthread_mutex_lock(&net->lock);
    struct sx_kept *kept = sx_kept_pop(&channel->received);
    if (kept)
        take_out(channel, kept);
    sx_net_unlock(net);
    if (!kept)
        return false;
    *out_message = kept->message;
    free(kept);
    return true;
}

bool sx_channel_ended(const struct sx_channel *channel) {
    pthread_mutex_lock(&channel->net->lock);
    const bool ended = has_ended(channel);
    pthread_mutex_unlock(&channel->net->lock);
    return ended;
}

struct sx_channel_report sx_channel_report(const struct sx_channel *channel) {
    pthread_mutex_lock(&channel->net->lock);
    const struct sx_channel_report report = channel->report;
    pthread_mutex_unlock(&channel->net->lock);
    return report;
}

/* ---- beginning and end ---- */

struct sx_channel *sx_channel_find(const struct sx_net *net, const struct sx_frame *frame) {
    struct sx_channel *channel = frame->epoch == net->epoch ? net->channels : NULL;
    while (channel && (channel->epoch != frame->epoch || channel->number != frame->channel))
        channel = channel->next;
    return channel && channel->is_destroyed && frame->kind != SX_FRAME_CREDIT ? NULL : channel;
}

bool sx_channel_is_early(const struct sx_net *net, const struct sx_frame *frame) {
    return frame->epoch > net->epoch || (frame->epoch == net->epoch && frame->channel >= net->next_channel);
}

static void take_early(struct sx_channel *channel) {
    struct sx_kept_list rest = {0};
    struct sx_kept *kept;
    while ((kept = sx_kept_pop(&channel->net->early)) != NULL)
        if (kept->frame.epoch == channel->epoch && kept->frame.channel == channel->number)
            sx_channel_take(channel, kept);
        else
            sx_kept_append(&rest, kept);
    channel->net->early = rest;
}

enum sx_status sx_channel_create(struct sx_net *net, const struct sx_channel_options *options,
                                 struct sx_channel **out_channel, struct sx_error *error) {
    struct sx_channel *channel = calloc(1, sizeof *channel);
    struct sx_flow *flows = calloc((size_t)net->size, sizeof *flows);
    enum sx_status status =
        channel && flows ? SX_OK : sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a channel");
    pthread_mutex_lock(&net->lock);
    if (status == SX_OK)
        status = sx_net_failure(net, error);
    if (status == SX_OK) {
        *channel = (struct sx_channel){.net = net,
                                       .next = net->channels,
                                       .epoch = net->epoch,
                                       .number = net->next_channel++,
                                       .options = *options,
                                       .flows = flows};
        net->channels = channel;
        take_early(channel);
        for (int r = 0; r < net->size; r++)
            if (net->left[r] && !flows[r].end_received)
                sx_net_set_lost(net, r, SX_NET_LEFT_TEXT);
    }
    sx_net_unlock(net);
    if (status != SX_OK) {
        free(channel);
        free(flows);
        return status;
    }
    *out_channel = channel;
    return SX_OK;
}

/* Senders, this rank among them, wait for no credit of a rank that takes no more. */
static void drop_received(struct sx_channel *channel) {
    struct sx_kept *kept;
    while ((kept = sx_kept_pop(&channel->received)) != NULL) {
        take_out(channel, kept);
        sx_kept_release(kept);
    }
    for (int r = 0; r < channel->net->size; r++) {
        channel->flows[r].held_bytes = 0;
        give_credit(channel, r);
    }
}

/* All that this rank has to send has been sent. */
static bool is_through(const struct sx_channel *channel) {
    for (int r = 0; r < channel->net->size; r++)
        if (channel->flows[r].waiting.first || !channel->flows[r].end_sent)
            return channel->net->failure.status != SX_OK;
    return true;
}

void sx_channel_bury(struct sx_channel *channel) {
    struct sx_net *net = channel->net;
    if (!channel->is_destroyed || !is_through(channel))
        return;
    struct sx_channel **link = &net->channels;
    while (*link != channel)
        link = &(*link)->next;
    *link = channel->next;
    net->lingering--;
    free(channel->flows);
    free(channel);
    sx_net_changed(net);
}

void sx_channel_destroy(struct sx_channel *channel) {
    if (!channel)
        return;
    struct sx_net *net = channel->net;
    pthread_mutex_lock(&net->lock);
    while (channel->pins > 0)
        sx_net_await(net, NULL);
    if (channel->wake_due)
        net->wakes_due--;
    channel->wake_due = false;
    channel->options.wake = NULL;
    channel->is_destroyed = true;
    channel->is_ended = true;
    net->lingering++;
    drop_received(channel);
    for (int r = 0; r < net->size && net->failure.status == SX_OK; r++)
        if (!channel->flows[r].end_sent)
            pump(channel, r);
    sx_channel_bury(channel);
    sx_net_unlock(net);
}
