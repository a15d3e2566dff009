#include <stdlib.h>
#include <string.h>

#include "backend/cpu/join.h"

/* ---- the probe side's keys ---- */

static enum sx_status open_keys(struct sx_stream *stream, const struct sx_tensor *keys,
                                struct sx_join_probe *probe) {
    size_t n = (size_t)probe->join->n_keys;
    size_t scratch_bytes = SX_JOIN_BLOCK * sizeof(sx_i128);
    probe->columns = calloc(n + 1, sizeof *probe->columns);
    probe->scratch = calloc(n + 1, sizeof *probe->scratch);
    probe->keys.values = calloc(n + 1, sizeof *probe->keys.values);
    probe->keys.valid = calloc(n + 1, sizeof *probe->keys.valid);
    if (!probe->columns || !probe->scratch || !probe->keys.values || !probe->keys.valid)
        return sx_error_set(&stream->error, SX_OUT_OF_MEMORY, "no memory for a probe");
    probe->memory_bytes = n * scratch_bytes;
    SX_TRY(sx_pool_alloc(stream->pool, probe->memory_bytes, &probe->memory, &stream->error));
    for (size_t k = 0; k < n; k++) {
        probe->scratch[k] = (char *)probe->memory + k * scratch_bytes;
        SX_TRY(sx_cpu_flatten(stream, &keys[k], &probe->columns[k]));
    }
    return SX_OK;
}

enum sx_status sx_join_probe_open(struct sx_stream *stream, const struct sx_join *join,
                                  const struct sx_tensor *keys, struct sx_join_probe *out_probe) {
    *out_probe = (struct sx_join_probe){.join = join};
    enum sx_status status = open_keys(stream, keys, out_probe);
    if (status != SX_OK)
        sx_join_probe_close(out_probe);
    return status;
}

void sx_join_probe_block(struct sx_join_probe *probe, int64_t first, int64_t rows) {
    for (int k = 0; k < probe->join->n_keys; k++) {
        const struct sx_tensor *column = &probe->columns[k];
        probe->keys.values[k] = sx_join_normalise(column, first, rows, probe->scratch[k]);
        probe->keys.valid[k] = column->valid ? column->valid + first : NULL;
    }
}

void sx_join_probe_close(struct sx_join_probe *probe) {
    for (int k = 0; probe->columns && k < probe->join->n_keys; k++)
        sx_tensor_release(&probe->columns[k]);
    sx_pool_free(probe->join->pool, probe->memory, probe->memory_bytes);
    free(probe->columns);
    free(probe->scratch);
    free(probe->keys.values);
    free(probe->keys.valid);
    *probe = (struct sx_join_probe){0};
}

/* ---- pairs ---- */

struct pairs {
    struct sx_tensor probe_rows, build_rows;
    int64_t n, capacity, max;
};

enum { FIRST_PAIRS = 1024 };

static enum sx_status resize_index(struct sx_stream *stream, struct sx_tensor *index, enum sx_type_id id,
                                   int64_t kept, int64_t capacity) {
    struct sx_tensor grown = {0};
    SX_TRY(sx_tensor_create_index(stream->pool, id, capacity, &grown, &stream->error));
    if (kept)
        sx_cpu_copy_values(index, 0, kept, grown.values);
    sx_tensor_release(index);
    *index = grown;
    return SX_OK;
}

/* Room for `more` pairs. */
static enum sx_status reserve(struct sx_stream *stream, struct pairs *pairs, int64_t more) {
    int64_t needed = pairs->n + more, capacity = 2 * pairs->capacity;
    if (needed <= pairs->capacity)
        return SX_OK;
    capacity = capacity > needed ? capacity : needed;
    capacity = capacity > FIRST_PAIRS ? capacity : FIRST_PAIRS;
    SX_TRY(sx_cpu_check_cancel(stream));
    SX_TRY(resize_index(stream, &pairs->probe_rows, SX_TYPE_I32, pairs->n, capacity));
    SX_TRY(resize_index(stream, &pairs->build_rows, SX_TYPE_I64, pairs->n, capacity));
    pairs->capacity = capacity;
    return SX_OK;
}

static int64_t room(const struct pairs *pairs) {
    return pairs->max - pairs->n;
}

