/* Arithmetic, casts of numbers and comparisons of the interpreter. For eval.cu only. */
#ifndef SX_BACKEND_CUDA_EVAL_NUMBER_H
#define SX_BACKEND_CUDA_EVAL_NUMBER_H

#include "backend/cuda/eval_value.h"
#include "tensor/semantics_average.h"
#include "tensor/semantics_date.h"
#include "tensor/semantics_decimal.h"

/* ---- overflow ---- */

template <typename T> struct eval_unsigned;
template <> struct eval_unsigned<int64_t> {
    typedef uint64_t type;
};
template <> struct eval_unsigned<uint64_t> {
    typedef uint64_t type;
};
template <> struct eval_unsigned<sx_i128> {
    typedef sx_u128 type;
};
template <> struct eval_unsigned<sx_u128> {
    typedef sx_u128 type;
};

template <typename T> __device__ __forceinline__ constexpr bool eval_is_signed() {
    return (T)-1 < (T)1;
}

template <typename T> __device__ __forceinline__ bool eval_is_negative(T value) {
    if constexpr (eval_is_signed<T>())
        return value < 0;
    return false;
}

/* All return whether the result, which is wrapped then, does not fit. */
template <typename T> __device__ __forceinline__ bool eval_add(T a, T b, T *out) {
    typedef typename eval_unsigned<T>::type U;
    *out = (T)((U)a + (U)b);
    return eval_is_signed<T>() ? eval_is_negative((T)((a ^ *out) & (b ^ *out))) : *out < a;
}
template <typename T> __device__ __forceinline__ bool eval_sub(T a, T b, T *out) {
    typedef typename eval_unsigned<T>::type U;
    *out = (T)((U)a - (U)b);
    return eval_is_signed<T>() ? eval_is_negative((T)((a ^ b) & (a ^ *out))) : a < b;
}
__device__ __forceinline__ bool eval_mul(int64_t a, int64_t b, int64_t *out) {
    const sx_i128 wide = (sx_i128)a * b;
    *out = (int64_t)wide;
    return wide != *out;
}
__device__ __forceinline__ bool eval_mul(uint64_t a, uint64_t b, uint64_t *out) {
    *out = a * b;
    return __umul64hi(a, b) != 0;
}
__device__ static inline bool eval_mul(sx_u128 a, sx_u128 b, sx_u128 *out) {
    const uint64_t high_a = (uint64_t)(a >> 64), high_b = (uint64_t)(b >> 64);
    *out = a * b;
    if (high_a && high_b)
        return true;
    const sx_u128 cross = high_a ? (sx_u128)high_a * (uint64_t)b : (sx_u128)high_b * (uint64_t)a;
    return cross >> 64 || (cross << 64) > *out;
}
__device__ static inline bool eval_mul(sx_i128 a, sx_i128 b, sx_i128 *out) {
    const bool negative = (a < 0) != (b < 0);
    sx_u128 magnitude;
    const bool overflow =
        eval_mul(a < 0 ? -(sx_u128)a : (sx_u128)a, b < 0 ? -(sx_u128)b : (sx_u128)b, &magnitude);
    *out = (sx_i128)(negative ? -magnitude : magnitude);
    return overflow || magnitude > ((sx_u128)1 << 127) - !negative;
}

/* ---- integers and decimals ---- */

template <typename T>
__device__ __forceinline__ bool eval_is_outside(const struct cuda_eval_step &step, T value) {
    return value < (T)step.low || value > (T)step.high;
}

__device__ __forceinline__ int64_t eval_divide_round(int64_t value, int64_t divisor) {
    return sx_divide_round_i64(value, divisor);
}
__device__ __forceinline__ sx_i128 eval_divide_round(sx_i128 value, sx_i128 divisor) {
    return sx_divide_round_i128(value, divisor);
}

/* Quotient or rest; NULL for a divisor of zero. */
template <typename T>
__device__ __forceinline__ T eval_divide(const struct cuda_eval_step &step, T a, T b,
                                         struct eval_result *result) {
    typedef typename eval_unsigned<T>::type U;
    if (b == 0) {
        result->valid = false;
        return 0;
    }
    if (eval_is_signed<T>() && b == (T)-1) {
        result->failed = a == (T)step.low;
        return step.op == CUDA_EVAL_MOD ? 0 : (T)(0 - (U)a);
    }
    return step.op == CUDA_EVAL_MOD ? a % b : a / b;
}

