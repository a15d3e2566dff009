/* States of SUM, AVG, MIN and MAX of numbers, for group_number.c and its template. */
#ifndef SX_BACKEND_CPU_GROUP_NUMBER_H
#define SX_BACKEND_CPU_GROUP_NUMBER_H

#include "backend/cpu/group_state.h"

/* Rows are aligned to 8 bytes. */
typedef sx_i128 __attribute__((aligned(8), may_alias)) sx_group_i128;

struct sx_integer_sum {
    sx_group_i128 sum;
    int64_t count; /* AVG only */
} __attribute__((may_alias));

/* The sum is high + low, low being what rounding took from high. */
struct sx_float_sum {
    double high;
    double low;
    int64_t count; /* AVG only */
} __attribute__((may_alias));

/* A sum's first 16 bytes are there for SUM and AVG. */
enum { SX_SUM_BYTES = 16, SX_AVG_BYTES = 24 };

typedef int64_t __attribute__((may_alias)) sx_group_i64;

/* TwoSum (Knuth). */
static inline void sx_float_sum_add(double *high, double *low, double value) {
    const double sum = *high + value;
    const double part = sum - *high;
    *low += (*high - (sum - part)) + (value - part);
    *high = sum;
}

SX_MUST_CHECK enum sx_status sx_group_sum_overflow(struct sx_error *error, sx_i128 a, sx_i128 b);

enum sx_status sx_integer_combine(const struct sx_group_aggregate *aggregate, char *const *into,
                                  char *const *from, int64_t n, struct sx_error *error) SX_MUST_CHECK;
enum sx_status sx_float_combine(const struct sx_group_aggregate *aggregate, char *const *into,
                                char *const *from, int64_t n, struct sx_error *error) SX_MUST_CHECK;
void sx_integer_emit(const struct sx_group_aggregate *aggregate, char *const *rows, int64_t n,
                     struct sx_tensor *column);
void sx_float_emit(const struct sx_group_aggregate *aggregate, char *const *rows, int64_t n,
                   struct sx_tensor *column);
void sx_integer_add_sums(const struct sx_group_aggregate *aggregate, char *const *rows, int32_t n_groups,
                         const int64_t *sums, const int32_t *counts);
/* Values and flags as MIN, MAX, FIRST and ANY_VALUE keep them. */
void sx_value_emit(const struct sx_group_aggregate *aggregate, char *const *rows, int64_t n,
                   struct sx_tensor *column);
bool sx_flag_is_null(const struct sx_group_aggregate *aggregate, const char *row);
bool sx_average_is_null(const struct sx_group_aggregate *aggregate, const char *row);

static inline char *sx_group_state_at(const struct sx_group_aggregate *aggregate, char *row) {
    return row + aggregate->offset;
}

#endif
