/* The rounds of a sort. A round moves 32 bytes a row for every 8 bits of its keys (radix.cu), with about 40
 * more for its words and ties; memory is 24 bytes a row, and what the ties take. */
#include "backend/cuda/launch.h"
#include "backend/cuda/launch_hash.h"
#include "backend/cuda/sort.h"

enum {
    DIGIT_BITS = 8,
    LIMIT_SHARE = 8,    /* with a limit below rows / LIMIT_SHARE, rows are sifted first */
    SIFTING_LEVELS = 2, /* 22 bits of the first key */
    COUNT_COUNTER = 0,  /* of the control block */
    LEFT_COUNTER = 1,
    BITS_COUNTER = 2
};

/* Rows that are not told apart yet. Starts zeroed, may be released zeroed. */
struct round {
    int64_t n;
    int64_t n_segments;
    struct sx_buffer *keys;      /* uint64_t[n] */
    struct sx_buffer *rows;      /* uint32_t[n], as the next two; NULL: 0, 1, … */
    struct sx_buffer *positions; /* where the rows go in the order; NULL: 0, 1, … */
    struct sx_buffer *segments;  /* rows of one number are tied; NULL: all */
    int64_t word;                /* told apart by nothing before it, nor by other bits of it than: */
    uint64_t mask;
};

static void release(struct round *round) {
    sx_buffer_release(round->keys);
    sx_buffer_release(round->rows);
    sx_buffer_release(round->positions);
    sx_buffer_release(round->segments);
    *round = (struct round){0};
}

static void *data_of(const struct sx_buffer *buffer) {
    return buffer ? buffer->data : NULL;
}

static struct cuda_sort_rows rows_of(const struct round *round) {
    return (struct cuda_sort_rows){round->n, data_of(round->rows), data_of(round->segments)};
}

static enum sx_status make(struct cuda_stream *stream, int64_t n, size_t width, struct sx_buffer **out) {
    return sx_buffer_create(stream->base.pool, (size_t)n * width, out, &stream->base.error);
}

/* ---- keys ---- */

/* Goes to the next word in which tied rows differ (n_words: there is none) and fills the keys with it; mask:
 * the bits that differ. Synchronises. */
static enum sx_status next_word(struct cuda_stream *stream, const struct cuda_sort_plan *plan,
                                struct round *round) {
    const struct cuda_sort_rows rows = rows_of(round);
    int64_t *left, *bits;
    SX_TRY(cuda_counter_reset(stream, LEFT_COUNTER, &left));
    SX_TRY(cuda_counter_reset(stream, BITS_COUNTER, &bits));
    if (!round->keys)
        SX_TRY(make(stream, round->n, sizeof(uint64_t), &round->keys));
    cuda_sort_find_word(stream->handle, plan->words, rows, round->word, round->mask, left);
    cuda_sort_fill_words(stream->handle, plan->words, rows, left, round->keys->data, bits);
    SX_TRY(cuda_launched(stream, "words of sort keys"));
    SX_TRY(cuda_sync_counters(stream, "tied rows of a sort"));
    const int64_t word = plan->words.n_words - cuda_counter(stream, LEFT_COUNTER);
    const uint64_t differing = (uint64_t)cuda_counter(stream, BITS_COUNTER);
    round->mask = word == round->word ? differing & round->mask : differing;
    round->word = word;
    return SX_OK;
}

/* Compress of "Hacker's Delight" 7-4. */
static struct cuda_sort_gather gather_of(uint64_t mask) {
    struct cuda_sort_gather gather = {.mask = mask};
    uint64_t unwanted = ~mask << 1;
    for (int i = 0; i < 6; i++) {
        uint64_t parity = unwanted;
        for (int by = 1; by < 64; by *= 2)
            parity ^= parity << by;
        gather.moves[i] = parity & mask;
        mask = (mask ^ gather.moves[i]) | gather.moves[i] >> (1 << i);
        unwanted &= ~parity;
    }
    return gather;
}

