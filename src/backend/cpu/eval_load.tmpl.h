/* Gathering for one WIDTH. */
#define WORD SX_NAME_OF(word, WIDTH)

static void SX_NAME_OF(gather, WIDTH)(const void *from, const int32_t *codes,
                                      const struct sx_eval_frame *frame, void *to) {
    const WORD *values = from;
    const int32_t *positions = frame->positions;
    WORD *restrict out = to;
    const int64_t n = frame->n;
    if (codes && positions) {
        for (int64_t i = 0; i < n; i++)
            out[i] = values[codes[positions[i]]];
    } else if (codes) {
        for (int64_t i = 0; i < n; i++)
            out[i] = values[codes[frame->base + i]];
    } else {
        for (int64_t i = 0; i < n; i++)
            out[i] = values[positions[i]];
    }
}

#undef WORD
#undef WIDTH
