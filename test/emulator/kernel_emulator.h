/* What kernels see of CUDA, on the host. A block's threads are fibers that take turns at barriers; blocks run
 * one after the other. Included by backend/cuda/kernel.h in place of nvcc's own. */
#ifndef TEST_EMULATOR_KERNEL_EMULATOR_H
#define TEST_EMULATOR_KERNEL_EMULATOR_H

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <tuple>
#include <utility>

#include "cuda_runtime_api.h"

#define __global__ static
#define __device__
#define __grid_constant__
#define __host__
#define __forceinline__ inline
#define __noinline__    __attribute__((noinline))
#define __shared__      static thread_local
#define __launch_bounds__(...)
#define __constant__
#define __align__(n) __attribute__((aligned(n)))

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

namespace emulator {
struct place {
    dim3 thread, block, block_size, grid_size;
};
/* The model: found without a call (CMakeLists.txt). */
extern constinit thread_local place here __attribute__((tls_model("initial-exec")));
/* Runs `body` for every thread of every block; the caller is back when all have ended. */
void launch(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &body);
void check_stream(cudaStream_t stream);
/* While there is one the device's memory can be touched (CUDA_EMULATOR_GUARD). */
struct guard_open {
    guard_open();
    ~guard_open();
};
/* The same once the stream is waited for, where it puts its kernels off (runtime.cpp), else now. */
void launch_on(cudaStream_t stream, dim3 grid, dim3 block, size_t shared_bytes, std::function<void()> body);

/* A kernel's name as the argument of a template. */
template <size_t N> struct kernel_name {
    char text[N];
    constexpr kernel_name(const char (&from)[N]) {
        for (size_t i = 0; i < N; i++)
            text[i] = from[i];
    }
};
/* What became of a launch in the code, one for each instantiation; known from the library's loading on.
 * CUDA_EMULATOR_KERNELS=FILE appends all of them at the end (kernel_list.cpp). */
struct launch_site {
    const char *kernel, *within;
    std::atomic<long> launches{0}, of_several_blocks{0}, threads{0};
    launch_site *next;
    launch_site(const char *kernel_, const char *within_);
    void note(dim3 grid, dim3 block);
};
template <kernel_name NAME, typename Body> struct site_of {
    static const char *within() { return __PRETTY_FUNCTION__; }
    static launch_site site;
};
template <kernel_name NAME, typename Body> launch_site site_of<NAME, Body>::site{NAME.text, within()};
template <kernel_name NAME, typename Body>
void launch_site_of(cudaStream_t stream, dim3 grid, dim3 block, size_t shared_bytes, const Body &body) {
    site_of<NAME, Body>::site.note(grid, block);
    launch_on(stream, grid, block, shared_bytes, body);
}
unsigned char *shared_memory();
void block_barrier();
/* Every lane in `mask` gives a word; all are in the warp's slots when it returns. */
const uint64_t *warp_exchange(unsigned mask, uint64_t word);
void warp_barrier(unsigned mask);
unsigned lane();
} // namespace emulator

#define threadIdx emulator::here.thread
#define blockIdx  emulator::here.block
#define blockDim  emulator::here.block_size
#define gridDim   emulator::here.grid_size
#define warpSize  32

#define SX_LAUNCH(kernel, blocks, threads, shared_bytes, stream, ...)                                  \
    (emulator::check_stream(stream),                                                                   \
     emulator::launch_site_of<#kernel>(                                                                \
         (stream), (blocks), (threads), (shared_bytes), [arguments = std::make_tuple(__VA_ARGS__)]() { \
             std::apply([](const auto &...argument) { kernel(argument...); }, arguments);              \
         }))
#define SX_DYNAMIC_SHARED(name) unsigned char *name = emulator::shared_memory()

/* ---- barriers and warps ---- */

inline void __syncthreads() {
    emulator::block_barrier();
}
inline void __syncwarp(unsigned mask = 0xffffffffu) {
    emulator::warp_barrier(mask);
}
inline int __syncthreads_or(int predicate) {
    static thread_local int any;
    emulator::block_barrier();
    any = 0;
    emulator::block_barrier();
    any |= predicate != 0;
    emulator::block_barrier();
    return any;
}
inline int __syncthreads_count(int predicate) {
    static thread_local int count;
    emulator::block_barrier();
    count = 0;
    emulator::block_barrier();
    count += predicate != 0;
    emulator::block_barrier();
    return count;
}

