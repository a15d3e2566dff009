/* Snappy, a block a page. Compressed bytes are taken a window at a time, eight a thread:
 *
 * 1. Every thread follows the elements from each of its bytes, as if one began there, to where they leave its
 *    eight bytes; by doubling that is known for 32 bytes, and for all bytes of a warp.
 * 2. From the window's first element on this gives each warp's and each thread's first element; each thread
 *    reads those that begin in its bytes. Sums of what they make tell where they write.
 * 3. Elements are checked, all of the window before any of it is written.
 * 4. Output is made in rounds in shared memory, a word a byte: the byte if it is known, or its source's
 *    place. What is in front of the round is read from where it was written. Sources in the round are
 * followed by all threads at once, some steps between two barriers; the next steps are that much longer.
 *
 * A literal that is long, or not whole in the window, is copied by all threads. */
#include "backend/cuda/block.h"
#include "backend/cuda/inflate_kernel.h"

/* Of a block: with 8 warps batches are 5 to 8 % quicker, and a single page 30 to 50 % slower. */
constexpr uint32_t WARPS = 16, THREADS = WARPS * CUDA_WARP, BLOCKS_A_PROCESSOR = 2;
/* Bytes of input a thread; elements that may begin in these, of at least two bytes each. */
constexpr uint32_t SNAPPY_BYTES = 8, SNAPPY_ELEMENTS = SNAPPY_BYTES / 2;
constexpr uint32_t WINDOW = THREADS * SNAPPY_BYTES;
/* Threads whose bytes are one step of a warp's way to each of its threads. */
constexpr uint32_t SNAPPY_QUAD = 4 * SNAPPY_BYTES, SNAPPY_REGION = CUDA_WARP * SNAPPY_BYTES;
constexpr uint32_t SHORT_LITERAL = 60, WARP_LITERAL = 64; /* above: has more length bytes; made by a warp */
/* Rows of a round (an output byte a thread), and sources that are followed between two barriers. */
constexpr uint32_t ROUND_ROWS = 20, HOPS = 4;
constexpr uint32_t ROUND = THREADS * ROUND_ROWS;
constexpr uint32_t NOWHERE = UINT32_MAX;

/* An output byte of a round: KNOWN and the byte; or its source's place in the round; negative: in front. */
enum : int32_t { KNOWN = 1 << 30 };

struct snappy_memory {
    uint64_t input[THREADS + 1]; /* the last one is 0 */
    union {
        /* Where elements from a byte on leave its thread's bytes, its quad's, its warp's. The place itself:
         * the element there is not whole in the window. */
        struct {
            uint16_t thread[WINDOW], quad[WINDOW], region[WINDOW];
        } exits;
        int32_t output[ROUND];
    };
};

/* What a tag and the bytes behind it tell. */
struct element {
    uint32_t header_bytes, plain_bytes;
    uint32_t offset; /* of a copy */
    bool is_copy;
};

/* `behind`: the four bytes behind the tag. A literal too long for any page has UINT32_MAX bytes. */
__device__ static inline struct element read_element(uint32_t tag, uint32_t behind) {
    const uint32_t kind = tag & 3, high = tag >> 2;
    if (kind == 0) {
        const uint32_t more = high < SHORT_LITERAL ? 0 : high - SHORT_LITERAL + 1;
        const uint32_t length = more == 0 ? high : more == 4 ? behind : behind & ((1u << 8 * more) - 1);
        return {1 + more, length == UINT32_MAX ? length : length + 1, 0, false};
    }
    if (kind == 1)
        return {2, (high & 7) + 4, (high >> 3) << 8 | (behind & 0xff), true};
    return {kind == 2 ? 3u : 5u, high + 1, kind == 2 ? behind & 0xffff : behind, true};
}

/* Stored bytes of an element that begins with these four; UINT32_MAX: more than a window has. */
__device__ static inline uint32_t element_bytes(uint32_t bytes) {
    constexpr uint32_t COPY_BYTES = 0x5320; /* a digit for each kind */
    const uint32_t kind = bytes & 3, high = bytes >> 2 & 63;
    if (kind != 0)
        return COPY_BYTES >> 4 * kind & 15;
    if (high < SHORT_LITERAL)
        return high + 2;
    const uint32_t more = high - SHORT_LITERAL + 1;
    return more > 2 ? UINT32_MAX : 2 + more + (bytes >> 8 & (more == 1 ? 0xffu : 0xffffu));
}

