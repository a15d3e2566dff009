/* Numbers and times as text. */
#ifndef CLI_NUMBER_H
#define CLI_NUMBER_H

#include "text.h"

__extension__ typedef __int128 cli_i128;
__extension__ typedef unsigned __int128 cli_u128;

void text_add_unsigned(struct text *out, uint64_t value);
void text_add_integer(struct text *out, int64_t value);
/* `scale` digits behind the point, and at least `least_whole` in front of it. */
void text_add_decimal(struct text *out, cli_i128 value, int scale, int least_whole);
void text_add_unsigned_wide(struct text *out, cli_u128 value);
/* The shortest text that reads back the same: "1.0", "1e+16", "nan", "inf". */
void text_add_double(struct text *out, double value);
void text_add_float(struct text *out, float value);

/* "2026-01-31", "0044-03-15 (BC)", "infinity". */
void text_add_date(struct text *out, int32_t days);
/* "04:05:06.789"; value in units of which a second has `per_second`. */
void text_add_time(struct text *out, int64_t value, int64_t per_second);
/* "2026-01-31 04:05:06.789", "infinity". */
void text_add_timestamp(struct text *out, int64_t value, int64_t per_second, bool has_zone);
/* "1 year 2 months 3 days 04:05:06.789". */
void text_add_interval(struct text *out, int32_t months, int32_t days, int64_t nanos);

#endif
