/* What stands in for NCCL: ranks are threads of the process, and "device" memory is malloc's. Sends wait for
 * the receives of the same number between two ranks, in any order of calls; whoever asks whether they are
 * done moves what fits together. A group has begun at once, and goes on beside the stream (async.h).
 * NCCL_EMULATOR_TELL=1: each communicator says on stderr what it has sent. NCCL_EMULATOR_NO_ID=1: there are
 * no ids. NCCL_EMULATOR_NO_COMM=1: there are no communicators. NCCL_EMULATOR_RATE=N: a rank sends so many
 * bytes a second. Parts that differ in size end the program, where NCCL would hang or write too much. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "async.h"
#include "net/nccl/nccl_api.h"

#define EXPORT __attribute__((visibility("default")))

enum { MOST_RANKS = 16, MOST_ROOMS = 64, MOST_STREAMS = 2 };

struct part {
    struct part *next;
    void *memory;
    size_t bytes;
    struct ncclComm *owner;
    uint64_t number; /* of the owner's parts */
};

struct queue {
    struct part *first, *last;
};

/* Communicators with one id. */
struct room {
    char id[128];
    int n_joined;
    struct queue sends[MOST_RANKS][MOST_RANKS], receives[MOST_RANKS][MOST_RANKS]; /* [from][to] */
};