/* ---- input ---- */

/* The thread's bytes of the window that begins at `base`, which counts from the aligned address at or in
 * front of the page's first byte; those outside of the page are 0. */
__device__ static inline uint64_t load_input(const struct inflate_piece &piece, uint64_t base) {
    const uint32_t skew = (uint32_t)((uintptr_t)piece.stored % SNAPPY_BYTES);
    const int64_t at = (int64_t)(base + threadIdx.x * SNAPPY_BYTES) - (int64_t)skew;
    const int64_t end = (int64_t)piece.stored_bytes;
    if (at >= 0 && at + (int64_t)SNAPPY_BYTES <= end)
        return *(const uint64_t *)(piece.stored + at);
    uint64_t word = 0;
    for (int64_t k = 0; k < (int64_t)SNAPPY_BYTES; k++)
        if (at + k >= 0 && at + k < end)
            word |= (uint64_t)piece.stored[at + k] << 8 * k;
    return word;
}

/* ---- where elements begin ---- */

/* A thread's exits, 16 bits each. */
struct exits {
    uint64_t words[2];
};
__device__ static inline uint32_t exit_of(const struct exits &exits, uint32_t i) {
    return (uint32_t)((i & 4 ? exits.words[1] : exits.words[0]) >> 16 * (i & 3)) & 0xffff;
}

__device__ static inline void store_exits(const struct exits &exits, uint16_t *table) {
    uint64_t *words = (uint64_t *)(table + threadIdx.x * SNAPPY_BYTES);
    words[0] = exits.words[0];
    words[1] = exits.words[1];
}

/* Out of the thread's bytes `low`, behind which are `high`. */
__device__ static inline struct exits thread_exits(uint64_t low, uint64_t high, uint32_t end) {
    const uint32_t first = threadIdx.x * SNAPPY_BYTES;
    struct exits exits = {};
    for (uint32_t i = 0; i < SNAPPY_BYTES; i++) {
        const uint32_t k = SNAPPY_BYTES - 1 - i, at = first + k;
        const uint32_t bytes = element_bytes((uint32_t)(k ? low >> 8 * k | high << (64 - 8 * k) : low));
        const bool is_whole = at < end && bytes <= end - at;
        uint32_t exit = is_whole ? at + bytes : at;
        if (is_whole && exit - first < SNAPPY_BYTES)
            exit = exit_of(exits, exit - first);
        exits.words[k / 4] |= (uint64_t)exit << 16 * (k % 4);
    }
    return exits;
}

/* A warp: out of twice as many bytes as before, `bytes`. The left half goes on with the right one's. */
__device__ static inline void double_exits(uint32_t bytes, struct exits *exits, uint16_t *table) {
    const uint32_t first = threadIdx.x * SNAPPY_BYTES;
    const uint32_t middle = (first & ~(bytes - 1)) + bytes / 2;
    if (first < middle) {
        struct exits found = {};
        for (uint32_t i = 0; i < SNAPPY_BYTES; i++) {
            const uint32_t exit = exit_of(*exits, i);
            const uint32_t further = exit - middle < bytes / 2 ? table[exit] : exit;
            found.words[i / 4] |= (uint64_t)further << 16 * (i % 4);
        }
        *exits = found;
        store_exits(found, table);
    }
    __syncwarp();
}

/* A warp: its part of the tables. */
__device__ static inline void find_exits(struct snappy_memory &memory, uint32_t end) {
    struct exits exits = thread_exits(memory.input[threadIdx.x], memory.input[threadIdx.x + 1], end);
    store_exits(exits, memory.exits.thread);
    store_exits(exits, memory.exits.quad);
    __syncwarp();
    for (uint32_t bytes = 2 * SNAPPY_BYTES; bytes <= SNAPPY_QUAD; bytes *= 2)
        double_exits(bytes, &exits, memory.exits.quad);
    store_exits(exits, memory.exits.region);
    __syncwarp();
    for (uint32_t bytes = 2 * SNAPPY_QUAD; bytes <= SNAPPY_REGION; bytes *= 2)
        double_exits(bytes, &exits, memory.exits.region);
}

