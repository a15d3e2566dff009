/* Inside of src/observe: lanes and their spans. */
#ifndef SX_OBSERVE_TRACE_STATE_H
#define SX_OBSERVE_TRACE_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "observe/trace.h"

struct span {
    const char *name;
    int64_t began_ns, ended_ns;
    int64_t first, second;
    enum sx_span_kind kind;
};

enum { CHUNK_SPANS = 1024 };

struct span_chunk {
    struct span_chunk *next;
    int n_spans;
    struct span spans[CHUNK_SPANS];
};

struct sx_lane {
    struct sx_trace *trace;
    const char *group;
    int number;
    bool has_thread;
    pthread_t thread; /* under the trace's lock */
    struct span_chunk *first, *last;
    int64_t n_spans;
    int64_t n_dropped; /* no memory, or too many */
    struct sx_lane *next;
};

struct sx_trace {
    atomic_int references;
    atomic_int rank;      /* -1: there is one */
    pthread_mutex_t lock; /* of what follows */
    struct sx_arena texts;
    struct sx_lane *lanes; /* newest first */
};

#endif
