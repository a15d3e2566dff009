/* The runtime's functions over malloc: devices, memory, copies, streams and events. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "async.h"
#include "kernel_emulator.h"

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

using emulator::guard_open;

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

emulator::guard_open::guard_open() {
    memory_guard.protect(PROT_READ | PROT_WRITE);
}
emulator::guard_open::~guard_open() {
    memory_guard.protect(PROT_NONE);
}

/* ---- what streams put off ---- */

static thread_local int current_device;

/* By which tests know it. */
extern "C" {
__attribute__((visibility("default"))) extern const char emulator_name[];
const char emulator_name[] = "emulated";

enum { LEAST_PRIORITY = 0 };
struct emulated_stream {
    struct emulated_async async;
    int device;
    bool defers;
    std::deque<std::function<void()>> deferred; /* the last n_issued - n_run */
    uint64_t n_issued, n_run;
};
struct emulated_event {
    cudaStream_t stream;
    uint64_t mark, n_issued;
};
}

/* CUDA_EMULATOR_DEFERS: 1, streams of the least priority put their work off until somebody waits for them;
 * 2, all streams do. CUDA_EMULATOR_TELL: the program's end tells how much was. */
enum deferring { DEFERS_NONE, DEFERS_LEAST, DEFERS_ALL };
static enum deferring deferring() {
    static const char *const wanted = getenv("CUDA_EMULATOR_DEFERS");
    static const enum deferring found = !wanted || !*wanted ? DEFERS_NONE
                                        : *wanted == '2'    ? DEFERS_ALL
                                                            : DEFERS_LEAST;
    return found;
}

/* Of all streams' queues, also while what was put off runs. */
static std::recursive_mutex queues;
static std::set<cudaStream_t> streams;
static struct counted {
    uint64_t n = 0;
    ~counted() {
        if (getenv("CUDA_EMULATOR_TELL"))
            fprintf(stderr, "emulator: %llu put off\n", (unsigned long long)n);
    }
} put_off;

/* Work for a stream of another device than the calling thread's fails on a GPU. */
void emulator::check_stream(cudaStream_t stream) {
    if (!stream || stream->device == current_device)
        return;
    fprintf(stderr, "emulator: device %d is the thread's, %d the stream's\n", current_device, stream->device);
    abort();
}

static void run_until(cudaStream_t stream, uint64_t n) {
    if (deferring() == DEFERS_NONE)
        return; /* no lock, which would tell the thread sanitizer an order that there is not */
    const std::lock_guard<std::recursive_mutex> guard(queues);
    if (!streams.count(stream)) /* none, or it has ended */
        return;
    while (stream->n_run < n && !stream->deferred.empty()) {
        const std::function<void()> work = std::move(stream->deferred.front());
        stream->deferred.pop_front();
        stream->n_run++;
        work();
    }
}

/* Somebody waits for all that the stream has put off. */
static void catch_up(cudaStream_t stream) {
    run_until(stream, UINT64_MAX);
}

static void catch_all_up() {
    const std::lock_guard<std::recursive_mutex> guard(queues);
    for (const cudaStream_t stream : streams)
        catch_up(stream);
}

/* Now, or once the stream is waited for. */
static void issue(cudaStream_t stream, std::function<void()> work) {
    if (!stream || !stream->defers)
        return work();
    const std::lock_guard<std::recursive_mutex> guard(queues);
    stream->deferred.push_back(std::move(work));
    stream->n_issued++;
    put_off.n++;
}

void emulator::launch_on(cudaStream_t stream, dim3 grid, dim3 block, size_t shared_bytes,
                         std::function<void()> body) {
    issue(stream, [=] { launch(grid, block, shared_bytes, body); });
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
    if (deferring() == DEFERS_ALL)
        catch_all_up();
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
cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream) {
    issue(stream, [=] { give_memory(memory); });
    return cudaSuccess;
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
    issue(stream, [=] {
        guard_open open;
        if (bytes)
            memcpy(to, from, bytes);
    });
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream) {
    emulator::check_stream(stream);
    issue(stream, [=] {
        guard_open open;
        if (bytes)
            memset(memory, value, bytes);
    });
    return cudaSuccess;
}
static cudaStream_t create_stream(bool defers) {
    const cudaStream_t stream = new emulated_stream{{}, current_device, defers, {}, 0, 0};
    stream->async.settle = [](emulated_async *async) { catch_up((cudaStream_t)async); };
    const std::lock_guard<std::recursive_mutex> guard(queues);
    streams.insert(stream);
    return stream;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out_stream, unsigned) {
    *out_stream = create_stream(deferring() == DEFERS_ALL);
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out_stream, unsigned, int priority) {
    const bool is_least = priority == LEAST_PRIORITY;
    *out_stream = create_stream(deferring() == DEFERS_ALL || (deferring() == DEFERS_LEAST && is_least));
    return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *out_least, int *out_greatest) {
    *out_least = LEAST_PRIORITY;
    *out_greatest = -5;
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    catch_up(stream);
    {
        const std::lock_guard<std::recursive_mutex> guard(queues);
        streams.erase(stream);
    }
    delete stream;
    return cudaSuccess;
}
static bool has_deferred(const struct emulated_event *event) {
    if (deferring() == DEFERS_NONE)
        return false;
    const std::lock_guard<std::recursive_mutex> guard(queues);
    return streams.count(event->stream) && event->stream->n_run < event->n_issued;
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
/* A stream that puts its work off waits once that is done. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    issue(stream, [from = event->stream, n = event->n_issued] { run_until(from, n); });
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out_event, unsigned) {
    *out_event = new emulated_event();
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    *event = {stream, mark_of(stream), 0};
    if (!stream || !stream->defers)
        return cudaSuccess;
    const std::lock_guard<std::recursive_mutex> guard(queues);
    event->n_issued = stream->n_issued;
    return cudaSuccess;
}
/* Who asks again and again goes on. */
cudaError_t cudaEventQuery(cudaEvent_t event) {
    const bool is_through = is_done(event->stream, event->mark) && !has_deferred(event);
    if (!is_through && deferring() == DEFERS_ALL)
        run_until(event->stream, event->n_issued);
    return is_through ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    run_until(event->stream, event->n_issued);
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    return cudaSuccess;
}
/* What is of the least priority alone goes on being put off: the allocator waits whenever it is given memory.
 */
cudaError_t cudaDeviceSynchronize(void) {
    if (deferring() == DEFERS_ALL)
        catch_all_up();
    return cudaSuccess;
}
cudaError_t cudaGetLastError(void) {
    return cudaSuccess;
}
const char *cudaGetErrorString(cudaError_t error) {
    return error == cudaSuccess ? "no error" : "an emulated error";
}
}
