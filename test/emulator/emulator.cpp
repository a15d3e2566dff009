/* Kernels on the host: fibers for threads, and the runtime's functions over malloc. */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "async.h"
#include "kernel_emulator.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define FIBER_ASAN 1
#endif

namespace emulator {

constinit thread_local place here;

namespace {

/* The deepest stack seen is 12 KB, with the address sanitizer. */
enum { STACK_BYTES = 128 << 10, GUARD_BYTES = 4096, MAX_THREADS = 1024, WARP = 32 };

/* Saves the callee-saved registers and the stack pointer, and goes on with another stack. */
extern "C" void emulator_switch(void **save, void *load);
#if defined(__x86_64__)
asm(".text\n.globl emulator_switch\n.hidden emulator_switch\n.type "
    "emulator_switch,@function\nemulator_switch:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n  ret\n"
    ".size emulator_switch,.-emulator_switch\n");
#else
#error "the emulator's fibers are written for x86-64"
#endif

struct fiber {
    void *stack_pointer;
    char *stack; /* above GUARD_BYTES that can't be touched: outgrowing it is a fault */
    void *fake_stack;
};

struct warp {
    uint64_t slots[WARP];
    unsigned arrived[WARP]; /* the mask that a waiting lane gave, or 0 */
    unsigned generation[WARP];
    unsigned ended; /* lanes */
};

/* One for each OS thread that launches. A fiber runs one thread after the other; a thread that has to wait
 * keeps its fiber, and the next threads begin on another. So kernels without barriers never switch. */
struct scheduler {
    std::vector<fiber> fibers;
    std::vector<int> running; /* fiber of each waiting thread, or -1 */
    std::vector<char> is_at_barrier;
    std::vector<warp> warps;
    std::vector<unsigned char> shared;
    void *main_stack_pointer = nullptr, *main_fake_stack = nullptr;
    const void *main_stack_bottom = nullptr;
    size_t main_stack_bytes = 0;
    const std::function<void()> *body = nullptr;
    unsigned n_threads = 0, next = 0, current = 0, n_left = 0, at_barrier = 0, barrier_generation = 0;
    int fiber_in_use = 0;
    bool ends = false;

    ~scheduler();
};

thread_local scheduler machine;

void to_main(fiber &me, bool ends) {
#ifdef FIBER_ASAN
    __sanitizer_start_switch_fiber(ends ? nullptr : &me.fake_stack, machine.main_stack_bottom,
                                   machine.main_stack_bytes);
#endif
    (void)ends;
    emulator_switch(&me.stack_pointer, machine.main_stack_pointer);
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(me.fake_stack, &machine.main_stack_bottom, &machine.main_stack_bytes);
#endif
}

void to_fiber(int index) {
    machine.fiber_in_use = index;
    fiber &f = machine.fibers[(size_t)index];
#ifdef FIBER_ASAN
    __sanitizer_start_switch_fiber(&machine.main_fake_stack, f.stack, STACK_BYTES);
#endif
    emulator_switch(&machine.main_stack_pointer, f.stack_pointer);
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(machine.main_fake_stack, nullptr, nullptr);
#endif
}

scheduler::~scheduler() {
    ends = true;
    for (size_t i = 0; i < fibers.size(); i++) {
        to_fiber((int)i); /* its fake stack goes */
        fiber &f = fibers[i];
#ifdef FIBER_ASAN
        /* the frames that a fiber has ended in are still marked; others get the addresses */
        __asan_unpoison_memory_region(f.stack, STACK_BYTES);
#endif
        munmap(f.stack - GUARD_BYTES, GUARD_BYTES + STACK_BYTES);
    }
}

void set_thread(unsigned t) {
    machine.current = t;
    here.thread = t < here.block_size.x
                      ? dim3(t, 0, 0) /* divisions take longer than many a thread */
                      : dim3(t % here.block_size.x, t / here.block_size.x % here.block_size.y,
                             t / here.block_size.x / here.block_size.y);
}

/* A fiber's code: threads that have not begun, until there are none; then those of the next block. */
void enter() {
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &machine.main_stack_bottom, &machine.main_stack_bytes);
#endif
    for (const int me = machine.fiber_in_use;;) {
        while (!machine.ends && machine.next < machine.n_threads) {
            set_thread(machine.next++);
            (*machine.body)();
            machine.warps[machine.current / WARP].ended |= 1u << machine.current % WARP;
            machine.n_left--;
        }
        to_main(machine.fibers[(size_t)me], machine.ends);
    }
}

void yield() {
    const unsigned me = machine.current;
    const int fiber_of_me = machine.fiber_in_use;
    machine.running[me] = fiber_of_me;
    to_main(machine.fibers[(size_t)fiber_of_me], false);
    machine.running[me] = -1;
    set_thread(me);
}

void make_fiber() {
    fiber f = {};
    char *memory = (char *)mmap(nullptr, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, GUARD_BYTES, PROT_NONE) != 0)
        abort();
    f.stack = memory + GUARD_BYTES;
    void **top = (void **)(f.stack + STACK_BYTES);
    *--top = nullptr; /* `enter` never returns; its stack is aligned as after a call */
    *--top = (void *)enter;
    for (int i = 0; i < 6; i++)
        *--top = nullptr;
    f.stack_pointer = top;
    machine.fibers.push_back(f);
}

