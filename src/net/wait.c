/* Waiting for what other threads of the net do. */
#include <sched.h>

#include "base/clock.h"
#include "net/state.h"

void sx_net_changed(struct sx_net *net) {
    atomic_fetch_add(&net->n_changes, 1);
    pthread_cond_broadcast(&net->changed);
}

/* Without the lock. */
static bool sees_change(struct sx_net *net, unsigned seen, int64_t spin_ns) {
    const int64_t began_ns = sx_clock_ns();
    while (atomic_load(&net->n_changes) == seen && sx_clock_ns() - began_ns < spin_ns)
        sched_yield();
    return atomic_load(&net->n_changes) != seen;
}

void sx_net_await(struct sx_net *net, const struct timespec *until) {
    const unsigned seen = atomic_load(&net->n_changes);
    const int64_t spin_ns = net->spin_ns;
    if (spin_ns > 0) {
        pthread_mutex_unlock(&net->lock);
        const bool changed = sees_change(net, seen, spin_ns);
        pthread_mutex_lock(&net->lock);
        if (changed || atomic_load(&net->n_changes) != seen)
            return;
    }
    if (until)
        pthread_cond_timedwait(&net->changed, &net->lock, until);
    else
        pthread_cond_wait(&net->changed, &net->lock);
}

void sx_net_set_spin(struct sx_net *net, int64_t spin_ns) {
    pthread_mutex_lock(&net->lock);
    net->spin_ns = spin_ns;
    pthread_mutex_unlock(&net->lock);
    atomic_store(&net->transport->spin_ns, spin_ns);
}

int64_t sx_net_spin_ns(struct sx_net *net) {
    pthread_mutex_lock(&net->lock);
    const int64_t spin_ns = net->spin_ns;
    pthread_mutex_unlock(&net->lock);
    return spin_ns;
}
