#ifndef SX_BASE_MEDIAN_H
#define SX_BASE_MEDIAN_H

#include <stdlib.h>

static inline int sx_compare_f64(const void *a, const void *b) {
    const double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

/* Sorts them. n > 0. */
static inline double sx_median(double *values, int n) {
    qsort(values, (size_t)n, sizeof *values, sx_compare_f64);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

#endif
