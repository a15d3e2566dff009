/* Messages in two levels: within a host to the rank that has the receiver's place, then across. Frames of
 * channels that go the same way are put together, so that many small ones travel as few large ones.
 *
 * A rank on the way takes whatever comes and sends it on, and waits for nobody but the transport: room for a
 * message is reserved from end to end, by the credit that its receiver gave to its sender. What a rank keeps
 * for others is within the windows of its host's ranks to the ranks that have its place. */
#include <stdlib.h>
#include <string.h>

#include "net/state.h"

enum {
    BUNDLE_BYTES = 1 << 20,
    MOST_FLYING_BYTES = 4 << 20, /* on one way */
    LEAST_FLYING = 2,            /* frames: with so many on their way, less than a bundle waits for company */
    SMALL_MESSAGE = 128 << 10,   /* bytes: such ones gain by company */
    PARCEL_ALIGNMENT = 8
};

/* In front of a frame's payload in a bundle. */
struct parcel_head {
    struct sx_frame frame;
    uint32_t from, to;
    uint64_t bytes;
};

_Static_assert(sizeof(struct parcel_head) % PARCEL_ALIGNMENT == 0, "parcels align");

static size_t packed_bytes(const struct sx_parcel *parcel) {
    const size_t bytes = sizeof(struct parcel_head) + parcel->bytes;
    return (bytes + PARCEL_ALIGNMENT - 1) & ~(size_t)(PARCEL_ALIGNMENT - 1);
}

/* ---- the next rank ---- */

/* How many of the ranks before `rank` are on its host. */
static int place_of(const struct sx_net *net, int rank) {
    int place = 0;
    for (int r = 0; r < rank; r++)
        place += sx_net_host(net, r) == sx_net_host(net, rank);
    return place;
}

static int ranks_of_host(const struct sx_net *net, int host) {
    int n = 0;
    for (int r = 0; r < net->size; r++)
        n += sx_net_host(net, r) == host;
    return n;
}

static int next_hop(const struct sx_net *net, int to) {
    const int host = sx_net_host(net, net->rank);
    const int n = ranks_of_host(net, host);
    if (sx_net_host(net, to) == host || n == 0)
        return to;
    int place = place_of(net, to) % n, relay = 0;
    while (sx_net_host(net, relay) != host || place-- > 0)
        relay++;
    return relay == net->rank ? to : relay;
}

enum sx_status sx_relay_init(struct sx_net *net, struct sx_error *error) {
    net->hops = calloc((size_t)net->size, sizeof *net->hops);
    net->ways = calloc((size_t)net->size, sizeof *net->ways);
    if (!net->hops || !net->ways)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for %d ranks", net->size);
    bool has_others = false, has_neighbours = false;
    for (int r = 0; r < net->size; r++) {
        net->hops[r] = next_hop(net, r);
        has_others = has_others || sx_net_host(net, r) != sx_net_host(net, 0);
        has_neighbours = has_neighbours || place_of(net, r) > 0;
    }
    net->has_levels = has_others && has_neighbours;
    return SX_OK;
}

void sx_relay_release(struct sx_net *net) {
    for (int r = 0; net->ways && r < net->size; r++)
        for (struct sx_parcel *parcel = net->ways[r].first, *next; parcel; parcel = next) {
            next = parcel->next;
            sx_buffer_release(parcel->buffer);
            free(parcel);
        }
    free(net->ways);
    free(net->hops);
}

bool sx_net_in_two_levels(const struct sx_net *net, enum sx_shuffle shuffle, size_t message_bytes) {
    return net->has_levels &&
           (shuffle == SX_SHUFFLE_TWO_LEVEL || (shuffle == SX_SHUFFLE_AUTO && message_bytes < SMALL_MESSAGE));
}

/* ---- queues ---- */

/* Takes the buffer over. Without memory for a place in the queue it goes alone. */
static void enqueue(struct sx_net *net, int hop, const struct sx_parcel *given) {
    struct sx_way *way = &net->ways[hop];
    struct sx_parcel *parcel = malloc(sizeof *parcel);
    if (!parcel) {
        struct sx_error error = {0};
        (void)sx_error_set(&error, SX_OUT_OF_MEMORY, "no memory for a message on its way");
        sx_buffer_release(given->buffer);
        sx_net_fail_locked(net, &error);
        return;
    }
    *parcel = *given;
    if (way->last)
        way->last->next = parcel;
    else
        way->first = parcel;
    way->last = parcel;
    way->queued_bytes += packed_bytes(parcel);
    net->parcels++;
}

void sx_relay_post(struct sx_net *net, int rank, const struct sx_frame *frame, struct sx_buffer *buffer,
                   size_t bytes) {
    const struct sx_parcel parcel = {
        .from = net->rank, .to = rank, .frame = *frame, .buffer = buffer, .bytes = bytes};
    enqueue(net, net->hops[rank], &parcel);
}

void sx_relay_sent(struct sx_net *net, int rank, size_t bytes) {
    net->ways[rank].flying--;
    net->ways[rank].flying_bytes -= bytes;
}

static bool may_go(const struct sx_way *way) {
    return way->first && way->flying_bytes < MOST_FLYING_BYTES &&
           (way->flying < LEAST_FLYING || way->queued_bytes >= BUNDLE_BYTES);
}

/* The first parcels, not much more than a bundle's bytes; at least one. */
static struct sx_parcel *detach(struct sx_way *way, size_t *out_bytes, size_t *out_count) {
    struct sx_parcel *first = way->first, *last;
    *out_bytes = *out_count = 0;
    do {
        last = way->first;
        way->first = last->next;
        *out_bytes += packed_bytes(last);
        ++*out_count;
    } while (way->first && *out_bytes + packed_bytes(way->first) <= BUNDLE_BYTES);
    last->next = NULL;
    if (!way->first)
        way->last = NULL;
    way->queued_bytes -= *out_bytes;
    return first;
}

