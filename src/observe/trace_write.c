/* Chrome's trace event format, as Perfetto reads it. Times are microseconds of the host's monotonic clock,
 * and each rank is a process: traces of a host's ranks can be put side by side. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "observe/trace_state.h"

struct writer {
    int process;
    int (*write)(void *context, const char *bytes, size_t size_bytes);
    void *context;
    int failed;
    size_t used_bytes;
    char bytes[1 << 16];
};

static const struct {
    const char *category, *prefix, *first, *second;
} kinds[] = {
#define KIND(name, category, prefix, first, second) {category, prefix, first, second},
    SX_SPAN_LIST(KIND)
#undef KIND
};

static void flush(struct writer *writer) {
    if (!writer->failed && writer->used_bytes > 0)
        writer->failed = writer->write(writer->context, writer->bytes, writer->used_bytes);
    writer->used_bytes = 0;
}

/* Short pieces of text. */
static void SX_PRINTF(2, 3) put(struct writer *writer, const char *format, ...) {
    enum { MOST_BYTES = 512 };
    if (writer->used_bytes + MOST_BYTES > sizeof writer->bytes)
        flush(writer);
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(writer->bytes + writer->used_bytes, MOST_BYTES, format, arguments);
    va_end(arguments);
    writer->used_bytes += n > 0 ? (size_t)n : 0;
}

/* Names come from files and tables; bytes that ASCII does not know become question marks, so that the file is
 * UTF-8 whatever they were. */
static void put_text(struct writer *writer, const char *text) {
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            put(writer, "\\%c", c);
        else if (c < 0x20)
            put(writer, "\\u%04x", c);
        else
            put(writer, "%c", c < 0x7f ? c : '?');
    }
}

static void put_span(struct writer *writer, int track, const struct span *span) {
    const int64_t began = span->began_ns, took = span->ended_ns - span->began_ns;
    put(writer,
        ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%" PRId64 ".%03d,\"dur\":%" PRId64
        ".%03d,\"cat\":\"%s\"",
        writer->process, track, began / 1000, (int)(began % 1000), took / 1000, (int)(took % 1000),
        kinds[span->kind].category);
    put(writer, ",\"name\":\"%s", kinds[span->kind].prefix);
    put_text(writer, span->name);
    put(writer, "\"");
    if (kinds[span->kind].first)
        put(writer, ",\"args\":{\"%s\":%" PRId64, kinds[span->kind].first, span->first);
    if (kinds[span->kind].second)
        put(writer, ",\"%s\":%" PRId64, kinds[span->kind].second, span->second);
    put(writer, kinds[span->kind].first ? "}}" : "}");
}

static int64_t put_lane(struct writer *writer, int track, const struct sx_lane *lane) {
    put(writer,
        ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"%s %d\"}}",
        writer->process, track, lane->group, lane->number);
    put(writer,
        ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%d}}",
        writer->process, track, track);
    for (const struct span_chunk *chunk = lane->first; chunk && !writer->failed; chunk = chunk->next)
        for (int i = 0; i < chunk->n_spans; i++)
            put_span(writer, track, &chunk->spans[i]);
    return lane->n_dropped;
}

int sx_trace_write(struct sx_trace *trace, int (*write)(void *context, const char *bytes, size_t size_bytes),
                   void *context) {
    const int rank = atomic_load(&trace->rank);
    struct writer writer = {.process = rank < 0 ? 1 : rank + 1, .write = write, .context = context};
    int track = 0;
    int64_t n_dropped = 0;
    put(&writer, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    put(&writer, "{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":\"stachio",
        writer.process);
    if (rank >= 0)
        put(&writer, ", rank %d", rank);
    put(&writer, "\"}}");
    pthread_mutex_lock(&trace->lock);
    for (const struct sx_lane *lane = trace->lanes; lane; lane = lane->next)
        track++;
    for (const struct sx_lane *lane = trace->lanes; lane; lane = lane->next)
        n_dropped += put_lane(&writer, track--, lane);
    pthread_mutex_unlock(&trace->lock);
    put(&writer, "\n],\"otherData\":{\"dropped_spans\":\"%" PRId64 "\"}}\n", n_dropped);
    flush(&writer);
    return writer.failed;
}
