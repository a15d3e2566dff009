#include "api/raw_read.h"

#include <pthread.h>
#include <stdlib.h>

#include "api/system.h"
#include "storage/file.h"

static const int64_t request_bytes = (int64_t)4 << 20;

struct raw_file {
    const char *path;
    int fd;
    int64_t size_bytes;
    int64_t first; /* the table's byte that the file begins at */
};

struct run {
    const struct sx_raw_read *raw;
    struct raw_file *files;
    int n_files; /* open */
    int64_t files_bytes;
    int64_t step; /* bytes of the requests in flight: each file takes a whole number of steps */
    int64_t end;
    double began;
    atomic_int_fast64_t next_at, bytes;
    pthread_mutex_t lock;
    struct sx_buffer **kept; /* the last n_kept that came, in a ring */
    int64_t n_kept, n_came;
    struct sx_error error;
};

static enum sx_status open_files(struct run *run, struct sx_error *error) {
    const int64_t n_kept = run->raw->kept_bytes / request_bytes;
    run->files = calloc((size_t)run->raw->n_paths + 1, sizeof *run->files);
    run->kept = calloc((size_t)n_kept + 1, sizeof(struct sx_buffer *));
    if (run->kept)
        run->n_kept = n_kept;
    if (!run->files || !run->kept)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for reading");
    for (int f = 0; f < run->raw->n_paths; f++) {
        struct raw_file *file = &run->files[f];
        struct sx_file_stamp stamp;
        *file = (struct raw_file){.path = run->raw->paths[f], .first = run->end};
        SX_TRY(sx_file_open(file->path, &file->fd, &stamp, error));
        run->n_files++;
        file->size_bytes = stamp.size_bytes;
        run->files_bytes += stamp.size_bytes;
        run->end += (stamp.size_bytes + run->step - 1) / run->step * run->step;
    }
    return SX_OK;
}

static void close_files(struct run *run) {
    for (int f = 0; f < run->n_files; f++)
        sx_file_close(run->files[f].fd);
    for (int64_t i = 0; i < run->n_kept; i++)
        sx_buffer_release(run->kept[i]);
    free(run->kept);
    free(run->files);
}

/* The file that the table's byte `at` is in. */
static const struct raw_file *find_file(const struct run *run, int64_t at) {
    int first = 0, end = run->n_files;
    while (end - first > 1) {
        const int middle = first + (end - first) / 2;
        if (run->files[middle].first <= at)
            first = middle;
        else
            end = middle;
    }
    return &run->files[first];
}

/* Gives up the buffer, or one that came long before it. */
static void keep(struct run *run, struct sx_buffer *buffer) {
    pthread_mutex_lock(&run->lock);
    if (run->n_kept > 0) {
        struct sx_buffer **place = &run->kept[run->n_came++ % run->n_kept], *older = *place;
        *place = buffer;
        buffer = older;
    }
    pthread_mutex_unlock(&run->lock);
    sx_buffer_release(buffer);
}

/* Requests from `at` on, within one file. */
static enum sx_status read_from(struct run *run, int64_t at, struct sx_error *error) {
    const struct raw_file *file = find_file(run, at);
    struct sx_read reads[SX_RAW_MOST_IN_FLIGHT] = {0};
    struct sx_read_request request = {.fd = file->fd, .table_bytes = run->files_bytes, .reads = reads};
    int64_t bytes = 0;
    for (int64_t offset = at - file->first;
         request.n_reads < run->raw->n_in_flight && offset < file->size_bytes; offset += request_bytes) {
        const int64_t left = file->size_bytes - offset;
        struct sx_read *read = &reads[request.n_reads++];
        *read =
            (struct sx_read){.offset = offset, .length_bytes = left < request_bytes ? left : request_bytes};
        bytes += read->length_bytes;
    }
    enum sx_status status = sx_reader_read(run->raw->reader, &request, error);
    for (int i = 0; i < request.n_reads; i++)
        keep(run, reads[i].buffer);
    if (status != SX_OK)
        return sx_error_prefix(error, "%s", file->path);
    atomic_fetch_add(&run->bytes, bytes);
    return SX_OK;
}

static bool is_over(const struct run *run) {
    return run->raw->most_seconds > 0 && sx_system_seconds() - run->began > run->raw->most_seconds;
}

static void work(int member, void *context) {
    struct run *run = context;
    struct sx_error error = {0};
    (void)member;
    while (!is_over(run)) {
        const int64_t at = atomic_fetch_add(&run->next_at, run->step);
        if (at >= run->end || read_from(run, at, &error) != SX_OK)
            break;
    }
    if (error.status == SX_OK)
        return;
    pthread_mutex_lock(&run->lock);
    run->error = error;
    pthread_mutex_unlock(&run->lock);
}

enum sx_status sx_raw_read(struct sx_team *team, const struct sx_raw_read *raw, int64_t *out_bytes,
                           double *out_seconds, struct sx_error *error) {
    struct run run = {
        .raw = raw, .step = request_bytes * raw->n_in_flight, .lock = PTHREAD_MUTEX_INITIALIZER};
    enum sx_status status = open_files(&run, error);
    if (status == SX_OK) {
        run.began = sx_system_seconds();
        sx_team_run(team, work, &run);
        *out_seconds = sx_system_seconds() - run.began;
        *out_bytes = atomic_load(&run.bytes);
        status = run.error.status;
        if (status != SX_OK)
            *error = run.error;
    }
    close_files(&run);
    return status;
}
