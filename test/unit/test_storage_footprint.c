/* Footprints: each byte once, by file, whatever overlaps and whoever adds it. */
#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "storage/footprint.h"

enum { N_THREADS = 4, N_PARTS = 1000 };

static const struct sx_file_stamp small = {.device = 1, .inode = 10, .size_bytes = 1000};
static const struct sx_file_stamp large = {.device = 1, .inode = 11, .size_bytes = 5000};
static const struct sx_file_stamp other = {.device = 2, .inode = 10, .size_bytes = 2000};

static void add(struct sx_footprint *footprint, const char *path, const struct sx_file_stamp *file,
                const struct sx_footprint_part *parts, int n_parts) {
    assert(sx_footprint_add(footprint, path, file, parts, n_parts, NULL) == SX_OK);
}

static void check(struct sx_footprint *footprint, int64_t bytes, int64_t cold_bytes, const char *path) {
    struct sx_footprint_total total;
    sx_footprint_total(footprint, &total);
    assert(total.bytes == bytes && total.cold_bytes == cold_bytes);
    assert(path ? total.cold_path && !strcmp(total.cold_path, path) : !total.cold_path);
}

static void test_parts(void) {
    struct sx_footprint *footprint;
    assert(sx_footprint_create(&footprint, NULL) == SX_OK);
    check(footprint, 0, 0, NULL);
    add(footprint, "small", &small, (struct sx_footprint_part[]){{100, 50, false}, {150, 50, false}}, 2);
    check(footprint, 100, 0, NULL);
    /* The same, a part of it, and what begins within and ends behind. */
    add(footprint, "small", &small,
        (struct sx_footprint_part[]){{100, 100, false}, {120, 10, false}, {190, 30, false}}, 3);
    check(footprint, 120, 0, NULL);
    /* The disk had to give what one scan has from it, if others had it from memory. */
    add(footprint, "small", &small, (struct sx_footprint_part[]){{110, 20, true}, {400, 7, true}}, 2);
    check(footprint, 127, 27, "small");
    /* The same places of other files are other bytes; an adjacent part of another file is one of its own. */
    add(footprint, "large", &large, (struct sx_footprint_part[]){{110, 20, true}}, 1);
    add(footprint, "other", &other, (struct sx_footprint_part[]){{130, 20, true}, {150, 1, false}}, 2);
    check(footprint, 168, 67, "large");
    check(footprint, 168, 67, "large");
    sx_footprint_destroy(footprint);
    sx_footprint_destroy(NULL);
}

static void *add_many(void *context) {
    for (int i = 0; i < N_PARTS; i++)
        add(context, "large", &large, &(struct sx_footprint_part){3 * i, 2, i % 2}, 1);
    return NULL;
}

static void test_threads(void) {
    struct sx_footprint *footprint;
    pthread_t threads[N_THREADS];
    assert(sx_footprint_create(&footprint, NULL) == SX_OK);
    for (int t = 0; t < N_THREADS; t++)
        assert(pthread_create(&threads[t], NULL, add_many, footprint) == 0);
    for (int t = 0; t < N_THREADS; t++)
        pthread_join(threads[t], NULL);
    check(footprint, 2 * N_PARTS, N_PARTS, "large");
    sx_footprint_destroy(footprint);
}

int main(void) {
    test_parts();
    test_threads();
    return 0;
}
