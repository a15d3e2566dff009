/* What every rank has counts once: rank 0's. */
#include "exec/operators.h"

struct root_only {
    struct sx_transform transform;
    bool is_root;
};

static enum sx_status root_only_push(struct sx_transform *transform, struct sx_worker *worker, int at,
                                     struct sx_batch *batch) {
    struct sx_batch passed = *batch;
    if (!((struct root_only *)transform)->is_root)
        return SX_OK;
    *batch = (struct sx_batch){0};
    return sx_emit(worker, at + 1, &passed);
}

enum sx_status sx_root_only_create(struct sx_run *run, struct sx_transform **out_transform,
                                   struct sx_error *error) {
    struct root_only *root_only = sx_operator_create(run, sizeof *root_only, NULL, "ROOT ONLY");
    if (!root_only)
        return sx_no_memory(error, "an exchange");
    root_only->transform.push = root_only_push;
    root_only->is_root = !run->options.net || sx_net_rank(run->options.net) == 0;
    *out_transform = &root_only->transform;
    return SX_OK;
}
