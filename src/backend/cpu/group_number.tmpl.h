/* MIN, MAX, SUM and AVG of one physical type: SX_PHYS, SX_C, SX_LOWEST, SX_HIGHEST, SX_LESS(a, b), and
 * SX_SUMS: 0 no sums, 1 integer to 32 bits, 2 integer of 64 bits, 3 integer of 128 bits, 4 float. */
#define SX_NAME(x)         SX_NAME_(x, SX_PHYS)
#define SX_NAME_(x, phys)  SX_NAME__(x, phys)
#define SX_NAME__(x, phys) x##_##phys

enum { SX_NAME(ALIGN) = sizeof(SX_C) < 8 ? sizeof(SX_C) : 8 };
typedef SX_C __attribute__((may_alias, aligned(sizeof(SX_C) < 8 ? sizeof(SX_C) : 8))) SX_NAME(state);

/* ---- MIN and MAX ---- */

static inline bool SX_NAME(better)(bool max, SX_C value, SX_C best) {
    return max ? SX_LESS(best, value) : SX_LESS(value, best);
}

static inline void SX_NAME(keep)(const struct sx_group_aggregate *aggregate, bool max, char *row,
                                 SX_C value) {
    SX_NAME(state) *state = (SX_NAME(state) *)sx_group_state_at(aggregate, row);
    *state = SX_NAME(better)(max, value, *state) ? value : *state;
    row[aggregate->flag] = 1;
}

static inline void SX_NAME(best_update)(const struct sx_group_call *call, bool max) {
    const SX_C *values = call->values;
    for (int32_t k = 0; k < call->n; k++) {
        const int32_t i = sx_group_position(call, k);
        SX_NAME(keep)(call->aggregate, max, call->rows[i], values[i]);
    }
}

static inline void SX_NAME(best_one)(const struct sx_group_call *call, bool max) {
    const SX_C *values = call->values;
    if (call->n == 0)
        return;
    SX_C best = values[sx_group_position(call, 0)];
    if (call->selection) {
        for (int32_t k = 1; k < call->n; k++) {
            const SX_C value = values[call->selection[k]];
            best = SX_NAME(better)(max, value, best) ? value : best;
        }
    } else {
        for (int32_t i = 1; i < call->n; i++)
            best = SX_NAME(better)(max, values[i], best) ? values[i] : best;
    }
    SX_NAME(keep)(call->aggregate, max, call->rows[0], best);
}

static inline void SX_NAME(best_combine)(const struct sx_group_aggregate *aggregate, bool max,
                                         char *const *into, char *const *from, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (from[i][aggregate->flag])
            SX_NAME(keep)(aggregate, max, into[i], *(SX_NAME(state) *)sx_group_state_at(aggregate, from[i]));
}

static enum sx_status SX_NAME(min_update)(const struct sx_group_call *call) {
    SX_NAME(best_update)(call, false);
    return SX_OK;
}

static enum sx_status SX_NAME(max_update)(const struct sx_group_call *call) {
    SX_NAME(best_update)(call, true);
    return SX_OK;
}

static enum sx_status SX_NAME(min_one)(const struct sx_group_call *call) {
    SX_NAME(best_one)(call, false);
    return SX_OK;
}

static enum sx_status SX_NAME(max_one)(const struct sx_group_call *call) {
    SX_NAME(best_one)(call, true);
    return SX_OK;
}

static enum sx_status SX_NAME(min_combine)(const struct sx_group_aggregate *aggregate, char *const *into,
                                           char *const *from, int64_t n, struct sx_error *error) {
    (void)error;
    SX_NAME(best_combine)(aggregate, false, into, from, n);
    return SX_OK;
}

static enum sx_status SX_NAME(max_combine)(const struct sx_group_aggregate *aggregate, char *const *into,
                                           char *const *from, int64_t n, struct sx_error *error) {
    (void)error;
    SX_NAME(best_combine)(aggregate, true, into, from, n);
    return SX_OK;
}

static void SX_NAME(min_init)(char *state) {
    *(SX_NAME(state) *)state = SX_HIGHEST;
}

static void SX_NAME(max_init)(char *state) {
    *(SX_NAME(state) *)state = SX_LOWEST;
}

static const struct sx_group_ops SX_NAME(min_ops) = {
    .state_bytes = sizeof(SX_C),
    .state_align = SX_NAME(ALIGN),
    .init = SX_NAME(min_init),
    .update = SX_NAME(min_update),
    .update_one = SX_NAME(min_one),
    .combine = SX_NAME(min_combine),
    .emit = sx_value_emit,
    .is_null = sx_flag_is_null,
};

static const struct sx_group_ops SX_NAME(max_ops) = {
    .state_bytes = sizeof(SX_C),
    .state_align = SX_NAME(ALIGN),
    .init = SX_NAME(max_init),
    .update = SX_NAME(max_update),
    .update_one = SX_NAME(max_one),
    .combine = SX_NAME(max_combine),
    .emit = sx_value_emit,
    .is_null = sx_flag_is_null,
};

