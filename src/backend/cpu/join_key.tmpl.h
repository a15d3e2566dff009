/* Keys of one type as words whose equality is that of the values. Parameters: SX_VALUE, SX_NAME(stem),
 * SX_TO_WORD(value). */

static void SX_NAME(words)(const void *key_values, int64_t rows, int64_t *out_words) {
    const SX_VALUE *values = key_values;
    for (int64_t i = 0; i < rows; i++)
        out_words[i] = SX_TO_WORD(values[i]);
}

#undef SX_VALUE
#undef SX_NAME
#undef SX_TO_WORD
