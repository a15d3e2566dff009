#include "interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
static pthread_t main_thread;
static _Atomic(struct stachio_query *) current;
static atomic_bool seen;
static atomic_bool is_final;

/* Only the main thread may look at the query: it is also the one that destroys it. */
static void handle_interrupt(int signal) {
    if (!pthread_equal(pthread_self(), main_thread)) {
        pthread_kill(main_thread, signal);
        return;
    }
    if (signal != SIGINT)
        atomic_store(&is_final, true);
    atomic_store(&seen, true);
    struct stachio_query *query = atomic_load(&current);
    if (query)
        stachio_query_cancel(query);
}

void interrupt_install(void) {
    main_thread = pthread_self();
    struct sigaction action = {.sa_handler = handle_interrupt};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
}

void interrupt_set_query(struct stachio_query *query) {
    atomic_store(&current, query);
}

bool interrupt_seen(void) {
    return atomic_load(&seen);
}

void interrupt_forget(void) {
    atomic_store(&seen, false);
}

bool interrupt_is_final(void) {
    return atomic_load(&is_final);
}
