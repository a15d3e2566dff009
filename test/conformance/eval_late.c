/* Errors of expressions that the stream's next synchronisation may tell: whichever of several objects it is
 * of, once each has run without a wait. */
#include <string.h>

#include "conformance/eval_expect.h"

/* More than a backend has to remember. */
enum { N_EVALS = 11, ROUNDS = 3 };

struct late {
    struct sx_program programs[N_EVALS];
    struct sx_instruction instructions[N_EVALS];
    struct sx_scalar constants[N_EVALS];
    struct sx_eval *evals[N_EVALS];
    struct sx_tensor host, sent;
};

/* Each adds another number, so that errors' texts tell which it was. */
static enum sx_status make(struct conformance *c, struct late *late) {
    static const struct sx_type type = {.id = SX_TYPE_I64};
    static const int32_t output = 2;
    enum sx_status status = sx_tensor_create(c->pool, type, 1, false, &late->host, &c->error);
    if (status != SX_OK)
        return status;
    ((int64_t *)late->host.values)[0] = INT64_MAX - N_EVALS;
    for (int i = 0; i < N_EVALS; i++) {
        late->constants[i] = (struct sx_scalar){.type = type, .v.i64 = i};
        late->instructions[i] = (struct sx_instruction){
            .function = SX_FN_ADD, .type = type, .arguments = {0, 1, 0}, .mask = SX_NO_REGISTER};
        late->programs[i] =
            (struct sx_program){1, &type, 1, &late->constants[i], 1, &late->instructions[i], 1, &output};
        SX_TRY(c->backend->ops.eval_create(c->stream, &late->programs[i], &late->evals[i]));
    }
    return conformance_send(c, &late->host, &late->sent);
}

/* Up to the first error, which may come before the wait. */
static enum sx_status run_all(struct conformance *c, struct late *late) {
    const struct sx_batch batch = {.rows = 1, .rows_bound = 1, .n_columns = 1, .columns = &late->sent};
    enum sx_status status = SX_OK;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < N_EVALS && status == SX_OK; i++) {
            struct sx_tensor out = {0};
            status = c->backend->ops.eval_run(c->stream, late->evals[i], &batch, &out);
            sx_tensor_release(&out);
        }
    return status == SX_OK ? c->backend->ops.synchronise(c->stream, "faults") : status;
}

/* The constant is read when the object is made. */
static void check(struct conformance *c, int failing) {
    struct late late = {0};
    char wanted[64];
    enum sx_status status = make(c, &late);
    if (status == SX_OK && failing >= 0) {
        late.constants[failing].v.i64 = N_EVALS + 1 + failing;
        c->backend->ops.eval_destroy(c->stream, late.evals[failing]);
        late.evals[failing] = NULL;
        status = c->backend->ops.eval_create(c->stream, &late.programs[failing], &late.evals[failing]);
    }
    CONFORM(c, status == SX_OK, "expressions: %s", c->error.text);
    if (status == SX_OK) {
        status = run_all(c, &late);
        snprintf(wanted, sizeof wanted, "%lld + %d)", (long long)(INT64_MAX - N_EVALS),
                 N_EVALS + 1 + failing);
        CONFORM(c, status == (failing < 0 ? SX_OK : SX_QUERY), "object %d: status %d", failing, status);
        CONFORM(c, failing < 0 || strstr(c->stream->error.text, wanted), "object %d: '%s' without '%s'",
                failing, c->stream->error.text, wanted);
        c->stream->error = (struct sx_error){0};
        CONFORM(c, c->backend->ops.synchronise(c->stream, "faults") == SX_OK, "object %d: told twice",
                failing);
    }
    for (int i = 0; i < N_EVALS; i++)
        if (late.evals[i])
            c->backend->ops.eval_destroy(c->stream, late.evals[i]);
    sx_tensor_release(&late.host);
    sx_tensor_release(&late.sent);
}

void conform_eval_late(struct conformance *c) {
    for (int failing = -1; failing < N_EVALS; failing++)
        check(c, failing);
}
