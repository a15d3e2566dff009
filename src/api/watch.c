#include "api/watch.h"

#include <string.h>
#include <time.h>

#include "base/signals.h"

enum { REPEAT_MS = 10 };

/* Until the watch is stopped: DuckDB forgets an interrupt that comes before it begins. */
static void interrupt_repeatedly(struct sx_watch *watch) {
    const struct timespec pause = {0, REPEAT_MS * 1000000L};
    while (!atomic_load(&watch->stop)) {
        sx_frontend_interrupt(watch->frontend);
        nanosleep(&pause, NULL);
    }
}

static void *run_watch(void *argument) {
    struct sx_watch *watch = argument;
    while (!atomic_load(&watch->stop)) {
        if (atomic_load(watch->cancel))
            interrupt_repeatedly(watch);
        else
            sem_wait(watch->wake);
    }
    return NULL;
}

enum sx_status sx_watch_start(struct sx_watch *watch, struct sx_frontend *frontend, const atomic_bool *cancel,
                              sem_t *wake, struct sx_error *error) {
    watch->frontend = frontend;
    watch->cancel = cancel;
    watch->wake = wake;
    atomic_init(&watch->stop, false);
    sigset_t previous;
    sx_signals_block(&previous);
    int failure = pthread_create(&watch->thread, NULL, run_watch, watch);
    sx_signals_restore(&previous);
    if (failure)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "a thread could not be started: %s", strerror(failure));
    return SX_OK;
}

void sx_watch_stop(struct sx_watch *watch) {
    atomic_store(&watch->stop, true);
    sem_post(watch->wake);
    pthread_join(watch->thread, NULL);
}
