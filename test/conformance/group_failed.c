/* A device: an update that has not enough memory half-way, and what another worker adds to the same groups
 * then. */
#include <dlfcn.h>
#include <string.h>

#include "backend/cuda/load.h"
#include "conformance.h"
#include "group_reference.h"

enum { ROWS = 20000, LATER_ROWS = 100, LEAST_BYTES = 1 << 18, MOST_BYTES = 1 << 24, N_STEPS = 40 };

enum outcome { FAILED, PASSED, NEITHER };

/* Numbers from `first` on, which are keys and values. */
static enum sx_status update(struct sx_stream *stream, struct sx_group *group, int worker,
                             const struct sx_tensor *numbers) {
    return stream->backend->ops.group_update(stream, group, worker, numbers, numbers, NULL, numbers->length);
}

/* What the failed update has left may lead into its batch, which is gone. */
static enum outcome update_both(struct conformance *c, struct sx_stream *const streams[2]) {
    const struct sx_backend_ops *ops = &streams[0]->backend->ops;
    const struct sx_type type = sx_type_of(SX_TYPE_I64);
    const struct sx_aggregate_spec sum = {SX_AGG_SUM, type, sx_type_of(SX_TYPE_I128)};
    const struct sx_group_spec spec = {1, &type, 1, &sum, 2, 0};
    struct sx_tensor numbers = {0}, later = {0};
    struct sx_group *group = NULL;
    enum outcome outcome = NEITHER;
    enum sx_status status;
    SX_GO(ops->iota(streams[0], SX_TYPE_I64, 0, ROWS, &numbers));
    SX_GO(ops->iota(streams[1], SX_TYPE_I64, ROWS - LATER_ROWS, LATER_ROWS, &later));
    SX_GO(ops->group_create(streams[0], &spec, &group));
    outcome = update(streams[0], group, 0, &numbers) == SX_OK ? PASSED : FAILED;
    const struct sx_error failure = streams[0]->error;
    sx_tensor_release(&numbers);
    status = update(streams[1], group, 1, &later);
    const bool is_same = status == failure.status && strcmp(streams[1]->error.text, failure.text) == 0;
    CONFORM(c, outcome == PASSED || is_same, "an update after one that failed (%s) gave %d: %s", failure.text,
            (int)status, streams[1]->error.text);
out:
    sx_tensor_release(&numbers);
    sx_tensor_release(&later);
    if (group)
        ops->group_destroy(streams[0], group);
    return outcome;
}

static enum outcome try_limit(struct conformance *c, sx_cuda_open_function open, size_t limit) {
    const struct sx_backend *backend;
    struct sx_stream *streams[2] = {NULL, NULL};
    struct sx_error error = {0};
    const char *name;
    enum outcome outcome = NEITHER;
    if (open(NULL, limit, 1, &backend, &name, &error) != SX_OK)
        return NEITHER;
    if (backend->ops.stream_create(backend, c->pool, NULL, &streams[0], &error) == SX_OK &&
        backend->ops.stream_create(backend, c->pool, NULL, &streams[1], &error) == SX_OK)
        outcome = update_both(c, streams);
    for (int i = 0; i < 2; i++)
        if (streams[i])
            backend->ops.stream_destroy(streams[i]);
    ((sx_cuda_close_function)(uintptr_t)dlsym(c->library, "sx_cuda_close"))(backend);
    return outcome;
}

void conform_group_failed(struct conformance *c) {
    int n[NEITHER + 1] = {0};
    if (!c->library)
        return;
    sx_cuda_open_function open = (sx_cuda_open_function)(uintptr_t)dlsym(c->library, "sx_cuda_open");
    CONFORM(c, open != NULL, "the library has no device");
    if (!open)
        return;
    for (int i = 0; i < N_STEPS; i++)
        n[try_limit(c, open, LEAST_BYTES + (MOST_BYTES - LEAST_BYTES) / (size_t)N_STEPS * (size_t)i)]++;
    CONFORM(c, n[FAILED] > 0 && n[PASSED] > 0, "%d limits fail and %d pass", n[FAILED], n[PASSED]);
}
