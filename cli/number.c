#include "number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDE_BYTES = 48 };

/* Digits right-aligned in front of `end`; returns their start. At least `least` digits. */
static char *write_digits(char *end, uint64_t value, int least) {
    char *at = end;
    for (; value || least > 0; value /= 10, least--)
        *--at = (char)('0' + value % 10);
    return at;
}

void text_add_unsigned(struct text *out, uint64_t value) {
    char buffer[24], *end = buffer + sizeof buffer;
    char *start = write_digits(end, value, 1);
    text_append(out, start, (size_t)(end - start));
}

void text_add_integer(struct text *out, int64_t value) {
    if (value < 0)
        text_add_char(out, '-');
    text_add_unsigned(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static char *write_wide(char *end, cli_u128 value) {
    const uint64_t billion2 = 1000000000000000000u;
    char *at = end;
    while (value >= billion2) {
        at = write_digits(at, (uint64_t)(value % billion2), 18);
        value /= billion2;
    }
    return write_digits(at, (uint64_t)value, at == end);
}

void text_add_unsigned_wide(struct text *out, cli_u128 value) {
    char buffer[WIDE_BYTES], *end = buffer + sizeof buffer;
    char *start = write_wide(end, value);
    text_append(out, start, (size_t)(end - start));
}

void text_add_decimal(struct text *out, cli_i128 value, int scale, int least_whole) {
    char buffer[2 * WIDE_BYTES], *end = buffer + sizeof buffer;
    char *start = write_wide(end, value < 0 ? 0 - (cli_u128)value : (cli_u128)value);
    while (end - start < scale + least_whole && start > buffer)
        *--start = '0';
    if (least_whole == 0 && end - start == scale + 1 && *start == '0')
        start++; /* the digit of zero */
    if (value < 0)
        text_add_char(out, '-');
    size_t whole = (size_t)(end - start - scale);
    text_append(out, start, whole);
    if (scale) {
        text_add_char(out, '.');
        text_append(out, start + whole, (size_t)scale);
    }
}

/* Digits and exponent (of the first digit) as one text: positional from 1e-4 to 1e16, as DuckDB prints them.
 */
static void lay_out(struct text *out, const char *digits, int n, int exponent) {
    if (exponent < -4 || exponent >= 16) {
        text_append(out, digits, 1);
        if (n > 1) {
            text_add_char(out, '.');
            text_append(out, digits + 1, (size_t)(n - 1));
        }
        text_format(out, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        return;
    }
    if (exponent < 0) {
        text_add(out, "0.");
        text_repeat(out, "0", -exponent - 1);
        text_append(out, digits, (size_t)n);
        return;
    }
    int whole = exponent + 1;
    text_append(out, digits, (size_t)(n < whole ? n : whole));
    text_repeat(out, "0", whole - n);
    text_add_char(out, '.');
    if (n > whole)
        text_append(out, digits + whole, (size_t)(n - whole));
    else
        text_add_char(out, '0');
}

/* "d.dddde±xx", taken apart and without trailing zeros. */
static void lay_out_scientific(struct text *out, const char *scientific) {
    char digits[32];
    int n = 0;
    const char *at = scientific;
    for (; *at && *at != 'e'; at++)
        if (*at != '.')
            digits[n++] = *at;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    lay_out(out, digits, n, atoi(at + 1));
}

/* Sign and what is no number; false when digits remain to be printed. */
static bool add_special(struct text *out, double value) {
    if (isnan(value)) {
        text_add(out, "nan");
        return true;
    }
    if (signbit(value))
        text_add_char(out, '-');
    if (isinf(value))
        text_add(out, "inf");
    else if (value == 0)
        text_add(out, "0.0");
    return isinf(value) || value == 0;
}

void text_add_double(struct text *out, double value) {
    if (add_special(out, value))
        return;
    value = fabs(value);
    if (value < 9007199254740992.0 && value == floor(value)) {
        text_add_unsigned(out, (uint64_t)value);
        text_add(out, ".0");
        return;
    }
    char scientific[40];
    /* A number of 15 digits always survives; subnormal numbers hold fewer. */
    for (int digits = value < 2.3e-308 ? 1 : 15; digits <= 17; digits++) {
        snprintf(scientific, sizeof scientific, "%.*e", digits - 1, value);
        if (strtod(scientific, NULL) == value)
            break;
    }
    lay_out_scientific(out, scientific);
}

void text_add_float(struct text *out, float value) {
    if (add_special(out, (double)value))
        return;
    value = fabsf(value);
    char scientific[40];
    for (int digits = value < 1.2e-38f ? 1 : 6; digits <= 9; digits++) {
        snprintf(scientific, sizeof scientific, "%.*e", digits - 1, (double)value);
        if (strtof(scientific, NULL) == value)
            break;
    }
    lay_out_scientific(out, scientific);
}

/* Days since 1970-01-01 to year, month, day of the proleptic Gregorian calendar. Within 400 years ("era")
 * that begin in March, leap days come last. */
static void split_date(int64_t days, int64_t *year, int *month, int *day) {
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted_month = (5 * day_of_year + 2) / 153;
    *day = (int)(day_of_year - (153 * shifted_month + 2) / 5 + 1);
    *month = (int)(shifted_month < 10 ? shifted_month + 3 : shifted_month - 9);
    *year = year_of_era + era * 400 + (*month <= 2);
}

static void add_padded(struct text *out, int64_t value, int digits) {
    char buffer[24], *end = buffer + sizeof buffer;
    char *start = write_digits(end, (uint64_t)value, digits);
    text_append(out, start, (size_t)(end - start));
}

static void add_day(struct text *out, int64_t days) {
    int64_t year;
    int month, day;
    split_date(days, &year, &month, &day);
    add_padded(out, year > 0 ? year : 1 - year, 4);
    text_add_char(out, '-');
    add_padded(out, month, 2);
    text_add_char(out, '-');
    add_padded(out, day, 2);
    if (year <= 0)
        text_add(out, " (BC)");
}

void text_add_date(struct text *out, int32_t days) {
    if (days == INT32_MAX || days == -INT32_MAX) {
        text_add(out, days > 0 ? "infinity" : "-infinity");
        return;
    }
    add_day(out, days);
}

void text_add_time(struct text *out, int64_t value, int64_t per_second) {
    int64_t seconds = value / per_second, rest = value % per_second;
    add_padded(out, seconds / 3600, 2);
    text_add_char(out, ':');
    add_padded(out, seconds / 60 % 60, 2);
    text_add_char(out, ':');
    add_padded(out, seconds % 60, 2);
    if (!rest)
        return;
    text_add_char(out, '.');
    int digits = per_second == 1000 ? 3 : per_second == 1000000 ? 6 : 9;
    for (; rest % 10 == 0; digits--)
        rest /= 10;
    add_padded(out, rest, digits);
}

void text_add_timestamp(struct text *out, int64_t value, int64_t per_second, bool has_zone) {
    if (value == INT64_MAX || value == -INT64_MAX) {
        text_add(out, value > 0 ? "infinity" : "-infinity");
        return;
    }
    int64_t per_day = 86400 * per_second;
    int64_t days = value / per_day - (value % per_day < 0);
    add_day(out, days);
    text_add_char(out, ' ');
    text_add_time(out, value - days * per_day, per_second);
    if (has_zone)
        text_add(out, "+00");
}

static void add_part(struct text *out, size_t start, int64_t value, const char *unit) {
    if (!value)
        return;
    if (out->used_bytes > start)
        text_add_char(out, ' ');
    text_add_integer(out, value);
    text_format(out, " %s%s", unit, value == 1 || value == -1 ? "" : "s");
}

void text_add_interval(struct text *out, int32_t months, int32_t days, int64_t nanos) {
    size_t start = out->used_bytes;
    add_part(out, start, months / 12, "year");
    add_part(out, start, months % 12, "month");
    add_part(out, start, days, "day");
    if (!nanos && out->used_bytes > start)
        return;
    if (out->used_bytes > start)
        text_add_char(out, ' ');
    if (nanos < 0)
        text_add_char(out, '-');
    int64_t micros = nanos / 1000;
    text_add_time(out, micros < 0 ? -micros : micros, 1000000);
}
