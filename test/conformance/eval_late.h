/* A sum that may be too large, of which a backend may tell later (eval_run). */
#ifndef TEST_CONFORMANCE_EVAL_LATE_H
#define TEST_CONFORMANCE_EVAL_LATE_H

#include "conformance.h"

struct late_sum {
    struct sx_scalar addend;
    struct sx_eval *eval;
    struct sx_program program;
    struct sx_tensor column;
    struct sx_instruction instruction;
    char words[64]; /* of its error */
};

/* Of one row and `addend`; it is too large if that is above LATE_LEAST. Destroyed also where it fails. */
enum { LATE_LEAST = 100 };
SX_MUST_CHECK enum sx_status late_sum_create(struct conformance *c, int64_t addend, struct late_sum *out_sum);
SX_MUST_CHECK enum sx_status late_sum_run(struct conformance *c, struct late_sum *sum);
void late_sum_destroy(struct conformance *c, struct late_sum *sum);

#endif
