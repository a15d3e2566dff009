/* What stands in for cuFile: "device" memory is malloc's, and reads are the system's. Arguments that cuFile
 * would take a slow way for, or refuse, end the program. In the environment:
 *   CUFILE_EMULATOR_MODE=absent|compat   the driver does not open; it opens, for its compatibility mode only
 *   CUFILE_EMULATOR_MODE=fileless        it opens, and knows no way to any file
 *   CUFILE_EMULATOR_SHORT=BYTES          no read gives more
 *   CUFILE_EMULATOR_FAIL=N               the Nth read and all behind it fail
 *   CUFILE_EMULATOR_SLOW=MILLISECONDS    a read takes as long
 *   CUFILE_EMULATOR_TELL=1               at the end stderr gets what was read, and what was left open */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/cuda/cufile_api.h"

#define EXPORT __attribute__((visibility("default")))

enum {
    PAGE_BYTES = 4096,
    MOST_BUFFERS = 1024,
    NOT_LOADED = 5001,
    NOT_DIRECT = 5020,
    NOT_REGISTERED = 5027,
    NVME = 4
};

struct buffer {
    const char *memory;
    size_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct buffer buffers[MOST_BUFFERS];
static atomic_int n_buffers, n_handles;
static atomic_llong n_reads, n_bytes;
static bool is_open, allows_compat = true;

static struct cufile_error done(int status) {
    return (struct cufile_error){status, 0};
}

static void fail(const char *what, long long value) {
    fprintf(stderr, "emulated cuFile: %s (%lld)\n", what, value);
    abort();
}

static bool is_mode(const char *mode) {
    const char *wanted = getenv("CUFILE_EMULATOR_MODE");
    return wanted && !strcmp(wanted, mode);
}

static long long number(const char *variable) {
    const char *text = getenv(variable);
    return text ? atoll(text) : 0;
}

__attribute__((destructor)) static void tell(void) {
    if (getenv("CUFILE_EMULATOR_TELL"))
        fprintf(stderr, "emulated cuFile: %lld reads, %lld bytes; %d buffers and %d files left\n",
                (long long)n_reads, (long long)n_bytes, n_buffers, n_handles);
}

EXPORT struct cufile_error cuFileSetParameterBool(int parameter, bool value) {
    if (is_open)
        return done(CUFILE_ALREADY_OPEN);
    if (parameter == CUFILE_ALLOW_COMPAT_MODE)
        allows_compat = value;
    return done(CUFILE_SUCCESS);
}

EXPORT struct cufile_error cuFileDriverOpen(void) {
    if (is_mode("absent") || (is_mode("compat") && !allows_compat))
        return done(NOT_LOADED);
    const bool was_open = is_open;
    is_open = true;
    return done(was_open ? CUFILE_ALREADY_OPEN : CUFILE_SUCCESS);
}

EXPORT struct cufile_error cuFileDriverGetProperties(struct cufile_properties *properties) {
    *properties = (struct cufile_properties){0};
    properties->driver.status_flags = is_mode("compat") ? 0 : 1u << NVME;
    properties->driver.control_flags = (unsigned)allows_compat << CUFILE_ALLOW_COMPAT_MODE;
    return done(CUFILE_SUCCESS);
}

EXPORT struct cufile_error cuFileHandleRegister(void **handle, struct cufile_descriptor *file) {
    if (!is_open || file->type != CUFILE_FD)
        fail("a file before the driver, or of a strange kind", file->type);
    if (!(fcntl(file->handle.fd, F_GETFL) & O_DIRECT))
        return done(NOT_DIRECT);
    if (is_mode("fileless"))
        return done(NOT_REGISTERED);
    int *made = malloc(sizeof *made);
    if (!made)
        abort();
    *made = file->handle.fd;
    n_handles++;
    *handle = made;
    return done(CUFILE_SUCCESS);
}

EXPORT void cuFileHandleDeregister(void *handle) {
    n_handles--;
    free(handle);
}

EXPORT struct cufile_error cuFileBufRegister(const void *memory, size_t bytes, int flags) {
    (void)flags;
    pthread_mutex_lock(&lock);
    if (n_buffers == MOST_BUFFERS)
        fail("too many buffers", n_buffers);
    buffers[n_buffers++] = (struct buffer){memory, bytes};
    pthread_mutex_unlock(&lock);
    return done(CUFILE_SUCCESS);
}

EXPORT struct cufile_error cuFileBufDeregister(const void *memory) {
    pthread_mutex_lock(&lock);
    int at = 0;
    while (at < n_buffers && buffers[at].memory != memory)
        at++;
    if (at == n_buffers)
        fail("a buffer that is not registered", at);
    buffers[at] = buffers[--n_buffers];
    pthread_mutex_unlock(&lock);
    return done(CUFILE_SUCCESS);
}

static bool is_in_buffer(const char *memory, off_t offset, size_t bytes) {
    bool found = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n_buffers; i++)
        found |= buffers[i].memory == memory && (size_t)offset + bytes <= buffers[i].bytes;
    pthread_mutex_unlock(&lock);
    return found;
}

EXPORT ssize_t cuFileRead(void *handle, void *memory, size_t bytes, off_t file_offset, off_t memory_offset) {
    const long long most = number("CUFILE_EMULATOR_SHORT"), last_good = number("CUFILE_EMULATOR_FAIL");
    if (file_offset % PAGE_BYTES || memory_offset % PAGE_BYTES || bytes % PAGE_BYTES || bytes == 0)
        fail("a read that is not aligned", (long long)file_offset);
    if (!is_in_buffer(memory, memory_offset, bytes))
        fail("a read to memory that is not registered", (long long)memory_offset);
    usleep((useconds_t)number("CUFILE_EMULATOR_SLOW") * 1000);
    if (++n_reads >= last_good && last_good > 0) {
        errno = EIO;
        return -1;
    }
    const ssize_t got = pread(*(const int *)handle, (char *)memory + memory_offset,
                              most > 0 && bytes > (size_t)most ? (size_t)most : bytes, file_offset);
    n_bytes += got > 0 ? got : 0;
    return got;
}
