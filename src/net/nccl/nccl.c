/* A link by NCCL: a round is one group of sends and receives on a stream of its own. The communicator does
 * not block, so that a lost rank ends what waits for it. */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/cuda/cuda.h"
#include "base/clock.h"
#include "net/nccl/load.h"
#include "net/nccl/nccl_api.h"

enum {
    ROUND_BYTES = 192 << 20, /* of a rank in a round: over NVLink half a millisecond */
    FIRST_BYTES = 64 << 20,  /* sent and received in a round that comes before other kernels */
    PIECE_BYTES = 64 << 20,  /* of a message: what is not kept goes to a buffer of this size */
    INIT_S = 60,
    END_S = 2,
    SPIN_NS = 200000,
    SLEEP_NS = 20000,
    GIVEN_UP = -1 /* no result of NCCL's */
};

struct nccl_functions {
#define NCCL_FIELD(name, type) __typeof__((type)0) name;
    NCCL_FUNCTION_LIST(NCCL_FIELD)
#undef NCCL_FIELD
};

/* A round that has begun. */
struct flight {
    cudaEvent_t event;     /* its end on the device */
    uint64_t before_epoch; /* the device's, when it was issued */
};

struct nccl_link {
    struct sx_link base;
    struct nccl_functions nccl;
    void *library;
    struct sx_stream *stream;
    struct cuda_stream *cuda; /* the same */
    int rank, size;           /* of the communicator, */
    ncclUniqueId id;
    bool has_begun; /* which there is, or was */
    pthread_mutex_t lock;
    struct ncclComm *comm;   /* NULL: not begun, or given up; by the lock */
    struct sx_error failure; /* what it was given up for; by the lock */
    struct flight flights[SX_LINK_FLIGHTS];
    int n_flights;             /* under way; by the lock */
    struct sx_buffer *dropped; /* what nobody keeps; NULL until it is needed */
    char name[32];
};

/* ---- the library ---- */

