/* Messages between devices. They wait until the net's thread for them begins a round: it tells each other
 * rank what it will get from this one (a frame over the transport), and a rank that hears of a round joins
 * it, maybe with nothing. When the announcements of all ranks are there each knows what it sends and
 * receives, and all exchange at once. So the link's collective calls have one order on all ranks, whatever
 * the channels do; credits, ends and failures stay with the channels. Another thread waits for the ends of
 * rounds, so that the next one is announced, and waits on the device, while one is under way. A large message
 * goes slice by slice: a round with all of it takes the time of that rank's link, and what other ranks have
 * meanwhile waits for it. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/signals.h"
#include "net/link.h"
#include "net/state.h"

enum { SLICE_UNIT = 512 /* bytes */ };

/* A message's slice in a round, as it is announced. */
struct announced {
    struct sx_frame frame;
    uint64_t offset, bytes, message_bytes;
};

/* What a rank sends and receives in a round; `kept` has the messages that the parts are of, or second owners
 * of their buffers where later rounds have the rest. */
struct part_list {
    struct sx_link_part *parts;
    struct sx_kept **kept;
    int n;
};

/* A round that the link has begun. */
struct flight {
    struct part_list sends, receives;
    size_t bytes;     /* sent, */
    size_t all_bytes; /* and received */
    int64_t began_ns;
};

struct sx_rounds {
    struct sx_net *net;
    struct sx_link *link;
    pthread_t thread, ender;
    uint64_t number;                        /* of the round that comes next, or is under way */
    struct sx_kept_list pending;            /* messages that no round has taken yet */
    struct sx_kept_list announced;          /* what other ranks have told */
    struct sx_kept *partial;                /* by rank: the message of which slices have come, not all; */
    size_t *room;                           /* bytes that the round may still send */
    struct flight flights[SX_LINK_FLIGHTS]; /* in turn */
    uint64_t n_begun, n_ended;              /* flights */
    bool is_stopping, is_ended;             /* no more rounds; no more flights */
};

/* ---- lists ---- */

static int count(const struct sx_kept_list *list) {
    int n = 0;
    for (const struct sx_kept *kept = list->first; kept; kept = kept->next)
        n++;
    return n;
}

static void release_parts(struct part_list *list) {
    for (int i = 0; i < list->n; i++)
        sx_kept_release(list->kept[i]);
    free(list->parts);
    free(list->kept);
    *list = (struct part_list){0};
}

static bool make_room(struct part_list *list, int n) {
    list->parts = calloc((size_t)n + 1, sizeof *list->parts);
    list->kept = calloc((size_t)n + 1, sizeof(struct sx_kept *));
    return list->parts && list->kept;
}

static void add_part(struct part_list *list, struct sx_kept *kept, size_t offset, size_t bytes) {
    list->parts[list->n] = (struct sx_link_part){kept->message.rank, kept->message.buffer, offset, bytes};
    list->kept[list->n++] = kept;
}

/* Part i of the list ends its message. */
static bool ends_message(const struct part_list *list, int i) {
    return list->parts[i].offset + list->parts[i].bytes == list->kept[i]->message.bytes;
}

/* The message with its buffer retained; NULL: no memory. */
static struct sx_kept *share(const struct sx_kept *kept) {
    struct sx_kept *shared = malloc(sizeof *shared);
    if (!shared)
        return NULL;
    *shared = *kept;
    shared->next = NULL;
    sx_buffer_retain(kept->message.buffer);
    return shared;
}

/* Tells the net of messages that have gone, or never will. Without the lock. */
static void tell_sent(struct sx_net *net, const struct sx_kept *kept) {
    sx_net_events.sent(net, kept->message.rank, &kept->frame, kept->message.bytes);
}

/* ---- announcing; with the lock held ---- */

/* What this rank will send to `rank` in the round. */
static bool announce_to(struct sx_rounds *rounds, int rank, const struct part_list *sends) {
    struct sx_net *net = rounds->net;
    struct announced *told = calloc((size_t)sends->n + 1, sizeof *told);
    struct sx_buffer *buffer = NULL;
    size_t n = 0;
    for (int i = 0; told && i < sends->n; i++)
        if (sends->kept[i]->message.rank == rank)
            told[n++] = (struct announced){sends->kept[i]->frame, sends->parts[i].offset,
                                           sends->parts[i].bytes, sends->kept[i]->message.bytes};
    const bool made = told && sx_net_copy(net, told, n * sizeof *told, &buffer, NULL) == SX_OK;
    free(told);
    const struct sx_frame frame = {.kind = SX_FRAME_ROUND, .epoch = net->epoch, .value = rounds->number};
    if (made)
        sx_net_send(net, rank, &frame, buffer, n * sizeof(struct announced));
    return made;
}

