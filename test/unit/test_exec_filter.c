/* Filters of exchanges where memory is short, and where a rank ends while they are shared: joins by ranks
 * that are threads, whose pools refuse what a test says. What a test waits for in vain ends it by ctest's
 * limit of time. */
#include <stdio.h>

#include "backend/cpu/cpu.h"
#include "base/clock.h"
#include "bench/join_tables.h"
#include "exec/exchange.h"
#include "exec/execute.h"
#include "net_ranks.h"
#include "plan/bench_join.h"

enum { RANKS = 3, SHORT = 1 /* the rank that lacks something */, GRANULE = 64 };
static const int64_t build_rows = 30011, probe_rows = 90000;

/* ---- a pool that refuses ---- */

/* What a rank's memory is for: the filter's words; anything while its keys are added; a copy of its own part
 * of the words; other ranks' parts that come. */
enum request { REQUEST_OTHER, REQUEST_WORDS, REQUEST_KEYS, REQUEST_COPY, REQUEST_RECEIPT, REQUESTS };

/* What happens to the requests of rank SHORT. */
static struct {
    bool refuses[REQUESTS];
    bool is_everywhere; /* and to those of all others */
    enum request counted;
    int64_t refused;                     /* of the counted ones that with this number, from 0 on; -1: none */
    void (*at_copy)(struct sx_net *net); /* NULL: nothing */
    pthread_barrier_t *copies;           /* of all ranks: each waits for the others'; NULL: it does not */
    atomic_int n_refused[REQUESTS], n_copies; /* n_copies: others' */
    atomic_bool cancel;                       /* rank 0's query */
} faults;

struct faulty {
    struct rank *rank;
    pthread_t worker;
    bool adds_keys; /* the worker's */
    atomic_llong n_requests;
    atomic_int n_words; /* filters whose words are there */
};

static size_t rounded(int64_t words) {
    return ((size_t)words * sizeof(uint64_t) + GRANULE - 1) / GRANULE * GRANULE;
}

/* In words. */
static int64_t length_of_run(void) {
    return build_rows / 8 / exchange_count_parts(RANKS) + 1;
}

static bool is_part(int rank, size_t bytes) {
    const int64_t n_runs = exchange_count_parts(RANKS);
    return bytes == rounded(((rank + 1) * n_runs / RANKS - rank * n_runs / RANKS) * length_of_run());
}

static bool are_words(size_t bytes) {
    return bytes == rounded(exchange_count_parts(RANKS) * length_of_run());
}

static enum request request_of_worker(struct faulty *faulty, size_t bytes) {
    if (are_words(bytes)) {
        faulty->adds_keys = true;
        return REQUEST_WORDS;
    }
    if (!faulty->adds_keys)
        return REQUEST_OTHER;
    if (!is_part(sx_net_rank(faulty->rank->net), bytes))
        return REQUEST_KEYS;
    faulty->adds_keys = false;
    return REQUEST_COPY;
}

static enum request request_of(struct faulty *faulty, size_t bytes) {
    if (pthread_equal(pthread_self(), faulty->worker))
        return request_of_worker(faulty, bytes);
    for (int r = 0; r < RANKS; r++)
        if (r != sx_net_rank(faulty->rank->net) && is_part(r, bytes))
            return REQUEST_RECEIPT;
    return REQUEST_OTHER;
}

static bool is_refused(struct faulty *faulty, enum request request) {
    const bool is_short = sx_net_rank(faulty->rank->net) == SHORT;
    if (request == REQUEST_COPY && !is_short)
        atomic_fetch_add(&faults.n_copies, 1);
    if (request == REQUEST_COPY && is_short && faults.at_copy)
        faults.at_copy(faulty->rank->net);
    if (request == REQUEST_COPY && faults.copies)
        pthread_barrier_wait(faults.copies);
    if (!is_short && !faults.is_everywhere)
        return false;
    return faults.refuses[request] ||
           (request == faults.counted && atomic_fetch_add(&faulty->n_requests, 1) == faults.refused);
}

static void *take(void *context, size_t bytes) {
    struct faulty *faulty = context;
    const enum request request = request_of(faulty, bytes);
    if (is_refused(faulty, request)) {
        atomic_fetch_add(&faults.n_refused[request], 1);
        return NULL;
    }
    atomic_fetch_add(&faulty->n_words, are_words(bytes));
    return aligned_alloc(GRANULE, bytes);
}

static void give(void *context, void *memory, size_t bytes) {
    struct faulty *faulty = context;
    atomic_fetch_sub(&faulty->n_words, are_words(bytes));
    free(memory);
}

/* ---- a join ---- */

/* Of all ranks. */
static struct {
    enum sx_status status[RANKS];
    struct sx_error error[RANKS];
    int passed[RANKS]; /* of 100 probe rows the filter; -1: there was none */
} ended;

struct tables {
    struct sx_stream *stream;
    struct sx_bench_rows rows[SX_BENCH_TABLES];
    struct sx_bench_sums expected; /* of all ranks */
};

