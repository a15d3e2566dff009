/* Errors of expressions that the stream's next synchronisation may tell: whichever of several objects it is
 * of, once each has run without a wait. */
#include "eval_late.h"

#include <string.h>

#include "eval_expect.h"

/* More than a backend has to remember. */
enum { N_SUMS = 11, ROUNDS = 3 };

/* ---- a sum ---- */

enum sx_status late_sum_create(struct conformance *c, int64_t addend, struct late_sum *out_sum) {
    static const struct sx_type type = {.id = SX_TYPE_I64};
    static const int32_t output = 2;
    const int64_t value = INT64_MAX - LATE_LEAST;
    struct sx_tensor host;
    *out_sum = (struct late_sum){
        .addend = {.type = type, .v.i64 = addend},
        .instruction = {.function = SX_FN_ADD, .type = type, .arguments = {0, 1, 0}, .mask = SX_NO_REGISTER}};
    out_sum->program =
        (struct sx_program){1, &type, 1, &out_sum->addend, 1, &out_sum->instruction, 1, &output};
    snprintf(out_sum->words, sizeof out_sum->words, "(%lld + %lld)", (long long)value, (long long)addend);
    SX_TRY(sx_tensor_create(c->pool, type, 1, false, &host, &c->error));
    ((int64_t *)host.values)[0] = value;
    const enum sx_status status = conformance_send(c, &host, &out_sum->column);
    sx_tensor_release(&host);
    return status == SX_OK ? c->backend->ops.eval_create(c->stream, &out_sum->program, &out_sum->eval)
                           : status;
}

enum sx_status late_sum_run(struct conformance *c, struct late_sum *sum) {
    const struct sx_batch batch = {.rows = 1, .rows_bound = 1, .n_columns = 1, .columns = &sum->column};
    struct sx_tensor out = {0};
    const enum sx_status status = c->backend->ops.eval_run(c->stream, sum->eval, &batch, &out);
    sx_tensor_release(&out);
    return status;
}

void late_sum_destroy(struct conformance *c, struct late_sum *sum) {
    if (sum->eval)
        c->backend->ops.eval_destroy(c->stream, sum->eval);
    sx_tensor_release(&sum->column);
    *sum = (struct late_sum){0};
}

/* ---- several ---- */

static enum sx_status synchronise(struct conformance *c) {
    return c->backend->ops.synchronise(c->stream, "faults");
}

/* Up to the first error, which may come before the wait. */
static enum sx_status run_all(struct conformance *c, struct late_sum *sums) {
    enum sx_status status = SX_OK;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < N_SUMS && status == SX_OK; i++)
            status = late_sum_run(c, &sums[i]);
    return status == SX_OK ? synchronise(c) : status;
}

static void expect_error(struct conformance *c, enum sx_status status, const char *words) {
    CONFORM(c, status == SX_QUERY && strstr(c->stream->error.text, words), "status %d: '%s' without '%s'",
            status, c->stream->error.text, words);
    c->stream->error = (struct sx_error){0};
}

/* Number `failing` of them; -1: none. */
static enum sx_status check_one_of_many(struct conformance *c, int failing) {
    struct late_sum sums[N_SUMS] = {0};
    enum sx_status status;
    for (int i = 0; i < N_SUMS; i++)
        SX_GO(late_sum_create(c, i == failing ? LATE_LEAST + 1 + i : i, &sums[i]));
    status = run_all(c, sums);
    if (failing >= 0)
        expect_error(c, status, sums[failing].words);
    else
        CONFORM(c, status == SX_OK, "no error: '%s'", c->stream->error.text);
    SX_GO(late_sum_run(c, &sums[failing == 0])); /* it is told once */
    SX_GO(synchronise(c));
out:
    for (int i = 0; i < N_SUMS; i++)
        late_sum_destroy(c, &sums[i]);
    return status;
}

/* Before anybody has waited: of another one its words stay, of itself the status does. */
static enum sx_status check_destroyed(struct conformance *c, bool fails_itself) {
    struct late_sum gone = {0}, stays = {0};
    enum sx_status status;
    SX_GO(late_sum_create(c, fails_itself ? LATE_LEAST + 1 : 1, &gone));
    SX_GO(late_sum_create(c, fails_itself ? 2 : LATE_LEAST + 2, &stays));
    status = late_sum_run(c, &gone);
    if (status == SX_OK)
        status = late_sum_run(c, &stays);
    late_sum_destroy(c, &gone);
    if (status == SX_OK)
        status = synchronise(c);
    expect_error(c, status, fails_itself ? "" : stays.words);
    status = SX_OK;
out:
    late_sum_destroy(c, &gone);
    late_sum_destroy(c, &stays);
    return status;
}

void conform_eval_late(struct conformance *c) {
    enum sx_status status = SX_OK;
    for (int failing = -1; failing < N_SUMS && status == SX_OK; failing++)
        status = check_one_of_many(c, failing);
    for (int itself = 0; itself < 2 && status == SX_OK; itself++)
        status = check_destroyed(c, itself);
    CONFORM(c, status == SX_OK, "status %d: %s %s", status, c->error.text, c->stream->error.text);
}
