#include <stdlib.h>

#include "api/query.h"

struct stachio_trace {
    struct sx_trace *inner; /* queries keep it */
};

enum stachio_status stachio_trace_create(struct stachio_trace **out_trace, struct stachio_error *error) {
    struct sx_error inner = {0};
    struct stachio_trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return sx_api_error(error, STACHIO_OUT_OF_MEMORY, "no memory for a trace");
    if (sx_trace_create(&trace->inner, &inner) != SX_OK) {
        free(trace);
        return sx_api_fail(&inner, error);
    }
    *out_trace = trace;
    return STACHIO_OK;
}

void stachio_trace_destroy(struct stachio_trace *trace) {
    if (!trace)
        return;
    sx_trace_release(trace->inner);
    free(trace);
}

struct sx_trace *sx_trace_of(const struct stachio_trace *trace) {
    return trace ? trace->inner : NULL;
}

/* One more owner; NULL: there is no trace. */
static struct sx_trace *share(const struct stachio_db *db, const struct stachio_trace *trace) {
    if (!trace)
        return NULL;
    if (stachio_ranks(db) > 1)
        sx_trace_set_rank(trace->inner, stachio_rank(db));
    return sx_trace_retain(trace->inner);
}

void stachio_query_set_trace(struct stachio_query *query, struct stachio_trace *trace) {
    sx_trace_release(query->trace);
    query->trace = share(query->db, trace);
}

void stachio_set_follow_trace(struct stachio_db *db, struct stachio_trace *trace) {
    sx_trace_release(db->follow_trace);
    db->follow_trace = share(db, trace);
}

enum stachio_status stachio_trace_write(struct stachio_trace *trace,
                                        int (*write)(void *context, const char *bytes, size_t size_bytes),
                                        void *context, struct stachio_error *error) {
    if (sx_trace_write(trace->inner, write, context) == 0)
        return STACHIO_OK;
    return sx_api_error(error, STACHIO_OUTPUT, "the trace could not be written");
}
