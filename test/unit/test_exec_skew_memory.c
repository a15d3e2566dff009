/* Samples that are known again, and those used least recently, which are not. */
#include <assert.h>

#include "exec/skew_memory.h"

static struct sx_heavy_list list_of(int64_t rows) {
    return (struct sx_heavy_list){.rows = rows, .n = 1, .keys = {{(uint64_t)rows * 3, rows / 2}}};
}

static int64_t rows_of(struct sx_skew_memory *memory, uint64_t sample) {
    const struct sx_heavy_list *found = sx_skew_memory_find(memory, sample);
    assert(!found || (found->n == 1 && found->keys[0].hash == (uint64_t)found->rows * 3));
    return found ? found->rows : -1;
}

static void keep(struct sx_skew_memory *memory, uint64_t sample, int64_t rows) {
    const struct sx_heavy_list list = list_of(rows);
    sx_skew_memory_keep(memory, sample, &list);
}

static void test_found(void) {
    static struct sx_skew_memory memory;
    assert(rows_of(&memory, 0) == -1 && rows_of(&memory, 7) == -1);
    keep(&memory, 0, 100);
    keep(&memory, 7, 200);
    assert(rows_of(&memory, 0) == 100 && rows_of(&memory, 7) == 200 && rows_of(&memory, 8) == -1);
    keep(&memory, 7, 300);
    assert(rows_of(&memory, 7) == 300 && rows_of(&memory, 0) == 100);
}

static void test_forgotten(void) {
    static struct sx_skew_memory memory;
    for (uint64_t sample = 0; sample < SX_SKEW_RECORDS; sample++)
        keep(&memory, sample, (int64_t)sample + 1);
    assert(rows_of(&memory, 0) == 1); /* used now, so number 1 is the oldest */
    keep(&memory, 1000, 5);
    assert(rows_of(&memory, 0) == 1 && rows_of(&memory, 1) == -1 && rows_of(&memory, 1000) == 5);
    for (uint64_t sample = 2; sample < SX_SKEW_RECORDS; sample++)
        assert(rows_of(&memory, sample) == (int64_t)sample + 1);
}

int main(void) {
    test_found();
    test_forgotten();
    return 0;
}