template <typename T> inline T emulator_unpack(uint64_t word) {
    T value;
    std::memcpy(&value, &word, sizeof value);
    return value;
}
template <typename T> inline T emulator_shuffle(unsigned mask, T value, unsigned from) {
    static_assert(sizeof(T) <= 8, "shuffles move up to 8 bytes");
    uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    T got = emulator_unpack<T>(emulator::warp_exchange(mask, word)[from & 31]);
    emulator::warp_barrier(mask);
    return got;
}
template <typename T> inline T __shfl_sync(unsigned mask, T value, int from, int = 32) {
    return emulator_shuffle(mask, value, (unsigned)from);
}
template <typename T> inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int = 32) {
    unsigned me = emulator::lane();
    return emulator_shuffle(mask, value, me >= by ? me - by : me);
}
template <typename T> inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int = 32) {
    unsigned me = emulator::lane();
    return emulator_shuffle(mask, value, me + by < 32 ? me + by : me);
}
template <typename T> inline T __shfl_xor_sync(unsigned mask, T value, int with, int = 32) {
    return emulator_shuffle(mask, value, emulator::lane() ^ (unsigned)with);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
    const uint64_t *words = emulator::warp_exchange(mask, predicate != 0);
    unsigned ballot = 0;
    for (unsigned i = 0; i < 32; i++)
        if (mask >> i & 1)
            ballot |= (unsigned)words[i] << i;
    emulator::warp_barrier(mask);
    return ballot;
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value) {
    for (int by = 16; by > 0; by /= 2)
        value += __shfl_xor_sync(mask, value, by);
    return value;
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value) {
    for (int by = 16; by > 0; by /= 2)
        value |= __shfl_xor_sync(mask, value, by);
    return value;
}
inline int __any_sync(unsigned mask, int predicate) {
    return __ballot_sync(mask, predicate) != 0;
}
inline int __all_sync(unsigned mask, int predicate) {
    return __ballot_sync(mask, predicate) == mask;
}
template <typename T> inline unsigned __match_any_sync(unsigned mask, T value) {
    uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    const uint64_t *words = emulator::warp_exchange(mask, word);
    unsigned same = 0;
    for (unsigned i = 0; i < 32; i++)
        if ((mask >> i & 1) && words[i] == word)
            same |= 1u << i;
    emulator::warp_barrier(mask);
    return same;
}

/* ---- atomics and fences ---- */

inline void __threadfence() {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline void __threadfence_block() {}
inline void __threadfence_system() {
    __threadfence();
}
template <typename T> inline T atomicAdd(T *at, T value) {
    return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);
}
template <typename T> inline T atomicSub(T *at, T value) {
    return __atomic_fetch_sub(at, value, __ATOMIC_SEQ_CST);
}
template <typename T> inline T atomicOr(T *at, T value) {
    return __atomic_fetch_or(at, value, __ATOMIC_SEQ_CST);
}
template <typename T> inline T atomicAnd(T *at, T value) {
    return __atomic_fetch_and(at, value, __ATOMIC_SEQ_CST);
}
template <typename T> inline T atomicExch(T *at, T value) {
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);
}
template <typename T> inline T atomicCAS(T *at, T expected, T value) {
    __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}
template <typename T> inline T atomicMin(T *at, T value) {
    T old = __atomic_load_n(at, __ATOMIC_SEQ_CST);
    while (value < old &&
           !__atomic_compare_exchange_n(at, &old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {}
    return old;
}
template <typename T> inline T atomicMax(T *at, T value) {
    T old = __atomic_load_n(at, __ATOMIC_SEQ_CST);
    while (old < value &&
           !__atomic_compare_exchange_n(at, &old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {}
    return old;
}

/* ---- bits ---- */

inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
    return (unsigned)(((unsigned long long)high << 32 | low) >> (by & 31));
}
inline unsigned __brev(unsigned x) {
    unsigned reversed = 0;
    for (int i = 0; i < 32; i++, x >>= 1)
        reversed = reversed << 1 | (x & 1);
    return reversed;
}
inline int __popc(unsigned x) {
    return __builtin_popcount(x);
}
inline int __popcll(unsigned long long x) {
    return __builtin_popcountll(x);
}
inline int __ffs(int x) {
    return __builtin_ffs(x);
}
inline int __ffsll(long long x) {
    return __builtin_ffsll(x);
}
inline int __clz(int x) {
    return x ? __builtin_clz((unsigned)x) : 32;
}
inline int __clzll(long long x) {
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
template <typename T> inline T __ldg(const T *at) {
    return *at;
}
struct ulonglong2 {
    unsigned long long x, y;
};
template <typename T> inline T __ldcv(const T *at) {
    return *at;
}
template <typename T> inline T __ldcs(const T *at) {
    return *at;
}
inline void __nanosleep(unsigned) {}

#endif
