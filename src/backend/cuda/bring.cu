/* Small copies of the host's memory, many by one kernel. A copy engine takes some 4 us for a copy besides its
 * bytes, and 3 between two (H200, PCIe 5: 56 KB at 12 GB/s, 178 KB at 25, of a link with 55). */
#include "backend/cuda/kernel.h"
#include "backend/cuda/launch.h"

/* What a warp asks for at a time, in words of 16 bytes a thread, at lines of the host's memory. */
constexpr int64_t WORD = 16, STEPS = 4, STEP_BYTES = WORD * CUDA_WARP, LINE = 128;
constexpr int64_t PART_BYTES = 8 * STEPS * STEP_BYTES; /* that a warp copies in a row */
/* Alone 8 reach as much; beside kernels that fill the device they took queries twice as long. SF100, default
 * files, H200: 24 to 48 alike. */
constexpr unsigned BRING_BLOCKS = 32;

struct alignas(16) host_word {
    uint64_t low, high;
};

/* Of the bytes [from, end), the others 0: nothing outside is read. */
__device__ static inline struct host_word load_word(const uint8_t *at, const uint8_t *from,
                                                    const uint8_t *end) {
    struct host_word word = {};
    if (at >= from && at + WORD <= end) {
        const ulonglong2 both = __ldcv((const ulonglong2 *)at);
        return {both.x, both.y};
    }
    for (int k = 0; k < WORD; k++)
        if (at + k >= from && at + k < end)
            (k < 8 ? word.low : word.high) |= (uint64_t)at[k] << 8 * (k % 8);
    return word;
}

__device__ static inline uint64_t funnel(uint64_t low, uint64_t high, uint32_t bits) {
    return bits ? low >> bits | high << (64 - bits) : low;
}

/* 16 bytes from byte `skew` of the first word on. */
__device__ static inline struct host_word join_words(struct host_word first, struct host_word second,
                                                     uint32_t skew) {
    const uint32_t bits = 8 * (skew % 8);
    if (skew < 8)
        return {funnel(first.low, first.high, bits), funnel(first.high, second.low, bits)};
    return {funnel(first.high, second.low, bits), funnel(second.low, second.high, bits)};
}

/* A warp: the copy's bytes whose words begin in [begin, stop), a line's multiple each. */
__device__ static inline void bring_part(const struct cuda_bring_copy &copy, const uint8_t *begin,
                                         const uint8_t *stop) {
    const uint8_t *from = (const uint8_t *)copy.from, *end = from + copy.bytes;
    const uint32_t skew = (uint32_t)((uintptr_t)from % WORD), lane = threadIdx.x % CUDA_WARP;
    for (const uint8_t *at = begin; at < stop && at < end; at += STEPS * STEP_BYTES) {
        const uint8_t *mine = at + lane * WORD;
        struct host_word words[STEPS + 1];
        SX_UNROLL
        for (int s = 0; s < STEPS; s++)
            words[s] = load_word(mine + s * STEP_BYTES, from, end);
        /* the word behind all of them */
        words[STEPS] =
            lane == 0 && skew ? load_word(at + STEPS * STEP_BYTES, from, end) : (struct host_word){};
        SX_UNROLL
        for (int s = 0; s < STEPS; s++) {
            const struct host_word wrapped = lane == 0 ? words[s + 1] : words[s];
            const int source = (int)((lane + 1) % CUDA_WARP);
            const struct host_word next = {__shfl_sync(0xffffffffu, wrapped.low, source),
                                           __shfl_sync(0xffffffffu, wrapped.high, source)};
            const int64_t to = mine + s * STEP_BYTES - (from - skew);
            if (to >= 0 && to < (int64_t)copy.bytes)
                *(struct host_word *)((uint8_t *)copy.device + to) = join_words(words[s], next, skew);
        }
    }
}

/* The parts of all copies, to the warps in turn. */
__global__ void bring_copies(struct cuda_bring_copies all) {
    const uint32_t warps = gridDim.x * blockDim.x / CUDA_WARP;
    /* the warp's next, from the copy's first */
    uint32_t part = (blockIdx.x * blockDim.x + threadIdx.x) / CUDA_WARP;
    for (int32_t i = 0; i < all.n; i++) {
        const struct cuda_bring_copy &copy = all.copies[i];
        const uint32_t in_line = (uint32_t)((uintptr_t)copy.from % LINE);
        const uint8_t *lines = (const uint8_t *)copy.from - in_line;
        const uint32_t parts = (uint32_t)((in_line + (int64_t)copy.bytes + PART_BYTES - 1) / PART_BYTES);
        for (; part < parts; part += warps)
            bring_part(copy, lines + part * PART_BYTES, lines + (part + 1) * PART_BYTES);
        part -= parts;
    }
}

extern "C" void cuda_bring_by_kernel(cudaStream_t stream, const struct cuda_bring_copies *copies) {
    SX_LAUNCH(bring_copies, BRING_BLOCKS, CUDA_THREADS, 0, stream, *copies);
}
