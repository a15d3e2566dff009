/* The queues between the reader threads and the callers of a scan. Callers read row groups themselves as long
 * as the page cache has them, since a copy is all that reading costs then; the reader threads read ahead what
 * has to come from the disk. */
#include "storage/scan_state.h"

/* Batches read ahead after one that was not in the page cache. */
enum { COLD_BATCHES = 16 };

/* What reader threads want from the disk at the same time: enough to keep it busy, and so little that the
 * first batch does not have to wait for many others. */
static const size_t most_in_flight_bytes = (size_t)32 << 20;

int scan_peek(struct sx_scan *scan) {
    while (scan->cursor < scan->n_batches && scan->batches[scan->cursor].state != BATCH_WAITING)
        scan->cursor++;
    return scan->cursor < scan->n_batches ? scan->cursor : -1;
}

void scan_give_back(struct sx_scan *scan, int batch) {
    scan->batches[batch].state = BATCH_WAITING;
    if (batch < scan->cursor)
        scan->cursor = batch;
    if (batch < scan->front)
        scan->front = batch;
}

/* Changes happen under the lock; fetching has a look without it. */
static void note_warmth(struct sx_scan *scan, bool is_cold) {
    const int before = atomic_load_explicit(&scan->cold_batches, memory_order_relaxed);
    const int left = is_cold ? COLD_BATCHES : before > 0 ? before - 1 : 0;
    atomic_store_explicit(&scan->cold_batches, left, memory_order_relaxed);
    if (left > 0 && before > 0)
        pthread_cond_signal(&scan->storage->work);
    else if (left > 0)
        pthread_cond_broadcast(&scan->storage->work);
}

enum sx_status scan_read_claimed(struct sx_scan *scan, int batch, struct scan_group **out_first,
                                 struct sx_error *error) {
    struct sx_storage *storage = scan->storage;
    bool is_cold;
    scan->batches[batch].state = BATCH_READING;
    scan->n_reading++;
    pthread_mutex_unlock(&storage->lock);
    enum sx_status status = scan_read_batch(scan, batch, out_first, &is_cold, error);
    pthread_mutex_lock(&storage->lock);
    scan->n_reading--;
    if (status == SX_OK) {
        scan->batches[batch].state = BATCH_DONE;
        note_warmth(scan, is_cold);
    } else if (status != SX_OUT_OF_MEMORY) {
        scan_give_back(scan, batch);
        if (scan->error.status == SX_OK)
            scan->error = *error;
    }
    pthread_cond_broadcast(&scan->changed);
    return status;
}

/* ---- what is ready ---- */

void scan_push_ready(struct sx_scan *scan, struct scan_group *first) {
    struct scan_group **at = &scan->ready;
    while (*at && (*at)->batch < first->batch)
        at = &(*at)->next;
    first->next = *at;
    *at = first;
    scan->n_ready++;
}

static struct scan_group *pop_ready(struct sx_scan *scan) {
    struct scan_group *group = scan->ready;
    if (!group)
        return NULL;
    scan->ready = group->next;
    scan->n_ready--;
    scan->queued_bytes -= group->queued_bytes;
    group->queued_bytes = 0;
    pthread_cond_signal(&scan->storage->work);
    return group;
}

static bool is_to_come(const struct scan_batch *batch) {
    return batch->state == BATCH_WAITING || batch->is_ahead;
}

struct scan_group *scan_take_ready(struct sx_scan *scan) {
    if (!scan->ready)
        return NULL;
    while (scan->front < scan->ready->batch && !is_to_come(&scan->batches[scan->front]))
        scan->front++;
    return scan->front < scan->ready->batch ? NULL : pop_ready(scan);
}

bool scan_drop_ready(struct sx_scan *scan) {
    bool any = scan->ready != NULL;
    for (struct scan_group *group; (group = pop_ready(scan));) {
        scan_unread_batch(scan, group);
        scan_give_back(scan, group->batch);
        scan_group_free(group);
    }
    return any;
}

