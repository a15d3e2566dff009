/* Strings: where each begins and how long it is (of PLAIN ones: decode_plain.cu), and from that views, or
 * decimals. A view is 16 bytes; its bytes are read once, to check them, and stay where they are. */
#include "backend/cuda/block.h"
#include "backend/cuda/decode_kernel.h"
#include "backend/cuda/view.h"
#include "tensor/semantics_stored.h"
#include "tensor/semantics_utf8.h"

/* ---- lengths apart from the bytes: a block per page ---- */

__global__ void sum_lengths(const __grid_constant__ struct decode_works works) {
    const struct decode_work work = works.of[blockIdx.y];
    const int32_t p = (int32_t)blockIdx.x;
    int64_t carry = 0, total;
    if (p >= work.n_pages || work.pages[p].source != DECODE_LENGTHS || work.states[p].is_bad)
        return;
    const struct decode_page &page = work.pages[p];
    const int32_t n = work.states[p].n_values;
    for (int32_t base = 0; base < n; base += CUDA_THREADS, carry += total) {
        const int32_t v = base + (int32_t)threadIdx.x;
        const int64_t before = block_exclusive(v < n ? (int64_t)work.lengths[page.first_row + v] : 0, &total);
        if (v < n)
            work.offsets[page.first_row + v] = carry + before;
    }
    if (threadIdx.x == 0 && carry > (int64_t)(page.body_bytes - page.text_at))
        page_fault(work, p, DECODE_STRING_END);
}

/* ---- front coding: each value begins like the one before ---- */

__device__ static inline int64_t whole_length(const struct decode_work &work, int64_t at) {
    return (int64_t)work.prefixes[at] + work.lengths[at];
}

__device__ static inline void check_front_coded(const struct decode_work &work, int32_t p, int32_t v,
                                                uint32_t fixed_bytes) {
    const int64_t at = work.pages[p].first_row + v;
    const int64_t before = v > 0 ? whole_length(work, at - 1) : 0, length = whole_length(work, at);
    if (work.prefixes[at] > before)
        page_fault(work, p, DECODE_PREFIX, work.prefixes[at], before);
    else if (length > (int64_t)UINT32_MAX)
        page_fault(work, p, DECODE_STRING_END);
    else if (fixed_bytes && length != fixed_bytes)
        page_fault(work, p, DECODE_LENGTH, (uint64_t)length, fixed_bytes);
}

__global__ void sum_front_coded(struct decode_work work, uint32_t fixed_bytes) {
    const int32_t p = (int32_t)blockIdx.x, n = work.states[p].n_values;
    const struct decode_page &page = work.pages[p];
    int64_t suffixes = 0, bytes = 0, suffix_total, total;
    if (page.source != DECODE_FRONT_CODED || work.states[p].is_bad)
        return;
    for (int32_t base = 0; base < n; base += CUDA_THREADS, suffixes += suffix_total, bytes += total) {
        const int32_t v = base + (int32_t)threadIdx.x;
        const int64_t at = page.first_row + v;
        const int64_t source = block_exclusive(v < n ? (int64_t)work.lengths[at] : 0, &suffix_total);
        const int64_t offset = block_exclusive(v < n ? whole_length(work, at) : 0, &total);
        if (v >= n)
            continue;
        work.sources[at] = suffixes + source;
        work.offsets[at] = bytes + offset;
        check_front_coded(work, p, v, fixed_bytes);
    }
    if (threadIdx.x != 0)
        return;
    if (suffixes > (int64_t)(page.body_bytes - page.text_at))
        page_fault(work, p, DECODE_STRING_END);
    work.states[p].text_bytes = bytes;
}

/* A block of one warp per page, which goes from value to value: each needs the one before. That costs two
 * dependent accesses to memory a value, some 0.5 us. */
__global__ void rebuild(struct decode_work work, uint8_t *rebuilt, const int64_t *rebuilt_at) {
    const int32_t p = (int32_t)blockIdx.x, n = work.states[p].n_values;
    const struct decode_page &page = work.pages[p];
    if (page.source != DECODE_FRONT_CODED || work.states[p].is_bad)
        return;
    volatile uint8_t *out = rebuilt + rebuilt_at[p]; /* lanes read what others wrote */
    const uint8_t *text = page.body + page.text_at;
    int64_t previous = 0;
    if (threadIdx.x == 0)
        work.pages[p].stored = rebuilt + rebuilt_at[p];
    for (int32_t v = 0; v < n; v++) {
        const int64_t at = page.first_row + v, offset = work.offsets[at], source = work.sources[at];
        const uint32_t prefix = work.prefixes[at], suffix = work.lengths[at];
        for (uint32_t k = threadIdx.x; k < prefix; k += CUDA_WARP)
            out[offset + k] = out[previous + k];
        for (uint32_t k = threadIdx.x; k < suffix; k += CUDA_WARP)
            out[offset + prefix + k] = text[source + k];
        previous = offset;
        __syncwarp();
    }
}

