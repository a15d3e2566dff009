/* Why an expression could not be computed, in DuckDB's words. */
#ifndef SX_TENSOR_FAILURE_H
#define SX_TENSOR_FAILURE_H

#include "base/status.h"
#include "tensor/program.h"

enum sx_failure { SX_FAILURE_ARITHMETIC, SX_FAILURE_DATE, SX_FAILURE_CAST, SX_FAILURE_STRING };

/* An operation on a row. The last argument of a cast is what was to be cast; those before it may be on its
 * way. */
struct sx_failed {
    enum sx_failure kind;
    const struct sx_instruction *instruction;
    int n_arguments;
    struct sx_scalar arguments[SX_PROGRAM_MAX_ARGUMENTS];
};

/* Sets the error and returns its status. */
enum sx_status sx_failure_describe(const struct sx_failed *failed, struct sx_error *error);

#endif
