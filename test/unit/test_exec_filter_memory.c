/* Filters that were useless are known again by their probe side; those known longest are forgotten. */
#include <assert.h>

#include "exec/filter_memory.h"

static void test_found(void) {
    static struct sx_filter_memory memory;
    assert(sx_filter_memory_find(&memory, 7) == 0);
    sx_filter_memory_keep(&memory, 7, 100);
    sx_filter_memory_keep(&memory, 8, 200);
    assert(sx_filter_memory_find(&memory, 7) == 100 && sx_filter_memory_find(&memory, 8) == 200);
    sx_filter_memory_keep(&memory, 7, 300);
    assert(sx_filter_memory_find(&memory, 7) == 300 && sx_filter_memory_find(&memory, 8) == 200);
    assert(sx_filter_memory_find(&memory, 9) == 0);
}

static void test_forgotten(void) {
    static struct sx_filter_memory memory;
    for (uint64_t probe = 1; probe <= SX_FILTER_RECORDS + 1; probe++)
        sx_filter_memory_keep(&memory, probe, (int64_t)probe);
    assert(sx_filter_memory_find(&memory, 1) == 0);
    for (uint64_t probe = 2; probe <= SX_FILTER_RECORDS + 1; probe++)
        assert(sx_filter_memory_find(&memory, probe) == (int64_t)probe);
}

int main(void) {
    test_found();
    test_forgotten();
    return 0;
}
