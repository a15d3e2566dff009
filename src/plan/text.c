#include "plan/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SMALLEST_TEXT_BYTES = 256, LONGEST_LITERAL_BYTES = 60 };

static bool reserve(struct sx_text *text, size_t more) {
    if (text->failed)
        return false;
    if (text->length + more + 1 <= text->capacity)
        return true;
    size_t capacity = text->capacity ? text->capacity : SMALLEST_TEXT_BYTES;
    while (capacity < text->length + more + 1)
        capacity *= 2;
    char *bytes = sx_arena_alloc(text->arena, capacity);
    if (!bytes) {
        text->failed = true;
        return false;
    }
    if (text->length)
        memcpy(bytes, text->bytes, text->length);
    text->bytes = bytes;
    text->capacity = capacity;
    return true;
}

void sx_text_add_bytes(struct sx_text *text, const char *bytes, size_t length) {
    if (!reserve(text, length))
        return;
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void sx_text_add(struct sx_text *text, const char *format, ...) {
    va_list values, again;
    va_start(values, format);
    va_copy(again, values);
    int length = vsnprintf(NULL, 0, format, values);
    if (length >= 0 && reserve(text, (size_t)length)) {
        vsnprintf(text->bytes + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
    va_end(values);
}

void sx_text_add_quoted(struct sx_text *text, const char *bytes, char quote) {
    sx_text_add_bytes(text, &quote, 1);
    for (const char *at = bytes; *at; at++) {
        if (*at == quote)
            sx_text_add_bytes(text, &quote, 1);
        sx_text_add_bytes(text, at, 1);
    }
    sx_text_add_bytes(text, &quote, 1);
}

static void add_u128(struct sx_text *text, sx_u128 value, bool negative, int scale) {
    char digits[48];
    int at = (int)sizeof digits, written = 0;
    do {
        if (scale > 0 && written == scale)
            digits[--at] = '.';
        digits[--at] = (char)('0' + (int)(value % 10));
        value /= 10;
        written++;
    } while (value > 0 || written <= scale);
    if (negative)
        digits[--at] = '-';
    sx_text_add_bytes(text, digits + at, sizeof digits - (size_t)at);
}

static void add_i128(struct sx_text *text, sx_i128 value, int scale) {
    add_u128(text, value < 0 ? -(sx_u128)value : (sx_u128)value, value < 0, scale);
}

/* Proleptic Gregorian date of a day number, after Howard Hinnant's civil_from_days. */
static void add_date(struct sx_text *text, int64_t days) {
    int64_t shifted = days + 719468;
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t day_of_era = shifted - era * 146097;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted_month = (5 * day_of_year + 2) / 153;
    int64_t day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    int64_t month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
    int64_t year = year_of_era + era * 400 + (month <= 2);
    sx_text_add(text, "%04" PRId64 "-%02" PRId64 "-%02" PRId64, year, month, day);
}

static void add_timestamp(struct sx_text *text, int64_t micros) {
    const int64_t day_micros = INT64_C(86400000000);
    int64_t day = micros / day_micros, rest = micros % day_micros;
    if (rest < 0) {
        rest += day_micros;
        day--;
    }
    add_date(text, day);
    int64_t second = rest / 1000000;
    sx_text_add(text, " %02" PRId64 ":%02" PRId64 ":%02" PRId64, second / 3600, second / 60 % 60,
                second % 60);
    if (rest % 1000000)
        sx_text_add(text, ".%06" PRId64, rest % 1000000);
}

static void add_interval(struct sx_text *text, const struct sx_interval *interval) {
    const char *gap = "";
    sx_text_add(text, "INTERVAL '");
    if (interval->months) {
        sx_text_add(text, "%" PRId32 " months", interval->months);
        gap = " ";
    }
    if (interval->days) {
        sx_text_add(text, "%s%" PRId32 " days", gap, interval->days);
        gap = " ";
    }
    if (interval->micros || !*gap)
        sx_text_add(text, "%s%" PRId64 " us", gap, interval->micros);
    sx_text_add(text, "'");
}

static void add_literal(struct sx_text *text, const char *bytes, uint32_t length) {
    sx_text_add(text, "'");
    uint32_t shown = length > LONGEST_LITERAL_BYTES ? LONGEST_LITERAL_BYTES : length;
    while (shown < length && shown > 0 && ((uint8_t)bytes[shown] & 0xc0) == 0x80)
        shown--; /* not within a character */
    for (uint32_t i = 0; i < shown; i++) {
        if (bytes[i] == '\'')
            sx_text_add(text, "''");
        else if ((uint8_t)bytes[i] < 0x20 || bytes[i] == 0x7f)
            sx_text_add(text, "\\x%02x", (unsigned)bytes[i]);
        else
            sx_text_add_bytes(text, bytes + i, 1);
    }
    sx_text_add(text, shown < length ? "…'" : "'");
}

void sx_text_add_scalar(struct sx_text *text, const struct sx_scalar *scalar) {
    const struct sx_type type = scalar->type;
    if (scalar->is_null) {
        sx_text_add(text, "NULL");
        return;
    }
    switch (type.id) {
    case SX_TYPE_NULLTYPE:
    case SX_TYPE_COUNT: sx_text_add(text, "NULL"); break;
    case SX_TYPE_BOOL: sx_text_add(text, scalar->v.i64 ? "true" : "false"); break;
    case SX_TYPE_I8:
    case SX_TYPE_I16:
    case SX_TYPE_I32:
    case SX_TYPE_I64: sx_text_add(text, "%" PRId64, scalar->v.i64); break;
    case SX_TYPE_U8:
    case SX_TYPE_U16:
    case SX_TYPE_U32:
    case SX_TYPE_U64: sx_text_add(text, "%" PRIu64, scalar->v.u64); break;
    case SX_TYPE_I128: add_i128(text, scalar->v.i128, 0); break;
    case SX_TYPE_U128: add_u128(text, scalar->v.u128, false, 0); break;
    case SX_TYPE_F32: sx_text_add(text, "%.9g", (double)scalar->v.f32); break;
    case SX_TYPE_F64: sx_text_add(text, "%.17g", scalar->v.f64); break;
    case SX_TYPE_DECIMAL:
        add_i128(text, sx_type_phys(type) == SX_PHYS_I128 ? scalar->v.i128 : scalar->v.i64, type.scale);
        break;
    case SX_TYPE_DATE: add_date(text, scalar->v.i64); break;
    case SX_TYPE_TIMESTAMP: add_timestamp(text, scalar->v.i64); break;
    case SX_TYPE_INTERVAL: add_interval(text, &scalar->v.interval); break;
    case SX_TYPE_VARCHAR: add_literal(text, scalar->v.text.bytes, scalar->v.text.length_bytes); break;
    }
}
