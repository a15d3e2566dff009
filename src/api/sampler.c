#include "api/sampler.h"

#include <stdlib.h>
#include <time.h>

#include "api/system.h"
#include "base/array.h"
#include "base/signals.h"

static bool add_sample(struct sx_sampler *sampler) {
    struct stachio_bench_sample *grown =
        sx_array_grow(sampler->samples, sizeof *grown, sampler->n_samples, &sampler->capacity);
    if (!grown)
        return false;
    sampler->samples = grown;
    sampler->samples[sampler->n_samples++] = (struct stachio_bench_sample){
        sx_system_seconds() - sampler->began, sx_net_sent_bytes(sampler->net) - sampler->before_bytes};
    return true;
}

static void *watch(void *context) {
    struct sx_sampler *sampler = context;
    const struct timespec millisecond = {.tv_nsec = 1000000};
    do
        nanosleep(&millisecond, NULL);
    while (!atomic_load(&sampler->stops) && add_sample(sampler));
    return NULL;
}

void sx_sampler_start(struct sx_sampler *sampler, struct sx_net *net) {
    sigset_t previous;
    sampler->net = net;
    sampler->n_samples = 0;
    sampler->began = sx_system_seconds();
    sampler->before_bytes = sx_net_sent_bytes(net);
    atomic_store(&sampler->stops, false);
    sx_signals_block(&previous);
    sampler->runs = add_sample(sampler) && pthread_create(&sampler->thread, NULL, watch, sampler) == 0;
    sx_signals_restore(&previous);
    if (!sampler->runs)
        sampler->n_samples = 0;
}

void sx_sampler_stop(struct sx_sampler *sampler) {
    if (!sampler->runs)
        return;
    atomic_store(&sampler->stops, true);
    pthread_join(sampler->thread, NULL);
    sampler->runs = false;
    (void)add_sample(sampler);
}

void sx_sampler_release(struct sx_sampler *sampler) {
    sx_sampler_stop(sampler);
    free(sampler->samples);
    *sampler = (struct sx_sampler){0};
}
