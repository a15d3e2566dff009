/* A file of known bytes, for tests of readers. */
#ifndef SX_TEST_UNIT_STORAGE_PATTERN_H
#define SX_TEST_UNIT_STORAGE_PATTERN_H

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

static inline uint8_t byte_at(int64_t offset) {
    return (uint8_t)(offset * 7 + (offset >> 8) * 13 + (offset >> 16));
}

/* path: a template of mkstemp, which becomes the file's path. */
static inline void write_pattern(char *path, size_t size_bytes) {
    uint8_t *bytes = malloc(size_bytes);
    int fd = mkstemp(path);
    assert(bytes && fd >= 0);
    for (size_t i = 0; i < size_bytes; i++)
        bytes[i] = byte_at((int64_t)i);
    assert(write(fd, bytes, size_bytes) == (ssize_t)size_bytes && fdatasync(fd) == 0);
    close(fd);
    free(bytes);
}

#endif
