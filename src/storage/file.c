#include "storage/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MAGIC_BYTES = 4, TAIL_BYTES = 8, LEAST_FILE_BYTES = 12, SPECULATIVE_BYTES = 64 << 10 };

void sx_file_stamp_set(const struct stat *found, struct sx_file_stamp *stamp) {
    *stamp = (struct sx_file_stamp){
        .device = found->st_dev,
        .inode = found->st_ino,
        .size_bytes = found->st_size,
        .modified_ns = (int64_t)found->st_mtim.tv_sec * 1000000000 + found->st_mtim.tv_nsec,
    };
}

bool sx_file_stamp_equal(const struct sx_file_stamp *a, const struct sx_file_stamp *b) {
    return a->device == b->device && a->inode == b->inode && a->size_bytes == b->size_bytes &&
           a->modified_ns == b->modified_ns;
}

enum sx_status sx_file_open(const char *path, int *out_fd, struct sx_file_stamp *out_stamp,
                            struct sx_error *error) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return sx_error_set(error, SX_FILE, "%s: there is no such file", path);
    if (fd < 0)
        return sx_error_set(error, SX_FILE, "%s: can't be opened: %s", path, strerror(errno));
    struct stat found;
    if (fstat(fd, &found) != 0) {
        sx_error_set(error, SX_FILE, "%s: can't be read: %s", path, strerror(errno));
        close(fd);
        return SX_FILE;
    }
    if (!S_ISREG(found.st_mode)) {
        close(fd);
        return sx_error_set(error, SX_FILE, "%s: is %s", path,
                            S_ISDIR(found.st_mode) ? "a directory, not a file" : "not a regular file");
    }
    sx_file_stamp_set(&found, out_stamp);
    *out_fd = fd;
    return SX_OK;
}

void sx_file_close(int fd) {
    if (fd >= 0)
        close(fd);
}

enum sx_status sx_file_read(int fd, int64_t offset, size_t length_bytes, void *out_bytes,
                            struct sx_error *error) {
    size_t done = 0;
    while (done < length_bytes) {
        ssize_t n = pread(fd, (char *)out_bytes + done, length_bytes - done, offset + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return sx_error_set(error, SX_FILE, "reading %zu bytes at %lld failed: %s", length_bytes,
                                (long long)offset, strerror(errno));
        if (n == 0)
            return sx_error_set(error, SX_FILE, "the file ends at %lld, inside of the %zu bytes at %lld",
                                (long long)(offset + (int64_t)done), length_bytes, (long long)offset);
        done += (size_t)n;
    }
    return SX_OK;
}

int64_t sx_file_read_cached(int fd, int64_t offset, size_t length_bytes, void *out_bytes) {
    struct iovec to = {out_bytes, length_bytes};
    ssize_t n = preadv2(fd, &to, 1, offset, RWF_NOWAIT);
    if (n >= 0)
        return n;
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

/* ---- footers ---- */

static enum sx_status refuse_magic(const char *path, int fd, const uint8_t *end, struct sx_error *error) {
    uint8_t head[MAGIC_BYTES];
    SX_TRY(sx_file_read(fd, 0, sizeof head, head, error));
    if (memcmp(end, "PARE", MAGIC_BYTES) == 0)
        return sx_error_set(error, SX_FILE, "%s: the file is encrypted, which is not supported", path);
    if (memcmp(head, "PAR1", MAGIC_BYTES) == 0)
        return sx_error_set(error, SX_FILE, "%s: the Parquet file is truncated: it does not end with PAR1",
                            path);
    return sx_error_set(error, SX_FILE, "%s: not a Parquet file: it does not begin and end with PAR1", path);
}

static uint32_t load_u32(const uint8_t *bytes) {
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* `tail`: the file's last `tail_bytes`. */
static enum sx_status read_footer_bytes(const char *path, int fd, int64_t file_bytes, const uint8_t *tail,
                                        size_t tail_bytes, uint8_t **out_bytes, uint32_t *out_length,
                                        struct sx_error *error) {
    const uint8_t *end = tail + tail_bytes;
    if (memcmp(end - MAGIC_BYTES, "PAR1", MAGIC_BYTES) != 0)
        return refuse_magic(path, fd, end - MAGIC_BYTES, error);
    uint32_t length = load_u32(end - TAIL_BYTES);
    if (length == 0 || length > file_bytes - LEAST_FILE_BYTES)
        return sx_error_set(error, SX_FILE, "%s: the footer is said to have %u bytes, the file has %lld",
                            path, length, (long long)file_bytes);
    uint8_t *bytes = malloc(length);
    if (!bytes)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for the footer of %s", path);
    size_t held = tail_bytes - TAIL_BYTES < length ? tail_bytes - TAIL_BYTES : length;
    memcpy(bytes + (length - held), end - TAIL_BYTES - held, held);
    enum sx_status status = sx_file_read(fd, file_bytes - TAIL_BYTES - length, length - held, bytes, error);
    if (status != SX_OK) {
        free(bytes);
        return sx_error_prefix(error, "%s", path);
    }
    *out_bytes = bytes;
    *out_length = length;
    return SX_OK;
}

enum sx_status sx_footer_read(const char *path, int fd, int64_t file_bytes, struct sx_footer **out_footer,
                              struct sx_error *error) {
    if (file_bytes == 0)
        return sx_error_set(error, SX_FILE, "%s: the file is empty", path);
    if (file_bytes < LEAST_FILE_BYTES)
        return sx_error_set(error, SX_FILE, "%s: not a Parquet file: it has only %lld bytes", path,
                            (long long)file_bytes);
    size_t tail_bytes = file_bytes < SPECULATIVE_BYTES ? (size_t)file_bytes : SPECULATIVE_BYTES;
    uint8_t *tail = malloc(tail_bytes), *bytes = NULL;
    uint32_t length = 0;
    if (!tail)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for the footer of %s", path);
    enum sx_status status = sx_file_read(fd, file_bytes - (int64_t)tail_bytes, tail_bytes, tail, error);
    if (status != SX_OK)
        sx_error_prefix(error, "%s", path);
    else
        status = read_footer_bytes(path, fd, file_bytes, tail, tail_bytes, &bytes, &length, error);
    free(tail);
    SX_TRY(status);
    if (sx_footer_parse(bytes, length, file_bytes, out_footer, error) != SX_OK)
        return sx_error_prefix(error, "%s", path);
    return SX_OK;
}