/* To a power of ten above the units; too large a result wraps. */
template <typename T> __device__ static inline T eval_round_integer(T value, int64_t digits) {
    typedef typename eval_unsigned<T>::type U;
    if (digits >= 0)
        return value;
    if (digits < (sizeof(T) == 16 ? -38 : -18))
        return 0;
    const T power = (T)sx_power_of_ten((int)-digits), half = value < 0 ? -(power / 2) : power / 2;
    return (T)((U)((T)((U)value + (U)half) / power) * (U)power);
}

template <typename T>
__device__ static inline T eval_scale(const struct cuda_eval_step &step, T a, struct eval_result *result) {
    const T factor = (T)step.factor;
    T out;
    switch (step.op) {
    case CUDA_EVAL_DECIMAL_FLOOR: return a / factor - (a % factor < 0);
    case CUDA_EVAL_DECIMAL_CEIL: return a / factor + (a % factor > 0);
    case CUDA_EVAL_DECIMAL_ROUND: return eval_divide_round(a, factor) * (T)step.high;
    case CUDA_EVAL_SCALE_UP:
        result->failed = eval_is_outside(step, a);
        return (result->failed ? 0 : a) * factor;
    default:
        out = eval_divide_round(a, factor);
        result->failed = eval_is_outside(step, out);
        return out;
    }
}

template <typename T>
__device__ static inline T eval_integer(const struct cuda_eval_step &step, T a, struct cuda_eval_value second,
                                        struct eval_result *result) {
    typedef typename eval_unsigned<T>::type U;
    const T b = eval_as<T>(second);
    T out;
    switch (step.op) {
    case CUDA_EVAL_ADD: result->failed = eval_add(a, b, &out); break;
    case CUDA_EVAL_SUB: result->failed = eval_sub(a, b, &out); break;
    case CUDA_EVAL_MUL: result->failed = eval_mul(a, b, &out); break;
    case CUDA_EVAL_INT_DIV:
    case CUDA_EVAL_MOD: return eval_divide(step, a, b, result);
    case CUDA_EVAL_NEG:
    case CUDA_EVAL_ABS:
        out = step.op == CUDA_EVAL_NEG || eval_is_negative(a) ? (T)(0 - (U)a) : a;
        result->failed = eval_is_negative(a) && eval_is_negative(out);
        break;
    case CUDA_EVAL_ROUND:
        if constexpr (eval_is_signed<T>())
            return eval_round_integer(a, eval_as<int64_t>(second));
        return a;
    default:
        if constexpr (eval_is_signed<T>())
            return eval_scale(step, a, result);
        return a;
    }
    result->failed |= eval_is_outside(step, out);
    return out;
}

/* ---- floating point ---- */

__device__ __forceinline__ bool eval_is_infinite(double value) {
    return value == (double)INFINITY || value == -(double)INFINITY;
}

/* Half away from zero, in double. Where the power of ten leaves the range: the value itself, or 0 when
 * rounding above the units. powers[i] is 10^i. */
__device__ static inline double eval_round_double(double value, int64_t digits, const double *powers) {
    if (digits == 0)
        return round(value);
    const int64_t places = digits < 0 ? -digits : digits, most = 308;
    const double power = places > most ? (double)INFINITY : powers[places];
    const double rounded = digits < 0 ? round(value / power) * power : round(value * power) / power;
    if (!eval_is_infinite(rounded) && rounded == rounded)
        return rounded;
    return digits < 0 ? 0 : value;
}

