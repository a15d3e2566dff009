/* Sorting entries of one width. Parameters: SX_ENTRY (unsigned), SX_NAME(stem). */

/* Adds one column's numbers to the entries of a block. */
static void SX_NAME(add_numbers)(const struct sx_sort_column *column, const void *codes, const uint8_t *valid,
                                 int64_t rows, SX_ENTRY *entries) {
    bool nulls_in_front = column->has_null && column->has_value && column->order.nulls_first;
    sx_u128 range = column->has_value ? column->max - column->min : 0;
    sx_u128 behind = (range >> column->halved) + column->has_value;
    sx_u128 of_null = column->order.nulls_first ? 0 : behind;
    for (int64_t i = 0; i < rows; i++) {
        sx_u128 code = column->is_wide ? ((const sx_u128 *)codes)[i] : ((const uint64_t *)codes)[i];
        sx_u128 distance = column->order.descending ? column->max - code : code - column->min;
        sx_u128 number = (distance >> column->halved) + nulls_in_front;
        if (valid && !valid[i])
            number = of_null;
        entries[i] |= (SX_ENTRY)(number >> column->drop) << column->shift;
    }
}

/* The same for the common case: codes of 64 bits without nulls. */
static void SX_NAME(add_words)(const struct sx_sort_column *column, const uint64_t *codes, int64_t rows,
                               SX_ENTRY *entries) {
    uint64_t min = (uint64_t)column->min, max = (uint64_t)column->max;
    if (column->order.descending)
        for (int64_t i = 0; i < rows; i++)
            entries[i] |= (SX_ENTRY)((max - codes[i]) >> column->drop) << column->shift;
    else
        for (int64_t i = 0; i < rows; i++)
            entries[i] |= (SX_ENTRY)((codes[i] - min) >> column->drop) << column->shift;
}

static void SX_NAME(make_block)(const struct sx_sort_plan *plan, int64_t first, int64_t rows,
                                SX_ENTRY *entries) {
    sx_u128 codes[SX_SORT_BLOCK];
    for (int64_t i = 0; i < rows; i++)
        entries[i] = (SX_ENTRY)first + (SX_ENTRY)i;
    for (int k = 0; k < plan->n_encoded; k++) {
        const struct sx_sort_column *column = &plan->columns[k];
        if (column->bits == 0)
            continue;
        sx_sort_codes(column, first, rows, codes);
        if (column->has_null || column->is_wide)
            SX_NAME(add_numbers)
        (column, codes, column->has_null ? column->values.valid + first : NULL, rows, entries);
        else SX_NAME(add_words)(column, (const uint64_t *)codes, rows, entries);
    }
}

static void SX_NAME(insertion_sort)(SX_ENTRY *entries, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        SX_ENTRY entry = entries[i];
        int64_t at = i;
        for (; at > 0 && entries[at - 1] > entry; at--)
            entries[at] = entries[at - 1];
        entries[at] = entry;
    }
}

/* Shift that brings the highest bits in which entries differ into the low RADIX_BITS; -1 when only rows
 * differ, which are in order. */
static int SX_NAME(radix_shift)(const SX_ENTRY *entries, int64_t n, int row_bits) {
    SX_ENTRY differing = 0;
    for (int64_t i = 1; i < n; i++)
        differing |= entries[i] ^ entries[0];
    sx_u128 wide = differing;
    uint64_t high = (uint64_t)(wide >> 64), low = (uint64_t)wide;
    int length = high ? 128 - __builtin_clzll(high) : low ? 64 - __builtin_clzll(low) : 0;
    if (length <= row_bits)
        return -1;
    return length - RADIX_BITS > row_bits ? length - RADIX_BITS : row_bits; /* runs stay whole */
}

/* Sorts the first `limit` of n entries (whole runs of equal keys) into `from` or, with `to_other`, into
 * `other`; returns how many there are in order, at least limit. Entries come in order of rows. Stops early
 * when cancelled. */
