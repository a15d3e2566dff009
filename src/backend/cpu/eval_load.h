/* Values of a frame's rows, gathered: `n` of `width` bytes, the i-th from row positions[i], or base + i. */
#ifndef SX_BACKEND_CPU_EVAL_LOAD_H
#define SX_BACKEND_CPU_EVAL_LOAD_H

#include "backend/cpu/eval.h"

/* out[i] = values[row], or values[codes[row]] with codes. */
void sx_eval_gather(const void *values, const int32_t *codes, size_t width, const struct sx_eval_frame *frame,
                    void *out);

#endif