template <typename T>
__device__ static inline T eval_float(const struct cuda_eval_step &step, T a, struct cuda_eval_value second,
                                      struct eval_result *result) {
    const T b = eval_as<T>(second);
    switch (step.op) {
    case CUDA_EVAL_ADD: return a + b;
    case CUDA_EVAL_SUB: return a - b;
    case CUDA_EVAL_MUL: return a * b;
    case CUDA_EVAL_INT_DIV: result->valid = b != 0; return a / b;
    case CUDA_EVAL_DIV: return a / b;
    case CUDA_EVAL_MOD: return sizeof(T) == 4 ? (T)fmodf((float)a, (float)b) : (T)fmod((double)a, (double)b);
    case CUDA_EVAL_NEG: return -a;
    case CUDA_EVAL_ABS: return a < 0 || a == 0 ? 0 - a : a;
    case CUDA_EVAL_FLOOR: return (T)floor((double)a);
    case CUDA_EVAL_CEIL: return (T)ceil((double)a);
    default: return (T)eval_round_double((double)a, eval_as<int64_t>(second), (const double *)step.list);
    }
}

template <int LEVEL>
__device__ static inline struct cuda_eval_value eval_arithmetic(const struct cuda_eval_step &step,
                                                                struct cuda_eval_value a,
                                                                struct cuda_eval_value b,
                                                                struct eval_result *result) {
    switch (step.kind) {
    case CUDA_EVAL_I64:
        return eval_of(eval_cut(step.phys, eval_integer(step, eval_as<int64_t>(a), b, result)));
    case CUDA_EVAL_U64: return eval_of(eval_integer(step, eval_as<uint64_t>(a), b, result));
    case CUDA_EVAL_F32: return eval_of(eval_float(step, eval_as<float>(a), b, result));
    case CUDA_EVAL_F64: return eval_of(eval_float(step, eval_as<double>(a), b, result));
    default: break;
    }
    if constexpr (LEVEL >= CUDA_EVAL_WIDE) {
        if (step.kind == CUDA_EVAL_I128)
            return eval_of(eval_integer(step, eval_as<sx_i128>(a), b, result));
        return eval_of(eval_integer(step, eval_as<sx_u128>(a), b, result));
    }
    return a;
}

/* ---- casts of numbers ---- */

template <int LEVEL>
__device__ static inline struct cuda_eval_value eval_resize(const struct cuda_eval_step &step,
                                                            struct cuda_eval_value a,
                                                            struct eval_result *result) {
    if (step.kind == CUDA_EVAL_I64)
        result->failed = eval_is_outside(step, eval_as<int64_t>(a));
    else if (step.kind == CUDA_EVAL_U64)
        result->failed = eval_is_outside(step, eval_as<uint64_t>(a));
    if constexpr (LEVEL >= CUDA_EVAL_WIDE) {
        if (step.kind == CUDA_EVAL_I128)
            result->failed = eval_is_outside(step, eval_as<sx_i128>(a));
        else if (step.kind == CUDA_EVAL_U128)
            result->failed = eval_is_outside(step, eval_as<sx_u128>(a));
        if (step.to >= CUDA_EVAL_I128 && step.kind < CUDA_EVAL_I128)
            a.high = step.kind == CUDA_EVAL_I64 && (int64_t)a.low < 0 ? UINT64_MAX : 0;
    }
    return a;
}

template <int LEVEL>
__device__ static inline bool eval_to_bool(const struct cuda_eval_step &step, struct cuda_eval_value a) {
    if (step.kind == CUDA_EVAL_F32 || step.kind == CUDA_EVAL_F64)
        return eval_as_double(step.kind, a) != 0;
    if (LEVEL >= CUDA_EVAL_WIDE && step.kind >= CUDA_EVAL_I128)
        return (a.low | a.high) != 0;
    return a.low != 0;
}

template <int LEVEL>
__device__ static inline struct cuda_eval_value eval_to_float(const struct cuda_eval_step &step,
                                                              struct cuda_eval_value a,
                                                              struct eval_result *result) {
    const bool to_f32 = step.to == CUDA_EVAL_F32;
    if (step.kind == CUDA_EVAL_I64)
        return to_f32 ? eval_of((float)eval_as<int64_t>(a)) : eval_of((double)eval_as<int64_t>(a));
    if (step.kind == CUDA_EVAL_U64)
        return to_f32 ? eval_of((float)a.low) : eval_of((double)a.low);
    double value;
    if (LEVEL >= CUDA_EVAL_WIDE && step.kind == CUDA_EVAL_I128)
        value = sx_i128_to_f64(eval_as<sx_i128>(a));
    else if (LEVEL >= CUDA_EVAL_WIDE && step.kind == CUDA_EVAL_U128)
        value = sx_u128_to_f64(eval_as<sx_u128>(a));
    else
        value = eval_as_double(step.kind, a);
    if (!to_f32)
        return eval_of(value);
    result->failed = eval_is_infinite((double)(float)value) && !eval_is_infinite(value);
    return eval_of((float)value);
}

