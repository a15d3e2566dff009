/* FROM to TO: values within low and high, both given in FROM's range. */
static void SX_NAME_OF(SX_NAME_OF(resize, FROM), TO)(struct sx_eval_call *call) {
    const CFROM *a = call->in[0];
    const CFROM low = (CFROM)call->of->low, high = (CFROM)call->of->high;
    CTO *restrict out = call->out;
    bool bad = false;
    for (int64_t i = 0; i < call->n; i++) {
        bad |= (a[i] < low) | (a[i] > high);
        out[i] = (CTO)a[i];
    }
    call->failed = bad;
}

#undef TO
#undef CTO
