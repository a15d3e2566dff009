/* What a GPU does, and when: a library that CUDA loads into a program (CUDA_INJECTION64_PATH), and that
 * writes each kernel and each copy to the file named by GPU_TIMELINE. bench/gpu_timeline.py makes a table of
 * it. Built where CUPTI is: cc -O2 -shared -fPIC -I$CUDA/include bench/gpu_timeline.c -L$CUDA/lib64 -lcupti
 * -o libgpu_timeline.so A line: k (kernel), h (host to device), d (device to host), p (within or between
 * devices) or s (set); begin and end in ns of CLOCK_MONOTONIC; stream; bytes; name. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cupti.h>

enum { BUFFER_BYTES = 8 << 20, ALIGNMENT = 8 };
static FILE *out;

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *bytes, size_t *max_records) {
    *buffer = aligned_alloc(ALIGNMENT, BUFFER_BYTES);
    *bytes = *buffer ? BUFFER_BYTES : 0;
    *max_records = 0;
}

static char direction_of(uint8_t kind) {
    return kind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD   ? 'h'
           : kind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH ? 'd'
                                                     : 'p';
}

static void write_record(const CUpti_Activity *record) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
        const CUpti_ActivityKernel10 *kernel = (const CUpti_ActivityKernel10 *)record;
        fprintf(out, "k %llu %llu %u 0 %s\n", (unsigned long long)kernel->start,
                (unsigned long long)kernel->end, kernel->streamId, kernel->name);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
        const CUpti_ActivityMemcpy6 *copy = (const CUpti_ActivityMemcpy6 *)record;
        fprintf(out, "%c %llu %llu %u %llu copy\n", direction_of(copy->copyKind),
                (unsigned long long)copy->start, (unsigned long long)copy->end, copy->streamId,
                (unsigned long long)copy->bytes);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
        const CUpti_ActivityMemset4 *set = (const CUpti_ActivityMemset4 *)record;
        fprintf(out, "s %llu %llu %u %llu set\n", (unsigned long long)set->start,
                (unsigned long long)set->end, set->streamId, (unsigned long long)set->bytes);
    }
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                 size_t valid_bytes) {
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)bytes;
    while (cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS)
        write_record(record);
    free(buffer);
}

static void end(void) {
    (void)cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    fclose(out);
}

int InitializeInjection(void);
int InitializeInjection(void) {
    const char *path = getenv("GPU_TIMELINE");
    out = path ? fopen(path, "w") : NULL;
    if (!out)
        return 1;
    (void)cuptiActivityRegisterTimestampCallback(now_ns);
    (void)cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
    (void)cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    (void)cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY);
    (void)cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET);
    atexit(end);
    return 1;
}