static void make_tables(struct rank *rank, struct sx_team *team, struct tables *tables) {
    const struct sx_bench_tables_spec spec = {.pool = rank->pool,
                                              .build_rows = build_rows,
                                              .probe_rows = probe_rows,
                                              .build_columns = 2,
                                              .probe_columns = 1,
                                              .hit_ratio = 0.1,
                                              .rank = sx_net_rank(rank->net),
                                              .n_ranks = RANKS};
    struct sx_bench_sums own, all[RANKS];
    assert(sx_cpu_backend.ops.stream_create(&sx_cpu_backend, rank->pool, NULL, &tables->stream, NULL) ==
           SX_OK);
    assert(sx_bench_make_probe(&spec, tables->stream, team, &tables->rows[SX_BENCH_PROBE], &own) == SX_OK);
    assert(sx_bench_make_build(&spec, tables->stream, team, &tables->rows[SX_BENCH_BUILD]) == SX_OK);
    assert(sx_net_gather(rank->net, &own, sizeof own, all, NULL, NULL) == SX_OK);
    for (int r = 0; r < RANKS; r++) {
        tables->expected.rows += all[r].rows;
        for (int c = 0; c < 3; c++)
            tables->expected.sums[c] += all[r].sums[c];
    }
}

static void release_tables(struct tables *tables) {
    for (int t = 0; t < SX_BENCH_TABLES; t++)
        sx_bench_rows_release(&tables->rows[t]);
    sx_cpu_backend.ops.stream_destroy(tables->stream);
}

static void check_answer(struct sx_run *run, const struct sx_bench_sums *expected) {
    struct sx_batch answer = {0};
    assert(sx_run_next(run, &answer, NULL) == SX_OK && answer.rows == 1);
    for (int c = 0; c < 4; c++) {
        struct sx_scalar value;
        sx_tensor_scalar(&answer.columns[c], 0, &value);
        assert(c == 0 ? value.v.i64 == expected->rows : value.v.i128 == expected->sums[c - 1]);
    }
    sx_batch_release(&answer);
}

static int find_passed(struct sx_run *run) {
    const struct sx_operator_report *reports;
    const int n = sx_run_report(run, &reports);
    int passed = -1;
    for (int i = 0; i < n && passed < 0; i++) {
        const char *told = strstr(reports[i].name, ", filter of ");
        if (told)
            assert(sscanf(strchr(told, ':'), ": %d %%", &passed) == 1);
    }
    return passed;
}

static void execute(struct faulty *faulty, const struct sx_exec_options *options,
                    const struct sx_query_plan *plan, const struct sx_bench_sums *expected) {
    struct sx_net *net = faulty->rank->net;
    const int me = sx_net_rank(net);
    struct sx_error *error = &ended.error[me];
    struct sx_run *run = NULL;
    *error = (struct sx_error){0};
    enum sx_status status = sx_run_create(options, plan, &run, error);
    if (status == SX_OK)
        status = sx_run_execute(run, error);
    else
        sx_net_fail(net, error);
    assert(status != SX_OK || atomic_load(&faulty->n_words) == 0);
    if (status == SX_OK && me == 0)
        check_answer(run, expected);
    ended.status[me] = status;
    ended.passed[me] = status == SX_OK ? find_passed(run) : -1;
    assert(sx_net_barrier(net, NULL, NULL) == status);
    sx_run_destroy(run);
}

static void join(struct rank *rank) {
    struct faulty faulty = {.rank = rank, .worker = pthread_self()};
    const struct sx_pool_source source = {
        .take = take, .give = give, .context = &faulty, .granule_bytes = GRANULE, .name = "test"};
    const struct sx_bench_join_spec spec = {.n_columns = {[SX_BENCH_PROBE] = 1, [SX_BENCH_BUILD] = 2},
                                            .has_ranks = true};
    struct tables tables = {0};
    struct sx_query_plan plan = {0};
    struct sx_team *team;
    struct sx_pool *pool;
    assert(sx_team_create(1, &team, NULL) == SX_OK);
    assert(sx_pool_create_over(0, source, &pool, NULL) == SX_OK);
    assert(sx_bench_join_plan(&spec, &plan, NULL) == SX_OK);
    make_tables(rank, team, &tables);
    struct sx_exec_table lists[SX_BENCH_TABLES];
    for (int t = 0; t < SX_BENCH_TABLES; t++)
        lists[t] = (struct sx_exec_table){tables.rows[t].batches, tables.rows[t].n_batches};
    const struct sx_exec_options options = {.backend = &sx_cpu_backend,
                                            .pool = pool,
                                            .team = team,
                                            .net = rank->net,
                                            .cancel = sx_net_rank(rank->net) == 0 ? &faults.cancel : NULL,
                                            .broadcast_bytes = -1,
                                            .filter_bytes = SIZE_MAX,
                                            .tables = lists,
                                            .n_tables = SX_BENCH_TABLES};
    execute(&faulty, &options, &plan, &tables.expected);
    assert(sx_pool_usage(pool).used_bytes == 0);
    release_tables(&tables);
    sx_query_plan_release(&plan);
    sx_pool_destroy(pool);
    sx_team_destroy(team);
}

