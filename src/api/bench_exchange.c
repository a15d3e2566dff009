#include "api/ranks.h"
#include "net/net.h"

static enum sx_status measure(struct stachio_db *db, const struct stachio_bench_exchange_options *options,
                              void (*result)(void *context,
                                             const struct stachio_bench_exchange_result *result),
                              void *context, struct sx_error *error) {
    if (!db->net)
        return sx_error_set(error, SX_USAGE,
                            "an exchange needs several ranks: mpirun -n 2 stachio bench exchange");
    for (int i = 0; i < options->n_message_bytes; i++) {
        const struct sx_bench_exchange_options given = {.net = db->net,
                                                        .pool = db->pool,
                                                        .shuffle = db->shuffle,
                                                        .message_bytes = options->message_bytes[i],
                                                        .rank_bytes = options->rank_bytes,
                                                        .runs = options->runs};
        struct sx_bench_exchange_result got;
        SX_TRY(sx_ranks_exchange(db, &given, &got, error));
        const struct stachio_bench_exchange_result told = {.transport = db->network,
                                                           .ranks = sx_net_size(db->net),
                                                           .message_bytes = got.message_bytes,
                                                           .bytes = got.bytes,
                                                           .runs = got.runs,
                                                           .seconds = got.seconds,
                                                           .raw_seconds = got.raw_seconds,
                                                           .least_seconds = got.least_seconds,
                                                           .raw_least_seconds = got.raw_least_seconds,
                                                           .processor_seconds = got.processor_seconds,
                                                           .raw_processor_seconds =
                                                               got.raw_processor_seconds};
        result(context, &told);
    }
    return SX_OK;
}

enum stachio_status stachio_bench_exchange(struct stachio_db *db,
                                           const struct stachio_bench_exchange_options *options,
                                           void (*result)(void *context,
                                                          const struct stachio_bench_exchange_result *result),
                                           void *context, struct stachio_error *error) {
    struct sx_error inner = {0};
    if (options->size_bytes < sizeof *options)
        return sx_api_error(error, STACHIO_USAGE, "bench options: size_bytes is %zu", options->size_bytes);
    for (int i = 0; i < options->n_message_bytes; i++)
        if (options->message_bytes[i] < 1 || options->message_bytes[i] > (int64_t)1 << 30)
            return sx_api_error(error, STACHIO_USAGE, "message bytes: %lld is not within 1 and 2^30",
                                (long long)options->message_bytes[i]);
    if (options->rank_bytes < 1 || options->runs < 1)
        return sx_api_error(error, STACHIO_USAGE, "bench options: nothing is to be sent");
    pthread_mutex_lock(&db->lock);
    enum sx_status status = measure(db, options, result, context, &inner);
    pthread_mutex_unlock(&db->lock);
    return status == SX_OK ? STACHIO_OK : sx_api_fail(&inner, error);
}
