#include "storage/bytes.h"

#include <string.h>

enum { LEAST_BYTES = 256 };

static bool grow(struct sx_bytes *bytes, size_t n) {
    size_t needed;
    if (__builtin_add_overflow(bytes->size, n, &needed)) {
        (void)sx_error_set(bytes->error, SX_OUT_OF_MEMORY, "out of memory: more bytes than can be counted");
        return false;
    }
    size_t capacity = bytes->capacity + bytes->capacity / 2;
    if (capacity < needed)
        capacity = needed > LEAST_BYTES ? needed : LEAST_BYTES;
    void *data = bytes->data;
    if (sx_pool_resize(bytes->pool, &data, bytes->capacity, capacity, bytes->error) != SX_OK)
        return false;
    bytes->data = data;
    bytes->capacity = capacity;
    return true;
}

uint8_t *sx_bytes_take(struct sx_bytes *bytes, size_t n) {
    if (bytes->failed)
        return NULL;
    if (n > bytes->capacity - bytes->size || !bytes->data)
        bytes->failed = !grow(bytes, n);
    if (bytes->failed)
        return NULL;
    uint8_t *at = bytes->data + bytes->size;
    bytes->size += n;
    return at;
}

void sx_bytes_reserve(struct sx_bytes *bytes, size_t n) {
    void *data = bytes->data;
    if (bytes->failed || n <= bytes->capacity ||
        sx_pool_resize(bytes->pool, &data, bytes->capacity, n, NULL) != SX_OK)
        return;
    bytes->data = data;
    bytes->capacity = n;
}

void sx_bytes_append(struct sx_bytes *bytes, const void *data, size_t n) {
    uint8_t *at = sx_bytes_take(bytes, n);
    if (at && n)
        memcpy(at, data, n);
}

void sx_bytes_append_byte(struct sx_bytes *bytes, uint8_t byte) {
    sx_bytes_append(bytes, &byte, 1);
}

void sx_bytes_append_u32(struct sx_bytes *bytes, uint32_t value) {
    sx_bytes_append(bytes, &value, sizeof value);
}

void sx_bytes_append_varint(struct sx_bytes *bytes, uint64_t value) {
    uint8_t buffer[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        buffer[n++] = (uint8_t)(value | 0x80);
    buffer[n++] = (uint8_t)value;
    sx_bytes_append(bytes, buffer, n);
}

void sx_bytes_append_zigzag(struct sx_bytes *bytes, int64_t value) {
    sx_bytes_append_varint(bytes, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

void sx_bytes_trim(struct sx_bytes *bytes) {
    void *data = bytes->data;
    if (!data || bytes->capacity - bytes->size <= bytes->capacity / 8 ||
        sx_pool_resize(bytes->pool, &data, bytes->capacity, bytes->size, NULL) != SX_OK)
        return;
    bytes->data = data;
    bytes->capacity = bytes->size;
}

void sx_bytes_release(struct sx_bytes *bytes) {
    if (bytes->data)
        sx_pool_free(bytes->pool, bytes->data, bytes->capacity);
    *bytes = (struct sx_bytes){.pool = bytes->pool};
}
