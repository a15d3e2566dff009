/* Messages between devices that reach each other's memory. The sender offers a message (a frame over the
 * transport tells where its bytes are), and keeps it; the receiver copies it, and tells that it has taken it.
 * So ranks need no common order, as rounds do, and one that is late keeps nobody. Credits, ends and failures
 * stay with the channels. */
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/look.h"
#include "base/signals.h"
#include "net/pull.h"
#include "net/state.h"

enum { NS_A_SECOND = 1000000000 };

/* The payload of an offer. */
struct offer {
    struct sx_frame frame; /* of the message; its value is the offer's number */
    uint64_t bytes;
    struct sx_pull_source source;
};

/* Pulls from a rank that are under way, oldest first. */
struct pulls_of {
    struct sx_kept_list pulls;
    int64_t since_ns; /* the oldest one has been the oldest */
};

struct sx_pulls {
    struct sx_net *net;
    struct sx_puller *puller;
    pthread_t thread;
    uint64_t n_offers;            /* that this rank has made */
    struct sx_kept_list offered;  /* its messages that others have not taken yet */
    struct sx_kept_list dropped;  /* its messages that others may still be at, once a rank is lost */
    struct sx_kept_list incoming; /* other ranks' offers that wait for the thread */
    struct pulls_of *of;          /* by rank; the thread's */
    int n_under_way;              /* the thread's */
    bool lets_go, is_stopping;
};

/* ---- offering; with the lock held ---- */

static bool make_offer(struct sx_pulls *pulls, int rank, const struct sx_frame *frame,
                       const struct sx_buffer *buffer, size_t bytes, struct sx_buffer **out_offer) {
    struct offer offer = {.frame = *frame, .bytes = bytes};
    struct sx_puller *puller = pulls->puller;
    return bytes > 0 && puller->reached_by[rank] && puller->ops->tell(puller, buffer, &offer.source) &&
           sx_net_copy(pulls->net, &offer, sizeof offer, out_offer, NULL) == SX_OK;
}

bool sx_pulls_send(struct sx_pulls *pulls, int rank, const struct sx_frame *frame, struct sx_buffer *buffer,
                   size_t bytes) {
    struct sx_net *net = pulls->net;
    struct sx_frame numbered = *frame;
    struct sx_buffer *offer = NULL;
    numbered.value = pulls->n_offers;
    struct sx_kept *kept = net->is_lost ? NULL : malloc(sizeof *kept);
    if (!kept || !make_offer(pulls, rank, &numbered, buffer, bytes, &offer)) {
        free(kept);
        return false;
    }
    const struct sx_frame told = {.kind = SX_FRAME_OFFER, .epoch = net->epoch, .value = pulls->n_offers++};
    *kept = (struct sx_kept){.frame = numbered, .message = {rank, buffer, bytes, true}};
    sx_kept_append(&pulls->offered, kept);
    sx_net_pace_begin(net, SX_NET_LINK, bytes);
    sx_net_send(net, rank, &told, offer, sizeof(struct offer));
    return true;
}

/* The message of that number, out of the list; NULL: it is there no more. */
static struct sx_kept *take_offered(struct sx_pulls *pulls, uint64_t number) {
    struct sx_kept *before = NULL, *kept = pulls->offered.first;
    for (; kept && kept->frame.value != number; kept = kept->next)
        before = kept;
    if (!kept || !before)
        return kept ? sx_kept_pop(&pulls->offered) : NULL;
    before->next = kept->next;
    if (pulls->offered.last == kept)
        pulls->offered.last = before;
    return kept;
}

/* ---- what others have taken; without the lock ---- */

/* After a loss the puller, whose memory messages have, may end meanwhile: they are released under the lock.
 */
void sx_pulls_taken(struct sx_net *net, uint64_t number) {
    pthread_mutex_lock(&net->lock);
    struct sx_kept *kept = net->pulls ? take_offered(net->pulls, number) : NULL;
    if (kept) {
        sx_net_pace_end(net, SX_NET_LINK, kept->message.bytes);
        sx_buffer_release(kept->message.buffer);
    }
    pthread_mutex_unlock(&net->lock);
    if (kept)
        sx_net_events.sent(net, kept->message.rank, &kept->frame, kept->message.bytes);
    free(kept);
}

/* ---- pulling; without the lock, by the thread ---- */

void sx_pulls_give_back(struct sx_net *net, int rank, uint64_t number) {
    pthread_mutex_lock(&net->lock);
    const struct sx_frame taken = {.kind = SX_FRAME_TAKEN, .epoch = net->epoch, .value = number};
    sx_net_send(net, rank, &taken, NULL, 0);
    sx_net_unlock(net);
}

