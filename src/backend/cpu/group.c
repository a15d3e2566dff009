/* Life of a group by. */
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/group_state.h"

enum { ALIGNMENT = 64 };

static void *carve(char *base, size_t *at, size_t bytes) {
    void *piece = base ? base + *at : NULL;
    *at += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return piece;
}

/* Hands out the scratch from `base`; returns what it takes. */
static size_t place_scratch(struct sx_group_worker *worker, const struct sx_group_layout *layout,
                            char *base) {
    const size_t rows = SX_GROUP_BLOCK_ROWS, few = SX_GROUP_FEW * SX_GROUP_LANES;
    size_t at = 0;
    worker->heads = carve(base, &at, rows * layout->head_bytes);
    worker->hashes = carve(base, &at, rows * sizeof(uint64_t));
    worker->rows = carve(base, &at, rows * sizeof(char *));
    worker->values = carve(base, &at, rows * 16);
    worker->selection = carve(base, &at, rows * sizeof(int32_t));
    worker->mask = carve(base, &at, rows);
    worker->codes = carve(base, &at, rows * sizeof(uint16_t));
    worker->sums = carve(base, &at, few * sizeof(int64_t));
    worker->counts = carve(base, &at, few * sizeof(int32_t));
    worker->done = carve(base, &at, (size_t)layout->n_aggregates * sizeof(bool));
    return at;
}

static enum sx_status make_scratch(struct sx_group_worker *worker, const struct sx_group_layout *layout,
                                   struct sx_stream *stream) {
    const size_t bytes = place_scratch(worker, layout, NULL);
    SX_TRY(sx_pool_alloc(stream->pool, bytes, &worker->scratch, &stream->error));
    worker->scratch_bytes = bytes;
    place_scratch(worker, layout, worker->scratch);
    return SX_OK;
}

static enum sx_status make_only_row(struct sx_group_worker *worker, const struct sx_group_layout *layout,
                                    struct sx_stream *stream) {
    uint64_t hash;
    memset(worker->heads, 0, layout->head_bytes);
    sx_group_hash(layout, worker->heads, 0, 1, &hash);
    return sx_group_append(worker, layout, hash, worker->heads, stream, &worker->only_row);
}

enum sx_status sx_group_worker_create(const struct sx_group_layout *layout, struct sx_stream *stream,
                                      struct sx_group_worker **out_worker) {
    void *memory = NULL;
    SX_TRY(sx_pool_alloc(stream->pool, sizeof(struct sx_group_worker), &memory, &stream->error));
    struct sx_group_worker *worker = memset(memory, 0, sizeof *worker);
    enum sx_status status = SX_OK;
    SX_GO(make_scratch(worker, layout, stream));
    if (layout->n_keys == 0) {
        SX_GO(make_only_row(worker, layout, stream));
    } else {
        SX_GO(sx_group_index_create(&worker->index, SX_GROUP_ROOM * SX_GROUP_FIRST_ROWS, stream->pool,
                                    &stream->error));
        worker->index.limit = SX_GROUP_FIRST_ROWS;
        SX_GO(sx_group_direct_create(layout, &worker->direct, stream));
    }
    *out_worker = worker;
    return SX_OK;
out:
    sx_group_worker_destroy(worker, stream->pool);
    return status;
}

/* What only updates need. */
static void release_update_state(struct sx_group_worker *worker, struct sx_pool *pool) {
    sx_group_index_release(&worker->index, pool);
    sx_group_direct_destroy(worker->direct, pool);
    worker->direct = NULL;
    sx_group_heap_release(&worker->interned);
    sx_pool_free(pool, worker->scratch, worker->scratch_bytes);
    worker->scratch = NULL;
}

void sx_group_worker_destroy(struct sx_group_worker *worker, struct sx_pool *pool) {
    if (!worker)
        return;
    release_update_state(worker, pool);
    for (int p = 0; p < SX_GROUP_PARTITIONS; p++)
        sx_group_partition_release(&worker->partitions[p], pool);
    sx_pool_free(pool, worker, sizeof *worker);
}

enum sx_status sx_cpu_group_create(struct sx_stream *stream, const struct sx_group_spec *spec,
                                   struct sx_group **out_group) {
    struct sx_group *group = calloc(1, sizeof *group);
    if (!group)
        return sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for a group by");
    enum sx_status status = SX_OK;
    group->pool = stream->pool;
    group->n_workers = spec->n_workers;
    group->workers = calloc((size_t)spec->n_workers + 1, sizeof(struct sx_group_worker *));
    if (!group->workers)
        SX_GO(sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for a group by"));
    SX_GO(sx_group_layout_create(spec, &group->layout, &stream->error));
    *out_group = group;
    return SX_OK;
out:
    sx_cpu_group_destroy(stream, group);
    return status;
}

static void release_parts(struct sx_group *group) {
    for (int p = 0; p < group->n_parts; p++)
        sx_group_part_release(group, p);
    free(group->parts);
    group->parts = NULL;
    group->n_parts = 0;
}

void sx_cpu_group_destroy(struct sx_stream *stream, struct sx_group *group) {
    (void)stream;
    if (!group)
        return;
    release_parts(group);
    for (int w = 0; group->workers && w < group->n_workers; w++)
        sx_group_worker_destroy(group->workers[w], group->pool);
    free(group->workers);
    sx_group_layout_release(&group->layout);
    free(group);
}

/* ---- finish ---- */

static int64_t close_worker(struct sx_group_worker *worker, uint32_t row_bytes) {
    int64_t rows = 0;
    for (int p = 0; p < SX_GROUP_PARTITIONS; p++) {
        sx_group_partition_close(&worker->partitions[p], row_bytes);
        rows += worker->partitions[p].n_rows;
    }
    return rows;
}

enum sx_status sx_cpu_group_finish(struct sx_stream *stream, struct sx_group *group, int *out_parts,
                                   int64_t *out_most_rows) {
    enum { ROWS_PER_PART = 1 << 15 };
    if (group->layout.n_keys == 0 && !group->workers[0])
        SX_TRY(sx_group_worker_create(&group->layout, stream, &group->workers[0]));
    int64_t rows = 0;
    for (int w = 0; w < group->n_workers; w++) {
        if (!group->workers[w])
            continue;
        release_update_state(group->workers[w], group->pool);
        rows += close_worker(group->workers[w], group->layout.row_bytes);
    }
    int n_parts = 1;
    while (n_parts < SX_GROUP_PARTITIONS && rows > (int64_t)n_parts * ROWS_PER_PART)
        n_parts *= 2;
    group->parts = calloc((size_t)n_parts, sizeof *group->parts);
    if (!group->parts)
        return sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for the parts of a group by");
    group->n_parts = n_parts;
    *out_parts = n_parts;
    *out_most_rows = rows;
    return SX_OK;
}
