#include <stdlib.h>

#include "backend/cpu/eval.h"
#include "tensor/semantics_date.h"

/* Constants of an IN list; a hash table when they are many. */
struct sx_value_set {
    void *values;
    int32_t count;
    int32_t *slots; /* -1: empty; NULL: a short list */
    uint64_t slot_mask;
};

enum { SHORT_LIST = 12 };

/* Mends the result of a comparison where a side is null. */
static void compare_nulls(struct sx_eval_call *call, bool when_distinct) {
    const uint8_t *a = call->valid[0], *b = call->valid[1];
    uint8_t *restrict out = call->out;
    call->out_valid = NULL;
    for (int64_t i = 0; (a || b) && i < call->n; i++) {
        const bool valid_a = !a || a[i * call->step[0]], valid_b = !b || b[i * call->step[1]];
        if (!valid_a || !valid_b)
            out[i] = (valid_a != valid_b) == when_distinct;
    }
}

#define TYPE        I8
#define CTYPE       int8_t
#define EQUAL(a, b) (*(a) == *(b))
#define LESS(a, b)  (*(a) < *(b))
#define HASH(a)     sx_hash_u64((uint64_t) * (a))
#include "backend/cpu/eval_compare.tmpl.h"
#define TYPE        I16
#define CTYPE       int16_t
#define EQUAL(a, b) (*(a) == *(b))
#define LESS(a, b)  (*(a) < *(b))
#define HASH(a)     sx_hash_u64((uint64_t) * (a))
#include "backend/cpu/eval_compare.tmpl.h"
#define TYPE        I32
#define CTYPE       int32_t
#define EQUAL(a, b) (*(a) == *(b))
#define LESS(a, b)  (*(a) < *(b))
#define HASH(a)     sx_hash_u64((uint64_t) * (a))
#include "backend/cpu/eval_compare.tmpl.h"
#define TYPE        I64
#define CTYPE       int64_t
#define EQUAL(a, b) (*(a) == *(b))
#define LESS(a, b)  (*(a) < *(b))
#define HASH(a)     sx_hash_u64((uint64_t) * (a))
#include "backend/cpu/eval_compare.tmpl.h"
#define TYPE        I128
#define CTYPE       sx_i128
#define EQUAL(a, b) (*(a) == *(b))
#define LESS(a, b)  (*(a) < *(b))
#define HASH(a)     sx_hash_u128((sx_u128) * (a))
#include "backend/cpu/eval_compare.tmpl.h"
#define TYPE        U8
#define CTYPE       uint8_t
#define EQUAL(a, b) (*(a) == *(b))
#define LESS(a, b)  (*(a) < *(b))
#define HASH(a)     sx_hash_u64((uint64_t) * (a))
#include "backend/cpu/eval_compare.tmpl.h"
#define TYPE        U16
#define CTYPE       uint16_t
#define EQUAL(a, b) (*(a) == *(b))
#define LESS(a, b)  (*(a) < *(b))
#define HASH(a)     sx_hash_u64((uint64_t) * (a))
#include "backend/cpu/eval_compare.tmpl.h"
#define TYPE        U32
#define CTYPE       uint32_t
#define EQUAL(a, b) (*(a) == *(b))
#define LESS(a, b)  (*(a) < *(b))
#define HASH(a)     sx_hash_u64((uint64_t) * (a))
#include "backend/cpu/eval_compare.tmpl.h"
#define TYPE        U64
#define CTYPE       uint64_t
#define EQUAL(a, b) (*(a) == *(b))
#define LESS(a, b)  (*(a) < *(b))
#define HASH(a)     sx_hash_u64((uint64_t) * (a))
#include "backend/cpu/eval_compare.tmpl.h"
#define TYPE        U128
#define CTYPE       sx_u128
#define EQUAL(a, b) (*(a) == *(b))
#define LESS(a, b)  (*(a) < *(b))
#define HASH(a)     sx_hash_u128((sx_u128) * (a))
#include "backend/cpu/eval_compare.tmpl.h"
#define TYPE        F32
#define CTYPE       float
#define EQUAL(a, b) sx_f64_equal((double)*(a), (double)*(b))
#define LESS(a, b)  sx_f64_less((double)*(a), (double)*(b))
#define HASH(a)     sx_hash_f64((double)*(a))
#include "backend/cpu/eval_compare.tmpl.h"
#define TYPE        F64
#define CTYPE       double
#define EQUAL(a, b) sx_f64_equal((double)*(a), (double)*(b))
#define LESS(a, b)  sx_f64_less((double)*(a), (double)*(b))
#define HASH(a)     sx_hash_f64((double)*(a))
#include "backend/cpu/eval_compare.tmpl.h"
#define TYPE        STRING
#define CTYPE       struct sx_string
#define EQUAL(a, b) sx_string_equal((a), (b))
#define LESS(a, b)  (sx_string_compare((a), (b)) < 0)
#define HASH(a)     sx_hash_string(a)
#include "backend/cpu/eval_compare.tmpl.h"
/* Intervals of equal order differ in their parts, so they share one slot's chain. */
#define TYPE        INTERVAL
#define CTYPE       struct sx_interval
#define EQUAL(a, b) (sx_interval_compare(*(a), *(b)) == 0)
#define LESS(a, b)  (sx_interval_compare(*(a), *(b)) < 0)
#define HASH(a)     ((void)(a), UINT64_C(0))
#include "backend/cpu/eval_compare.tmpl.h"

