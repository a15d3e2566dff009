#include "backend/cpu/eval.h"

#include <string.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

/* Above this share of rows left a later conjunct is computed for all rows of the block, below for those left.
 */
enum { DENSE_PERCENT = 25 };

/* ---- from a mask to positions ---- */

#if defined __AVX2__ && defined __BMI2__
/* Eight rows a step: the offsets of the set bytes are packed in a register. */
static int64_t compact_words(const uint8_t *mask, int64_t n, int32_t base, int32_t *out, int64_t *out_done) {
    int64_t count = 0, i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t bytes;
        memcpy(&bytes, mask + i, sizeof bytes);
        const uint64_t packed = _pext_u64(UINT64_C(0x0706050403020100), bytes * 255);
        const __m256i offsets = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)packed));
        const __m256i rows = _mm256_add_epi32(offsets, _mm256_set1_epi32(base + (int32_t)i));
        _mm256_storeu_si256((__m256i *)(void *)(out + count), rows);
        count += __builtin_popcountll(bytes);
    }
    *out_done = i;
    return count;
}
#else
static int64_t compact_words(const uint8_t *mask, int64_t n, int32_t base, int32_t *out, int64_t *out_done) {
    (void)mask, (void)n, (void)base, (void)out;
    *out_done = 0;
    return 0;
}
#endif

int64_t sx_mask_compact(const uint8_t *mask, int64_t n, int32_t base, const int32_t *positions,
                        int32_t *out) {
    int64_t done = 0;
    int64_t count = positions ? 0 : compact_words(mask, n, base, out, &done);
    for (int64_t i = done; i < n; i++) {
        out[count] = positions ? positions[i] : base + (int32_t)i;
        count += mask[i];
    }
    return count;
}

/* ---- conjuncts over one block ---- */

/* Rows of the block that are left: all of them, those with mask 1 (`has_mask`), or those in `positions`. */
struct block {
    struct sx_eval_frame frame;
    bool has_mask;
    int64_t left;
};

static int64_t count_ones(const uint8_t *mask, int64_t n) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        count += mask[i];
    return count;
}

/* mask = the conjunct's valid ones, among those before when `narrow`. */
static void take_mask(const struct sx_eval_register *r, int64_t n, bool narrow, uint8_t *restrict mask) {
    const uint8_t *values = r->values, *valid = r->valid;
    if (valid && narrow)
        for (int64_t i = 0; i < n; i++)
            mask[i] &= values[i] & valid[i];
    else if (valid)
        for (int64_t i = 0; i < n; i++)
            mask[i] = values[i] & valid[i];
    else if (narrow)
        for (int64_t i = 0; i < n; i++)
            mask[i] &= values[i];
    else
        memcpy(mask, values, (size_t)n);
}

/* Goes over from a mask to the list of rows that are left. */
static void to_positions(struct sx_eval *eval, struct block *block) {
    struct sx_eval_frame *frame = &block->frame;
    if (block->left < frame->n) {
        sx_mask_compact(eval->mask, frame->n, (int32_t)frame->base, frame->positions, eval->positions);
        frame->positions = eval->positions;
        frame->n = block->left;
    }
    frame->active = NULL;
    block->has_mask = false;
    sx_eval_begin(eval, frame);
}

static enum sx_status apply_conjunct(struct sx_eval *eval, int32_t reg, struct block *block) {
    struct sx_eval_frame *frame = &block->frame;
    eval->frame.active = frame->active = block->has_mask ? eval->mask : NULL;
    SX_TRY(sx_eval_register_compute(eval, reg));
    const struct sx_eval_register *r = &eval->registers[reg];
    if (r->is_constant) {
        if (!((const uint8_t *)r->values)[0] || (r->valid && !r->valid[0]))
            block->left = 0;
        return SX_OK;
    }
    take_mask(r, frame->n, block->has_mask, eval->mask);
    block->has_mask = true;
    block->left = count_ones(eval->mask, frame->n);
    return SX_OK;
}

/* Appends the rows of the block that pass all conjuncts. `out` has room for 8 more than the block's rows. */
static enum sx_status select_block(struct sx_eval *eval, const struct sx_eval_frame *frame, int32_t *out,
                                   int64_t *out_count) {
    const struct sx_program *program = eval->program;
    struct block block = {.frame = *frame, .left = frame->n};
    sx_eval_begin(eval, frame);
    for (int32_t o = 0; o < program->n_outputs && block.left > 0; o++) {
        if (block.has_mask && block.left * 100 < block.frame.n * DENSE_PERCENT)
            to_positions(eval, &block);
        SX_TRY(apply_conjunct(eval, program->outputs[o], &block));
    }
    *out_count = block.left;
    if (block.left == 0)
        return SX_OK;
    if (block.has_mask && block.left < block.frame.n) {
        sx_mask_compact(eval->mask, block.frame.n, (int32_t)block.frame.base, block.frame.positions, out);
    } else if (block.frame.positions) {
        memcpy(out, block.frame.positions, (size_t)block.left * sizeof *out);
    } else {
        for (int64_t i = 0; i < block.left; i++)
            out[i] = (int32_t)(block.frame.base + i);
    }
    return SX_OK;
}

static enum sx_status select_blocks(struct sx_eval *eval, const struct sx_batch *batch,
                                    const int32_t *positions, int64_t rows, int32_t *out,
                                    int64_t *out_count) {
    int64_t count = 0;
    for (int64_t base = 0; base < rows; base += SX_EVAL_BLOCK_ROWS) {
        const int64_t left = rows - base, n = left < SX_EVAL_BLOCK_ROWS ? left : SX_EVAL_BLOCK_ROWS;
        struct sx_eval_frame frame = {batch, base, NULL, n, NULL};
        if (positions) {
            frame.positions = positions + base;
            frame.base = 0;
        }
        if (sx_eval_cancelled(eval))
            return sx_error_set(&eval->stream->error, SX_CANCELLED, "cancelled");
        int64_t selected;
        SX_TRY(select_block(eval, &frame, out + count, &selected));
        count += selected;
        sx_eval_heap_reset(eval);
    }
    *out_count = count;
    return SX_OK;
}

enum sx_status sx_cpu_eval_select(struct sx_stream *stream, struct sx_eval *eval,
                                  const struct sx_batch *batch, const struct sx_tensor *selection,
                                  struct sx_tensor *out_selection) {
    const int64_t rows = selection ? selection->length : batch->rows;
    struct sx_tensor out = {0};
    enum sx_status status;
    eval->stream = stream;
    SX_GO(sx_eval_dict_prepare(eval, batch));
    SX_GO(sx_tensor_create_index(stream->pool, SX_TYPE_I32, rows + 8, &out, &stream->error));
    SX_GO(select_blocks(eval, batch, selection ? selection->values : NULL, rows, out.values, &out.length));
    *out_selection = out;
    return SX_OK;
out:
    sx_eval_heap_reset(eval);
    sx_tensor_release(&out);
    return status;
}
