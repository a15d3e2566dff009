/* UCX calls abort() where it meets what it did not expect, and some versions (1.16) do when a peer over
 * shared memory has died. That must not end a rank before it has said who was lost: the network thread, which
 * UCX aborts, stops here once the life line has told, as if it hung, and the process ends as after any lost
 * rank. */
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "net/ucx/ucx_state.h"

enum { STEP_MS = 10, MOST_MS = 8000 /* a host that dies is noticed within 5 s */ };

static _Atomic(struct sx_ucx *) guarded;
static struct sigaction before;

/* Waits until some rank is known to be lost. False: none is. */
static bool hears_of_loss(struct sx_ucx *ucx) {
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    for (int ms = 0; ms < MOST_MS && !atomic_load(&ucx->is_lost); ms += STEP_MS)
        nanosleep(&step, NULL);
    return atomic_load(&ucx->is_lost);
}

static void take_abort(int number) {
    struct sx_ucx *ucx = atomic_load(&guarded);
    if (ucx && atomic_load(&ucx->runs) && pthread_equal(pthread_self(), ucx->runner) && hears_of_loss(ucx))
        for (;;)
            pause();
    sigaction(number, &before, NULL);
    raise(number); /* comes when this returns */
}

void sx_ucx_guard(struct sx_ucx *ucx) {
    struct sigaction action = {.sa_handler = take_abort};
    struct sx_ucx *none = NULL;
    if (atomic_compare_exchange_strong(&guarded, &none, ucx))
        sigaction(SIGABRT, &action, &before);
}

void sx_ucx_unguard(struct sx_ucx *ucx) {
    struct sx_ucx *own = ucx;
    if (atomic_load(&guarded) != ucx)
        return;
    sigaction(SIGABRT, &before, NULL);
    atomic_compare_exchange_strong(&guarded, &own, NULL);
}
