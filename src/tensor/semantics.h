/* Hash, equality and order of values: written once for C and CUDA, since backends and ranks must agree to the
 * bit. */
#ifndef SX_TENSOR_SEMANTICS_H
#define SX_TENSOR_SEMANTICS_H

#include <string.h>

#include "tensor/type.h"

#ifdef __CUDACC__
#define SX_BOTH  __host__ __device__ static inline
#define SX_TABLE static __device__ const
#else
#define SX_BOTH  static inline
#define SX_TABLE static const
#endif

#define SX_HASH_NULL UINT64_C(0x9e3779b97f4a7c15)

/* Bijective mixing: the high and low bits are both usable. */
SX_BOTH uint64_t sx_hash_u64(uint64_t x) {
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    return x;
}

/* Hash of a row from the hash so far and the next key's hash. The first key's hash is taken as it is. */
SX_BOTH uint64_t sx_hash_combine(uint64_t so_far, uint64_t next) {
    return (so_far * UINT64_C(0xbf58476d1ce4e5b9) + (so_far >> 31)) ^ next;
}

SX_BOTH uint64_t sx_hash_u128(sx_u128 x) {
    return sx_hash_combine(sx_hash_u64((uint64_t)(x >> 64)), sx_hash_u64((uint64_t)x));
}

/* -0.0 and 0.0 are one value, and so are all NaNs. */
SX_BOTH uint64_t sx_f64_bits(double x) {
    if (x == 0.0)
        return 0;
    if (x != x)
        return UINT64_C(0x7ff8000000000000);
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Numbers in the order of the values: NaN is greatest, and there is one zero. */
SX_BOTH uint64_t sx_f64_code(double x) {
    const uint64_t bits = sx_f64_bits(x), sign = UINT64_C(1) << 63;
    return bits & sign ? ~bits : bits | sign;
}

/* FLOAT hashes as the DOUBLE of the same value. */
SX_BOTH uint64_t sx_hash_f64(double x) {
    return sx_hash_u64(sx_f64_bits(x));
}

/* A bloom filter's bits of a hash: four of one word of 64. Low bits of the hash choose them, the high bits
 * the word. */
SX_BOTH uint64_t sx_bloom_bits(uint64_t hash) {
    return UINT64_C(1) << (hash & 63) | UINT64_C(1) << (hash >> 6 & 63) | UINT64_C(1) << (hash >> 12 & 63) |
           UINT64_C(1) << (hash >> 18 & 63);
}
SX_BOTH uint64_t sx_bloom_word(uint64_t hash, uint64_t n_words) {
    return (uint64_t)((sx_u128)hash * n_words >> 64);
}
/* Whether it may have been added. */
SX_BOTH bool sx_bloom_has(const uint64_t *words, uint64_t n_words, uint64_t hash) {
    const uint64_t bits = sx_bloom_bits(hash);
    return (words[sx_bloom_word(hash, n_words)] & bits) == bits;
}

/* < 0, 0, > 0 by unsigned bytes. */
SX_BOTH int sx_bytes_compare(const char *a, const char *b, uint32_t length_bytes) {
#ifdef __CUDA_ARCH__
    for (uint32_t i = 0; i < length_bytes; i++)
        if (a[i] != b[i])
            return (int)(uint8_t)a[i] - (int)(uint8_t)b[i];
    return 0;
#else
    return memcmp(a, b, length_bytes);
#endif
}

SX_BOTH uint32_t sx_swap_bytes(uint32_t x) {
#ifdef __CUDA_ARCH__
    return __byte_perm(x, 0, 0x0123);
#else
    return __builtin_bswap32(x);
#endif
}

SX_BOTH uint64_t sx_load_u64(const char *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

SX_BOTH uint64_t sx_hash_bytes(const char *bytes, uint32_t length_bytes) {
    uint64_t hash = sx_hash_u64(length_bytes);
    uint32_t at = 0;
    for (; at + 8 <= length_bytes; at += 8)
        hash = (hash ^ sx_load_u64(bytes + at)) * UINT64_C(0xd6e8feb86659fd93), hash ^= hash >> 32;
    uint64_t tail = 0;
    for (uint32_t shift = 0; at < length_bytes; at++, shift += 8)
        tail |= (uint64_t)(uint8_t)bytes[at] << shift;
    return sx_hash_u64(hash ^ tail);
}

SX_BOTH uint64_t sx_hash_string(const struct sx_string *string) {
    if (string->length_bytes > SX_STRING_INLINE_BYTES)
        return sx_hash_bytes(string->u.ref.pointer, string->length_bytes);
    uint64_t words[2];
    memcpy(words, string, sizeof words);
    return sx_hash_combine(sx_hash_u64(words[0]), sx_hash_u64(words[1]));
}

SX_BOTH bool sx_string_equal(const struct sx_string *a, const struct sx_string *b) {
    uint64_t head_a, head_b, tail_a, tail_b;
    memcpy(&head_a, a, 8);
    memcpy(&head_b, b, 8);
    if (head_a != head_b)
        return false; /* length and first four bytes */
    memcpy(&tail_a, (const char *)a + 8, 8);
    memcpy(&tail_b, (const char *)b + 8, 8);
    if (tail_a == tail_b)
        return true;
    if (a->length_bytes <= SX_STRING_INLINE_BYTES)
        return false;
    return sx_bytes_compare(a->u.ref.pointer, b->u.ref.pointer, a->length_bytes) == 0;
}

/* < 0, 0, > 0 by unsigned bytes, shorter first. */
SX_BOTH int sx_string_compare(const struct sx_string *a, const struct sx_string *b) {
    uint32_t head_a, head_b;
    memcpy(&head_a, a->u.ref.prefix, 4);
    memcpy(&head_b, b->u.ref.prefix, 4);
    if (head_a != head_b) {
        uint32_t swapped_a = sx_swap_bytes(head_a), swapped_b = sx_swap_bytes(head_b);
        /* unused inline bytes are zero, so a shorter string that is a prefix sorts first unless bytes are
         * zero too */
        if (swapped_a != swapped_b)
            return swapped_a < swapped_b ? -1 : 1;
    }
    uint32_t shorter = a->length_bytes < b->length_bytes ? a->length_bytes : b->length_bytes;
    const char *bytes_a = a->length_bytes <= SX_STRING_INLINE_BYTES ? a->u.inlined : a->u.ref.pointer;
    const char *bytes_b = b->length_bytes <= SX_STRING_INLINE_BYTES ? b->u.inlined : b->u.ref.pointer;
    int order = shorter ? sx_bytes_compare(bytes_a, bytes_b, shorter) : 0;
    if (order)
        return order;
    return a->length_bytes < b->length_bytes ? -1 : a->length_bytes > b->length_bytes;
}

/* NaN equals NaN and is greater than every number. */
SX_BOTH bool sx_f64_equal(double a, double b) {
    return a == b || (a != a && b != b);
}
SX_BOTH bool sx_f64_less(double a, double b) {
    if (b != b)
        return a == a;
    return a < b;
}

#endif
