/* DELTA_BINARY_PACKED. VALUE, UNSIGNED: signed and unsigned integers of the width; NAME: of the function. */

static void BLOCK_NAME(const VALUE *values, int64_t count, UNSIGNED previous, struct sx_bytes *out) {
    uint64_t deltas[BLOCK_VALUES] = {0};
    VALUE least = (VALUE)((UNSIGNED)values[0] - previous);
    for (int64_t i = 0; i < count; i++) {
        VALUE delta = (VALUE)((UNSIGNED)values[i] - previous);
        previous = (UNSIGNED)values[i];
        deltas[i] = (UNSIGNED)delta;
        least = delta < least ? delta : least;
    }
    for (int64_t i = 0; i < count; i++)
        deltas[i] = (UNSIGNED)((UNSIGNED)deltas[i] - (UNSIGNED)least);
    put_block(deltas, count, least, out);
}

void NAME(const VALUE *values, int64_t count, struct sx_bytes *out) {
    put_header(count, count ? values[0] : 0, out);
    for (int64_t at = 1; at < count; at += BLOCK_VALUES) {
        int64_t left = count - at;
        BLOCK_NAME(values + at, left < BLOCK_VALUES ? left : BLOCK_VALUES, (UNSIGNED)values[at - 1], out);
    }
}

#undef VALUE
#undef UNSIGNED
#undef BLOCK_NAME
#undef NAME
