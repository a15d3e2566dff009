#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "message.h"
#include "session.h"

static void add_scans(struct text *out, const struct stachio_report *report) {
    const struct stachio_progress *progress = &report->progress;
    char rows[SIZE_TEXT_BYTES], pruned[SIZE_TEXT_BYTES], bytes[SIZE_TEXT_BYTES], rate[SIZE_TEXT_BYTES];
    if (report->engine != STACHIO_ENGINE_STACHIO || !progress->total_rows)
        return;
    double seconds = report->execute_seconds > 0 ? report->execute_seconds : 1e-9;
    text_format(out, "Scanned        %s rows, of which %s were pruned unread\n",
                count_text(progress->total_rows, rows), count_text(progress->pruned_rows, pruned));
    text_format(out, "Read           %s, %s/s", size_text((double)progress->read_bytes, bytes),
                size_text((double)progress->read_bytes / seconds, rate));
    if (progress->device_read_bytes)
        text_format(out, ", %s of it straight into the device's memory",
                    size_text((double)progress->device_read_bytes, bytes));
    text_format(out, "\n");
    if (progress->host_cache_bytes || progress->device_cache_bytes)
        text_format(out, "Cached         %s in the host's memory, %s in the device's\n",
                    size_text((double)progress->host_cache_bytes, rows),
                    size_text((double)progress->device_cache_bytes, bytes));
}

static const char *way_text(const char *bound) {
    return !strcmp(bound, "link")   ? "over the link to the device"
           : !strcmp(bound, "disk") ? "from the disk"
                                    : "from memory";
}

/* What limits: whatever T_min counts, where that takes half of the time or more. */
static void add_floor(struct text *out, const struct stachio_report *report,
                      const struct stachio_floor *floor) {
    char bytes[SIZE_TEXT_BYTES], rate[SIZE_TEXT_BYTES];
    const double seconds = report->plan_seconds + report->execute_seconds;
    if (floor->seconds <= 0)
        return;
    const double ratio = seconds / floor->seconds;
    text_format(out, "T_min          %.4g s: %s %s at %s/s; the time is %.1f x\n", floor->seconds,
                size_text((double)floor->bytes, bytes), way_text(floor->bound),
                size_text(floor->bytes_per_second, rate), ratio);
    text_format(out, "Bound          %s\n", ratio < 2 ? floor->bound : "compute");
}

static int name_width(const struct stachio_report *report) {
    int64_t width = (int64_t)strlen("operator");
    for (int i = 0; i < report->n_operators; i++) {
        const char *name = report->operators[i].name;
        int64_t own = text_width(name, strlen(name));
        width = own > width ? own : width;
    }
    return (int)width;
}

static void add_operator(struct text *out, const struct stachio_operator *op, int width,
                         double total_seconds) {
    char rows[SIZE_TEXT_BYTES], batches[SIZE_TEXT_BYTES];
    text_format(out, "%8d  %s", op->pipeline, op->name);
    text_repeat(out, " ", width - text_width(op->name, strlen(op->name)));
    text_format(out, "  %15s  %11s  %9.4f  %4.0f %%\n", count_text(op->rows, rows),
                count_text(op->batches, batches), op->seconds,
                total_seconds > 0 ? 100 * op->seconds / total_seconds : 0.0);
}

static void add_operators(struct text *out, const struct stachio_report *report) {
    if (!report->n_operators)
        return;
    int width = name_width(report);
    double total = 0;
    for (int i = 0; i < report->n_operators; i++)
        total += report->operators[i].seconds;
    text_format(out, "\npipeline  %-*s  %15s  %11s  %9s  %6s\n", width, "operator", "rows", "batches",
                "seconds", "share");
    for (int i = 0; i < report->n_operators; i++)
        add_operator(out, &report->operators[i], width, total);
}

static void add_ranks(struct text *out, const struct stachio_report *report) {
    char label[32];
    if (!report->n_ranks)
        return;
    text_format(out, "Network        %s%s\n", report->network,
                report->alone ? "; not used: rank 0 alone, since there is little to read" : "");
    for (int r = 0; r < report->n_ranks; r++) {
        const struct stachio_rank *rank = &report->ranks[r];
        snprintf(label, sizeof label, "Rank %d", r);
        text_format(out, "%-14s host %s, pid %" PRId64 ": %s%s%s, processors %s\n", label, rank->host,
                    rank->pid, rank->device, *rank->bus ? " at " : "", rank->bus, rank->processors);
    }
}

void print_report(struct text *out, const struct stachio_report *report, const struct stachio_floor *floor) {
    bool is_ours = report->engine == STACHIO_ENGINE_STACHIO;
    char peak[SIZE_TEXT_BYTES], device_peak[SIZE_TEXT_BYTES];
    text_format(out, "Answered by    %s on %s, threads: %d\n", is_ours ? "stachio" : "duckdb", report->device,
                report->threads);
    if (is_ours && report->device_reason)
        text_format(out, "No GPU since   %s\n", report->device_reason);
    if (is_ours && report->gds_reason)
        text_format(out, "No GDS since   %s\n", report->gds_reason);
    if (report->fallback_reason)
        text_format(out, "Since          %s\n", report->fallback_reason);
    if (is_ours)
        add_ranks(out, report);
    text_format(out, "Time           %.4f s: planning %.4f s%s, running %.4f s\n",
                report->plan_seconds + report->execute_seconds, report->plan_seconds,
                report->plan_known ? " (the plan is known)" : "", report->execute_seconds);
    if (is_ours)
        text_format(out, "Peak memory    %s%s%s\n", size_text((double)report->peak_memory_bytes, peak),
                    report->peak_device_memory_bytes ? ", on the GPU " : "",
                    report->peak_device_memory_bytes
                        ? size_text((double)report->peak_device_memory_bytes, device_peak)
                        : "");
    add_scans(out, report);
    add_floor(out, report, floor);
    add_operators(out, report);
}