/* The rank whose memory it was may be gone, of which the transport tells. */
static void wait_for_loss(struct sx_net *net) {
    enum { LOSS_NS = 500000000 };
    const int64_t until_ns = sx_clock_ns() + LOSS_NS;
    const struct timespec until = {.tv_sec = until_ns / NS_A_SECOND, .tv_nsec = until_ns % NS_A_SECOND};
    pthread_mutex_lock(&net->lock);
    while (!net->is_lost && sx_clock_ns() < until_ns)
        sx_net_await(net, &until);
    pthread_mutex_unlock(&net->lock);
}

static void fail(struct sx_pulls *pulls, struct sx_error *error) {
    if (error->status != SX_OUT_OF_MEMORY)
        wait_for_loss(pulls->net);
    sx_error_prefix(error, "a message that came");
    sx_net_fail(pulls->net, error);
}

static bool is_wanted(struct sx_pulls *pulls, int rank, const struct offer *offer) {
    struct sx_net *net = pulls->net;
    pthread_mutex_lock(&net->lock);
    const bool wanted = !net->is_lost && sx_channel_wants(net, rank, &offer->frame, (size_t)offer->bytes);
    sx_net_unlock(net);
    return wanted;
}

static enum sx_status start(struct sx_pulls *pulls, int rank, const struct offer *offer,
                            struct sx_error *error) {
    struct pulls_of *of = &pulls->of[rank];
    struct sx_kept *kept = malloc(sizeof *kept);
    if (!kept)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a message");
    *kept = (struct sx_kept){.frame = offer->frame,
                             .message = {.rank = rank, .bytes = (size_t)offer->bytes, .on_device = true}};
    const enum sx_status status = pulls->puller->ops->start(
        pulls->puller, rank, &offer->source, (size_t)offer->bytes, &kept->message.buffer, error);
    if (status != SX_OK) {
        free(kept);
        return status;
    }
    if (!of->pulls.first)
        of->since_ns = sx_clock_ns();
    sx_kept_append(&of->pulls, kept);
    pulls->n_under_way++;
    return SX_OK;
}

/* Takes the offer over. */
static void begin(struct sx_pulls *pulls, struct sx_kept *kept) {
    const struct offer *offer = kept->message.buffer->data;
    const int rank = kept->message.rank;
    struct sx_error error = {0};
    bool has_begun = false;
    if (is_wanted(pulls, rank, offer)) {
        has_begun = start(pulls, rank, offer, &error) == SX_OK;
        if (!has_begun && sx_net_can_lack(&offer->frame, &error))
            sx_net_events.received(pulls->net, rank, &offer->frame, NULL, (size_t)offer->bytes);
        else if (!has_begun)
            fail(pulls, &error);
    }
    if (!has_begun)
        sx_pulls_give_back(pulls->net, rank, offer->frame.value);
    sx_kept_release(kept);
}

/* `came`: its bytes are there. */
static void land(struct sx_pulls *pulls, int rank, bool came) {
    struct sx_net *net = pulls->net;
    struct pulls_of *of = &pulls->of[rank];
    struct sx_kept *kept = sx_kept_pop(&of->pulls);
    const struct sx_net_round round = {
        .is_pull = true, .place = rank, .began_ns = of->since_ns, .received_bytes = kept->message.bytes};
    pthread_mutex_lock(&net->lock);
    if (came && net->watch.ended)
        net->watch.ended(net->watch.context, &round);
    pthread_mutex_unlock(&net->lock);
    of->since_ns = sx_clock_ns();
    pulls->n_under_way--;
    if (came) {
        sx_net_events.received(net, rank, &kept->frame, kept->message.buffer, kept->message.bytes);
        kept->message.buffer = NULL;
    }
    sx_pulls_give_back(net, rank, kept->frame.value);
    sx_kept_release(kept);
}

/* Whether any has ended. None is looked at behind one that fails: a rank may be lost, see `run`. */
static bool land_some(struct sx_pulls *pulls) {
    bool any = false, is_fine = true;
    for (int r = 0; is_fine && r < pulls->net->size; r++) {
        struct sx_error error = {0};
        bool has_ended = true;
        if (!pulls->of[r].pulls.first)
            continue;
        is_fine = pulls->puller->ops->test(pulls->puller, r, &has_ended, &error) == SX_OK;
        if (!is_fine)
            fail(pulls, &error);
        if (has_ended)
            land(pulls, r, is_fine);
        any = any || has_ended;
    }
    return any;
}

static bool has_changed(const struct sx_pulls *pulls, unsigned seen) {
    return atomic_load(&pulls->net->n_changes) != seen;
}

/* Until one has ended, or something else has changed: maybe a rank is lost, so nothing is issued then. */
static void look(struct sx_pulls *pulls, unsigned seen) {
    enum { SPIN_NS = 200000, SLEEP_NS = 20000 };
    const struct timespec moment = {.tv_nsec = SLEEP_NS};
    const int64_t spin_ns = sx_net_spin_ns(pulls->net) > 0 ? sx_look_ns(SPIN_NS) : 0,
                  began_ns = sx_clock_ns();
    while (!land_some(pulls) && !has_changed(pulls, seen)) {
        if (sx_clock_ns() - began_ns < spin_ns)
            sched_yield();
        else
            nanosleep(&moment, NULL);
        if (has_changed(pulls, seen))
            return;
    }
}

