/* Snappy, a warp a page. Elements are found 32 bytes of input at a time, and their output is made byte by
 * byte in parallel: each byte's place in the input, or in the output of earlier steps, is followed through
 * the copies of its own step. Nothing is written before all elements of a step are known to stay inside of
 * both buffers.
 *
 * A step costs some 500 cycles for about 40 bytes of output, 150 for a look only (H100, measured), so
 * throughput comes from pages in flight: 32 a processor. */
#ifndef SX_BACKEND_CUDA_SNAPPY_KERNEL_H
#define SX_BACKEND_CUDA_SNAPPY_KERNEL_H

#include "backend/cuda/block.h"
#include "backend/cuda/inflate_kernel.h"

/* Literals of up to SHORT_LITERAL bytes and copies are made in steps: of 16 elements of 64 bytes, at most. A
 * step looks at no more than STEP_BYTES of input. */
constexpr uint32_t SHORT_LITERAL = 60, MOST_ELEMENTS = 16, STEP_BYTES = CUDA_WARP + 5 + SHORT_LITERAL;

/* What a tag and the bytes behind it tell. */
struct element {
    uint32_t header_bytes, plain_bytes;
    uint32_t offset; /* of a copy */
    bool is_copy;
};

/* `behind`: the four bytes behind the tag. A literal too long for any page has UINT32_MAX bytes. */
__device__ static inline struct element read_element(uint32_t tag, uint32_t behind) {
    const uint32_t kind = tag & 3, high = tag >> 2;
    if (kind == 0) {
        const uint32_t more = high < SHORT_LITERAL ? 0 : high - SHORT_LITERAL + 1;
        const uint32_t length = more == 0 ? high : more == 4 ? behind : behind & ((1u << 8 * more) - 1);
        return {1 + more, length == UINT32_MAX ? length : length + 1, 0, false};
    }
    if (kind == 1)
        return {2, (high & 7) + 4, (high >> 3) << 8 | (behind & 0xff), true};
    return {kind == 2 ? 3u : 5u, high + 1, kind == 2 ? behind & 0xffff : behind, true};
}

/* Elements of a step, in order: where the output of each begins in the step's, and where from it comes: a
 * place in the step's input, or COPY and an offset. */
constexpr uint32_t COPY = 1u << 31;
struct step_table {
    uint32_t plain_at[MOST_ELEMENTS];
    uint32_t from[MOST_ELEMENTS];
};

/* The step's elements: how many, and a bit for each of the first 64 bytes of output where one begins. */
struct step {
    uint32_t n;
    uint64_t begins;
};

struct snappy_walk {
    uint64_t at, made; /* stored and plain bytes that are done */
};

/* The lanes at whose bytes elements begin, the first at lane 0: by doubling the steps from each byte, read as
 * if one began there, to the next. An element has at least 2 bytes, so that there are 16 at most. */
__device__ static inline uint32_t find_starts(bool is_inside, uint64_t stored_bytes) {
    constexpr int DOUBLINGS = 4;
    const uint32_t lane = threadIdx.x % CUDA_WARP;
    uint32_t next =
        is_inside && stored_bytes < CUDA_WARP - lane ? lane + (uint32_t)stored_bytes : (uint32_t)CUDA_WARP;
    uint32_t starts = is_inside ? 1u << lane : 0;
    for (int i = 0; i < DOUBLINGS; i++) {
        const uint32_t their_starts = __shfl_sync(0xffffffffu, starts, (int)(next & 31));
        const uint32_t their_next = __shfl_sync(0xffffffffu, next, (int)(next & 31));
        if (next < CUDA_WARP) {
            starts |= their_starts;
            next = their_next;
        }
    }
    return __shfl_sync(0xffffffffu, starts, 0);
}

