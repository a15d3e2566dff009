/* Times exchanges between ranks: channels beside what their transport reaches alone. */
#ifndef SX_BENCH_EXCHANGE_H
#define SX_BENCH_EXCHANGE_H

#include "net/net.h"
#include "tensor/backend.h"

struct sx_bench_exchange_options {
    struct sx_net *net;
    struct sx_pool *pool;
    int64_t message_bytes;
    int64_t rank_bytes; /* from each rank to each other one, about */
    int runs;
    enum sx_shuffle shuffle;  /* of the channels */
    struct sx_stream *stream; /* of a device: its memory travels, by the net's link. NULL: the host's */
};

struct sx_bench_exchange_result {
    int64_t message_bytes;
    int64_t bytes; /* that each rank received in a run */
    int runs;
    double seconds;     /* the median, of the slowest rank */
    double raw_seconds; /* the same without channels; 0: the transport has no such thing */
    double least_seconds, raw_least_seconds;
    double processor_seconds, raw_processor_seconds; /* the median, of the rank that took most */
};

/* Collective over the ranks: all to all, all with the same options. */
SX_MUST_CHECK enum sx_status sx_bench_exchange(const struct sx_bench_exchange_options *options,
                                               struct sx_bench_exchange_result *out_result,
                                               struct sx_error *error);

struct sx_bench_time {
    double seconds;
    double processor_seconds; /* of all threads of the process, also while they look whether something has
                                 come */
};

/* The same once; each of the rank that took most. is_raw: without channels; 0: the transport has no such
 * thing.
 */
SX_MUST_CHECK enum sx_status sx_bench_exchange_once(const struct sx_bench_exchange_options *options,
                                                    bool is_raw, struct sx_bench_time *out_time,
                                                    struct sx_error *error);

/* ---- exchange_link.c ---- */

/* What is sent, in the stream's memory or the host's. */
SX_MUST_CHECK enum sx_status sx_bench_create_message(const struct sx_bench_exchange_options *options,
                                                     struct sx_buffer **out_buffer, struct sx_error *error);
struct sx_bench_link;
/* All to all by the link alone, `count` messages to each other rank, some at a time. The channels are idle
 * while it runs. */
SX_MUST_CHECK enum sx_status sx_bench_link_create(const struct sx_bench_exchange_options *options,
                                                  int64_t count, struct sx_bench_link **out_link,
                                                  struct sx_error *error);
SX_MUST_CHECK enum sx_status sx_bench_link_run(struct sx_bench_link *bench, struct sx_error *error);
void sx_bench_link_destroy(struct sx_bench_link *bench); /* NULL allowed */

/* Collective: of the ranks' times the longest. */
SX_MUST_CHECK enum sx_status sx_bench_slowest(struct sx_net *net, double *seconds, struct sx_error *error);

#endif