void run_block(unsigned n_threads) {
    machine.n_threads = machine.n_left = n_threads;
    machine.next = machine.at_barrier = 0;
    machine.running.assign(n_threads, -1);
    machine.is_at_barrier.assign(n_threads, 0);
    machine.warps.assign((n_threads + WARP - 1) / WARP, warp{});
    machine.fibers.reserve(MAX_THREADS + 1);
    /* each fiber that is begun here ends up waiting with one of the block's threads, or done with the last */
    for (int i = 0; machine.next < machine.n_threads; i++) {
        if ((size_t)i == machine.fibers.size())
            make_fiber();
        to_fiber(i);
    }
    while (machine.n_left > 0)
        for (unsigned t = 0; t < n_threads; t++)
            if (machine.running[t] >= 0 &&
                (!machine.is_at_barrier[t] || machine.at_barrier >= machine.n_left))
                to_fiber(machine.running[t]);
}

} // namespace

unsigned lane() {
    return machine.current % WARP;
}

unsigned char *shared_memory() {
    return machine.shared.data();
}

/* Threads that have ended do not take part, as on the device. */
void block_barrier() {
    const unsigned generation = machine.barrier_generation;
    machine.at_barrier++;
    while (generation == machine.barrier_generation) {
        if (machine.at_barrier >= machine.n_left) {
            machine.at_barrier = 0;
            machine.barrier_generation++;
            std::fill(machine.is_at_barrier.begin(), machine.is_at_barrier.end(), 0);
            return;
        }
        machine.is_at_barrier[machine.current] = 1;
        yield();
    }
}

void warp_barrier(unsigned mask) {
    const unsigned thread = machine.current, me = thread % WARP;
    if (!(mask >> me & 1)) {
        fprintf(stderr, "emulator: lane %u is not in its own mask %08x\n", me, mask);
        abort();
    }
    const unsigned generation = machine.warps[thread / WARP].generation[me];
    machine.warps[thread / WARP].arrived[me] = mask;
    for (;;) {
        warp &w = machine.warps[thread / WARP];
        if (generation != w.generation[me])
            return;
        bool all = true;
        for (unsigned i = 0; i < WARP && all; i++)
            if (mask >> i & 1 && thread / WARP * WARP + i < machine.n_threads && !(w.ended >> i & 1))
                all = w.arrived[i] == mask;
        if (all) {
            for (unsigned i = 0; i < WARP; i++)
                if (mask >> i & 1)
                    w.arrived[i] = 0, w.generation[i]++;
            return;
        }
        yield();
    }
}