template <int LEVEL>
__device__ static inline struct cuda_eval_value eval_decimal_to_float(const struct cuda_eval_step &step,
                                                                      struct cuda_eval_value a) {
    const bool to_f32 = step.to == CUDA_EVAL_F32;
    if constexpr (LEVEL >= CUDA_EVAL_WIDE) {
        if (step.kind == CUDA_EVAL_I128 && to_f32)
            return eval_of(sx_decimal_i128_to_f32(eval_as<sx_i128>(a), step.factor, (float)step.factor_f64));
        if (step.kind == CUDA_EVAL_I128)
            return eval_of(sx_decimal_i128_to_f64(eval_as<sx_i128>(a), step.factor, step.factor_f64));
    }
    if (to_f32)
        return eval_of(
            sx_decimal_i64_to_f32(eval_as<int64_t>(a), (int64_t)step.factor, (float)step.factor_f64));
    return eval_of(sx_decimal_i64_to_f64(eval_as<int64_t>(a), (int64_t)step.factor, step.factor_f64));
}

/* variant: bit 0: the range is checked behind the rounding; bit 1: low is outside. What rounds to the end
 * wraps. */
template <int LEVEL>
__device__ static inline struct cuda_eval_value eval_float_to_integer(const struct cuda_eval_step &step,
                                                                      struct cuda_eval_value a,
                                                                      struct eval_result *result) {
    const double value = eval_as_double(step.kind, a), rounded = nearbyint(value);
    const double checked = step.variant & 1 ? rounded : value;
    const bool above = step.variant & 2 ? checked > step.low_f64 : checked >= step.low_f64;
    if (!above || !(checked < step.end_f64)) {
        result->failed = true;
        return cuda_eval_value{0, 0};
    }
    if (step.to == CUDA_EVAL_I64)
        return eval_of(eval_cut(step.phys, (int64_t)rounded));
    if constexpr (LEVEL >= CUDA_EVAL_WIDE) {
        if (step.to == CUDA_EVAL_I128)
            return eval_of((sx_i128)rounded);
        if (step.to == CUDA_EVAL_U128)
            return eval_of((sx_u128)rounded);
    }
    return eval_of((uint64_t)rounded);
}

/* Half away from zero. What was rounded in double goes through float where it came from one. */
template <int LEVEL>
__device__ static inline struct cuda_eval_value eval_float_to_decimal(const struct cuda_eval_step &step,
                                                                      struct cuda_eval_value a,
                                                                      struct eval_result *result) {
    double rounded = round(eval_as_double(step.kind, a) * step.factor_f64);
    if (!(rounded > -step.end_f64 && rounded < step.end_f64)) {
        result->failed = true;
        return cuda_eval_value{0, 0};
    }
    if (step.kind == CUDA_EVAL_F32)
        rounded = (double)(float)rounded;
    if constexpr (LEVEL >= CUDA_EVAL_WIDE)
        if (step.to == CUDA_EVAL_I128)
            return eval_of((sx_i128)rounded);
    return eval_of((int64_t)rounded);
}

/* ---- comparison ---- */

template <int LEVEL>
__device__ static inline bool eval_equal(int kind, struct cuda_eval_value a, struct cuda_eval_value b) {
    if (kind == CUDA_EVAL_F32 || kind == CUDA_EVAL_F64)
        return sx_f64_equal(eval_as_double(kind, a), eval_as_double(kind, b));
    if constexpr (LEVEL >= CUDA_EVAL_WIDE) {
        if (kind == CUDA_EVAL_STRING) {
            const struct sx_string x = eval_as<struct sx_string>(a), y = eval_as<struct sx_string>(b);
            return sx_string_equal(&x, &y);
        }
        if (kind == CUDA_EVAL_INTERVAL)
            return sx_interval_compare(eval_as<struct sx_interval>(a), eval_as<struct sx_interval>(b)) == 0;
        if (kind >= CUDA_EVAL_I128)
            return a.low == b.low && a.high == b.high;
    }
    return a.low == b.low;
}

