#include "tensor/format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/semantics_date.h"
#include "tensor/semantics_text.h"

static size_t put_text(char *out, const char *text) {
    size_t length = 0;
    for (; text[length]; length++)
        out[length] = text[length];
    return length;
}

/* At least `min_digits` of them. */
static size_t put_digits(char *out, sx_u128 value, int min_digits) {
    char reversed[40];
    int n = 0;
    uint64_t low;
    for (; value > UINT64_MAX; value /= 10)
        reversed[n++] = (char)('0' + (int)(value % 10));
    for (low = (uint64_t)value; low; low /= 10)
        reversed[n++] = (char)('0' + (int)(low % 10));
    while (n < min_digits)
        reversed[n++] = '0';
    for (int i = 0; i < n; i++)
        out[i] = reversed[n - 1 - i];
    return (size_t)n;
}

size_t sx_u128_text(sx_u128 value, char buffer[SX_TEXT_BYTES]) {
    return put_digits(buffer, value, 1);
}

size_t sx_i128_text(sx_i128 value, char buffer[SX_TEXT_BYTES]) {
    buffer[0] = '-';
    if (value < 0)
        return 1 + put_digits(buffer + 1, -(sx_u128)value, 1);
    return put_digits(buffer, (sx_u128)value, 1);
}

/* DECIMAL(s, s) has no digit in front of the point. */
size_t sx_decimal_text(sx_i128 value, int precision, int scale, char buffer[SX_TEXT_BYTES]) {
    char digits[40], *out = buffer;
    sx_u128 magnitude = value < 0 ? -(sx_u128)value : (sx_u128)value;
    int n = (int)put_digits(digits, magnitude, precision > scale ? scale + 1 : scale);
    if (value < 0)
        *out++ = '-';
    memcpy(out, digits, (size_t)(n - scale));
    out += n - scale;
    if (scale) {
        *out++ = '.';
        memcpy(out, digits + n - scale, (size_t)scale);
        out += scale;
    }
    return (size_t)(out - buffer);
}

/* ---- floating point ---- */

/* `digits` d1 d2 …, the value d1.d2… * 10^exponent. */
static size_t put_float(char *out, bool negative, const char *digits, int n_digits, int exponent) {
    enum { MIN_FIXED = -4, MAX_FIXED = 15 };
    char *const begin = out;
    if (negative)
        *out++ = '-';
    if (exponent < MIN_FIXED || exponent > MAX_FIXED) {
        *out++ = digits[0];
        if (n_digits > 1) {
            *out++ = '.';
            memcpy(out, digits + 1, (size_t)n_digits - 1);
            out += n_digits - 1;
        }
        *out++ = 'e';
        *out++ = exponent < 0 ? '-' : '+';
        out += put_digits(out, (sx_u128)abs(exponent), 2);
    } else if (exponent < 0) {
        out += put_text(out, "0.");
        for (int i = exponent + 1; i < 0; i++)
            *out++ = '0';
        memcpy(out, digits, (size_t)n_digits);
        out += n_digits;
    } else {
        for (int i = 0; i < n_digits || i <= exponent; i++) {
            if (i == exponent + 1)
                *out++ = '.';
            *out++ = i < n_digits ? digits[i] : '0';
        }
        if (n_digits <= exponent + 1)
            out += put_text(out, ".0");
    }
    return (size_t)(out - begin);
}

/* Not finite or zero: writes it and returns its length, else 0. */
static size_t put_special(char *out, double value) {
    if (value != value)
        return put_text(out, __builtin_signbit(value) ? "-nan" : "nan");
    if (value == 0)
        return put_text(out, __builtin_signbit(value) ? "-0.0" : "0.0");
    if (__builtin_isinf(value))
        return put_text(out, value < 0 ? "-inf" : "inf");
    return 0;
}

