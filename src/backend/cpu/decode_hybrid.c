#include "backend/cpu/decode.h"
#include "tensor/semantics_stored.h"

bool decode_varint(struct decode_bytes *bytes, uint64_t *out_value) {
    uint64_t at = 0;
    const bool is_there = sx_stored_varint(bytes->at, decode_left(bytes), &at, out_value);
    if (at > 0) /* `at` may be null where nothing is left */
        bytes->at += at;
    return is_there;
}

struct decode_hybrid decode_hybrid_make(struct decode_bytes bytes, uint32_t width) {
    return (struct decode_hybrid){.bytes = bytes, .width = width};
}

struct decode_hybrid decode_hybrid_packed(struct decode_bytes bytes, uint32_t width, uint64_t count) {
    struct decode_hybrid hybrid = {.width = width, .is_packed = true, .run_left = count};
    hybrid.packed = bytes.at;
    hybrid.packed_bytes = decode_left(&bytes);
    hybrid.bytes = (struct decode_bytes){bytes.end, bytes.end, bytes.slack};
    return hybrid;
}

/* The bytes of the last run may end before it does; then the values that are there count. */
static void start_packed(struct decode_hybrid *hybrid, uint64_t groups) {
    size_t left = decode_left(&hybrid->bytes);
    uint64_t count = groups * 8;
    size_t size = left;
    if (hybrid->width == 0)
        size = 0;
    else if (groups <= left / hybrid->width)
        size = (size_t)groups * hybrid->width;
    else
        count = (uint64_t)left * 8 / hybrid->width;
    hybrid->is_packed = true;
    hybrid->run_left = count;
    hybrid->packed_at = 0;
    hybrid->packed = hybrid->bytes.at;
    hybrid->packed_bytes = size;
    hybrid->bytes.at += size;
}

/* False also when the value has more bits than it may. */
static bool start_repeated(struct decode_hybrid *hybrid, uint64_t count) {
    uint32_t value_bytes = (hybrid->width + 7) / 8, value = 0;
    if (decode_left(&hybrid->bytes) < value_bytes)
        return false;
    for (uint32_t b = 0; b < value_bytes; b++)
        value |= (uint32_t)*hybrid->bytes.at++ << (8 * b);
    if (hybrid->width < 32 && value >> hybrid->width)
        return false;
    hybrid->is_packed = false;
    hybrid->run_left = count;
    hybrid->value = value;
    return true;
}

bool decode_hybrid_run(struct decode_hybrid *hybrid) {
    while (hybrid->run_left == 0) {
        uint64_t header;
        if (!decode_varint(&hybrid->bytes, &header) || header > UINT32_MAX)
            return false;
        if (header & 1)
            start_packed(hybrid, header >> 1);
        else if (!start_repeated(hybrid, header >> 1))
            return false;
    }
    return true;
}

static void take(struct decode_hybrid *hybrid, int64_t count) {
    hybrid->run_left -= (uint64_t)count;
    if (hybrid->is_packed)
        hybrid->packed_at += (uint64_t)count;
}

/* Bytes of the packed run that may be read behind its end. */
static size_t packed_slack(const struct decode_hybrid *hybrid) {
    return (size_t)(hybrid->bytes.end - (hybrid->packed + hybrid->packed_bytes)) + hybrid->bytes.slack;
}

