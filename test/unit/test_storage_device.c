/* Reads to a device's memory, where the device is made up: bytes and alignment, files that end, errors, and
 * when a reader that is not forced goes that way. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/device_reader.h"
#include "unit/storage_pattern.h"

enum { UNIT = 4096, FILE_BYTES = (64 << 20) + 1234, N_READS = 200 };

static char path[] = "/var/tmp/stachio_device_XXXXXX";

/* ---- a device ---- */

struct sx_device_files {
    struct sx_pool *pool;
    bool may_bounce;
};

struct sx_device_file {
    int fd;
};

static struct {
    bool is_absent, refuses_files, is_instant; /* nothing is read */
    useconds_t delay_us;
    int fails_at; /* read number; 0: none */
    atomic_int n_reads, n_files;
} device;

static void *take(void *context, size_t bytes) {
    (void)context;
    return aligned_alloc(UNIT, bytes);
}

static void give(void *context, void *memory, size_t bytes) {
    (void)context;
    (void)bytes;
    free(memory);
}

static enum sx_status open_device(const struct sx_backend *backend, bool may_bounce,
                                  struct sx_device_files **out_files, struct sx_error *error) {
    assert(backend);
    if (device.is_absent)
        return sx_error_set(error, SX_UNSUPPORTED, "no such device");
    struct sx_device_files *files = calloc(1, sizeof *files);
    assert(files);
    const struct sx_pool_source source = {.take = take, .give = give, .granule_bytes = UNIT};
    files->may_bounce = may_bounce;
    *out_files = files;
    return sx_pool_create_over(0, source, &files->pool, error);
}

static void close_device(struct sx_device_files *files) {
    assert(device.n_files == 0 && sx_pool_usage(files->pool).used_bytes == 0);
    sx_pool_destroy(files->pool);
    free(files);
}

static struct sx_pool *pool_of(const struct sx_device_files *files) {
    return files->pool;
}

static bool takes(const struct sx_device_files *files, enum sx_parquet_codec codec) {
    (void)files;
    return codec == SX_CODEC_SNAPPY;
}

static enum sx_status open_file(struct sx_device_files *files, int fd, struct sx_device_file **out_file,
                                struct sx_error *error) {
    (void)files;
    assert(fcntl(fd, F_GETFL) & O_DIRECT);
    if (device.refuses_files)
        return sx_error_set(error, SX_UNSUPPORTED, "not on this file system");
    *out_file = calloc(1, sizeof **out_file);
    assert(*out_file);
    (*out_file)->fd = fd;
    device.n_files++;
    return SX_OK;
}

static void close_file(struct sx_device_files *files, struct sx_device_file *file) {
    (void)files;
    device.n_files--;
    free(file);
}

static enum sx_status read_file(struct sx_device_files *files, const struct sx_device_file *file,
                                const struct sx_transfer *transfer, const atomic_bool *cancel,
                                struct sx_error *error) {
    (void)files;
    assert(transfer->offset % UNIT == 0 && transfer->length_bytes % UNIT == 0);
    assert((uintptr_t)transfer->to % UNIT == 0);
    assert(transfer->needed_bytes <= transfer->length_bytes);
    assert(transfer->needed_bytes + UNIT > transfer->length_bytes);
    if (cancel && *cancel)
        return sx_error_set(error, SX_CANCELLED, "cancelled");
    usleep(device.delay_us);
    const bool fails = ++device.n_reads == device.fails_at;
    const ssize_t got = fails ? -1
                        : device.is_instant
                            ? (ssize_t)transfer->length_bytes
                            : pread(file->fd, transfer->to, transfer->length_bytes, transfer->offset);
    if (got < (ssize_t)transfer->needed_bytes)
        return sx_error_set(error, SX_FILE, "got %zd of %zu", got, transfer->needed_bytes);
    return SX_OK;
}

static enum sx_status peek(struct sx_device_files *files, const uint8_t *from, size_t bytes, void *out_bytes,
                           struct sx_error *error) {
    (void)files;
    (void)error;
    memcpy(out_bytes, from, bytes);
    return SX_OK;
}

