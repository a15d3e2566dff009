/* Text to values, as DuckDB reads it. All return false when the text is no such value. */
#ifndef SX_TENSOR_SEMANTICS_TEXT_H
#define SX_TENSOR_SEMANTICS_TEXT_H

#include "tensor/semantics_date.h"

struct sx_span {
    const char *at, *end;
};

SX_BOTH bool sx_is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}
SX_BOTH bool sx_is_digit(char c) {
    return c >= '0' && c <= '9';
}
SX_BOTH char sx_ascii_lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}
SX_BOTH struct sx_span sx_span_trim(const char *bytes, uint32_t length_bytes) {
    struct sx_span span = {bytes, bytes + length_bytes};
    while (span.at < span.end && sx_is_space(*span.at))
        span.at++;
    while (span.at < span.end && sx_is_space(span.end[-1]))
        span.end--;
    return span;
}
/* `word` in lower case. */
SX_BOTH bool sx_span_is(struct sx_span span, const char *word) {
    for (; span.at < span.end && *word; span.at++, word++)
        if (sx_ascii_lower(*span.at) != *word)
            return false;
    return span.at == span.end && !*word;
}

SX_BOTH bool sx_span_skip(struct sx_span *span, char c) {
    const bool found = span->at < span->end && *span->at == c;
    span->at += found;
    return found;
}

SX_BOTH bool sx_text_to_bool(const char *bytes, uint32_t length_bytes, uint8_t *out) {
    const struct sx_span span = {bytes, bytes + length_bytes};
    *out = sx_span_is(span, "true") || sx_span_is(span, "t") || sx_span_is(span, "1") ||
           sx_span_is(span, "yes") || sx_span_is(span, "y");
    return *out || sx_span_is(span, "false") || sx_span_is(span, "f") || sx_span_is(span, "0") ||
           sx_span_is(span, "no") || sx_span_is(span, "n");
}

/* ---- numbers ---- */

/* A number's parts: sign, digits with '_' between some, exponent. */
struct sx_number_text {
    bool negative, has_point, has_exponent;
    struct sx_span whole, fraction;
    int64_t n_whole, n_fraction;
    int64_t exponent;
};

/* Digits with single '_' between them; returns their number, or -1. */
SX_BOTH int64_t sx_span_digits(struct sx_span *span) {
    int64_t count = 0;
    while (span->at < span->end) {
        const char c = *span->at;
        if (c == '_' && count && sx_is_digit(span->at[-1]) && span->at + 1 < span->end &&
            sx_is_digit(span->at[1])) {
            span->at++;
            continue;
        }
        if (c == '_')
            return -1;
        if (!sx_is_digit(c))
            break;
        count++, span->at++;
    }
    return count;
}

/* Returns the number of digits, or -1. */
SX_BOTH int64_t sx_span_exponent(struct sx_span *span, int64_t *out_exponent) {
    const int64_t limit = 1000000;
    const bool negative = sx_span_skip(span, '-');
    if (!negative)
        sx_span_skip(span, '+');
    struct sx_span digits = *span;
    const int64_t n_digits = sx_span_digits(span);
    int64_t exponent = 0;
    for (; digits.at < span->at; digits.at++)
        if (*digits.at != '_' && exponent < limit)
            exponent = exponent * 10 + (*digits.at - '0');
    *out_exponent = negative ? -exponent : exponent;
    return n_digits;
}

/* Sign and digits, which may be none; false when a '_' is not between two. */
SX_BOTH bool sx_span_number(struct sx_span *span, struct sx_number_text *out) {
    out->negative = sx_span_skip(span, '-');
    if (!out->negative)
        sx_span_skip(span, '+');
    out->has_exponent = false;
    out->exponent = 0;
    out->whole = *span;
    out->n_whole = sx_span_digits(span);
    out->whole.end = span->at;
    out->has_point = sx_span_skip(span, '.');
    out->fraction = *span;
    out->n_fraction = out->has_point ? sx_span_digits(span) : 0;
    out->fraction.end = span->at;
    return out->n_whole >= 0 && out->n_fraction >= 0;
}

