/* Gathering values of one width by one type of index. Parameters: SX_WORD, SX_INDEX, SX_NAME(stem). */

static void SX_NAME(gather)(const void *source_values, const void *index_values, int64_t rows,
                            void *out_values) {
    const SX_WORD *source = source_values;
    const SX_INDEX *index = index_values;
    SX_WORD *out = out_values;
    for (int64_t i = 0; i < rows; i++)
        out[i] = source[index[i]];
}

static void SX_NAME(gather_or_zero)(const void *source_values, const void *index_values, int64_t rows,
                                    void *out_values) {
    const SX_WORD *source = source_values;
    const SX_INDEX *index = index_values;
    SX_WORD *out = out_values;
    const SX_WORD zero = {0};
    for (int64_t i = 0; i < rows; i++)
        out[i] = index[i] < 0 ? zero : source[index[i]];
}

#undef SX_WORD
#undef SX_INDEX
#undef SX_NAME
