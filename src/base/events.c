#include "base/events.h"

#include <errno.h>
#include <time.h>

#include "base/look.h"

void sx_events_init(struct sx_events *events) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&events->lock, NULL);
    pthread_cond_init(&events->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    atomic_init(&events->n, 0);
    events->spin_ns = 0;
}

void sx_events_release(struct sx_events *events) {
    pthread_cond_destroy(&events->changed);
    pthread_mutex_destroy(&events->lock);
}

void sx_events_add(void *context) {
    struct sx_events *events = context;
    pthread_mutex_lock(&events->lock);
    atomic_fetch_add(&events->n, 1);
    pthread_cond_broadcast(&events->changed);
    pthread_mutex_unlock(&events->lock);
}

int64_t sx_events_count(struct sx_events *events) {
    return atomic_load(&events->n);
}

static struct timespec in_ms(int ms) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_nsec += (long)(ms % 1000) * 1000000;
    at.tv_sec += ms / 1000 + at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

struct seen {
    struct sx_events *events;
    int64_t n;
};

static bool are_more(const void *what) {
    const struct seen *seen = what;
    return atomic_load(&seen->events->n) != seen->n;
}

void sx_events_wait(struct sx_events *events, int64_t n, int most_ms) {
    const struct timespec until = in_ms(most_ms < 0 ? 0 : most_ms);
    int result = 0;
    const struct seen seen = {events, n};
    (void)sx_look(events->spin_ns, are_more, &seen); /* who adds may still have the lock */
    pthread_mutex_lock(&events->lock);
    while (atomic_load(&events->n) == n && result != ETIMEDOUT)
        result = most_ms < 0 ? pthread_cond_wait(&events->changed, &events->lock)
                             : pthread_cond_timedwait(&events->changed, &events->lock, &until);
    pthread_mutex_unlock(&events->lock);
}
