/* Hands a cancellation, which is only a flag and a semaphore, on to DuckDB. */
#ifndef SX_API_WATCH_H
#define SX_API_WATCH_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "plan/frontend.h"

struct sx_watch {
    struct sx_frontend *frontend;
    const atomic_bool *cancel;
    sem_t *wake; /* posted after `cancel` is set */
    atomic_bool stop;
    pthread_t thread;
};

/* While DuckDB works between start and stop, a cancellation interrupts it. */
SX_MUST_CHECK enum sx_status sx_watch_start(struct sx_watch *watch, struct sx_frontend *frontend,
                                            const atomic_bool *cancel, sem_t *wake, struct sx_error *error);
void sx_watch_stop(struct sx_watch *watch);

#endif
