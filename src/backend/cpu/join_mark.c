/* Which build rows have matched. */
#include "backend/cpu/join.h"

enum sx_status sx_cpu_join_mark(struct sx_stream *stream, struct sx_join *join,
                                const struct sx_tensor *build_rows) {
    (void)stream;
    const int64_t *rows = build_rows->values;
    for (int64_t i = 0; i < build_rows->length; i++) {
        uint8_t *mark = &join->marks[rows[i]];
        if (!__atomic_load_n(mark, __ATOMIC_RELAXED))
            __atomic_store_n(mark, 1, __ATOMIC_RELAXED);
    }
    return SX_OK;
}

enum sx_status sx_cpu_join_marked(struct sx_stream *stream, const struct sx_join *join, bool wanted,
                                  int64_t first, int64_t count, struct sx_tensor *out_build_rows) {
    SX_TRY(sx_cpu_check_cancel(stream));
    int64_t last = first + count < join->rows ? first + count : join->rows;
    int64_t n = last > first ? last - first : 0, found = 0;
    struct sx_tensor out = {0};
    SX_TRY(sx_tensor_create_index(stream->pool, SX_TYPE_I64, n + 1, &out, &stream->error));
    int64_t *rows = out.values;
    for (int64_t i = first; i < first + n; i++) {
        rows[found] = i;
        found += (join->marks[i] != 0) == wanted;
    }
    out.length = found;
    *out_build_rows = out;
    return SX_OK;
}