struct ncclComm {
    struct room *room;
    int rank, size, waiting;
    size_t n_sent;
    uint64_t n_parts;
    int64_t until_ns; /* what it sends is on its way */
    /* Of its streams, one after the other (whose events know of each other here); NULL: it had no more. */
    struct emulated_async *asyncs[MOST_STREAMS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct room rooms[MOST_ROOMS];
static int n_ids;

static void fail(const char *what, size_t a, size_t b) {
    fprintf(stderr, "emulated NCCL: %s (%zu, %zu)\n", what, a, b);
    abort();
}

static void put(struct queue *queue, struct ncclComm *owner, void *memory, size_t bytes) {
    struct part *part = malloc(sizeof *part);
    if (!part)
        abort();
    *part = (struct part){NULL, memory, bytes, owner, owner->n_parts++};
    if (queue->last)
        queue->last->next = part;
    else
        queue->first = part;
    queue->last = part;
    owner->waiting++;
}

static struct part pop(struct queue *queue) {
    struct part *first = queue->first, part = *first;
    queue->first = first->next;
    if (!queue->first)
        queue->last = NULL;
    free(first);
    part.owner->waiting--;
    return part;
}

static void move_all(struct room *room) {
    for (int from = 0; from < MOST_RANKS; from++)
        for (int to = 0; to < MOST_RANKS; to++)
            while (room->sends[from][to].first && room->receives[from][to].first) {
                const struct part sent = pop(&room->sends[from][to]);
                const struct part received = pop(&room->receives[from][to]);
                if (sent.bytes != received.bytes)
                    fail("a send and a receive of other sizes", sent.bytes, received.bytes);
                memcpy(received.memory, sent.memory, sent.bytes);
            }
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void delay(struct ncclComm *comm, size_t bytes) {
    const char *rate = getenv("NCCL_EMULATOR_RATE");
    const int64_t now = now_ns();
    if (rate)
        comm->until_ns =
            (comm->until_ns > now ? comm->until_ns : now) + (int64_t)((double)bytes * 1e9 / atof(rate));
}

/* ---- beside a stream ---- */

static uint64_t mark(const struct emulated_async *async) {
    pthread_mutex_lock(&lock);
    const struct ncclComm *comm = async->context;
    const uint64_t n_parts = comm ? comm->n_parts : 0;
    pthread_mutex_unlock(&lock);
    return n_parts;
}

static bool has_before(const struct queue *queue, const struct ncclComm *comm, uint64_t number) {
    for (const struct part *part = queue->first; part; part = part->next)
        if (part->owner == comm && part->number < number)
            return true;
    return false;
}

/* Without a communicator, which may have been aborted, nothing is at work. */
static int is_done(const struct emulated_async *async, uint64_t number) {
    pthread_mutex_lock(&lock);
    const struct ncclComm *comm = async->context;
    bool done = true;
    if (comm)
        move_all(comm->room);
    for (int from = 0; comm && done && from < MOST_RANKS; from++)
        for (int to = 0; done && to < MOST_RANKS; to++)
            done = !has_before(&comm->room->sends[from][to], comm, number) &&
                   !has_before(&comm->room->receives[from][to], comm, number);
    if (comm && now_ns() < comm->until_ns)
        done = false;
    pthread_mutex_unlock(&lock);
    return done;
}

/* What is sent has been made then: without the lock held. */
static void settle(cudaStream_t stream) {
    struct emulated_async *async = (struct emulated_async *)(void *)stream;
    async->settle(async);
}

/* With the lock held. */
static void attach(struct ncclComm *comm, cudaStream_t stream) {
    struct emulated_async *async = (struct emulated_async *)(void *)stream;
    int at = 0;
    while (at < MOST_STREAMS && comm->asyncs[at] && comm->asyncs[at] != async)
        at++;
    if (at == MOST_STREAMS)
        fail("a communicator with many streams", MOST_STREAMS, 0);
    if (comm->asyncs[at])
        return;
    comm->asyncs[at] = async;
    async->context = comm;
    async->mark = mark;
    async->is_done = is_done;
}

EXPORT int ncclGetVersion(int *version) {
    *version = 22800;
    return ncclSuccess;
}

EXPORT int ncclGetUniqueId(ncclUniqueId *id) {
    if (getenv("NCCL_EMULATOR_NO_ID"))
        return 1;
    pthread_mutex_lock(&lock);
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "emulated %d", ++n_ids);
    pthread_mutex_unlock(&lock);
    return ncclSuccess;
}

EXPORT int ncclCommInitRankConfig(struct ncclComm **comm, int n_ranks, ncclUniqueId id, int rank,
                                  struct nccl_config *config) {
    if (getenv("NCCL_EMULATOR_NO_COMM"))
        return 1;
    if (config->magic != nccl_config_magic || config->blocking || n_ranks > MOST_RANKS)
        fail("a communicator that can't be", (size_t)n_ranks, config->magic);
    const char *multicast = getenv("NCCL_NVLS_ENABLE"), *interface = getenv("NCCL_SOCKET_IFNAME");
    if (!multicast || strcmp(multicast, "0") != 0 || !interface)
        fail("an environment that is not prepared", 0, 0);
    struct ncclComm *made = calloc(1, sizeof *made);
    pthread_mutex_lock(&lock);
    for (int i = 0; made && i < MOST_ROOMS && !made->room; i++) {
        if (!rooms[i].id[0])
            memcpy(rooms[i].id, id.internal, sizeof id.internal);
        if (!memcmp(rooms[i].id, id.internal, sizeof id.internal))
            made->room = &rooms[i];
    }
    if (!made || !made->room)
        fail("no room", 0, 0);
    made->rank = rank;
    made->size = n_ranks;
    made->room->n_joined++;
    pthread_mutex_unlock(&lock);
    *comm = made;
    return ncclInProgress;
}

EXPORT int ncclCommGetAsyncError(struct ncclComm *comm, int *error) {
    pthread_mutex_lock(&lock);
    move_all(comm->room);
    const bool is_busy = comm->room->n_joined < comm->size;
    *error = is_busy ? ncclInProgress : ncclSuccess;
    pthread_mutex_unlock(&lock);
    return ncclSuccess;
}

EXPORT int ncclCommFinalize(struct ncclComm *comm) {
    (void)comm;
    return ncclSuccess;
}

static void drop(struct queue *queue, const struct ncclComm *comm) {
    struct queue rest = {0};
    while (queue->first) {
        struct part *part = queue->first;
        queue->first = part->next;
        part->next = NULL;
        if (part->owner == comm) {
            free(part);
        } else if (rest.last) {
            rest.last->next = part;
            rest.last = part;
        } else {
            rest.first = rest.last = part;
        }
    }
    *queue = rest;
}

EXPORT int ncclCommAbort(struct ncclComm *comm) {
    pthread_mutex_lock(&lock);
    for (int from = 0; from < MOST_RANKS; from++)
        for (int to = 0; to < MOST_RANKS; to++) {
            drop(&comm->room->sends[from][to], comm);
            drop(&comm->room->receives[from][to], comm);
        }
    for (int i = 0; i < MOST_STREAMS && comm->asyncs[i]; i++)
        comm->asyncs[i]->context = NULL;
    pthread_mutex_unlock(&lock);
    free(comm);
    return ncclSuccess;
}

EXPORT int ncclCommDestroy(struct ncclComm *comm) {
    if (getenv("NCCL_EMULATOR_TELL"))
        fprintf(stderr, "emulated NCCL: rank %d sent %zu\n", comm->rank, comm->n_sent);
    if (comm->waiting)
        fail("a communicator that is at work is destroyed", (size_t)comm->waiting, 0);
    return ncclCommAbort(comm);
}

// Not in a block of its own: one that lies 16 bytes into a page makes LeakSanitizer (GCC 12's) take the
// allocator's header for one of glibc's, and the process ends by SIGSEGV at its exit, about once in 150 runs.
static _Thread_local int group_depth __attribute__((tls_model("initial-exec")));

EXPORT int ncclGroupStart(void) {
    group_depth++;
    return ncclSuccess;
}

EXPORT int ncclGroupEnd(void) {
    return --group_depth ? ncclSuccess : ncclInProgress;
}

EXPORT int ncclSend(const void *from, size_t count, int type, int peer, struct ncclComm *comm,
                    cudaStream_t stream) {
    if (type != ncclChar || !group_depth || peer == comm->rank)
        fail("a send that can't be", (size_t)type, (size_t)peer);
    settle(stream);
    pthread_mutex_lock(&lock);
    attach(comm, stream);
    comm->n_sent++;
    delay(comm, count);
    put(&comm->room->sends[comm->rank][peer], comm, (void *)(size_t)from, count);
    pthread_mutex_unlock(&lock);
    return ncclSuccess;
}

EXPORT int ncclRecv(void *to, size_t count, int type, int peer, struct ncclComm *comm, cudaStream_t stream) {
    if (type != ncclChar || !group_depth || peer == comm->rank)
        fail("a receive that can't be", (size_t)type, (size_t)peer);
    settle(stream);
    pthread_mutex_lock(&lock);
    attach(comm, stream);
    put(&comm->room->receives[peer][comm->rank], comm, to, count);
    pthread_mutex_unlock(&lock);
    return ncclSuccess;
}

EXPORT const char *ncclGetErrorString(int error) {
    return error == ncclSuccess ? "no error" : "an emulated error";
}