static uint64_t highest_bits(uint64_t mask, int n) {
    while (__builtin_popcountll(mask) > n)
        mask &= mask - 1;
    return mask;
}

/* Words become keys of as many bits as fit beside the segments' numbers. Returns the number of bits; the bits
 * that are left for the next round go to *out_rest. */
static int make_keys(struct cuda_stream *stream, const struct round *round, uint64_t *out_rest) {
    const uint64_t last_segment = (uint64_t)round->n_segments - 1;
    const int segment_bits = last_segment ? 64 - __builtin_clzll(last_segment) : 0;
    const uint64_t used = highest_bits(round->mask, 64 - segment_bits);
    const int bits = __builtin_popcountll(used);
    struct cuda_sort_rows rows = rows_of(round);
    if (segment_bits == 0) /* or its number, of no bits, would be shifted by all 64 */
        rows.segments = NULL;
    cuda_sort_make_keys(stream->handle, rows, gather_of(used), bits, round->keys->data);
    *out_rest = round->mask & ~used;
    return segment_bits + bits;
}

/* ---- passes ---- */

static enum sx_status sort_few(struct cuda_stream *stream, struct round *round, int bits) {
    struct sx_buffer *keys = NULL, *rows = NULL;
    enum sx_status status;
    SX_GO(make(stream, round->n, sizeof(uint64_t), &keys));
    SX_GO(make(stream, round->n, sizeof(uint32_t), &rows));
    const struct cuda_radix_pass pass = {.n = round->n,
                                         .keys = round->keys->data,
                                         .rows = data_of(round->rows),
                                         .bits = DIGIT_BITS,
                                         .out_keys = keys->data,
                                         .out_rows = rows->data};
    cuda_radix_small(stream->handle, &pass, bits);
    SX_GO(cuda_launched(stream, "sorting few rows"));
    release(&(struct round){.keys = round->keys, .rows = round->rows});
    round->keys = keys;
    round->rows = rows;
    keys = rows = NULL;
out:
    sx_buffer_release(keys);
    sx_buffer_release(rows);
    return status;
}

/* By the keys' low `bits` bits (at least 1). Without `keys_wanted` keys are not moved by the last pass. */
static enum sx_status sort_keys(struct cuda_stream *stream, struct round *round, int bits, bool keys_wanted) {
    if (round->n <= CUDA_RADIX_SMALL)
        return sort_few(stream, round, bits);
    struct sx_buffer *scratch = NULL, *keys = NULL, *rows = NULL, *more_rows = NULL;
    enum sx_status status;
    SX_GO(make(stream, (int64_t)cuda_radix_bytes(round->n, DIGIT_BITS), 1, &scratch));
    SX_GO(make(stream, round->n, sizeof(uint64_t), &keys));
    SX_GO(make(stream, round->n, sizeof(uint32_t), &rows));
    if (!round->rows && bits > DIGIT_BITS)
        SX_GO(make(stream, round->n, sizeof(uint32_t), &more_rows));
    for (int shift = 0; shift < bits; shift += DIGIT_BITS) {
        const bool is_last = shift + DIGIT_BITS >= bits;
        const struct cuda_radix_pass pass = {.n = round->n,
                                             .keys = round->keys->data,
                                             .rows = data_of(round->rows),
                                             .shift = shift,
                                             .bits = is_last ? bits - shift : DIGIT_BITS,
                                             .out_keys = is_last && !keys_wanted ? NULL : keys->data,
                                             .out_rows = rows->data,
                                             .scratch = scratch->data};
        cuda_radix(stream->handle, &pass, NULL);
        struct sx_buffer *sorted = keys, *sorted_rows = rows;
        keys = round->keys;
        rows = round->rows ? round->rows : more_rows;
        more_rows = round->rows ? more_rows : NULL;
        round->keys = sorted;
        round->rows = sorted_rows;
    }
    SX_GO(cuda_launched(stream, "sorting passes"));
out:
    sx_buffer_release(scratch);
    sx_buffer_release(keys);
    sx_buffer_release(rows);
    sx_buffer_release(more_rows);
    return status;
}

