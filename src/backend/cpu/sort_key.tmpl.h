/* Codes of one type. Parameters: SX_VALUE, SX_CODE, SX_NAME(stem), SX_TO_CODE(value). */

static void SX_NAME(codes)(const void *column_values, int64_t rows, void *out_codes) {
    const SX_VALUE *values = column_values;
    SX_CODE *codes = out_codes;
    for (int64_t i = 0; i < rows; i++)
        codes[i] = SX_TO_CODE(values[i]);
}

#undef SX_VALUE
#undef SX_CODE
#undef SX_NAME
#undef SX_TO_CODE