static void run_join(void) {
    for (int i = 0; i < REQUESTS; i++)
        atomic_store(&faults.n_refused[i], 0);
    atomic_store(&faults.n_copies, 0);
    run_ranks(RANKS, join);
}

static void check_all(enum sx_status status) {
    for (int r = 0; r < RANKS; r++)
        assert(ended.status[r] == status);
}

/* ---- memory ---- */

/* A tenth of the probe rows have partners, and about 6 of 100 others pass; with a part of which nothing is
 * known, which a third of the rows are of, also those. */
enum passing { NO_FILTER, PASSES_FEW, PASSES_THIRD, PASSES_TWO_THIRDS };

static void check_passed(int rank, enum passing expected) {
    static const int least[] = {-1, 10, 34, 62}, most[] = {-1, 20, 50, 78};
    assert(ended.passed[rank] >= least[expected] && ended.passed[rank] <= most[expected]);
}

static void check_lacking(enum request request, enum passing there, enum passing elsewhere) {
    faults.refuses[request] = true;
    run_join();
    faults.refuses[request] = false;
    check_all(SX_OK);
    assert(atomic_load(&faults.n_refused[request]) > 0);
    for (int r = 0; r < RANKS; r++)
        check_passed(r, r == SHORT ? there : elsewhere);
}

/* All ranks have the channel of the parts before any sends: what comes before goes elsewhere. */
static void check_no_receipt(enum passing there, enum passing elsewhere) {
    pthread_barrier_t copies;
    assert(pthread_barrier_init(&copies, NULL, RANKS) == 0);
    faults.copies = &copies;
    check_lacking(REQUEST_RECEIPT, there, elsewhere);
    faults.copies = NULL;
    pthread_barrier_destroy(&copies);
}

static void test_lacking(void) {
    run_join();
    check_all(SX_OK);
    for (int r = 0; r < RANKS; r++)
        check_passed(r, PASSES_FEW);
    check_lacking(REQUEST_WORDS, NO_FILTER, PASSES_THIRD);
    check_lacking(REQUEST_COPY, PASSES_FEW, PASSES_THIRD);
    check_no_receipt(PASSES_TWO_THIRDS, PASSES_FEW);
    faults.is_everywhere = true;
    check_lacking(REQUEST_WORDS, NO_FILTER, NO_FILTER);
    check_lacking(REQUEST_COPY, PASSES_TWO_THIRDS, PASSES_TWO_THIRDS);
    check_no_receipt(PASSES_TWO_THIRDS, PASSES_TWO_THIRDS);
    faults.is_everywhere = false;
}

/* Whatever there is no memory for, one request after the other: the answer is right, or the query has failed
 * on all ranks; never for the filter's own. */
static void refuse_each(enum request request) {
    int n_right = 0, n_failed = 0;
    faults.counted = request;
    for (faults.refused = 0; faults.refused == 0 || atomic_load(&faults.n_refused[request]) > 0;
         faults.refused++) {
        run_join();
        check_all(ended.status[0]);
        assert(ended.status[0] == SX_OK || ended.status[0] == SX_OUT_OF_MEMORY);
        n_right += ended.status[0] == SX_OK && atomic_load(&faults.n_refused[request]) > 0;
        n_failed += ended.status[0] != SX_OK;
    }
    faults.refused = -1;
    assert(n_failed == 0 || request == REQUEST_OTHER || request == REQUEST_KEYS);
    assert(n_right > 0 || request == REQUEST_OTHER || request == REQUEST_RECEIPT);
}

static void test_each_request(void) {
    for (int request = 0; request < REQUESTS; request++)
        refuse_each((enum request)request);
}

/* ---- ranks that end ---- */

/* The other ranks share their parts, and wait for this one's. */
static void wait_for_others(void) {
    while (atomic_load(&faults.n_copies) < RANKS - 1)
        sched_yield();
}

static void cancel_first(struct sx_net *net) {
    wait_for_others();
    atomic_store(&faults.cancel, true);
    while (sx_net_check(net, NULL) == SX_OK)
        sched_yield();
}

static void die(struct sx_net *net) {
    wait_for_others();
    sx_net_local_kill(net);
}

static void check_ended(void (*at_copy)(struct sx_net *net), enum sx_status status, const char *name) {
    const int64_t began_ns = sx_clock_ns(), most_ns = INT64_C(5000000000);
    faults.at_copy = at_copy;
    run_join();
    faults.at_copy = NULL;
    atomic_store(&faults.cancel, false);
    check_all(status);
    assert(atomic_load(&faults.n_copies) == RANKS - 1 && sx_clock_ns() - began_ns < most_ns);
    for (int r = 0; r < RANKS; r++)
        assert(strstr(ended.error[r].text, name) || (r == 0 && status == SX_CANCELLED));
}

static void test_ended(void) {
    check_ended(cancel_first, SX_CANCELLED, "rank 0");
    check_ended(die, SX_RANK_LOST, "rank 1");
}

int main(void) {
    faults.refused = -1;
    test_lacking();
    test_each_request();
    test_ended();
    return 0;
}