/* ---- a small limit ---- */

/* Flags rows whose keys (of `bits` bits) are among the `limit` smallest by their first bits. */
static enum sx_status flag_smallest(struct cuda_stream *stream, const struct round *round, int bits,
                                    int64_t limit, uint8_t *flags) {
    struct cuda_sort_threshold none = {.wanted = limit};
    struct sx_buffer *threshold;
    SX_TRY(cuda_upload_buffer(stream, &none, sizeof none, &threshold));
    int above = bits;
    for (int level = 0; level < SIFTING_LEVELS && above > 0; level++) {
        const int shift = above > CUDA_SORT_LEVEL_BITS ? above - CUDA_SORT_LEVEL_BITS : 0;
        cuda_sort_narrow(stream->handle, round->keys->data, round->n, above, shift, threshold->data);
        above = shift;
    }
    cuda_sort_flag_smallest(stream->handle, round->keys->data, round->n, above, threshold->data, flags);
    const enum sx_status status = cuda_launched(stream, "threshold of a sort");
    sx_buffer_release(threshold);
    return status;
}

/* Drops rows of the first round that are not among the first `limit`. Costs 34 bytes a row. Synchronises. */
static enum sx_status sift(struct cuda_stream *stream, struct round *round, int bits, int64_t limit) {
    struct sx_buffer *flags = NULL, *index = NULL, *made = NULL, *keys = NULL, *rows = NULL;
    void *scratch;
    enum sx_status status;
    SX_GO(make(stream, round->n, 1, &flags));
    SX_GO(make(stream, round->n, sizeof(int64_t), &index));
    SX_GO(cuda_select_scratch(stream, round->n, &made, &scratch));
    SX_GO(flag_smallest(stream, round, bits, limit, flags->data));
    cuda_select_flags_i64(stream->handle, flags->data, round->n, 0, index->data,
                          cuda_counter_place(stream, COUNT_COUNTER), scratch);
    SX_GO(cuda_launched(stream, "sifting"));
    SX_GO(cuda_sync(stream, "first rows of a sort"));
    const int64_t n = cuda_counter(stream, COUNT_COUNTER);
    SX_GO(make(stream, n, sizeof(uint64_t), &keys));
    SX_GO(make(stream, n, sizeof(uint32_t), &rows));
    cuda_sort_take(stream->handle, round->keys->data, index->data, n, keys->data, rows->data);
    SX_GO(cuda_launched(stream, "sifting"));
    release(&(struct round){.keys = round->keys});
    round->keys = keys;
    round->rows = rows;
    round->n = n;
    keys = rows = NULL;
out:
    sx_buffer_release(flags);
    sx_buffer_release(index);
    sx_buffer_release(made);
    sx_buffer_release(keys);
    sx_buffer_release(rows);
    return status;
}

/* ---- ties ---- */

/* Sums of the ties' counts, and what they come to. Synchronises. */
static enum sx_status count_ties(struct cuda_stream *stream, const struct round *round, int64_t limit,
                                 struct sx_buffer **out_sums, int64_t *out_rows, int64_t *out_segments) {
    struct sx_buffer *sums = NULL, *scratch = NULL;
    int64_t all = 0;
    enum sx_status status;
    SX_GO(make(stream, round->n + 1, sizeof(int64_t), &sums));
    SX_GO(make(stream, (int64_t)cuda_exclusive_sum_bytes(round->n), 1, &scratch));
    cuda_sort_count_ties(stream->handle, round->keys->data, data_of(round->positions), round->n, limit,
                         sums->data);
    cuda_exclusive_sum(stream->handle, sums->data, round->n, sums->data, scratch->data);
    SX_GO(cuda_launched(stream, "ties"));
    SX_GO(cuda_download(stream, &all, (int64_t *)sums->data + round->n, sizeof all, "ties of a sort"));
    *out_rows = all & UINT32_MAX;
    *out_segments = all >> 32;
    *out_sums = sums;
    sums = NULL;
out:
    sx_buffer_release(sums);
    sx_buffer_release(scratch);
    return status;
}

