/* Commands that fail, over and over, and a session that goes on, for test_rank_errors.py:
 * rank_errors DIRECTORY ROUNDS SECONDS. DIRECTORY has t.parquet of 200000 rows, and lack0/R/t.parquet for
 * every rank R but 0, lack1/R/t.parquet for every one but 1. Ranks are threads (STACHIO_LOCAL_RANKS) or
 * launched. Ends with 0 and "ok", or with 1 and what is wrong. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/db.h"
#include "api/system.h"

enum { MOST_DELAY_US = 20000, PATH_BYTES = 4096, OPENS = 8 };

static const char *directory;

static void require(bool holds, const char *what, int round, const struct stachio_error *error) {
    if (holds)
        return;
    fprintf(stderr, "%s, round %d: status %d, %s\n", what, round, (int)error->status, error->text);
    exit(1);
}

static struct stachio_db *open_ranks(int round) {
    struct stachio_options options;
    struct stachio_error error = {0};
    struct stachio_db *db;
    stachio_options_init(&options);
    require(stachio_open(&options, &db, &error) == STACHIO_OK, "open", round, &error);
    return db;
}

static enum stachio_status add(struct stachio_db *db, const char *name, const char *path,
                               struct stachio_error *error) {
    char pattern[PATH_BYTES];
    snprintf(pattern, sizeof pattern, "%s/%s", directory, path);
    *error = (struct stachio_error){0};
    return stachio_add_table(db, name, pattern, error);
}

/* ---- a query, that is cancelled or not ---- */

struct canceller {
    struct stachio_query *query;
    int delay_us;
};

static void *cancel(void *context) {
    const struct canceller *self = context;
    usleep((useconds_t)self->delay_us);
    stachio_query_cancel(self->query);
    return NULL;
}

/* delay_us -1: not cancelled. */
static enum stachio_status ask(struct stachio_db *db, int delay_us, struct stachio_error *error) {
    struct canceller canceller = {.delay_us = delay_us};
    pthread_t thread;
    *error = (struct stachio_error){0};
    enum stachio_status status =
        stachio_query_create(db, "SELECT k, sum(v) FROM t GROUP BY k", &canceller.query, error);
    if (status)
        return status;
    const bool has_thread = delay_us >= 0 && pthread_create(&thread, NULL, cancel, &canceller) == 0;
    status = stachio_query_execute(canceller.query, error);
    if (has_thread)
        pthread_join(thread, NULL);
    stachio_query_destroy(canceller.query);
    return status;
}

/* ---- what fails ---- */

/* On all ranks, on the one that speaks, on one that follows. */
static void check_tables(struct stachio_db *db, int round) {
    struct stachio_error error;
    require(add(db, "x", "none/{rank}/t.parquet", &error) == STACHIO_FILE, "no file", round, &error);
    require(add(db, "x", "lack0/{rank}/t.parquet", &error) == STACHIO_FILE, "rank 0 lacks it", round, &error);
    require(strstr(error.text, "rank 0") || strstr(error.text, "lack0/0/"), "rank 0's error", round, &error);
    require(add(db, "x", "lack1/{rank}/t.parquet", &error) == STACHIO_FILE, "rank 1 lacks it", round, &error);
    require(strstr(error.text, "rank 1 ") != NULL, "rank 1's error", round, &error);
}

static void check_cancelled(struct stachio_db *db, int round) {
    struct stachio_error error;
    const int most_us = 1 << round % 15; /* most of all while the others begin */
    const enum stachio_status status =
        ask(db, rand() % (most_us < MOST_DELAY_US ? most_us : MOST_DELAY_US), &error);
    require(status == STACHIO_OK || status == STACHIO_CANCELLED, "a cancelled query", round, &error);
}

static void ignore(void *context, const struct stachio_bench_exchange_result *result) {
    (void)context;
    (void)result;
}

static enum stachio_status call(struct stachio_db *db, int which, struct stachio_error *error) {
    const int64_t size = 1000;
    const struct stachio_bench_exchange_options exchange = {.size_bytes = sizeof exchange,
                                                            .message_bytes = &size,
                                                            .n_message_bytes = 1,
                                                            .rank_bytes = 2000,
                                                            .runs = 1};
    *error = (struct stachio_error){0};
    switch (which) {
    case 0: return ask(db, -1, error);
    case 1: return add(db, "t", "t.parquet", error);
    case 2: return add(db, "other", "lack0/1/t.parquet", error);
    default: return stachio_bench_exchange(db, &exchange, ignore, NULL, error);
    }
}

/* A failure while the others wait for a command ends the next one, whichever, and no more. */
static void check_idle(struct stachio_db *db, int round) {
    struct stachio_error error;
    struct sx_error failure = {0};
    (void)sx_error_set(&failure, SX_FILE, "while nothing runs");
    sx_net_fail(db->net, &failure);
    require(call(db, round % 4, &error) == STACHIO_FILE && strstr(error.text, "while nothing runs"),
            "a failure before a command", round, &error);
    require(call(db, round % 4, &error) == STACHIO_OK, "the command after it", round, &error);
}

/* The first command fails at once: no rank is still opening. The last thing is a failure that nobody takes.
 */
static void check_open(int round) {
    struct stachio_error error;
    struct sx_error failure = {0};
    struct stachio_db *db = open_ranks(round);
    for (int i = 0; i < 3; i++)
        require(add(db, "x", "none/{rank}/t.parquet", &error) == STACHIO_FILE, "opened", round, &error);
    (void)sx_error_set(&failure, SX_FILE, "at the end");
    sx_net_fail(db->net, &failure);
    stachio_close(db);
}

static void speak(struct stachio_db *db, int rounds, double seconds) {
    const double until = sx_system_seconds() + seconds;
    struct stachio_error error;
    require(add(db, "t", "t.parquet", &error) == STACHIO_OK, "the table", 0, &error);
    for (int round = 0; round < rounds && sx_system_seconds() < until; round++) {
        check_tables(db, round);
        check_cancelled(db, round);
        check_cancelled(db, round);
        check_idle(db, round);
    }
    require(ask(db, -1, &error) == STACHIO_OK, "the last query", rounds, &error);
}

int main(int argc, char **argv) {
    struct stachio_error error = {0};
    if (argc != 4)
        return 2;
    directory = argv[1];
    struct stachio_db *db = open_ranks(0);
    if (stachio_rank(db) > 0)
        require(stachio_follow(db, &error) == STACHIO_OK, "follow", stachio_rank(db), &error);
    else
        speak(db, atoi(argv[2]), atof(argv[3]));
    const bool is_first = stachio_rank(db) == 0;
    stachio_close(db);
    for (int i = 0; i < OPENS && getenv("STACHIO_LOCAL_RANKS"); i++)
        check_open(i);
    if (is_first)
        puts("ok");
    return 0;
}
