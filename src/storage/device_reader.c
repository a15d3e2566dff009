#include "storage/device_reader.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/team.h"
#include "storage/direct.h"

/* Of a trial, in each of two ways. */
enum {
    TRIAL_THREADS = 4,
    TRIAL_READS = 2,
    TRIAL_PIECES = 2 * TRIAL_THREADS * TRIAL_READS,
    TRIAL_BYTES = 4 << 20,
    MOST_SYSTEMS = 64
};

/* What was found of a file system. */
struct verdict {
    uint64_t device;
    bool is_for_device;
    struct sx_error why; /* it is not */
};

enum state { UNTRIED, OPEN, ABSENT };

struct sx_device_reader {
    struct sx_device_reader_options options;
    const struct sx_device_files_ops *ops;
    pthread_mutex_t lock; /* of what follows */
    enum state state;
    struct sx_device_files *files; /* while OPEN */
    struct verdict verdicts[MOST_SYSTEMS];
    int n_verdicts;
    struct sx_error reason; /* why the last file that was refused was */
};

struct sx_device_source {
    int fd; /* with O_DIRECT */
    size_t alignment;
    struct sx_device_file *file;
};

/* ---- life ---- */

/* Whether the driver is open. Under the lock. */
static bool is_open(struct sx_device_reader *reader) {
    if (reader->state != UNTRIED)
        return reader->state == OPEN;
    const enum sx_status status =
        reader->ops ? reader->ops->open(reader->options.backend, reader->options.is_forced, &reader->files,
                                        &reader->reason)
                    : sx_error_set(&reader->reason, SX_UNSUPPORTED, "the device is the CPU");
    reader->state = status == SX_OK ? OPEN : ABSENT;
    return status == SX_OK;
}

enum sx_status sx_device_reader_create(const struct sx_device_reader_options *options,
                                       struct sx_device_reader **out_reader, struct sx_error *error) {
    struct sx_device_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for a reader");
    reader->options = *options;
    reader->ops = options->backend ? options->backend->files : NULL;
    pthread_mutex_init(&reader->lock, NULL);
    if (options->is_forced && !is_open(reader)) {
        sx_error_set(error, SX_USAGE, "io gds: %s", reader->reason.text);
        sx_device_reader_destroy(reader);
        return SX_USAGE;
    }
    *out_reader = reader;
    return SX_OK;
}

void sx_device_reader_destroy(struct sx_device_reader *reader) {
    if (!reader)
        return;
    if (reader->files)
        reader->ops->close(reader->files);
    pthread_mutex_destroy(&reader->lock);
    free(reader);
}

void sx_device_reader_reason(struct sx_device_reader *reader, char *out_text, size_t bytes) {
    pthread_mutex_lock(&reader->lock);
    snprintf(out_text, bytes, "%s", reader->reason.text);
    pthread_mutex_unlock(&reader->lock);
}

bool sx_device_reader_is_forced(const struct sx_device_reader *reader) {
    return reader->options.is_forced;
}

/* ---- files ---- */

void sx_device_reader_close(struct sx_device_reader *reader, struct sx_device_source *source) {
    if (!source)
        return;
    reader->ops->file_close(reader->files, source->file);
    sx_file_close(source->fd);
    free(source);
}

/* NULL: the file system has no way. Under the lock. */
static struct sx_device_source *open_source(struct sx_device_reader *reader, int fd) {
    struct sx_device_source *source = calloc(1, sizeof *source);
    if (!source)
        return NULL;
    source->fd = sx_direct_open(fd, &source->alignment);
    if (source->fd < 0 || source->alignment > sx_pool_alignment(reader->ops->pool(reader->files)))
        sx_error_set(&reader->reason, SX_UNSUPPORTED, "the file system has no direct I/O for it");
    else if (reader->ops->file_open(reader->files, source->fd, &source->file, &reader->reason) == SX_OK)
        return source;
    sx_file_close(source->fd);
    free(source);
    return NULL;
}

bool sx_device_reader_takes(const struct sx_device_reader *reader, int32_t codec) {
    return reader->ops->takes(reader->files, (enum sx_parquet_codec)codec);
}

/* ---- reading ---- */

enum sx_status sx_device_reader_read(struct sx_device_reader *reader, const struct sx_device_source *source,
                                     struct sx_read_request *request, struct sx_error *error) {
    struct sx_pool *pool = reader->ops->pool(reader->files);
    request->failed = 0;
    request->is_cold = true;
    for (int i = 0; i < request->n_reads; i++) {
        struct sx_transfer transfer;
        request->failed = i;
        request->reads[i].is_cold = true;
        SX_TRY(sx_direct_prepare(pool, &request->reads[i], source->alignment, &transfer, error));
        SX_TRY(reader->ops->read(reader->files, source->file, &transfer, request->cancel, error));
    }
    return SX_OK;
}

enum sx_status sx_device_reader_peek(struct sx_device_reader *reader, const uint8_t *device, size_t bytes,
                                     void *out_bytes, struct sx_error *error) {
    return reader->ops->peek(reader->files, device, bytes, out_bytes, error);
}

/* ---- whether it pays ---- */

