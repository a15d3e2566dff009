/* Floating-point arithmetic: TYPE, CTYPE and its FMOD, FLOOR, CEIL. As IEEE 754 has it, but for x // 0. */
#define NAME(base) SX_NAME_OF(base, TYPE)

typedef CTYPE (*NAME(float_op))(CTYPE a, CTYPE b);

SX_INLINE CTYPE NAME(float_add)(CTYPE a, CTYPE b) {
    return a + b;
}
SX_INLINE CTYPE NAME(float_sub)(CTYPE a, CTYPE b) {
    return a - b;
}
SX_INLINE CTYPE NAME(float_mul)(CTYPE a, CTYPE b) {
    return a * b;
}
SX_INLINE CTYPE NAME(float_div)(CTYPE a, CTYPE b) {
    return a / b;
}
SX_INLINE CTYPE NAME(float_mod)(CTYPE a, CTYPE b) {
    return FMOD(a, b);
}

SX_INLINE void NAME(float_loop)(struct sx_eval_call *call, NAME(float_op) op) {
    const CTYPE *a = call->in[0], *b = call->in[1];
    CTYPE *restrict out = call->out;
    const int64_t n = call->n;
    if (call->step[1] == 0) {
        const CTYPE right = b[0];
        for (int64_t i = 0; i < n; i++)
            out[i] = op(a[i], right);
    } else if (call->step[0] == 0) {
        const CTYPE left = a[0];
        for (int64_t i = 0; i < n; i++)
            out[i] = op(left, b[i]);
    } else {
        for (int64_t i = 0; i < n; i++)
            out[i] = op(a[i], b[i]);
    }
}

static void NAME(add)(struct sx_eval_call *call) {
    NAME(float_loop)(call, NAME(float_add));
}
static void NAME(sub)(struct sx_eval_call *call) {
    NAME(float_loop)(call, NAME(float_sub));
}
static void NAME(mul)(struct sx_eval_call *call) {
    NAME(float_loop)(call, NAME(float_mul));
}
static void NAME(div)(struct sx_eval_call *call) {
    NAME(float_loop)(call, NAME(float_div));
}
static void NAME(mod)(struct sx_eval_call *call) {
    NAME(float_loop)(call, NAME(float_mod));
}

/* In DuckDB a plain division, but NULL for a divisor of zero. */
static void NAME(int_div)(struct sx_eval_call *call) {
    const CTYPE *b = call->in[1];
    uint8_t *valid = NULL;
    NAME(float_loop)(call, NAME(float_div));
    for (int64_t i = 0; i < call->n; i++)
        if (b[i * call->step[1]] == 0) {
            valid = valid ? valid : sx_eval_own_valid(call);
            valid[i] = 0;
        }
}

static void NAME(neg)(struct sx_eval_call *call) {
    const CTYPE *a = call->in[0];
    CTYPE *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++)
        out[i] = -a[i];
}
static void NAME(abs)(struct sx_eval_call *call) {
    const CTYPE *a = call->in[0];
    CTYPE *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++)
        out[i] = a[i] < 0 || a[i] == 0 ? 0 - a[i] : a[i];
}
static void NAME(floor)(struct sx_eval_call *call) {
    const CTYPE *a = call->in[0];
    CTYPE *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++)
        out[i] = FLOOR(a[i]);
}
static void NAME(ceil)(struct sx_eval_call *call) {
    const CTYPE *a = call->in[0];
    CTYPE *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++)
        out[i] = CEIL(a[i]);
}

/* Half away from zero, computed in double. Where the power of ten leaves the range: the value itself, or 0
 * when rounding above the units. */
SX_INLINE double NAME(round_one)(double value, int32_t digits) {
    const double power = pow(10.0, digits < 0 ? -(double)digits : (double)digits);
    const double rounded = digits < 0 ? round(value / power) * power : round(value * power) / power;
    if (isfinite(rounded))
        return rounded;
    return digits < 0 ? 0 : value;
}
static void NAME(round)(struct sx_eval_call *call) {
    const CTYPE *a = call->in[0];
    const int32_t *digits = call->in[1];
    CTYPE *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++) {
        const double value = (double)a[i * call->step[0]];
        const int32_t wanted = digits[i * call->step[1]];
        out[i] = (CTYPE)(wanted == 0 ? round(value) : NAME(round_one)(value, wanted));
    }
}

#undef NAME
#undef TYPE
#undef CTYPE
#undef FMOD
#undef FLOOR
#undef CEIL
