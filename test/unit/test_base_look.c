/* Looking before sleeping: who may, for how long, and how threads that wake late shorten it. */
#include <assert.h>
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

/* While another look is under way, which has one of the places. */
static bool looks_within(const void *what) {
    (void)sx_look(MS / 10, has_come, what);
    return true;
}

static void test_time(void) {
    struct watched never = {0}, come = {.has_come = true};
    const int64_t began_ns = sx_clock_ns();
    assert(!sx_look(MS, has_come, &never) && sx_clock_ns() - began_ns >= MS && never.n_looks > 1);
    assert(sx_look(MS, has_come, &come) && come.n_looks == 1);
    assert(sx_look(0, has_come, &come) && !sx_look(0, has_come, &never));
}

static void test_places(void) {
    struct watched none = {0}, one = {0}, two = {0};
    sx_look_set_most(0);
    assert(!sx_look(MS, has_come, &none) && none.n_looks == 1);
    sx_look_set_most(1);
    assert(sx_look(MS, looks_within, &one) && one.n_looks == 1);
    sx_look_set_most(2);
    assert(sx_look(MS, looks_within, &two) && two.n_looks > 1);
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
    while (sx_look_ns(most) < 2 * MS)
        wake_in_time(1);
    if (sx_look_ns(MS) != MS)
        return false;
    wake_late();
    if (sx_look_ns(most) != MS / 2)
        return false;
    wake_late();
    wake_late();
    if (sx_look_ns(most) != MS / 20) /* the least */
        return false;
    wake_in_time(255);
    if (sx_look_ns(most) != MS / 20)
        return false;
    wake_in_time(1);
    if (sx_look_ns(most) != MS / 10)
        return false;
    wake_late(); /* too early: twice as many now */
    wake_in_time(511);
    if (sx_look_ns(most) != MS / 20)
        return false;
    wake_in_time(1 + 512 * 5);
    return sx_look_ns(most) == 2 * MS;
}

static void test_late(void) {
    int n = 0;
    while (!shortens())
        assert(++n < 200);
}

int main(void) {
    test_time();
    test_places();
    test_late();
    return 0;
}
