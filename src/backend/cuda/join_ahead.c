/* Slots that rows claim while the build side still comes in: where it is known about how many will come, each
 * batch's rows claim theirs as soon as it is appended, behind what else the device has to do, which mostly
 * waits for other ranks' rows then. Rows are numbered in this order. A table of words that may be dense is
 * not made so, which the first batch tells: words that are too far apart there only get further apart. */
#include "backend/cuda/join.h"

#include <stdlib.h>

enum {
#ifdef SX_CUDA_EMULATED
    LEAST_ROWS = 1 << 10,
    LEAST_BATCH_ROWS = 1 << 6,
#else
    LEAST_ROWS = 1 << 20,
    LEAST_BATCH_ROWS = 1 << 16, /* the others claim together, at the end */
#endif
    SLACK = 32,       /* room for so much of the rows more, */
    SLACK_ROWS = 256, /* and for these: parts by hash differ a little */
    SHARE = 16        /* of the device's memory at most */
};

struct join_ahead *cuda_join_ahead_create(void) {
    struct join_ahead *ahead = calloc(1, sizeof *ahead);
    if (ahead)
        pthread_mutex_init(&ahead->lock, NULL);
    return ahead;
}

void cuda_join_drop_ahead(struct join_ahead *ahead) {
    sx_tensor_release(&ahead->keys);
    sx_buffer_release(ahead->bounds);
    ahead->bounds = NULL;
    cuda_join_slots_release(&ahead->slots);
}

void cuda_join_settle_ahead(struct join_ahead *ahead) {
    if (ahead->behind && !ahead->is_ended)
        (void)cudaStreamSynchronize(ahead->behind);
}

void cuda_join_ahead_destroy(struct join_ahead *ahead) {
    if (!ahead)
        return;
    cuda_join_settle_ahead(ahead); /* the build side was not finished */
    if (ahead->claimed)
        (void)cudaEventDestroy(ahead->claimed);
    cuda_join_drop_ahead(ahead);
    pthread_mutex_destroy(&ahead->lock);
    free(ahead);
}

void sx_cuda_join_expect(struct sx_join *join, int64_t rows) {
    join->ahead->expected = rows;
}

/* ---- room ---- */

static bool fits_memory(const struct cuda_stream *stream, const struct sx_join *join, int64_t rows) {
    const size_t row_bytes = sx_type_bytes(join->types[0]) + 2 * sizeof(uint64_t) + sizeof(int64_t);
    return (size_t)rows <= stream->device->limit_bytes / SHARE / row_bytes;
}

/* What is issued behind comes after all that `event` is after. */
static enum sx_status continue_behind(struct cuda_stream *stream, const struct join_ahead *ahead,
                                      cudaEvent_t event) {
    return cuda_check(stream, cudaStreamWaitEvent(ahead->behind, event, 0), "an event");
}

static enum sx_status make_room(struct cuda_stream *stream, struct sx_join *join, int64_t rows) {
    struct join_ahead *ahead = join->ahead;
    struct sx_buffer *list = NULL; /* none: one WORD key */
    enum sx_status status;
    cuda_spare_cache(stream, true);
    SX_GO(cuda_behind(stream, &ahead->behind));
    SX_GO(
        sx_tensor_create(stream->base.pool, join->types[0], rows, false, &ahead->keys, &stream->base.error));
    SX_GO(cuda_join_slots_create(stream, rows, &ahead->slots));
    SX_GO(cuda_join_keys_of(stream, join, &ahead->keys, &ahead->slots.table.keys, &list));
    SX_GO(cuda_check(stream, cudaEventCreateWithFlags(&ahead->claimed, cudaEventDisableTiming), "an event"));
    SX_GO(cuda_check(stream, cudaEventRecord(ahead->claimed, stream->handle), "an event"));
    SX_GO(continue_behind(stream, ahead, ahead->claimed));
    cuda_share(stream, ahead->keys.values);
    cuda_share(stream, ahead->bounds->data);
    cuda_join_slots_share(stream, &ahead->slots);
    ahead->room = rows;
out:
    cuda_spare_cache(stream, false);
    return status;
}

enum sx_status cuda_join_range_ahead(struct cuda_stream *stream, const struct sx_join *join,
                                     struct join_range *out_range) {
    struct cuda_join_bounds bounds;
    SX_TRY(cuda_download(stream, &bounds, join->ahead->bounds->data, sizeof bounds,
                         "the range of a join's keys"));
    *out_range = cuda_join_range_of(&bounds);
    return SX_OK;
}