/* From `at` on over parts of `bytes` to the one that begins at `first`; NOWHERE: they end before, or the way
 * leads past it. */
__device__ static inline uint32_t follow_exits(const uint16_t *table, uint32_t bytes, uint32_t at,
                                               uint32_t first) {
    while (at < first) {
        const uint32_t next = table[at];
        if (next / bytes == at / bytes)
            return NOWHERE;
        at = next;
    }
    return at < first + bytes ? at : NOWHERE;
}

/* The first element in the thread's bytes, or NOWHERE. *out_stop: where the window's elements end. */
__device__ static inline uint32_t find_entry(const struct snappy_memory &memory, uint32_t entry, uint32_t end,
                                             uint32_t *out_stop) {
    const uint32_t first = threadIdx.x * SNAPPY_BYTES, region = first / SNAPPY_REGION;
    uint32_t at = entry, mine = NOWHERE;
    for (uint32_t part = NOWHERE; at < end && at / SNAPPY_REGION != part;) {
        part = at / SNAPPY_REGION;
        if (part == region)
            mine = at;
        at = memory.exits.region[at];
    }
    *out_stop = at;
    if (mine == NOWHERE)
        return NOWHERE;
    const uint32_t quad = first / SNAPPY_QUAD * SNAPPY_QUAD;
    mine = follow_exits(memory.exits.quad, SNAPPY_QUAD, mine, quad);
    return mine == NOWHERE ? NOWHERE : follow_exits(memory.exits.thread, SNAPPY_BYTES, mine, first);
}

/* ---- elements ---- */

/* Those that begin in a thread's bytes, in order: plain bytes (0: there is none), and where from these come:
 * a place in the window, or COPY and an offset. */
constexpr uint32_t COPY = 1u << 31;
struct thread_elements {
    uint32_t plain_bytes[SNAPPY_ELEMENTS];
    uint32_t from[SNAPPY_ELEMENTS];
    uint32_t total;
};

__device__ static inline struct thread_elements read_elements(uint64_t low, uint64_t high, uint32_t at,
                                                              uint32_t end) {
    const uint32_t first = threadIdx.x * SNAPPY_BYTES;
    struct thread_elements elements = {};
    for (uint32_t i = 0; i < SNAPPY_ELEMENTS; i++) {
        if (at - first >= SNAPPY_BYTES)
            continue;
        const uint32_t shift = (at - first) * 8;
        const uint64_t bytes = shift ? low >> shift | high << (64 - shift) : low;
        const struct element element = read_element((uint32_t)bytes & 0xff, (uint32_t)(bytes >> 8));
        const uint32_t stored_bytes = element_bytes((uint32_t)bytes);
        if (stored_bytes > end - at) { /* the window ends with it */
            at = NOWHERE;
            continue;
        }
        elements.plain_bytes[i] = element.plain_bytes;
        elements.from[i] = element.is_copy ? COPY | (element.offset < COPY ? element.offset : ~COPY)
                                           : at + element.header_bytes;
        elements.total += element.plain_bytes;
        at += stored_bytes;
    }
    return elements;
}

/* Whether a copy of the thread's begins in front of the page. `made`: bytes in front of its elements. */
__device__ static inline bool are_bad(const struct thread_elements &elements, uint32_t made) {
    bool is_bad = false;
    for (uint32_t i = 0; i < SNAPPY_ELEMENTS; i++) {
        const uint32_t offset = elements.from[i] & ~COPY;
        is_bad |= (elements.from[i] & COPY) && (offset == 0 || offset > made);
        made += elements.plain_bytes[i];
    }
    return is_bad;
}

/* ---- output ---- */

/* Bytes [begin, end) of the round: of the element that began at `at`, maybe before the round. */
struct stretch {
    int32_t at, begin, end;
    uint32_t from;
};

