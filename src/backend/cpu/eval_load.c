#include "backend/cpu/eval_load.h"

/* Words of a width, for values of any type. */
typedef uint8_t word_1;
typedef uint16_t word_2 __attribute__((may_alias));
typedef uint32_t word_4 __attribute__((may_alias));
typedef uint64_t word_8 __attribute__((may_alias));
typedef sx_u128 word_16 __attribute__((may_alias, aligned(8)));

#define WIDTH 1
#include "backend/cpu/eval_load.tmpl.h"
#define WIDTH 2
#include "backend/cpu/eval_load.tmpl.h"
#define WIDTH 4
#include "backend/cpu/eval_load.tmpl.h"
#define WIDTH 8
#include "backend/cpu/eval_load.tmpl.h"
#define WIDTH 16
#include "backend/cpu/eval_load.tmpl.h"

void sx_eval_gather(const void *values, const int32_t *codes, size_t width, const struct sx_eval_frame *frame,
                    void *out) {
    switch (width) {
    case 1: gather_1(values, codes, frame, out); break;
    case 2: gather_2(values, codes, frame, out); break;
    case 4: gather_4(values, codes, frame, out); break;
    case 8: gather_8(values, codes, frame, out); break;
    default: gather_16(values, codes, frame, out); break;
    }
}