/* Splits "d.ddde[+-]dd" into digits without trailing zeros and an exponent. */
static int split_scientific(const char *text, char *digits, int *out_exponent) {
    int n = 0;
    digits[0] = '0';
    for (; *text && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9')
            digits[n++] = *text;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    *out_exponent = *text ? atoi(text + 1) : 0;
    return n;
}

/* Which texts stand for a value. */
struct nearby {
    bool is_double;
    double magnitude;
    long double low, high; /* FLOAT: halfway to the neighbours */
    bool with_ends;        /* FLOAT: these too */
};

static bool is_inside(const struct nearby *nearby, const char *text) {
    if (nearby->is_double)
        return strtod(text, NULL) == nearby->magnitude;
    const long double value = strtold(text, NULL);
    if (value == nearby->low || value == nearby->high)
        return nearby->with_ends;
    return value > nearby->low && value < nearby->high;
}

/* Next text of as many digits in scientific notation, away from zero. */
static void increment(char *text) {
    char *digit = strchr(text, 'e') - 1;
    for (; digit >= text; digit--) {
        if (*digit == '.')
            continue;
        if (*digit < '9') {
            ++*digit;
            return;
        }
        *digit = '0';
    }
    text[0] = '0'; /* 9.99: the next text has fewer digits, and was tried before */
}

enum { SCIENTIFIC_BYTES = 40 };

/* The nearest text of n digits, or the one behind it: above a power of two there is more room than below. */
static bool put_digits_inside(const struct nearby *nearby, int n, char text[SCIENTIFIC_BYTES]) {
    snprintf(text, SCIENTIFIC_BYTES, "%.*e", n - 1, nearby->magnitude);
    if (is_inside(nearby, text))
        return true;
    increment(text);
    return is_inside(nearby, text);
}

/* The fewest digits with which a text is inside; with n digits enough, n + 1 are. */
static int fewest_digits(const struct nearby *nearby, int most) {
    char text[SCIENTIFIC_BYTES];
    int few = 1, many = most;
    while (few < many) {
        const int n = (few + many) / 2;
        if (put_digits_inside(nearby, n, text))
            many = n;
        else
            few = n + 1;
    }
    return many;
}

static size_t put_shortest(char *out, bool negative, const struct nearby *nearby, int n) {
    char text[SCIENTIFIC_BYTES], digits[SCIENTIFIC_BYTES];
    int exponent;
    put_digits_inside(nearby, n, text);
    const int n_digits = split_scientific(text, digits, &exponent);
    return put_float(out, negative, digits, n_digits, exponent);
}

size_t sx_f64_text(double value, char buffer[SX_TEXT_BYTES]) {
    const size_t length = put_special(buffer, value);
    const struct nearby nearby = {.is_double = true, .magnitude = fabs(value)};
    return length ? length : put_shortest(buffer, value < 0, &nearby, fewest_digits(&nearby, 17));
}

/* Half of the next digit: two texts of n digits are equally near. */
static bool is_tie(double magnitude, int n) {
    char text[SCIENTIFIC_BYTES];
    snprintf(text, sizeof text, "%.*e", n, magnitude);
    return strchr(text, 'e')[-1] == '5' && strtold(text, NULL) == (long double)magnitude;
}

/* DuckDB prints a float as the double of the same value when its algorithm for floats can't decide: when a
 * halfway point is a shorter text, or when two texts are equally near. */
size_t sx_f32_text(float value, char buffer[SX_TEXT_BYTES]) {
    const size_t length = put_special(buffer, (double)value);
    if (length)
        return length;
    const float magnitude = fabsf(value), below = nextafterf(magnitude, 0),
                above = nextafterf(magnitude, INFINITY);
    const long double up = isinf(above) ? (long double)magnitude - below : (long double)above - magnitude;
    struct nearby nearby = {.magnitude = (double)magnitude, .with_ends = true};
    nearby.low = ((long double)magnitude + below) / 2;
    nearby.high = magnitude + up / 2;
    const int n_with_ends = fewest_digits(&nearby, 9);
    nearby.with_ends = false;
    const int n = fewest_digits(&nearby, 9);
    if (n_with_ends < n || is_tie(nearby.magnitude, n))
        return sx_f64_text((double)value, buffer);
    return put_shortest(buffer, value < 0, &nearby, n);
}

static bool parse_special(struct sx_span span, double *out) {
    bool negative = span.at < span.end && *span.at == '-';
    if (span.at < span.end && (*span.at == '-' || *span.at == '+'))
        span.at++;
    if (sx_span_is(span, "inf") || sx_span_is(span, "infinity"))
        *out = __builtin_inf();
    else if (sx_span_is(span, "nan"))
        *out = __builtin_nan("");
    else
        return false;
    if (negative)
        *out = -*out;
    return true;
}

/* Digits without '_' and zero-terminated, in `buffer` or in memory to free. NULL: no memory, or no number. */
static char *plain_number(struct sx_span span, char *buffer, size_t buffer_bytes) {
    struct sx_number_text number;
    if (!sx_number_parse(span, &number))
        return NULL;
    size_t length = (size_t)(span.end - span.at);
    char *plain = length < buffer_bytes ? buffer : malloc(length + 1), *out = plain;
    for (; plain && span.at < span.end; span.at++)
        if (*span.at != '_')
            *out++ = *span.at;
    if (plain)
        *out = 0;
    return plain;
}

bool sx_text_to_f64(const char *bytes, uint32_t length_bytes, double *out_value) {
    struct sx_span span = sx_span_trim(bytes, length_bytes);
    if (parse_special(span, out_value))
        return true;
    char buffer[128], *plain = plain_number(span, buffer, sizeof buffer);
    if (!plain)
        return false;
    *out_value = strtod(plain, NULL);
    if (plain != buffer)
        free(plain);
    return true;
}

bool sx_text_to_f32(const char *bytes, uint32_t length_bytes, float *out_value) {
    struct sx_span span = sx_span_trim(bytes, length_bytes);
    double special;
    if (parse_special(span, &special)) {
        *out_value = (float)special;
        return true;
    }
    char buffer[128], *plain = plain_number(span, buffer, sizeof buffer);
    if (!plain)
        return false;
    *out_value = strtof(plain, NULL);
    if (plain != buffer)
        free(plain);
    return true;
}

/* ---- dates ---- */

static size_t put_date(char *out, int32_t days) {
    if (!sx_date_is_finite(days))
        return put_text(out, days > 0 ? "infinity" : "-infinity");
    struct sx_civil civil = sx_civil_from_days(days);
    bool before_christ = civil.year <= 0;
    size_t n = put_digits(out, (sx_u128)(before_christ ? 1 - civil.year : civil.year), 4);
    out[n++] = '-';
    n += put_digits(out + n, (sx_u128)civil.month, 2);
    out[n++] = '-';
    n += put_digits(out + n, (sx_u128)civil.day, 2);
    return before_christ ? n + put_text(out + n, " (BC)") : n;
}

/* HH:MM:SS with the fraction's trailing zeros left out. */
static size_t put_time(char *out, uint64_t micros) {
    const uint64_t second = 1000000, seconds = micros / second;
    size_t n = put_digits(out, seconds / 3600, 2);
    out[n++] = ':';
    n += put_digits(out + n, seconds / 60 % 60, 2);
    out[n++] = ':';
    n += put_digits(out + n, seconds % 60, 2);
    if (micros % second == 0)
        return n;
    out[n++] = '.';
    n += put_digits(out + n, micros % second, 6);
    while (out[n - 1] == '0')
        n--;
    return n;
}

static size_t put_timestamp(char *out, int64_t micros) {
    if (!sx_timestamp_is_finite(micros))
        return put_text(out, micros > 0 ? "infinity" : "-infinity");
    int32_t days = sx_timestamp_days(micros);
    size_t n = put_date(out, days);
    out[n++] = ' ';
    return n + put_time(out + n, (uint64_t)(micros - days * SX_MICROS_PER_DAY));
}

static size_t put_unit(char *out, bool first, int32_t count, const char *unit) {
    if (count == 0)
        return 0;
    size_t n = first ? 0 : put_text(out, " ");
    n += sx_i128_text(count, out + n);
    out[n++] = ' ';
    n += put_text(out + n, unit);
    if (count != 1 && count != -1)
        out[n++] = 's';
    return n;
}

static size_t put_interval(char *out, struct sx_interval interval) {
    size_t n = put_unit(out, true, interval.months / 12, "year");
    n += put_unit(out + n, n == 0, interval.months % 12, "month");
    n += put_unit(out + n, n == 0, interval.days, "day");
    if (interval.micros == 0 && n > 0)
        return n;
    if (n > 0)
        out[n++] = ' ';
    if (interval.micros < 0)
        out[n++] = '-';
    return n +
           put_time(out + n, interval.micros < 0 ? -(uint64_t)interval.micros : (uint64_t)interval.micros);
}

size_t sx_scalar_text(const struct sx_scalar *scalar, char buffer[SX_TEXT_BYTES]) {
    switch (scalar->type.id) {
    case SX_TYPE_BOOL: return put_text(buffer, scalar->v.b ? "true" : "false");
    case SX_TYPE_I8:
    case SX_TYPE_I16:
    case SX_TYPE_I32:
    case SX_TYPE_I64: return sx_i128_text(scalar->v.i64, buffer);
    case SX_TYPE_U8:
    case SX_TYPE_U16:
    case SX_TYPE_U32:
    case SX_TYPE_U64: return sx_u128_text(scalar->v.u64, buffer);
    case SX_TYPE_I128: return sx_i128_text(scalar->v.i128, buffer);
    case SX_TYPE_U128: return sx_u128_text(scalar->v.u128, buffer);
    case SX_TYPE_F32: return sx_f32_text(scalar->v.f32, buffer);
    case SX_TYPE_F64: return sx_f64_text(scalar->v.f64, buffer);
    case SX_TYPE_DECIMAL: {
        bool wide = scalar->type.precision > SX_DECIMAL_MAX_I64_DIGITS;
        return sx_decimal_text(wide ? scalar->v.i128 : scalar->v.i64, scalar->type.precision,
                               scalar->type.scale, buffer);
    }
    case SX_TYPE_DATE: return put_date(buffer, (int32_t)scalar->v.i64);
    case SX_TYPE_TIMESTAMP: return put_timestamp(buffer, scalar->v.i64);
    case SX_TYPE_INTERVAL: return put_interval(buffer, scalar->v.interval);
    default: return 0; /* NULL and VARCHAR */
    }
}