/* Each `by`-th one from begin + `skip` on. */
__device__ static inline void mark_literal(const struct stretch &part, const uint8_t *input, int32_t skip,
                                           int32_t by, int32_t *output) {
    for (int32_t k = part.begin + skip; k < part.end; k += by)
        output[k] = KNOWN | input[(int32_t)part.from + k - part.at];
}

/* A source that is in the element itself is taken from in front of it. */
__device__ static inline void mark_copy(const struct stretch &part, int32_t *output) {
    const uint32_t offset = part.from & ~COPY, inside = (uint32_t)(part.begin - part.at);
    int32_t source = part.at + (int32_t)(inside < offset ? inside : inside % offset) - (int32_t)offset;
    for (int32_t k = part.begin; k < part.end; k++) {
        output[k] = source++;
        if (source == part.at)
            source -= (int32_t)offset;
    }
}

/* A warp: the long literals of its threads. */
__device__ static inline void mark_long(const struct stretch &part, bool is_long, const uint8_t *input,
                                        int32_t *output) {
    for (uint32_t left = __ballot_sync(0xffffffffu, is_long); left; left &= left - 1) {
        const int lane = __ffs((int)left) - 1;
        const struct stretch theirs = {
            __shfl_sync(0xffffffffu, part.at, lane), __shfl_sync(0xffffffffu, part.begin, lane),
            __shfl_sync(0xffffffffu, part.end, lane), __shfl_sync(0xffffffffu, part.from, lane)};
        mark_literal(theirs, input, (int32_t)(threadIdx.x % CUDA_WARP), CUDA_WARP, output);
    }
}

/* A warp: what its threads' elements make of the round of n bytes; the first one makes byte `at`. */
__device__ static inline void mark_elements(const struct thread_elements &elements, int32_t at, int32_t n,
                                            const uint8_t *input, int32_t *output) {
    for (uint32_t i = 0; i < SNAPPY_ELEMENTS; i++) {
        const int32_t behind = at + (int32_t)elements.plain_bytes[i];
        const struct stretch part = {at, at < 0 ? 0 : at, behind < n ? behind : n, elements.from[i]};
        const bool is_copy = part.from & COPY;
        const bool is_long = !is_copy && part.end - part.begin > (int32_t)WARP_LITERAL;
        if (is_copy)
            mark_copy(part, output);
        else if (!is_long)
            mark_literal(part, input, 0, 1, output);
        mark_long(part, is_long, input, output);
        at = behind;
    }
}

/* A thread's bytes of a round, each THREADS-th one, as far as they are followed. */
struct thread_round {
    int32_t found[ROUND_ROWS];
    uint32_t changed; /* a bit a row: not yet in shared memory */
};

/* Reads the bytes from in front of the round, which is at `plain`. */
__device__ static inline struct thread_round fetch_round(const int32_t *output, const uint8_t *plain,
                                                         int32_t n) {
    struct thread_round mine;
    mine.changed = 0;
    for (uint32_t r = 0; r < ROUND_ROWS; r++) {
        const int32_t k = (int32_t)(threadIdx.x + r * THREADS);
        mine.found[r] = k < n ? output[k] : KNOWN;
    }
    for (uint32_t r = 0; r < ROUND_ROWS; r++)
        mine.changed |= mine.found[r] < 0 ? 1u << r : 0;
    for (uint32_t r = 0; r < ROUND_ROWS; r++) /* nothing waits for a load before all are issued */
        if (mine.found[r] < 0)
            mine.found[r] = plain[mine.found[r]];
    for (uint32_t r = 0; r < ROUND_ROWS; r++)
        mine.found[r] |= mine.changed >> r & 1 ? (int32_t)KNOWN : 0;
    return mine;
}

/* At most HOPS sources further. Whether some are still not known. */
__device__ static inline bool follow_round(const int32_t *output, struct thread_round *mine) {
    int32_t least = KNOWN;
    mine->changed = 0;
    for (uint32_t r = 0; r < ROUND_ROWS; r++)
        if (mine->found[r] < KNOWN) {
            least = 0;
            mine->changed |= 1u << r;
        }
    for (uint32_t h = 0; h < HOPS && least < KNOWN; h++) {
        for (uint32_t r = 0; r < ROUND_ROWS; r++)
            if (mine->found[r] < KNOWN)
                mine->found[r] = output[mine->found[r]];
        least = KNOWN;
        for (uint32_t r = 0; r < ROUND_ROWS; r++)
            least = mine->found[r] < least ? mine->found[r] : least;
    }
    return least < KNOWN;
}

