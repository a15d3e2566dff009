/* Watches how many bytes a rank has sent, from a thread of its own. */
#ifndef SX_API_SAMPLER_H
#define SX_API_SAMPLER_H

#include <pthread.h>
#include <stachio.h>
#include <stdatomic.h>

#include "net/net.h"

/* Starts zeroed. Samples are of about each millisecond; where there is no memory for more there are no more.
 */
struct sx_sampler {
    struct sx_net *net;
    pthread_t thread;
    bool runs;
    atomic_bool stops;
    double began;
    int64_t before_bytes;
    struct stachio_bench_sample *samples;
    int n_samples;
    int64_t capacity;
};

/* Drops the samples of an earlier start, and takes the first one: nothing is sent yet, whenever the thread
 * gets to run. Without a thread there are no samples. */
void sx_sampler_start(struct sx_sampler *sampler, struct sx_net *net);
void sx_sampler_stop(struct sx_sampler *sampler);
void sx_sampler_release(struct sx_sampler *sampler);

#endif
