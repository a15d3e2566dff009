/* Inside of rows_pack and rows_unpack. */
#ifndef SX_BACKEND_CPU_ROWS_H
#define SX_BACKEND_CPU_ROWS_H

#include "backend/cpu/cpu.h"
#include "tensor/pack_words.h"
#include "tensor/rows.h"

/* Rows of a column that are packed: numbers 0 … n - 1. */
struct cpu_picked {
    const struct sx_tensor *column;
    const int32_t *order;
    int64_t first, n;
    size_t width_bytes;
};

bool cpu_picked_is_valid(const struct cpu_picked *picked, int64_t i);
const char *cpu_picked_value(const struct cpu_picked *picked, int64_t i);
/* Of a column of strings; a null one is empty. */
struct sx_string cpu_picked_string(const struct cpu_picked *picked, int64_t i);

/* The blocks of a PACKED column. Returns their words' bytes; with `directory` NULL nothing is written. */
uint64_t cpu_rows_write_blocks(const struct cpu_picked *picked, struct sx_pack_block *directory, char *words);
/* Whether the column's rows can be NARROW; what is found out is put to *narrow. */
bool cpu_rows_fits(const struct cpu_picked *picked, struct sx_rows_narrow *narrow);
/* Values and validity of a NARROW column. */
void cpu_rows_write_narrow(const struct cpu_picked *picked, const struct sx_rows_column *place, char *frame);
void cpu_rows_read_narrow(const struct sx_rows_column *place, const char *frame, struct sx_tensor *column);
/* The heap of PACKED strings. */
void cpu_rows_write_characters(const struct cpu_picked *picked, char *heap);
/* The column's values, and its validity. */
SX_MUST_CHECK enum sx_status cpu_rows_read_blocks(struct sx_stream *stream,
                                                  const struct sx_rows_column *place, char *frame,
                                                  struct sx_tensor *column);

#endif
