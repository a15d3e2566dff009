#include "net/local.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/state.h"

enum note_kind { NOTE_RECEIVED, NOTE_SENT, NOTE_LOST };

/* Something for a rank's thread to tell its net. */
struct note {
    struct note *next;
    enum note_kind kind;
    int rank;
    struct sx_frame frame;
    size_t bytes;
    char payload[];
};

struct end {
    struct sx_transport base;
    struct hub *hub;
    const struct sx_transport_events *events;
    void *context;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct note *first, *last;
    bool closed, killed;
};

/* All ranks' ends; freed by the last one that is closed. */
struct hub {
    atomic_int open;
    int size;
    struct end *ends;
    char **names;
    int *hosts;
};

/* ---- notes ---- */

static void put_note(struct end *end, struct note *note) {
    pthread_mutex_lock(&end->lock);
    const bool dropped = end->closed || end->killed;
    if (!dropped) {
        note->next = NULL;
        if (end->last)
            end->last->next = note;
        else
            end->first = note;
        end->last = note;
        pthread_cond_signal(&end->changed);
    }
    pthread_mutex_unlock(&end->lock);
    if (dropped)
        free(note);
}

/* NULL: the end has been closed. */
static struct note *next_note(struct end *end) {
    pthread_mutex_lock(&end->lock);
    while (!end->first && !end->closed)
        pthread_cond_wait(&end->changed, &end->lock);
    struct note *note = end->closed ? NULL : end->first;
    if (note) {
        end->first = note->next;
        if (!end->first)
            end->last = NULL;
    }
    pthread_mutex_unlock(&end->lock);
    return note;
}

static void tell_received(struct end *end, const struct note *note) {
    struct sx_buffer *buffer;
    if (!end->events->expect(end->context, note->rank, &note->frame, note->bytes, &buffer))
        return;
    if (note->bytes)
        memcpy(buffer->data, note->payload, note->bytes);
    end->events->received(end->context, note->rank, &note->frame, buffer, note->bytes);
}

static void *run(void *argument) {
    struct end *end = argument;
    struct note *note;
    while ((note = next_note(end)) != NULL) {
        switch (note->kind) {
        case NOTE_RECEIVED: tell_received(end, note); break;
        case NOTE_SENT: end->events->sent(end->context, note->rank, &note->frame, note->bytes); break;
        case NOTE_LOST: end->events->lost(end->context, note->rank, NULL); break;
        }
        free(note);
    }
    return NULL;
}

static struct note *make_note(enum note_kind kind, int rank, const struct sx_frame *frame,
                              const void *payload, size_t bytes) {
    struct note *note = malloc(sizeof *note + (payload ? bytes : 0));
    if (!note)
        abort(); /* only tests come here */
    *note = (struct note){.kind = kind, .rank = rank, .bytes = bytes};
    if (frame)
        note->frame = *frame;
    if (payload && bytes)
        memcpy(note->payload, payload, bytes);
    return note;
}

/* ---- the transport ---- */

static enum sx_status start(struct sx_transport *transport, const struct sx_transport_events *events,
                            void *context, struct sx_error *error) {
    struct end *end = (struct end *)transport;
    end->events = events;
    end->context = context;
    if (pthread_create(&end->thread, NULL, run, end) != 0)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "the system refused to start a thread");
    end->has_thread = true;
    return SX_OK;
}

static void send(struct sx_transport *transport, int rank, const struct sx_frame *frame,
                 struct sx_buffer *buffer, size_t bytes) {
    struct end *end = (struct end *)transport;
    pthread_mutex_lock(&end->lock);
    const bool killed = end->killed;
    pthread_mutex_unlock(&end->lock);
    if (!killed)
        put_note(&end->hub->ends[rank],
                 make_note(NOTE_RECEIVED, transport->rank, frame, buffer ? buffer->data : NULL, bytes));
    sx_buffer_release(buffer);
    put_note(end, make_note(NOTE_SENT, rank, frame, NULL, bytes));
}

static void free_hub(struct hub *hub) {
    for (int r = 0; r < hub->size; r++) {
        pthread_cond_destroy(&hub->ends[r].changed);
        pthread_mutex_destroy(&hub->ends[r].lock);
        free(hub->names[r]);
    }
    free(hub->names);
    free(hub->hosts);
    free(hub->ends);
    free(hub);
}

static bool close_end(struct sx_transport *transport) {
    struct end *end = (struct end *)transport;
    struct hub *hub = end->hub;
    pthread_mutex_lock(&end->lock);
    end->closed = true;
    pthread_cond_signal(&end->changed);
    pthread_mutex_unlock(&end->lock);
    if (end->has_thread)
        pthread_join(end->thread, NULL);
    for (struct note *note = end->first, *next; note; note = next) {
        next = note->next;
        free(note);
    }
    if (atomic_fetch_sub(&hub->open, 1) == 1)
        free_hub(hub);
    return true;
}

static const struct sx_transport_ops ops = {.start = start, .send = send, .close = close_end};

static struct hub *make_hub(int size, int n_hosts) {
    struct hub *hub = calloc(1, sizeof *hub);
    struct end *ends = calloc((size_t)size, sizeof *ends);
    char **names = calloc((size_t)size, sizeof *names);
    int *hosts = calloc((size_t)size, sizeof *hosts);
    if (!hub || !ends || !names || !hosts) {
        free(hub);
        free(hosts);
        free(ends);
        free(names);
        return NULL;
    }
    *hub = (struct hub){.size = size, .ends = ends, .names = names, .hosts = hosts};
    atomic_init(&hub->open, size);
    for (int r = 0; r < size; r++) {
        struct end *end = &hub->ends[r];
        end->hub = hub;
        end->base = (struct sx_transport){
            .ops = &ops, .rank = r, .size = size, .name = "local", .rank_names = names, .hosts = hosts};
        hosts[r] = (int)((int64_t)r * n_hosts / size);
        pthread_mutex_init(&end->lock, NULL);
        pthread_cond_init(&end->changed, NULL);
        names[r] = sx_rank_name(r, "local", (long)getpid());
    }
    for (int r = 0; r < size; r++)
        if (!names[r]) {
            free_hub(hub);
            return NULL;
        }
    return hub;
}

void sx_net_local_kill(struct sx_net *net) {
    struct end *end = (struct end *)net->transport;
    struct hub *hub = end->hub;
    put_note(end, make_note(NOTE_LOST, end->base.rank, NULL, NULL, 0));
    pthread_mutex_lock(&end->lock);
    end->killed = true;
    pthread_mutex_unlock(&end->lock);
    for (int r = 0; r < hub->size; r++)
        if (r != end->base.rank)
            put_note(&hub->ends[r], make_note(NOTE_LOST, end->base.rank, NULL, NULL, 0));
}

enum sx_status sx_net_local_create(int size, int n_hosts, struct sx_net **out_nets, struct sx_error *error) {
    struct hub *hub = make_hub(size, n_hosts);
    if (!hub)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for %d ranks", size);
    enum sx_status status = SX_OK;
    int made = 0;
    while (made < size && status == SX_OK) {
        status = sx_net_create(&hub->ends[made].base, &out_nets[made], error);
        made++;
    }
    if (status == SX_OK)
        return SX_OK;
    for (int r = made; r < size; r++)
        close_end(&hub->ends[r].base);
    for (int r = 0; r < made - 1; r++)
        sx_net_local_kill(out_nets[r]);
    for (int r = 0; r < made - 1; r++)
        sx_net_close(out_nets[r]);
    return status;
}
