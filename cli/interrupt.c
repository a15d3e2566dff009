#include "interrupt.h"

#include <errno.h>
#include <poll.h>
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
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction inherited;
        if (!sigaction(signals[i], NULL, &inherited) && inherited.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

void interrupt_set_query(struct stachio_query *query) {
    atomic_store(&current, query);
}

bool interrupt_seen(void) {
    return atomic_load(&seen);
}

/* The signals are blocked but within ppoll, so that none comes unseen before it. */
bool interrupt_wait(int fd, short events) {
    struct pollfd wanted = {.fd = fd, .events = events};
    const struct timespec at_once = {0};
    sigset_t blocked, before;
    int n;
    sigemptyset(&blocked);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaddset(&blocked, signals[i]);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    do
        n = ppoll(&wanted, 1, interrupt_seen() ? &at_once : NULL, &before);
    while (n < 0 && errno == EINTR);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return n != 0; /* read or write tells of errors */
}

void interrupt_forget(void) {
    atomic_store(&seen, false);
}

bool interrupt_is_final(void) {
    return atomic_load(&is_final);
}