static int64_t SX_NAME(radix_sort)(const struct sx_stream *stream, SX_ENTRY *from, SX_ENTRY *other, int64_t n,
                                   int64_t limit, int row_bits, bool to_other) {
    if (n > CANCEL_ROWS && stream->cancel && atomic_load_explicit(stream->cancel, memory_order_relaxed))
        return n;
    int shift = n > SMALL_ROWS ? SX_NAME(radix_shift)(from, n, row_bits) : -1;
    if (shift < 0) {
        if (n <= SMALL_ROWS)
            SX_NAME(insertion_sort)(from, n);
        if (to_other)
            memcpy(other, from, (size_t)n * sizeof *from);
        return n;
    }
    int64_t counts[RADIX_BUCKETS] = {0}, places[RADIX_BUCKETS];
    for (int64_t i = 0; i < n; i++)
        counts[(uint64_t)(from[i] >> shift) % RADIX_BUCKETS]++;
    int64_t kept = 0;
    unsigned n_kept = 0;
    for (; n_kept < RADIX_BUCKETS && kept < limit; n_kept++) {
        places[n_kept] = kept;
        kept += counts[n_kept];
    }
    for (int64_t i = 0; i < n; i++) {
        unsigned bucket = (unsigned)((uint64_t)(from[i] >> shift) % RADIX_BUCKETS);
        if (bucket < n_kept)
            other[places[bucket]++] = from[i];
    }
    int64_t at = 0;
    for (unsigned b = 0; b < n_kept; b++) {
        int64_t sorted = counts[b];
        if (sorted)
            sorted = SX_NAME(radix_sort)(stream, other + at, from + at, counts[b], limit - at, row_bits,
                                         !to_other);
        if (b + 1 == n_kept)
            return at + sorted;
        at += counts[b];
    }
    return at;
}

/* Rows of the sorted entries; runs of equal keys by comparing columns where entries don't hold them all. */
static enum sx_status SX_NAME(emit_rows)(struct sx_stream *stream, const struct sx_sort_plan *plan,
                                         const SX_ENTRY *entries, int64_t n, int64_t limit, int64_t *scratch,
                                         int64_t *out_rows) {
    const SX_ENTRY row_mask = ((SX_ENTRY)1 << plan->row_bits) - 1;
    for (int64_t at = 0, unchecked = 0; at < limit;) {
        if (at >= unchecked) {
            SX_TRY(sx_cpu_check_cancel(stream));
            unchecked = at + CANCEL_ROWS;
        }
        int64_t end = at + 1;
        while (!plan->is_exact && end < n && !((entries[end] ^ entries[at]) >> plan->row_bits))
            end++;
        int64_t run = end - at, emitted = end < limit ? run : limit - at;
        int64_t *rows = run > 1 ? scratch : out_rows + at;
        for (int64_t i = 0; i < run; i++)
            rows[i] = (int64_t)(entries[at + i] & row_mask);
        if (run > 1) {
            SX_TRY(sx_sort_run(stream, plan, rows, run, scratch + n));
            memcpy(out_rows + at, rows, (size_t)emitted * sizeof *rows);
        }
        at = end;
    }
    return SX_OK;
}

/* Two arrays of entries: the second is where sorting moves them. */
struct SX_NAME(buffers) {
    void *memory, *other;
    int64_t capacity;
};

static void SX_NAME(release)(struct sx_stream *stream, struct SX_NAME(buffers) * buffers) {
    size_t bytes = (size_t)buffers->capacity * sizeof(SX_ENTRY);
    sx_pool_free(stream->pool, buffers->memory, bytes);
    sx_pool_free(stream->pool, buffers->other, bytes);
    *buffers = (struct SX_NAME(buffers)){0};
}

/* Keeps the first `n` entries. */
static enum sx_status SX_NAME(grow)(struct sx_stream *stream, struct SX_NAME(buffers) * buffers, int64_t n,
                                    int64_t capacity) {
    struct SX_NAME(buffers) grown = {.capacity = capacity};
    size_t bytes = (size_t)capacity * sizeof(SX_ENTRY);
    enum sx_status status;
    SX_GO(sx_pool_alloc(stream->pool, bytes, &grown.memory, &stream->error));
    SX_GO(sx_pool_alloc(stream->pool, bytes, &grown.other, &stream->error));
    if (n)
        memcpy(grown.memory, buffers->memory, (size_t)n * sizeof(SX_ENTRY));
    SX_NAME(release)(stream, buffers);
    *buffers = grown;
    return SX_OK;
out:
    SX_NAME(release)(stream, &grown);
    return status;
}

