#include "storage/uring.h"

#include <errno.h>
#include <liburing.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage/file.h"

enum { DEPTH = 32, MOST_TRIES = 4 };
static const size_t piece_bytes = (size_t)1 << 20;

struct ring {
    struct ring *next;
    struct io_uring uring;
};

struct sx_rings {
    pthread_mutex_t lock;
    struct ring *idle;
    bool is_refused; /* the system has no io_uring for us */
};

/* ---- rings ---- */

enum sx_status sx_rings_create(struct sx_rings **out_rings, struct sx_error *error) {
    struct sx_rings *rings = calloc(1, sizeof *rings);
    if (!rings)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for a reader");
    pthread_mutex_init(&rings->lock, NULL);
    *out_rings = rings;
    return SX_OK;
}

static void close_ring(struct ring *ring) {
    io_uring_queue_exit(&ring->uring);
    free(ring);
}

void sx_rings_destroy(struct sx_rings *rings) {
    if (!rings)
        return;
    for (struct ring *ring = rings->idle, *next; ring; ring = next) {
        next = ring->next;
        close_ring(ring);
    }
    pthread_mutex_destroy(&rings->lock);
    free(rings);
}

/* NULL: there is no io_uring. Kernels, containers and limits may forbid it. */
static struct ring *take_ring(struct sx_rings *rings) {
    pthread_mutex_lock(&rings->lock);
    struct ring *ring = rings->idle;
    const bool is_refused = rings->is_refused;
    if (ring)
        rings->idle = ring->next;
    pthread_mutex_unlock(&rings->lock);
    if (ring || is_refused)
        return ring;
    ring = calloc(1, sizeof *ring);
    if (ring && io_uring_queue_init(DEPTH, &ring->uring, 0) == 0)
        return ring;
    free(ring);
    pthread_mutex_lock(&rings->lock);
    rings->is_refused = true;
    pthread_mutex_unlock(&rings->lock);
    return NULL;
}

static void give_ring(struct sx_rings *rings, struct ring *ring) {
    pthread_mutex_lock(&rings->lock);
    ring->next = rings->idle;
    rings->idle = ring;
    pthread_mutex_unlock(&rings->lock);
}

/* ---- pieces ---- */

/* A part of a transfer that is in flight. */
struct piece {
    struct sx_transfer part;
    size_t bytes; /* of it when it was cut */
    int transfer;
    int tries;
};

struct reading {
    struct sx_transfers *transfers;
    int next;       /* transfer */
    size_t next_at; /* within it */
    int in_flight;
    struct piece pieces[DEPTH];
    int free[DEPTH]; /* pieces that are not in flight */
    int n_free;
    bool is_broken; /* the ring takes nothing any more */
};

static bool is_cancelled(const struct sx_transfers *transfers) {
    return transfers->cancel && atomic_load_explicit(transfers->cancel, memory_order_relaxed);
}

static enum sx_status cancelled(struct sx_error *error) {
    return sx_error_set(error, SX_CANCELLED, "the query was cancelled");
}

/* False: all has been cut. */
static bool cut_piece(struct reading *reading, struct piece *out_piece) {
    const struct sx_transfers *transfers = reading->transfers;
    while (reading->next < transfers->count &&
           reading->next_at >= transfers->list[reading->next].needed_bytes) {
        reading->next++;
        reading->next_at = 0;
    }
    if (reading->next == transfers->count)
        return false;
    const struct sx_transfer *whole = &transfers->list[reading->next];
    const size_t at = reading->next_at, left = whole->length_bytes - at, needed = whole->needed_bytes - at;
    /* whole pieces begin where the file's do: so do those of striped disks */
    const size_t most = piece_bytes - (size_t)(whole->offset + (int64_t)at) % piece_bytes;
    const size_t length = left < most ? left : most;
    const struct sx_transfer part = {whole->offset + (int64_t)at, length, needed < length ? needed : length,
                                     whole->to + at};
    *out_piece = (struct piece){.part = part, .bytes = length, .transfer = reading->next};
    reading->next_at += length;
    return true;
}

/* What a read of the piece gave: bytes, or an error number below zero. True: the rest of it is to be read. */
static bool goes_on(struct piece *piece, ssize_t result, size_t alignment) {
    if (result == -EINTR || result == -EAGAIN)
        return ++piece->tries < MOST_TRIES;
    if (result <= 0 || (size_t)result % alignment || (size_t)result >= piece->part.needed_bytes)
        return false;
    piece->part.offset += result;
    piece->part.to += result;
    piece->part.length_bytes -= (size_t)result;
    piece->part.needed_bytes -= (size_t)result;
    return true;
}