const uint64_t *warp_exchange(unsigned mask, uint64_t word) {
    machine.warps[machine.current / WARP].slots[lane()] = word;
    warp_barrier(mask);
    return machine.warps[machine.current / WARP].slots;
}

} // namespace emulator

/* ---- guarded memory ---- */

namespace {

/* With CUDA_EMULATOR_GUARD=1 device memory can be touched by kernels and copies only, and freed memory never
 * again: for tests with one thread. */
struct guard {
    bool on = false;
    char *base = nullptr;
    size_t used = 0;
    static constexpr size_t BYTES = (size_t)1 << 40, PAGE = 4096;

    guard() {
        const char *wanted = getenv("CUDA_EMULATOR_GUARD");
        if (!wanted || *wanted != '1')
            return;
        base = (char *)mmap(nullptr, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        on = base != MAP_FAILED;
    }
    void protect(int protection) {
        if (on && used)
            mprotect(base, used, protection);
    }
    /* Ends at a page's end, so that a write behind it is caught. */
    void *take(size_t bytes) {
        size_t pages = (bytes + PAGE - 1) / PAGE + 1;
        char *memory = base + used + (pages - 1) * PAGE - (bytes + 15) / 16 * 16;
        used += pages * PAGE;
        return memory;
    }
} memory_guard;

struct guard_open {
    guard_open() { memory_guard.protect(PROT_READ | PROT_WRITE); }
    ~guard_open() { memory_guard.protect(PROT_NONE); }
};

void *take_memory(size_t bytes) {
    if (memory_guard.on)
        return memory_guard.take(bytes ? bytes : 1);
    const size_t alignment = bytes >= ((size_t)1 << 20) ? 4096 : 256; /* large blocks are whole pages */
    void *memory = aligned_alloc(alignment, (bytes + (bytes == 0) + alignment - 1) / alignment * alignment);
    /* what a kernel reads before it writes must not look like zeroes */
    if (memory)
        memset(memory, 0xa5, bytes);
    return memory;
}

void give_memory(void *memory) {
    if (!memory_guard.on)
        free(memory);
}

/* Registered host memory. CUDA_EMULATOR_PIN_LIMIT=BYTES: registering more is refused. */
struct registry {
    std::mutex lock;
    std::map<const void *, size_t> ranges;
    size_t bytes = 0, limit = SIZE_MAX;
    registry() {
        if (const char *most = getenv("CUDA_EMULATOR_PIN_LIMIT"))
            limit = strtoull(most, nullptr, 10);
    }
    ~registry() {
        if (ranges.empty())
            return;
        fprintf(stderr, "emulator: %zu ranges of host memory were not unregistered\n", ranges.size());
        abort();
    }
    bool add(const void *memory, size_t size) {
        std::lock_guard<std::mutex> guard(lock);
        if (size > limit - bytes || !ranges.emplace(memory, size).second)
            return false;
        bytes += size;
        return true;
    }
    void remove(const void *memory) {
        std::lock_guard<std::mutex> guard(lock);
        auto found = ranges.find(memory);
        if (found == ranges.end()) {
            fprintf(stderr, "emulator: host memory %p is not registered\n", memory);
            abort();
        }
        bytes -= found->second;
        ranges.erase(found);
    }
} registered;

} // namespace

void emulator::launch(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &body) {
    const unsigned n_threads = block.x * block.y * block.z;
    if (n_threads == 0 || n_threads > MAX_THREADS || grid.x == 0 || shared_bytes > (size_t)227 << 10) {
        fprintf(stderr, "emulator: a launch of %u blocks of %u threads with %zu shared bytes\n", grid.x,
                n_threads, shared_bytes);
        abort();
    }
    guard_open open;
    machine.shared.assign(shared_bytes + 16, 0xa5);
    machine.body = &body;
    here.block_size = block;
    here.grid_size = grid;
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                here.block = dim3(x, y, z);
                run_block(n_threads);
            }
}

static thread_local int current_device;