bool scan_reclaim_others(struct sx_scan *scan) {
    bool any = false;
    for (struct sx_scan *other = scan->storage->scans; other; other = other->next) {
        if (other == scan || !other->ready)
            continue;
        other->is_starved = true;
        any |= scan_drop_ready(other);
    }
    return any;
}

/* ---- reader threads ---- */

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* A batch's row groups are read one after another, so what is in flight is one of them at most. */
static void set_left(struct sx_storage *storage, struct scan_batch *batch, size_t unit_bytes,
                     size_t left_bytes) {
    const size_t in_flight = least(unit_bytes, left_bytes);
    storage->in_flight_bytes += in_flight - batch->in_flight_bytes;
    batch->in_flight_bytes = in_flight;
    batch->left_bytes = left_bytes;
}

void scan_note_arrived(struct sx_scan *scan, int batch, int64_t bytes) {
    struct sx_storage *storage = scan->storage;
    struct scan_batch *of = &scan->batches[batch];
    pthread_mutex_lock(&storage->lock);
    if (of->is_ahead) {
        set_left(storage, of, of->in_flight_bytes, of->left_bytes - least((size_t)bytes, of->left_bytes));
        if (storage->in_flight_bytes <= most_in_flight_bytes / 2)
            pthread_cond_signal(&storage->work);
    }
    pthread_mutex_unlock(&storage->lock);
}

/* A row group that alone is more begins when half of it is free: the disk is not to run dry in between. */
static bool is_room_in_flight(const struct sx_storage *storage, size_t unit_bytes) {
    return storage->in_flight_bytes == 0 ||
           storage->in_flight_bytes + least(unit_bytes, most_in_flight_bytes / 2) <= most_in_flight_bytes;
}

static bool wants_reading(struct sx_scan *scan) {
    if (!scan->is_started || scan->is_starved || scan->is_closed || scan->error.status != SX_OK ||
        scan->cold_batches == 0 || scan_is_cancelled(scan))
        return false;
    int batch = scan_peek(scan);
    if (batch < 0)
        return false;
    const size_t bytes = scan_batch_bytes(scan, &scan->batches[batch]);
    if (!is_room_in_flight(scan->storage, bytes / (size_t)scan->batches[batch].n_units))
        return false;
    return scan->queued_bytes == 0 ||
           (bytes <= scan->queue_bytes && scan->queued_bytes <= scan->queue_bytes - bytes);
}

static void read_ahead(struct sx_scan *scan) {
    struct sx_error error = {0};
    struct scan_group *group = NULL;
    int batch = scan_peek(scan);
    struct scan_batch *of = &scan->batches[batch];
    const size_t bytes = scan_batch_bytes(scan, of);
    scan->queued_bytes += bytes;
    set_left(scan->storage, of, bytes / (size_t)of->n_units, bytes);
    scan->n_ahead++;
    of->is_ahead = true;
    enum sx_status status = scan_read_claimed(scan, batch, &group, &error);
    of->is_ahead = false;
    set_left(scan->storage, of, 0, 0);
    scan->n_ahead--;
    if (status == SX_OK && group) {
        group->queued_bytes = bytes;
        scan_push_ready(scan, group);
        return;
    }
    scan->queued_bytes -= bytes;
    if (status == SX_OUT_OF_MEMORY) {
        scan_give_back(scan, batch);
        scan->is_starved = true;
    }
}

void *scan_reader_main(void *context) {
    struct sx_storage *storage = context;
    pthread_mutex_lock(&storage->lock);
    while (!storage->stopping) {
        struct sx_scan *scan = storage->scans;
        while (scan && !wants_reading(scan))
            scan = scan->next;
        if (scan)
            read_ahead(scan);
        else
            pthread_cond_wait(&storage->work, &storage->lock);
    }
    pthread_mutex_unlock(&storage->lock);
    return NULL;
}