/* One way, over every other piece of the file; the other way has those between. */
struct trial {
    struct sx_device_reader *reader;
    const struct sx_device_source *source; /* NULL: to the host */
    struct sx_reader *to_host;
    int fd;
    int64_t first, step_bytes;
    atomic_int status; /* the first failure's */
};

static void read_some(int member, void *context) {
    struct trial *trial = context;
    for (int i = 0; i < TRIAL_READS && atomic_load(&trial->status) == SX_OK; i++) {
        const int64_t piece = (int64_t)member * TRIAL_READS + i;
        struct sx_read read = {.offset = trial->first + piece * trial->step_bytes,
                               .length_bytes = TRIAL_BYTES};
        struct sx_read_request request = {.fd = trial->fd, .reads = &read, .n_reads = 1};
        const enum sx_status status =
            trial->source ? sx_device_reader_read(trial->reader, trial->source, &request, NULL)
                          : sx_reader_read(trial->to_host, &request, NULL);
        sx_buffer_release(read.buffer);
        int none = SX_OK;
        if (status != SX_OK)
            atomic_compare_exchange_strong(&trial->status, &none, (int)status);
    }
}

/* The first time is for memory to be made. */
static int64_t time_trial(struct sx_team *team, struct trial *trial) {
    sx_team_run(team, read_some, trial);
    const int64_t began_ns = sx_clock_ns();
    sx_team_run(team, read_some, trial);
    return sx_clock_ns() - began_ns;
}

/* Otherwise than SX_OK or SX_UNSUPPORTED (it is slower, or can't be done): it could not be tried. */
static enum sx_status try_both(struct sx_device_reader *reader, const struct sx_device_source *source, int fd,
                               int64_t file_bytes, struct sx_error *error) {
    const int64_t step_bytes = 2 * (file_bytes / TRIAL_PIECES / TRIAL_BYTES * TRIAL_BYTES);
    struct trial to_device = {reader, source, NULL, fd, 0, step_bytes, SX_OK};
    struct trial to_host = {reader, NULL, NULL, fd, step_bytes / 2, step_bytes, SX_OK};
    struct sx_team *team = NULL;
    int64_t device_ns, host_ns;
    enum sx_status status;
    SX_GO(sx_team_create(TRIAL_THREADS, &team, error));
    SX_GO(sx_reader_create(reader->options.host_pool, NULL, SX_IO_DIRECT, 1, &to_host.to_host, error));
    device_ns = time_trial(team, &to_device);
    host_ns = time_trial(team, &to_host);
    if (to_host.status != SX_OK || to_device.status == SX_OUT_OF_MEMORY)
        status = sx_error_set(error, SX_OUT_OF_MEMORY, "it could not be tried");
    else if (to_device.status != SX_OK)
        status = sx_error_set(error, SX_UNSUPPORTED, "the file can't be read so");
    else if (device_ns > host_ns)
        status = sx_error_set(error, SX_UNSUPPORTED, "%d MiB took %.1f ms, and to the host %.1f ms",
                              TRIAL_BYTES / 2 * TRIAL_PIECES >> 20, (double)device_ns * 1e-6,
                              (double)host_ns * 1e-6);
out:
    sx_reader_destroy(to_host.to_host);
    sx_team_destroy(team);
    return status;
}

/* Once for each file system, on a file that is large enough. Under the lock. */
static bool is_for_device(struct sx_device_reader *reader, const struct sx_device_source *source, int fd,
                          const struct sx_file_stamp *stamp) {
    for (int i = 0; i < reader->n_verdicts; i++)
        if (reader->verdicts[i].device == stamp->device) {
            reader->reason = reader->verdicts[i].why;
            return reader->verdicts[i].is_for_device;
        }
    if (stamp->size_bytes < (int64_t)TRIAL_PIECES * TRIAL_BYTES || reader->n_verdicts == MOST_SYSTEMS) {
        sx_error_set(&reader->reason, SX_UNSUPPORTED, "the file is too small to try it");
        return false;
    }
    struct verdict verdict = {.device = stamp->device};
    const enum sx_status status = try_both(reader, source, fd, stamp->size_bytes, &verdict.why);
    verdict.is_for_device = status == SX_OK;
    reader->reason = verdict.why;
    if (status == SX_OK || status == SX_UNSUPPORTED)
        reader->verdicts[reader->n_verdicts++] = verdict;
    return verdict.is_for_device;
}

enum sx_status sx_device_reader_open(struct sx_device_reader *reader, int fd,
                                     const struct sx_file_stamp *stamp, struct sx_device_source **out_source,
                                     struct sx_error *error) {
    pthread_mutex_lock(&reader->lock);
    struct sx_device_source *source = is_open(reader) ? open_source(reader, fd) : NULL;
    const bool is_refused = !source;
    const struct sx_error why = reader->reason;
    if (source && !reader->options.is_forced && !is_for_device(reader, source, fd, stamp)) {
        sx_device_reader_close(reader, source);
        source = NULL;
    }
    if (source)
        reader->reason = (struct sx_error){0};
    pthread_mutex_unlock(&reader->lock);
    if (reader->options.is_forced && is_refused)
        return sx_error_set(error, SX_FILE, "io gds: %s", why.text);
    *out_source = source;
    return SX_OK;
}
