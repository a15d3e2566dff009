/* Writes Thrift's compact protocol. Fields of a struct are put in the order of their numbers. */
#ifndef SX_STORAGE_THRIFT_WRITE_H
#define SX_STORAGE_THRIFT_WRITE_H

#include "storage/bytes.h"
#include "storage/thrift.h"

enum { SX_THRIFT_MOST_DEPTH = 12 };

/* Starts within the outermost struct, which sx_thrift_end closes. */
struct sx_thrift_out {
    struct sx_bytes *bytes;
    int depth;
    int16_t last[SX_THRIFT_MOST_DEPTH]; /* the field put last, of each open struct */
};

static inline struct sx_thrift_out sx_thrift_to(struct sx_bytes *bytes) {
    return (struct sx_thrift_out){.bytes = bytes};
}

void sx_thrift_put_bool(struct sx_thrift_out *out, int16_t field, bool value);
void sx_thrift_put_i8(struct sx_thrift_out *out, int16_t field, int8_t value);
void sx_thrift_put_i16(struct sx_thrift_out *out, int16_t field, int16_t value);
void sx_thrift_put_i32(struct sx_thrift_out *out, int16_t field, int32_t value);
void sx_thrift_put_i64(struct sx_thrift_out *out, int16_t field, int64_t value);
void sx_thrift_put_binary(struct sx_thrift_out *out, int16_t field, const void *bytes, size_t length_bytes);
void sx_thrift_put_text(struct sx_thrift_out *out, int16_t field, const char *text);

/* A struct as a field, or (field 0) as an element of a list. */
void sx_thrift_begin(struct sx_thrift_out *out, int16_t field);
void sx_thrift_end(struct sx_thrift_out *out);
/* A struct that is encoded already, its end included. */
void sx_thrift_put_struct(struct sx_thrift_out *out, int16_t field, const void *bytes, size_t length_bytes);
/* Any field, as it stood in another struct. */
void sx_thrift_put_encoded(struct sx_thrift_out *out, const struct sx_thrift_field *field, const void *bytes,
                           size_t length_bytes);
/* A struct without fields. */
void sx_thrift_put_empty(struct sx_thrift_out *out, int16_t field);

/* `count` elements follow. */
void sx_thrift_put_list(struct sx_thrift_out *out, int16_t field, enum sx_thrift_type type, size_t count);
void sx_thrift_add_number(struct sx_thrift_out *out, int64_t value);
void sx_thrift_add_bool(struct sx_thrift_out *out, bool value);
void sx_thrift_add_binary(struct sx_thrift_out *out, const void *bytes, size_t length_bytes);

#endif
