#include "backend/cpu/eval.h"
#include "tensor/semantics_date.h"

/* ---- parts ---- */

enum part { PART_YEAR, PART_MONTH, PART_DAY };

SX_INLINE int64_t part_of(struct sx_civil civil, enum part part) {
    return part == PART_YEAR ? civil.year : part == PART_MONTH ? civil.month : civil.day;
}

/* The infinities have none. */
SX_INLINE void date_part(struct sx_eval_call *call, enum part part) {
    const int32_t *a = call->in[0];
    int64_t *restrict out = call->out;
    bool infinite = false;
    for (int64_t i = 0; i < call->n; i++) {
        infinite |= !sx_date_is_finite(a[i]);
        out[i] = part_of(sx_civil_from_days(a[i]), part);
    }
    if (!infinite)
        return;
    uint8_t *valid = sx_eval_own_valid(call);
    for (int64_t i = 0; i < call->n; i++)
        valid[i] &= sx_date_is_finite(a[i]);
}
static void date_year(struct sx_eval_call *call) {
    date_part(call, PART_YEAR);
}
static void date_month(struct sx_eval_call *call) {
    date_part(call, PART_MONTH);
}
static void date_day(struct sx_eval_call *call) {
    date_part(call, PART_DAY);
}

SX_INLINE void timestamp_part(struct sx_eval_call *call, enum part part) {
    const int64_t *a = call->in[0];
    int64_t *restrict out = call->out;
    uint8_t *valid = NULL;
    for (int64_t i = 0; i < call->n; i++) {
        const int32_t days = sx_timestamp_days(a[i]);
        if (!sx_date_is_finite(days)) {
            valid = valid ? valid : sx_eval_own_valid(call);
            valid[i] = 0;
        }
        out[i] = part_of(sx_civil_from_days(days), part);
    }
}
static void timestamp_year(struct sx_eval_call *call) {
    timestamp_part(call, PART_YEAR);
}
static void timestamp_month(struct sx_eval_call *call) {
    timestamp_part(call, PART_MONTH);
}
static void timestamp_day(struct sx_eval_call *call) {
    timestamp_part(call, PART_DAY);
}

/* ---- casts ---- */

static void date_to_timestamp(struct sx_eval_call *call) {
    const int32_t *a = call->in[0];
    int64_t *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++)
        call->failed |= !sx_date_to_timestamp(a[i], &out[i]);
}
static void timestamp_to_date(struct sx_eval_call *call) {
    const int64_t *a = call->in[0];
    int32_t *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++)
        out[i] = sx_timestamp_days(a[i]);
}

/* ---- arithmetic ---- */

/* An infinity stays; the sum must be a finite date. */
SX_INLINE void add_days(struct sx_eval_call *call, int sign) {
    const int32_t *a = call->in[0], *b = call->in[1];
    int32_t *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++) {
        const int32_t date = a[i * call->step[0]];
        const int64_t sum = date + sign * (int64_t)b[i * call->step[1]];
        out[i] = sx_date_is_finite(date) ? (int32_t)sum : date;
        call->failed |= sx_date_is_finite(date) && (sum <= -SX_DATE_INFINITY || sum >= SX_DATE_INFINITY);
    }
}
static void date_add_days(struct sx_eval_call *call) {
    add_days(call, 1);
}
static void date_sub_days(struct sx_eval_call *call) {
    add_days(call, -1);
}

SX_INLINE void date_add_interval(struct sx_eval_call *call, int sign) {
    const int32_t *a = call->in[0];
    const struct sx_interval *b = call->in[1];
    int64_t *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++) {
        int64_t timestamp;
        call->failed |= !sx_date_to_timestamp(a[i * call->step[0]], &timestamp);
        call->failed |= !sx_timestamp_add(timestamp, b[i * call->step[1]], sign, &out[i]);
    }
}
static void date_plus_interval(struct sx_eval_call *call) {
    date_add_interval(call, 1);
}
static void date_minus_interval(struct sx_eval_call *call) {
    date_add_interval(call, -1);
}

SX_INLINE void timestamp_add_interval(struct sx_eval_call *call, int sign) {
    const int64_t *a = call->in[0];
    const struct sx_interval *b = call->in[1];
    int64_t *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++)
        call->failed |= !sx_timestamp_add(a[i * call->step[0]], b[i * call->step[1]], sign, &out[i]);
}
static void timestamp_plus_interval(struct sx_eval_call *call) {
    timestamp_add_interval(call, 1);
}
static void timestamp_minus_interval(struct sx_eval_call *call) {
    timestamp_add_interval(call, -1);
}

static void date_sub_date(struct sx_eval_call *call) {
    const int32_t *a = call->in[0], *b = call->in[1];
    int64_t *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++)
        out[i] = (int64_t)a[i * call->step[0]] - b[i * call->step[1]];
}