/* Of the first batch. */
static enum sx_status begin_range(struct cuda_stream *stream, const struct sx_join *join,
                                  const struct sx_tensor *keys, struct join_range *out_range) {
    struct sx_buffer **bounds = &join->ahead->bounds;
    SX_TRY(cuda_join_zeroed(stream, sizeof(struct cuda_join_bounds), bounds));
    (void)cuda_join_note_range(stream->handle, join, 0, keys, (*bounds)->data);
    SX_TRY(cuda_launched(stream, "ranges of keys"));
    return cuda_join_range_ahead(stream, join, out_range);
}

/* With the lock held, at the first batch; waits for its keys' range. */
static enum sx_status decide(struct cuda_stream *stream, struct sx_join *join,
                             const struct join_batch *batch) {
    struct join_ahead *ahead = join->ahead;
    const int64_t rows = ahead->expected + ahead->expected / SLACK + SLACK_ROWS;
    struct join_range range;
    ahead->is_decided = true;
    if (!fits_memory(stream, join, rows))
        return SX_OK;
    enum sx_status status = begin_range(stream, join, &batch->columns[0], &range);
    if (status == SX_OK && !cuda_join_is_dense(join, &range, rows))
        status = make_room(stream, join, rows);
    if (status != SX_OK)
        cuda_join_drop_ahead(ahead);
    if (status == SX_OUT_OF_MEMORY) {
        stream->base.error = (struct sx_error){0};
        return SX_OK;
    }
    return status;
}

/* ---- claims ---- */

static bool suits(const struct sx_join *join, const struct join_batch *batch) {
    return join->ahead->expected >= LEAST_ROWS && batch->rows >= LEAST_BATCH_ROWS && join->n_keys == 1 &&
           cuda_join_has_range(join->types[0]) && !join->null_equal[0] &&
           batch->columns[0].layout == SX_FLAT && !batch->columns[0].valid;
}

/* With the lock held. The batch keeps its keys until all claims have been waited for. */
static enum sx_status claim(struct cuda_stream *stream, const struct sx_join *join,
                            const struct join_batch *batch, cudaEvent_t appended) {
    const struct join_ahead *ahead = join->ahead;
    const struct sx_tensor *keys = &batch->columns[0];
    const struct gather_from from = {.values = keys->values};
    uint8_t *to = (uint8_t *)ahead->keys.values + (size_t)batch->ahead_row * sx_tensor_step(keys);
    const struct cuda_moves moves = {.columns = {gather_move(keys, &from, to, NULL)}, .n = 1};
    SX_TRY(continue_behind(stream, ahead, appended));
    cuda_move_rows(ahead->behind, &moves, NULL, false, batch->rows);
    if (batch->ahead_row > 0)
        (void)cuda_join_note_range(ahead->behind, join, 0, keys, ahead->bounds->data);
    cuda_join_claim(ahead->behind, &ahead->slots.table, batch->ahead_row, batch->rows,
                    ahead->slots.of_rows->data, ahead->slots.duplicates->data);
    SX_TRY(cuda_launched(stream, "slots of a join's table"));
    return cuda_check(stream, cudaEventRecord(ahead->claimed, ahead->behind), "an event");
}

enum sx_status cuda_join_claim_ahead(struct cuda_stream *stream, struct sx_join *join,
                                     struct join_batch *batch, cudaEvent_t appended) {
    struct join_ahead *ahead = join->ahead;
    if (!suits(join, batch))
        return SX_OK;
    pthread_mutex_lock(&ahead->lock);
    enum sx_status status = ahead->is_decided ? SX_OK : decide(stream, join, batch);
    if (status == SX_OK && batch->rows <= ahead->room - ahead->rows) {
        batch->ahead_row = ahead->rows;
        ahead->rows += batch->rows;
        status = claim(stream, join, batch, appended);
    }
    pthread_mutex_unlock(&ahead->lock);
    return status;
}

/* ---- the end ---- */

enum sx_status cuda_join_end_ahead(struct cuda_stream *stream, struct sx_join *join) {
    struct join_ahead *ahead = join->ahead;
    if (ahead->rows > 0)
        SX_TRY(cuda_check(stream, cudaStreamWaitEvent(stream->handle, ahead->claimed, 0), "an event"));
    ahead->is_ended = true;
    ahead->keys.length = ahead->rows;
    return SX_OK;
}

bool cuda_join_are_ahead(const struct sx_join *join) {
    return join->rows > 0 && join->ahead->rows == join->rows;
}

bool cuda_join_take_ahead(struct sx_join *join, struct join_slots *out_slots, int64_t *out_rows) {
    struct join_ahead *ahead = join->ahead;
    const bool is_taken = ahead->rows > 0 && join->rows <= ahead->room;
    if (is_taken) {
        *out_slots = ahead->slots;
        *out_rows = ahead->rows;
        ahead->slots = (struct join_slots){0};
    } else {
        cuda_join_slots_release(&ahead->slots);
    }
    return is_taken;
}
