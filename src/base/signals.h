/* Threads of ours leave the process's signals to the caller's. */
#ifndef SX_BASE_SIGNALS_H
#define SX_BASE_SIGNALS_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/* Threads created in between get no signals but those of their own faults: a fault whose signal is blocked
 * ends the process past all handlers, so that neither a sanitizer nor the application's reporter hears of it.
 */
static inline void sx_signals_block(sigset_t *out_previous) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, out_previous);
}

static inline void sx_signals_restore(const sigset_t *previous) {
    pthread_sigmask(SIG_SETMASK, previous, NULL);
}

#endif
