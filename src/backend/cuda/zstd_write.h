/* What the sequences of a zstd block make, written by one warp. */
#ifndef SX_BACKEND_CUDA_ZSTD_WRITE_H
#define SX_BACKEND_CUDA_ZSTD_WRITE_H

#include "backend/cuda/copies.h"
#include "backend/cuda/zstd_sequences.h"

struct writer {
    uint8_t *plain;
    uint32_t made, frame; /* plain bytes, and how many there were when the frame began */
    uint32_t room_end;    /* plain bytes that there may be after the block */
    struct literals literals;
};

/* All lanes. They may lie in front of where they are written, with less between than there are. */
__device__ static inline void write_literals(struct writer *writer, uint32_t n) {
    struct literals *literals = &writer->literals;
    uint8_t *out = writer->plain + writer->made;
    for (uint32_t first = 0; first < n; first += CUDA_WARP) {
        const uint32_t i = first + warp_lane();
        const uint8_t byte = i < n ? literals->bytes[i] : 0;
        __syncwarp();
        if (i < n)
            out[i] = byte;
    }
    __syncwarp();
    literals->bytes += n;
    literals->n -= n;
    writer->made += n;
}

/* One after another: their literals lie where they write. */
__device__ static inline void place_in_turn(struct writer *writer, const struct placed &own) {
    for (uint32_t left = __ballot_sync(ALL_LANES, own.bytes > 0); left; left &= left - 1) {
        const int lane = __ffs((int)left) - 1;
        write_literals(writer, __shfl_sync(ALL_LANES, own.literals, lane));
        const uint32_t n = __shfl_sync(ALL_LANES, own.bytes, lane);
        copy_match(writer->plain + writer->made, __shfl_sync(ALL_LANES, own.distance, lane), n);
        writer->made += n;
    }
}

/* The lanes' sequences. False: one copies what is not there, or there is no room. */
__device__ static inline bool write_sequences(struct writer *writer, const struct sequence &sequence) {
    struct literals *literals = &writer->literals;
    const uint32_t literals_behind = warp_inclusive(sequence.literals),
                   behind = warp_inclusive(sequence.literals + sequence.bytes);
    const uint32_t n_literals = __shfl_sync(ALL_LANES, literals_behind, CUDA_WARP - 1),
                   n = __shfl_sync(ALL_LANES, behind, CUDA_WARP - 1), room = writer->room_end - writer->made;
    const uint32_t match_to = writer->made + behind - sequence.bytes;
    const struct placed own = {sequence.literals,
                               sequence.bytes,
                               sequence.distance,
                               literals_behind - sequence.literals,
                               match_to - sequence.literals,
                               match_to};
    const bool is_wrong =
        sequence.bytes > 0 && (sequence.distance == 0 || sequence.distance > match_to - writer->frame);
    if (n_literals > literals->n || literals->n > room || n - n_literals > room - literals->n ||
        __any_sync(ALL_LANES, is_wrong))
        return false;
    if (literals->is_in_room && writer->plain + writer->made + n > literals->bytes) {
        place_in_turn(writer, own);
        return true;
    }
    place_sequences(writer->plain, literals->bytes, own);
    literals->bytes += n_literals;
    literals->n -= n_literals;
    writer->made += n;
    return true;
}

__device__ static inline void write_bytes(struct writer *writer, const uint8_t *from, uint32_t n) {
    copy_bytes(writer->plain + writer->made, from, n);
    __syncwarp();
    writer->made += n;
}

/* One byte, n times. */
__device__ static inline void write_repeated(struct writer *writer, uint8_t byte, uint32_t n) {
    fill_bytes(writer->plain + writer->made, byte, n);
    __syncwarp();
    writer->made += n;
}

#endif
