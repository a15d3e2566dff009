#include "backend/cpu/eval.h"

#include <string.h>

/* ---- three-valued logic ---- */

/* AND (dominant 0) and OR (dominant 1): the dominant value decides also beside a NULL. */
SX_INLINE void logic(struct sx_eval_call *call, uint8_t dominant) {
    const uint8_t *a = call->in[0], *b = call->in[1], *valid_a = call->valid[0], *valid_b = call->valid[1];
    const int64_t n = call->n, step_a = call->step[0], step_b = call->step[1];
    uint8_t *restrict out = call->out, *restrict out_valid = call->own_valid;
    if (!valid_a && !valid_b) {
        for (int64_t i = 0; i < n; i++)
            out[i] = dominant ? a[i * step_a] | b[i * step_b] : a[i * step_a] & b[i * step_b];
        call->out_valid = NULL;
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const uint8_t x = a[i * step_a], y = b[i * step_b];
        const uint8_t known_x = valid_a ? valid_a[i * step_a] : 1,
                      known_y = valid_b ? valid_b[i * step_b] : 1;
        const uint8_t decided = (known_x & (x == dominant)) | (known_y & (y == dominant));
        out[i] = decided ? dominant : !dominant;
        out_valid[i] = decided | (known_x & known_y);
    }
    call->out_valid = out_valid;
}
static void logic_and(struct sx_eval_call *call) {
    logic(call, 0);
}
static void logic_or(struct sx_eval_call *call) {
    logic(call, 1);
}

static void logic_not(struct sx_eval_call *call) {
    const uint8_t *a = call->in[0];
    uint8_t *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++)
        out[i] = !a[i];
}

static void is_null(struct sx_eval_call *call) {
    const uint8_t *valid = call->valid[0];
    uint8_t *restrict out = call->out;
    call->out_valid = NULL;
    for (int64_t i = 0; i < call->n; i++)
        out[i] = valid ? !valid[i] : 0;
}
static void is_not_null(struct sx_eval_call *call) {
    const uint8_t *valid = call->valid[0];
    uint8_t *restrict out = call->out;
    call->out_valid = NULL;
    for (int64_t i = 0; i < call->n; i++)
        out[i] = valid ? valid[i] != 0 : 1;
}
static void is_true(struct sx_eval_call *call) {
    const uint8_t *a = call->in[0], *valid = call->valid[0];
    uint8_t *restrict out = call->out;
    call->out_valid = NULL;
    for (int64_t i = 0; i < call->n; i++)
        out[i] = valid ? a[i] & valid[i] : a[i];
}

sx_eval_kernel sx_eval_kernel_logic(enum sx_function function) {
    switch (function) {
    case SX_FN_AND: return logic_and;
    case SX_FN_OR: return logic_or;
    case SX_FN_NOT: return logic_not;
    case SX_FN_IS_NULL: return is_null;
    case SX_FN_IS_NOT_NULL: return is_not_null;
    case SX_FN_IS_TRUE: return is_true;
    default: return NULL;
    }
}

/* ---- choices ---- */

/* 1 where the condition is a valid 1; a constant's one byte stays one. */
static const uint8_t *truth_of(struct sx_eval_call *call, const uint8_t *condition, const uint8_t *valid) {
    if (!valid)
        return condition;
    uint8_t *truth = call->own_valid; /* free until choose_valid has read it row by row */
    const int64_t n = call->step[0] ? call->n : 1;
    for (int64_t i = 0; i < n; i++)
        truth[i] = condition[i] & valid[i];
    return truth;
}

static void choose_valid(struct sx_eval_call *call, const uint8_t *truth, const uint8_t *valid_a,
                         const uint8_t *valid_b) {
    const int64_t step = call->step[0], step_a = call->step[1], step_b = call->step[2];
    call->out_valid = NULL;
    if (!valid_a && !valid_b)
        return;
    uint8_t *out_valid =
        call->own_valid; /* may be `truth`: backwards, a constant's first byte is read last */
    for (int64_t i = call->n - 1; i >= 0; i--)
        out_valid[i] =
            truth[i * step] ? (valid_a ? valid_a[i * step_a] : 1) : (valid_b ? valid_b[i * step_b] : 1);
    call->out_valid = out_valid;
}

static void coalesce_valid(struct sx_eval_call *call) {
    const uint8_t *valid_a = call->valid[0], *valid_b = call->valid[1];
    call->out_valid = NULL;
    if (!valid_a || !valid_b)
        return;
    for (int64_t i = 0; i < call->n; i++)
        call->own_valid[i] = valid_a[i * call->step[0]] | valid_b[i * call->step[1]];
    call->out_valid = call->own_valid;
}

/* Words of a width, for values of any type. */
typedef uint8_t word_1;
typedef uint16_t word_2 __attribute__((may_alias));
typedef uint32_t word_4 __attribute__((may_alias));
typedef uint64_t word_8 __attribute__((may_alias));
typedef sx_u128 word_16 __attribute__((may_alias, aligned(8)));

#define TYPE  W1
#define CTYPE word_1
#include "backend/cpu/eval_choose.tmpl.h"
#define TYPE  W2
#define CTYPE word_2
#include "backend/cpu/eval_choose.tmpl.h"
#define TYPE  W4
#define CTYPE word_4
#include "backend/cpu/eval_choose.tmpl.h"
#define TYPE  W8
#define CTYPE word_8
#include "backend/cpu/eval_choose.tmpl.h"
#define TYPE  W16
#define CTYPE word_16
#include "backend/cpu/eval_choose.tmpl.h"

sx_eval_kernel sx_eval_kernel_choose(enum sx_function function, size_t value_bytes) {
    static const struct {
        sx_eval_kernel choose, coalesce, copy;
    } kernels[] = {
        {choose_W1, coalesce_W1, copy_W1},    {choose_W2, coalesce_W2, copy_W2},
        {choose_W4, coalesce_W4, copy_W4},    {choose_W8, coalesce_W8, copy_W8},
        {choose_W16, coalesce_W16, copy_W16},
    };
    int index = __builtin_ctzl(value_bytes);
    switch (function) {
    case SX_FN_CHOOSE: return kernels[index].choose;
    case SX_FN_COALESCE: return kernels[index].coalesce;
    case SX_FN_CONSTANT_OR_NULL: return kernels[index].copy;
    default: return NULL;
    }
}

void sx_eval_null(struct sx_eval_call *call) {
    memset(call->out, 0, (size_t)call->n * sx_type_bytes(call->of->instruction->type));
    memset(call->own_valid, 0, (size_t)call->n);
    call->out_valid = call->own_valid;
}

void sx_eval_zero(struct sx_eval_call *call) {
    memset(call->out, 0, (size_t)call->n * sx_type_bytes(call->of->instruction->type));
    call->out_valid = NULL;
}