/* ---- SUM and AVG ---- */

#if SX_SUMS == 1 || SX_SUMS == 2

static inline void SX_NAME(add)(char *state, sx_i128 value) {
    *(sx_group_i128 *)state += value;
}

/* True when no sum of a block's values can leave 64 bits. */
static bool SX_NAME(is_tame)(const struct sx_group_call *call) {
#if SX_SUMS == 2
    const SX_C *values = call->values;
    uint64_t magnitudes = 0;
    if (call->selection) {
        for (int32_t k = 0; k < call->n; k++)
            magnitudes |= SX_MAGNITUDE(values[call->selection[k]]);
    } else {
        for (int32_t i = 0; i < call->n; i++)
            magnitudes |= SX_MAGNITUDE(values[i]);
    }
    return magnitudes < (UINT64_C(1) << 62) / SX_GROUP_BLOCK_ROWS;
#else
    (void)call;
    return true;
#endif
}

static sx_i128 SX_NAME(total)(const struct sx_group_call *call) {
    const SX_C *values = call->values;
    if (!SX_NAME(is_tame)(call)) {
        sx_i128 sum = 0;
        for (int32_t k = 0; k < call->n; k++)
            sum += values[sx_group_position(call, k)];
        return sum;
    }
    int64_t sum = 0;
    if (call->selection) {
        for (int32_t k = 0; k < call->n; k++)
            sum += (int64_t)values[call->selection[k]];
    } else {
        for (int32_t i = 0; i < call->n; i++)
            sum += (int64_t)values[i];
    }
    return sum;
}

/* Rows of one group come in runs, and an addition waits for the one before it in the same place: so
 * many places a group. */
static bool SX_NAME(block_sums)(const struct sx_group_call *call, const uint16_t *codes, int32_t n_groups,
                                int64_t *sums) {
    const SX_C *values = call->values;
    if (!SX_NAME(is_tame)(call))
        return false;
    memset(sums, 0, (size_t)n_groups * SX_GROUP_LANES * sizeof *sums);
    int32_t k = 0;
    if (!call->selection)
        for (; k + SX_GROUP_LANES <= call->n; k += SX_GROUP_LANES)
            for (int32_t lane = 0; lane < SX_GROUP_LANES; lane++)
                sums[lane * n_groups + codes[k + lane]] += (int64_t)values[k + lane];
    for (; k < call->n; k++) {
        const int32_t i = sx_group_position(call, k);
        sums[k % SX_GROUP_LANES * n_groups + codes[i]] += (int64_t)values[i];
    }
    for (int32_t g = 0; g < n_groups; g++) {
        int64_t sum = 0;
        for (int32_t lane = 0; lane < SX_GROUP_LANES; lane++)
            sum += sums[lane * n_groups + g];
        sums[g] = sum;
    }
    return true;
}

static enum sx_status SX_NAME(sum_one)(const struct sx_group_call *call) {
    if (call->n == 0)
        return SX_OK;
    SX_NAME(add)(sx_group_state_at(call->aggregate, call->rows[0]), SX_NAME(total)(call));
    call->rows[0][call->aggregate->flag] = 1;
    return SX_OK;
}

static enum sx_status SX_NAME(avg_one)(const struct sx_group_call *call) {
    struct sx_integer_sum *state = (struct sx_integer_sum *)sx_group_state_at(call->aggregate, call->rows[0]);
    state->sum += SX_NAME(total)(call);
    state->count += call->n;
    return SX_OK;
}

static enum sx_status SX_NAME(sum_update)(const struct sx_group_call *call) {
    const SX_C *values = call->values;
    const struct sx_group_aggregate *aggregate = call->aggregate;
    for (int32_t k = 0; k < call->n; k++) {
        const int32_t i = sx_group_position(call, k);
        char *row = call->rows[i];
        SX_NAME(add)(sx_group_state_at(aggregate, row), values[i]);
        row[aggregate->flag] = 1;
    }
    return SX_OK;
}

static enum sx_status SX_NAME(avg_update)(const struct sx_group_call *call) {
    const SX_C *values = call->values;
    for (int32_t k = 0; k < call->n; k++) {
        const int32_t i = sx_group_position(call, k);
        struct sx_integer_sum *state =
            (struct sx_integer_sum *)sx_group_state_at(call->aggregate, call->rows[i]);
        state->sum += values[i];
        state->count++;
    }
    return SX_OK;
}

#elif SX_SUMS == 3

static inline enum sx_status SX_NAME(add)(const struct sx_group_call *call, char *row, SX_C value) {
    sx_group_i128 *state = (sx_group_i128 *)sx_group_state_at(call->aggregate, row);
    sx_i128 sum;
    if (__builtin_add_overflow(*state, value, &sum))
        return sx_group_sum_overflow(&call->stream->error, *state, value);
    *state = sum;
    return SX_OK;
}

