#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "observe/trace_state.h"

/* 64 bytes each: half a gigabyte a lane. */
static const int64_t most_spans = 8 << 20;

enum sx_status sx_trace_create(struct sx_trace **out_trace, struct sx_error *error) {
    struct sx_trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a trace");
    atomic_init(&trace->references, 1);
    atomic_init(&trace->rank, -1);
    pthread_mutex_init(&trace->lock, NULL);
    *out_trace = trace;
    return SX_OK;
}

static void lane_destroy(struct sx_lane *lane) {
    for (struct span_chunk *chunk = lane->first, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(lane);
}

struct sx_trace *sx_trace_retain(struct sx_trace *trace) {
    atomic_fetch_add_explicit(&trace->references, 1, memory_order_relaxed);
    return trace;
}

void sx_trace_set_rank(struct sx_trace *trace, int rank) {
    atomic_store(&trace->rank, rank);
}

void sx_trace_release(struct sx_trace *trace) {
    if (!trace || atomic_fetch_sub_explicit(&trace->references, 1, memory_order_acq_rel) != 1)
        return;
    for (struct sx_lane *lane = trace->lanes, *next; lane; lane = next) {
        next = lane->next;
        lane_destroy(lane);
    }
    sx_arena_release(&trace->texts);
    pthread_mutex_destroy(&trace->lock);
    free(trace);
}

const char *sx_trace_text(struct sx_trace *trace, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&trace->lock);
    const char *copy = sx_arena_copy_text(&trace->texts, text, strlen(text));
    pthread_mutex_unlock(&trace->lock);
    return copy ? copy : "?";
}

/* ---- lanes ---- */

static struct sx_lane *add_lane(struct sx_trace *trace, const char *group, int number) {
    struct sx_lane *lane = calloc(1, sizeof *lane);
    if (!lane)
        return NULL;
    lane->trace = trace;
    lane->group = group;
    lane->number = number;
    lane->next = trace->lanes;
    trace->lanes = lane;
    return lane;
}

struct sx_lane *sx_trace_lane(struct sx_trace *trace, const char *group, int number) {
    pthread_mutex_lock(&trace->lock);
    struct sx_lane *lane = trace->lanes;
    while (lane && (lane->number != number || strcmp(lane->group, group) != 0))
        lane = lane->next;
    if (!lane)
        lane = add_lane(trace, group, number);
    pthread_mutex_unlock(&trace->lock);
    return lane;
}

static struct sx_lane *lane_of_thread(const struct sx_trace *trace) {
    struct sx_lane *lane = trace->lanes;
    while (lane && !(lane->has_thread && pthread_equal(lane->thread, pthread_self())))
        lane = lane->next;
    return lane;
}

static void set_thread(struct sx_lane *lane) {
    lane->has_thread = true;
    lane->thread = pthread_self();
}

void sx_lane_claim(struct sx_lane *lane) {
    if (!lane)
        return;
    pthread_mutex_lock(&lane->trace->lock);
    struct sx_lane *previous = lane_of_thread(lane->trace);
    if (previous)
        previous->has_thread = false;
    set_thread(lane);
    pthread_mutex_unlock(&lane->trace->lock);
}

struct sx_lane *sx_trace_thread_lane(struct sx_trace *trace, const char *group) {
    if (!trace)
        return NULL;
    pthread_mutex_lock(&trace->lock);
    struct sx_lane *lane = lane_of_thread(trace);
    if (!lane) {
        int n = 0;
        for (struct sx_lane *other = trace->lanes; other; other = other->next)
            n += strcmp(other->group, group) == 0;
        lane = add_lane(trace, group, n);
        if (lane)
            set_thread(lane);
    }
    pthread_mutex_unlock(&trace->lock);
    return lane;
}

/* ---- spans ---- */

static struct span *next_span(struct sx_lane *lane) {
    if (lane->last && lane->last->n_spans < CHUNK_SPANS)
        return &lane->last->spans[lane->last->n_spans++];
    struct span_chunk *chunk = lane->n_spans < most_spans ? malloc(sizeof *chunk) : NULL;
    if (!chunk)
        return NULL;
    chunk->next = NULL;
    chunk->n_spans = 1;
    if (lane->last)
        lane->last->next = chunk;
    else
        lane->first = chunk;
    lane->last = chunk;
    return &chunk->spans[0];
}

void sx_lane_add(struct sx_lane *lane, enum sx_span_kind kind, const char *name, int64_t began_ns,
                 int64_t first, int64_t second) {
    const int64_t ended_ns = sx_clock_ns();
    struct span *span = next_span(lane);
    if (!span) {
        lane->n_dropped++;
        return;
    }
    lane->n_spans++;
    *span = (struct span){name, began_ns, ended_ns, first, second, kind};
}
