#include "tensor/format.h"

#include <stdlib.h>

size_t sx_u128_text(sx_u128 value, char buffer[SX_TEXT_BYTES]) {
    return sx_put_digits(buffer, value, 1);
}
size_t sx_i128_text(sx_i128 value, char buffer[SX_TEXT_BYTES]) {
    return sx_put_i128(buffer, value);
}
size_t sx_decimal_text(sx_i128 value, int precision, int scale, char buffer[SX_TEXT_BYTES]) {
    return sx_put_decimal(value, precision, scale, buffer);
}
size_t sx_f64_text(double value, char buffer[SX_TEXT_BYTES]) {
    return sx_put_f64(buffer, value);
}
size_t sx_f32_text(float value, char buffer[SX_TEXT_BYTES]) {
    return sx_put_f32(buffer, value);
}
size_t sx_scalar_text(const struct sx_scalar *scalar, char buffer[SX_TEXT_BYTES]) {
    return sx_put_scalar(scalar, buffer);
}

/* ---- floating point from text: as sx_exact_text_to_f64 and _f32, by the C library ---- */

/* Digits without '_' and zero-terminated, in `buffer` or in memory to free. NULL: no memory, or no number. */
static char *plain_number(struct sx_span span, char *buffer, size_t buffer_bytes) {
    struct sx_number_text number;
    if (!sx_number_parse(span, &number))
        return NULL;
    size_t length = (size_t)(span.end - span.at);
    char *plain = length < buffer_bytes ? buffer : malloc(length + 1), *out = plain;
    for (; plain && span.at < span.end; span.at++)
        if (*span.at != '_')
            *out++ = *span.at;
    if (plain)
        *out = 0;
    return plain;
}

bool sx_text_to_f64(const char *bytes, uint32_t length_bytes, double *out_value) {
    struct sx_span span = sx_span_float(bytes, length_bytes);
    if (sx_span_special_float(span, out_value))
        return true;
    char buffer[128], *plain = plain_number(span, buffer, sizeof buffer);
    if (!plain)
        return false;
    *out_value = strtod(plain, NULL);
    if (plain != buffer)
        free(plain);
    return true;
}

bool sx_text_to_f32(const char *bytes, uint32_t length_bytes, float *out_value) {
    struct sx_span span = sx_span_float(bytes, length_bytes);
    double special;
    if (sx_span_special_float(span, &special)) {
        *out_value = (float)special;
        return true;
    }
    char buffer[128], *plain = plain_number(span, buffer, sizeof buffer);
    if (!plain)
        return false;
    *out_value = strtof(plain, NULL);
    if (plain != buffer)
        free(plain);
    return true;
}