/* A warp: `n` bytes to anywhere; whole words where no byte outside of [from, end) has to be read for them. */
__device__ static inline void copy_bytes(uint8_t *to, const uint8_t *from, uint64_t n, const uint8_t *end) {
    constexpr uint32_t WORD = sizeof(uint32_t);
    const uint32_t lane = threadIdx.x % CUDA_WARP;
    const uint64_t lead = (WORD - (uintptr_t)to % WORD) % WORD, head = lead + WORD < n ? lead + WORD : n;
    uint64_t tail = head;
    for (uint64_t k = lane; k < head; k += CUDA_WARP)
        to[k] = from[k];
    if ((uint64_t)(end - from) >= 2 * WORD) {
        const uint64_t most = (uint64_t)(end - from) - 2 * WORD, last = n < most ? n : most;
        const uint64_t words = last > head ? (last - head) / WORD : 0;
        for (uint64_t k = lane; k < words; k += CUDA_WARP)
            *(uint32_t *)(to + head + k * WORD) = load_word(from + head + k * WORD, uint32_t());
        tail = head + words * WORD;
    }
    for (uint64_t k = tail + lane; k < n; k += CUDA_WARP)
        to[k] = from[k];
}

/* A warp: a long literal, at walk->at. False: it is cut off, or too long. */
template <bool WRITES>
__device__ static inline bool long_literal(const struct inflate_piece &piece, const struct element &element,
                                           struct snappy_walk *walk) {
    const uint64_t from = walk->at + element.header_bytes;
    if (from + element.plain_bytes > piece.stored_bytes ||
        walk->made + element.plain_bytes > piece.plain_bytes)
        return false;
    if (WRITES)
        copy_bytes(piece.plain + walk->made, piece.stored + from, element.plain_bytes,
                   piece.stored + piece.stored_bytes);
    walk->at = from + element.plain_bytes;
    walk->made += element.plain_bytes;
    return true;
}

/* The step's element that makes its byte `at`. */
__device__ static inline uint32_t element_of(const struct step_table &table, const struct step &step,
                                             uint32_t at) {
    constexpr uint32_t BITS = 64;
    if (at < BITS)
        return (uint32_t)__popcll(step.begins << (BITS - 1 - at)) - 1;
    uint32_t found = 0;
    for (uint32_t by = MOST_ELEMENTS / 2; by > 0; by /= 2)
        if (found + by < step.n && table.plain_at[found + by] <= at)
            found += by;
    return found;
}

/* Where byte `at`, which is copied from `offset` bytes in front of it by an element that begins at `begin`,
 * comes from: in front of the element, whatever of it is copied again. The difference may be negative. */
__device__ static inline int32_t source_of(uint32_t at, uint32_t begin, uint32_t offset) {
    const uint32_t inside = at - begin;
    return (int32_t)(begin + (inside < offset ? inside : inside % offset)) - (int32_t)offset;
}

/* A warp: the step's output, of `total` bytes, at `plain`. `input`: the step's first byte. */
__device__ static inline void make_output(const struct step_table &table, const struct step &step,
                                          const uint8_t *input, uint8_t *plain, uint32_t total) {
    for (uint32_t k = threadIdx.x % CUDA_WARP; k < total; k += CUDA_WARP) {
        int32_t at = (int32_t)k;
        uint32_t e = element_of(table, step, k), from = table.from[e];
        while (at >= 0 && (from & COPY)) {
            at = source_of((uint32_t)at, table.plain_at[e], from & ~COPY);
            if (at >= 0) {
                e = element_of(table, step, (uint32_t)at);
                from = table.from[e];
            }
        }
        plain[k] = at < 0 ? plain[at] : input[from + (uint32_t)at - table.plain_at[e]];
    }
}