static void read_packed(const struct decode_hybrid *hybrid, int64_t count, uint32_t *out) {
    enum { GROUP = 8 };
    uint64_t at = hybrid->packed_at;
    size_t slack = packed_slack(hybrid);
    if (at % GROUP) { /* the rest of a group that was begun */
        uint32_t values[GROUP];
        uint64_t group = at / GROUP * GROUP, inside = at - group;
        uint64_t there = hybrid->run_left + inside < GROUP ? hybrid->run_left + inside : GROUP;
        size_t offset = (size_t)(group / 8) * hybrid->width;
        decode_unpack(hybrid->packed + offset, hybrid->packed_bytes - offset, slack, hybrid->width,
                      (int64_t)there, values);
        int64_t taken = (int64_t)(there - inside) < count ? (int64_t)(there - inside) : count;
        memcpy(out, values + inside, (size_t)taken * sizeof *values);
        out += taken, count -= taken, at += (uint64_t)taken;
    }
    if (count == 0)
        return;
    size_t offset = (size_t)(at / 8) * hybrid->width;
    decode_unpack(hybrid->packed + offset, hybrid->packed_bytes - offset, slack, hybrid->width, count, out);
}

static int64_t in_run(const struct decode_hybrid *hybrid, int64_t wanted) {
    return (uint64_t)wanted < hybrid->run_left ? wanted : (int64_t)hybrid->run_left;
}

int64_t decode_hybrid_read(struct decode_hybrid *hybrid, int64_t count, uint32_t *out_values) {
    int64_t done = 0;
    while (done < count && decode_hybrid_run(hybrid)) {
        int64_t n = in_run(hybrid, count - done);
        if (hybrid->is_packed)
            read_packed(hybrid, n, out_values + done);
        else
            for (int64_t i = 0; i < n; i++)
                out_values[done + i] = hybrid->value;
        take(hybrid, n);
        done += n;
    }
    return done;
}

int64_t decode_hybrid_skip(struct decode_hybrid *hybrid, int64_t count) {
    int64_t done = 0;
    while (done < count && decode_hybrid_run(hybrid)) {
        int64_t n = in_run(hybrid, count - done);
        take(hybrid, n);
        done += n;
    }
    return done;
}

static int64_t sum_bytes(const uint8_t *values, int64_t count) {
    int64_t sum = 0;
    for (int64_t begin = 0; begin < count; begin += 128) {
        uint8_t part = 0; /* at most 128 of 1 */
        int64_t end = begin + 128 < count ? begin + 128 : count;
        for (int64_t i = begin; i < end; i++)
            part = (uint8_t)(part + values[i]);
        sum += part;
    }
    return sum;
}

int64_t decode_hybrid_read_bits(struct decode_hybrid *hybrid, int64_t count, uint8_t *out_values,
                                int64_t *out_sum) {
    int64_t done = 0, sum = 0;
    while (done < count && decode_hybrid_run(hybrid)) {
        int64_t n = in_run(hybrid, count - done);
        if (hybrid->is_packed) {
            decode_unpack_bits(hybrid->packed, (int64_t)hybrid->packed_at, n, out_values + done);
            sum += sum_bytes(out_values + done, n);
        } else {
            memset(out_values + done, (uint8_t)hybrid->value, (size_t)n);
            sum += n * (int64_t)hybrid->value;
        }
        take(hybrid, n);
        done += n;
    }
    *out_sum = sum;
    return done;
}

static int64_t sum_packed_bits(const struct decode_hybrid *hybrid, int64_t count) {
    int64_t at = (int64_t)hybrid->packed_at, end = at + count, sum = 0;
    while (at < end) {
        if (at % 8 == 0 && end - at >= 64) {
            sum += __builtin_popcountll(decode_load_u64(hybrid->packed + at / 8));
            at += 64;
        } else {
            sum += hybrid->packed[at / 8] >> (at % 8) & 1;
            at++;
        }
    }
    return sum;
}

int64_t decode_hybrid_skip_bits(struct decode_hybrid *hybrid, int64_t count, int64_t *out_sum) {
    int64_t done = 0, sum = 0;
    while (done < count && decode_hybrid_run(hybrid)) {
        int64_t n = in_run(hybrid, count - done);
        sum += hybrid->is_packed ? sum_packed_bits(hybrid, n) : n * (int64_t)hybrid->value;
        take(hybrid, n);
        done += n;
    }
    *out_sum = sum;
    return done;
}
