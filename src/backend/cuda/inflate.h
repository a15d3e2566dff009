/* Decompression of many pages' pieces at once on the device, by kernels of our own: SNAPPY, GZIP, LZ4_RAW and
 * ZSTD. BROTLI and LZ4 (in Hadoop's framing) are not covered.
 *
 * The kernels read and write nothing outside of a piece, whatever its bytes are, and end. What is damaged is
 * a fault. So are bytes of a kind that they do not take, and the host does (zlib's format in place of
 * gzip's): a caller that decompresses on the host again after such a fault gets the right bytes or the right
 * error. */
#ifndef SX_BACKEND_CUDA_INFLATE_H
#define SX_BACKEND_CUDA_INFLATE_H

#include "backend/cuda/load.h"
#include "tensor/page.h"

/* Two functions are exported for test/conformance and bench, which load the backend's library. */

struct cuda_device;
struct cuda_stream;

/* One compressed piece of a page. Both pointers lead to device memory, at any byte address. */
struct cuda_inflate_item {
    const void *stored;
    size_t stored_bytes;
    void *plain;
    size_t plain_bytes; /* exactly as many must come out */
    uint32_t what;      /* the fault's `what`: the caller's number of the page */
};

/* Which codecs decode gives to the device: those that STACHIO_INFLATE names ("snappy,zstd"; "none"), all of
 * them where it is not set. Asked when a device is opened. */
void cuda_inflate_choose(struct cuda_device *device);
/* Whether the device may have a use for stored bytes: they are not compressed, or of such a codec. */
bool cuda_inflate_serves(const struct cuda_device *device, enum sx_parquet_codec codec);
/* Whether pages of so many plain bytes in all, of which the largest has most_bytes, are opened by the device
 * before a thread of the host would have done it: a warp or two take a page, one after the other the thread.
 * Always so of the codecs that STACHIO_INFLATE names. */
bool cuda_inflate_pays(const struct cuda_device *device, enum sx_parquet_codec codec, size_t most_bytes,
                       size_t all_bytes);
/* Whether there is a kernel for a piece: one of 2 GiB and more stays on the host. */
SX_CUDA_EXPORT bool cuda_inflate_takes(enum sx_parquet_codec codec, size_t stored_bytes, size_t plain_bytes);
/* Issues the decompression of n items, any number, to the stream; does not wait (but where more than the
 * stream's staging memory has to be uploaded: 100,000 items fit). `items` is host memory, borrowed for the
 * call; items of 0 plain bytes are skipped. A piece that is damaged, or does not give exactly plain_bytes,
 * becomes a fault CUDA_FAULT_PAGE with the item's `what` and detail[0] == DECODE_INFLATE; what its `plain`
 * holds then is unspecified, and nothing outside of it is written. Takes 32 bytes an item of the stream's
 * pool. Errors: no such kernel, or a piece that is too large (SX_INTERNAL), memory (SX_OUT_OF_MEMORY). */
SX_CUDA_EXPORT SX_MUST_CHECK enum sx_status cuda_inflate(struct cuda_stream *stream,
                                                         enum sx_parquet_codec codec,
                                                         const struct cuda_inflate_item *items, int64_t n);

#endif