/* A warp: writes what the step's elements give. */
__device__ static inline void write_step(const struct element &element, uint32_t starts, uint32_t plain_at,
                                         uint32_t total, const uint8_t *input, uint8_t *plain,
                                         struct step_table *table) {
    const uint32_t lane = threadIdx.x % CUDA_WARP;
    const bool is_start = starts >> lane & 1;
    if (is_start) {
        const int rank = __popc(starts & ((1u << lane) - 1));
        table->plain_at[rank] = plain_at;
        table->from[rank] = element.is_copy ? COPY | element.offset : lane + element.header_bytes;
    }
    const uint64_t begin = is_start && plain_at < 64 ? (uint64_t)1 << plain_at : 0;
    const struct step step = {(uint32_t)__popc(starts),
                              (uint64_t)__reduce_or_sync(0xffffffffu, (uint32_t)(begin >> 32)) << 32 |
                                  __reduce_or_sync(0xffffffffu, (uint32_t)begin)};
    __syncwarp();
    make_output(*table, step, input, plain, total);
    __syncwarp();
}

/* A warp: the elements that begin among the next 32 bytes. False: damaged. */
template <bool WRITES>
__device__ static inline bool take_step(const struct inflate_piece &piece, const struct window &window,
                                        struct snappy_walk *walk, struct step_table *table) {
    const uint32_t lane = threadIdx.x % CUDA_WARP;
    const bool is_inside = walk->at + lane < piece.stored_bytes;
    const uint8_t *input = window.bytes + (walk->at - window.base);
    struct element element = {};
    if (is_inside)
        element = read_element(input[lane], load_word(input + lane + 1, uint32_t()));
    const bool is_long = !element.is_copy && element.plain_bytes > SHORT_LITERAL;
    const uint64_t stored_bytes =
        (uint64_t)element.header_bytes + (element.is_copy ? 0 : element.plain_bytes);
    uint32_t starts = find_starts(is_inside, stored_bytes);
    const uint32_t long_starts = starts & __ballot_sync(0xffffffffu, is_long);
    if (long_starts & 1) {
        const struct element first = {__shfl_sync(0xffffffffu, element.header_bytes, 0),
                                      __shfl_sync(0xffffffffu, element.plain_bytes, 0), 0, false};
        return long_literal<WRITES>(piece, first, walk);
    }
    if (long_starts) /* the next step begins with it */
        starts &= (1u << (__ffs((int)long_starts) - 1)) - 1;
    const bool is_start = starts >> lane & 1;
    const uint32_t inclusive = warp_inclusive(is_start ? element.plain_bytes : 0u);
    const uint32_t plain_at = inclusive - (is_start ? element.plain_bytes : 0);
    const uint32_t total = __shfl_sync(0xffffffffu, inclusive, CUDA_WARP - 1);
    const int last = 31 - __clz((int)starts);
    const uint64_t next = walk->at + (uint64_t)last + __shfl_sync(0xffffffffu, (uint32_t)stored_bytes, last);
    const bool is_bad =
        is_start && element.is_copy &&
        (element.offset == 0 || element.offset > walk->made + plain_at || element.offset >= COPY);
    if (__any_sync(0xffffffffu, is_bad) || next > piece.stored_bytes ||
        walk->made + total > piece.plain_bytes)
        return false;
    if (WRITES)
        write_step(element, starts, plain_at, total, input, piece.plain + walk->made, table);
    walk->at = next;
    walk->made += total;
    return true;
}

/* A warp: decompresses the page, or only looks at it. False: damaged, or not of the size that it should have.
 * `memory`: of WINDOW_WORDS. */
template <bool WRITES>
__device__ static inline bool snappy_walk_page(const struct inflate_piece &piece, uint64_t *memory,
                                               struct step_table *table) {
    constexpr uint32_t MAX_LENGTH_BYTES = 5;
    struct snappy_walk walk = {};
    struct window window = {};
    uint64_t told;
    if (!sx_stored_varint(piece.stored, piece.stored_bytes, &walk.at, &told) || walk.at > MAX_LENGTH_BYTES ||
        told != piece.plain_bytes)
        return false;
    while (walk.at < piece.stored_bytes) {
        if (walk.at + STEP_BYTES > window.end && window.end < piece.stored_bytes)
            window = load_window(piece, walk.at, memory);
        if (!take_step<WRITES>(piece, window, &walk, table))
            return false;
    }
    return walk.made == piece.plain_bytes;
}

#endif
