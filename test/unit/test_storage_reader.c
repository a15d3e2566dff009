/* Reading ranges of files in every way: bytes, ends that are not aligned, files that are too short, refusals,
 * cancelling, several readers, and a system without io_uring. */
#include <assert.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "storage/reader.h"
#include "unit/storage_pattern.h"

enum { FILE_BYTES = (9 << 20) + 1234, N_READS = 40, N_THREADS = 4, N_ROUNDS = 20 };

static char path[] = "/tmp/stachio_reader_XXXXXX";

/* Out of the page cache, as far as the kernel does that. */
static int open_cold(void) {
    int fd = open(path, O_RDONLY);
    assert(fd >= 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
    return fd;
}

struct setting {
    struct sx_pool *pool;
    struct sx_reader *reader;
};

static struct setting create(enum sx_io io, int64_t page_cache_bytes) {
    struct setting setting;
    assert(sx_pool_create(0, &setting.pool, NULL) == SX_OK);
    assert(sx_reader_create(setting.pool, NULL, io, page_cache_bytes, &setting.reader, NULL) == SX_OK);
    return setting;
}

static void destroy(struct setting *setting) {
    sx_reader_destroy(setting->reader);
    assert(sx_pool_usage(setting->pool).used_bytes == 0);
    sx_pool_destroy(setting->pool);
}

static void release(struct sx_read *reads, int n) {
    for (int i = 0; i < n; i++) {
        sx_buffer_release(reads[i].buffer);
        reads[i].buffer = NULL;
    }
}

static void check(const struct sx_read *read) {
    const uint8_t *end = (const uint8_t *)read->buffer->data + read->buffer->size_bytes;
    assert(read->bytes >= (const uint8_t *)read->buffer->data && read->bytes + read->length_bytes <= end);
    for (int64_t i = 0; i < read->length_bytes; i++)
        assert(read->bytes[i] == byte_at(read->offset + i));
}

static void add_bytes(void *context, int64_t bytes) {
    *(int64_t *)context += bytes;
}

/* All bytes are told of, and of others only what alignment adds. */
static void check_arrived(const struct sx_read *reads, int n, int64_t arrived) {
    enum { MOST_ALIGNMENT = 64 << 10 };
    int64_t wanted = 0;
    for (int i = 0; i < n; i++)
        wanted += reads[i].length_bytes;
    assert(arrived >= wanted && arrived <= wanted + (int64_t)n * 2 * MOST_ALIGNMENT);
}

static void read_all(struct setting *setting, struct sx_read *reads, int n) {
    struct sx_error error = {0};
    int64_t arrived = 0;
    struct sx_read_request request = {.fd = open_cold(),
                                      .table_bytes = FILE_BYTES,
                                      .arrived = add_bytes,
                                      .context = &arrived,
                                      .reads = reads,
                                      .n_reads = n};
    enum sx_status status = sx_reader_read(setting->reader, &request, &error);
    if (status != SX_OK)
        fprintf(stderr, "%s\n", error.text);
    assert(status == SX_OK);
    for (int i = 0; i < n; i++)
        check(&reads[i]);
    check_arrived(reads, n, arrived);
    release(reads, n);
    close(request.fd);
}

static void test_ranges(struct setting *setting) {
    static const struct sx_read ranges[] = {
        {.offset = 0, .length_bytes = FILE_BYTES},
        {.offset = 0, .length_bytes = 1},
        {.offset = 4095, .length_bytes = 2},
        {.offset = 4096, .length_bytes = 4096},
        {.offset = 1, .length_bytes = (5 << 20) + 1},
        {.offset = (1 << 20) - 1, .length_bytes = (1 << 20) + 2},
        {.offset = FILE_BYTES - 1, .length_bytes = 1},
        {.offset = FILE_BYTES - 5000, .length_bytes = 5000},
        {.offset = 77, .length_bytes = 0},
    };
    struct sx_read reads[N_READS] = {0};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        reads[0] = ranges[i];
        read_all(setting, reads, 1);
    }
    for (int i = 0; i < N_READS; i++)
        reads[i] = (struct sx_read){.offset = i * 200001, .length_bytes = 190000 + i};
    read_all(setting, reads, N_READS);
    read_all(setting, reads, 0);
}

/* Into a buffer of the caller's, as far into a page as in the file; other pages stay as they are. */
static void test_places(struct setting *setting) {
    enum { PAGE = 4096, N = 3, ROOM = 16 * PAGE };
    static const int64_t offsets[N] = {5 * PAGE + 77, 900 * PAGE, FILE_BYTES - 3 * PAGE - 5};
    struct sx_read reads[N];
    struct sx_buffer *buffer;
    assert(sx_buffer_create(setting->pool, (N + 2) * ROOM, &buffer, NULL) == SX_OK);
    memset(buffer->data, 0xee, buffer->size_bytes);
    uint8_t *first = (uint8_t *)(((uintptr_t)buffer->data + PAGE - 1) / PAGE * PAGE);
    for (int i = 0; i < N; i++)
        reads[i] = (struct sx_read){.offset = offsets[i],
                                    .length_bytes = i == 2 ? FILE_BYTES - offsets[i] : 2 * PAGE + 100 * i,
                                    .buffer = sx_buffer_retain(buffer),
                                    .to = first + i * ROOM + PAGE + offsets[i] % PAGE};
    struct sx_read request_reads[N];
    memcpy(request_reads, reads, sizeof reads);
    read_all(setting, request_reads, N);
    for (int i = 0; i < N; i++) {
        for (int64_t k = 0; k < reads[i].length_bytes; k++)
            assert(reads[i].to[k] == byte_at(offsets[i] + k));
        for (int k = 0; k < PAGE; k++)
            assert(first[i * ROOM + k] == 0xee && first[i * ROOM + 6 * PAGE + k] == 0xee);
    }
    assert(buffer->references == 1);
    sx_buffer_release(buffer);
}

