/* All to all among the GPUs of a host, a process each: by copy engines out of memory that CUDA opens to other
 * processes (pulls) or into it (pushes), and by NCCL; alone, and beside kernels that read at random or copy.
 * nvcc -O3 -std=c++17 -arch=sm_90 -o gpu_all_to_all bench/gpu_all_to_all.cu -ldl; gpu_all_to_all GPUS
 * MEGABYTES (to each other GPU). libnccl.so.2 is loaded. Medians of five. */
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_GPUS = 8, RUNS = 7, WARM = 2, TABLE_BYTES = 1 << 30, BARRIERS = 1024 };

struct nccl_id {
    char bytes[128];
};
static struct {
    int (*get_id)(nccl_id *);
    int (*init)(void **, int, nccl_id, int);
    int (*start)(), (*end)();
    int (*send)(const void *, size_t, int, int, void *, cudaStream_t);
    int (*receive)(void *, size_t, int, int, void *, cudaStream_t);
} nccl;

static struct shared {
    std::atomic<int> arrived[BARRIERS];
    cudaIpcMemHandle_t handles[MOST_GPUS];
    nccl_id id;
    double seconds[MOST_GPUS];
} *shared;
static int rank, size, n_barriers;

static void check(int result, const char *what) {
    if (result == 0)
        return;
    fprintf(stderr, "rank %d: %s: error %d\n", rank, what, result);
    exit(1);
}

static void barrier() {
    std::atomic<int> &arrived = shared->arrived[n_barriers++];
    for (arrived++; arrived < size;)
        usleep(0);
}

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

__global__ void read_at_random(const unsigned long long *table, unsigned long long *out, long n) {
    unsigned long long sum = 0;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long)blockDim.x) {
        unsigned long long x = i * 0x9e3779b97f4a7c15ull;
        x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9ull;
        sum += table[(x ^ x >> 32) & (TABLE_BYTES / 8 - 1)];
    }
    if (sum == 1)
        *out = sum;
}

__global__ void copy(const ulonglong2 *from, ulonglong2 *to, long n) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long)blockDim.x)
        to[i] = from[i];
}

enum work { NOTHING, ONE_KERNEL, MANY_KERNELS, COPIES, WORKS };
enum way { NO_WAY, PULLS, PUSHES, NCCL, WAYS };

/* Some 8 ms. */
static void issue(work work, char *table, unsigned long long *out, cudaStream_t stream) {
    auto *values = (unsigned long long *)table;
    if (work == ONE_KERNEL)
        read_at_random<<<1056, 256, 0, stream>>>(values, out, 300l << 20);
    for (int i = 0; work == MANY_KERNELS && i < 60; i++)
        read_at_random<<<20480, 256, 0, stream>>>(values, out, 5l << 20);
    for (int i = 0; work == COPIES && i < 12; i++)
        copy<<<1056, 256, 0, stream>>>((ulonglong2 *)table, (ulonglong2 *)(table + TABLE_BYTES),
                                       TABLE_BYTES / 16);
}

struct gpu {
    char *sent /* and, behind it, received */, *table, *others[MOST_GPUS];
    size_t bytes;
    void *comm;
    cudaStream_t copies[MOST_GPUS], kernels, link;
};

/* Of `sent` of GPU `from` for GPU `to`, and where that has it in `received`. */
static char *place(char *sent, const gpu &gpu, int from, int to, bool is_received) {
    return sent + (is_received ? size + from : to) * gpu.bytes;
}

static void copy_all(way way, const gpu &gpu) {
    for (int d = 1; d < size; d++) {
        const int r = (rank + d) % size;
        char *to =
            way == PULLS ? place(gpu.sent, gpu, r, rank, true) : place(gpu.others[r], gpu, rank, r, true);
        char *from =
            way == PULLS ? place(gpu.others[r], gpu, r, rank, false) : place(gpu.sent, gpu, rank, r, false);
        check(cudaMemcpyAsync(to, from, gpu.bytes, cudaMemcpyDefault, gpu.copies[r]), "a copy");
    }
    for (int r = 0; r < size; r++)
        check(r == rank ? 0 : cudaStreamSynchronize(gpu.copies[r]), "copies");
}

static void exchange(way way, const gpu &gpu) {
    if (way == PULLS || way == PUSHES)
        copy_all(way, gpu);
    if (way != NCCL)
        return;
    check(nccl.start(), "a group");
    for (int r = 0; r < size; r++)
        if (r != rank) {
            check(nccl.send(place(gpu.sent, gpu, rank, r, false), gpu.bytes, 0, r, gpu.comm, gpu.link),
                  "ncclSend");
            check(nccl.receive(place(gpu.sent, gpu, r, rank, true), gpu.bytes, 0, r, gpu.comm, gpu.link),
                  "ncclRecv");
        }
    check(nccl.end(), "a group");
    check(cudaStreamSynchronize(gpu.link), "NCCL");
}

