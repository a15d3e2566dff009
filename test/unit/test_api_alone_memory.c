/* Which way small queries go that rank 0 has once given up, or was slow with. */
#include <assert.h>
#include <stdbool.h>
#include <stdio.h>

#include "api/alone_memory.h"

static const int64_t ms = 1000000;

static void test_quick(void) {
    struct sx_alone_memory memory = {0};
    for (int run = 0; run < 10; run++) {
        assert(sx_alone_memory_way(&memory, "seven") == SX_WAY_ALONE &&
               sx_alone_memory_patience(&memory, "seven") == 1);
        sx_alone_memory_ran(&memory, "seven", SX_WAY_ALONE, 1 * ms);
    }
}

/* The first time it had to read: no reason to ask the others. */
static void test_quick_later(void) {
    struct sx_alone_memory memory = {0};
    sx_alone_memory_ran(&memory, "seven", SX_WAY_ALONE, 40 * ms);
    for (int run = 0; run < 10; run++) {
        assert(sx_alone_memory_way(&memory, "seven") == SX_WAY_ALONE);
        sx_alone_memory_ran(&memory, "seven", SX_WAY_ALONE, 2 * ms);
    }
}

static void test_given_up_twice(void) {
    struct sx_alone_memory memory = {0};
    sx_alone_memory_gave_up(&memory, "seven");
    sx_alone_memory_ran(&memory, "seven", SX_WAY_TOGETHER, 100);
    assert(sx_alone_memory_way(&memory, "seven") == SX_WAY_ALONE &&
           sx_alone_memory_patience(&memory, "seven") > 1);
    sx_alone_memory_gave_up(&memory, "seven");
    for (int run = 0; run < 10; run++) {
        sx_alone_memory_ran(&memory, "seven", SX_WAY_TOGETHER, 100);
        assert(sx_alone_memory_way(&memory, "seven") == SX_WAY_TOGETHER);
    }
    assert(sx_alone_memory_way(&memory, "eight") == SX_WAY_ALONE &&
           sx_alone_memory_patience(&memory, "eight") == 1);
}

/* The first run of each way is slow; the way of the last ones. Given up at first, or not. */
static enum sx_alone_way judge(bool is_given_up, int64_t alone_ns, int64_t together_ns) {
    const int64_t later_ns[SX_WAYS] = {alone_ns, together_ns};
    struct sx_alone_memory memory = {0};
    int n_runs[SX_WAYS] = {0, 0};
    if (is_given_up) {
        sx_alone_memory_gave_up(&memory, "seven");
        sx_alone_memory_ran(&memory, "seven", SX_WAY_TOGETHER, 1000 * ms);
        n_runs[SX_WAY_TOGETHER]++;
    }
    for (int run = 0; run < 20; run++) {
        const enum sx_alone_way way = sx_alone_memory_way(&memory, "seven");
        sx_alone_memory_ran(&memory, "seven", way, n_runs[way]++ == 0 ? 1000 * ms : later_ns[way]);
    }
    assert(n_runs[SX_WAY_ALONE] >= 2 && n_runs[SX_WAY_TOGETHER] >= 2);
    return sx_alone_memory_way(&memory, "seven");
}

static void test_judged(void) {
    for (int is_given_up = 0; is_given_up < 2; is_given_up++) {
        assert(judge(is_given_up, 25 * ms, 35 * ms) == SX_WAY_ALONE);
        assert(judge(is_given_up, 25 * ms, 20 * ms) == SX_WAY_TOGETHER);
    }
}

/* Ranks that have other files, or plans that have other times in them: rank 0 is not asked to wait for them
 * again. */
static void test_failed_together(void) {
    struct sx_alone_memory memory = {0};
    for (int run = 0; run < 10; run++) {
        const enum sx_alone_way way = sx_alone_memory_way(&memory, "seven");
        assert(way == (run == 2 ? SX_WAY_TOGETHER : SX_WAY_ALONE));
        if (way == SX_WAY_ALONE)
            sx_alone_memory_ran(&memory, "seven", way, 20 * ms);
        else
            sx_alone_memory_failed_together(&memory, "seven");
    }
    sx_alone_memory_failed_together(&memory, "eight"); /* of which nothing is known */
    assert(sx_alone_memory_way(&memory, "eight") == SX_WAY_ALONE);
}

/* Patience is for what was given up once. */
static void test_patience(void) {
    struct sx_alone_memory memory = {0};
    sx_alone_memory_ran(&memory, "seven", SX_WAY_ALONE, 20 * ms);
    assert(sx_alone_memory_patience(&memory, "seven") == 1);
    sx_alone_memory_gave_up(&memory, "seven");
    assert(sx_alone_memory_patience(&memory, "seven") > 1);
}

/* Slow queries come and go; those that were given up twice stay known. */
static void test_slow_ones_go_first(void) {
    struct sx_alone_memory memory = {0};
    char sql[32];
    for (int time = 0; time < 2; time++)
        sx_alone_memory_gave_up(&memory, "seven");
    for (int query = 0; query < 3 * SX_ALONE_RECORDS; query++) {
        snprintf(sql, sizeof sql, "SELECT %d", query);
        sx_alone_memory_ran(&memory, sql, SX_WAY_ALONE, 20 * ms);
        assert(sx_alone_memory_way(&memory, "seven") == SX_WAY_TOGETHER);
    }
}

static void test_forgotten(void) {
    struct sx_alone_memory memory = {0};
    char sql[32];
    for (int query = 0; query < 2 * SX_ALONE_RECORDS; query++) {
        snprintf(sql, sizeof sql, "SELECT %d", query);
        for (int time = 0; time < 2; time++) {
            sx_alone_memory_gave_up(&memory, sql);
            if (query > 0)
                sx_alone_memory_ran(&memory, "SELECT 0", SX_WAY_TOGETHER, 1); /* which stays known */
        }
    }
    assert(sx_alone_memory_way(&memory, "SELECT 0") == SX_WAY_TOGETHER);
    assert(sx_alone_memory_way(&memory, "SELECT 1") == SX_WAY_ALONE);
    assert(sx_alone_memory_way(&memory, sql) == SX_WAY_TOGETHER);
}

int main(void) {
    test_quick();
    test_quick_later();
    test_given_up_twice();
    test_judged();
    test_failed_together();
    test_patience();
    test_slow_ones_go_first();
    test_forgotten();
    printf("8 passed, 0 failed\n");
    return 0;
}
