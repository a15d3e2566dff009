/* Checks before and after nvCOMP's kernels. A warp a piece, which looks at the compressed bytes in a window
 * in shared memory. */
#include "backend/cuda/inflate_kernel.h"

/* Words of shared memory for a window; up to 7 bytes in front of it and some behind it may be touched. */
constexpr uint32_t WINDOW_BYTES = 4096, WINDOW_WORDS = WINDOW_BYTES / 8 + 8;

/* Compressed bytes [base, end) in shared memory, the first at `bytes`. */
struct window {
    uint64_t base, end;
    const uint8_t *bytes;
};

/* A warp: the bytes from `base` on, as far as they are there and fit. */
__device__ static inline struct window load_window(const struct inflate_piece &piece, uint64_t base,
                                                   uint64_t *memory) {
    const uint8_t *stored = piece.stored + base;
    const uint64_t left = piece.stored_bytes - base;
    const uint32_t there = left < WINDOW_BYTES ? (uint32_t)left : WINDOW_BYTES;
    const uint32_t skipped = (uint32_t)((uintptr_t)stored & 7), head = skipped ? 8 - skipped : 0;
    const uint32_t whole = there > head ? (there - head) / 8 : 0, tail = head + whole * 8;
    const uint64_t *words = (const uint64_t *)(stored + head);
    uint8_t *bytes = (uint8_t *)memory + skipped;
    __syncwarp();
    for (uint32_t k = threadIdx.x; k < whole; k += CUDA_WARP)
        *(uint64_t *)(bytes + head + (size_t)k * 8) = words[k];
    if (threadIdx.x < head && threadIdx.x < there)
        bytes[threadIdx.x] = stored[threadIdx.x];
    if (tail + threadIdx.x < there)
        bytes[tail + threadIdx.x] = stored[tail + threadIdx.x];
    __syncwarp();
    return {base, base + there, bytes};
}

/* `n` (0..8) bytes from `at` on as a little-endian number; zeros behind the end. */
__device__ static inline uint64_t load_bytes(const struct inflate_piece &piece, uint32_t at, uint32_t n) {
    return load_bits(piece.stored, piece.stored_bytes, (uint64_t)at * 8, n * 8);
}

/* ---- LZ4 ---- */

struct lz4_walk {
    uint64_t at, made;
    bool is_bad;
};

__device__ static inline uint32_t byte_at(const struct inflate_piece &piece, const struct window &window,
                                          uint64_t at) {
    return at < window.end ? window.bytes[at - window.base] : piece.stored[at];
}

/* A length whose first four bits are `bits`; false: it is cut off. */
__device__ static inline bool lz4_length(const struct inflate_piece &piece, const struct window &window,
                                         struct lz4_walk *walk, uint32_t bits, uint64_t *out_length) {
    constexpr uint32_t MORE_BITS = 15, MORE_BYTE = 255;
    *out_length = bits;
    for (uint32_t byte = bits == MORE_BITS ? MORE_BYTE : 0; byte == MORE_BYTE; *out_length += byte) {
        if (walk->at >= piece.stored_bytes)
            return false;
        byte = byte_at(piece, window, walk->at++);
    }
    return true;
}

/* Literals, and a copy unless they are the last; false: damaged. */
__device__ static inline bool lz4_sequence(const struct inflate_piece &piece, const struct window &window,
                                           struct lz4_walk *walk) {
    constexpr uint32_t OFFSET_BYTES = 2, LEAST_COPY = 4;
    const uint32_t token = byte_at(piece, window, walk->at++);
    uint64_t literals, copied;
    if (!lz4_length(piece, window, walk, token >> 4, &literals) || literals > piece.stored_bytes - walk->at)
        return false;
    walk->at += literals;
    walk->made += literals;
    if (walk->at == piece.stored_bytes)
        return walk->made == piece.plain_bytes;
    if (piece.stored_bytes - walk->at < OFFSET_BYTES)
        return false;
    const uint32_t offset = byte_at(piece, window, walk->at) | byte_at(piece, window, walk->at + 1) << 8;
    walk->at += OFFSET_BYTES;
    if (offset == 0 || offset > walk->made || !lz4_length(piece, window, walk, token & 15, &copied))
        return false;
    walk->made += copied + LEAST_COPY;
    return walk->made <= piece.plain_bytes && walk->at < piece.stored_bytes;
}

