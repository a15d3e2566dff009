/* What an exchange of a device does: order by rank, frames, and batches of frames. */
#include "tensor/rows.h"
#include "bench/case.h"

enum { PARTS = 4, KEY = 0, COLUMNS = 4 };

enum step { ORDER, PACK, UNPACK };

static void release_frames(struct sx_buffer *frames[PARTS]) {
    for (int p = 0; p < PARTS; p++)
        sx_buffer_release(frames[p]);
}

static enum sx_status unpack(struct bench_worker *worker, const struct sx_batch *batch,
                             struct sx_buffer *frames[PARTS]) {
    struct sx_type types[COLUMNS];
    struct sx_batch made = {0};
    int64_t sequence;
    for (int c = 0; c < COLUMNS; c++)
        types[c] = batch->columns[c].type;
    for (int p = 0; p < PARTS; p++) {
        SX_TRY(worker->bench->ops->rows_unpack(worker->stream, frames[p], frames[p]->size_bytes, false, types,
                                               COLUMNS, NULL, &made, &sequence));
        sx_batch_release(&made);
    }
    return SX_OK;
}

/* All steps up to the case's. */
static enum sx_status use_steps(struct bench_worker *worker, struct bench_case *c,
                                const struct sx_batch *batch) {
    const struct sx_backend_ops *ops = worker->bench->ops;
    const enum step last = (enum step)c->count;
    int64_t offsets[PARTS + 1];
    struct sx_tensor order = {0};
    struct sx_buffer *frames[PARTS] = {0};
    /* Known, as it is after an exchange's first batch. */
    struct sx_rows_narrow narrow[COLUMNS] = {
        {.fit = SX_ROWS_FITS}, {.fit = SX_ROWS_FITS}, {.fit = SX_ROWS_FITS}, {.fit = SX_ROWS_FITS}};
    struct sx_batch own = {0};
    size_t plain_bytes;
    SX_TRY(ops->partition_keys(worker->stream, &batch->columns[KEY], 1, batch->rows, NULL, PARTS, &order,
                               offsets));
    const struct sx_row_parts parts = {
        .order = &order, .offsets = offsets, .n_parts = PARTS, .own = -1, .runs = offsets, .n_runs = PARTS};
    enum sx_status status = SX_OK;
    if (last >= PACK)
        status = ops->rows_pack(worker->stream, batch, &parts, 0, false, c->is_wide ? NULL : narrow, frames,
                                &plain_bytes, &own);
    if (status == SX_OK && last >= UNPACK)
        status = unpack(worker, batch, frames);
    release_frames(frames);
    sx_tensor_release(&order);
    return status;
}

static void steps(struct bench *bench, int64_t rows, enum step last, bool is_wide) {
    static const char *const primitives[] = {"partition_keys", "rows_pack", "rows_unpack"};
    static const int width = 8, order_width = 4;
    const int sent = is_wide ? width : width / 2;
    struct bench_case c = {.primitive = primitives[last],
                           .rows = rows,
                           .count = last,
                           .is_wide = is_wide,
                           .use = use_steps,
                           .run = bench_run_chunks};
    /* The key's column is as narrow as the others. */
    for (int i = 0; i < COLUMNS; i++)
        bench_add_column(&c, sx_type_of(SX_TYPE_I64), rows, false);
    int a_row = width + order_width;
    a_row += last >= PACK ? order_width + COLUMNS * (width + sent) : 0;
    a_row += last >= UNPACK && !is_wide ? COLUMNS * (sent + width) : 0;
    c.bytes = (double)a_row * (double)rows;
    if (last == ORDER)
        bench_name(&c, "int64, %d parts", PARTS);
    else
        bench_name(&c, "with what is before, %d parts, %d int64%s", PARTS, COLUMNS,
                   is_wide ? "" : ", narrow");
    bench_measure(bench, &c);
}

void bench_rows(struct bench *bench, int64_t rows) {
    if (bench->is_host) /* whose ranks send other bytes */
        return;
    steps(bench, rows, ORDER, true);
    for (int is_wide = 1; is_wide >= 0; is_wide--) {
        steps(bench, rows, PACK, is_wide);
        steps(bench, rows, UNPACK, is_wide);
    }
}
