/* Text to integers and decimals. What follows the point and what an exponent does depends on the type, as in
 * DuckDB, but for two things: values out of a decimal's range, which it makes of some exponents, are refused;
 * and digits of a fraction are rounded where it overflows (19 of them and more, to integers of 64 bits, with
 * an exponent). */
#ifndef SX_TENSOR_SEMANTICS_NUMBER_H
#define SX_TENSOR_SEMANTICS_NUMBER_H

#include "tensor/semantics_decimal.h"
#include "tensor/semantics_text.h"

/* ---- parts of the text ---- */

/* What stands behind the 'e': 16 bits, and a point may follow. No digits where spaces end the text. */
SX_BOTH bool sx_number_exponent(struct sx_span *span, bool has_spaces, int64_t *out_exponent) {
    const int64_t n_digits = sx_span_exponent(span, out_exponent);
    if (n_digits > 0)
        sx_span_skip(span, '.');
    return n_digits >= !has_spaces && *out_exponent >= INT16_MIN && *out_exponent <= INT16_MAX;
}

/* A sign is a number where spaces end the text. */
SX_BOTH bool sx_number_split(struct sx_span span, bool has_spaces, struct sx_number_text *out) {
    if (span.at == span.end || !sx_span_number(&span, out))
        return false;
    if (out->n_whole == 0 && out->n_fraction == 0)
        return has_spaces && !out->has_point && span.at == span.end;
    out->has_exponent = sx_span_skip(&span, 'e') || sx_span_skip(&span, 'E');
    return (!out->has_exponent || sx_number_exponent(&span, has_spaces, &out->exponent)) &&
           span.at == span.end;
}

/* ---- arithmetic of digits ---- */

/* Up to 18 digits and nothing else. */
SX_BOTH bool sx_span_plain(struct sx_span span, uint64_t *out) {
    uint64_t value = 0;
    if (span.at == span.end || span.end - span.at > 18)
        return false;
    for (; span.at < span.end; span.at++) {
        if (!sx_is_digit(*span.at))
            return false;
        value = value * 10 + (unsigned)(*span.at - '0');
    }
    *out = value;
    return true;
}

/* Leaves out the digits that would exceed the limit; returns their number. */
SX_BOTH int64_t sx_digits_within(struct sx_span digits, sx_u128 limit, sx_u128 *out) {
    const sx_u128 most = limit / 10;
    sx_u128 value = 0;
    int64_t left_out = 0;
    for (; digits.at < digits.end; digits.at++) {
        const unsigned digit = (unsigned)(*digits.at - '0');
        if (*digits.at == '_')
            continue;
        if (value > most || digit > limit - value * 10)
            left_out++;
        else
            value = value * 10 + digit;
    }
    *out = value;
    return left_out;
}

/* Times 10^power; false above the limit. */
SX_BOTH bool sx_append_zeros(sx_u128 *value, int64_t power, sx_u128 limit) {
    const sx_u128 most = limit / 10;
    for (; power > 0 && *value; power--) {
        if (*value > most)
            return false;
        *value *= 10;
    }
    return true;
}

/* Takes the last digits off; returns whether the first of them is 5 or more. */
SX_BOTH bool sx_cut_digits(sx_u128 *value, int64_t digits) {
    const int64_t most = 39; /* of 128 bits; the first of them is 3 at most */
    if (digits <= 0)
        return false;
    const sx_u128 rest = digits > most ? 0 : *value / (sx_u128)sx_power_of_ten((int)digits - 1);
    *value = rest / 10;
    return rest % 10 >= 5;
}

/* ---- integers ---- */

/* Digits with single '_' between them, behind 0x or 0b. */
SX_BOTH bool sx_text_radix(struct sx_span span, sx_u128 limit, sx_u128 *out) {
    const int bits = sx_ascii_lower(span.at[1]) == 'x' ? 4 : 1;
    sx_u128 value = 0;
    bool after_digit = false;
    for (span.at += 2; span.at < span.end; span.at++) {
        const char c = sx_ascii_lower(*span.at);
        if (c == '_' && after_digit) {
            after_digit = false;
            continue;
        }
        const int digit = sx_is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
        if (digit >= 1 << bits || value > limit >> bits)
            return false;
        value = value << bits | (unsigned)digit;
        after_digit = true;
    }
    *out = value;
    return after_digit && value <= limit;
}