static void timestamp_sub_timestamp(struct sx_eval_call *call) {
    const int64_t *a = call->in[0], *b = call->in[1];
    struct sx_interval *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++) {
        const int64_t x = a[i * call->step[0]], y = b[i * call->step[1]];
        int64_t difference;
        call->failed |= !sx_timestamp_is_finite(x) || !sx_timestamp_is_finite(y);
        call->failed |= __builtin_sub_overflow(x, y, &difference);
        out[i] = (struct sx_interval){0, (int32_t)(difference / SX_MICROS_PER_DAY),
                                      difference % SX_MICROS_PER_DAY};
    }
}

SX_INLINE void interval_add(struct sx_eval_call *call, int sign) {
    const struct sx_interval *a = call->in[0], *b = call->in[1];
    struct sx_interval *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++) {
        const struct sx_interval x = a[i * call->step[0]], y = b[i * call->step[1]];
        if (sign > 0) {
            call->failed |= __builtin_add_overflow(x.months, y.months, &out[i].months);
            call->failed |= __builtin_add_overflow(x.days, y.days, &out[i].days);
            call->failed |= __builtin_add_overflow(x.micros, y.micros, &out[i].micros);
        } else {
            call->failed |= __builtin_sub_overflow(x.months, y.months, &out[i].months);
            call->failed |= __builtin_sub_overflow(x.days, y.days, &out[i].days);
            call->failed |= __builtin_sub_overflow(x.micros, y.micros, &out[i].micros);
        }
    }
}
static void interval_plus(struct sx_eval_call *call) {
    interval_add(call, 1);
}
static void interval_minus(struct sx_eval_call *call) {
    interval_add(call, -1);
}
static void interval_negate(struct sx_eval_call *call) {
    const struct sx_interval *a = call->in[0];
    struct sx_interval *restrict out = call->out;
    for (int64_t i = 0; i < call->n; i++) {
        call->failed |= __builtin_sub_overflow(0, a[i].months, &out[i].months);
        call->failed |= __builtin_sub_overflow(0, a[i].days, &out[i].days);
        call->failed |= __builtin_sub_overflow((int64_t)0, a[i].micros, &out[i].micros);
    }
}

/* For one argument `right` is ignored; a CAST goes to `right`. */
static const struct {
    enum sx_function function;
    enum sx_type_id left, right;
    sx_eval_kernel kernel;
} kernels[] = {
    {SX_FN_ADD, SX_TYPE_DATE, SX_TYPE_I32, date_add_days},
    {SX_FN_SUB, SX_TYPE_DATE, SX_TYPE_I32, date_sub_days},
    {SX_FN_ADD, SX_TYPE_DATE, SX_TYPE_INTERVAL, date_plus_interval},
    {SX_FN_SUB, SX_TYPE_DATE, SX_TYPE_INTERVAL, date_minus_interval},
    {SX_FN_ADD, SX_TYPE_TIMESTAMP, SX_TYPE_INTERVAL, timestamp_plus_interval},
    {SX_FN_SUB, SX_TYPE_TIMESTAMP, SX_TYPE_INTERVAL, timestamp_minus_interval},
    {SX_FN_SUB, SX_TYPE_DATE, SX_TYPE_DATE, date_sub_date},
    {SX_FN_SUB, SX_TYPE_TIMESTAMP, SX_TYPE_TIMESTAMP, timestamp_sub_timestamp},
    {SX_FN_ADD, SX_TYPE_INTERVAL, SX_TYPE_INTERVAL, interval_plus},
    {SX_FN_SUB, SX_TYPE_INTERVAL, SX_TYPE_INTERVAL, interval_minus},
    {SX_FN_NEG, SX_TYPE_INTERVAL, SX_TYPE_NULLTYPE, interval_negate},
    {SX_FN_YEAR, SX_TYPE_DATE, SX_TYPE_NULLTYPE, date_year},
    {SX_FN_MONTH, SX_TYPE_DATE, SX_TYPE_NULLTYPE, date_month},
    {SX_FN_DAY, SX_TYPE_DATE, SX_TYPE_NULLTYPE, date_day},
    {SX_FN_YEAR, SX_TYPE_TIMESTAMP, SX_TYPE_NULLTYPE, timestamp_year},
    {SX_FN_MONTH, SX_TYPE_TIMESTAMP, SX_TYPE_NULLTYPE, timestamp_month},
    {SX_FN_DAY, SX_TYPE_TIMESTAMP, SX_TYPE_NULLTYPE, timestamp_day},
    {SX_FN_CAST, SX_TYPE_DATE, SX_TYPE_TIMESTAMP, date_to_timestamp},
    {SX_FN_CAST, SX_TYPE_TIMESTAMP, SX_TYPE_DATE, timestamp_to_date},
};

sx_eval_kernel sx_eval_kernel_date(enum sx_function function, enum sx_type_id left, enum sx_type_id right) {
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (kernels[i].function == function && kernels[i].left == left && kernels[i].right == right)
            return kernels[i].kernel;
    return NULL;
}
