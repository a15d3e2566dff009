/* The backend's memory for reading files: copies from it arrive, and its budget gets everything back. */
#include <string.h>

#include "conformance.h"

enum { BLOCKS = 40, LIMIT_BYTES = 256 << 20 };

static void check_blocks(struct conformance *c, struct sx_pool *pool) {
    void *blocks[BLOCKS] = {0};
    size_t sizes[BLOCKS] = {0};
    bool fine = true;
    for (int i = 0; i < BLOCKS; i++) {
        sizes[i] = conformance_random(c) % (i % 4 ? (size_t)100000 : (size_t)6 << 20);
        if (sx_pool_alloc(pool, sizes[i], &blocks[i], &c->error) != SX_OK) {
            CONFORM(c, false, "block %d of %zu bytes: %s", i, sizes[i], c->error.text);
            break;
        }
        memset(blocks[i], i, sizes[i]);
    }
    for (int i = 0; i < BLOCKS && blocks[i]; i++) {
        for (size_t at = 0; at < sizes[i]; at += 509)
            fine &= ((const unsigned char *)blocks[i])[at] == i;
        sx_pool_free(pool, blocks[i], sizes[i]);
    }
    CONFORM(c, fine, "blocks of the pool overlap");
}

static void check_copy(struct conformance *c, struct sx_pool *pool) {
    const int64_t rows = 20011;
    struct sx_tensor host = {0}, sent = {0}, back = {0};
    bool fine = sx_tensor_create(pool, sx_type_of(SX_TYPE_I64), rows, false, &host, &c->error) == SX_OK;
    for (int64_t i = 0; fine && i < rows; i++)
        ((int64_t *)host.values)[i] = i * i;
    fine =
        fine && conformance_send(c, &host, &sent) == SX_OK && conformance_receive(c, &sent, &back) == SX_OK;
    for (int64_t i = 0; fine && i < rows; i++)
        fine = ((const int64_t *)back.values)[i] == i * i;
    CONFORM(c, fine, "a copy from the pool's memory: %s %s", c->error.text, c->stream->error.text);
    sx_tensor_release(&host);
    sx_tensor_release(&sent);
    sx_tensor_release(&back);
}

/* What the pool keeps is given back when others need it; what the budget refuses, the pool refuses. */
static void check_budget(struct conformance *c, struct sx_pool *budget, struct sx_pool *pool) {
    void *block = NULL;
    CONFORM(c, sx_pool_usage(budget).used_bytes > 0, "the pool's memory does not count in the budget");
    CONFORM(c, sx_pool_reserve(budget, LIMIT_BYTES, &c->error) == SX_OK, "kept memory stays: %s",
            c->error.text);
    CONFORM(c, sx_pool_alloc(pool, 5000, &block, &c->error) == SX_OUT_OF_MEMORY, "the budget is passed");
    sx_pool_unreserve(budget, LIMIT_BYTES);
    CONFORM(c, sx_pool_alloc(pool, 5000, &block, &c->error) == SX_OK, "%s", c->error.text);
    sx_pool_free(pool, block, 5000);
}

void conform_io(struct conformance *c) {
    struct sx_pool *budget = NULL, *pool = NULL;
    if (!c->backend->io_pool_create)
        return;
    if (sx_pool_create(LIMIT_BYTES, &budget, &c->error) != SX_OK ||
        c->backend->io_pool_create(c->backend, budget, &pool, &c->error) != SX_OK) {
        CONFORM(c, false, "no pool: %s", c->error.text);
        sx_pool_destroy(budget);
        return;
    }
    for (int i = 0; i < 3; i++)
        check_blocks(c, pool);
    check_copy(c, pool);
    check_budget(c, budget, pool);
    printf("%s io: memory is %s\n", c->backend->name, sx_pool_is_pinned(pool) ? "pinned" : "not pinned");
    sx_pool_destroy(pool);
    CONFORM(c, sx_pool_usage(budget).used_bytes == 0, "%zu bytes were not given back",
            sx_pool_usage(budget).used_bytes);
    sx_pool_destroy(budget);
}