/* The largest values while the text is read, which differ from the type's. */
struct sx_integer_limits {
    sx_u128 whole, fraction;
    bool is_wide;
};

SX_BOTH struct sx_integer_limits sx_integer_limits_of(sx_u128 lowest, sx_u128 highest, bool negative) {
    struct sx_integer_limits limits;
    limits.is_wide = highest > UINT64_MAX;
    limits.fraction = highest >= UINT64_MAX ? highest : INT64_MAX;
    limits.whole = limits.is_wide && negative ? lowest : limits.fraction + negative;
    return limits;
}

/* Adds the digits behind the point that the exponent brings before it; returns whether the rest is rounded
 * up. */
SX_BOTH bool sx_integer_add_fraction(const struct sx_number_text *number, int64_t n_cut,
                                     const struct sx_integer_limits *limits, sx_u128 fraction, sx_u128 *whole,
                                     bool *out_round) {
    const int64_t most_cut = 38;
    if (limits->is_wide && number->has_exponent && fraction && n_cut > most_cut)
        return false;
    if (!sx_append_zeros(whole, number->exponent, limits->whole) ||
        !sx_append_zeros(&fraction, -n_cut, limits->fraction))
        return false;
    *out_round = sx_cut_digits(&fraction, n_cut);
    if (fraction > limits->whole - *whole)
        return false;
    *whole += fraction;
    return true;
}

/* DuckDB adds up the digits of a wide integer's fraction in pieces of 63 bits. */
SX_BOTH struct sx_span sx_without_last_piece(struct sx_span digits) {
    struct sx_span before = {digits.at, digits.at};
    int64_t piece = 0;
    for (; digits.at < digits.end; digits.at++) {
        const int digit = *digits.at - '0';
        if (*digits.at == '_')
            continue;
        if (piece > (INT64_MAX - digit) / 10) {
            before.end = digits.at;
            piece = 0;
        }
        piece = piece * 10 + digit;
    }
    return before;
}

/* Digits of a fraction that 64 bits can't hold are left out; 128 bits must hold all, but for a last piece
 * that isn't needed. */
SX_BOTH bool sx_number_integer(const struct sx_number_text *number, sx_u128 lowest, sx_u128 highest,
                               sx_u128 *out_magnitude) {
    const struct sx_integer_limits limits = sx_integer_limits_of(lowest, highest, number->negative);
    const sx_u128 limit = number->negative ? lowest : highest;
    const bool shrinks = number->exponent < 0;
    const struct sx_span digits =
        shrinks && limits.is_wide ? sx_without_last_piece(number->fraction) : number->fraction;
    sx_u128 whole, fraction;
    bool round = false;
    const int64_t left_out = sx_digits_within(digits, limits.fraction, &fraction);
    if (sx_digits_within(number->whole, limits.whole, &whole) || (limits.is_wide && left_out))
        return false;
    const int64_t n_cut = number->n_fraction - left_out - number->exponent;
    if (shrinks)
        round = sx_cut_digits(&whole, -number->exponent);
    else if (!sx_integer_add_fraction(number, n_cut, &limits, fraction, &whole, &round))
        return false;
    if (whole > limit || (whole == limit && round))
        return false;
    *out_magnitude = whole + round;
    return true;
}