/* ---- dates ---- */

enum sx_text_result { SX_TEXT_OK, SX_TEXT_FORMAT, SX_TEXT_RANGE, SX_TEXT_NOT_UTC };

/* One or two digits. */
SX_BOTH bool sx_span_two_digits(struct sx_span *span, int32_t *out) {
    if (span->at == span->end || !sx_is_digit(*span->at))
        return false;
    *out = *span->at++ - '0';
    if (span->at < span->end && sx_is_digit(*span->at))
        *out = *out * 10 + (*span->at++ - '0');
    return true;
}

SX_BOTH bool sx_span_bc(struct sx_span *span) {
    if (span->end - span->at < 5 || !sx_is_space(span->at[0]))
        return false;
    const struct sx_span word = {span->at + 1, span->at + 5};
    if (!sx_span_is(word, "(bc)"))
        return false;
    span->at += 5;
    return true;
}

SX_BOTH enum sx_text_result sx_span_special_date(struct sx_span *span, int32_t *out_days) {
    struct sx_span word = *span;
    while (word.end > word.at && sx_is_space(word.end[-1]))
        word.end--;
    const bool has_spaces = word.end < span->end;
    const bool negative = word.at < word.end && *word.at == '-';
    word.at += negative;
    if (sx_span_is(word, "infinity") || (sx_span_is(word, "inf") && !has_spaces))
        *out_days = negative ? -SX_DATE_INFINITY : SX_DATE_INFINITY;
    else if (sx_span_is(word, "epoch"))
        *out_days = 0;
    else
        return SX_TEXT_FORMAT;
    span->at = span->end;
    return SX_TEXT_OK;
}

/* Moves behind the date; what follows is the caller's to judge. */
SX_BOTH enum sx_text_result sx_span_date(struct sx_span *span, int32_t *out_days) {
    const int64_t most = 100000000;
    while (span->at < span->end && sx_is_space(*span->at))
        span->at++;
    struct sx_span from_sign = *span;
    const bool negative = span->at < span->end && *span->at == '-';
    span->at += negative;
    if (span->at == span->end)
        return SX_TEXT_FORMAT;
    if (!sx_is_digit(*span->at)) {
        *span = from_sign;
        return sx_span_special_date(span, out_days);
    }
    int64_t year = 0;
    for (; span->at < span->end && sx_is_digit(*span->at); span->at++)
        if ((year = year * 10 + (*span->at - '0')) > most)
            return SX_TEXT_RANGE;
    if (span->at == span->end)
        return SX_TEXT_FORMAT;
    const char separator = *span->at++;
    int32_t month, day;
    if (separator != ' ' && separator != '-' && separator != '/' && separator != '\\')
        return SX_TEXT_FORMAT;
    if (!sx_span_two_digits(span, &month) || span->at == span->end || *span->at++ != separator ||
        !sx_span_two_digits(span, &day))
        return SX_TEXT_FORMAT;
    year = negative ? -year : year;
    if (sx_span_bc(span)) {
        if (negative || year == 0)
            return SX_TEXT_FORMAT;
        year = 1 - year;
    }
    if (span->at < span->end && sx_is_digit(*span->at))
        return SX_TEXT_FORMAT;
    if (month < 1 || month > SX_MONTHS_PER_YEAR || day < 1 || day > sx_days_in_month(year, month))
        return SX_TEXT_RANGE;
    const int64_t days = sx_days_from_civil(year, month, day);
    if (days >= SX_DATE_INFINITY || days <= -SX_DATE_INFINITY)
        return SX_TEXT_RANGE;
    *out_days = (int32_t)days;
    return SX_TEXT_OK;
}

SX_BOTH enum sx_text_result sx_text_to_date(const char *bytes, uint32_t length_bytes, int32_t *out_days) {
    struct sx_span span = {bytes, bytes + length_bytes};
    return sx_span_date(&span, out_days);
}

