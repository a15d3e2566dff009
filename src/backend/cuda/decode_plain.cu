/* PLAIN strings: each stands behind its length, so where one begins depends on all those before it.
 *
 * A page's body falls into a part for each thread of a block. A thread guesses where in its part a string
 * begins, from what looks like lengths, and follows them as far as the next part. A part to which those
 * before come at another place than the guess is followed again from there. The first part's begin is known,
 * so when no part changes any more all places are exact. Where that takes too many rounds (bytes that look
 * like lengths everywhere) a warp goes from string to string. */
#include "backend/cuda/decode_kernel.h"

constexpr uint32_t WINDOW_BYTES = 4096, LENGTH_BYTES = 4, NOWHERE = UINT32_MAX;
constexpr int GUESS_STRINGS = 3, MAX_ROUNDS = 16;
/* Fewer strings, or longer ones, are not worth guesses. */
constexpr int32_t LEAST_STRINGS = 2 * CUDA_THREADS;
constexpr uint32_t MOST_MEAN_BYTES = 1024;

__device__ static inline void put_string(const struct decode_work &work, const struct decode_page &page,
                                         int32_t v, uint32_t at, uint32_t length) {
    work.offsets[page.first_row + v] = (int64_t)at + LENGTH_BYTES;
    work.lengths[page.first_row + v] = length;
}

/* ---- a thread for each part ---- */

/* Whether a string of at most `most` bytes may stand at *at, which then moves behind it. */
__device__ static inline bool next_string(const struct decode_page &page, uint32_t most, uint32_t *at) {
    const uint32_t left = page.body_bytes - *at;
    if (left < LENGTH_BYTES)
        return false;
    const uint32_t length = load_word(page.body + *at, uint32_t{});
    if (length > most || length > left - LENGTH_BYTES)
        return false;
    *at += LENGTH_BYTES + length;
    return true;
}

__device__ static inline bool looks_like_strings(const struct decode_page &page, uint32_t most, uint32_t at) {
    for (int i = 0; i < GUESS_STRINGS && at < page.body_bytes; i++)
        if (!next_string(page, most, &at))
            return false;
    return true;
}

/* Strings that begin in [entry, end): how many, and where the next one does. */
struct part {
    uint32_t entry, end; /* `entry` NOWHERE: not followed yet */
    uint32_t next;
    int32_t count;
    bool is_entered; /* as far as is known a string begins in it */
};

/* From part->entry on. What is damaged ends the page's strings; with a limit the part just ends before. */
__device__ static inline void follow(const struct decode_page &page, uint32_t most, struct part *part) {
    uint32_t at = part->entry;
    int32_t count = 0;
    while (at < part->end && next_string(page, most, &at))
        count++;
    part->count = count;
    part->next = at >= part->end || most < UINT32_MAX ? at : page.body_bytes;
}

__device__ static inline struct part guess(const struct decode_page &page, int32_t n) {
    const uint32_t bytes = (page.body_bytes + CUDA_THREADS - 1) / CUDA_THREADS, begin = threadIdx.x * bytes;
    const uint32_t most = page.body_bytes / (uint32_t)n * 8 + 64;
    struct part part = {NOWHERE, 0, 0, 0, false};
    if (begin >= page.body_bytes)
        return part;
    part.end = page.body_bytes - begin < bytes ? page.body_bytes : begin + bytes;
    uint32_t at = begin;
    while (threadIdx.x > 0 && at < part.end && !looks_like_strings(page, most, at))
        at++;
    if (at == part.end)
        return part;
    part.entry = at;
    part.is_entered = true;
    /* Longer strings are left to the next part, if there is one. */
    follow(page, threadIdx.x == 0 || part.end == page.body_bytes ? UINT32_MAX : most, &part);
    return part;
}

/* Where the parts before this thread's come to. */
__device__ static inline uint32_t come_to(uint32_t next) {
    __shared__ uint32_t warps[CUDA_THREADS / CUDA_WARP];
    const uint32_t lane = threadIdx.x % CUDA_WARP, warp = threadIdx.x / CUDA_WARP;
    uint32_t most = next;
    for (uint32_t by = 1; by < CUDA_WARP; by *= 2) {
        const uint32_t left = __shfl_up_sync(0xffffffffu, most, by);
        most = lane >= by && left > most ? left : most;
    }
    if (lane == CUDA_WARP - 1)
        warps[warp] = most;
    __syncthreads();
    uint32_t before = __shfl_up_sync(0xffffffffu, most, 1);
    before = lane ? before : 0;
    for (uint32_t w = 0; w < warp; w++)
        before = warps[w] > before ? warps[w] : before;
    __syncthreads();
    return before;
}