/* The file ends inside of the second of three ranges. */
static void test_short(struct setting *setting) {
    struct sx_error error = {0};
    struct sx_read reads[3] = {{.offset = 100, .length_bytes = 5000},
                               {.offset = FILE_BYTES - 6000, .length_bytes = 6001},
                               {.offset = FILE_BYTES + (1 << 20), .length_bytes = 3 << 20}};
    struct sx_read_request request = {
        .fd = open_cold(), .table_bytes = FILE_BYTES, .reads = reads, .n_reads = 2};
    char expected[64];
    snprintf(expected, sizeof expected, "the file ends at %d", FILE_BYTES);
    assert(sx_reader_read(setting->reader, &request, &error) == SX_FILE && request.failed == 1);
    assert(strstr(error.text, expected));
    release(reads, 3);
    request.reads = &reads[2];
    request.n_reads = 1;
    assert(sx_reader_read(setting->reader, &request, &error) == SX_FILE &&
           strstr(error.text, "the file ends at"));
    release(reads, 3);
    close(request.fd);
}

static void test_cancelled(struct setting *setting) {
    const atomic_bool cancel = true;
    struct sx_error error = {0};
    struct sx_read read = {.offset = 0, .length_bytes = FILE_BYTES};
    struct sx_read_request request = {
        .fd = open_cold(), .table_bytes = FILE_BYTES, .cancel = &cancel, .reads = &read, .n_reads = 1};
    assert(sx_reader_read(setting->reader, &request, &error) == SX_CANCELLED);
    release(&read, 1);
    close(request.fd);
}

/* The second time, only what is read past the page cache does not come from it. */
static void test_cold(struct setting *setting, enum sx_io io) {
    struct sx_read reads[2] = {{.offset = 5000, .length_bytes = 100000, .is_cold = true},
                               {.offset = 6 << 20, .length_bytes = 1 << 20, .is_cold = true}};
    struct sx_read_request request = {
        .fd = open_cold(), .table_bytes = FILE_BYTES, .reads = reads, .n_reads = 2};
    for (int round = 0; round < 2; round++) {
        assert(sx_reader_read(setting->reader, &request, NULL) == SX_OK);
        release(reads, 2);
        if (io == SX_IO_BUFFERED && round == 0)
            continue;
        assert(io == SX_IO_AUTO || reads[0].is_cold == (io == SX_IO_DIRECT));
        assert(io == SX_IO_AUTO || reads[1].is_cold == (io == SX_IO_DIRECT));
        request.is_cold = false;
    }
    close(request.fd);
}

static void *read_often(void *context) {
    struct sx_read reads[N_READS] = {0};
    for (int round = 0; round < N_ROUNDS; round++) {
        for (int i = 0; i < N_READS; i++)
            reads[i] = (struct sx_read){.offset = i * 201001 + round * 17, .length_bytes = 1000 + i * 4000};
        read_all(context, reads, N_READS);
    }
    return NULL;
}

static void test_threads(struct setting *setting) {
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++)
        assert(pthread_create(&threads[i], NULL, read_often, setting) == 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void test_io(enum sx_io io, int64_t page_cache_bytes) {
    struct setting setting = create(io, page_cache_bytes);
    test_ranges(&setting);
    test_places(&setting);
    test_short(&setting);
    test_cancelled(&setting);
    test_cold(&setting, io);
    test_threads(&setting);
    destroy(&setting);
}

/* What has no direct I/O is refused where that was asked for, and else read through the page cache. */
static void test_refused(void) {
    struct setting direct = create(SX_IO_DIRECT, 0), automatic = create(SX_IO_AUTO, 1);
    struct sx_error error = {0};
    struct sx_read read = {.offset = 0, .length_bytes = 10};
    struct sx_read_request request = {
        .fd = open("/proc/self/cmdline", O_RDONLY), .table_bytes = 100, .reads = &read, .n_reads = 1};
    assert(sx_reader_read(direct.reader, &request, &error) == SX_FILE && strstr(error.text, "direct I/O"));
    assert(sx_reader_read(automatic.reader, &request, &error) == SX_OK);
    release(&read, 1);
    close(request.fd);
    destroy(&direct);
    destroy(&automatic);
}

/* From here on the kernel has no io_uring for this process. */
static bool forbid_uring(void) {
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 38),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {sizeof program / sizeof *program, program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

int main(void) {
    write_pattern(path, FILE_BYTES);
    const int fd = open(path, O_RDONLY | O_DIRECT);
    const bool has_direct = fd >= 0;
    close(fd);
    test_refused();
    test_io(SX_IO_BUFFERED, 0);
    test_io(SX_IO_AUTO, 0);
    test_io(SX_IO_AUTO, 1);
    if (has_direct)
        test_io(SX_IO_DIRECT, 0);
    const bool forbidden = has_direct && forbid_uring();
    if (forbidden)
        test_io(SX_IO_DIRECT, 0);
    unlink(path);
    puts(forbidden ? "ok" : "ok, but not all of direct I/O could be tried");
    return 0;
}