/* A warp, of which one thread goes from sequence to sequence. */
__device__ static inline bool lz4_is_sound(const struct inflate_piece &piece, uint64_t *memory) {
    struct lz4_walk walk = {0, 0, piece.stored_bytes == 0};
    while (walk.at < piece.stored_bytes && !walk.is_bad) {
        const struct window window = load_window(piece, walk.at, memory);
        while (threadIdx.x == 0 && walk.at < window.end && !walk.is_bad)
            walk.is_bad = !lz4_sequence(piece, window, &walk);
        walk.at = __shfl_sync(0xffffffffu, walk.at, 0);
        walk.made = __shfl_sync(0xffffffffu, walk.made, 0);
        walk.is_bad = __shfl_sync(0xffffffffu, (int)walk.is_bad, 0);
    }
    return !walk.is_bad && walk.made == piece.plain_bytes;
}

/* ---- zstd (RFC 8878) ---- */

enum { ZSTD_MAGIC = 0xfd2fb528, ZSTD_MAX_BLOCK = 128 << 10 };
/* Plain bytes of a frame's blocks, in the mean. Smaller ones may take more scratch memory than nvCOMP asks
 * for, and then its kernel fails. */
enum { ZSTD_LEAST_BLOCK = 32 << 10 };

/* Walk through a frame; what earlier blocks have left for later ones. */
struct zstd_walk {
    uint32_t at;
    uint32_t max_block_bytes;
    uint64_t least, most; /* plain bytes */
    uint32_t n_blocks;
    bool has_tree, has_tables;
};

/* False: no frame, or one of another size or that does not tell it, or one that needs a dictionary. */
__device__ static inline bool zstd_frame(const struct inflate_piece &piece, struct zstd_walk *walk) {
    const uint64_t head = load_bytes(piece, 0, 6);
    const uint32_t flags = head >> 32 & 0xff, window = head >> 40 & 0xff;
    const bool is_single = flags >> 5 & 1, is_reserved = flags >> 3 & 1, has_dictionary = flags & 3;
    if ((head & 0xffffffff) != ZSTD_MAGIC || is_reserved || has_dictionary)
        return false;
    const uint32_t size_kind = flags >> 6, size_bytes = size_kind ? 1u << size_kind : is_single;
    const uint32_t size_at = is_single ? 5 : 6;
    const uint64_t size = load_bytes(piece, size_at, size_bytes) + (size_bytes == 2 ? 256 : 0);
    if (size_bytes == 0 || size != piece.plain_bytes)
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
    walk->n_blocks++;
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
           walk.most >= piece.plain_bytes && walk.n_blocks <= piece.plain_bytes / ZSTD_LEAST_BLOCK + 1;
}

/* ---- kernels ---- */

/* A warp. */
__device__ static inline bool is_sound(const struct inflate_piece &piece, enum inflate_codec codec,
                                       uint64_t *memory) {
    return codec == INFLATE_LZ4 ? lz4_is_sound(piece, memory) : zstd_is_sound(piece);
}

/* A block of one warp per piece. */
__global__ void check_pieces(const struct inflate_work work) {
    __shared__ uint64_t memory[WINDOW_WORDS];
    for (int64_t i = blockIdx.x; i < work.n; i += gridDim.x) {
        const struct inflate_piece piece = work.pieces[i];
        const bool sound = is_sound(piece, work.codec, memory);
        if (threadIdx.x != 0)
            continue;
        if (!sound)
            inflate_fault(work.control, piece);
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
            inflate_fault(work.control, work.pieces[i]);
}

extern "C" void cuda_inflate_check(cudaStream_t stream, const struct inflate_work *work) {
    constexpr int64_t MOST_BLOCKS = 1 << 20;
    const unsigned blocks = (unsigned)(work->n < MOST_BLOCKS ? work->n : MOST_BLOCKS);
    SX_LAUNCH(check_pieces, blocks, CUDA_WARP, 0, stream, *work);
}

extern "C" void cuda_inflate_confirm(cudaStream_t stream, const struct inflate_work *work) {
    SX_LAUNCH(confirm_pieces, cuda_blocks(work->n), CUDA_THREADS, 0, stream, *work);
}
