/* CRC-32 (ISO-HDLC: gzip, Ethernet) of bytes in device memory, by a warp.
 *
 * A register is a polynomial over GF(2) whose lowest power is in the highest bit. A row is 128 bytes, four a
 * lane; a lane goes from row to row by multiplying with x^1024, and at the end by what is behind its bytes in
 * the last row. The first row is filled up with zeros in front, which tell nothing. */
#ifndef SX_BACKEND_CUDA_CRC32_H
#define SX_BACKEND_CUDA_CRC32_H

#include "backend/cuda/kernel.h"

constexpr uint32_t CRC32_LANE_BYTES = 4, CRC32_ROW_BYTES = CUDA_WARP * CRC32_LANE_BYTES;

/* x times the polynomial. */
__host__ __device__ constexpr uint32_t crc32_shift(uint32_t a) {
    return a >> 1 ^ (a & 1 ? 0xedb88320u : 0);
}

__host__ __device__ constexpr uint32_t crc32_multiply(uint32_t a, uint32_t b) {
    uint32_t product = 0;
    for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
        product ^= a & bit ? b : 0;
        b = crc32_shift(b);
    }
    return product;
}

struct crc32_tables {
    uint32_t rows[CRC32_LANE_BYTES][256]; /* a register's byte, times x^1024 */
    uint32_t lanes[CUDA_WARP];            /* x to the bits from a lane's bytes to the end of its row */
};

constexpr struct crc32_tables crc32_make_tables() {
    struct crc32_tables tables = {};
    uint32_t power = 1u << 31; /* x^0 */
    for (uint32_t lane = CUDA_WARP; lane > 0; lane--) {
        for (uint32_t bit = 0; bit < 8 * CRC32_LANE_BYTES; bit++)
            power = crc32_shift(power);
        tables.lanes[lane - 1] = power;
    }
    for (uint32_t k = 0; k < CRC32_LANE_BYTES; k++)
        for (uint32_t byte = 1; byte < 256; byte++) {
            const uint32_t rest = byte & (byte - 1), lowest = byte ^ rest;
            tables.rows[k][byte] =
                rest ? tables.rows[k][rest] ^ tables.rows[k][lowest] : crc32_multiply(power, byte << 8 * k);
        }
    return tables;
}

__device__ constexpr struct crc32_tables crc32_table = crc32_make_tables();

__device__ static inline uint32_t crc32_next_row(uint32_t crc) {
    return crc32_table.rows[0][crc & 0xff] ^ crc32_table.rows[1][crc >> 8 & 0xff] ^
           crc32_table.rows[2][crc >> 16 & 0xff] ^ crc32_table.rows[3][crc >> 24];
}

/* Of bytes that are fewer than a register has. */
__device__ static inline uint32_t crc32_of_few(const uint8_t *bytes, uint32_t n) {
    uint32_t crc = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc32_shift(crc);
    }
    return ~crc;
}

/* Four bytes from `at` on; zeros in front of the first. The register's first value is all ones, which is as
 * if the first four bytes were inverted. */
__device__ static inline uint32_t crc32_word(const uint8_t *bytes, int64_t at) {
    constexpr int64_t BYTES = CRC32_LANE_BYTES;
    uint32_t word = 0;
    if (at >= BYTES) {
        const uint8_t *own = bytes + at;
        return own[0] | (uint32_t)own[1] << 8 | (uint32_t)own[2] << 16 | (uint32_t)own[3] << 24;
    }
    for (int64_t k = 0; k < BYTES; k++)
        if (at + k >= 0)
            word |= (bytes[at + k] ^ (at + k < BYTES ? 0xffu : 0)) << 8 * k;
    return word;
}

/* All lanes of a warp get it. */
__device__ static inline uint32_t crc32_of(const uint8_t *bytes, uint32_t n) {
    const uint32_t lane = threadIdx.x % CUDA_WARP;
    if (n < CRC32_LANE_BYTES)
        return crc32_of_few(bytes, n);
    const uint32_t filled = (CRC32_ROW_BYTES - n % CRC32_ROW_BYTES) % CRC32_ROW_BYTES;
    int64_t at = (int64_t)(lane * CRC32_LANE_BYTES) - (int64_t)filled;
    uint32_t crc = crc32_word(bytes, at);
    for (at += CRC32_ROW_BYTES; at < (int64_t)n; at += CRC32_ROW_BYTES)
        crc = crc32_next_row(crc) ^ crc32_word(bytes, at);
    crc = crc32_multiply(crc, crc32_table.lanes[lane]);
    for (int by = CUDA_WARP / 2; by > 0; by /= 2)
        crc ^= __shfl_xor_sync(0xffffffffu, crc, by);
    return ~crc;
}

#endif