/* Nobody will tell that they are taken. With the lock held, which it gives up meanwhile if there are any. */
static bool drop_offered(struct sx_pulls *pulls) {
    struct sx_net *net = pulls->net;
    struct sx_kept *kept;
    const bool any = pulls->offered.first != NULL;
    while ((kept = sx_kept_pop(&pulls->offered)) != NULL) {
        sx_net_pace_end(net, SX_NET_LINK, kept->message.bytes);
        sx_kept_append(&pulls->dropped, kept);
        pthread_mutex_unlock(&net->lock);
        sx_net_events.sent(net, kept->message.rank, &kept->frame, kept->message.bytes);
        pthread_mutex_lock(&net->lock);
    }
    return any;
}

/* With the lock held, which it gives up meanwhile. */
static void let_go(struct sx_pulls *pulls) {
    pthread_mutex_unlock(&pulls->net->lock);
    pulls->puller->ops->let_go(pulls->puller);
    pthread_mutex_lock(&pulls->net->lock);
    pulls->lets_go = false;
    sx_net_changed(pulls->net);
}

static void *run(void *context) {
    struct sx_pulls *pulls = context;
    struct sx_net *net = pulls->net;
    pthread_mutex_lock(&net->lock);
    while (!pulls->is_stopping || pulls->n_under_way > 0) {
        const unsigned seen = atomic_load(&net->n_changes);
        if (net->is_lost) {
            pulls->puller->ops->abandon(pulls->puller);
            if (drop_offered(pulls))
                continue; /* this rank may be leaving by now */
        }
        struct sx_kept *offer = sx_kept_pop(&pulls->incoming);
        if (!offer && pulls->n_under_way == 0) {
            if (pulls->lets_go)
                let_go(pulls);
            else
                sx_net_await(net, NULL);
            continue;
        }
        pthread_mutex_unlock(&net->lock);
        if (offer) {
            (void)land_some(pulls); /* first: beginning may find a rank lost */
            begin(pulls, offer);
        } else {
            look(pulls, seen);
        }
        pthread_mutex_lock(&net->lock);
    }
    pthread_mutex_unlock(&net->lock);
    return NULL;
}

void sx_pulls_take(struct sx_pulls *pulls, struct sx_kept *kept) {
    sx_kept_append(&pulls->incoming, kept);
    sx_net_changed(pulls->net);
}

/* ---- beginning and end ---- */

static void release(struct sx_pulls *pulls) {
    sx_kept_clear(&pulls->offered);
    sx_kept_clear(&pulls->dropped);
    sx_kept_clear(&pulls->incoming);
    pulls->puller->ops->destroy(pulls->puller);
    free(pulls->of);
    free(pulls);
}

static bool begin_thread(struct sx_pulls *pulls) {
    sigset_t before;
    sx_signals_block(&before);
    const bool begun = pthread_create(&pulls->thread, NULL, run, pulls) == 0;
    sx_signals_restore(&before);
    return begun;
}

enum sx_status sx_net_set_puller(struct sx_net *net, struct sx_puller *puller, struct sx_error *error) {
    struct sx_pulls *pulls = calloc(1, sizeof *pulls);
    if (!pulls) {
        puller->ops->destroy(puller);
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for pulls");
    }
    *pulls =
        (struct sx_pulls){.net = net, .puller = puller, .of = calloc((size_t)net->size, sizeof *pulls->of)};
    if (!pulls->of || !begin_thread(pulls)) {
        release(pulls);
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory or thread for pulls");
    }
    pthread_mutex_lock(&net->lock);
    net->pulls = pulls;
    pthread_mutex_unlock(&net->lock);
    return SX_OK;
}

static int not_let_go(const struct sx_net *net, const void *context) {
    (void)context;
    return net->pulls->lets_go ? net->rank : -1;
}

enum sx_status sx_pulls_let_go(struct sx_net *net) {
    if (!net->pulls)
        return SX_OK;
    net->pulls->lets_go = true;
    sx_net_changed(net);
    return sx_net_wait(net, not_let_go, NULL, true, NULL, NULL);
}

void sx_pulls_close(struct sx_net *net) {
    struct sx_pulls *pulls = net->pulls;
    if (!pulls)
        return;
    pthread_mutex_lock(&net->lock);
    pulls->is_stopping = true;
    sx_net_changed(net);
    pthread_mutex_unlock(&net->lock);
    pthread_join(pulls->thread, NULL);
    pthread_mutex_lock(&net->lock);
    net->pulls = NULL;
    pthread_mutex_unlock(&net->lock);
    release(pulls);
}
