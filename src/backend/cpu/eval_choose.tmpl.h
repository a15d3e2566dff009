/* Choice between values of one width: TYPE, CTYPE (any type of that width). */
#define NAME(base) SX_NAME_OF(base, TYPE)

static void NAME(choose)(struct sx_eval_call *call) {
    const uint8_t *condition = call->in[0], *valid = call->valid[0];
    const CTYPE *a = call->in[1], *b = call->in[2];
    const uint8_t *valid_a = call->valid[1], *valid_b = call->valid[2];
    CTYPE *restrict out = call->out;
    const int64_t n = call->n, step = call->step[0], step_a = call->step[1], step_b = call->step[2];
    const uint8_t *truth = truth_of(call, condition, valid);
    if (step && step_a && step_b) {
        for (int64_t i = 0; i < n; i++)
            out[i] = truth[i] ? a[i] : b[i];
    } else if (step && step_a) {
        const CTYPE other = b[0];
        for (int64_t i = 0; i < n; i++)
            out[i] = truth[i] ? a[i] : other;
    } else {
        for (int64_t i = 0; i < n; i++)
            out[i] = truth[i * step] ? a[i * step_a] : b[i * step_b];
    }
    choose_valid(call, truth, valid_a, valid_b);
}

static void NAME(coalesce)(struct sx_eval_call *call) {
    const CTYPE *a = call->in[0], *b = call->in[1];
    const uint8_t *valid_a = call->valid[0];
    CTYPE *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++)
        out[i] = !valid_a || valid_a[i * call->step[0]] ? a[i * call->step[0]] : b[i * call->step[1]];
    coalesce_valid(call);
}

static void NAME(copy)(struct sx_eval_call *call) {
    const CTYPE *a = call->in[0];
    CTYPE *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++)
        out[i] = a[i * call->step[0]];
}

#undef NAME
#undef TYPE
#undef CTYPE
