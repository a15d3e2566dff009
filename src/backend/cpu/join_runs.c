/* Rows of equal keys side by side, so that a match with many rows costs one cache miss. */
#include <string.h>

#include "backend/cpu/join.h"

enum { STEP_ROWS = 1 << 16 };

static int64_t step_end(int64_t at, int64_t rows) {
    return rows - at < STEP_ROWS ? rows : at + STEP_ROWS;
}

#define SX_ROW        uint32_t
#define SX_NAME(stem) stem##_u32
#include "backend/cpu/join_runs.tmpl.h"
#define SX_ROW        uint64_t
#define SX_NAME(stem) stem##_u64
#include "backend/cpu/join_runs.tmpl.h"

enum sx_status sx_join_make_runs(struct sx_stream *stream, struct sx_join *join) {
    SX_TRY(sx_cpu_alloc_zeroed(stream, join->groups_bytes, &join->runs));
    SX_TRY(sx_cpu_alloc_zeroed(stream, join->groups_bytes, &join->starts));
    SX_TRY(join->is_wide ? make_runs_u64(stream, join) : make_runs_u32(stream, join));
    if (join->kind != SX_JOIN_GENERIC) {
        sx_pool_free(stream->pool, join->starts, join->groups_bytes);
        join->starts = NULL;
    }
    return SX_OK;
}

void sx_join_first_rows(const struct sx_join *join, uint64_t *entries, int64_t n) {
    if (join->is_wide)
        first_rows_u64(join, entries, n);
    else
        first_rows_u32(join, entries, n);
}

void sx_join_run_entries(const struct sx_join *join, uint64_t *entries, int64_t n) {
    if (join->is_wide)
        map_entries_u64(join->starts, entries, n);
    else
        map_entries_u32(join->starts, entries, n);
}

void sx_join_emit_runs(const struct sx_join *join, struct sx_join_emission *emission) {
    if (join->is_wide)
        emit_runs_u64(join, emission);
    else
        emit_runs_u32(join, emission);
}