/* Leaves the tied rows (perhaps none) in the round. */
static enum sx_status keep_ties(struct cuda_stream *stream, int64_t limit, struct round *round) {
    struct round tied = {.word = round->word, .mask = round->mask};
    struct sx_buffer *sums = NULL;
    enum sx_status status;
    SX_GO(count_ties(stream, round, limit, &sums, &tied.n, &tied.n_segments));
    if (tied.n > 0) {
        SX_GO(make(stream, tied.n, sizeof(uint32_t), &tied.rows));
        SX_GO(make(stream, tied.n, sizeof(uint32_t), &tied.positions));
        SX_GO(make(stream, tied.n, sizeof(uint32_t), &tied.segments));
        cuda_sort_take_ties(stream->handle, sums->data, round->rows->data, data_of(round->positions),
                            round->n, tied.rows->data, tied.positions->data, tied.segments->data);
        SX_GO(cuda_launched(stream, "ties"));
    }
    struct round swapped = *round;
    *round = tied;
    tied = swapped;
out:
    release(&tied);
    sx_buffer_release(sums);
    return status;
}

/* ---- rounds ---- */

/* Puts the sorted rows into *order: those of the first round are the order so far. */
static enum sx_status place(struct cuda_stream *stream, const struct round *round, struct sx_buffer **order) {
    if (!*order) {
        *order = sx_buffer_retain(round->rows);
        return SX_OK;
    }
    cuda_sort_place(stream->handle, round->rows->data, round->positions->data, round->n, (*order)->data);
    return cuda_launched(stream, "placing rows");
}

/* One round; round->n is 0 after the last. */
static enum sx_status run_round(struct cuda_stream *stream, const struct cuda_sort_plan *plan, int64_t limit,
                                struct round *round, struct sx_buffer **order) {
    uint64_t rest;
    SX_TRY(next_word(stream, plan, round));
    if (round->word == plan->words.n_words) {
        round->n = 0;
        return SX_OK;
    }
    const int bits = make_keys(stream, round, &rest);
    SX_TRY(cuda_launched(stream, "sort keys"));
    if (!*order && round->n > CUDA_RADIX_SMALL && limit < round->n / LIMIT_SHARE)
        SX_TRY(sift(stream, round, bits, limit));
    round->word += rest == 0;
    round->mask = rest ? rest : ~UINT64_C(0);
    const bool is_last = round->word == plan->words.n_words;
    SX_TRY(sort_keys(stream, round, bits, !is_last));
    SX_TRY(place(stream, round, order));
    if (!is_last)
        return keep_ties(stream, limit, round);
    round->n = 0;
    return SX_OK;
}

enum sx_status cuda_sort_order(struct cuda_stream *stream, const struct cuda_sort_plan *plan, int64_t limit,
                               struct sx_tensor *out_order) {
    struct round round = {.n = plan->rows, .n_segments = 1, .mask = ~UINT64_C(0)};
    struct sx_buffer *order = NULL;
    struct sx_tensor out = {0};
    enum sx_status status = SX_OK;
    while (round.n > 1 && plan->words.n_words > 0) {
        SX_GO(cuda_enter(&stream->base, &stream)); /* cancelled? */
        SX_GO(run_round(stream, plan, limit, &round, &order));
    }
    SX_GO(sx_tensor_create_index(stream->base.pool, SX_TYPE_I64, limit, &out, &stream->base.error));
    if (order)
        cuda_sort_widen(stream->handle, order->data, limit, out.values);
    else
        cuda_fill_iota_i64(stream->handle, out.values, 0, limit);
    SX_GO(cuda_launched(stream, "order of rows"));
    *out_order = out;
    out = (struct sx_tensor){0};
out:
    release(&round);
    sx_buffer_release(order);
    sx_tensor_release(&out);
    return status;
}
