/* Reading ranges of a file into memory of a pool: through the page cache, or past it with O_DIRECT and
 * io_uring. */
#ifndef SX_STORAGE_READER_H
#define SX_STORAGE_READER_H

#include "tensor/tensor.h"

enum sx_io {
    SX_IO_AUTO,     /* past the page cache where it could not hold all of a table, and lacks what is wanted */
    SX_IO_BUFFERED, /* always through it */
    SX_IO_DIRECT,   /* always past it */
    SX_IO_DEVICE    /* to the device's memory where that can be (device_reader.h), else as AUTO */
};

/* Of files that are read past the page cache, at least. */
enum { SX_DIRECT_PAGE_BYTES = 4096 };

struct sx_reader;

/* Thread-safe. A call reads on its own thread. `direct_pool`: for what is read past the page cache; should be
 * in huge pages, since the kernel holds on to each page of a buffer that it reads into; NULL: `pool`.
 * `page_cache_bytes`: what the page cache may be expected to hold. */
SX_MUST_CHECK enum sx_status sx_reader_create(struct sx_pool *pool, struct sx_pool *direct_pool,
                                              enum sx_io io, int64_t page_cache_bytes,
                                              struct sx_reader **out_reader, struct sx_error *error);
void sx_reader_destroy(struct sx_reader *reader); /* NULL allowed */

/* Whether tables of that size are read past the page cache. */
bool sx_reader_is_direct(const struct sx_reader *reader, int64_t table_bytes);

/* Bytes [offset, offset + length_bytes) of the file. */
struct sx_read {
    int64_t offset;
    int64_t length_bytes;
    /* Out: one reference, the caller's, also after a failure where it is not NULL. In: NULL, or a buffer with
     * room for it at `to`, */
    struct sx_buffer *buffer;
    uint8_t *to; /* which may not be taken; past the page cache it is as far behind such a page as the
                    bytes in the file, and all pages that it touches are its own */
    const uint8_t *bytes; /* out: in the buffer */
    bool is_cold;         /* out: not all of it was in the page cache */
};

struct sx_read_request {
    int fd;                    /* open for reading, without O_DIRECT */
    int64_t table_bytes;       /* of all files that are being gone through */
    const atomic_bool *cancel; /* may be NULL */
    /* Called on the same thread with bytes that have come; may be NULL. */
    void (*arrived)(void *context, int64_t bytes);
    void *context;
    struct sx_read *reads; /* offsets ascending */
    int n_reads;
    bool is_cold; /* in: something was not in the page cache before; out: or now */
    int failed;   /* out: the read that an error is about */
};

/* All reads of the request. SX_FILE (the text does not name the file): it ends before, can't be read, or
 * SX_IO_DIRECT was asked for and the file system refuses that. */
SX_MUST_CHECK enum sx_status sx_reader_read(struct sx_reader *reader, struct sx_read_request *request,
                                            struct sx_error *error);

#endif
