#include <stddef.h>

#include "api/db.h"
#include "bench/bench.h"

struct receiver {
    const char *device;
    int threads;
    void (*result)(void *context, const struct stachio_bench_result *result);
    void *context;
};

static void pass_on(void *context, const struct sx_bench_result *from) {
    const struct receiver *receiver = context;
    const struct stachio_bench_result result = {
        .primitive = from->primitive,
        .name = from->name,
        .device = receiver->device,
        .threads = receiver->threads,
        .rows = from->rows,
        .runs = from->runs,
        .seconds = from->seconds,
        .floor_bytes = from->floor_bytes,
        .copy_bytes_per_second = from->copy_bytes_per_second,
        .failure = from->failed ? from->failed->text : NULL,
    };
    receiver->result(receiver->context, &result);
}

static enum sx_status measure(struct stachio_db *db, const struct stachio_bench_options *options,
                              struct receiver *receiver, struct sx_error *error) {
    const struct sx_bench_options given = {
        .backend = db->backend,
        .pool = db->pool,
        .rows = options->rows,
        .n_rows = options->n_rows,
        .filter = options->filter,
        .result = pass_on,
        .context = receiver,
    };
    return sx_bench_primitives(&given, receiver->threads, error);
}

enum stachio_status stachio_bench_primitives(struct stachio_db *db,
                                             const struct stachio_bench_options *options,
                                             void (*result)(void *context,
                                                            const struct stachio_bench_result *result),
                                             void *context, struct stachio_error *error) {
    struct sx_error inner = {0};
    struct receiver receiver = {sx_db_device(db), options->threads, result, context};
    if (options->size_bytes < sizeof *options)
        return sx_api_error(error, STACHIO_USAGE, "bench options: size_bytes is %zu", options->size_bytes);
    for (int i = 0; i < options->n_rows; i++)
        if (options->rows[i] < 1024 || options->rows[i] > (int64_t)1 << 40)
            return sx_api_error(error, STACHIO_USAGE, "rows: %lld is not within 1024 and 2^40",
                                (long long)options->rows[i]);
    if (receiver.threads == 0)
        receiver.threads = db->backend->traits.is_host ? db->threads : 1;
    pthread_mutex_lock(&db->lock);
    enum sx_status status = measure(db, options, &receiver, &inner);
    pthread_mutex_unlock(&db->lock);
    return status == SX_OK ? STACHIO_OK : sx_api_fail(&inner, error);
}