/* After the last read: what is missing comes by way of the page cache, or the file has ended, or the error is
 * found again and told. */
static enum sx_status complete(struct sx_transfers *transfers, const struct piece *piece, ssize_t result,
                               struct sx_error *error) {
    if (transfers->arrived)
        transfers->arrived(transfers->context, (int64_t)piece->bytes);
    const size_t done = result > 0 ? (size_t)result : 0;
    if (done >= piece->part.needed_bytes)
        return SX_OK;
    transfers->failed = piece->transfer;
    return sx_file_read(transfers->buffered_fd, piece->part.offset + (int64_t)done,
                        piece->part.needed_bytes - done, piece->part.to + done, error);
}

/* ---- without io_uring ---- */

static enum sx_status read_in_turn(struct sx_transfers *transfers, struct sx_error *error) {
    struct reading reading = {.transfers = transfers};
    struct piece piece;
    while (cut_piece(&reading, &piece)) {
        ssize_t result;
        if (is_cancelled(transfers))
            return cancelled(error);
        do {
            result = pread(transfers->fd, piece.part.to, piece.part.length_bytes, piece.part.offset);
            if (result < 0)
                result = -errno;
        } while (goes_on(&piece, result, transfers->alignment));
        SX_TRY(complete(transfers, &piece, result, error));
    }
    return SX_OK;
}

/* ---- with it ---- */

static void submit(struct reading *reading, struct io_uring *uring, int slot) {
    const struct sx_transfer *part = &reading->pieces[slot].part;
    struct io_uring_sqe *entry = io_uring_get_sqe(uring); /* there are as many as pieces */
    io_uring_prep_read(entry, reading->transfers->fd, part->to, (unsigned)part->length_bytes,
                       (uint64_t)part->offset);
    io_uring_sqe_set_data64(entry, (unsigned)slot);
    reading->in_flight++;
}

/* Waits for one piece at least, and takes all that have come. With an error, the rest is only waited for. */
static enum sx_status reap(struct reading *reading, struct io_uring *uring, enum sx_status status,
                           struct sx_error *error) {
    struct io_uring_cqe *done;
    int failure;
    do
        failure = reading->is_broken ? io_uring_wait_cqe(uring, &done) : io_uring_submit_and_wait(uring, 1);
    while (failure == -EINTR);
    if (failure < 0) {
        reading->is_broken = true;
        reading->in_flight -= (int)io_uring_sq_ready(uring);
    }
    while (io_uring_peek_cqe(uring, &done) == 0) {
        const int slot = (int)io_uring_cqe_get_data64(done);
        const ssize_t result = done->res;
        struct piece *piece = &reading->pieces[slot];
        io_uring_cqe_seen(uring, done);
        reading->in_flight--;
        if (status != SX_OK || reading->is_broken)
            continue;
        if (goes_on(piece, result, reading->transfers->alignment)) {
            submit(reading, uring, slot);
            continue;
        }
        reading->free[reading->n_free++] = slot;
        status = complete(reading->transfers, piece, result, error);
    }
    return status;
}

/* *out_is_broken: the ring is of no more use, and not everything was read. */
static enum sx_status read_at_once(struct sx_transfers *transfers, struct io_uring *uring,
                                   bool *out_is_broken, struct sx_error *error) {
    struct reading reading = {.transfers = transfers, .n_free = DEPTH};
    enum sx_status status = SX_OK;
    for (int i = 0; i < DEPTH; i++)
        reading.free[i] = i;
    for (;;) {
        if (status == SX_OK && is_cancelled(transfers))
            status = cancelled(error);
        while (status == SX_OK && !reading.is_broken && reading.n_free > 0) {
            const int slot = reading.free[reading.n_free - 1];
            if (!cut_piece(&reading, &reading.pieces[slot]))
                break;
            reading.n_free--;
            submit(&reading, uring, slot);
        }
        if (reading.in_flight <= 0)
            break;
        status = reap(&reading, uring, status, error);
    }
    *out_is_broken = reading.is_broken;
    return status;
}

enum sx_status sx_rings_read(struct sx_rings *rings, struct sx_transfers *transfers, struct sx_error *error) {
    struct ring *ring = take_ring(rings);
    if (!ring)
        return read_in_turn(transfers, error);
    bool is_broken;
    enum sx_status status = read_at_once(transfers, &ring->uring, &is_broken, error);
    if (!is_broken) {
        give_ring(rings, ring);
        return status;
    }
    close_ring(ring);
    return status == SX_OK ? read_in_turn(transfers, error) : status;
}
