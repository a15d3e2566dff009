#include "backend/cpu/eval.h"
#include "tensor/failure.h"

static void argument_of(const struct sx_eval_call *call, int argument, struct sx_scalar *out_scalar) {
    struct sx_tensor one = {.type = call->eval->types[call->of->arguments[argument]], .length = 1};
    one.values = (void *)call->in[argument];
    sx_tensor_scalar(&one, 0, out_scalar);
}

static enum sx_status describe(const struct sx_eval_call *call, enum sx_failure kind,
                               struct sx_error *error) {
    struct sx_failed failed = {
        .kind = kind, .instruction = call->of->instruction, .n_arguments = call->of->n_arguments};
    for (int k = 0; k < failed.n_arguments; k++)
        argument_of(call, k, &failed.arguments[k]);
    return sx_failure_describe(&failed, error);
}

enum sx_status sx_eval_describe_arithmetic(const struct sx_eval_call *call, struct sx_error *error) {
    return describe(call, SX_FAILURE_ARITHMETIC, error);
}
enum sx_status sx_eval_describe_date(const struct sx_eval_call *call, struct sx_error *error) {
    return describe(call, SX_FAILURE_DATE, error);
}
enum sx_status sx_eval_describe_cast(const struct sx_eval_call *call, struct sx_error *error) {
    return describe(call, SX_FAILURE_CAST, error);
}
enum sx_status sx_eval_describe_string(const struct sx_eval_call *call, struct sx_error *error) {
    return describe(call, SX_FAILURE_STRING, error);
}