/* A block: the round's n bytes at `plain`. What threads have found is written and read in turns, between
 * barriers; the last one is behind all reads. */
__device__ static inline void write_round(int32_t *output, uint8_t *plain, int32_t n) {
    struct thread_round mine = fetch_round(output, plain, n);
    bool is_open;
    do {
        for (uint32_t r = 0; r < ROUND_ROWS; r++)
            if (mine.changed >> r & 1)
                output[threadIdx.x + r * THREADS] = mine.found[r];
        __syncthreads();
        is_open = follow_round(output, &mine);
    } while (__syncthreads_or(is_open));
    for (uint32_t r = 0; r < ROUND_ROWS; r++) {
        const int32_t k = (int32_t)(threadIdx.x + r * THREADS);
        if (k < n)
            plain[k] = (uint8_t)mine.found[r];
    }
}

/* A block: `total` bytes of output at `plain`; the thread's own begin at `at`. */
__device__ static inline void make_output(struct snappy_memory &memory,
                                          const struct thread_elements &elements, uint32_t at, uint32_t total,
                                          uint8_t *plain) {
    for (uint32_t base = 0; base < total; base += ROUND) {
        const int32_t n = (int32_t)(total - base < ROUND ? total - base : ROUND);
        mark_elements(elements, (int32_t)(at - base), n, (const uint8_t *)memory.input, memory.output);
        __syncthreads();
        write_round(memory.output, plain + base, n);
    }
}

/* ---- long literals ---- */

struct __align__(16) chunk {
    uint64_t low, high;
};

/* A block: n bytes to anywhere. Reads no byte outside of them, and writes 16 at once where it can. */
__device__ static inline void copy_bytes(uint8_t *to, const uint8_t *from, uint32_t n) {
    constexpr uint32_t CHUNK = sizeof(struct chunk), WORD = sizeof(uint64_t), AT_ONCE = 2;
    const uint32_t aligned = WORD + (uint32_t)(-((uintptr_t)to + WORD) % CHUNK);
    const uint32_t chunks = n > aligned + WORD ? (n - aligned - WORD) / CHUNK : 0;
    const uint32_t tail = chunks ? aligned + chunks * CHUNK : 0;
    const uint32_t shift = (uint32_t)((uintptr_t)(from + aligned) % WORD) * 8;
    const uint64_t *words = (const uint64_t *)(from + aligned - shift / 8);
    for (uint32_t c = threadIdx.x; c < chunks; c += AT_ONCE * THREADS) {
        uint64_t found[AT_ONCE][3];
        for (uint32_t r = 0; r < AT_ONCE; r++)
            for (uint32_t w = 0; w < 3; w++)
                found[r][w] = c + r * THREADS < chunks && (w < 2 || shift)
                                  ? words[(size_t)(c + r * THREADS) * 2 + w]
                                  : 0;
        for (uint32_t r = 0; r < AT_ONCE; r++) {
            const uint64_t *f = found[r];
            if (c + r * THREADS < chunks)
                *(struct chunk *)(to + aligned + (size_t)(c + r * THREADS) * CHUNK) =
                    shift ? chunk{f[0] >> shift | f[1] << (64 - shift), f[1] >> shift | f[2] << (64 - shift)}
                          : chunk{f[0], f[1]};
        }
    }
    for (uint32_t k = threadIdx.x; chunks && k < aligned; k += THREADS)
        to[k] = from[k];
    for (uint32_t k = tail + threadIdx.x; k < n; k += THREADS)
        to[k] = from[k];
}

/* ---- pages ---- */

struct snappy_walk {
    uint64_t at, made; /* stored and plain bytes that are done */
};