/* Magnitude and sign of an integer within [-lowest, highest]. Hexadecimal and binary up to 64 bits. */
SX_BOTH bool sx_text_to_integer(const char *bytes, uint32_t length_bytes, sx_u128 lowest, sx_u128 highest,
                                sx_u128 *out_magnitude, bool *out_negative) {
    const struct sx_span span = sx_span_trim(bytes, length_bytes);
    const bool negative = span.at < span.end && *span.at == '-';
    const bool has_spaces = span.end < bytes + length_bytes;
    struct sx_span digits = {span.at + (negative || (span.at < span.end && *span.at == '+')), span.end};
    uint64_t plain;
    *out_negative = negative;
    if (negative && lowest == 0) {
        *out_magnitude = 0;
        while (sx_span_skip(&digits, '0'))
            ;
        return !has_spaces && digits.at == digits.end && span.end - span.at > 1;
    }
    if (sx_span_plain(digits, &plain)) {
        *out_magnitude = plain;
        return plain <= (negative ? lowest : highest);
    }
    if (highest <= UINT64_MAX && span.end - span.at > 2 && span.at[0] == '0' &&
        (sx_ascii_lower(span.at[1]) == 'x' || sx_ascii_lower(span.at[1]) == 'b'))
        return !has_spaces && sx_text_radix(span, highest, out_magnitude);
    struct sx_number_text number;
    return sx_number_split(span, has_spaces, &number) &&
           sx_number_integer(&number, lowest, highest, out_magnitude);
}

/* ---- decimals ---- */

/* A negative exponent takes digits off until none is left; the last one taken rounds what remains. */
SX_BOTH void sx_decimal_shrink(sx_u128 *value, int64_t digits) {
    bool round = false;
    for (; digits > 0 && *value; digits--) {
        round = *value % 10 >= 5;
        *value /= 10;
    }
    *value += round;
}

/* A positive one needs room for the digits it appends to what was read, wherever the point stood. */
SX_BOTH bool sx_decimal_grow(sx_u128 *value, int64_t exponent, int64_t n_excess, int64_t room,
                             sx_u128 limit) {
    const int64_t n_zeros = exponent - (n_excess > 0 ? n_excess : 0);
    if (n_zeros < 0)
        *value += sx_cut_digits(value, -n_zeros);
    else if (*value && n_zeros > room)
        return false;
    return sx_append_zeros(value, n_zeros, limit);
}

/* Digits that DuckDB's integer for the precision holds. */
SX_BOTH int sx_decimal_held_digits(int precision) {
    return precision <= 4 ? 4 : precision <= 9 ? 9 : precision <= 18 ? 18 : 38;
}

/* Reads up to `most` digits; returns their number. */
SX_BOTH int64_t sx_decimal_digits(struct sx_span *digits, int64_t most, sx_u128 *value) {
    int64_t count = 0;
    for (; digits->at < digits->end && count < most; digits->at++) {
        if (*digits->at == '_')
            continue;
        *value = *value * 10 + (unsigned)(*digits->at - '0');
        count++;
    }
    sx_span_skip(digits, '_');
    return count;
}

/* `limit`: the largest magnitude, 10^precision - 1. */
SX_BOTH bool sx_text_to_decimal(const char *bytes, uint32_t length_bytes, int precision, int scale,
                                sx_i128 limit, sx_i128 *out) {
    const struct sx_span span = sx_span_trim(bytes, length_bytes);
    struct sx_number_text number;
    if (!sx_number_split(span, span.end < bytes + length_bytes, &number))
        return false;
    sx_u128 value = 0;
    struct sx_span whole = number.whole, fraction = number.fraction;
    while (whole.at < whole.end && (*whole.at == '0' || *whole.at == '_'))
        whole.at++;
    int64_t room = precision - scale;
    room -= sx_decimal_digits(&whole, room, &value);
    if (whole.at < whole.end)
        return false;
    const int64_t n_held = sx_decimal_held_digits(precision) - (precision - scale - room);
    const int64_t n_fraction = sx_decimal_digits(&fraction, number.exponent > 0 ? n_held : scale, &value);
    for (int64_t i = n_fraction; i < scale; i++)
        value *= 10;
    if (number.exponent < 0)
        sx_decimal_shrink(&value, -number.exponent);
    else if (number.exponent == 0)
        value += fraction.at < fraction.end && *fraction.at >= '5';
    else if (!sx_decimal_grow(&value, number.exponent, n_fraction - scale, room, (sx_u128)limit))
        return false;
    *out = number.negative ? -(sx_i128)value : (sx_i128)value;
    return value <= (sx_u128)limit;
}

#endif