static void measure(work work, way way, const gpu &gpu, unsigned long long *out) {
    static const char *const works[] = {"nothing", "random reads", "random reads, 60 kernels", "copies"};
    static const char *const ways[] = {"-", "pulls", "pushes", "NCCL"};
    cudaEvent_t began, ended;
    std::vector<double> times, kernels;
    check(cudaEventCreate(&began) + cudaEventCreate(&ended), "events");
    for (int run = 0; run < RUNS; run++) {
        float ms = 0;
        check(cudaDeviceSynchronize(), "the device");
        barrier();
        check(cudaEventRecord(began, gpu.kernels), "an event");
        issue(work, gpu.table, out, gpu.kernels);
        check(cudaEventRecord(ended, gpu.kernels), "an event");
        usleep(work == NOTHING ? 0 : 300);
        const double start = now();
        exchange(way, gpu);
        shared->seconds[rank] = now() - start;
        check(cudaDeviceSynchronize(), "the device");
        check(cudaEventElapsedTime(&ms, began, ended), "an event");
        barrier();
        if (run >= WARM) {
            times.push_back(*std::max_element(shared->seconds, shared->seconds + size));
            kernels.push_back(ms);
        }
    }
    std::sort(times.begin(), times.end());
    std::sort(kernels.begin(), kernels.end());
    const double seconds = times[times.size() / 2];
    if (rank == 0)
        printf("%-26s %-6s %8.2f ms %7.1f GB/s a GPU, kernels %6.2f ms\n", works[work], ways[way],
               seconds * 1e3, way == NO_WAY ? 0 : (double)gpu.bytes * (size - 1) / seconds / 1e9,
               kernels[kernels.size() / 2]);
}

static void load_nccl() {
    void *library = dlopen("libnccl.so.2", RTLD_NOW);
    check(!library, "libnccl.so.2");
    *(void **)&nccl.get_id = dlsym(library, "ncclGetUniqueId");
    *(void **)&nccl.init = dlsym(library, "ncclCommInitRank");
    *(void **)&nccl.start = dlsym(library, "ncclGroupStart");
    *(void **)&nccl.end = dlsym(library, "ncclGroupEnd");
    *(void **)&nccl.send = dlsym(library, "ncclSend");
    *(void **)&nccl.receive = dlsym(library, "ncclRecv");
}

static void prepare(gpu &gpu, unsigned long long **out) {
    int least, greatest;
    check(cudaSetDevice(rank), "the device");
    check(cudaMalloc(&gpu.sent, 2 * gpu.bytes * size) + cudaMalloc(&gpu.table, 2l * TABLE_BYTES) +
              cudaMalloc(out, sizeof **out),
          "memory");
    check(cudaMemset(gpu.sent, rank + 1, gpu.bytes * size) + cudaMemset(gpu.table, 0, 2l * TABLE_BYTES),
          "memory");
    check(cudaIpcGetMemHandle(&shared->handles[rank], gpu.sent), "opening memory");
    if (rank == 0)
        check(nccl.get_id(&shared->id), "ncclGetUniqueId");
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "priorities");
    for (cudaStream_t &stream : gpu.copies)
        check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    check(cudaStreamCreateWithFlags(&gpu.kernels, cudaStreamNonBlocking), "a stream");
    check(cudaStreamCreateWithPriority(&gpu.link, cudaStreamNonBlocking, greatest), "a stream");
    check(cudaDeviceSynchronize(), "the device");
    barrier();
    const double start = now();
    for (int r = 0; r < size; r++)
        if (r != rank)
            check(cudaIpcOpenMemHandle((void **)&gpu.others[r], shared->handles[r],
                                       cudaIpcMemLazyEnablePeerAccess),
                  "another GPU's memory");
    const double opened = now();
    check(nccl.init(&gpu.comm, size, shared->id, rank), "ncclCommInitRank");
    if (rank == 0)
        printf("%d GPUs, %zu MB to each other one; opened in %.1f ms each, NCCL begun in %.2f s\n", size,
               gpu.bytes >> 20, (opened - start) * 1e3 / (size - 1), now() - opened);
}

int main(int n_arguments, char **arguments) {
    gpu gpu = {};
    unsigned long long *out;
    size = n_arguments == 3 ? atoi(arguments[1]) : 0;
    gpu.bytes = n_arguments == 3 ? (size_t)atol(arguments[2]) << 20 : 0;
    if (size < 2 || size > MOST_GPUS || gpu.bytes == 0) {
        fprintf(stderr, "usage: gpu_all_to_all GPUS MEGABYTES\n");
        return 2;
    }
    shared = (struct shared *)mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                                   -1, 0);
    while (rank < size - 1 && fork() != 0)
        rank++;
    load_nccl();
    prepare(gpu, &out);
    for (int work = NOTHING; work < WORKS; work++)
        for (int way = work == NOTHING ? PULLS : NO_WAY; way < WAYS; way++)
            measure((enum work)work, (enum way)way, gpu, out);
    barrier();
    if (rank == size - 1)
        while (wait(NULL) > 0)
            continue;
    return 0;
}
