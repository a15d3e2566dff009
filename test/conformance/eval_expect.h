/* What expressions give, row by row: the plain reference of eval.c. */
#ifndef TEST_CONFORMANCE_EVAL_EXPECT_H
#define TEST_CONFORMANCE_EVAL_EXPECT_H

#include "conformance.h"

/* Result of the instruction's function for one row; out->type is set before. False: it fails there. */
typedef bool (*expect)(const struct sx_instruction *instruction, const struct sx_scalar *arguments,
                       struct sx_scalar *out);

bool expect_arithmetic(const struct sx_instruction *instruction, const struct sx_scalar *arguments,
                       struct sx_scalar *out);
bool expect_comparison(const struct sx_instruction *instruction, const struct sx_scalar *arguments,
                       struct sx_scalar *out);
bool expect_logic(const struct sx_instruction *instruction, const struct sx_scalar *arguments,
                  struct sx_scalar *out);
bool expect_test(const struct sx_instruction *instruction, const struct sx_scalar *arguments,
                 struct sx_scalar *out);
bool expect_choice(const struct sx_instruction *instruction, const struct sx_scalar *arguments,
                   struct sx_scalar *out);
bool expect_widening(const struct sx_instruction *instruction, const struct sx_scalar *arguments,
                     struct sx_scalar *out);
bool expect_date_part(const struct sx_instruction *instruction, const struct sx_scalar *arguments,
                      struct sx_scalar *out);
bool expect_string_test(const struct sx_instruction *instruction, const struct sx_scalar *arguments,
                        struct sx_scalar *out);
bool expect_length(const struct sx_instruction *instruction, const struct sx_scalar *arguments,
                   struct sx_scalar *out);
bool expect_substring(const struct sx_instruction *instruction, const struct sx_scalar *arguments,
                      struct sx_scalar *out);

/* eval_same.c: more functions, compared with the CPU backend. */
void conform_eval_same(struct conformance *c);
/* eval_direct.c: programs that are run in a shorter way, compared with the CPU backend. */
void conform_eval_direct(struct conformance *c);
/* eval_late.c: errors that are told later. */
void conform_eval_late(struct conformance *c);

/* < 0, 0, > 0; neither is null. */
int expect_order(const struct sx_scalar *a, const struct sx_scalar *b);

#endif
