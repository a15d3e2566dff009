/* What goes into a call of rows_pack, and how its frames are checked (rows.c). */
#ifndef TEST_CONFORMANCE_ROWS_CASE_H
#define TEST_CONFORMANCE_ROWS_CASE_H

#include "conformance.h"
#include "tensor/pack.h"
#include "tensor/rows.h"

enum { ROWS_MAX_PARTS = 1024, ROWS_FEW_PARTS = 8, ROWS_MAX_RUNS = 2 * ROWS_MAX_PARTS, ROWS_SEQUENCE = 4711 };

/* `host` and `order` are in host memory. */
struct rows_case {
    const struct sx_type *types; /* of the columns */
    struct sx_batch host, sent;
    struct sx_tensor order, sent_order;
    bool in_order; /* no order is given */
    bool packs;
    struct sx_rows_narrow *narrow; /* one a column, or NULL */
    int64_t offsets[ROWS_MAX_PARTS + 1];
    int n_parts, own;
    int64_t runs[ROWS_MAX_RUNS + 1];
    int n_runs;            /* 0: nothing is told of them */
    size_t plain_bytes[2]; /* of all frames, without an order or with; 0: not tried PLAIN */
};

/* Some parts are empty; the rows before the first and behind the last are of none. */
void rows_case_parts(struct conformance *c, int64_t n, struct rows_case *rows);
/* Once the batch and its parts are there. `runs`: of a part, at most; 0: they are not told. */
SX_MUST_CHECK enum sx_status rows_case_send(struct conformance *c, int runs, struct rows_case *rows);
/* Packs, and checks what comes out. */
SX_MUST_CHECK enum sx_status rows_case_try(struct conformance *c, struct rows_case *rows);
void rows_case_release(struct rows_case *rows);

/* ---- rows_packed.c ---- */

/* The batch (in host memory) as one PACKED frame, in host memory. */
SX_MUST_CHECK enum sx_status rows_pack_one(struct conformance *c, const struct sx_batch *host,
                                           struct sx_buffer **out_frame);
/* Whether the frame, in host memory, is refused: at once or when its work is done. */
bool rows_is_refused(struct conformance *c, struct sx_buffer *frame, const struct sx_type *types,
                     int n_columns);
void conform_rows_packed(struct conformance *c);

/* ---- rows_moved.c ---- */

/* Columns of a frame, on the backend, are what they are if they are moved alone; *out_narrow: how many of
 * them then stay NARROW. */
SX_MUST_CHECK enum sx_status rows_check_moved(struct conformance *c, const struct sx_type *types,
                                              int n_columns, struct sx_buffer *frame, int *out_narrow);

/* ---- rows_narrow.c ---- */

void conform_rows_narrow(struct conformance *c);

/* ---- rows_strings.c ---- */

void conform_rows_strings(struct conformance *c);

#endif