/* As much of the message as the round has room for; what is left of it stays in `rest`, and all that follows
 * it to that rank. Slices begin where a device copies many bytes at a time. */
static bool take_slice(struct sx_rounds *rounds, struct sx_kept *kept, struct part_list *sends,
                       struct sx_kept_list *rest) {
    size_t *room = &rounds->room[kept->message.rank];
    const size_t offset = kept->gone_bytes, left = kept->message.bytes - offset;
    const size_t bytes = left <= *room ? left : *room / SLICE_UNIT * SLICE_UNIT;
    const bool is_full = *room == 0 || (bytes == 0 && left > 0);
    struct sx_kept *part = is_full ? NULL : bytes == left ? kept : share(kept);
    if (part) {
        add_part(sends, part, offset, bytes);
        kept->gone_bytes += bytes;
    }
    *room = part == kept ? *room - bytes : 0;
    if (part != kept)
        sx_kept_append(rest, kept);
    return part || is_full;
}

static bool take_pending(struct sx_rounds *rounds, struct part_list *sends) {
    const size_t room = rounds->link->round_bytes / (size_t)(rounds->net->size - 1);
    struct sx_kept_list rest = {0};
    struct sx_kept *kept;
    bool fine = make_room(sends, count(&rounds->pending));
    for (int r = 0; r < rounds->net->size; r++)
        rounds->room[r] = room > SLICE_UNIT ? room : SLICE_UNIT;
    while (fine && (kept = sx_kept_pop(&rounds->pending)) != NULL)
        fine = take_slice(rounds, kept, sends, &rest);
    while ((kept = sx_kept_pop(&rounds->pending)) != NULL)
        sx_kept_append(&rest, kept);
    rounds->pending = rest;
    return fine;
}

static bool begin(struct sx_rounds *rounds, struct part_list *sends) {
    struct sx_net *net = rounds->net;
    if (!take_pending(rounds, sends))
        return false;
    for (int r = 0; r < net->size; r++)
        if (r != net->rank && !announce_to(rounds, r, sends))
            return false;
    return true;
}

/* ---- what others announce; with the lock held ---- */

static int count_announced(const struct sx_rounds *rounds) {
    int n = 0;
    for (const struct sx_kept *kept = rounds->announced.first; kept; kept = kept->next)
        n += kept->frame.value == rounds->number;
    return n;
}

/* Takes those of this round out of the list. */
static struct sx_kept_list take_announced(struct sx_rounds *rounds) {
    struct sx_kept_list taken = {0}, rest = {0};
    struct sx_kept *kept;
    while ((kept = sx_kept_pop(&rounds->announced)) != NULL)
        sx_kept_append(kept->frame.value == rounds->number ? &taken : &rest, kept);
    rounds->announced = rest;
    return taken;
}

/* Without the buffer, which find_room adds; until then a later slice counts as wanted. */
static bool add_receive(struct sx_rounds *rounds, int rank, const struct announced *slice,
                        struct part_list *receives) {
    struct sx_kept *kept = calloc(1, sizeof *kept);
    if (!kept)
        return false;
    kept->frame = slice->frame;
    kept->frame.flags |= SX_FRAME_ON_DEVICE;
    kept->message =
        (struct sx_net_message){.rank = rank, .bytes = (size_t)slice->message_bytes, .on_device = true};
    if (slice->offset == 0 &&
        !sx_channel_wants(rounds->net, rank, &slice->frame, (size_t)slice->message_bytes))
        kept->frame.kind = SX_FRAME_ROUND; /* to be dropped */
    add_part(receives, kept, (size_t)slice->offset, (size_t)slice->bytes);
    return true;
}

/* What comes in this round, without room yet. */
static bool list_receives(struct sx_rounds *rounds, struct part_list *receives) {
    struct sx_kept_list announced = take_announced(rounds);
    size_t n = 0;
    for (const struct sx_kept *kept = announced.first; kept; kept = kept->next)
        n += kept->message.bytes / sizeof(struct announced);
    bool fine = make_room(receives, (int)n);
    for (const struct sx_kept *kept = announced.first; fine && kept; kept = kept->next) {
        const struct announced *told = kept->message.buffer ? kept->message.buffer->data : NULL;
        for (size_t i = 0; fine && told && i < kept->message.bytes / sizeof *told; i++)
            fine = add_receive(rounds, kept->message.rank, &told[i], receives);
    }
    sx_kept_clear(&announced);
    return fine;
}

/* ---- exchanging; without the lock ---- */