/* All entries, sorted as far as `limit` asks. */
static enum sx_status SX_NAME(sort_all)(struct sx_stream *stream, const struct sx_sort_plan *plan,
                                        int64_t limit, struct SX_NAME(buffers) * buffers, int64_t *out_n) {
    SX_TRY(SX_NAME(grow)(stream, buffers, 0, plan->rows));
    SX_ENTRY *entries = buffers->memory;
    for (int64_t at = 0; at < plan->rows; at += SX_SORT_BLOCK) {
        if (at % (SX_SORT_BLOCK * 256) == 0)
            SX_TRY(sx_cpu_check_cancel(stream));
        int64_t left = plan->rows - at;
        SX_NAME(make_block)(plan, at, left < SX_SORT_BLOCK ? left : SX_SORT_BLOCK, entries + at);
    }
    *out_n = SX_NAME(radix_sort)(stream, entries, buffers->other, plan->rows, limit, plan->row_bits, false);
    return sx_cpu_check_cancel(stream);
}

/* Sorts what has been sifted out, keeps the first `limit` and those with the key of the last; greater entries
 * than *out_bound are not needed any more. */
static int64_t SX_NAME(cut)(struct sx_stream *stream, const struct sx_sort_plan *plan, int64_t limit,
                            const struct SX_NAME(buffers) * buffers, int64_t n, SX_ENTRY *out_bound) {
    SX_ENTRY *entries = buffers->memory;
    const SX_ENTRY rows = ((SX_ENTRY)1 << plan->row_bits) - 1;
    n = SX_NAME(radix_sort)(stream, entries, buffers->other, n, limit < n ? limit : n, plan->row_bits, false);
    if (n < limit)
        return n;
    int64_t kept = limit;
    *out_bound = plan->is_exact ? entries[limit - 1] : entries[limit - 1] | rows;
    while (kept < n && entries[kept] <= *out_bound)
        kept++;
    return kept;
}

/* The same as sort_all for a small limit, in little memory. */
static enum sx_status SX_NAME(sift)(struct sx_stream *stream, const struct sx_sort_plan *plan, int64_t limit,
                                    struct SX_NAME(buffers) * buffers, int64_t *out_n) {
    SX_ENTRY block[SX_SORT_BLOCK], bound = ~(SX_ENTRY)0;
    int64_t n = 0;
    SX_TRY(SX_NAME(grow)(stream, buffers, 0, 4 * limit > TOP_MIN_ENTRIES ? 4 * limit : TOP_MIN_ENTRIES));
    for (int64_t at = 0; at < plan->rows; at += SX_SORT_BLOCK) {
        int64_t rows = plan->rows - at < SX_SORT_BLOCK ? plan->rows - at : SX_SORT_BLOCK;
        SX_ENTRY *entries = buffers->memory;
        SX_NAME(make_block)(plan, at, rows, block);
        for (int64_t i = 0; i < rows; i++) {
            entries[n] = block[i];
            n += block[i] <= bound;
        }
        if (n <= buffers->capacity - SX_SORT_BLOCK)
            continue;
        SX_TRY(sx_cpu_check_cancel(stream));
        n = SX_NAME(cut)(stream, plan, limit, buffers, n, &bound);
        if (n > buffers->capacity / 2)
            SX_TRY(SX_NAME(grow)(stream, buffers, n, 2 * buffers->capacity));
    }
    *out_n = SX_NAME(cut)(stream, plan, limit, buffers, n, &bound);
    return sx_cpu_check_cancel(stream);
}

static enum sx_status SX_NAME(sort)(struct sx_stream *stream, const struct sx_sort_plan *plan, int64_t limit,
                                    int64_t *out_rows) {
    struct SX_NAME(buffers) buffers = {0};
    size_t scratch_bytes = 0;
    void *scratch = NULL;
    int64_t n = 0;
    enum sx_status status = SX_OK;
    if (limit < plan->rows / TOP_SHARE)
        SX_GO(SX_NAME(sift)(stream, plan, limit, &buffers, &n));
    else
        SX_GO(SX_NAME(sort_all)(stream, plan, limit, &buffers, &n));
    if (!plan->is_exact) {
        scratch_bytes = 2 * (size_t)n * sizeof(int64_t);
        SX_GO(sx_pool_alloc(stream->pool, scratch_bytes, &scratch, &stream->error));
    }
    SX_GO(SX_NAME(emit_rows)(stream, plan, buffers.memory, n, limit, scratch, out_rows));
out:
    SX_NAME(release)(stream, &buffers);
    sx_pool_free(stream->pool, scratch, scratch_bytes);
    return status;
}

#undef SX_ENTRY
#undef SX_NAME
