/* Memory pool, thread team, errors, arena, tensors' ownership. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "base/team.h"
#include "tensor/tensor.h"

static void test_errors(void) {
    struct sx_error error = {0};
    assert(sx_error_set(&error, SX_FILE, "page %d is cut", 3) == SX_FILE);
    assert(sx_error_prefix(&error, "a.parquet, row group %d", 7) == SX_FILE);
    assert(strcmp(error.text, "a.parquet, row group 7: page 3 is cut") == 0);
    char long_text[2 * SX_ERROR_TEXT_BYTES];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    sx_error_set(&error, SX_QUERY, "%s", long_text);
    for (int i = 0; i < 3; i++)
        sx_error_prefix(&error, "%s", long_text);
    assert(strlen(error.text) == SX_ERROR_TEXT_BYTES - 1);
    assert(sx_error_set(NULL, SX_USAGE, "nobody reads this") == SX_USAGE);
    assert(sx_status_exit(SX_OUT_OF_MEMORY) == 4 && sx_status_exit(SX_FILE) == 3);
}

static void test_arena(void) {
    struct sx_arena arena = {0};
    char *first = sx_arena_copy_text(&arena, "abc", 3);
    for (int i = 0; i < 1000; i++) {
        char *block = sx_arena_alloc(&arena, (size_t)i * 37);
        assert(block && (size_t)block % 16 == 0);
        for (int b = 0; b < i * 37; b++)
            assert(block[b] == 0);
        memset(block, 0xff, (size_t)i * 37);
    }
    assert(strcmp(first, "abc") == 0);
    assert(sx_arena_array(&arena, SIZE_MAX / 2, 16) == NULL);
    assert(strcmp(sx_arena_format(&arena, "%d-%s", 12, "x"), "12-x") == 0);
    sx_arena_release(&arena);
    sx_arena_release(&arena);
}

static void test_pool(void) {
    struct sx_error error = {0};
    struct sx_pool *pool;
    assert(sx_pool_create((size_t)1 << 20, &pool, &error) == SX_OK);
    void *block, *other;
    for (size_t size = 0; size < 200000; size += 777) {
        assert(sx_pool_alloc(pool, size, &block, &error) == SX_OK);
        assert((size_t)block % 64 == 0);
        memset(block, 1, size);
        sx_pool_free(pool, block, size);
    }
    assert(sx_pool_usage(pool).used_bytes == 0);
    assert(sx_pool_usage(pool).cached_bytes <= (size_t)1 << 20);
    assert(sx_pool_alloc(pool, 700000, &block, &error) == SX_OK);
    assert(sx_pool_alloc(pool, 700000, &other, &error) == SX_OUT_OF_MEMORY);
    assert(strstr(error.text, "out of memory") == error.text);
    assert(sx_pool_resize(pool, &block, 700000, 100, &error) == SX_OK);
    assert(sx_pool_alloc(pool, 700000, &other, &error) == SX_OK);
    assert(sx_pool_reserve(pool, 600000, &error) == SX_OUT_OF_MEMORY);
    sx_pool_free(pool, other, 700000);
    sx_pool_free(pool, block, 100);
    sx_pool_free(pool, NULL, 5);
    assert(sx_pool_usage(pool).used_bytes == 0 && sx_pool_usage(pool).peak_bytes <= (size_t)1 << 20);
    sx_pool_destroy(pool);
}

struct counted {
    pthread_t caller;
    atomic_int calls;
    atomic_int members;
};

static void count_member(int member, void *context) {
    struct counted *counted = context;
    atomic_fetch_add(&counted->calls, 1);
    atomic_fetch_or(&counted->members, 1 << member);
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    const bool is_caller = pthread_equal(pthread_self(), counted->caller);
    assert(is_caller || member != 0); /* which also does what members have not begun */
    assert(sigismember(&blocked, SIGINT) == !is_caller);
    assert(!sigismember(&blocked, SIGSEGV) && !sigismember(&blocked, SIGABRT));
}

/* Nobody does a member's work while member 0 is not through with its own. */
static void count_all(int member, void *context) {
    struct counted *counted = context;
    assert(pthread_equal(pthread_self(), counted->caller) == (member == 0));
    count_member(member, context);
    while (member == 0 && atomic_load(&counted->calls) < 5)
        sched_yield();
}

/* With looks that find the work, and that are over before. */
static void test_team(int64_t spin_ns) {
    struct sx_error error = {0};
    struct sx_team *team;
    assert(sx_team_create(5, &team, &error) == SX_OK);
    sx_team_set_spin(team, spin_ns);
    struct counted counted = {.caller = pthread_self()};
    for (int i = 0; i < 2000; i++)
        sx_team_run(team, count_member, &counted);
    assert(counted.calls == 10000 && counted.members == 31);
    struct counted all = {.caller = pthread_self()};
    sx_team_run(team, count_all, &all);
    assert(all.calls == 5 && all.members == 31);
    for (int n = 1; n <= 6; n++) { /* of five */
        struct counted some = {.caller = pthread_self()};
        for (int i = 0; i < 500; i++)
            sx_team_run_some(team, n, count_member, &some);
        const int members = n < 5 ? n : 5;
        assert(some.calls == 500 * members && some.members == (1 << members) - 1);
    }
    sx_team_destroy(team);
    sx_team_destroy(NULL);
}

static void test_tensors(void) {
    struct sx_error error = {0};
    struct sx_pool *pool;
    assert(sx_pool_create(0, &pool, &error) == SX_OK);
    struct sx_scalar text = {.type = sx_type_of(SX_TYPE_VARCHAR)};
    text.v.text.bytes = "a text that is not inline";
    text.v.text.length_bytes = 25;
    struct sx_tensor constant, slice;
    assert(sx_tensor_create_constant(pool, &text, 10, &constant, &error) == SX_OK);
    sx_tensor_slice(&constant, 3, 4, &slice);
    sx_tensor_release(&constant);
    struct sx_scalar back;
    sx_tensor_scalar(&slice, 3, &back);
    assert(!back.is_null && back.v.text.length_bytes == 25 &&
           memcmp(back.v.text.bytes, text.v.text.bytes, 25) == 0);
    sx_tensor_release(&slice);
    struct sx_tensor numbers;
    assert(sx_tensor_create(pool, sx_type_decimal(30, 2), 5, true, &numbers, &error) == SX_OK);
    for (int i = 0; i < 5; i++) {
        ((sx_i128 *)numbers.values)[i] = (sx_i128)i << 70;
        numbers.valid[i] = i != 2;
    }
    sx_tensor_slice(&numbers, 2, 3, &slice);
    sx_tensor_scalar(&slice, 0, &back);
    assert(back.is_null);
    sx_tensor_scalar(&slice, 2, &back);
    assert(back.v.i128 == (sx_i128)4 << 70);
    sx_tensor_release(&slice);
    sx_tensor_release(&numbers);
    assert(sx_pool_usage(pool).used_bytes == 0);
    sx_pool_destroy(pool);
}

int main(void) {
    test_errors();
    test_arena();
    test_pool();
    test_team(0);
    test_team(2000);
    test_team(1000000);
    test_tensors();
    puts("ok");
    return 0;
}
