/* Values to text, as DuckDB prints them. Functions write to a buffer of SX_TEXT_BYTES, without a zero behind
 * the text, and return its length. */
#ifndef SX_TENSOR_SEMANTICS_FORMAT_H
#define SX_TENSOR_SEMANTICS_FORMAT_H

#include "tensor/semantics_float.h"

/* Enough for every type but VARCHAR. */
enum { SX_TEXT_BYTES = 128 };

SX_BOTH size_t sx_put_text(char *out, const char *text) {
    size_t length = 0;
    for (; text[length]; length++)
        out[length] = text[length];
    return length;
}

/* At least `min_digits` of them. */
SX_BOTH size_t sx_put_digits(char *out, sx_u128 value, int min_digits) {
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

SX_BOTH size_t sx_put_i128(char *out, sx_i128 value) {
    out[0] = '-';
    if (value < 0)
        return 1 + sx_put_digits(out + 1, -(sx_u128)value, 1);
    return sx_put_digits(out, (sx_u128)value, 1);
}

/* DECIMAL(s, s) has no digit in front of the point. */
SX_BOTH size_t sx_put_decimal(sx_i128 value, int precision, int scale, char *buffer) {
    char digits[40], *out = buffer;
    sx_u128 magnitude = value < 0 ? -(sx_u128)value : (sx_u128)value;
    int n = (int)sx_put_digits(digits, magnitude, precision > scale ? scale + 1 : scale);
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
SX_BOTH size_t sx_put_float(char *out, bool negative, const char *digits, int n_digits, int exponent) {
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
        out += sx_put_digits(out, (sx_u128)(exponent < 0 ? -exponent : exponent), 2);
    } else if (exponent < 0) {
        out += sx_put_text(out, "0.");
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
            out += sx_put_text(out, ".0");
    }
    return (size_t)(out - begin);
}

/* Not finite or zero: writes it and returns its length, else 0. */
SX_BOTH size_t sx_put_special(char *out, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const bool negative = bits >> 63;
    if (value != value)
        return sx_put_text(out, negative ? "-nan" : "nan");
    if (value == 0)
        return sx_put_text(out, negative ? "-0.0" : "0.0");
    if ((bits << 1) == UINT64_C(0x7ff) << 53)
        return sx_put_text(out, negative ? "-inf" : "inf");
    return 0;
}

/* The shortest text that reads back the same. */
SX_BOTH size_t sx_put_f64(char *out, double value) {
    const size_t length = sx_put_special(out, value);
    if (length)
        return length;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int biased = (int)(bits >> 52 & 0x7ff);
    const uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    const uint64_t mantissa = biased ? fraction | UINT64_C(1) << 52 : fraction;
    const struct sx_digits digits =
        sx_digits_shortest(mantissa, biased ? biased - 1075 : -1074, sx_format_f64(), mantissa % 2 == 0);
    return sx_put_float(out, bits >> 63, digits.text, digits.n, digits.exponent);
}

/* DuckDB prints a float as the double of the same value when its algorithm for floats can't decide: when a
 * halfway point is a shorter text, or when two texts are equally near. */
SX_BOTH size_t sx_put_f32(char *out, float value) {
    const size_t length = sx_put_special(out, (double)value);
    if (length)
        return length;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int biased = (int)(bits >> 23 & 0xff);
    const uint32_t fraction = bits & 0x7fffff;
    const uint64_t mantissa = biased ? fraction | 0x800000 : fraction;
    const int exponent = biased ? biased - 150 : -149;
    const struct sx_digits with_ends = sx_digits_shortest(mantissa, exponent, sx_format_f32(), true);
    const struct sx_digits digits = sx_digits_shortest(mantissa, exponent, sx_format_f32(), false);
    if (with_ends.n < digits.n || digits.is_tie)
        return sx_put_f64(out, (double)value);
    return sx_put_float(out, bits >> 31, digits.text, digits.n, digits.exponent);
}

/* ---- dates ---- */

SX_BOTH size_t sx_put_date(char *out, int32_t days) {
    if (!sx_date_is_finite(days))
        return sx_put_text(out, days > 0 ? "infinity" : "-infinity");
    struct sx_civil civil = sx_civil_from_days(days);
    bool before_christ = civil.year <= 0;
    size_t n = sx_put_digits(out, (sx_u128)(before_christ ? 1 - civil.year : civil.year), 4);
    out[n++] = '-';
    n += sx_put_digits(out + n, (sx_u128)civil.month, 2);
    out[n++] = '-';
    n += sx_put_digits(out + n, (sx_u128)civil.day, 2);
    return before_christ ? n + sx_put_text(out + n, " (BC)") : n;
}

/* HH:MM:SS with the fraction's trailing zeros left out. */
SX_BOTH size_t sx_put_time(char *out, uint64_t micros) {
    const uint64_t second = 1000000, seconds = micros / second;
    size_t n = sx_put_digits(out, seconds / 3600, 2);
    out[n++] = ':';
    n += sx_put_digits(out + n, seconds / 60 % 60, 2);
    out[n++] = ':';
    n += sx_put_digits(out + n, seconds % 60, 2);
    if (micros % second == 0)
        return n;
    out[n++] = '.';
    n += sx_put_digits(out + n, micros % second, 6);
    while (out[n - 1] == '0')
        n--;
    return n;
}

SX_BOTH size_t sx_put_timestamp(char *out, int64_t micros) {
    if (!sx_timestamp_is_finite(micros))
        return sx_put_text(out, micros > 0 ? "infinity" : "-infinity");
    int32_t days = sx_timestamp_days(micros);
    size_t n = sx_put_date(out, days);
    out[n++] = ' ';
    return n + sx_put_time(out + n, (uint64_t)(micros - days * SX_MICROS_PER_DAY));
}

SX_BOTH size_t sx_put_unit(char *out, bool first, int32_t count, const char *unit) {
    if (count == 0)
        return 0;
    size_t n = first ? 0 : sx_put_text(out, " ");
    n += sx_put_i128(out + n, count);
    out[n++] = ' ';
    n += sx_put_text(out + n, unit);
    if (count != 1 && count != -1)
        out[n++] = 's';
    return n;
}

SX_BOTH size_t sx_put_interval(char *out, struct sx_interval interval) {
    size_t n = sx_put_unit(out, true, interval.months / 12, "year");
    n += sx_put_unit(out + n, n == 0, interval.months % 12, "month");
    n += sx_put_unit(out + n, n == 0, interval.days, "day");
    if (interval.micros == 0 && n > 0)
        return n;
    if (n > 0)
        out[n++] = ' ';
    if (interval.micros < 0)
        out[n++] = '-';
    return n +
           sx_put_time(out + n, interval.micros < 0 ? -(uint64_t)interval.micros : (uint64_t)interval.micros);
}

/* Neither NULL nor VARCHAR. */
SX_BOTH size_t sx_put_scalar(const struct sx_scalar *scalar, char *buffer) {
    switch (scalar->type.id) {
    case SX_TYPE_BOOL: return sx_put_text(buffer, scalar->v.b ? "true" : "false");
    case SX_TYPE_I8:
    case SX_TYPE_I16:
    case SX_TYPE_I32:
    case SX_TYPE_I64: return sx_put_i128(buffer, scalar->v.i64);
    case SX_TYPE_U8:
    case SX_TYPE_U16:
    case SX_TYPE_U32:
    case SX_TYPE_U64: return sx_put_digits(buffer, scalar->v.u64, 1);
    case SX_TYPE_I128: return sx_put_i128(buffer, scalar->v.i128);
    case SX_TYPE_U128: return sx_put_digits(buffer, scalar->v.u128, 1);
    case SX_TYPE_F32: return sx_put_f32(buffer, scalar->v.f32);
    case SX_TYPE_F64: return sx_put_f64(buffer, scalar->v.f64);
    case SX_TYPE_DECIMAL: {
        bool wide = scalar->type.precision > SX_DECIMAL_MAX_I64_DIGITS;
        return sx_put_decimal(wide ? scalar->v.i128 : scalar->v.i64, scalar->type.precision,
                              scalar->type.scale, buffer);
    }
    case SX_TYPE_DATE: return sx_put_date(buffer, (int32_t)scalar->v.i64);
    case SX_TYPE_TIMESTAMP: return sx_put_timestamp(buffer, scalar->v.i64);
    case SX_TYPE_INTERVAL: return sx_put_interval(buffer, scalar->v.interval);
    default: return 0; /* NULL and VARCHAR */
    }
}

#endif