/* HH:[MM[:SS[.fraction]]]; micros since midnight, hours unbounded. */
SX_BOTH bool sx_span_time(struct sx_span *span, int64_t *out_micros) {
    int64_t hour = 0, micros = 0;
    int32_t minute = 0, second = 0;
    while (span->at < span->end && sx_is_space(*span->at))
        span->at++;
    const char *const first = span->at;
    for (; span->at < span->end && sx_is_digit(*span->at) && span->at - first < 9; span->at++)
        hour = hour * 10 + (*span->at - '0');
    if (span->at == first || span->at == span->end || *span->at++ != ':')
        return false;
    if (span->at < span->end && (!sx_span_two_digits(span, &minute) || minute >= 60))
        return false;
    if (span->at < span->end && *span->at++ != ':')
        return false;
    if (span->at < span->end && (!sx_span_two_digits(span, &second) || second >= 60))
        return false;
    if (span->at < span->end && *span->at == '.')
        for (int64_t unit = 100000; ++span->at < span->end && sx_is_digit(*span->at); unit /= 10)
            micros += unit * (*span->at - '0');
    *out_micros = ((hour * 60 + minute) * 60 + second) * 1000000 + micros;
    return true;
}

SX_BOTH bool sx_span_skip_two_digits(struct sx_span *span) {
    const bool found = span->end - span->at >= 2 && sx_is_digit(span->at[0]) && sx_is_digit(span->at[1]);
    span->at += 2 * found;
    return found;
}

/* +HH[MM], +HH:[MM[:[SS]]]; read, and without meaning for a timestamp without time zone. */
SX_BOTH bool sx_span_offset(struct sx_span *span) {
    struct sx_span at = *span;
    if ((!sx_span_skip(&at, '+') && !sx_span_skip(&at, '-')) || !sx_span_skip_two_digits(&at))
        return false;
    if (!sx_span_skip(&at, ':'))
        sx_span_skip_two_digits(&at);
    else if (sx_span_skip_two_digits(&at) && sx_span_skip(&at, ':'))
        sx_span_skip_two_digits(&at);
    *span = at;
    return true;
}

SX_BOTH bool sx_is_zone_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || sx_is_digit(c) || c == '_' || c == '/' ||
           c == '+' || c == '-';
}

/* What may follow the time: Z, an offset, UTC, spaces. */
SX_BOTH enum sx_text_result sx_span_zone(struct sx_span span) {
    if (span.at < span.end && *span.at == 'Z') {
        span.at++;
    } else if (span.at < span.end && !sx_span_offset(&span)) {
        if (*span.at++ != ' ')
            return SX_TEXT_NOT_UTC;
        struct sx_span zone = {span.at, span.at};
        while (span.at < span.end && sx_is_zone_character(*span.at))
            span.at++;
        zone.end = span.at;
        while (span.at < span.end && sx_is_space(*span.at))
            span.at++;
        if (span.at < span.end)
            return SX_TEXT_FORMAT;
        return zone.at == zone.end || sx_span_is(zone, "utc") ? SX_TEXT_OK : SX_TEXT_NOT_UTC;
    }
    while (span.at < span.end && sx_is_space(*span.at))
        span.at++;
    return span.at == span.end ? SX_TEXT_OK : SX_TEXT_FORMAT;
}

SX_BOTH enum sx_text_result sx_text_to_timestamp(const char *bytes, uint32_t length_bytes,
                                                 int64_t *out_micros) {
    struct sx_span span = {bytes, bytes + length_bytes};
    int32_t days;
    int64_t of_day = 0;
    const enum sx_text_result date = sx_span_date(&span, &days);
    if (date != SX_TEXT_OK)
        return date;
    if (!sx_date_is_finite(days) || span.at == span.end)
        return sx_date_to_timestamp(days, out_micros) ? SX_TEXT_OK : SX_TEXT_RANGE;
    if (*span.at == ' ' || *span.at == 'T')
        span.at++;
    if (!sx_span_time(&span, &of_day))
        return SX_TEXT_FORMAT;
    if (of_day > SX_MICROS_PER_DAY || !sx_timestamp_make(days, of_day, out_micros))
        return SX_TEXT_RANGE;
    return sx_span_zone(span);
}

#endif