/* As it is: nobody else goes its way, and the next rank is its receiver. */
static void send_alone(struct sx_net *net, int hop, struct sx_parcel *parcel) {
    parcel->frame.flags |= SX_FRAME_LINKED;
    sx_net_send(net, hop, &parcel->frame, parcel->buffer, parcel->bytes);
    free(parcel);
}

static void pack(const struct sx_parcel *parcel, char *out) {
    for (; parcel; parcel = parcel->next) {
        const struct parcel_head head = {.frame = parcel->frame,
                                         .from = (uint32_t)parcel->from,
                                         .to = (uint32_t)parcel->to,
                                         .bytes = parcel->bytes};
        memcpy(out, &head, sizeof head);
        if (parcel->bytes > 0)
            memcpy(out + sizeof head, (const char *)parcel->buffer->data + parcel->offset, parcel->bytes);
        out += packed_bytes(parcel);
    }
}

/* Own messages in a bundle have left as far as their channels are concerned. */
static void release_parcels(struct sx_net *net, struct sx_parcel *parcel) {
    for (struct sx_parcel *next; parcel; parcel = next) {
        next = parcel->next;
        struct sx_channel *channel = parcel->from == net->rank && parcel->frame.kind == SX_FRAME_MESSAGE
                                         ? sx_channel_find(net, &parcel->frame)
                                         : NULL;
        if (channel)
            sx_channel_sent(channel, parcel->bytes);
        sx_buffer_release(parcel->buffer);
        free(parcel);
    }
}

/* Bytes are copied without the lock. */
static void send_bundle(struct sx_net *net, int hop, struct sx_parcel *parcels, size_t bytes) {
    const struct sx_frame frame = {.kind = SX_FRAME_BUNDLE, .epoch = net->epoch, .flags = SX_FRAME_LINKED};
    struct sx_buffer *buffer;
    struct sx_error error = {0};
    pthread_mutex_unlock(&net->lock);
    const enum sx_status status = sx_buffer_create(net->control_pool, bytes, &buffer, &error);
    if (status == SX_OK)
        pack(parcels, buffer->data);
    pthread_mutex_lock(&net->lock);
    release_parcels(net, parcels);
    if (status == SX_OK) {
        sx_net_send(net, hop, &frame, buffer, bytes);
        return;
    }
    sx_net_fail_locked(net, &error);
    sx_relay_sent(net, hop, bytes);
}

bool sx_relay_pump(struct sx_net *net) {
    int hop = 0;
    if (net->parcels == 0)
        return false;
    while (hop < net->size && !may_go(&net->ways[hop]))
        hop++;
    if (hop == net->size)
        return false;
    struct sx_way *way = &net->ways[hop];
    size_t bytes, count;
    struct sx_parcel *parcels = detach(way, &bytes, &count);
    const bool is_alone = count == 1 && parcels->from == net->rank && parcels->to == hop;
    way->flying++;
    way->flying_bytes += is_alone ? parcels->bytes : bytes;
    if (is_alone)
        send_alone(net, hop, parcels);
    else
        send_bundle(net, hop, parcels, bytes);
    net->parcels -= count;
    return true;
}

/* ---- bundles that come ---- */

/* As if its sender had sent it here. */
static void deliver(struct sx_net *net, const struct parcel_head *head, const char *payload) {
    struct sx_buffer *buffer = NULL;
    const size_t bytes = (size_t)head->bytes;
    if (!sx_net_events.expect(net, (int)head->from, &head->frame, bytes, &buffer))
        return;
    if (bytes > 0)
        memcpy(buffer->data, payload, bytes);
    sx_net_events.received(net, (int)head->from, &head->frame, buffer, bytes);
}

static void pass_on(struct sx_net *net, const struct parcel_head *head, struct sx_buffer *buffer,
                    size_t offset) {
    const struct sx_parcel parcel = {.from = (int)head->from,
                                     .to = (int)head->to,
                                     .frame = head->frame,
                                     .buffer = sx_buffer_retain(buffer),
                                     .offset = offset,
                                     .bytes = (size_t)head->bytes};
    pthread_mutex_lock(&net->lock);
    enqueue(net, parcel.to, &parcel);
    pthread_mutex_unlock(&net->lock);
}

/* False: the bundle ends within it. */
static bool is_whole(const struct sx_net *net, const struct parcel_head *head, size_t left) {
    return head->from < (uint32_t)net->size && head->to < (uint32_t)net->size && head->bytes <= left &&
           (head->frame.kind == SX_FRAME_MESSAGE || head->frame.kind == SX_FRAME_CREDIT ||
            head->frame.kind == SX_FRAME_END);
}

void sx_relay_take(struct sx_net *net, struct sx_buffer *buffer, size_t bytes) {
    struct parcel_head head;
    for (size_t at = 0; at < bytes;) {
        const size_t left = bytes - at;
        const char *begin = (const char *)buffer->data + at;
        if (left >= sizeof head)
            memcpy(&head, begin, sizeof head);
        if (left < sizeof head || !is_whole(net, &head, left - sizeof head)) {
            struct sx_error error = {0};
            (void)sx_error_set(&error, SX_INTERNAL, "a bundle of messages is damaged");
            sx_net_fail(net, &error);
            break;
        }
        if ((int)head.to == net->rank)
            deliver(net, &head, begin + sizeof head);
        else
            pass_on(net, &head, buffer, at + sizeof head);
        const struct sx_parcel size = {.bytes = (size_t)head.bytes};
        at += packed_bytes(&size);
    }
    pthread_mutex_lock(&net->lock);
    sx_net_unlock(net);
}
