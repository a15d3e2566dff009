#include "storage/reader.h"

#include <fcntl.h>
#include <stdlib.h>

#include "storage/direct.h"
#include "storage/file.h"
#include "storage/uring.h"

static const int64_t most_request_bytes = (int64_t)4 << 20;

struct sx_reader {
    struct sx_pool *pool, *direct_pool;
    enum sx_io io;
    int64_t page_cache_bytes;
    struct sx_rings *rings;
};

enum sx_status sx_reader_create(struct sx_pool *pool, struct sx_pool *direct_pool, enum sx_io io,
                                int64_t page_cache_bytes, struct sx_reader **out_reader,
                                struct sx_error *error) {
    struct sx_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for a reader");
    *reader = (struct sx_reader){.pool = pool,
                                 .direct_pool = direct_pool ? direct_pool : pool,
                                 .io = io == SX_IO_DEVICE ? SX_IO_AUTO : io,
                                 .page_cache_bytes = page_cache_bytes};
    enum sx_status status = sx_rings_create(&reader->rings, error);
    if (status != SX_OK) {
        free(reader);
        return status;
    }
    *out_reader = reader;
    return SX_OK;
}

void sx_reader_destroy(struct sx_reader *reader) {
    if (!reader)
        return;
    sx_rings_destroy(reader->rings);
    free(reader);
}

bool sx_reader_is_direct(const struct sx_reader *reader, int64_t table_bytes) {
    return reader->io == SX_IO_DIRECT || (reader->io == SX_IO_AUTO && table_bytes > reader->page_cache_bytes);
}

/* ---- through the page cache ---- */

static enum sx_status read_piece(struct sx_read_request *request, int64_t offset, int64_t length_bytes,
                                 uint8_t *to, struct sx_error *error) {
    int64_t cached =
        request->is_cold ? 0 : sx_file_read_cached(request->fd, offset, (size_t)length_bytes, to);
    if (cached < 0)
        cached = 0; /* the file system can't tell: taken for warm */
    else if (cached < length_bytes)
        request->is_cold = true;
    return sx_file_read(request->fd, offset + cached, (size_t)(length_bytes - cached), to + cached, error);
}

static enum sx_status make_room(struct sx_reader *reader, struct sx_read *read, struct sx_error *error) {
    if (!read->buffer) {
        SX_TRY(sx_buffer_create(reader->pool, (size_t)read->length_bytes, &read->buffer, error));
        read->to = read->buffer->data;
    }
    read->bytes = read->to;
    return SX_OK;
}

static enum sx_status read_buffered(struct sx_read_request *request, const struct sx_read *read,
                                    struct sx_error *error) {
    for (int64_t done = 0; done < read->length_bytes; done += most_request_bytes) {
        if (request->cancel && atomic_load_explicit(request->cancel, memory_order_relaxed))
            return sx_error_set(error, SX_CANCELLED, "the query was cancelled");
        const int64_t left = read->length_bytes - done;
        const int64_t bytes = left < most_request_bytes ? left : most_request_bytes;
        SX_TRY(read_piece(request, read->offset + done, bytes, read->to + done, error));
        if (request->arrived)
            request->arrived(request->context, bytes);
    }
    return SX_OK;
}

/* A look at a few places: asking for all of it would make the kernel read ahead what is missing. `unknown`:
 * where the file system can't tell. */
static bool is_warm(int fd, const struct sx_read *read, bool unknown) {
    uint8_t probe;
    const int64_t last = read->length_bytes > 0 ? read->length_bytes - 1 : 0;
    for (int i = 0; i <= 2; i++) {
        const int64_t got = sx_file_read_cached(fd, read->offset + last * i / 2, 1, &probe);
        if (got < 0)
            return unknown;
        if (got == 0)
            return false;
    }
    return true;
}

/* Something is cold: what else is gets on its way, while the first is read. */
static void advise_cold(const struct sx_read_request *request, int first) {
    for (int i = first; i < request->n_reads; i++) {
        struct sx_read *read = &request->reads[i];
        read->is_cold = !is_warm(request->fd, read, true);
        posix_fadvise(request->fd, read->offset, read->length_bytes, POSIX_FADV_WILLNEED);
    }
}

static enum sx_status read_all_buffered(struct sx_reader *reader, struct sx_read_request *request,
                                        struct sx_error *error) {
    for (int i = 0; i < request->n_reads; i++) {
        struct sx_read *read = &request->reads[i];
        request->failed = i;
        SX_TRY(make_room(reader, read, error));
        const bool was_cold = request->is_cold;
        if (!was_cold && !is_warm(request->fd, read, true)) {
            request->is_cold = true;
            advise_cold(request, i);
        }
        SX_TRY(read_buffered(request, read, error));
        if (!was_cold && request->is_cold && !read->is_cold) { /* found while reading */
            read->is_cold = true;
            advise_cold(request, i + 1);
        }
    }
    return SX_OK;
}

/* ---- past it ---- */

/* `transfers` has room for all reads, `reads` tells which read each is. */
static enum sx_status read_mixed(struct sx_reader *reader, struct sx_read_request *request,
                                 struct sx_transfers *transfers, struct sx_transfer *list, int *reads,
                                 struct sx_error *error) {
    for (int i = 0; i < request->n_reads; i++) {
        struct sx_read *read = &request->reads[i];
        request->failed = i;
        if (reader->io == SX_IO_DIRECT || !is_warm(request->fd, read, false)) {
            SX_TRY(sx_direct_prepare(reader->direct_pool, read, transfers->alignment, &list[transfers->count],
                                     error));
            read->is_cold = true;
            reads[transfers->count++] = i;
            continue;
        }
        SX_TRY(make_room(reader, read, error));
        const bool was_cold = request->is_cold;
        SX_TRY(read_buffered(request, read, error));
        read->is_cold = request->is_cold && !was_cold;
    }
    if (transfers->count == 0)
        return SX_OK;
    request->is_cold = true;
    enum sx_status status = sx_rings_read(reader->rings, transfers, error);
    request->failed = reads[transfers->failed];
    return status;
}

static enum sx_status read_direct(struct sx_reader *reader, struct sx_read_request *request, int direct_fd,
                                  size_t alignment, struct sx_error *error) {
    struct sx_transfer *list = calloc((size_t)request->n_reads + 1, sizeof *list);
    int *reads = calloc((size_t)request->n_reads + 1, sizeof *reads);
    struct sx_transfers transfers = {.fd = direct_fd,
                                     .buffered_fd = request->fd,
                                     .alignment = alignment,
                                     .cancel = request->cancel,
                                     .arrived = request->arrived,
                                     .context = request->context,
                                     .list = list};
    enum sx_status status =
        list && reads ? read_mixed(reader, request, &transfers, list, reads, error)
                      : sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for reading");
    free(list);
    free(reads);
    return status;
}

enum sx_status sx_reader_read(struct sx_reader *reader, struct sx_read_request *request,
                              struct sx_error *error) {
    request->failed = 0;
    for (int i = 0; i < request->n_reads; i++)
        request->reads[i].is_cold = false;
    if (!sx_reader_is_direct(reader, request->table_bytes))
        return read_all_buffered(reader, request, error);
    size_t alignment;
    const int direct = sx_direct_open(request->fd, &alignment);
    if (direct < 0 && reader->io == SX_IO_DIRECT)
        return sx_error_set(error, SX_FILE, "the file system has no direct I/O for it; see --io");
    if (direct < 0)
        return read_all_buffered(reader, request, error);
    enum sx_status status = read_direct(reader, request, direct, alignment, error);
    sx_file_close(direct);
    return status;
}
