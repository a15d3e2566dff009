/* What each GPU of a host gets of the host's pinned memory by its copy engine, while 1, 2, … of them copy:
 * the bound of queries over data in the host's memory. A thread a GPU, each with memory that it has touched
 * first. nvcc -O3 -std=c++17 -arch=sm_90 -o gpu_host_copies bench/gpu_host_copies.cu; gpu_host_copies [GPUS]
 */
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

static const size_t host_bytes = (size_t)2 << 30, copy_bytes = (size_t)32 << 20; /* no cache has that much */
static const double seconds = 0.5;

static void check(cudaError_t result, const char *what) {
    if (result == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
    exit(1);
}

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct gpu {
    int number;
    char *host, *device;
    cudaStream_t stream;
    double rate; /* GB/s */
};

static void open_gpu(gpu *gpu) {
    check(cudaSetDevice(gpu->number), "a GPU");
    check(cudaHostAlloc((void **)&gpu->host, host_bytes, cudaHostAllocDefault), "pinned memory");
    memset(gpu->host, gpu->number + 1, host_bytes);
    check(cudaMalloc((void **)&gpu->device, copy_bytes), "device memory");
    check(cudaStreamCreate(&gpu->stream), "a stream");
}

static void copy(gpu *gpu, std::atomic<int> *waiting) {
    check(cudaSetDevice(gpu->number), "a GPU");
    for (--*waiting; *waiting > 0;)
        std::this_thread::yield();
    const double began = now();
    size_t at = 0, bytes = 0;
    double took = 0;
    while (took < seconds) {
        for (int i = 0; i < 8; i++, at = (at + copy_bytes) % host_bytes, bytes += copy_bytes)
            check(
                cudaMemcpyAsync(gpu->device, gpu->host + at, copy_bytes, cudaMemcpyHostToDevice, gpu->stream),
                "a copy");
        check(cudaStreamSynchronize(gpu->stream), "copies");
        took = now() - began;
    }
    gpu->rate = (double)bytes / took / 1e9;
}

static void measure(std::vector<gpu> &gpus, int n) {
    std::vector<std::thread> threads;
    std::atomic<int> waiting{n};
    double sum = 0, least = 1e30;
    for (int i = 0; i < n; i++)
        threads.emplace_back(copy, &gpus[i], &waiting);
    for (std::thread &thread : threads)
        thread.join();
    for (int i = 0; i < n; i++) {
        sum += gpus[i].rate;
        least = std::min(least, gpus[i].rate);
    }
    printf("%4d %10.1f %10.1f %10.1f\n", n, sum / n, least, sum);
}

int main(int argc, char **argv) {
    int n = 0;
    check(cudaGetDeviceCount(&n), "GPUs");
    n = argc > 1 ? std::min(n, atoi(argv[1])) : n;
    std::vector<gpu> gpus(n);
    if (n < 1) {
        fprintf(stderr, "no GPUs\n");
        return 2;
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < n; i++) {
        gpus[i].number = i;
        threads.emplace_back(open_gpu, &gpus[i]);
    }
    for (std::thread &thread : threads)
        thread.join();
    printf("%4s %10s %10s %10s   GB/s\n", "GPUs", "each", "least", "together");
    measure(gpus, 1); /* warm; the next line counts */
    for (int i = 1; i <= n; i++)
        measure(gpus, i);
    return 0;
}