extern "C" {

/* By which tests know it. */
__attribute__((visibility("default"))) extern const char emulator_name[];
const char emulator_name[] = "emulated";

enum { LEAST_PRIORITY = 0 };
struct emulated_stream {
    struct emulated_async async;
    int device;
    bool defers;
    std::mutex lock; /* of: */
    std::deque<std::function<void()>> deferred;
};
struct emulated_event {
    cudaStream_t stream;
    uint64_t mark;
};
}

/* Work for a stream of another device than the calling thread's fails on a GPU. */
void emulator::check_stream(cudaStream_t stream) {
    if (!stream || stream->device == current_device)
        return;
    fprintf(stderr, "emulator: device %d is the thread's, %d the stream's\n", current_device, stream->device);
    abort();
}

/* Somebody waits for all that the stream has put off. */
static void catch_up(cudaStream_t stream) {
    if (!stream || !stream->defers)
        return;
    const std::lock_guard<std::mutex> guard(stream->lock);
    while (!stream->deferred.empty()) {
        stream->deferred.front()();
        stream->deferred.pop_front();
    }
}

void emulator::launch_on(cudaStream_t stream, dim3 grid, dim3 block, size_t shared_bytes,
                         std::function<void()> body) {
    if (!stream || !stream->defers)
        return launch(grid, block, shared_bytes, body);
    const std::lock_guard<std::mutex> guard(stream->lock);
    stream->deferred.push_back([=] { launch(grid, block, shared_bytes, body); });
}