template <int LEVEL>
__device__ static inline bool eval_less(int kind, struct cuda_eval_value a, struct cuda_eval_value b) {
    switch (kind) {
    case CUDA_EVAL_I64: return eval_as<int64_t>(a) < eval_as<int64_t>(b);
    case CUDA_EVAL_U64: return a.low < b.low;
    case CUDA_EVAL_F32:
    case CUDA_EVAL_F64: return sx_f64_less(eval_as_double(kind, a), eval_as_double(kind, b));
    default: break;
    }
    if constexpr (LEVEL >= CUDA_EVAL_WIDE) {
        if (kind == CUDA_EVAL_STRING) {
            const struct sx_string x = eval_as<struct sx_string>(a), y = eval_as<struct sx_string>(b);
            return sx_string_compare(&x, &y) < 0;
        }
        if (kind == CUDA_EVAL_I128)
            return eval_as<sx_i128>(a) < eval_as<sx_i128>(b);
        if (kind == CUDA_EVAL_U128)
            return eval_as<sx_u128>(a) < eval_as<sx_u128>(b);
        return sx_interval_compare(eval_as<struct sx_interval>(a), eval_as<struct sx_interval>(b)) < 0;
    }
    return false;
}

template <int LEVEL>
__device__ static inline bool eval_compare(const struct cuda_eval_step &step, struct cuda_eval_value a,
                                           struct cuda_eval_value b) {
    switch (step.op) {
    case CUDA_EVAL_EQ:
    case CUDA_EVAL_NOT_DISTINCT: return eval_equal<LEVEL>(step.kind, a, b);
    case CUDA_EVAL_NE:
    case CUDA_EVAL_DISTINCT: return !eval_equal<LEVEL>(step.kind, a, b);
    case CUDA_EVAL_LT: return eval_less<LEVEL>(step.kind, a, b);
    default: return !eval_less<LEVEL>(step.kind, b, a);
    }
}

template <int LEVEL>
__device__ static inline bool eval_in_list(const struct cuda_eval_step &step, struct cuda_eval_value a) {
    const struct cuda_eval_value *list = (const struct cuda_eval_value *)step.list;
    int32_t low = 0, high = step.place;
    if (LEVEL >= CUDA_EVAL_WIDE && step.kind == CUDA_EVAL_INTERVAL) {
        for (; low < high; low++)
            if (eval_equal<LEVEL>(step.kind, list[low], a))
                return true;
        return false;
    }
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (eval_less<LEVEL>(step.kind, list[middle], a))
            low = middle + 1;
        else
            high = middle;
    }
    return low < step.place && eval_equal<LEVEL>(step.kind, list[low], a);
}

/* Not inlined: division of 128 bits is long. */
__device__ static __noinline__ double eval_average(const struct cuda_eval_step &step,
                                                   struct cuda_eval_value sum, int64_t count) {
    const bool is_small = step.kind == CUDA_EVAL_I64;
    return sx_average(is_small ? (sx_i128)eval_as<int64_t>(sum) : eval_as<sx_i128>(sum), count,
                      step.factor_f64, is_small);
}

/* ---- dates ---- */

__device__ static inline int64_t eval_date_part(const struct cuda_eval_step &step, int64_t value,
                                                struct eval_result *result) {
    const int32_t days = step.variant ? sx_timestamp_days(value) : (int32_t)value;
    const struct sx_civil civil = sx_civil_from_days(days);
    result->valid = sx_date_is_finite(days);
    return step.op == CUDA_EVAL_DATE_YEAR    ? civil.year
           : step.op == CUDA_EVAL_DATE_MONTH ? civil.month
                                             : civil.day;
}

