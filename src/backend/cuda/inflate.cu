/* Checks before and after nvCOMP's kernels. A warp a piece: a walk through compressed bytes is one dependent
 * step after the other, which one thread takes in a window that all have loaded (some 30 ns a step, where
 * memory would take 500); and there are many pieces. */
#include "backend/cuda/decode_kernel.h"
#include "backend/cuda/launch_inflate.h"

constexpr uint32_t WINDOW_BYTES = 4096;

__device__ static inline void inflate_fault(const struct inflate_work &work, int64_t i) {
    cuda_fault_set(work.control, CUDA_FAULT_PAGE, work.pieces[i].what, 0, DECODE_INFLATE);
}

/* `n` (0..8) bytes from `at` on as a little-endian number; zeros behind the end. */
__device__ static inline uint64_t load_bytes(const struct inflate_piece &piece, uint32_t at, uint32_t n) {
    return load_bits(piece.stored, piece.stored_bytes, (uint64_t)at * 8, n * 8);
}

/* ---- snappy ---- */

/* What a tag and the bytes behind it tell. */
struct snappy_element {
    uint32_t header_bytes;
    uint64_t literal_bytes; /* that follow the header */
    uint64_t offset;        /* of a copy */
    uint64_t plain_bytes;
};

__device__ static inline struct snappy_element snappy_read(uint64_t bytes) {
    const uint32_t kind = bytes & 3, high = bytes >> 2 & 63;
    const uint64_t behind = bytes >> 8;
    if (kind == 0) {
        const uint32_t more = high < 60 ? 0 : high - 59;
        const uint64_t length = more ? (behind & (((uint64_t)1 << 8 * more) - 1)) + 1 : high + 1;
        return {1 + more, length, 0, length};
    }
    if (kind == 1)
        return {2, 0, (uint64_t)(high >> 3) << 8 | (behind & 0xff), (high & 7) + 4};
    return {kind == 2 ? 3u : 5u, 0, behind & (kind == 2 ? 0xffff : 0xffffffff), high + 1};
}

struct snappy_walk {
    uint64_t at, made; /* stored and plain bytes that are done */
    bool is_bad;
};

/* A warp: the words with the piece's bytes from `base` on, as far as they are there and fit. Returns where in
 * the window byte `base` is. */
__device__ static inline uint32_t load_window(const struct inflate_piece &piece, uint64_t base,
                                              uint64_t *window) {
    const uint8_t *stored = (const uint8_t *)piece.stored;
    const uint64_t left = piece.stored_bytes - base;
    const uint32_t there = left < WINDOW_BYTES ? (uint32_t)left : WINDOW_BYTES;
    const uint32_t skipped = (uint32_t)((uintptr_t)(stored + base) & 7), head = skipped ? 8 - skipped : 0;
    const uint32_t whole = there > head ? (there - head) / 8 : 0, tail = head + whole * 8;
    const uint64_t *words = (const uint64_t *)(stored + base + head);
    uint8_t *bytes = (uint8_t *)window + skipped;
    for (uint32_t k = threadIdx.x; k < whole; k += CUDA_WARP)
        *(uint64_t *)(bytes + head + (size_t)k * 8) = words[k];
    if (threadIdx.x < head && threadIdx.x < there)
        bytes[threadIdx.x] = stored[base + threadIdx.x];
    if (tail + threadIdx.x < there)
        bytes[tail + threadIdx.x] = stored[base + tail + threadIdx.x];
    __syncwarp();
    return skipped;
}

/* One thread: as far as elements begin in the window, whose first byte is the piece's byte `base`. */
__device__ static inline struct snappy_walk walk_window(const struct inflate_piece &piece, uint64_t base,
                                                        const uint8_t *window, struct snappy_walk walk) {
    constexpr uint32_t MAX_HEADER_BYTES = 5;
    while (walk.at < piece.stored_bytes && walk.at - base <= WINDOW_BYTES - MAX_HEADER_BYTES) {
        const uint8_t *from = window + (walk.at - base);
        const uint64_t bytes = load_word(from, uint32_t()) | (uint64_t)from[4] << 32;
        const struct snappy_element element = snappy_read(bytes);
        walk.at += element.header_bytes + element.literal_bytes;
        walk.is_bad = (!element.literal_bytes && (element.offset == 0 || element.offset > walk.made)) ||
                      walk.at > piece.stored_bytes;
        walk.made += element.plain_bytes;
        if (walk.is_bad || walk.made > piece.plain_bytes) {
            walk.is_bad = true;
            break;
        }
    }
    return walk;
}

/* A warp: whether these are literals and copies that stay inside of both buffers and give what they should.
 */
