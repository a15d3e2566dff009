/* A count of things that have happened, for threads that wait for more: who reads the count before it looks
 * for work misses nothing. Thread-safe. */
#ifndef SX_BASE_EVENTS_H
#define SX_BASE_EVENTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct sx_events {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_int_fast64_t n; /* changed with the lock held */
    int64_t spin_ns;       /* how long who waits looks before it sleeps; set before there are other threads */
};

void sx_events_init(struct sx_events *events);
void sx_events_release(struct sx_events *events);
/* One more. `context` is a struct sx_events: for callbacks. */
void sx_events_add(void *context);
int64_t sx_events_count(struct sx_events *events);
/* Until there are more than n, but no longer than most_ms; below 0: however long it takes. */
void sx_events_wait(struct sx_events *events, int64_t n, int most_ms);

#endif
