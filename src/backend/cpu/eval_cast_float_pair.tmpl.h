/* FROM to the integer type TO, half to even. The range (LOW, or above it when LOW_OPEN, up to below END) is
 * checked before rounding unless ROUND_FIRST, and what then rounds to END wraps: both as in DuckDB. VIA: an
 * integer type that holds END. */
static void SX_NAME_OF(SX_NAME_OF(FROM, to), TO)(struct sx_eval_call *call) {
    const CFROM *a = call->in[0];
    CTO *restrict out = call->out;
    bool bad = false;
    for (int64_t i = 0; i < call->n; i++) {
        const double value = (double)a[i], rounded = nearbyint(value),
                     checked = ROUND_FIRST ? rounded : value;
        const bool inside = (LOW_OPEN ? checked > LOW : checked >= LOW) && checked < END;
        bad |= !inside;
        out[i] = (CTO)(inside ? (VIA)rounded : 0);
    }
    call->failed = bad;
}

#undef TO
#undef CTO
#undef VIA
#undef LOW
#undef END
#undef ROUND_FIRST
#undef LOW_OPEN