__device__ static inline bool snappy_is_sound(const struct inflate_piece &piece, uint64_t *window) {
    enum { MAX_LENGTH_BYTES = 5 };
    struct snappy_walk walk = {};
    uint64_t told;
    if (!sx_stored_varint((const uint8_t *)piece.stored, piece.stored_bytes, &walk.at, &told) ||
        walk.at > MAX_LENGTH_BYTES || told != piece.plain_bytes)
        return false;
    while (walk.at < piece.stored_bytes && !walk.is_bad) {
        const uint64_t base = walk.at;
        const uint32_t skipped = load_window(piece, base, window);
        if (threadIdx.x == 0)
            walk = walk_window(piece, base, (const uint8_t *)window + skipped, walk);
        walk.at = __shfl_sync(0xffffffffu, walk.at, 0);
        walk.made = __shfl_sync(0xffffffffu, walk.made, 0);
        walk.is_bad = __shfl_sync(0xffffffffu, (int)walk.is_bad, 0);
        __syncwarp();
    }
    return !walk.is_bad && walk.made == piece.plain_bytes;
}

/* ---- zstd (RFC 8878) ---- */

enum { ZSTD_MAGIC = 0xfd2fb528, ZSTD_MAX_BLOCK = 128 << 10 };

/* Walk through a frame; what earlier blocks have left for later ones. */
struct zstd_walk {
    uint32_t at;
    uint32_t max_block_bytes;
    uint64_t least, most; /* plain bytes */
    bool has_tree, has_tables;
};

/* False: no frame, or one of another size, or one that needs a dictionary. */
__device__ static inline bool zstd_frame(const struct inflate_piece &piece, struct zstd_walk *walk) {
    const uint64_t head = load_bytes(piece, 0, 6);
    const uint32_t flags = head >> 32 & 0xff, window = head >> 40 & 0xff;
    const bool is_single = flags >> 5 & 1, is_reserved = flags >> 3 & 1, has_dictionary = flags & 3;
    if ((head & 0xffffffff) != ZSTD_MAGIC || is_reserved || has_dictionary)
        return false;
    const uint32_t size_kind = flags >> 6, size_bytes = size_kind ? 1u << size_kind : is_single;
    const uint32_t size_at = is_single ? 5 : 6;
    const uint64_t size = load_bytes(piece, size_at, size_bytes) + (size_bytes == 2 ? 256 : 0);
    if (size_bytes && size != piece.plain_bytes)
        return false;
    uint64_t window_bytes = (uint64_t)1 << (10 + (window >> 3));
    window_bytes += window_bytes / 8 * (window & 7);
    window_bytes = is_single ? size : window_bytes;
    walk->max_block_bytes = window_bytes < ZSTD_MAX_BLOCK ? (uint32_t)window_bytes : ZSTD_MAX_BLOCK;
    walk->at = size_at + size_bytes;
    return true;
}

/* The section of literals from walk->at on, which moves behind it. */
__device__ static inline bool zstd_literals(const struct inflate_piece &piece, uint32_t end,
                                            struct zstd_walk *walk) {
    const uint64_t head = load_bytes(piece, walk->at, 5);
    const uint32_t kind = head & 3, format = head >> 2 & 3;
    uint32_t header_bytes, plain_bytes, stored_bytes;
    if (kind < 2) { /* raw; one repeated byte */
        header_bytes = format == 1 ? 2 : format == 3 ? 3 : 1;
        plain_bytes = format == 1 ? head >> 4 & 0xfff : format == 3 ? head >> 4 & 0xfffff : head >> 3 & 0x1f;
        stored_bytes = kind == 0 ? plain_bytes : 1;
    } else {
        const uint32_t bits = format < 2 ? 10 : format == 2 ? 14 : 18, mask = (1u << bits) - 1;
        header_bytes = format < 2 ? 3 : format + 2;
        plain_bytes = head >> 4 & mask;
        stored_bytes = head >> (4 + bits) & mask;
        if (plain_bytes == 0 || stored_bytes == 0 || (kind == 3 && !walk->has_tree))
            return false;
        walk->has_tree = true;
    }
    walk->least += plain_bytes;
    walk->at += header_bytes + stored_bytes;
    return plain_bytes <= walk->max_block_bytes && walk->at < end;
}

/* The headers of the sequences from walk->at on. */
__device__ static inline bool zstd_sequences(const struct inflate_piece &piece, uint32_t end,
                                             struct zstd_walk *walk) {
    enum { REPEAT = 3 };
    const uint64_t head = load_bytes(piece, walk->at, 4);
    const uint32_t first = head & 0xff;
    const uint32_t header_bytes = first < 128 ? 1 : first < 255 ? 2 : 3;
    const uint64_t n = first < 128   ? first
                       : first < 255 ? (first - 128) << 8 | (head >> 8 & 0xff)
                                     : (head >> 8 & 0xffff) + 0x7f00;
    if (n == 0)
        return walk->at + header_bytes == end;
    const uint32_t modes = load_bytes(piece, walk->at + header_bytes, 1);
    bool is_repeat = false;
    for (int shift = 2; shift < 8; shift += 2)
        is_repeat |= (modes >> shift & 3) == REPEAT;
    if ((modes & 3) || (is_repeat && !walk->has_tables))
        return false;
    walk->has_tables = true;
    return walk->at + header_bytes + 1 < end; /* tables, and a stream that is never empty */
}

