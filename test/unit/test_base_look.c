/* Looking before sleeping: who may, for how long, and how threads that wake late shorten it. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/look.h"

enum { MS = 1000000 };

struct watched {
    atomic_int n_looks;
    atomic_bool has_come;
};

static bool has_come(const void *what) {
    struct watched *watched = (struct watched *)(uintptr_t)what;
    atomic_fetch_add(&watched->n_looks, 1);
    return atomic_load(&watched->has_come);
}

/* However long a look may be: it ends after the 2 ms that are the most, and is looked anew until it has come.
 */
static void *look_on(void *context) {
    while (!sx_look(INT64_C(60000) * MS, has_come, context))
        sched_yield();
    return NULL;
}

static void test_time(void) {
    struct watched never = {0}, come = {.has_come = true};
    const int64_t began_ns = sx_clock_ns();
    assert(!sx_look(MS, has_come, &never) && sx_clock_ns() - began_ns >= MS && never.n_looks > 1);
    assert(sx_look(MS, has_come, &come) && come.n_looks == 1);
    assert(sx_look(0, has_come, &come) && !sx_look(0, has_come, &never));
}

static void test_places(void) {
    struct watched first = {0}, second = {0};
    pthread_t thread;
    sx_look_set_most(0);
    assert(!sx_look(MS, has_come, &second) && second.n_looks == 1);
    sx_look_set_most(2);
    assert(!sx_look(MS, has_come, &second) && second.n_looks > 2);
    sx_look_set_most(1);
    assert(pthread_create(&thread, NULL, look_on, &first) == 0);
    while (first.n_looks < 10)
        sched_yield();
    for (int i = 0; i < 100; i++) { /* but for the moments between two of the other's looks */
        const int before = second.n_looks;
        (void)sx_look(MS / 100, has_come, &second);
        if (second.n_looks == before + 1)
            break;
        assert(i < 99);
    }
    first.has_come = true;
    assert(pthread_join(thread, NULL) == 0);
}

static void wake_in_time(int n) {
    for (int i = 0; i < n; i++)
        sx_look_woken(sx_clock_ns());
}

static void wake_late(void) {
    sx_look_woken(sx_clock_ns() - MS);
}

/* A thread that is not in time for once here is late indeed, and then the test begins anew. */
static bool shortens(void) {
    const int64_t most = INT64_C(1000) * MS;
    wake_in_time(1 << 19);
    if (sx_look_ns(most) != 2 * MS || sx_look_ns(MS) != MS)
        return false;
    wake_late();
    if (sx_look_ns(most) != MS / 2)
        return false;
    wake_late();
    wake_late();
    if (sx_look_ns(most) != MS / 20) /* the least */
        return false;
    wake_in_time(2047); /* 256, doubled each time */
    if (sx_look_ns(most) != MS / 20)
        return false;
    wake_in_time(1);
    if (sx_look_ns(most) != MS / 10)
        return false;
    wake_in_time(2048 * 5);
    return sx_look_ns(most) == 2 * MS;
}

static void test_late(void) {
    int n = 0;
    while (!shortens())
        assert(++n < 20);
}

int main(void) {
    test_time();
    test_places();
    test_late();
    return 0;
}
