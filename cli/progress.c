#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "interrupt.h"
#include "message.h"

enum { REDRAW_MS = 100, LINE_MS = 1000 };

static void draw(struct progress *progress) {
    struct stachio_progress now;
    stachio_query_progress(progress->query, &now);
    char done[SIZE_TEXT_BYTES], total[SIZE_TEXT_BYTES], read[SIZE_TEXT_BYTES];
    struct text line = {0};
    if (now.total_rows > 0) {
        double share = (double)now.done_rows / (double)now.total_rows;
        text_format(&line, "%3.0f %%  %s of %s rows, %s read, %.1f s", 100 * share,
                    count_text(now.done_rows, done), count_text(now.total_rows, total),
                    size_text((double)now.read_bytes, read), now.seconds);
        const int64_t written = stachio_query_written_rows(progress->query);
        if (written > 0)
            text_format(&line, ", %s rows written", count_text(written, done));
        if (share > 0 && share < 1)
            text_format(&line, ", %.1f s left", now.seconds * (1 - share) / share);
    } else {
        text_format(&line, "running, %.1f s", now.seconds);
    }
    if (progress->redraws)
        fprintf(stderr, "\r%s\x1b[K", text_string(&line));
    else
        fprintf(stderr, "stachio: %s\n", text_string(&line));
    fflush(stderr);
    text_release(&line);
    progress->drawn = true;
}

static struct timespec after(double seconds) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    long long nanos = at.tv_nsec + (long long)(seconds * 1e9);
    at.tv_sec += (time_t)(nanos / 1000000000);
    at.tv_nsec = (long)(nanos % 1000000000);
    return at;
}

static void *run_progress(void *argument) {
    struct progress *progress = argument;
    double wait_s = progress->delay_s;
    pthread_mutex_lock(&progress->lock);
    while (!progress->stop) {
        struct timespec until = after(wait_s);
        int failure = 0;
        while (!progress->stop && !failure)
            failure = pthread_cond_timedwait(&progress->wake, &progress->lock, &until);
        if (progress->stop)
            break;
        draw(progress);
        wait_s = (progress->redraws ? REDRAW_MS : LINE_MS) * 1e-3;
    }
    pthread_mutex_unlock(&progress->lock);
    return NULL;
}

void progress_start(struct progress *progress, struct stachio_query *query, enum progress_mode mode) {
    *progress = (struct progress){.query = query, .redraws = isatty(STDERR_FILENO) == 1};
    if (mode == PROGRESS_NEVER || (mode == PROGRESS_AUTO && !progress->redraws))
        return;
    progress->delay_s = mode == PROGRESS_ALWAYS ? 0 : 0.5;
    pthread_mutex_init(&progress->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&progress->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    progress->runs = pthread_create(&progress->thread, NULL, run_progress, progress) == 0;
}

void progress_stop(struct progress *progress) {
    if (!progress->runs)
        return;
    pthread_mutex_lock(&progress->lock);
    progress->stop = true;
    pthread_cond_signal(&progress->wake);
    pthread_mutex_unlock(&progress->lock);
    pthread_join(progress->thread, NULL);
    pthread_cond_destroy(&progress->wake);
    pthread_mutex_destroy(&progress->lock);
    if (progress->drawn && progress->redraws) {
        fputs("\r\x1b[K", stderr);
        fflush(stderr);
    }
    progress->runs = false;
}