static const struct sx_device_files_ops ops = {
    .open = open_device,
    .close = close_device,
    .pool = pool_of,
    .takes = takes,
    .file_open = open_file,
    .file_close = close_file,
    .read = read_file,
    .peek = peek,
};
static const struct sx_backend backend = {.name = "made up", .files = &ops};

/* ---- setting ---- */

struct setting {
    struct sx_pool *pool;
    struct sx_device_reader *reader;
    int fd;
    struct sx_file_stamp stamp;
};

static struct setting create(bool is_forced) {
    struct setting setting;
    struct stat found;
    assert(sx_pool_create(0, &setting.pool, NULL) == SX_OK);
    const struct sx_device_reader_options options = {&backend, setting.pool, is_forced};
    assert(sx_device_reader_create(&options, &setting.reader, NULL) == SX_OK);
    setting.fd = open(path, O_RDONLY);
    assert(setting.fd >= 0 && fstat(setting.fd, &found) == 0);
    sx_file_stamp_set(&found, &setting.stamp);
    return setting;
}

static void destroy(struct setting *setting) {
    close(setting->fd);
    sx_device_reader_destroy(setting->reader);
    assert(sx_pool_usage(setting->pool).used_bytes == 0);
    sx_pool_destroy(setting->pool);
}

/* NULL: refused, and why contains `reason`. */
static struct sx_device_source *offer(struct setting *setting, const char *reason) {
    struct sx_device_source *source;
    char text[256];
    assert(sx_device_reader_open(setting->reader, setting->fd, &setting->stamp, &source, NULL) == SX_OK);
    sx_device_reader_reason(setting->reader, text, sizeof text);
    if (!strstr(text, reason) || (source && text[0]))
        fprintf(stderr, "reason: %s\n", text);
    assert(strstr(text, reason) && !(source && text[0]));
    return source;
}

/* ---- tests ---- */

static void test_bytes(void) {
    struct setting setting = create(true);
    struct sx_device_source *source = offer(&setting, "");
    struct sx_read reads[N_READS];
    unsigned seed = 1;
    assert(source && sx_device_reader_is_forced(setting.reader));
    assert(sx_device_reader_takes(setting.reader, SX_CODEC_SNAPPY));
    assert(!sx_device_reader_takes(setting.reader, SX_CODEC_GZIP));
    for (int i = 0; i < N_READS; i++) {
        const int64_t offset = rand_r(&seed) % FILE_BYTES, most = FILE_BYTES - offset;
        const int64_t length = i % 3 == 0 ? 1 : rand_r(&seed) % (i % 2 ? 20000 : 200000) + 1;
        reads[i] =
            (struct sx_read){.offset = i == 1 ? UNIT : offset, .length_bytes = length < most ? length : most};
    }
    reads[0] = (struct sx_read){.offset = FILE_BYTES - 5000, .length_bytes = 5000}; /* to the very end */
    struct sx_read_request request = {.fd = -1, .reads = reads, .n_reads = N_READS};
    assert(sx_device_reader_read(setting.reader, source, &request, NULL) == SX_OK && request.is_cold);
    for (int i = 0; i < N_READS; i++) {
        uint8_t head;
        for (int64_t b = 0; b < reads[i].length_bytes; b++)
            assert(reads[i].bytes[b] == byte_at(reads[i].offset + b));
        assert(sx_device_reader_peek(setting.reader, reads[i].bytes, 1, &head, NULL) == SX_OK);
        assert(head == byte_at(reads[i].offset) && reads[i].is_cold);
        sx_buffer_release(reads[i].buffer);
    }
    sx_device_reader_close(setting.reader, source);
    destroy(&setting);
}

