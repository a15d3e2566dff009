/* Values to text, as DuckDB prints them, and floating point from text. */
#ifndef SX_TENSOR_FORMAT_H
#define SX_TENSOR_FORMAT_H

#include "tensor/semantics_format.h"

/* Text of a value that is neither NULL nor VARCHAR; returns its length. Not zero-terminated. */
size_t sx_scalar_text(const struct sx_scalar *scalar, char buffer[SX_TEXT_BYTES]);

/* The shortest text that reads back the same. */
size_t sx_f64_text(double value, char buffer[SX_TEXT_BYTES]);
size_t sx_f32_text(float value, char buffer[SX_TEXT_BYTES]);
size_t sx_i128_text(sx_i128 value, char buffer[SX_TEXT_BYTES]);
size_t sx_u128_text(sx_u128 value, char buffer[SX_TEXT_BYTES]);
size_t sx_decimal_text(sx_i128 value, int precision, int scale, char buffer[SX_TEXT_BYTES]);

/* False when the text is no number. What is out of range becomes infinite or zero. */
bool sx_text_to_f64(const char *bytes, uint32_t length_bytes, double *out_value);
bool sx_text_to_f32(const char *bytes, uint32_t length_bytes, float *out_value);

#endif
