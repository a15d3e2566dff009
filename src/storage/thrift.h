/* Thrift's compact protocol, read from memory. The first fault sticks: `wrong` names it, and everything read
 * after it is zero or empty, so that callers check once, at the end. */
#ifndef SX_STORAGE_THRIFT_H
#define SX_STORAGE_THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sx_thrift_type {
    SX_THRIFT_TRUE = 1,
    SX_THRIFT_FALSE = 2,
    SX_THRIFT_I8 = 3,
    SX_THRIFT_I16 = 4,
    SX_THRIFT_I32 = 5,
    SX_THRIFT_I64 = 6,
    SX_THRIFT_DOUBLE = 7,
    SX_THRIFT_BINARY = 8,
    SX_THRIFT_LIST = 9,
    SX_THRIFT_SET = 10,
    SX_THRIFT_MAP = 11,
    SX_THRIFT_STRUCT = 12,
    SX_THRIFT_UUID = 13
};

struct sx_thrift {
    const uint8_t *at;
    const uint8_t *end;
    const char *wrong; /* NULL: no fault yet */
};

/* A slice of somebody else's bytes; NULL: absent. */
struct sx_slice {
    const uint8_t *bytes;
    uint32_t length_bytes;
};

struct sx_thrift_field {
    int16_t id;
    uint8_t type;
};

static inline struct sx_thrift sx_thrift_from(const uint8_t *bytes, size_t length_bytes) {
    return (struct sx_thrift){.at = bytes, .end = bytes + length_bytes};
}

/* The struct's next field, which starts zeroed; false at its end or after a fault. Every field has to be read
 * or skipped. */
bool sx_thrift_next(struct sx_thrift *in, struct sx_thrift_field *field);
void sx_thrift_skip(struct sx_thrift *in, const struct sx_thrift_field *field);

/* Values of the field just announced; another type is a fault. */
int64_t sx_thrift_i64(struct sx_thrift *in, const struct sx_thrift_field *field); /* and narrower ones */
int32_t sx_thrift_i32(struct sx_thrift *in, const struct sx_thrift_field *field);
bool sx_thrift_bool(struct sx_thrift *in, const struct sx_thrift_field *field);
struct sx_slice sx_thrift_binary(struct sx_thrift *in, const struct sx_thrift_field *field);
bool sx_thrift_struct(struct sx_thrift *in, const struct sx_thrift_field *field);

/* Elements of a list of that type; at most as many as bytes are left. */
uint32_t sx_thrift_list(struct sx_thrift *in, const struct sx_thrift_field *field, enum sx_thrift_type type);
int64_t sx_thrift_element_i64(struct sx_thrift *in);
bool sx_thrift_element_bool(struct sx_thrift *in);
struct sx_slice sx_thrift_element_binary(struct sx_thrift *in);

void sx_thrift_fail(struct sx_thrift *in, const char *wrong);

#endif