/* At most one pair per row. */
static void emit_first(struct pairs *pairs, int64_t first, const uint64_t *entries, int64_t rows) {
    int32_t *probe_rows = pairs->probe_rows.values;
    int64_t *build_rows = pairs->build_rows.values, n = pairs->n;
    for (int64_t i = 0; i < rows; i++) {
        probe_rows[n] = (int32_t)(first + i);
        build_rows[n] = (int64_t)entries[i] - 1;
        n += entries[i] != 0;
    }
    pairs->n = n;
}

/* All pairs of the rows from the cursor on, as far as there is room. */
static enum sx_status emit_all(struct sx_stream *stream, const struct sx_join *join, struct pairs *pairs,
                               uint64_t *entries, int64_t rows, struct sx_probe_cursor *cursor) {
    struct sx_join_emission emission = {.row = cursor->row, .n_rows = rows, .entries = entries};
    while (emission.n_rows && room(pairs) > 0) {
        int64_t more = room(pairs) < SX_JOIN_BLOCK ? room(pairs) : SX_JOIN_BLOCK;
        SX_TRY(reserve(stream, pairs, more));
        int64_t reserved = pairs->capacity - pairs->n;
        emission.room = reserved < room(pairs) ? reserved : room(pairs);
        emission.probe_rows = (int32_t *)pairs->probe_rows.values + pairs->n;
        emission.build_rows = (int64_t *)pairs->build_rows.values + pairs->n;
        sx_join_emit_runs(join, &emission);
        pairs->n += emission.n_pairs;
    }
    cursor->row = emission.row;
    cursor->entry = emission.n_rows ? (int64_t)emission.entries[0] : 0;
    return SX_OK;
}

/* ---- lookups ---- */

/* A dictionary's entries are looked up once, rows by their code. */
struct lookup {
    struct sx_join_probe probe;
    const struct sx_tensor *coded; /* NULL: every row is looked up */
    void *entries;                 /* u64 per dictionary entry, and one for NULL */
    size_t entries_bytes;
};

static enum sx_status lookup_dictionary(struct sx_stream *stream, const struct sx_join *join,
                                        const struct sx_tensor *key, struct lookup *lookup) {
    const struct sx_tensor *values = &key->dict->values;
    SX_TRY(sx_join_probe_open(stream, join, values, &lookup->probe));
    lookup->entries_bytes = ((size_t)values->length + 1) * sizeof(uint64_t);
    SX_TRY(sx_pool_alloc(stream->pool, lookup->entries_bytes, &lookup->entries, &stream->error));
    uint64_t *entries = lookup->entries;
    for (int64_t at = 0; at < values->length; at += SX_JOIN_BLOCK) {
        int64_t n = values->length - at < SX_JOIN_BLOCK ? values->length - at : SX_JOIN_BLOCK;
        sx_join_probe_block(&lookup->probe, at, n);
        sx_join_lookup(join, &lookup->probe.keys, n, entries + at);
    }
    uint8_t invalid = 0;
    lookup->probe.keys.values[0] = lookup->probe.scratch[0];
    lookup->probe.keys.valid[0] = &invalid;
    memset(lookup->probe.scratch[0], 0, sizeof(sx_i128));
    sx_join_lookup(join, &lookup->probe.keys, 1, entries + values->length);
    lookup->coded = key;
    return SX_OK;
}

static void close_lookup(struct sx_stream *stream, struct lookup *lookup) {
    if (lookup->probe.join)
        sx_join_probe_close(&lookup->probe);
    sx_pool_free(stream->pool, lookup->entries, lookup->entries_bytes);
}

static enum sx_status open_lookup(struct sx_stream *stream, const struct sx_join *join,
                                  const struct sx_tensor *keys, int64_t rows, struct lookup *lookup) {
    bool by_code = join->n_keys == 1 && keys[0].layout == SX_DICT && keys[0].dict->values.length <= rows;
    return by_code ? lookup_dictionary(stream, join, &keys[0], lookup)
                   : sx_join_probe_open(stream, join, keys, &lookup->probe);
}

static void look_up(struct lookup *lookup, int64_t first, int64_t rows, uint64_t *out_entries) {
    if (!lookup->coded) {
        sx_join_probe_block(&lookup->probe, first, rows);
        sx_join_lookup(lookup->probe.join, &lookup->probe.keys, rows, out_entries);
        return;
    }
    const uint64_t *entries = lookup->entries;
    const int32_t *codes = (const int32_t *)lookup->coded->values + first;
    const uint8_t *valid = lookup->coded->valid ? lookup->coded->valid + first : NULL;
    int64_t of_null = lookup->coded->dict->values.length;
    for (int64_t i = 0; i < rows; i++)
        out_entries[i] = entries[!valid || valid[i] ? codes[i] : of_null];
}