/* The block whose header is at walk->at, which moves behind it. */
__device__ static inline bool zstd_block(const struct inflate_piece &piece, struct zstd_walk *walk,
                                         bool *out_last) {
    enum { HEADER_BYTES = 3, RAW = 0, REPEATED = 1, COMPRESSED = 2 };
    const uint32_t header = (uint32_t)load_bytes(piece, walk->at, HEADER_BYTES);
    const uint32_t kind = header >> 1 & 3, size = header >> 3, stored = kind == REPEATED ? 1 : size;
    *out_last = header & 1;
    if (kind > COMPRESSED || size > walk->max_block_bytes || walk->at > piece.stored_bytes ||
        piece.stored_bytes - walk->at < HEADER_BYTES + stored)
        return false;
    walk->at += HEADER_BYTES;
    const uint32_t end = walk->at + stored;
    walk->most += kind == COMPRESSED ? walk->max_block_bytes : size;
    if (kind != COMPRESSED)
        walk->least += size;
    else if (size == 0 || !zstd_literals(piece, end, walk) || !zstd_sequences(piece, end, walk))
        return false;
    walk->at = end;
    return walk->least <= piece.plain_bytes;
}

/* Whether this is one frame whose parts fit into each other and that can give as many bytes as it should. */
__device__ static inline bool zstd_is_sound(const struct inflate_piece &piece) {
    enum { CHECKSUM_BYTES = 4 };
    struct zstd_walk walk = {};
    if (!zstd_frame(piece, &walk))
        return false;
    const bool has_checksum = load_bytes(piece, 4, 1) >> 2 & 1;
    for (bool is_last = false; !is_last;)
        if (!zstd_block(piece, &walk, &is_last))
            return false;
    return walk.at + (has_checksum ? CHECKSUM_BYTES : 0) == piece.stored_bytes &&
           walk.most >= piece.plain_bytes;
}

/* ---- kernels ---- */

/* A warp. */
__device__ static inline bool is_sound(const struct inflate_piece &piece, enum inflate_codec codec,
                                       uint64_t *window) {
    switch (codec) {
    case INFLATE_SNAPPY: return snappy_is_sound(piece, window);
    case INFLATE_ZSTD: return zstd_is_sound(piece);
    default: return piece.stored_bytes > 0;
    }
}

/* A block of one warp per piece. */
__global__ void check_pieces(const struct inflate_work work) {
    __shared__ uint64_t window[WINDOW_BYTES / 8 + 2];
    for (int64_t i = blockIdx.x; i < work.n; i += gridDim.x) {
        const struct inflate_piece piece = work.pieces[i];
        const bool sound = is_sound(piece, work.codec, window);
        if (threadIdx.x != 0)
            continue;
        if (!sound)
            inflate_fault(work, i);
        work.stored[i] = sound ? piece.stored : work.spare;
        work.stored_bytes[i] = sound ? piece.stored_bytes : work.spare_bytes;
        work.plain[i] = sound ? piece.plain : work.spare + INFLATE_SPARE_BYTES;
        work.plain_bytes[i] = sound ? piece.plain_bytes : 1;
        work.got_bytes[i] = 0;
        work.statuses[i] = NVCOMP_INTERNAL;
    }
}

__global__ void confirm_pieces(const struct inflate_work work) {
    for (int64_t i = cuda_thread(); i < work.n; i += cuda_threads())
        if (work.stored[i] != work.spare &&
            (work.statuses[i] != NVCOMP_SUCCESS || work.got_bytes[i] != work.pieces[i].plain_bytes))
            inflate_fault(work, i);
}

extern "C" void cuda_inflate_check(cudaStream_t stream, const struct inflate_work *work) {
    constexpr int64_t MOST_BLOCKS = 1 << 20;
    const unsigned blocks = (unsigned)(work->n < MOST_BLOCKS ? work->n : MOST_BLOCKS);
    SX_LAUNCH(check_pieces, blocks, CUDA_WARP, 0, stream, *work);
}

extern "C" void cuda_inflate_confirm(cudaStream_t stream, const struct inflate_work *work) {
    SX_LAUNCH(confirm_pieces, cuda_blocks(work->n), CUDA_THREADS, 0, stream, *work);
}
