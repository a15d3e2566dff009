/* UCX calls abort() where it meets what it did not expect, and some versions (1.16) do when a peer over
 * shared memory has died. That must not end a rank before it has said who was lost: the network thread, which
 * UCX aborts, waits here, as if it hung, while the process ends as after any lost rank. If it does not, or
 * nobody is lost, abort() goes on, and so it does where something else aborts on that thread. */
#include <signal.h>
#include <time.h>

#include "net/ucx/ucx_state.h"

enum {
    STEP_MS = 10,
    LOSS_MS = 8000, /* a host that dies is noticed within 5 s */
    END_MS = 6000   /* of the process, which waits 2 s for this thread */
};

static _Atomic(struct sx_ucx *) guarded;
static struct sigaction before;

static void wait_step(void) {
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    nanosleep(&step, NULL);
}

/* Until the process has ended, if a rank is lost. */
static void wait_for_end(struct sx_ucx *ucx) {
    for (int ms = 0; ms < LOSS_MS && !atomic_load(&ucx->is_lost); ms += STEP_MS)
        wait_step();
    for (int ms = 0; ms < END_MS && atomic_load(&ucx->is_lost); ms += STEP_MS)
        wait_step();
}

static void take_abort(int number) {
    struct sx_ucx *ucx = atomic_load(&guarded);
    if (ucx && atomic_load(&ucx->runs) && pthread_equal(pthread_self(), ucx->runner))
        wait_for_end(ucx);
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
    struct sigaction now;
    if (atomic_load(&guarded) != ucx)
        return;
    if (sigaction(SIGABRT, NULL, &now) == 0 && now.sa_handler == take_abort) /* not the application's */
        sigaction(SIGABRT, &before, NULL);
    atomic_compare_exchange_strong(&guarded, &own, NULL);
}
