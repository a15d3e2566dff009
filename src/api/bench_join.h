/* Inside of src/api: `bench join` on one rank, and its options on their way to the others. */
#ifndef SX_API_BENCH_JOIN_H
#define SX_API_BENCH_JOIN_H

#include "api/db.h"
#include "api/sampler.h"

enum { SX_BENCH_JOIN_TEXT = 320 };

/* Starts zeroed, and is released in every case. */
struct sx_bench_join_result {
    struct stachio_bench_join_result told;
    struct sx_sampler sampler;
};

void sx_bench_join_text(const struct stachio_bench_join_options *options, char text[SX_BENCH_JOIN_TEXT]);
void sx_bench_join_parse(const char *text, struct stachio_bench_join_options *out_options);

/* Collective, with the same options on all ranks; ranks that follow need not look at the status. */
enum sx_status sx_bench_join_run(struct stachio_db *db, const struct stachio_bench_join_options *options,
                                 struct sx_bench_join_result *out_result, struct sx_error *error);
void sx_bench_join_release(struct sx_bench_join_result *result);

#endif
