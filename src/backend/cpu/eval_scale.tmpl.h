/* Decimals of another scale: TYPE, CTYPE, DIVIDE (rounded), TO_F64 and TO_F32. `factor` is 10^|shift|. */
#define NAME(base) SX_NAME_OF(base, TYPE)

/* low and high bound the argument. */
static void NAME(scale_up)(struct sx_eval_call *call) {
    const CTYPE *a = call->in[0];
    const CTYPE factor = (CTYPE)call->of->factor, low = (CTYPE)call->of->low, high = (CTYPE)call->of->high;
    CTYPE *restrict out = call->out;
    bool bad = false;
    for (int64_t i = 0; i < call->n; i++) {
        const bool outside = (a[i] < low) | (a[i] > high);
        bad |= outside;
        out[i] = (outside ? 0 : a[i]) * factor;
    }
    call->failed = bad;
}

/* low and high bound the result. */
static void NAME(scale_down)(struct sx_eval_call *call) {
    const CTYPE *a = call->in[0];
    const CTYPE factor = (CTYPE)call->of->factor, low = (CTYPE)call->of->low, high = (CTYPE)call->of->high;
    CTYPE *restrict out = call->out;
    bool bad = false;
    for (int64_t i = 0; i < call->n; i++) {
        out[i] = DIVIDE(a[i], factor);
        bad |= (out[i] < low) | (out[i] > high);
    }
    call->failed = bad;
}

static void NAME(floor)(struct sx_eval_call *call) {
    const CTYPE *a = call->in[0], factor = (CTYPE)call->of->factor;
    CTYPE *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++)
        out[i] = a[i] / factor - (a[i] % factor < 0);
}
static void NAME(ceil)(struct sx_eval_call *call) {
    const CTYPE *a = call->in[0], factor = (CTYPE)call->of->factor;
    CTYPE *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++)
        out[i] = a[i] / factor + (a[i] % factor > 0);
}
/* Divided by `factor`, rounded, and times `high`. */
static void NAME(round)(struct sx_eval_call *call) {
    const CTYPE *a = call->in[0], factor = (CTYPE)call->of->factor, unit = (CTYPE)call->of->high;
    CTYPE *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++)
        out[i] = DIVIDE(a[i], factor) * unit;
}

static void NAME(decimal_to_f64)(struct sx_eval_call *call) {
    const CTYPE *a = call->in[0];
    double *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++)
        out[i] = TO_F64(a[i], (CTYPE)call->of->factor, call->of->factor_f64);
}
static void NAME(decimal_to_f32)(struct sx_eval_call *call) {
    const CTYPE *a = call->in[0];
    float *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++)
        out[i] = TO_F32(a[i], (CTYPE)call->of->factor, (float)call->of->factor_f64);
}
/* Half away from zero; high: 10^precision - 1. */
static void NAME(decimal_from_f64)(struct sx_eval_call *call) {
    const double *a = call->in[0];
    const double factor = call->of->factor_f64, end = (double)(call->of->high + 1);
    CTYPE *restrict out = call->out;
    bool bad = false;
    for (int64_t i = 0; i < call->n; i++) {
        const double rounded = round(a[i] * factor);
        const bool inside = rounded > -end && rounded < end;
        bad |= !inside;
        out[i] = inside ? (CTYPE)rounded : 0;
    }
    call->failed = bad;
}
/* What was rounded in double goes through float, as in DuckDB. */
static void NAME(decimal_from_f32)(struct sx_eval_call *call) {
    const float *a = call->in[0];
    const double factor = call->of->factor_f64, end = (double)(call->of->high + 1);
    CTYPE *restrict out = call->out;
    bool bad = false;
    for (int64_t i = 0; i < call->n; i++) {
        const double rounded = round((double)a[i] * factor);
        const bool inside = rounded > -end && rounded < end;
        bad |= !inside;
        out[i] = inside ? (CTYPE)(float)rounded : 0;
    }
    call->failed = bad;
}

#undef NAME
#undef TYPE
#undef CTYPE
#undef DIVIDE
#undef TO_F64
#undef TO_F32