extern "C" {

/* CUDA_EMULATOR_DEVICES=N: so many, in an order that is not that of their addresses. */
cudaError_t cudaGetDeviceCount(int *out_count) {
    const char *wanted = getenv("CUDA_EMULATOR_DEVICES");
    *out_count = wanted ? atoi(wanted) : 1;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
    int n;
    cudaGetDeviceCount(&n);
    if (device < 0 || device >= n)
        return cudaErrorInvalidValue;
    current_device = device;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char *out_bus, int bytes, int device) {
    int n;
    cudaGetDeviceCount(&n);
    snprintf(out_bus, (size_t)bytes, "0000:%02X:00.0", 0xA0 + n - 1 - device);
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int) {
    *out = cudaDeviceProp{"emulated", (size_t)8 << 30, 4, 9, 0};
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *out_value, enum cudaDeviceAttr attribute, int) {
    *out_value = attribute == cudaDevAttrMultiProcessorCount                 ? 4
                 : attribute == cudaDevAttrComputeCapabilityMajor            ? 9
                 : attribute == cudaDevAttrMemoryClockRate                   ? 100000 /* kHz */
                 : attribute == cudaDevAttrGlobalMemoryBusWidth              ? 512
                 : attribute == cudaDevAttrCanUseHostPointerForRegisteredMem ? 1
                                                                             : 0;
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *out_free, size_t *out_total) {
    *out_free = *out_total = (size_t)8 << 30;
    return cudaSuccess;
}
cudaError_t cudaMalloc(void **out_memory, size_t bytes) {
    *out_memory = take_memory(bytes);
    return *out_memory ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void *memory) {
    give_memory(memory);
    return cudaSuccess;
}
struct ipc_handle {
    void *memory;
    pid_t process;
    int device;
};
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *out_handle, void *memory) {
    const ipc_handle handle = {memory, getpid(), current_device};
    *out_handle = {};
    memcpy(out_handle->reserved, &handle, sizeof handle);
    return cudaSuccess;
}
cudaError_t cudaIpcOpenMemHandle(void **out_memory, cudaIpcMemHandle_t opened, unsigned) {
    ipc_handle handle;
    memcpy(&handle, opened.reserved, sizeof handle);
    const char *closed = getenv("CUDA_EMULATOR_CLOSED");
    const bool is_open = handle.process == getpid() && !(closed && *closed && atoi(closed) == handle.device);
    *out_memory = is_open ? handle.memory : nullptr;
    return *out_memory ? cudaSuccess : cudaErrorMapBufferObjectFailed;
}
cudaError_t cudaIpcCloseMemHandle(void *) {
    return cudaSuccess;
}
/* CUDA_EMULATOR_REFUSES=FIRST,COUNT: there is no memory for so many calls of the process in a row. */
static bool is_refused() {
    static std::atomic<long> n_calls{0};
    static const char *const refuses = getenv("CUDA_EMULATOR_REFUSES");
    long first, count;
    if (!refuses || sscanf(refuses, "%ld,%ld", &first, &count) != 2)
        return false;
    const long call = n_calls++;
    return call >= first && call < first + count;
}
cudaError_t cudaMallocAsync(void **out_memory, size_t bytes, cudaStream_t stream) {
    emulator::check_stream(stream);
    return is_refused() ? cudaErrorMemoryAllocation : cudaMalloc(out_memory, bytes);
}
cudaError_t cudaFreeAsync(void *memory, cudaStream_t) {
    return cudaFree(memory);
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *out_pool, int) {
    *out_pool = nullptr;
    return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, enum cudaMemPoolAttr, void *) {
    return cudaSuccess;
}
cudaError_t cudaHostAlloc(void **out_memory, size_t bytes, unsigned) {
    *out_memory = aligned_alloc(256, (bytes + 255) / 256 * 256 + (bytes == 0) * 256);
    return *out_memory ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFreeHost(void *memory) {
    free(memory);
    return cudaSuccess;
}
cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned) {
    return registered.add(memory, bytes) ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaHostUnregister(void *memory) {
    registered.remove(memory);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind,
                            cudaStream_t stream) {
    emulator::check_stream(stream);
    catch_up(stream);
    guard_open open;
    if (bytes)
        memcpy(to, from, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream) {
    emulator::check_stream(stream);
    catch_up(stream);
    guard_open open;
    if (bytes)
        memset(memory, value, bytes);
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out_stream, unsigned) {
    *out_stream = new emulated_stream{{}, current_device, false, {}, {}};
    return cudaSuccess;
}
/* CUDA_EMULATOR_DEFERS=1: kernels of streams of the least priority begin when somebody waits for them. */
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out_stream, unsigned flags, int priority) {
    static const char *const defers = getenv("CUDA_EMULATOR_DEFERS");
    cudaStreamCreateWithFlags(out_stream, flags);
    (*out_stream)->defers = defers && *defers && priority == LEAST_PRIORITY;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *out_least, int *out_greatest) {
    *out_least = LEAST_PRIORITY;
    *out_greatest = -5;
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    catch_up(stream);
    delete stream;
    return cudaSuccess;
}
static bool has_deferred(cudaStream_t stream) {
    if (!stream || !stream->defers)
        return false;
    const std::lock_guard<std::mutex> guard(stream->lock);
    return !stream->deferred.empty();
}
static bool is_done(cudaStream_t stream, uint64_t mark) {
    return !stream || !stream->async.is_done || stream->async.is_done(&stream->async, mark);
}
static uint64_t mark_of(cudaStream_t stream) {
    return stream && stream->async.mark ? stream->async.mark(&stream->async) : 0;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    catch_up(stream);
    for (const uint64_t mark = mark_of(stream); !is_done(stream, mark);)
        sched_yield();
    return cudaSuccess;
}
/* A stream that puts its kernels off does so until they are waited for, whatever it waits for itself. */
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t event, unsigned) {
    catch_up(event->stream);
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out_event, unsigned) {
    *out_event = new emulated_event();
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    *event = {stream, mark_of(stream)};
    return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
    return is_done(event->stream, event->mark) && !has_deferred(event->stream) ? cudaSuccess
                                                                               : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    catch_up(event->stream);
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize(void) {
    return cudaSuccess;
}
cudaError_t cudaGetLastError(void) {
    return cudaSuccess;
}
const char *cudaGetErrorString(cudaError_t error) {
    return error == cudaSuccess ? "no error" : "an emulated error";
}
}
