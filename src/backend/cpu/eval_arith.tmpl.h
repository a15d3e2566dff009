/* Integer arithmetic. TYPE, CTYPE, UTYPE (unsigned of the same width), SIGNED, and WTYPE where a wider type
 * holds every product. The top bit of `bad` tells of an overflow. */
#define NAME(base) SX_NAME_OF(base, TYPE)

typedef CTYPE (*NAME(integer_op))(CTYPE a, CTYPE b, UTYPE *bad);

SX_INLINE CTYPE NAME(add_one)(CTYPE a, CTYPE b, UTYPE *bad) {
    const CTYPE sum = (CTYPE)(UTYPE)((UTYPE)a + (UTYPE)b);
#if SIGNED
    *bad = (UTYPE)(*bad | ((UTYPE)(a ^ sum) & (UTYPE)(b ^ sum)));
#else
    *bad = (UTYPE)(*bad | (UTYPE) - (UTYPE)(sum < a));
#endif
    return sum;
}

SX_INLINE CTYPE NAME(sub_one)(CTYPE a, CTYPE b, UTYPE *bad) {
    const CTYPE difference = (CTYPE)(UTYPE)((UTYPE)a - (UTYPE)b);
#if SIGNED
    *bad = (UTYPE)(*bad | ((UTYPE)(a ^ b) & (UTYPE)(a ^ difference)));
#else
    *bad = (UTYPE)(*bad | (UTYPE) - (UTYPE)(a < b));
#endif
    return difference;
}

SX_INLINE CTYPE NAME(mul_one)(CTYPE a, CTYPE b, UTYPE *bad) {
#ifdef WTYPE
    const WTYPE wide = (WTYPE)((WTYPE)a * (WTYPE)b);
    const CTYPE product = (CTYPE)wide;
    *bad = (UTYPE)(*bad | (UTYPE) - (UTYPE)(wide != product));
#else
    CTYPE product;
    *bad |= -(UTYPE)__builtin_mul_overflow(a, b, &product);
#endif
    return product;
}

SX_INLINE void NAME(integer_loop)(struct sx_eval_call *call, NAME(integer_op) op) {
    const CTYPE *a = call->in[0], *b = call->in[1];
    CTYPE *restrict out = call->out;
    const int64_t n = call->n;
    UTYPE bad = 0;
    if (call->step[1] == 0) {
        const CTYPE right = b[0];
        for (int64_t i = 0; i < n; i++)
            out[i] = op(a[i], right, &bad);
    } else if (call->step[0] == 0) {
        const CTYPE left = a[0];
        for (int64_t i = 0; i < n; i++)
            out[i] = op(left, b[i], &bad);
    } else {
        for (int64_t i = 0; i < n; i++)
            out[i] = op(a[i], b[i], &bad);
    }
    call->failed = (bad >> (8 * sizeof bad - 1)) != 0;
}

static void NAME(add)(struct sx_eval_call *call) {
    NAME(integer_loop)(call, NAME(add_one));
}
static void NAME(sub)(struct sx_eval_call *call) {
    NAME(integer_loop)(call, NAME(sub_one));
}
static void NAME(mul)(struct sx_eval_call *call) {
    NAME(integer_loop)(call, NAME(mul_one));
}

/* Quotient or rest; NULL for a divisor of zero. */
SX_INLINE void NAME(divide)(struct sx_eval_call *call, bool want_rest) {
    const CTYPE *a = call->in[0], *b = call->in[1];
    CTYPE *restrict out = call->out;
    uint8_t *valid = NULL;
    bool failed = false;
    for (int64_t i = 0; i < call->n; i++) {
        const CTYPE left = a[i * call->step[0]], right = b[i * call->step[1]];
        if (right == 0) {
            valid = valid ? valid : sx_eval_own_valid(call);
            valid[i] = 0;
            out[i] = 0;
#if SIGNED
        } else if (right == -1) {
            const CTYPE negated = (CTYPE)(UTYPE)(0 - (UTYPE)left);
            failed |= left != 0 && left == negated;
            out[i] = want_rest ? 0 : negated;
#endif
        } else {
            out[i] = (CTYPE)(want_rest ? left % right : left / right);
        }
    }
    call->failed = failed;
}
static void NAME(int_div)(struct sx_eval_call *call) {
    NAME(divide)(call, false);
}
static void NAME(mod)(struct sx_eval_call *call) {
    NAME(divide)(call, true);
}

static void NAME(neg)(struct sx_eval_call *call) {
    const CTYPE *a = call->in[0];
    CTYPE *restrict out = call->out;
    UTYPE bad = 0;
    for (int64_t i = 0; i < call->n; i++) {
        out[i] = (CTYPE)(UTYPE)(0 - (UTYPE)a[i]);
        bad = (UTYPE)(bad | ((UTYPE)a[i] & (UTYPE)out[i]));
    }
    call->failed = SIGNED && (bad >> (8 * sizeof bad - 1)) != 0;
}

static void NAME(abs)(struct sx_eval_call *call) {
    const CTYPE *a = call->in[0];
    CTYPE *restrict out = call->out;
    UTYPE bad = 0;
    for (int64_t i = 0; i < call->n; i++) {
#if SIGNED
        out[i] = a[i] < 0 ? (CTYPE)(UTYPE)(0 - (UTYPE)a[i]) : a[i];
        bad = (UTYPE)(bad | (UTYPE)out[i]);
#else
        out[i] = a[i];
#endif
    }
    call->failed = SIGNED && (bad >> (8 * sizeof bad - 1)) != 0;
}

#if SIGNED
/* To a power of ten above the units; too large a result wraps, as in DuckDB. */
static void NAME(round)(struct sx_eval_call *call) {
    const CTYPE *a = call->in[0];
    const int32_t *digits = call->in[1];
    CTYPE *restrict out = call->out;
    const int max_digits = sizeof(CTYPE) == 16 ? 38 : 18;
    for (int64_t i = 0; i < call->n; i++) {
        const CTYPE value = a[i * call->step[0]];
        const int32_t wanted = digits[i * call->step[1]];
        if (wanted >= 0) {
            out[i] = value;
        } else if (wanted < -max_digits) {
            out[i] = 0;
        } else if (sizeof(CTYPE) == 16) {
            const sx_i128 power = sx_power_of_ten(-wanted), half = value < 0 ? -(power / 2) : power / 2;
            out[i] = (CTYPE)((sx_u128)((sx_i128)((sx_u128)value + (sx_u128)half) / power) * (sx_u128)power);
        } else {
            const int64_t power = (int64_t)sx_power_of_ten(-wanted),
                          half = value < 0 ? -(power / 2) : power / 2;
            const uint64_t rounded =
                (uint64_t)((int64_t)((uint64_t)value + (uint64_t)half) / power) * (uint64_t)power;
            out[i] = (CTYPE)rounded;
        }
    }
}
#endif

#undef NAME
#undef TYPE
#undef CTYPE
#undef UTYPE
#undef WTYPE
#undef SIGNED
