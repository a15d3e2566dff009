#include "storage/direct.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "storage/file.h"

enum { MOST_ALIGNMENT = 64 << 10 };

/* The alignment that direct reads of the file want; 0: it takes none. */
static size_t direct_alignment(int fd) {
    size_t alignment = SX_DIRECT_PAGE_BYTES;
#ifdef STATX_DIOALIGN
    struct statx found;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &found) == 0 && found.stx_mask & STATX_DIOALIGN) {
        if (!found.stx_dio_offset_align)
            return 0;
        if (found.stx_dio_offset_align > alignment)
            alignment = found.stx_dio_offset_align;
        if (found.stx_dio_mem_align > alignment)
            alignment = found.stx_dio_mem_align;
    }
#endif
    return alignment <= MOST_ALIGNMENT && (alignment & (alignment - 1)) == 0 ? alignment : 0;
}

int sx_direct_open(int fd, size_t *out_alignment) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const int direct = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
    *out_alignment = direct < 0 ? 0 : direct_alignment(direct);
    if (*out_alignment)
        return direct;
    sx_file_close(direct);
    return -1;
}

enum sx_status sx_direct_prepare(struct sx_pool *pool, struct sx_read *read, size_t alignment,
                                 struct sx_transfer *out_transfer, struct sx_error *error) {
    const int64_t unit = (int64_t)alignment;
    const int64_t begin = read->offset / unit * unit;
    const int64_t end = (read->offset + read->length_bytes + unit - 1) / unit * unit;
    const size_t length = (size_t)(end - begin), asked = (size_t)(read->offset + read->length_bytes - begin);
    if (read->buffer && alignment == SX_DIRECT_PAGE_BYTES) {
        read->bytes = read->to;
        *out_transfer = (struct sx_transfer){begin, length, asked, read->to - (read->offset - begin)};
        return SX_OK;
    }
    sx_buffer_release(read->buffer); /* it is not fit for that */
    read->buffer = NULL;
    const size_t given = sx_pool_alignment(pool), slack = alignment > given ? alignment - given : 0;
    SX_TRY(sx_buffer_create(pool, length + slack, &read->buffer, error));
    const uintptr_t address = (uintptr_t)read->buffer->data;
    uint8_t *to = (uint8_t *)read->buffer->data + (alignment - address % alignment) % alignment;
    read->bytes = to + (read->offset - begin);
    *out_transfer = (struct sx_transfer){begin, length, asked, to};
    return SX_OK;
}
