/* Floating point to its shortest text and back, in exact arithmetic, so that every compiler and device gives
 * the same digits. */
#ifndef SX_TENSOR_SEMANTICS_FLOAT_H
#define SX_TENSOR_SEMANTICS_FLOAT_H

#include "tensor/semantics_text.h"

/* ---- large natural numbers ---- */

/* Enough for 10^364 times 2^54, least word first; words from n on are not set. */
enum { SX_BIG_WORDS = 42 };
struct sx_big {
    int n;
    uint32_t words[SX_BIG_WORDS];
};

SX_BOTH void sx_big_set(struct sx_big *big, uint64_t value) {
    big->words[0] = (uint32_t)value;
    big->words[1] = (uint32_t)(value >> 32);
    big->n = value >> 32 ? 2 : value != 0;
}
SX_BOTH void sx_big_multiply(struct sx_big *big, uint32_t factor) {
    uint64_t carry = 0;
    for (int i = 0; i < big->n; i++) {
        carry += (uint64_t)big->words[i] * factor;
        big->words[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry)
        big->words[big->n++] = (uint32_t)carry;
}
SX_BOTH void sx_big_multiply_power(struct sx_big *big, int power_of_ten) {
    for (; power_of_ten >= 9; power_of_ten -= 9)
        sx_big_multiply(big, 1000000000);
    uint32_t rest = 1;
    for (; power_of_ten > 0; power_of_ten--)
        rest *= 10;
    sx_big_multiply(big, rest);
}
SX_BOTH void sx_big_shift(struct sx_big *big, int bits) {
    const int words = bits / 32, rest = bits % 32;
    if (big->n == 0 || bits == 0)
        return;
    big->words[big->n] = 0;
    for (int i = big->n; i >= 0; i--) {
        const uint64_t below = i > 0 && rest ? big->words[i - 1] >> (32 - rest) : 0;
        big->words[i + words] = (uint32_t)((uint64_t)big->words[i] << rest | below);
    }
    for (int i = 0; i < words; i++)
        big->words[i] = 0;
    big->n += words + (big->words[big->n + words] != 0);
}
SX_BOTH int sx_big_bits(const struct sx_big *big) {
    int bits = 0;
    for (uint32_t top = big->n ? big->words[big->n - 1] : 0; top; top >>= 1)
        bits++;
    return big->n ? 32 * (big->n - 1) + bits : 0;
}
SX_BOTH int sx_big_compare(const struct sx_big *a, const struct sx_big *b) {
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (int i = a->n - 1; i >= 0; i--)
        /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): n words are set */
        if (a->words[i] != b->words[i])
            return a->words[i] < b->words[i] ? -1 : 1;
    return 0;
}
/* a -= times * b, which is at most a. */
SX_BOTH void sx_big_subtract(struct sx_big *a, const struct sx_big *b, uint32_t times) {
    uint64_t product = 0, borrow = 0;
    for (int i = 0; i < a->n; i++) {
        product += i < b->n ? (uint64_t)b->words[i] * times : 0;
        const uint64_t difference = (uint64_t)a->words[i] - (uint32_t)product - borrow;
        a->words[i] = (uint32_t)difference;
        borrow = difference >> 63;
        product >>= 32;
    }
    while (a->n > 0 && a->words[a->n - 1] == 0)
        a->n--;
}
/* Sign of a + b - c. */
SX_BOTH int sx_big_compare_sum(const struct sx_big *a, const struct sx_big *b, const struct sx_big *c) {
    struct sx_big sum;
    uint64_t carry = 0;
    sum.n = a->n > b->n ? a->n : b->n;
    for (int i = 0; i < sum.n; i++) {
        carry += (uint64_t)(i < a->n ? a->words[i] : 0) + (i < b->n ? b->words[i] : 0);
        sum.words[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry)
        sum.words[sum.n++] = (uint32_t)carry;
    return sx_big_compare(&sum, c);
}

/* ---- digits of a value ---- */

/* A binary floating-point type: a value is mantissa * 2^exponent. */
struct sx_float_format {
    int mantissa_bits; /* with the leading one */
    int min_exponent, max_exponent;
};
SX_BOTH struct sx_float_format sx_format_f64(void) {
    const struct sx_float_format format = {53, -1074, 971};
    return format;
}
SX_BOTH struct sx_float_format sx_format_f32(void) {
    const struct sx_float_format format = {24, -149, 104};
    return format;
}

enum { SX_FLOAT_DIGITS = 20 };

struct sx_digits {
    char text[SX_FLOAT_DIGITS]; /* d1 d2 … for d1.d2… * 10^exponent */
    int n;
    int exponent;
    bool is_tie; /* two texts of n digits are equally near */
};

/* rest / one is the value over 10^exponent + 1, brought to where the next digit can be taken off. */
SX_BOTH int sx_digit_next(struct sx_big *rest, const struct sx_big *one) {
    const int top = one->n - 1;
    uint32_t digit = rest->n == one->n ? rest->words[top] / (one->words[top] + 1) : 0;
    if (digit)
        sx_big_subtract(rest, one, digit);
    for (; sx_big_compare(rest, one) >= 0; digit++)
        sx_big_subtract(rest, one, 1);
    return (int)digit;
}

/* Estimate of the decimal exponent behind the first digit of mantissa * 2^exponent: right or one too small.
 */
SX_BOTH int sx_digits_estimate(uint64_t mantissa, int exponent) {
    int bits = -1;
    for (uint64_t m = mantissa; m; m >>= 1)
        bits++;
    const double estimate = (double)(bits + exponent) * 0.30102999566398114 - 1e-10;
    const int whole = (int)estimate;
    return whole + (estimate > (double)whole);
}

/* Steele and White, "How to print floating-point numbers accurately" (1990): the fewest digits between the
 * halfway points to the neighbours (`with_ends`: or on them), and of those the nearest; half to even. */
SX_BOTH struct sx_digits sx_digits_shortest(uint64_t mantissa, int exponent, struct sx_float_format format,
                                            bool with_ends) {
    struct sx_digits digits;
    struct sx_big rest, one, below, above;
    const bool is_power =
        mantissa == (uint64_t)1 << (format.mantissa_bits - 1) && exponent > format.min_exponent;
    sx_big_set(&rest, mantissa);
    sx_big_set(&one, 1);
    sx_big_set(&below, 1);
    sx_big_shift(&rest, (exponent > 0 ? exponent : 0) + 1 + is_power);
    sx_big_shift(&one, (exponent < 0 ? -exponent : 0) + 1 + is_power);
    sx_big_shift(&below, exponent > 0 ? exponent : 0);
    int power = sx_digits_estimate(mantissa, exponent);
    if (power > 0) {
        sx_big_multiply_power(&one, power);
    } else {
        sx_big_multiply_power(&rest, -power);
        sx_big_multiply_power(&below, -power);
    }
    /* the top word of `one` has 28 bits, so that ten times it has as many words */
    const int shift = (32 + 28 - (sx_big_bits(&one) - 1) % 32 - 1) % 32;
    sx_big_shift(&rest, shift);
    sx_big_shift(&one, shift);
    sx_big_shift(&below, shift);
    above = below;
    sx_big_shift(&above, is_power);
    if (sx_big_compare_sum(&rest, &above, &one) >= !with_ends) {
        power++;
    } else {
        sx_big_multiply(&rest, 10);
        sx_big_multiply(&below, 10);
        sx_big_multiply(&above, 10);
    }
    bool is_low = false, is_high = false;
    for (digits.n = 0;; digits.n++) {
        const int digit = sx_digit_next(&rest, &one);
        digits.text[digits.n] = (char)('0' + digit);
        is_low = sx_big_compare(&rest, &below) < with_ends;
        is_high = sx_big_compare_sum(&rest, &above, &one) >= !with_ends;
        if (is_low || is_high || digits.n == SX_FLOAT_DIGITS - 1)
            break;
        sx_big_multiply(&rest, 10);
        sx_big_multiply(&below, 10);
        sx_big_multiply(&above, 10);
    }
    const int half = sx_big_compare_sum(&rest, &rest, &one);
    digits.is_tie = half == 0;
    char *last = &digits.text[digits.n++];
    if (is_low && is_high ? half > 0 || (half == 0 && (*last - '0') % 2) : is_high)
        ++*last;
    digits.exponent = power - 1;
    return digits;
}

/* ---- text to a value ---- */

/* The significant digits of a number's text, one after the other. */
struct sx_digit_reader {
    const char *at, *end;
};
SX_BOTH int sx_digit_read(struct sx_digit_reader *reader) {
    while (reader->at < reader->end && !sx_is_digit(*reader->at))
        reader->at++;
    return reader->at < reader->end ? *reader->at++ - '0' : -1;
}

/* Sign of the number `digits` (first one not zero, of the value d1.d2… * 10^exponent) minus mantissa *
 * 2^power. */
SX_BOTH int sx_digits_compare(struct sx_digit_reader digits, int exponent, uint64_t mantissa, int power) {
    struct sx_big rest, one;
    sx_big_set(&rest, mantissa);
    sx_big_set(&one, 1);
    sx_big_shift(&rest, power > 0 ? power : 0);
    sx_big_shift(&one, power < 0 ? -power : 0);
    sx_big_multiply_power(exponent > 0 ? &one : &rest, exponent > 0 ? exponent : -exponent);
    const int shift = (32 + 28 - (sx_big_bits(&one) - 1) % 32 - 1) % 32;
    sx_big_shift(&rest, shift);
    sx_big_shift(&one, shift);
    struct sx_big ten = one;
    sx_big_multiply(&ten, 10);
    if (sx_big_compare(&rest, &ten) >= 0)
        return -1;
    for (;;) {
        const int digit = sx_digit_next(&rest, &one), read = sx_digit_read(&digits);
        if (read < 0)
            return digit == 0 && rest.n == 0 ? 0 : -1;
        if (read != digit)
            return read < digit ? -1 : 1;
        sx_big_multiply(&rest, 10);
    }
}

/* Mantissa and exponent of the number nearest to `digits` * 10^exponent (half to even; `reader`: all digits,
 * of which `digits` holds the first 19 at most, the first not zero). False: too large. */
SX_BOTH bool sx_float_nearest(uint64_t digits, int exponent, struct sx_digit_reader reader,
                              int first_exponent, bool has_more, struct sx_float_format format,
                              uint64_t *out_mantissa, int *out_exponent) {
    struct sx_big value, one;
    sx_big_set(&value, digits);
    sx_big_set(&one, 1);
    sx_big_multiply_power(exponent > 0 ? &value : &one, exponent > 0 ? exponent : -exponent);
    int top = sx_big_bits(&value) - sx_big_bits(&one);
    sx_big_shift(top > 0 ? &one : &value, top > 0 ? top : -top);
    if (sx_big_compare(&value, &one) < 0) {
        sx_big_shift(&value, 1);
        top--;
    }
    int unit = top - (format.mantissa_bits - 1);
    unit = unit < format.min_exponent ? format.min_exponent : unit;
    uint64_t mantissa = 0;
    *out_mantissa = 0;
    *out_exponent = unit;
    if (top < unit - 2)
        return true;
    for (int bit = top; bit >= unit; bit--) {
        const bool set = sx_big_compare(&value, &one) >= 0;
        mantissa = mantissa << 1 | set;
        if (set)
            sx_big_subtract(&value, &one, 1);
        sx_big_shift(&value, 1);
    }
    int half = top < unit - 1 ? -1 : sx_big_compare(&value, &one);
    if (has_more && half <= 0)
        half = half == 0 ? 1 : sx_digits_compare(reader, first_exponent, 2 * mantissa + 1, unit - 1);
    mantissa += half > 0 || (half == 0 && (mantissa & 1));
    if (mantissa >> format.mantissa_bits) {
        mantissa >>= 1;
        ++*out_exponent;
    }
    *out_mantissa = mantissa;
    return *out_exponent <= format.max_exponent;
}

/* Without its sign. False: too large. */
SX_BOTH bool sx_number_float(const struct sx_number_text *number, struct sx_float_format format,
                             uint64_t *out_mantissa, int *out_exponent) {
    enum { MOST_DIGITS = 19, LARGEST = 310, SMALLEST = -345 };
    struct sx_digit_reader reader = {number->whole.at, number->fraction.end}, first;
    int64_t exponent = number->n_whole + number->exponent; /* of the digit that is read next, plus 1 */
    uint64_t digits = 0;
    int n = 0, digit;
    bool has_more = false;
    *out_mantissa = 0;
    *out_exponent = 0;
    do {
        first = reader;
        digit = sx_digit_read(&reader);
        exponent--;
    } while (digit == 0);
    if (digit < 0 || exponent < SMALLEST)
        return true;
    if (exponent > LARGEST)
        return false;
    for (; digit >= 0 && n < MOST_DIGITS; digit = sx_digit_read(&reader), n++)
        digits = digits * 10 + (unsigned)digit;
    for (; digit >= 0 && !has_more; digit = sx_digit_read(&reader))
        has_more = digit > 0;
    return sx_float_nearest(digits, (int)exponent - n + 1, first, (int)exponent, has_more, format,
                            out_mantissa, out_exponent);
}

/* A plus may come before a minus. */
SX_BOTH struct sx_span sx_span_float(const char *bytes, uint32_t length_bytes) {
    struct sx_span span = sx_span_trim(bytes, length_bytes);
    if (span.end - span.at > 1 && span.at[0] == '+' && span.at[1] == '-')
        span.at++;
    return span;
}

/* DuckDB reads up to two eights of digits at once, and takes no '_' behind the last of them. */
SX_BOTH bool sx_fraction_is_float(struct sx_span fraction) {
    const char *at = fraction.at;
    while (at < fraction.end && *at != '_')
        at++;
    return at == fraction.end || (at - fraction.at != 8 && at - fraction.at != 16);
}

SX_BOTH bool sx_number_parse(struct sx_span span, struct sx_number_text *out) {
    if (!sx_span_number(&span, out) || out->n_whole + out->n_fraction == 0 ||
        !sx_fraction_is_float(out->fraction))
        return false;
    if ((sx_span_skip(&span, 'e') || sx_span_skip(&span, 'E')) &&
        sx_span_exponent(&span, &out->exponent) <= 0)
        return false;
    return span.at == span.end;
}

/* With or without letters, digits and '_' in parentheses. */
SX_BOTH bool sx_span_is_nan(struct sx_span span) {
    if (span.end - span.at < 5 || span.at[3] != '(' || span.end[-1] != ')')
        return sx_span_is(span, "nan");
    for (const char *at = span.at + 4; at < span.end - 1; at++)
        if (!sx_is_digit(*at) && *at != '_' && (sx_ascii_lower(*at) < 'a' || sx_ascii_lower(*at) > 'z'))
            return false;
    span.end = span.at + 3;
    return sx_span_is(span, "nan");
}

SX_BOTH bool sx_span_special_float(struct sx_span span, double *out) {
    const bool negative = span.at < span.end && *span.at == '-';
    if (span.at < span.end && (*span.at == '-' || *span.at == '+'))
        span.at++;
    double value = 0;
    const bool is_infinite = sx_span_is(span, "inf") || sx_span_is(span, "infinity");
    const uint64_t bits = is_infinite ? UINT64_C(0x7ff0000000000000) : UINT64_C(0x7ff8000000000000);
    if (!is_infinite && !sx_span_is_nan(span))
        return false;
    const uint64_t with_sign = bits | (uint64_t)negative << 63;
    memcpy(&value, &with_sign, sizeof value);
    *out = value;
    return true;
}

/* False when the text is no number. What is out of range becomes infinite or zero. */
SX_BOTH bool sx_exact_text_to_f64(const char *bytes, uint32_t length_bytes, double *out_value) {
    const struct sx_span span = sx_span_float(bytes, length_bytes);
    struct sx_number_text number;
    if (sx_span_special_float(span, out_value))
        return true;
    if (!sx_number_parse(span, &number))
        return false;
    uint64_t bits;
    int exponent;
    if (!sx_number_float(&number, sx_format_f64(), &bits, &exponent))
        bits = UINT64_C(0x7ff0000000000000);
    else if (bits >> 52)
        bits = (bits & ((UINT64_C(1) << 52) - 1)) | (uint64_t)(exponent + 1075) << 52;
    bits |= (uint64_t)number.negative << 63;
    memcpy(out_value, &bits, sizeof bits);
    return true;
}
SX_BOTH bool sx_exact_text_to_f32(const char *bytes, uint32_t length_bytes, float *out_value) {
    const struct sx_span span = sx_span_float(bytes, length_bytes);
    struct sx_number_text number;
    double special;
    if (sx_span_special_float(span, &special)) {
        *out_value = (float)special;
        return true;
    }
    if (!sx_number_parse(span, &number))
        return false;
    uint64_t mantissa;
    int exponent;
    uint32_t bits;
    if (!sx_number_float(&number, sx_format_f32(), &mantissa, &exponent))
        bits = 0x7f800000;
    else if (mantissa >> 23)
        bits = ((uint32_t)mantissa & 0x7fffff) | (uint32_t)(exponent + 150) << 23;
    else
        bits = (uint32_t)mantissa;
    bits |= (uint32_t)number.negative << 31;
    memcpy(out_value, &bits, sizeof bits);
    return true;
}

#endif
