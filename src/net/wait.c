/* Waiting for what other threads of the net do. */
#include "base/look.h"
#include "net/state.h"

void sx_net_changed(struct sx_net *net) {
    atomic_fetch_add(&net->n_changes, 1);
    pthread_cond_broadcast(&net->changed);
}

struct seen {
    struct sx_net *net;
    unsigned n_changes;
};

static bool has_changed(const void *what) {
    const struct seen *seen = what;
    return atomic_load(&seen->net->n_changes) != seen->n_changes;
}

void sx_net_await(struct sx_net *net, const struct timespec *until) {
    const struct seen seen = {net, atomic_load(&net->n_changes)};
    const int64_t spin_ns = net->spin_ns;
    if (spin_ns > 0) {
        pthread_mutex_unlock(&net->lock);
        (void)sx_look(spin_ns, has_changed, &seen);
        pthread_mutex_lock(&net->lock);
        if (has_changed(&seen))
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