/* ---- views and decimals ---- */

#define BYTES_SOURCES (1u << DECODE_PLAIN_BYTES | 1u << DECODE_LENGTHS | 1u << DECODE_FRONT_CODED)

__device__ static inline uint32_t string_length(const struct decode_work &work, int32_t p, int64_t v) {
    const int64_t at = work.pages[p].first_row + v;
    return work.lengths[at] + (work.pages[p].source == DECODE_FRONT_CODED ? work.prefixes[at] : 0);
}
__device__ static inline const uint8_t *string_at(const struct decode_work &work, int32_t p, int64_t v) {
    return work.pages[p].stored + work.offsets[work.pages[p].first_row + v];
}

__device__ static inline void put_view(const struct decode_work &work, int32_t p, int64_t row,
                                       const uint8_t *bytes, uint32_t length) {
    if (work.is_text && !sx_utf8_is_valid(bytes, length))
        page_fault(work, p, DECODE_TEXT);
    if (length > SX_STRING_INLINE_BYTES && !*(volatile int64_t *)work.n_long)
        *(volatile int64_t *)work.n_long = 1;
    ((struct sx_string *)work.out)[row] = view_of((const char *)bytes, length);
}

__global__ void put_views(const __grid_constant__ struct decode_works works) {
    const struct decode_work work = works.of[blockIdx.y];
    each_row(work, BYTES_SOURCES, [=](int32_t p, int64_t row, int64_t v) {
        if (v < 0)
            ((struct sx_string *)work.out)[row] = {};
        else
            put_view(work, p, row, string_at(work, p, v), string_length(work, p, v));
    });
}

__global__ void put_fixed_views(const __grid_constant__ struct decode_works works) {
    const struct decode_work work = works.of[blockIdx.y];
    const uint32_t sources = 1u << DECODE_PLAIN | 1u << DECODE_SPLIT | 1u << DECODE_FRONT_CODED;
    each_row(work, sources, [=](int32_t p, int64_t row, int64_t v) {
        if (v < 0)
            ((struct sx_string *)work.out)[row] = {};
        else
            put_view(work, p, row, work.pages[p].stored + v * work.stored_bytes, work.stored_bytes);
    });
}

template <typename T> __global__ void put_decimals(const __grid_constant__ struct decode_works works) {
    const struct decode_work work = works.of[blockIdx.y];
    each_row(work, BYTES_SOURCES, [=](int32_t p, int64_t row, int64_t v) {
        T value = 0;
        if (v >= 0 && !sx_big_endian(string_at(work, p, v), string_length(work, p, v), sizeof value, &value))
            page_fault(work, p, DECODE_CONVERSION);
        ((T *)work.out)[row] = value;
    });
}

extern "C" {
void cuda_decode_lengths(cudaStream_t stream, const struct decode_works *works) {
    SX_LAUNCH(sum_lengths, page_grid(works), CUDA_THREADS, 0, stream, *works);
}
void cuda_decode_front_coded(cudaStream_t stream, const struct decode_work *work, uint32_t fixed_bytes) {
    SX_LAUNCH(sum_front_coded, (unsigned)work->n_pages, CUDA_THREADS, 0, stream, *work, fixed_bytes);
}
void cuda_decode_rebuild(cudaStream_t stream, const struct decode_work *work, uint8_t *rebuilt,
                         const int64_t *at) {
    SX_LAUNCH(rebuild, (unsigned)work->n_pages, CUDA_WARP, 0, stream, *work, rebuilt, at);
}
void cuda_decode_views(cudaStream_t stream, const struct decode_works *works) {
    SX_LAUNCH(put_views, tile_grid(works), CUDA_THREADS, 0, stream, *works);
}
void cuda_decode_fixed_views(cudaStream_t stream, const struct decode_works *works) {
    SX_LAUNCH(put_fixed_views, tile_grid(works), CUDA_THREADS, 0, stream, *works);
}
void cuda_decode_byte_decimals(cudaStream_t stream, const struct decode_works *works, uint32_t value_bytes) {
    if (value_bytes == sizeof(int64_t))
        SX_LAUNCH(put_decimals<int64_t>, tile_grid(works), CUDA_THREADS, 0, stream, *works);
    else
        SX_LAUNCH(put_decimals<sx_i128>, tile_grid(works), CUDA_THREADS, 0, stream, *works);
}
}
