/* Calendar: the proleptic Gregorian one, years counted astronomically (0 is 1 BC). */
#ifndef SX_TENSOR_SEMANTICS_DATE_H
#define SX_TENSOR_SEMANTICS_DATE_H

#include "tensor/semantics.h"

#define SX_MICROS_PER_DAY     INT64_C(86400000000)
#define SX_DATE_INFINITY      INT32_MAX
#define SX_TIMESTAMP_INFINITY INT64_MAX
/* 290309-12-22 (BC) 00:00:00 */
#define SX_TIMESTAMP_MIN (INT64_C(-106751991) * SX_MICROS_PER_DAY)

enum { SX_MONTHS_PER_YEAR = 12, SX_DAYS_PER_MONTH = 30 };

struct sx_civil {
    int32_t year, month, day;
};

SX_BOTH bool sx_date_is_finite(int32_t days) {
    return days != SX_DATE_INFINITY && days != -SX_DATE_INFINITY && days != INT32_MIN;
}
SX_BOTH bool sx_timestamp_is_finite(int64_t micros) {
    return micros != SX_TIMESTAMP_INFINITY && micros != -SX_TIMESTAMP_INFINITY && micros != INT64_MIN;
}

/* Neri and Schneider, "Euclidean affine functions and their application to calendar algorithms" (2022). */
SX_BOTH struct sx_civil sx_civil_from_days(int32_t days) {
    /* shifted by 14700 eras of 400 years, so that the count of days since 0000-03-01 is positive */
    const uint64_t n1 = 4 * (uint64_t)((int64_t)days + 719468 + INT64_C(146097) * 14700) + 3;
    const uint32_t century = (uint32_t)(n1 / 146097), day_of_century = (uint32_t)(n1 % 146097) / 4;
    const uint32_t n2 = 4 * day_of_century + 3;
    const uint64_t p2 = UINT64_C(2939745) * n2;
    const uint32_t year_of_century = (uint32_t)(p2 >> 32);
    const uint32_t day_of_year = (uint32_t)p2 / 2939745 / 4;
    const uint32_t n3 = 2141 * day_of_year + 197913;
    const bool next_year = day_of_year >= 306;
    struct sx_civil civil;
    civil.year = (int32_t)(100 * century + year_of_century) - 400 * 14700 + next_year;
    civil.month = (int32_t)(n3 >> 16) - (next_year ? 12 : 0);
    civil.day = (int32_t)((n3 & 0xffff) / 2141) + 1;
    return civil;
}

SX_BOTH int64_t sx_days_from_civil(int64_t year, int32_t month, int32_t day) {
    year -= month <= 2;
    const int64_t era = (year >= 0 ? year : year - 399) / 400;
    const int64_t year_of_era = year - era * 400;
    const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    const int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

SX_BOTH bool sx_year_is_leap(int64_t year) {
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}
SX_BOTH int32_t sx_days_in_month(int64_t year, int32_t month) {
    if (month == 2)
        return sx_year_is_leap(year) ? 29 : 28;
    return 30 + ((month + (month >> 3)) & 1);
}

/* The day that a timestamp falls on; infinities stay. */
SX_BOTH int32_t sx_timestamp_days(int64_t micros) {
    if (!sx_timestamp_is_finite(micros))
        return micros > 0 ? SX_DATE_INFINITY : -SX_DATE_INFINITY;
    int64_t days = micros / SX_MICROS_PER_DAY;
    return (int32_t)(days - (micros % SX_MICROS_PER_DAY < 0));
}

/* False: out of a timestamp's range. */
SX_BOTH bool sx_timestamp_make(int64_t days, int64_t micros, int64_t *out_timestamp) {
    sx_i128 wide = (sx_i128)days * SX_MICROS_PER_DAY + micros;
    *out_timestamp = (int64_t)wide;
    return wide >= SX_TIMESTAMP_MIN && wide < SX_TIMESTAMP_INFINITY;
}

SX_BOTH bool sx_date_to_timestamp(int32_t days, int64_t *out_timestamp) {
    if (!sx_date_is_finite(days)) {
        *out_timestamp = days > 0 ? SX_TIMESTAMP_INFINITY : -SX_TIMESTAMP_INFINITY;
        return true;
    }
    return sx_timestamp_make(days, 0, out_timestamp);
}

/* Months first, the day cut to the month's end; then days; then microseconds. */
SX_BOTH bool sx_timestamp_add(int64_t micros, struct sx_interval interval, int sign, int64_t *out_timestamp) {
    if (!sx_timestamp_is_finite(micros)) {
        *out_timestamp = micros;
        return true;
    }
    int64_t days = sx_timestamp_days(micros);
    const int64_t of_day = micros - days * SX_MICROS_PER_DAY;
    if (interval.months) {
        struct sx_civil civil = sx_civil_from_days((int32_t)days);
        int64_t months =
            (int64_t)civil.year * SX_MONTHS_PER_YEAR + civil.month - 1 + sign * (int64_t)interval.months;
        int64_t year = months / SX_MONTHS_PER_YEAR - (months % SX_MONTHS_PER_YEAR < 0);
        int32_t month = (int32_t)(months - year * SX_MONTHS_PER_YEAR) + 1;
        int32_t last = sx_days_in_month(year, month);
        days = sx_days_from_civil(year, month, civil.day < last ? civil.day : last);
    }
    days += sign * (int64_t)interval.days;
    const sx_i128 wide = (sx_i128)days * SX_MICROS_PER_DAY + of_day + (sx_i128)sign * interval.micros;
    *out_timestamp = (int64_t)wide;
    return wide >= SX_TIMESTAMP_MIN && wide < SX_TIMESTAMP_INFINITY;
}

/* A month counts 30 days and a day 24 hours, carried upwards as DuckDB does it. Parts may be negative. */
SX_BOTH void sx_interval_carry(struct sx_interval x, int64_t out_parts[3]) {
    const int64_t days = x.days + x.micros / SX_MICROS_PER_DAY;
    out_parts[0] = x.months + days / SX_DAYS_PER_MONTH;
    out_parts[1] = days % SX_DAYS_PER_MONTH;
    out_parts[2] = x.micros % SX_MICROS_PER_DAY;
}

/* < 0, 0, > 0, by months, then days, then microseconds. */
SX_BOTH int sx_interval_compare(struct sx_interval a, struct sx_interval b) {
    int64_t parts_a[3], parts_b[3];
    sx_interval_carry(a, parts_a);
    sx_interval_carry(b, parts_b);
    for (int i = 0; i < 3; i++)
        if (parts_a[i] != parts_b[i])
            return parts_a[i] < parts_b[i] ? -1 : 1;
    return 0;
}

/* Numbers in the same order. */
SX_BOTH sx_u128 sx_interval_code(struct sx_interval x) {
    int64_t parts[3];
    sx_interval_carry(x, parts);
    const uint64_t months = (uint64_t)parts[0] ^ (UINT64_C(1) << 63);
    const uint64_t days = (uint64_t)(parts[1] + SX_DAYS_PER_MONTH);   /* above 0 */
    const uint64_t micros = (uint64_t)(parts[2] + SX_MICROS_PER_DAY); /* the same; 38 bits */
    return (sx_u128)months << 64 | days << 40 | micros;
}

#endif