static void test_errors(void) {
    struct setting setting = create(true);
    struct sx_device_source *source = offer(&setting, "");
    struct sx_error error = {0};
    struct sx_read reads[3] = {{.offset = 10, .length_bytes = 10},
                               {.offset = FILE_BYTES - 10, .length_bytes = 11},
                               {.offset = 10, .length_bytes = 10}};
    struct sx_read_request request = {.fd = -1, .reads = reads, .n_reads = 3};
    assert(sx_device_reader_read(setting.reader, source, &request, &error) == SX_FILE && request.failed == 1);
    sx_buffer_release(reads[0].buffer);
    sx_buffer_release(reads[1].buffer);
    assert(!reads[2].buffer);
    reads[0].buffer = reads[1].buffer = NULL;
    device.fails_at = device.n_reads + 1;
    assert(sx_device_reader_read(setting.reader, source, &request, &error) == SX_FILE && request.failed == 0);
    sx_buffer_release(reads[0].buffer);
    reads[0].buffer = NULL;
    const atomic_bool cancel = true;
    request.cancel = &cancel;
    assert(sx_device_reader_read(setting.reader, source, &request, &error) == SX_CANCELLED);
    sx_buffer_release(reads[0].buffer);
    sx_device_reader_close(setting.reader, source);
    destroy(&setting);
}

static void test_refused(void) {
    struct sx_device_reader *reader;
    struct sx_device_source *source;
    struct sx_error error = {0};
    const struct sx_backend cpu = {.name = "cpu"};
    struct sx_device_reader_options options = {&cpu, NULL, true};
    assert(sx_device_reader_create(&options, &reader, &error) == SX_USAGE &&
           strstr(error.text, "is the CPU"));
    options.backend = &backend;
    device.is_absent = true;
    assert(sx_device_reader_create(&options, &reader, &error) == SX_USAGE &&
           strstr(error.text, "io gds: no such"));
    struct setting absent = create(false);
    assert(!offer(&absent, "no such device") && !offer(&absent, "no such device"));
    destroy(&absent);
    device.is_absent = false;
    device.refuses_files = true;
    struct setting forced = create(true), automatic = create(false);
    assert(sx_device_reader_open(forced.reader, forced.fd, &forced.stamp, &source, &error) == SX_FILE);
    assert(strstr(error.text, "io gds: not on this file system"));
    assert(!offer(&automatic, "not on this file system"));
    destroy(&forced);
    destroy(&automatic);
    device.refuses_files = false;
}

/* Slow reads are not wanted, which is found out once; nor are files too small to tell. */
static void test_trial(void) {
    struct setting slow = create(false), quick = create(false);
    const int64_t size_bytes = slow.stamp.size_bytes;
    slow.stamp.size_bytes = 1 << 20;
    assert(!offer(&slow, "too small"));
    slow.stamp.size_bytes = size_bytes;
    device.delay_us = 1000000;
    assert(!offer(&slow, "32 MiB took"));
    const int n_reads = device.n_reads;
    assert(!offer(&slow, "32 MiB took") && device.n_reads == n_reads);
    device.delay_us = 0;
    device.is_instant = true;
    struct sx_device_source *source = NULL;
    for (int i = 0; i < 100 && !source; i++) { /* on a busy machine it may seem slow */
        destroy(&quick);
        quick = create(false);
        assert(sx_device_reader_open(quick.reader, quick.fd, &quick.stamp, &source, NULL) == SX_OK);
    }
    device.is_instant = false;
    assert(source && device.n_reads > n_reads);
    sx_device_reader_close(quick.reader, source);
    device.fails_at = device.n_reads + 3;
    struct setting broken = create(false);
    assert(!offer(&broken, "can't be read"));
    device.fails_at = 0;
    destroy(&broken);
    destroy(&slow);
    destroy(&quick);
}

int main(void) {
    write_pattern(path, FILE_BYTES);
    const int fd = open(path, O_RDONLY | O_DIRECT);
    if (fd < 0) {
        unlink(path);
        puts("skipped: the file system has no direct I/O");
        return 77;
    }
    close(fd);
    test_bytes();
    test_errors();
    test_refused();
    test_trial();
    unlink(path);
    puts("ok");
    return 0;
}