/* No room: the bytes come, since others send them, and the net fails, unless it can do without. */
static void make_partial(struct sx_rounds *rounds, struct sx_kept *partial) {
    struct sx_error error = {0};
    if (rounds->link->ops->allocate(rounds->link, partial->message.bytes, &partial->message.buffer, &error) ==
            SX_OK ||
        sx_net_can_lack(&partial->frame, &error))
        return;
    partial->frame.kind = SX_FRAME_ROUND;
    sx_error_prefix(&error, "a message that came");
    sx_net_fail(rounds->net, &error);
}

/* Messages that begin get their buffers, and slices share them; the last one takes it over. */
static void find_room(struct sx_rounds *rounds, struct part_list *receives) {
    for (int i = 0; i < receives->n; i++) {
        struct sx_kept *kept = receives->kept[i], *partial = &rounds->partial[kept->message.rank];
        if (receives->parts[i].offset == 0) {
            sx_buffer_release(partial->message.buffer);
            *partial = *kept;
            if (kept->frame.kind == SX_FRAME_MESSAGE)
                make_partial(rounds, partial);
        }
        kept->frame.kind = partial->frame.kind;
        kept->message.buffer = partial->message.buffer;
        receives->parts[i].buffer = partial->message.buffer;
        if (ends_message(receives, i))
            partial->message.buffer = NULL;
        else if (partial->message.buffer)
            sx_buffer_retain(partial->message.buffer);
    }
}

/* A query that has failed does not end a round: what others send has to be received. */
static bool gives_up(void *context) {
    struct sx_net *net = ((struct sx_rounds *)context)->net;
    pthread_mutex_lock(&net->lock);
    const bool is_lost = net->is_lost;
    pthread_mutex_unlock(&net->lock);
    return is_lost;
}

/* This rank's link is of no use any more: as if it were lost, to itself and to others. */
static void lose_link(struct sx_rounds *rounds, const struct sx_error *error) {
    struct sx_net *net = rounds->net;
    char what[512];
    snprintf(what, sizeof what, "has lost its link: %s: %.300s", rounds->link->name, error->text);
    pthread_mutex_lock(&net->lock);
    const struct sx_frame frame = {.kind = SX_FRAME_LOST, .epoch = net->epoch, .value = (uint64_t)net->rank};
    if (!net->is_lost) {
        sx_net_set_lost(net, net->rank, what);
        sx_net_send_all(net, &frame, NULL, 0);
    }
    sx_net_unlock(net);
}

static void end_round(struct sx_rounds *rounds, struct part_list *sends, struct part_list *receives,
                      bool came) {
    struct sx_net *net = rounds->net;
    for (int i = 0; i < sends->n; i++)
        if (ends_message(sends, i))
            tell_sent(net, sends->kept[i]);
    release_parts(sends);
    for (int i = 0; came && i < receives->n; i++) {
        struct sx_kept *kept = receives->kept[i];
        if (kept->frame.kind != SX_FRAME_MESSAGE || !ends_message(receives, i))
            continue;
        sx_net_events.received(net, kept->message.rank, &kept->frame, kept->message.buffer,
                               kept->message.bytes);
        kept->message.buffer = NULL;
    }
    release_parts(receives);
}

/* Begins a flight, once there is room for one; the parts go with it. */
static enum sx_status take_off(struct sx_rounds *rounds, struct part_list *sends, struct part_list *receives,
                               struct sx_error *error) {
    struct sx_net *net = rounds->net;
    const size_t bytes = sx_link_bytes(sends->parts, sends->n),
                 all_bytes = bytes + sx_link_bytes(receives->parts, receives->n);
    pthread_mutex_lock(&net->lock);
    while (rounds->n_begun - rounds->n_ended == SX_LINK_FLIGHTS)
        sx_net_await(net, NULL);
    const int place = (int)(rounds->n_begun % SX_LINK_FLIGHTS);
    sx_net_pace_begin(net, SX_NET_LINK, bytes);
    pthread_mutex_unlock(&net->lock);
    const int64_t began_ns = sx_clock_ns();
    const enum sx_status status = rounds->link->ops->start(
        rounds->link, place, sends->parts, sends->n, receives->parts, receives->n, gives_up, rounds, error);
    pthread_mutex_lock(&net->lock);
    if (status == SX_OK) {
        rounds->flights[place] = (struct flight){*sends, *receives, bytes, all_bytes, began_ns};
        *sends = *receives = (struct part_list){0};
        rounds->n_begun++;
        sx_net_changed(net);
    } else {
        sx_net_pace_end(net, SX_NET_LINK, bytes);
    }
    pthread_mutex_unlock(&net->lock);
    return status;
}