/* ---- join_probe ---- */

static enum sx_status probe_block(struct sx_stream *stream, const struct sx_join *join, struct lookup *lookup,
                                  bool first_only, int64_t rows, struct pairs *pairs,
                                  struct sx_probe_cursor *cursor) {
    uint64_t entries[SX_JOIN_BLOCK];
    int64_t n = rows - cursor->row < SX_JOIN_BLOCK ? rows - cursor->row : SX_JOIN_BLOCK;
    n = n < room(pairs) ? n : room(pairs);
    look_up(lookup, cursor->row, n, entries);
    if (cursor->entry)
        entries[0] = (uint64_t)cursor->entry;
    if (join->runs && first_only)
        sx_join_first_rows(join, entries, n);
    if (!first_only)
        return emit_all(stream, join, pairs, entries, n, cursor);
    SX_TRY(reserve(stream, pairs, n));
    emit_first(pairs, cursor->row, entries, n);
    cursor->row += n;
    return SX_OK;
}

static enum sx_status probe_table(struct sx_stream *stream, const struct sx_join *join,
                                  const struct sx_tensor *keys, int64_t rows, bool first_only,
                                  struct pairs *pairs, struct sx_probe_cursor *cursor) {
    struct lookup lookup = {0};
    enum sx_status status = SX_OK;
    SX_GO(open_lookup(stream, join, keys, rows, &lookup));
    while (cursor->row < rows && room(pairs) > 0)
        SX_GO(probe_block(stream, join, &lookup, first_only, rows, pairs, cursor));
out:
    close_lookup(stream, &lookup);
    return status;
}

/* Every build row for every probe row; the cursor's entry counts the build rows done. */
static enum sx_status probe_cross(struct sx_stream *stream, const struct sx_join *join, int64_t rows,
                                  bool first_only, struct pairs *pairs, struct sx_probe_cursor *cursor) {
    int64_t matches = first_only && join->rows > 1 ? 1 : join->rows;
    while (matches && cursor->row < rows && room(pairs) > 0) {
        int64_t n = matches - cursor->entry < room(pairs) ? matches - cursor->entry : room(pairs);
        SX_TRY(reserve(stream, pairs, n));
        int32_t *probe_rows = (int32_t *)pairs->probe_rows.values + pairs->n;
        int64_t *build_rows = (int64_t *)pairs->build_rows.values + pairs->n;
        for (int64_t i = 0; i < n; i++) {
            probe_rows[i] = (int32_t)cursor->row;
            build_rows[i] = cursor->entry + i;
        }
        pairs->n += n;
        cursor->entry += n;
        if (cursor->entry == matches) {
            cursor->entry = 0;
            cursor->row++;
        }
    }
    if (!matches)
        cursor->row = rows;
    return SX_OK;
}

enum sx_status sx_cpu_join_probe(struct sx_stream *stream, const struct sx_join *join,
                                 const struct sx_tensor *keys, int64_t rows, enum sx_probe_mode mode,
                                 int64_t max_pairs, struct sx_probe_cursor *cursor,
                                 struct sx_tensor *out_probe_rows, struct sx_tensor *out_build_rows) {
    struct pairs pairs = {.max = max_pairs};
    struct sx_probe_cursor at = *cursor;
    enum sx_status status = SX_OK;
    SX_GO(sx_cpu_check_cancel(stream));
    int64_t likely = rows - at.row < max_pairs ? rows - at.row : max_pairs;
    SX_GO(reserve(stream, &pairs, likely + 1));
    if (join->kind == SX_JOIN_CROSS)
        SX_GO(probe_cross(stream, join, rows, mode == SX_PROBE_FIRST, &pairs, &at));
    else
        SX_GO(probe_table(stream, join, keys, rows, mode == SX_PROBE_FIRST || !join->runs, &pairs, &at));
    at.done = at.row >= rows;
    *cursor = at;
    pairs.probe_rows.length = pairs.n;
    pairs.build_rows.length = pairs.n;
    *out_probe_rows = pairs.probe_rows;
    *out_build_rows = pairs.build_rows;
    return SX_OK;
out:
    sx_tensor_release(&pairs.probe_rows);
    sx_tensor_release(&pairs.build_rows);
    return status;
}