/* False: the parts do not meet. Else they are exact. */
__device__ static inline bool find_parts(const struct decode_page &page, int32_t n, struct part *part) {
    *part = guess(page, n);
    for (int round = 0; round < MAX_ROUNDS; round++) {
        const uint32_t entry = come_to(part->is_entered ? part->next : 0);
        const bool is_entered = entry < part->end;
        const bool changes = is_entered != part->is_entered || (is_entered && entry != part->entry);
        if (is_entered && entry != part->entry) {
            part->entry = entry;
            follow(page, UINT32_MAX, part);
        }
        part->is_entered = is_entered;
        if (!__syncthreads_or(changes))
            return true;
    }
    return false;
}

__device__ static inline void put_part(const struct decode_work &work, const struct decode_page &page,
                                       const struct part &part, int32_t first, int32_t n) {
    uint32_t at = part.entry;
    for (int32_t i = 0; i < part.count && first + i < n; i++) {
        const uint32_t length = load_word(page.body + at, uint32_t{});
        put_string(work, page, first + i, at, length);
        at += LENGTH_BYTES + length;
    }
}

/* ---- a warp, one string after the other ---- */

/* The words with bytes [base, base + WINDOW_BYTES) of the body as far as they are there. Returns where in the
 * window byte `base` is. */
__device__ static inline uint32_t load_window(const struct decode_page &page, uint32_t base,
                                              uint64_t *window) {
    const uint32_t there = page.body_bytes - base < WINDOW_BYTES ? page.body_bytes - base : WINDOW_BYTES;
    const uint32_t skipped = (uint32_t)((uintptr_t)(page.body + base) & 7);
    const uint64_t *from = (const uint64_t *)(page.body + base - skipped);
    for (uint32_t k = threadIdx.x; k < (skipped + there + 7) / 8; k += CUDA_WARP)
        window[k] = from[k];
    __syncwarp();
    return skipped;
}

struct plain_walk {
    uint32_t at; /* of the next string's length */
    int32_t done;
    bool is_bad;
};

/* One thread: as far as lengths are in the window. Who waits for the memory is the whole warp, a window at a
 * time; a step within takes some 30 ns. */
__device__ static inline struct plain_walk walk_window(const struct decode_work &work,
                                                       const struct decode_page &page, int32_t n,
                                                       uint32_t base, const uint8_t *window,
                                                       struct plain_walk walk) {
    while (walk.done < n) {
        const uint32_t left = page.body_bytes - walk.at;
        if (left < LENGTH_BYTES) {
            walk.is_bad = true;
            return walk;
        }
        if (walk.at - base > WINDOW_BYTES - LENGTH_BYTES)
            return walk;
        const uint32_t length = sx_stored_u32(window + (walk.at - base));
        if (length > left - LENGTH_BYTES) {
            walk.is_bad = true;
            return walk;
        }
        put_string(work, page, walk.done, walk.at, length);
        walk.at += LENGTH_BYTES + length;
        walk.done++;
    }
    return walk;
}

/* False: there are fewer than `n` strings. */
__device__ static inline bool walk_page(const struct decode_work &work, const struct decode_page &page,
                                        int32_t n) {
    __shared__ uint64_t window[WINDOW_BYTES / 8 + 1];
    struct plain_walk walk = {};
    while (walk.done < n && !walk.is_bad) {
        const uint32_t base = walk.at, skipped = load_window(page, base, window);
        if (threadIdx.x == 0)
            walk = walk_window(work, page, n, base, (const uint8_t *)window + skipped, walk);
        walk.at = __shfl_sync(0xffffffffu, walk.at, 0);
        walk.done = __shfl_sync(0xffffffffu, walk.done, 0);
        walk.is_bad = __shfl_sync(0xffffffffu, (int)walk.is_bad, 0);
        __syncwarp();
    }
    return !walk.is_bad;
}

/* A block per page. */
__global__ void find_plain(const __grid_constant__ struct decode_works works) {
    const struct decode_work work = works.of[blockIdx.y];
    const int32_t p = (int32_t)blockIdx.x;
    if (p >= work.n_pages || work.pages[p].source != DECODE_PLAIN_BYTES || work.states[p].is_bad)
        return;
    const struct decode_page &page = work.pages[p];
    const int32_t n = work.states[p].n_values;
    struct part part;
    bool is_good = true;
    if (n >= LEAST_STRINGS && page.body_bytes / (uint32_t)n <= MOST_MEAN_BYTES &&
        find_parts(page, n, &part)) {
        int64_t total;
        const int64_t first = block_exclusive((int64_t)(part.is_entered ? part.count : 0), &total);
        is_good = total >= n;
        if (is_good && part.is_entered && first < n)
            put_part(work, page, part, (int32_t)first, n);
    } else if (threadIdx.x < CUDA_WARP) {
        is_good = walk_page(work, page, n);
    }
    if (!is_good && threadIdx.x == 0)
        page_fault(work, p, DECODE_STRING_END);
}

extern "C" void cuda_decode_plain_bytes(cudaStream_t stream, const struct decode_works *works) {
    SX_LAUNCH(find_plain, page_grid(works), CUDA_THREADS, 0, stream, *works);
}