static const struct {
    sx_eval_kernel eq, ne, lt, le, distinct, not_distinct, in_list;
    void (*set_fill)(struct sx_value_set *set);
} kernels[SX_PHYS_COUNT] = {
#define COMPARE_ROW(name, ctype)                                                         \
    [SX_PHYS_##name] = {eq_##name,       ne_##name,           lt_##name,      le_##name, \
                        distinct_##name, not_distinct_##name, in_list_##name, set_fill_##name},
    SX_PHYS_LIST(COMPARE_ROW)
#undef COMPARE_ROW
};

sx_eval_kernel sx_eval_kernel_compare(enum sx_function function, enum sx_phys phys) {
    switch (function) {
    case SX_FN_EQ: return kernels[phys].eq;
    case SX_FN_NE: return kernels[phys].ne;
    case SX_FN_LT: return kernels[phys].lt;
    case SX_FN_LE: return kernels[phys].le;
    case SX_FN_DISTINCT_FROM: return kernels[phys].distinct;
    case SX_FN_NOT_DISTINCT_FROM: return kernels[phys].not_distinct;
    default: return NULL;
    }
}

sx_eval_kernel sx_eval_kernel_in_list(enum sx_phys phys) {
    return kernels[phys].in_list;
}

static enum sx_status no_memory(struct sx_eval *eval) {
    return sx_error_set(&eval->stream->error, SX_OUT_OF_MEMORY, "no memory for the constants of an IN list");
}

static enum sx_status make_slots(struct sx_eval *eval, struct sx_value_set *set) {
    uint64_t n_slots = 2 * SHORT_LIST;
    while (n_slots < 2 * (uint64_t)set->count)
        n_slots *= 2;
    n_slots = (uint64_t)1 << (64 - __builtin_clzll(n_slots));
    set->slots = malloc(n_slots * sizeof *set->slots);
    if (!set->slots)
        return no_memory(eval);
    set->slot_mask = n_slots - 1;
    for (uint64_t i = 0; i < n_slots; i++)
        set->slots[i] = -1;
    return SX_OK;
}

enum sx_status sx_value_set_create(struct sx_eval *eval, const struct sx_instruction *instruction,
                                   struct sx_value_set **out_set) {
    struct sx_value_set *set = calloc(1, sizeof *set);
    struct sx_type type = sx_program_type(eval->program, instruction->arguments[0]);
    size_t width = sx_type_bytes(type);
    if (!set)
        return no_memory(eval);
    *out_set = set; /* the step owns it from here */
    set->values = malloc((size_t)instruction->list_count * width + 1);
    if (!set->values)
        return no_memory(eval);
    set->count = instruction->list_count;
    for (int32_t k = 0; k < set->count; k++)
        memcpy((char *)set->values + (size_t)k * width, eval->constants[instruction->list_first + k].values,
               width);
    if (set->count <= SHORT_LIST)
        return SX_OK;
    SX_TRY(make_slots(eval, set));
    kernels[sx_type_phys(type)].set_fill(set);
    return SX_OK;
}

void sx_value_set_destroy(struct sx_value_set *set) {
    if (!set)
        return;
    free(set->values);
    free(set->slots);
    free(set);
}
