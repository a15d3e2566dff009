/* A plain group by over host columns, and the comparison of a backend's result with it. */
#ifndef TEST_CONFORMANCE_GROUP_REFERENCE_H
#define TEST_CONFORMANCE_GROUP_REFERENCE_H

#include "conformance.h"

/* A whole input: columns in host memory. */
struct group_input {
    const struct sx_group_spec *spec;
    const struct sx_tensor *keys;
    const struct sx_tensor *inputs;  /* length -1: the aggregate is left alone */
    const struct sx_tensor *filters; /* NULL: none; length -1: none for this aggregate */
    int64_t rows;
};

struct group_reference;

struct group_reference *group_reference_create(const struct group_input *input);
void group_reference_destroy(struct group_reference *reference);
int64_t group_reference_groups(const struct group_reference *reference);

/* Checks a row of a result: keys, then aggregates. */
void group_reference_check(struct conformance *c, struct group_reference *reference,
                           const struct sx_batch *result, int64_t row, const char *title);
/* Checks that every group came. */
void group_reference_check_all(struct conformance *c, const struct group_reference *reference,
                               const char *title);

/* ---- group_failed.c ---- */

void conform_group_failed(struct conformance *c);

#endif
