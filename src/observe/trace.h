/* Records what threads do, and when, for --trace.
 *
 * A lane is one track of the picture: a worker's stream, or a reader thread. One thread at a time records
 * into a lane, without locks, and its spans nest. Where no trace is wanted the lane is NULL, and a span costs
 * a branch. */
#ifndef SX_OBSERVE_TRACE_H
#define SX_OBSERVE_TRACE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/status.h"

struct sx_trace;
struct sx_lane;

/* X(name, category, what stands in front of the span's name, its two numbers or NULL) */
#define SX_SPAN_LIST(X)                                   \
    X(QUERY, "query", "", NULL, NULL)                     \
    X(PIPELINE, "pipeline", "pipeline: ", "number", NULL) \
    X(OPERATOR, "operator", "", "rows_in", "rows_out")    \
    X(FINISH, "operator", "finish ", NULL, NULL)          \
    X(PART, "operator", "part of ", "part", NULL)         \
    X(SEAL, "operator", "seal ", NULL, NULL)              \
    X(PRIMITIVE, "primitive", "", "rows", NULL)           \
    X(READ, "read", "read ", "bytes", "row_group")        \
    X(CACHE, "cache", "cached ", "bytes", NULL)           \
    X(WAIT, "wait", "wait: ", NULL, NULL)                 \
    X(SYNC, "sync", "sync: ", NULL, NULL)                 \
    X(COPY, "copy", "", "bytes", "copies")                \
    X(ROUND, "link", "", "sent_bytes", "received_bytes")

enum sx_span_kind {
#define SX_SPAN_ENUM(name, category, prefix, first, second) SX_SPAN_##name,
    SX_SPAN_LIST(SX_SPAN_ENUM)
#undef SX_SPAN_ENUM
};

SX_MUST_CHECK enum sx_status sx_trace_create(struct sx_trace **out_trace, struct sx_error *error);
/* A second owner. */
struct sx_trace *sx_trace_retain(struct sx_trace *trace);
void sx_trace_release(struct sx_trace *trace); /* NULL allowed */
/* Which of several ranks it is of. */
void sx_trace_set_rank(struct sx_trace *trace, int rank);

/* A text that lives as long as the trace; "?" where there is no memory. Any thread. */
const char *sx_trace_text(struct sx_trace *trace, const char *format, ...) SX_PRINTF(2, 3);

/* The lane of that name and number, made when it is new; NULL: no memory. Any thread. `group` is a literal.
 */
struct sx_lane *sx_trace_lane(struct sx_trace *trace, const char *group, int number);
/* From now on this thread's lane is `lane` (NULL allowed): for code that has no stream at hand. */
void sx_lane_claim(struct sx_lane *lane);
/* The lane of the calling thread, or a new one of `group`. NULL where `trace` is. */
struct sx_lane *sx_trace_thread_lane(struct sx_trace *trace, const char *group);

/* Adds a span from `began_ns` until now. `name` lives as long as the trace. */
void sx_lane_add(struct sx_lane *lane, enum sx_span_kind kind, const char *name, int64_t began_ns,
                 int64_t first, int64_t second);

static inline int64_t sx_span_begin(const struct sx_lane *lane) {
    return lane ? sx_clock_ns() : 0;
}

static inline void sx_span_end(struct sx_lane *lane, enum sx_span_kind kind, const char *name,
                               int64_t began_ns, int64_t first, int64_t second) {
    if (lane)
        sx_lane_add(lane, kind, name, began_ns, first, second);
}

/* Everything as JSON in Chrome's trace event format, in pieces, while nobody records. Returns what `write`
 * did last: it ends with the first that is not 0. */
int sx_trace_write(struct sx_trace *trace, int (*write)(void *context, const char *bytes, size_t size_bytes),
                   void *context);

#endif
