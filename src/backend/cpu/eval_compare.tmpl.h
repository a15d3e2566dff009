/* Comparisons: TYPE, CTYPE, and EQUAL(a, b), LESS(a, b) over pointers to values; HASH(p). */
#define NAME(base) SX_NAME_OF(base, TYPE)

typedef bool (*NAME(compare_op))(const CTYPE *a, const CTYPE *b);

SX_INLINE bool NAME(is_equal)(const CTYPE *a, const CTYPE *b) {
    return EQUAL(a, b);
}
SX_INLINE bool NAME(is_unequal)(const CTYPE *a, const CTYPE *b) {
    return !EQUAL(a, b);
}
SX_INLINE bool NAME(is_less)(const CTYPE *a, const CTYPE *b) {
    return LESS(a, b);
}
SX_INLINE bool NAME(is_at_most)(const CTYPE *a, const CTYPE *b) {
    return !LESS(b, a);
}

SX_INLINE void NAME(compare_loop)(struct sx_eval_call *call, NAME(compare_op) op) {
    const CTYPE *a = call->in[0], *b = call->in[1];
    uint8_t *restrict out = call->out;
    const int64_t n = call->n;
    if (call->step[1] == 0) {
        const CTYPE right = b[0];
        for (int64_t i = 0; i < n; i++)
            out[i] = op(&a[i], &right);
    } else if (call->step[0] == 0) {
        const CTYPE left = a[0];
        for (int64_t i = 0; i < n; i++)
            out[i] = op(&left, &b[i]);
    } else {
        for (int64_t i = 0; i < n; i++)
            out[i] = op(&a[i], &b[i]);
    }
}

static void NAME(eq)(struct sx_eval_call *call) {
    NAME(compare_loop)(call, NAME(is_equal));
}
static void NAME(ne)(struct sx_eval_call *call) {
    NAME(compare_loop)(call, NAME(is_unequal));
}
static void NAME(lt)(struct sx_eval_call *call) {
    NAME(compare_loop)(call, NAME(is_less));
}
static void NAME(le)(struct sx_eval_call *call) {
    NAME(compare_loop)(call, NAME(is_at_most));
}
static void NAME(distinct)(struct sx_eval_call *call) {
    NAME(ne)(call);
    compare_nulls(call, true);
}
static void NAME(not_distinct)(struct sx_eval_call *call) {
    NAME(eq)(call);
    compare_nulls(call, false);
}

SX_INLINE void NAME(in_short)(struct sx_eval_call *call, const CTYPE *list, int32_t count) {
    const CTYPE *a = call->in[0];
    uint8_t *restrict out = call->out;
    const int64_t n = call->n;
    for (int64_t i = 0; i < n; i++)
        out[i] = EQUAL(&a[i], &list[0]);
    for (int32_t k = 1; k < count; k++) {
        const CTYPE constant = list[k];
        for (int64_t i = 0; i < n; i++)
            out[i] |= EQUAL(&a[i], &constant);
    }
}

static void NAME(in_list)(struct sx_eval_call *call) {
    const struct sx_value_set *set = call->of->set;
    const CTYPE *a = call->in[0], *list = set->values;
    uint8_t *restrict out = call->out;
    if (!set->slots) {
        NAME(in_short)(call, list, set->count);
        return;
    }
    for (int64_t i = 0; i < call->n; i++) {
        uint64_t at = HASH(&a[i]) & set->slot_mask;
        while (set->slots[at] >= 0 && !EQUAL(&a[i], &list[set->slots[at]]))
            at = (at + 1) & set->slot_mask;
        out[i] = set->slots[at] >= 0;
    }
}

static void NAME(set_fill)(struct sx_value_set *set) {
    const CTYPE *list = set->values;
    for (int32_t k = 0; k < set->count; k++) {
        uint64_t at = HASH(&list[k]) & set->slot_mask;
        while (set->slots[at] >= 0)
            at = (at + 1) & set->slot_mask;
        set->slots[at] = k;
    }
}

#undef NAME
#undef TYPE
#undef CTYPE
#undef EQUAL
#undef LESS
#undef HASH
