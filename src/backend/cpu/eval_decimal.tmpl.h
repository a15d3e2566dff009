/* Decimal + - *: TYPE, CTYPE, UTYPE. The checked kernels hold results within +-high. */
#define NAME(base) SX_NAME_OF(base, TYPE)

typedef CTYPE (*NAME(decimal_op))(CTYPE a, CTYPE b, UTYPE limit, bool *bad);

SX_INLINE bool NAME(decimal_outside)(CTYPE value, UTYPE limit) {
    return (UTYPE)value + limit > 2 * limit;
}
SX_INLINE CTYPE NAME(decimal_add_one)(CTYPE a, CTYPE b, UTYPE limit, bool *bad) {
    const CTYPE sum = (CTYPE)((UTYPE)a + (UTYPE)b);
    *bad |= limit && NAME(decimal_outside)(sum, limit);
    return sum;
}
SX_INLINE CTYPE NAME(decimal_sub_one)(CTYPE a, CTYPE b, UTYPE limit, bool *bad) {
    const CTYPE difference = (CTYPE)((UTYPE)a - (UTYPE)b);
    *bad |= limit && NAME(decimal_outside)(difference, limit);
    return difference;
}
SX_INLINE CTYPE NAME(decimal_mul_one)(CTYPE a, CTYPE b, UTYPE limit, bool *bad) {
    if (!limit)
        return (CTYPE)((UTYPE)a * (UTYPE)b);
    CTYPE product;
    const bool overflow = __builtin_mul_overflow(a, b, &product);
    *bad |= overflow | NAME(decimal_outside)(product, limit);
    return product;
}

/* `limit` 0: unchecked. */
SX_INLINE void NAME(decimal_loop)(struct sx_eval_call *call, UTYPE limit, NAME(decimal_op) op) {
    const CTYPE *a = call->in[0], *b = call->in[1];
    CTYPE *restrict out = call->out;
    const int64_t n = call->n;
    bool bad = false;
    if (call->step[1] == 0) {
        const CTYPE right = b[0];
        for (int64_t i = 0; i < n; i++)
            out[i] = op(a[i], right, limit, &bad);
    } else if (call->step[0] == 0) {
        const CTYPE left = a[0];
        for (int64_t i = 0; i < n; i++)
            out[i] = op(left, b[i], limit, &bad);
    } else {
        for (int64_t i = 0; i < n; i++)
            out[i] = op(a[i], b[i], limit, &bad);
    }
    call->failed = bad;
}

static void NAME(decimal_add)(struct sx_eval_call *call) {
    NAME(decimal_loop)(call, 0, NAME(decimal_add_one));
}
static void NAME(decimal_sub)(struct sx_eval_call *call) {
    NAME(decimal_loop)(call, 0, NAME(decimal_sub_one));
}
static void NAME(decimal_mul)(struct sx_eval_call *call) {
    NAME(decimal_loop)(call, 0, NAME(decimal_mul_one));
}
static void NAME(checked_add)(struct sx_eval_call *call) {
    NAME(decimal_loop)(call, (UTYPE)call->of->high, NAME(decimal_add_one));
}
static void NAME(checked_sub)(struct sx_eval_call *call) {
    NAME(decimal_loop)(call, (UTYPE)call->of->high, NAME(decimal_sub_one));
}
static void NAME(checked_mul)(struct sx_eval_call *call) {
    NAME(decimal_loop)(call, (UTYPE)call->of->high, NAME(decimal_mul_one));
}

#undef NAME
#undef TYPE
#undef CTYPE
#undef UTYPE