/* A block: the literal at walk->at. False: it is cut off, or too long. */
__device__ static inline bool long_literal(const struct inflate_piece &piece, const struct element &element,
                                           struct snappy_walk *walk) {
    const uint64_t from = walk->at + element.header_bytes;
    if (from + element.plain_bytes > piece.stored_bytes ||
        walk->made + element.plain_bytes > piece.plain_bytes)
        return false;
    copy_bytes(piece.plain + walk->made, piece.stored + from, element.plain_bytes);
    walk->at = from + element.plain_bytes;
    walk->made += element.plain_bytes;
    return true;
}

/* The element at byte `entry` (0..7) of the window. */
__device__ static inline struct element first_element(const struct snappy_memory &memory, uint32_t entry) {
    const uint8_t *bytes = (const uint8_t *)memory.input + entry;
    return read_element(bytes[0], load_word(bytes + 1, uint32_t()));
}

/* A block: decompresses the page. False: damaged, or not of the size that it should have. */
__device__ static inline bool snappy_page(const struct inflate_piece &piece, struct snappy_memory &memory) {
    constexpr uint32_t MAX_LENGTH_BYTES = 5;
    const uint32_t skew = (uint32_t)((uintptr_t)piece.stored % SNAPPY_BYTES);
    const uint64_t page_end = skew + (uint64_t)piece.stored_bytes;
    struct snappy_walk walk = {};
    uint64_t told;
    if (!sx_stored_varint(piece.stored, piece.stored_bytes, &walk.at, &told) || walk.at > MAX_LENGTH_BYTES ||
        told != piece.plain_bytes)
        return false;
    uint64_t base = (walk.at + skew) / SNAPPY_BYTES * SNAPPY_BYTES, input = load_input(piece, base);
    while (walk.at < piece.stored_bytes) {
        const uint32_t entry = (uint32_t)(walk.at + skew - base);
        const uint32_t end = page_end - base < WINDOW ? (uint32_t)(page_end - base) : WINDOW;
        memory.input[threadIdx.x] = input;
        __syncthreads();
        const struct element first = first_element(memory, entry);
        if (!first.is_copy && (first.plain_bytes >= WINDOW / 2 || first.header_bytes > 3)) {
            if (!long_literal(piece, first, &walk))
                return false;
            base = (walk.at + skew) / SNAPPY_BYTES * SNAPPY_BYTES;
            input = load_input(piece, base);
            __syncthreads();
            continue;
        }
        find_exits(memory, end);
        __syncthreads();
        uint32_t stop, total;
        const uint32_t mine = find_entry(memory, entry, end, &stop);
        const struct thread_elements elements =
            read_elements(memory.input[threadIdx.x], memory.input[threadIdx.x + 1], mine, end);
        walk.at = base + stop - skew;
        base = (base + stop) / SNAPPY_BYTES * SNAPPY_BYTES;
        input = load_input(piece, base); /* is there when this window's output is made */
        const uint32_t at = block_exclusive<uint32_t, THREADS>(elements.total, &total);
        if (__syncthreads_or(are_bad(elements, (uint32_t)walk.made + at)) || stop == entry ||
            walk.made + total > piece.plain_bytes)
            return false;
        make_output(memory, elements, at, total, piece.plain + walk.made);
        walk.made += total;
    }
    return walk.made == piece.plain_bytes;
}

/* ---- kernel ---- */

__global__ void __launch_bounds__(THREADS, BLOCKS_A_PROCESSOR)
    decompress_snappy(const struct inflate_piece *pieces, int64_t n, struct cuda_control *control) {
    __shared__ struct snappy_memory memory;
    if (threadIdx.x == 0)
        memory.input[THREADS] = 0;
    for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
        const struct inflate_piece piece = pieces[i];
        const bool sound = snappy_page(piece, memory);
        if (!sound && threadIdx.x == 0)
            inflate_fault(control, piece);
        __syncthreads();
    }
}

extern "C" void cuda_snappy(cudaStream_t stream, const struct inflate_piece *pieces, int64_t n,
                            struct cuda_control *control) {
    constexpr int64_t MOST_BLOCKS = 1 << 20;
    const unsigned blocks = (unsigned)(n < MOST_BLOCKS ? n : MOST_BLOCKS);
    SX_LAUNCH(decompress_snappy, blocks, THREADS, 0, stream, pieces, n, control);
}