static enum sx_status load(void **out_library, struct nccl_functions *out, struct sx_error *error) {
    const char *wanted = getenv("STACHIO_NCCL_LIBRARY");
    void *library = dlopen(wanted && *wanted ? wanted : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return sx_error_set(error, SX_UNSUPPORTED, "no NCCL: %s", dlerror());
    const char *missing = NULL;
#define NCCL_FIND(name, type)                                            \
    out->name = (__typeof__(out->name))(uintptr_t)dlsym(library, #name); \
    missing = out->name ? missing : #name;
    NCCL_FUNCTION_LIST(NCCL_FIND)
#undef NCCL_FIND
    if (missing) {
        dlclose(library);
        return sx_error_set(error, SX_UNSUPPORTED, "no NCCL that is new enough: it lacks %s", missing);
    }
    *out_library = library;
    return SX_OK;
}

static enum sx_status check(const struct nccl_functions *nccl, int result, const char *what,
                            struct sx_error *error) {
    return result == ncclSuccess || result == ncclInProgress
               ? SX_OK
               : sx_error_set(error, SX_INTERNAL, "%s: %s", what, nccl->ncclGetErrorString(result));
}

enum sx_status sx_nccl_make_id(char out_id[SX_NCCL_ID_BYTES], struct sx_error *error) {
    struct nccl_functions nccl;
    void *library;
    ncclUniqueId id;
    SX_TRY(load(&library, &nccl, error));
    /* the library stays: it listens for the others */
    SX_TRY(check(&nccl, nccl.ncclGetUniqueId(&id), "ncclGetUniqueId", error));
    memcpy(out_id, id.internal, sizeof id.internal);
    return SX_OK;
}

/* ---- waiting ---- */

static void pause_since(int64_t began_ns) {
    const struct timespec moment = {.tv_nsec = SLEEP_NS};
    if (sx_clock_ns() - began_ns < SPIN_NS)
        sched_yield();
    else
        nanosleep(&moment, NULL);
}

/* With the lock held. */
static enum sx_status given_up(const struct nccl_link *link, struct sx_error *error) {
    if (link->failure.status == SX_OK || link->failure.status == SX_RANK_LOST)
        return sx_error_set(error, SX_RANK_LOST, "a round: the link has been given up");
    *error = link->failure;
    return error->status;
}

/* What the communicator says of itself, or GIVEN_UP. */
static int state_of(struct nccl_link *link) {
    int state = GIVEN_UP;
    pthread_mutex_lock(&link->lock);
    if (link->comm) {
        const int result = link->nccl.ncclCommGetAsyncError(link->comm, &state);
        state = result != ncclSuccess ? result : state;
    }
    pthread_mutex_unlock(&link->lock);
    return state;
}

/* Whether it has been, and for what. */
static enum sx_status tell_given_up(struct nccl_link *link, struct sx_error *error) {
    pthread_mutex_lock(&link->lock);
    const enum sx_status status = link->comm ? SX_OK : given_up(link, error);
    pthread_mutex_unlock(&link->lock);
    return status;
}

/* Until the communicator has done what it was asked for on the host. */
static enum sx_status settle(struct nccl_link *link, bool (*gives_up)(void *context), void *context,
                             const char *what, struct sx_error *error) {
    const int64_t began_ns = sx_clock_ns();
    for (;;) {
        const int state = state_of(link);
        if (state == GIVEN_UP)
            return tell_given_up(link, error);
        if (state != ncclInProgress)
            return check(&link->nccl, state, what, error);
        if (gives_up(context))
            return sx_error_set(error, SX_RANK_LOST, "%s: given up", what);
        pause_since(began_ns);
    }
}

/* Until the device is through with the flight. */
static enum sx_status wait_for(struct nccl_link *link, const struct flight *flight,
                               bool (*gives_up)(void *context), void *context, struct sx_error *error) {
    const int64_t began_ns = sx_clock_ns();
    cudaError_t result;
    while ((result = cudaEventQuery(flight->event)) == cudaErrorNotReady) {
        (void)cudaGetLastError();
        const int state = state_of(link);
        if (state == GIVEN_UP)
            return SX_OK; /* nothing is at work any more; `land` tells */
        if (state != ncclSuccess && state != ncclInProgress)
            return sx_error_set(error, SX_INTERNAL, "a round: %s", link->nccl.ncclGetErrorString(state));
        if (gives_up(context))
            return sx_error_set(error, SX_RANK_LOST, "a round: given up");
        pause_since(began_ns);
    }
    return result == cudaSuccess
               ? SX_OK
               : sx_error_set(error, SX_INTERNAL, "a round: %s", cudaGetErrorString(result));
}

/* ---- the communicator ---- */

static bool is_late(void *context) {
    return sx_clock_ns() > *(const int64_t *)context;
}

static int64_t in_seconds(int64_t seconds) {
    return sx_clock_ns() + seconds * INT64_C(1000000000);
}

/* Ends what is on the device, too: a kernel that waits for a lost rank would keep whoever waits for the
 * device, and who does may be whom the link's end waits for. */
static void give_up(struct nccl_link *link, const struct sx_error *error) {
    pthread_mutex_lock(&link->lock);
    if (link->comm)
        (void)link->nccl.ncclCommAbort(link->comm);
    if (link->failure.status == SX_OK)
        link->failure = *error;
    link->comm = NULL;
    pthread_mutex_unlock(&link->lock);
}

struct patience {
    bool (*gives_up)(void *context);
    void *context;
    int64_t until_ns;
};

static bool is_over(void *context) {
    struct patience *patience = context;
    return is_late(&patience->until_ns) || patience->gives_up(patience->context);
}

static enum sx_status begin(struct nccl_link *link, struct sx_error *error) {
    struct nccl_config config = {.size = sizeof config,
                                 .magic = nccl_config_magic,
                                 .version = NCCL_CONFIG_VERSION,
                                 .blocking = 0,
                                 .cga_cluster_size = NCCL_UNDEFINED,
                                 .min_ctas = NCCL_UNDEFINED,
                                 .max_ctas = NCCL_UNDEFINED};
    if (cuda_choose_device(link->cuda->device->ordinal) != cudaSuccess)
        return sx_error_set(error, SX_INTERNAL, "a device: %s", cudaGetErrorString(cudaGetLastError()));
    pthread_mutex_lock(&link->lock);
    const int result =
        link->nccl.ncclCommInitRankConfig(&link->comm, link->size, link->id, link->rank, &config);
    pthread_mutex_unlock(&link->lock);
    return check(&link->nccl, result, "ncclCommInitRankConfig", error);
}

static enum sx_status connect_link(struct sx_link *base, bool (*gives_up)(void *context), void *context,
                                   struct sx_error *error) {
    struct nccl_link *link = (struct nccl_link *)base;
    struct patience patience = {gives_up, context, in_seconds(INIT_S)};
    if (link->has_begun)
        return tell_given_up(link, error);
    link->has_begun = true;
    enum sx_status status = begin(link, error);
    if (status == SX_OK)
        status = settle(link, is_over, &patience, "the start of a communicator", error);
    if (status != SX_OK)
        give_up(link, error);
    return status;
}

/* ---- a round ---- */

static int send_part(struct nccl_link *link, const struct sx_link_part *part) {
    int result = ncclSuccess;
    for (size_t at = 0; result == ncclSuccess && at < part->bytes; at += PIECE_BYTES) {
        const size_t n = part->bytes - at < PIECE_BYTES ? part->bytes - at : PIECE_BYTES;
        result = link->nccl.ncclSend((const char *)part->buffer->data + part->offset + at, n, ncclChar,
                                     part->rank, link->comm, link->cuda->handle);
    }
    return result;
}

static int receive_part(struct nccl_link *link, const struct sx_link_part *part) {
    int result = ncclSuccess;
    for (size_t at = 0; result == ncclSuccess && at < part->bytes; at += PIECE_BYTES) {
        const size_t n = part->bytes - at < PIECE_BYTES ? part->bytes - at : PIECE_BYTES;
        char *to = part->buffer ? (char *)part->buffer->data + part->offset + at : link->dropped->data;
        result = link->nccl.ncclRecv(to, n, ncclChar, part->rank, link->comm, link->cuda->handle);
    }
    return result;
}

static int issue(struct nccl_link *link, const struct sx_link_part *sends, int n_sends,
                 const struct sx_link_part *receives, int n_receives) {
    int result = link->nccl.ncclGroupStart();
    for (int i = 0; result == ncclSuccess && i < n_sends; i++)
        result = send_part(link, &sends[i]);
    for (int i = 0; result == ncclSuccess && i < n_receives; i++)
        result = receive_part(link, &receives[i]);
    const int ended = link->nccl.ncclGroupEnd();
    return result == ncclSuccess ? ended : result;
}

static enum sx_status make_dropped(struct nccl_link *link, struct sx_error *error) {
    return link->dropped ? SX_OK : sx_buffer_create(link->stream->pool, PIECE_BYTES, &link->dropped, error);
}

/* With the lock held. What has been released before this flight does not use. */
static enum sx_status launch(struct nccl_link *link, struct flight *flight, const struct sx_link_part *sends,
                             int n_sends, const struct sx_link_part *receives, int n_receives,
                             struct sx_error *error) {
    if (!link->comm)
        return given_up(link, error);
    flight->before_epoch = atomic_load(&link->cuda->device->epoch);
    atomic_store(&link->cuda->clock->busy, true);
    link->n_flights++;
    return check(&link->nccl, issue(link, sends, n_sends, receives, n_receives), "a round", error);
}

static enum sx_status start_flight(struct nccl_link *link, struct flight *flight,
                                   const struct sx_link_part *sends, int n_sends,
                                   const struct sx_link_part *receives, int n_receives,
                                   bool (*gives_up)(void *context), void *context, struct sx_error *error) {
    struct cuda_stream *entered;
    const bool is_first = sx_link_bytes(sends, n_sends) + sx_link_bytes(receives, n_receives) >= FIRST_BYTES;
    if (cuda_enter(link->stream, &entered) != SX_OK || sx_cuda_prioritise(link->stream, is_first) != SX_OK) {
        *error = link->stream->error;
        return error->status;
    }
    pthread_mutex_lock(&link->lock);
    enum sx_status status = launch(link, flight, sends, n_sends, receives, n_receives, error);
    pthread_mutex_unlock(&link->lock);
    SX_TRY(status);
    SX_TRY(settle(link, gives_up, context, "a round", error));
    const cudaError_t result = cudaEventRecord(flight->event, link->cuda->handle);
    return result == cudaSuccess
               ? SX_OK
               : sx_error_set(error, SX_INTERNAL, "a round: %s", cudaGetErrorString(result));
}

static enum sx_status start(struct sx_link *base, int flight, const struct sx_link_part *sends, int n_sends,
                            const struct sx_link_part *receives, int n_receives,
                            bool (*gives_up)(void *context), void *context, struct sx_error *error) {
    struct nccl_link *link = (struct nccl_link *)base;
    const enum sx_status status = start_flight(link, &link->flights[flight], sends, n_sends, receives,
                                               n_receives, gives_up, context, error);
    if (status != SX_OK)
        give_up(link, error);
    return status;
}

/* The device is through with the flight: because it has been given up, or with what it was for. Blocks that
 * were released before the next flight began are not used by that, nor by those that have ended. */
static enum sx_status land(struct nccl_link *link, int flight, struct sx_error *error) {
    struct cuda_clock *clock = link->cuda->clock;
    pthread_mutex_lock(&link->lock);
    enum sx_status status = link->comm ? SX_OK : given_up(link, error);
    link->n_flights--;
    const struct flight *next = &link->flights[(flight + 1) % SX_LINK_FLIGHTS];
    atomic_store(&clock->quiet_epoch,
                 link->n_flights > 0 ? next->before_epoch : atomic_load(&link->cuda->device->epoch));
    if (link->n_flights == 0)
        atomic_store(&clock->busy, false);
    pthread_mutex_unlock(&link->lock);
    return status;
}

static enum sx_status finish(struct sx_link *base, int flight, bool (*gives_up)(void *context), void *context,
                             struct sx_error *error) {
    struct nccl_link *link = (struct nccl_link *)base;
    enum sx_status status =
        cuda_choose_device(link->cuda->device->ordinal) == cudaSuccess
            ? wait_for(link, &link->flights[flight], gives_up, context, error)
            : sx_error_set(error, SX_INTERNAL, "a round: %s", cudaGetErrorString(cudaGetLastError()));
    if (status == SX_OK)
        status = land(link, flight, error);
    if (status != SX_OK)
        give_up(link, error);
    return status;
}

/* Other streams will read and release it. */
static enum sx_status allocate(struct sx_link *base, size_t bytes, struct sx_buffer **out_buffer,
                               struct sx_error *error) {
    struct nccl_link *link = (struct nccl_link *)base;
    struct cuda_stream *entered;
    if (cuda_enter(link->stream, &entered) != SX_OK) {
        *error = link->stream->error;
        return error->status;
    }
    SX_TRY(sx_buffer_create(link->stream->pool, bytes, out_buffer, error));
    cuda_share(link->cuda, (*out_buffer)->data);
    return SX_OK;
}

/* ---- beginning and end ---- */

static void end_communicator(struct nccl_link *link, bool clean) {
    struct sx_error error = {0};
    int64_t until_ns = in_seconds(END_S);
    if (!link->comm)
        return;
    if (clean && link->nccl.ncclCommFinalize(link->comm) <= ncclInProgress &&
        settle(link, is_late, &until_ns, "the end", &error) == SX_OK)
        (void)link->nccl.ncclCommDestroy(link->comm);
    else
        give_up(link, &error);
}

/* The library stays: its threads may still be ending. */
static void destroy(struct sx_link *base, bool clean) {
    struct nccl_link *link = (struct nccl_link *)base;
    if (link->cuda)
        (void)cuda_choose_device(link->cuda->device->ordinal);
    end_communicator(link, clean);
    for (int f = 0; f < SX_LINK_FLIGHTS; f++)
        if (link->flights[f].event)
            (void)cudaEventDestroy(link->flights[f].event);
    sx_buffer_release(link->dropped);
    if (link->stream)
        link->stream->backend->ops.stream_destroy(link->stream);
    pthread_mutex_destroy(&link->lock);
    free(link);
}

static const struct sx_link_ops ops = {
    .connect = connect_link, .allocate = allocate, .start = start, .finish = finish, .destroy = destroy};

void sx_nccl_set_id(struct sx_link *base, int rank, int size, const char id[SX_NCCL_ID_BYTES]) {
    struct nccl_link *link = (struct nccl_link *)base;
    link->rank = rank;
    link->size = size;
    memcpy(link->id.internal, id, sizeof link->id.internal);
}

static enum sx_status prepare(struct nccl_link *link, const struct sx_backend *backend, struct sx_pool *pool,
                              struct sx_error *error) {
    int version = 0;
    SX_TRY(load(&link->library, &link->nccl, error));
    SX_TRY(check(&link->nccl, link->nccl.ncclGetVersion(&version), "ncclGetVersion", error));
    snprintf(link->name, sizeof link->name, "NCCL %d.%d.%d", version / 10000, version / 100 % 100,
             version % 100);
    SX_TRY(sx_cuda_stream_create(backend, pool, NULL, &link->stream, error));
    link->cuda = cuda_stream_of(link->stream);
    cudaError_t result = cuda_choose_device(link->cuda->device->ordinal);
    for (int f = 0; f < SX_LINK_FLIGHTS && result == cudaSuccess; f++)
        result = cudaEventCreateWithFlags(&link->flights[f].event, cudaEventDisableTiming);
    if (result != cudaSuccess)
        return sx_error_set(error, SX_INTERNAL, "an event: %s", cudaGetErrorString(result));
    return make_dropped(link, error);
}

enum sx_status sx_nccl_create(const struct sx_backend *backend, struct sx_pool *pool,
                              struct sx_link **out_link, struct sx_error *error) {
    struct nccl_link *link = calloc(1, sizeof *link);
    if (!link)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a link");
    link->base = (struct sx_link){.ops = &ops, .name = link->name, .round_bytes = ROUND_BYTES};
    pthread_mutex_init(&link->lock, NULL);
    enum sx_status status = prepare(link, backend, pool, error);
    if (status != SX_OK) {
        destroy(&link->base, false);
        return status;
    }
    *out_link = &link->base;
    return SX_OK;
}
