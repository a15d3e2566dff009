/* Words for the faults of expressions. */
#include "backend/cuda/eval.h"

#include <stdlib.h>
#include <string.h>

static const char fault_values[] = "values of a fault";

/* A VARCHAR's bytes, from malloc, go to *out_bytes if they are outside of the view. */
static enum sx_status text_of(struct cuda_stream *stream, const struct cuda_eval_value *value,
                              struct sx_scalar *out, char **out_bytes) {
    struct sx_string view;
    memcpy(&view, value, sizeof view);
    out->v.text.bytes = (const char *)value + offsetof(struct sx_string, u);
    out->v.text.length_bytes = view.length_bytes;
    if (view.length_bytes <= SX_STRING_INLINE_BYTES)
        return SX_OK;
    *out_bytes = malloc(view.length_bytes);
    if (!*out_bytes)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for an error's text");
    out->v.text.bytes = *out_bytes;
    return cuda_download(stream, *out_bytes, view.u.ref.pointer, view.length_bytes, fault_values);
}

/* `value` must outlive the scalar. */
static enum sx_status scalar_of(struct cuda_stream *stream, struct sx_type type,
                                const struct cuda_eval_value *value, struct sx_scalar *out,
                                char **out_bytes) {
    *out = (struct sx_scalar){.type = type};
    switch (cuda_eval_kind_of(type)) {
    case CUDA_EVAL_F32: memcpy(&out->v.f32, value, sizeof out->v.f32); break;
    case CUDA_EVAL_F64: memcpy(&out->v.f64, value, sizeof out->v.f64); break;
    case CUDA_EVAL_I128:
    case CUDA_EVAL_U128: memcpy(&out->v.u128, value, sizeof out->v.u128); break;
    case CUDA_EVAL_INTERVAL: memcpy(&out->v.interval, value, sizeof out->v.interval); break;
    case CUDA_EVAL_STRING: return text_of(stream, value, out, out_bytes);
    default: out->v.u64 = value->low;
    }
    return SX_OK;
}

static enum sx_status describe_step(struct cuda_stream *stream, const struct sx_eval *eval,
                                    const struct eval_step *step) {
    struct sx_failed failed = {
        .kind = step->failure, .instruction = step->instruction, .n_arguments = step->code.n_arguments};
    struct cuda_eval_failure values;
    char *bytes[CUDA_EVAL_MAX_ARGUMENTS] = {NULL};
    enum sx_status status;
    SX_GO(cuda_download(stream, &values, eval->failure->data, sizeof values, fault_values));
    for (int k = 0; k < failed.n_arguments; k++)
        SX_GO(scalar_of(stream, eval->types[step->code.arguments[k]], &values.arguments[k],
                        &failed.arguments[k], &bytes[k]));
    status = sx_failure_describe(&failed, &stream->base.error);
out:
    for (int k = 0; k < CUDA_EVAL_MAX_ARGUMENTS; k++)
        free(bytes[k]);
    return status;
}

static bool is_of(const struct cuda_fault *fault, const struct sx_eval *eval) {
    return fault->kind == CUDA_FAULT_EXPRESSION && fault->detail[0] == (uint64_t)(uintptr_t)eval &&
           fault->what < (uint32_t)eval->n_steps;
}

/* Faults of work that was issued before are another's to describe. */
static enum sx_status describe(struct cuda_stream *stream, const struct cuda_fault *fault,
                               const void *context) {
    const struct eval_watch *watch = context;
    if (is_of(fault, watch->eval))
        return describe_step(stream, watch->eval, &watch->eval->steps[fault->what]);
    if (watch->describe)
        return watch->describe(stream, fault, watch->context);
    return sx_error_set(&stream->base.error, SX_QUERY,
                        "Out of Range Error: a value is out of range (row %lld of a batch)",
                        (long long)fault->row);
}

void cuda_eval_watch_begin(struct cuda_stream *stream, struct sx_eval *eval, struct eval_watch *watch) {
    *watch = (struct eval_watch){eval, stream->describe_fault, stream->fault_context};
    stream->describe_fault = describe;
    stream->fault_context = watch;
}

void cuda_eval_watch_end(struct cuda_stream *stream, const struct eval_watch *watch) {
    stream->describe_fault = watch->describe;
    stream->fault_context = watch->context;
}

/* ---- faults that are told later ---- */

bool cuda_eval_check_later(struct sx_eval *eval) {
    struct cuda_stream *stream = eval->stream;
    if (eval->unchecked_by)
        return eval->unchecked_by == stream;
    if (stream->n_unchecked == CUDA_UNCHECKED)
        return false;
    stream->unchecked[stream->n_unchecked++] = eval;
    eval->unchecked_by = stream;
    return true;
}

bool cuda_eval_describe(struct cuda_stream *stream, const struct cuda_fault *fault,
                        enum sx_status *out_status) {
    for (int i = 0; i < stream->n_unchecked; i++) {
        const struct sx_eval *eval = stream->unchecked[i];
        if (!is_of(fault, eval))
            continue;
        *out_status = describe_step(stream, eval, &eval->steps[fault->what]);
        return true;
    }
    return false;
}

void cuda_eval_all_checked(struct cuda_stream *stream) {
    for (int i = 0; i < stream->n_unchecked; i++)
        stream->unchecked[i]->unchecked_by = NULL;
    stream->n_unchecked = 0;
}

void cuda_eval_leave_unchecked(struct sx_eval *eval) {
    struct cuda_stream *stream = eval->unchecked_by;
    int n = 0;
    for (int i = 0; stream && i < stream->n_unchecked; i++)
        if (stream->unchecked[i] != eval)
            stream->unchecked[n++] = stream->unchecked[i];
    if (stream)
        stream->n_unchecked = n;
    eval->unchecked_by = NULL;
}
