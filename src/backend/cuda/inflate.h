/* Decompression of many pieces of pages at once on the device: SNAPPY and GZIP by kernels of our own, LZ4_RAW
 * and ZSTD (unless that is wanted of our own) by nvCOMP. The library is proprietary: it is fetched at set-up
 * (scripts/setup.sh nvcomp), never shipped, and may be absent; then the caller decompresses these two on the
 * host. It is looked for as
 *   - $STACHIO_NVCOMP_LIBRARY, and nowhere else where that is set ("none" turns it off),
 *   - libnvcomp.so.5 beside this backend's own library, and in the folder `stachio` there,
 *   - libnvcomp.so.5 wherever the system looks.
 *
 * Damage. Our kernels write nothing outside of a page, whatever the bytes are. nvCOMP
 * promises nothing for damaged bytes, and does write outside of its buffers, or runs for ever, so they are
 * looked at by a kernel first: LZ4_RAW is walked through as a whole, and what passes can be decompressed. Of
 * ZSTD the headers of the frame, its blocks and their sections are walked through, and a frame that does not
 * tell its size, or is of many small blocks (for whose number nvCOMP has no scratch memory), is refused; bits
 * that are wrong inside the entropy-coded parts are found only as far as nvCOMP finds them: pages that carry
 * no CRC belong on the host. Bytes of which the device can't tell whether they are damaged or of a kind that
 * it does not take (several zstd frames in a row) are a fault too: a caller that decompresses on the host
 * again after such a fault gets the right bytes or the right error.
 *
 * BROTLI and LZ4 (in Hadoop's framing) are not covered. */
#ifndef SX_BACKEND_CUDA_INFLATE_H
#define SX_BACKEND_CUDA_INFLATE_H

#include "backend/cuda/load.h"
#include "tensor/page.h"

/* The functions are exported for test/conformance and bench, which load the backend's library. */

struct cuda_device;
struct cuda_stream;
struct cuda_inflate_library;

/* One compressed piece of a page. Both pointers lead to device memory, at any byte address. */
struct cuda_inflate_item {
    const void *stored;
    size_t stored_bytes;
    void *plain;
    size_t plain_bytes; /* exactly as many must come out */
    uint32_t what;      /* the fault's `what`: the caller's number of the page */
};

/* Whether pages of this codec can be decompressed on the device: the library is there and covers it.
 * Thread-safe; loads the library once. */
SX_CUDA_EXPORT bool cuda_inflate_has(struct cuda_device *device, enum sx_parquet_codec codec);
/* The same for one piece: pieces of 2 GiB and more, and those that would take too much scratch memory, stay
 * on the host. cuda_inflate wants pieces that it takes. */
SX_CUDA_EXPORT bool cuda_inflate_takes(struct cuda_device *device, enum sx_parquet_codec codec,
                                       size_t stored_bytes, size_t plain_bytes);
/* Which pages of a codec decode gives to the device. */
enum cuda_inflate_trust {
    CUDA_INFLATE_NONE,    /* the host decompresses them */
    CUDA_INFLATE_CHECKED, /* those with a CRC that was right: the library may do anything with other bytes */
    CUDA_INFLATE_ANY
};
enum cuda_inflate_trust cuda_inflate_trust(struct cuda_device *device, enum sx_parquet_codec codec);
/* Our kernels for "gzip" and "zstd" are used where STACHIO_INFLATE has their names: how fast they are on a
 * device is not measured yet. Asked when it is opened. */
void cuda_inflate_choose(struct cuda_device *device);
/* Issues the decompression of n items, any number, to the stream; does not wait (but where more than the
 * stream's staging memory has to be uploaded: 100,000 items fit). `items` is host memory, borrowed for the
 * call; items of 0 plain bytes are skipped. A piece that is damaged, or does not give exactly plain_bytes,
 * becomes a fault CUDA_FAULT_PAGE with the item's `what` and detail[0] == DECODE_INFLATE; what its `plain`
 * holds then is unspecified, and nothing outside of it is written. Scratch memory comes from the stream's
 * pool: 76 bytes an item, and for ZSTD 3 bytes a plain byte up to a limit
 * or to what is left, above which the items are taken in several launches. */
SX_CUDA_EXPORT SX_MUST_CHECK enum sx_status cuda_inflate(struct cuda_stream *stream,
                                                         enum sx_parquet_codec codec,
                                                         const struct cuda_inflate_item *items, int64_t n);

/* Of a device that is closed; NULL allowed. */
void cuda_inflate_library_destroy(const struct cuda_inflate_library *library);

#endif
