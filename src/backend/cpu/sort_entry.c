#include <string.h>

#include "backend/cpu/sort.h"

enum {
    RADIX_BITS = 8,
    RADIX_BUCKETS = 1 << RADIX_BITS,
    SMALL_ROWS = 32, /* sorted by insertion */
    RUN_ROWS = 16,
    CANCEL_ROWS = 1 << 14, /* worth a look at the cancel flag */
    TOP_SHARE = 16,        /* with a limit below rows / TOP_SHARE, rows are sifted as they come */
    TOP_MIN_ENTRIES = 8192
};

#define SX_ENTRY      uint64_t
#define SX_NAME(stem) stem##_narrow
#include "backend/cpu/sort_entry.tmpl.h"
#define SX_ENTRY      sx_u128
#define SX_NAME(stem) stem##_wide
#include "backend/cpu/sort_entry.tmpl.h"

enum sx_status sx_sort_narrow(struct sx_stream *stream, const struct sx_sort_plan *plan, int64_t limit,
                              int64_t *out_rows) {
    return sort_narrow(stream, plan, limit, out_rows);
}

enum sx_status sx_sort_wide(struct sx_stream *stream, const struct sx_sort_plan *plan, int64_t limit,
                            int64_t *out_rows) {
    return sort_wide(stream, plan, limit, out_rows);
}

static void insertion_sort_rows(const struct sx_sort_plan *plan, int64_t *rows, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        int64_t row = rows[i], at = i;
        for (; at > 0 && sx_sort_compare(plan, plan->first_loose, rows[at - 1], row) > 0; at--)
            rows[at] = rows[at - 1];
        rows[at] = row;
    }
}

static void merge(const struct sx_sort_plan *plan, const int64_t *left, int64_t n_left, const int64_t *right,
                  int64_t n_right, int64_t *out) {
    int64_t l = 0, r = 0;
    while (l < n_left && r < n_right) {
        bool take_left = sx_sort_compare(plan, plan->first_loose, left[l], right[r]) <= 0;
        *out++ = take_left ? left[l++] : right[r++];
    }
    memcpy(out, left + l, (size_t)(n_left - l) * sizeof *out);
    memcpy(out + (n_left - l), right + r, (size_t)(n_right - r) * sizeof *out);
}

static void merge_runs(const struct sx_sort_plan *plan, const int64_t *from, int64_t n, int64_t run,
                       int64_t *to) {
    for (int64_t at = 0; at < n; at += 2 * run) {
        int64_t n_left = n - at < run ? n - at : run;
        int64_t rest = n - at - n_left, n_right = rest < run ? rest : run;
        const int64_t *middle = from + at + n_left;
        if (!n_right || sx_sort_compare(plan, plan->first_loose, middle[-1], middle[0]) <= 0)
            memcpy(to + at, from + at, (size_t)(n_left + n_right) * sizeof *to);
        else
            merge(plan, from + at, n_left, from + at + n_left, n_right, to + at);
    }
}

enum sx_status sx_sort_run(struct sx_stream *stream, const struct sx_sort_plan *plan, int64_t *rows,
                           int64_t n, int64_t *scratch) {
    for (int64_t at = 0; at < n; at += RUN_ROWS)
        insertion_sort_rows(plan, rows + at, n - at < RUN_ROWS ? n - at : RUN_ROWS);
    int64_t *from = rows, *to = scratch;
    for (int64_t run = RUN_ROWS; run < n; run *= 2) {
        SX_TRY(sx_cpu_check_cancel(stream));
        merge_runs(plan, from, n, run, to);
        int64_t *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != rows)
        memcpy(rows, from, (size_t)n * sizeof *rows);
    return SX_OK;
}