static void exchange(struct sx_rounds *rounds, struct part_list *sends, struct part_list *receives,
                     bool is_fine) {
    struct sx_error error = {0};
    enum sx_status status = is_fine ? SX_OK : sx_error_set(&error, SX_OUT_OF_MEMORY, "no memory for a round");
    if (status == SX_OK) {
        find_room(rounds, receives);
        status = rounds->link->ops->connect(rounds->link, gives_up, rounds, &error);
        if (status == SX_OK && sends->n + receives->n > 0)
            status = take_off(rounds, sends, receives, &error);
    }
    if (status != SX_OK)
        lose_link(rounds, &error);
    end_round(rounds, sends, receives, status == SX_OK);
}

/* With the lock held. */
static void tell_watch(const struct sx_net *net, int place, const struct flight *flight) {
    const struct sx_net_round round = {.place = place,
                                       .began_ns = flight->began_ns,
                                       .sent_bytes = flight->bytes,
                                       .received_bytes = flight->all_bytes - flight->bytes};
    if (net->watch.ended)
        net->watch.ended(net->watch.context, &round);
}

/* Waits for the end of the oldest flight. Without the lock. */
static void land(struct sx_rounds *rounds) {
    struct sx_net *net = rounds->net;
    struct sx_error error = {0};
    const int place = (int)(rounds->n_ended % SX_LINK_FLIGHTS);
    struct flight flight = rounds->flights[place];
    const enum sx_status status = rounds->link->ops->finish(rounds->link, place, gives_up, rounds, &error);
    pthread_mutex_lock(&net->lock);
    sx_net_pace_end(net, SX_NET_LINK, flight.bytes);
    if (status == SX_OK)
        tell_watch(net, place, &flight);
    pthread_mutex_unlock(&net->lock);
    if (status != SX_OK)
        lose_link(rounds, &error);
    end_round(rounds, &flight.sends, &flight.receives, status == SX_OK);
}

static void *run_ender(void *context) {
    struct sx_rounds *rounds = context;
    struct sx_net *net = rounds->net;
    pthread_mutex_lock(&net->lock);
    while (rounds->n_begun != rounds->n_ended || !rounds->is_ended) {
        if (rounds->n_begun == rounds->n_ended) {
            sx_net_await(net, NULL);
            continue;
        }
        pthread_mutex_unlock(&net->lock);
        land(rounds);
        pthread_mutex_lock(&net->lock);
        rounds->n_ended++;
        sx_net_changed(net);
    }
    pthread_mutex_unlock(&net->lock);
    return NULL;
}

/* ---- the thread ---- */

/* With the lock held, which it gives up meanwhile. */
static void run_round(struct sx_rounds *rounds) {
    struct sx_net *net = rounds->net;
    struct part_list sends = {0}, receives = {0};
    bool is_fine = begin(rounds, &sends);
    while (is_fine && !net->is_lost && !rounds->is_stopping && count_announced(rounds) < net->size - 1)
        sx_net_await(net, NULL);
    const bool is_given_up = net->is_lost || rounds->is_stopping;
    is_fine = is_fine && (is_given_up || list_receives(rounds, &receives));
    rounds->number++;
    sx_net_unlock(net); /* channels may have been woken */
    if (is_given_up)
        end_round(rounds, &sends, &receives, false);
    else
        exchange(rounds, &sends, &receives, is_fine);
    pthread_mutex_lock(&net->lock);
}

/* Nothing goes any more. With the lock held, which it gives up meanwhile. */
static void drop_pending(struct sx_rounds *rounds) {
    struct sx_kept *kept;
    while ((kept = sx_kept_pop(&rounds->pending)) != NULL) {
        pthread_mutex_unlock(&rounds->net->lock);
        tell_sent(rounds->net, kept);
        sx_kept_release(kept);
        pthread_mutex_lock(&rounds->net->lock);
    }
}

/* A round takes what waits when it is announced, and rounds go one after another. Announced behind large ones
 * it would have little of ranks that are not that far, whose share of the links then has nothing to do. */
static bool may_begin(const struct sx_rounds *rounds) {
    enum { MOST_UNDER_WAY = 2, LARGE_BYTES = 128 << 20 };
    size_t bytes = 0;
    for (uint64_t i = rounds->n_ended; i < rounds->n_begun; i++)
        bytes += rounds->flights[i % SX_LINK_FLIGHTS].all_bytes;
    return rounds->pending.first &&
           (rounds->n_begun - rounds->n_ended < MOST_UNDER_WAY || bytes < LARGE_BYTES);
}

