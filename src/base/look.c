#include "base/look.h"

#include <sched.h>
#include <stdatomic.h>

#include "base/clock.h"

enum {
    LATE_NS = 300000, /* after it was woken; an idle processor takes half of that at most */
    LEAST_NS = 50000,
    MOST_NS = 2000000,
    LATE_DIVISOR = 4,        /* of the time, when a thread was late */
    LEAST_PATIENCE = 256,    /* threads that were not, until the time is doubled again */
    MOST_PATIENCE = 1 << 16, /* twice as many each time that it was too early */
};

static atomic_int most_looking = 4, n_looking;
static atomic_int_fast64_t most_ns = MOST_NS;
static atomic_int n_in_time, patience = LEAST_PATIENCE;
static atomic_bool is_longer; /* than after a thread was late */

void sx_look_set_most(int threads) {
    atomic_store(&most_looking, threads);
}

int64_t sx_look_ns(int64_t for_ns) {
    const int64_t most = atomic_load(&most_ns);
    return for_ns < most ? for_ns : most;
}

static bool look(int64_t for_ns, bool (*has_come)(const void *what), const void *what) {
    const int64_t began_ns = sx_clock_ns();
    do {
        if (has_come(what))
            return true;
        sched_yield();
    } while (sx_clock_ns() - began_ns < for_ns);
    return has_come(what);
}

bool sx_look(int64_t for_ns, bool (*has_come)(const void *what), const void *what) {
    if (for_ns <= 0)
        return has_come(what);
    const bool may_look = atomic_fetch_add(&n_looking, 1) < atomic_load(&most_looking);
    const bool came = may_look ? look(sx_look_ns(for_ns), has_come, what) : has_come(what);
    atomic_fetch_sub(&n_looking, 1);
    return came;
}

/* What other threads do to the same words at the same time makes no difference that counts. */
static void shorten(void) {
    const int64_t shorter = atomic_load(&most_ns) / LATE_DIVISOR;
    const int longer = atomic_load(&patience) * (atomic_exchange(&is_longer, false) ? 2 : 1);
    atomic_store(&most_ns, shorter > LEAST_NS ? shorter : LEAST_NS);
    atomic_store(&patience, longer < MOST_PATIENCE ? longer : MOST_PATIENCE);
    atomic_store(&n_in_time, 0);
}

static void lengthen(void) {
    const int64_t longer = atomic_load(&most_ns) * 2;
    atomic_store(&n_in_time, 0);
    atomic_store(&is_longer, longer < MOST_NS);
    atomic_store(&most_ns, longer < MOST_NS ? longer : MOST_NS);
    if (longer >= MOST_NS)
        atomic_store(&patience, LEAST_PATIENCE);
}

void sx_look_woken(int64_t woken_ns) {
    if (sx_clock_ns() - woken_ns >= LATE_NS)
        shorten();
    else if (atomic_load(&most_ns) < MOST_NS && atomic_fetch_add(&n_in_time, 1) + 1 >= atomic_load(&patience))
        lengthen();
}
