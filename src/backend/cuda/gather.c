/* Several columns by one index in one launch: the index is read once, and so is a row whose columns lie side
 * by side. */
#include "backend/cuda/gather.h"

#include <stdlib.h>

/* What has been added is launched. */
static enum sx_status gather_flush(struct gather *gather) {
    const struct cuda_moves moves = gather->moves;
    gather->moves.n = 0;
    if (moves.n == 0 || gather->rows == 0)
        return SX_OK;
    const bool is_i64 = gather->index->type.id == SX_TYPE_I64;
    if (gather->table && moves.n > 1)
        cuda_take_rows(gather->stream->handle, &moves, gather->table, gather->step, gather->index->values,
                       is_i64, gather->rows);
    else
        cuda_move_rows(gather->stream->handle, &moves, gather->index->values, is_i64, gather->rows);
    return cuda_launched(gather->stream, "gather");
}

enum sx_status gather_make(struct cuda_stream *stream, const struct sx_tensor *like, int64_t rows,
                           bool has_valid, struct sx_tensor *out_column) {
    const bool is_coded = like->layout == SX_DICT;
    struct sx_tensor made;
    SX_TRY(sx_tensor_create(stream->base.pool, is_coded ? sx_type_of(SX_TYPE_I32) : like->type, rows,
                            has_valid, &made, &stream->base.error));
    made.type = like->type;
    made.layout = is_coded ? SX_DICT : SX_FLAT;
    made.dict = is_coded ? sx_dict_retain(like->dict) : NULL;
    made.heap = is_coded ? NULL : sx_buffer_retain(like->heap);
    *out_column = made;
    return SX_OK;
}

struct cuda_move gather_move(const struct sx_tensor *like, const struct gather_from *from, void *to,
                             uint8_t *to_valid) {
    const uint32_t width = gather_width(like);
    return (struct cuda_move){
        .from = from->values,
        .from_valid = from->valid,
        .to = to,
        .to_valid = to_valid,
        .from_step = from->step ? from->step : (uint32_t)sx_tensor_step(like),
        .from_valid_step = from->step ? from->step : 1,
        .to_step = width,
        .to_valid_step = 1,
        .width = (uint16_t)width,
        .is_narrow = like->layout == SX_NARROW,
        .base = like->base,
    };
}

enum sx_status gather_add(struct gather *gather, const struct sx_tensor *like, const struct gather_from *from,
                          struct sx_tensor *out_column) {
    struct sx_tensor made;
    if (gather->moves.n == CUDA_MOVES)
        SX_TRY(gather_flush(gather));
    SX_TRY(gather_make(gather->stream, like, gather->rows, from->valid != NULL, &made));
    gather->moves.columns[gather->moves.n++] = gather_move(like, from, made.values, made.valid);
    *out_column = made;
    return SX_OK;
}

enum sx_status gather_end(struct gather *gather, enum sx_status status, struct sx_tensor *columns, int n) {
    if (status == SX_OK)
        status = gather_flush(gather);
    for (int i = 0; i < n && status != SX_OK; i++)
        sx_tensor_release(&columns[i]);
    return status;
}

enum sx_status gather_add_column(struct gather *gather, const struct sx_tensor *column,
                                 struct sx_tensor *out_column) {
    if (column->layout == SX_CONSTANT) {
        sx_tensor_share(column, out_column);
        out_column->length = gather->rows;
        return SX_OK;
    }
    return gather_add(gather, column, &(struct gather_from){column->values, column->valid, 0}, out_column);
}

enum sx_status sx_cuda_gather_columns(struct sx_stream *base, const struct sx_tensor *const *columns, int n,
                                      const struct sx_tensor *index, struct sx_tensor *out_columns) {
    struct cuda_stream *stream;
    SX_TRY(cuda_enter(base, &stream));
    struct gather gather = {.stream = stream, .index = index, .rows = index->length};
    enum sx_status status = SX_OK;
    int made = 0;
    while (made < n && status == SX_OK) {
        status = gather_add_column(&gather, columns[made], &out_columns[made]);
        made += status == SX_OK;
    }
    return gather_end(&gather, status, out_columns, made);
}