/* `apart` 0: all rows go to rows[0]. */
static inline enum sx_status SX_NAME(add_all)(const struct sx_group_call *call, int32_t apart, bool average) {
    const SX_C *values = call->values;
    for (int32_t k = 0; k < call->n; k++) {
        const int32_t i = sx_group_position(call, k);
        char *row = call->rows[i * apart];
        SX_TRY(SX_NAME(add)(call, row, values[i]));
        if (average)
            ((struct sx_integer_sum *)sx_group_state_at(call->aggregate, row))->count++;
        else
            row[call->aggregate->flag] = 1;
    }
    return SX_OK;
}

static enum sx_status SX_NAME(sum_update)(const struct sx_group_call *call) {
    return SX_NAME(add_all)(call, 1, false);
}

static enum sx_status SX_NAME(sum_one)(const struct sx_group_call *call) {
    return SX_NAME(add_all)(call, 0, false);
}

static enum sx_status SX_NAME(avg_update)(const struct sx_group_call *call) {
    return SX_NAME(add_all)(call, 1, true);
}

static enum sx_status SX_NAME(avg_one)(const struct sx_group_call *call) {
    return SX_NAME(add_all)(call, 0, true);
}

#elif SX_SUMS == 4

static inline void SX_NAME(add_all)(const struct sx_group_call *call, bool average) {
    const SX_C *values = call->values;
    for (int32_t k = 0; k < call->n; k++) {
        const int32_t i = sx_group_position(call, k);
        char *row = call->rows[i];
        struct sx_float_sum *state = (struct sx_float_sum *)sx_group_state_at(call->aggregate, row);
        sx_float_sum_add(&state->high, &state->low, (double)values[i]);
        if (average)
            state->count++;
        else
            row[call->aggregate->flag] = 1;
    }
}

/* Lanes, because an addition waits for the one before it. */
static inline void SX_NAME(add_one)(const struct sx_group_call *call, bool average) {
    enum { LANES = 8 };
    const SX_C *values = call->values;
    double high[LANES] = {0}, low[LANES] = {0};
    int32_t k = 0;
    if (!call->selection)
        for (; k + LANES <= call->n; k += LANES)
            for (int32_t lane = 0; lane < LANES; lane++)
                sx_float_sum_add(&high[lane], &low[lane], (double)values[k + lane]);
    for (; k < call->n; k++)
        sx_float_sum_add(&high[k % LANES], &low[k % LANES], (double)values[sx_group_position(call, k)]);
    struct sx_float_sum *state = (struct sx_float_sum *)sx_group_state_at(call->aggregate, call->rows[0]);
    for (int32_t lane = 0; lane < LANES; lane++) {
        sx_float_sum_add(&state->high, &state->low, high[lane]);
        state->low += low[lane];
    }
    if (average)
        state->count += call->n;
    else if (call->n > 0)
        call->rows[0][call->aggregate->flag] = 1;
}

static enum sx_status SX_NAME(sum_update)(const struct sx_group_call *call) {
    SX_NAME(add_all)(call, false);
    return SX_OK;
}

static enum sx_status SX_NAME(sum_one)(const struct sx_group_call *call) {
    SX_NAME(add_one)(call, false);
    return SX_OK;
}

static enum sx_status SX_NAME(avg_update)(const struct sx_group_call *call) {
    SX_NAME(add_all)(call, true);
    return SX_OK;
}

static enum sx_status SX_NAME(avg_one)(const struct sx_group_call *call) {
    SX_NAME(add_one)(call, true);
    return SX_OK;
}

#endif

#if SX_SUMS > 0

static const struct sx_group_ops SX_NAME(sum_ops) = {
    .state_bytes = SX_SUM_BYTES,
    .state_align = 8,
    .update = SX_NAME(sum_update),
    .update_one = SX_NAME(sum_one),
    .combine = SX_FAMILY(combine),
    .emit = SX_FAMILY(emit),
    .is_null = sx_flag_is_null,
#if SX_SUMS < 3
    .add_sums = sx_integer_add_sums,
#endif
};

static const struct sx_group_ops SX_NAME(avg_ops) = {
    .state_bytes = SX_AVG_BYTES,
    .state_align = 8,
    .update = SX_NAME(avg_update),
    .update_one = SX_NAME(avg_one),
    .combine = SX_FAMILY(combine),
    .emit = SX_FAMILY(emit),
    .is_null = sx_average_is_null,
#if SX_SUMS < 3
    .add_sums = sx_integer_add_sums,
#endif
};

#endif

#undef SX_NAME
#undef SX_NAME_
#undef SX_NAME__
#undef SX_PHYS
#undef SX_C
#undef SX_LOWEST
#undef SX_HIGHEST
#undef SX_LESS
#undef SX_SUMS
#undef SX_MAGNITUDE
#undef SX_FAMILY