static void *run(void *context) {
    struct sx_rounds *rounds = context;
    struct sx_net *net = rounds->net;
    pthread_mutex_lock(&net->lock);
    while (!rounds->is_stopping) {
        if (net->is_lost)
            drop_pending(rounds);
        else if (may_begin(rounds) || count_announced(rounds) > 0) {
            run_round(rounds);
            continue;
        }
        if (!may_begin(rounds) && !rounds->is_stopping)
            sx_net_await(net, NULL);
    }
    drop_pending(rounds);
    pthread_mutex_unlock(&net->lock);
    return NULL;
}

void sx_rounds_send(struct sx_rounds *rounds, int rank, const struct sx_frame *frame,
                    struct sx_buffer *buffer, size_t bytes) {
    struct sx_kept *kept = malloc(sizeof *kept);
    if (!kept)
        abort(); /* as a transport that can't send */
    *kept = (struct sx_kept){.frame = *frame, .message = {rank, buffer, bytes, true}};
    sx_kept_append(&rounds->pending, kept);
    sx_net_changed(rounds->net);
}

void sx_rounds_take(struct sx_rounds *rounds, struct sx_kept *kept) {
    sx_kept_append(&rounds->announced, kept);
    sx_net_changed(rounds->net);
}

/* ---- beginning and end ---- */

/* No more flights. */
static void end_ender(struct sx_rounds *rounds) {
    pthread_mutex_lock(&rounds->net->lock);
    rounds->is_ended = true;
    sx_net_changed(rounds->net);
    pthread_mutex_unlock(&rounds->net->lock);
    pthread_join(rounds->ender, NULL);
}

static bool begin_threads(struct sx_rounds *rounds) {
    sigset_t before;
    sx_signals_block(&before);
    bool begun = pthread_create(&rounds->ender, NULL, run_ender, rounds) == 0;
    if (begun && pthread_create(&rounds->thread, NULL, run, rounds) != 0) {
        end_ender(rounds);
        begun = false;
    }
    sx_signals_restore(&before);
    return begun;
}

/* From here on the transport drops rounds that others announce, as they may while a rank is lost. */
static void release_rounds(struct sx_rounds *rounds, bool clean) {
    struct sx_net *net = rounds->net;
    pthread_mutex_lock(&net->lock);
    net->rounds = NULL;
    pthread_mutex_unlock(&net->lock);
    rounds->link->ops->destroy(rounds->link, clean);
    sx_kept_clear(&rounds->pending);
    sx_kept_clear(&rounds->announced);
    for (int r = 0; rounds->partial && r < net->size; r++)
        sx_buffer_release(rounds->partial[r].message.buffer);
    free(rounds->partial);
    free(rounds->room);
    free(rounds);
}

enum sx_status sx_net_set_link(struct sx_net *net, struct sx_link *link, struct sx_error *error) {
    struct sx_rounds *rounds = calloc(1, sizeof *rounds);
    if (!rounds) {
        link->ops->destroy(link, false);
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a link");
    }
    *rounds = (struct sx_rounds){.net = net,
                                 .link = link,
                                 .partial = calloc((size_t)net->size, sizeof *rounds->partial),
                                 .room = calloc((size_t)net->size, sizeof *rounds->room)};
    pthread_mutex_lock(&net->lock);
    net->rounds = rounds;
    pthread_mutex_unlock(&net->lock);
    const bool has_memory = rounds->partial && rounds->room;
    if (has_memory && begin_threads(rounds))
        return SX_OK;
    release_rounds(rounds, false);
    return has_memory ? sx_error_set(error, SX_OUT_OF_MEMORY, "the system refused to start a thread")
                      : sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a link");
}

bool sx_net_has_link(const struct sx_net *net) {
    return net->rounds != NULL;
}

struct sx_link *sx_net_get_link(const struct sx_net *net) {
    return net->rounds ? net->rounds->link : NULL;
}

void sx_net_watch_rounds(struct sx_net *net, const struct sx_round_watch *watch) {
    pthread_mutex_lock(&net->lock);
    net->watch = watch ? *watch : (struct sx_round_watch){0};
    pthread_mutex_unlock(&net->lock);
}

void sx_rounds_close(struct sx_net *net) {
    struct sx_rounds *rounds = net->rounds;
    if (!rounds)
        return;
    pthread_mutex_lock(&net->lock);
    rounds->is_stopping = true;
    sx_net_changed(net);
    const bool clean = !net->is_lost;
    pthread_mutex_unlock(&net->lock);
    pthread_join(rounds->thread, NULL);
    end_ender(rounds);
    release_rounds(rounds, clean);
}