/* An infinity stays; the sum must be a finite date. */
__device__ static inline int64_t eval_add_days(const struct cuda_eval_step &step, int64_t date, int64_t days,
                                               struct eval_result *result) {
    if (!sx_date_is_finite((int32_t)date))
        return date;
    const int64_t sum = step.variant ? date - days : date + days;
    result->failed = sum <= -SX_DATE_INFINITY || sum >= SX_DATE_INFINITY;
    return (int32_t)sum;
}

template <typename T>
__device__ __forceinline__ bool eval_add_part(const struct cuda_eval_step &step, T a, T b, T *out) {
    int64_t sum;
    const bool overflow =
        step.variant ? eval_sub((int64_t)a, (int64_t)b, &sum) : eval_add((int64_t)a, (int64_t)b, &sum);
    *out = (T)sum;
    return overflow || *out != sum;
}

__device__ static inline struct sx_interval eval_interval_add(const struct cuda_eval_step &step,
                                                              struct sx_interval a, struct sx_interval b,
                                                              struct eval_result *result) {
    struct sx_interval out;
    result->failed = eval_add_part(step, a.months, b.months, &out.months);
    result->failed |= eval_add_part(step, a.days, b.days, &out.days);
    result->failed |= eval_add_part(step, a.micros, b.micros, &out.micros);
    return out;
}

__device__ static inline struct sx_interval eval_timestamp_sub(int64_t a, int64_t b,
                                                               struct eval_result *result) {
    int64_t difference;
    result->failed = !sx_timestamp_is_finite(a) || !sx_timestamp_is_finite(b);
    result->failed |= eval_sub(a, b, &difference);
    return sx_interval{0, (int32_t)(difference / SX_MICROS_PER_DAY), difference % SX_MICROS_PER_DAY};
}

__device__ static inline int64_t eval_add_interval(const struct cuda_eval_step &step, int64_t micros,
                                                   struct sx_interval interval, struct eval_result *result) {
    int64_t sum = 0;
    result->failed |= !sx_timestamp_add(micros, interval, step.variant ? -1 : 1, &sum);
    return sum;
}

template <int LEVEL>
__device__ static inline struct cuda_eval_value eval_date(const struct cuda_eval_step &step,
                                                          struct cuda_eval_value a, struct cuda_eval_value b,
                                                          struct eval_result *result) {
    const int64_t x = eval_as<int64_t>(a), y = eval_as<int64_t>(b);
    int64_t micros = 0;
    switch (step.op) {
    case CUDA_EVAL_DATE_TO_TIMESTAMP:
        result->failed = !sx_date_to_timestamp((int32_t)x, &micros);
        return eval_of(micros);
    case CUDA_EVAL_TIMESTAMP_TO_DATE: return eval_of((int64_t)sx_timestamp_days(x));
    case CUDA_EVAL_DATE_ADD_DAYS: return eval_of(eval_add_days(step, x, y, result));
    case CUDA_EVAL_DATE_SUB_DATE: return eval_of(x - y);
    case CUDA_EVAL_DATE_YEAR:
    case CUDA_EVAL_DATE_MONTH:
    case CUDA_EVAL_DATE_DAY: return eval_of(eval_date_part(step, x, result));
    default: break;
    }
    if constexpr (LEVEL >= CUDA_EVAL_WIDE) {
        switch (step.op) {
        case CUDA_EVAL_DATE_ADD_INTERVAL:
            result->failed = !sx_date_to_timestamp((int32_t)x, &micros);
            return eval_of(eval_add_interval(step, micros, eval_as<struct sx_interval>(b), result));
        case CUDA_EVAL_TIMESTAMP_ADD_INTERVAL:
            return eval_of(eval_add_interval(step, x, eval_as<struct sx_interval>(b), result));
        case CUDA_EVAL_TIMESTAMP_SUB: return eval_of(eval_timestamp_sub(x, y, result));
        case CUDA_EVAL_AVERAGE: return eval_of(eval_average(step, a, y));
        case CUDA_EVAL_INTERVAL_NEG:
            return eval_of(
                eval_interval_add(step, sx_interval{0, 0, 0}, eval_as<struct sx_interval>(a), result));
        default:
            return eval_of(eval_interval_add(step, eval_as<struct sx_interval>(a),
                                             eval_as<struct sx_interval>(b), result));
        }
    }
    return a;
}

#endif
