/* Packed vectors give back their integers, for all widths, lengths and numbers of bits; and take what they
 * should. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/pack.h"

enum { MOST = 2100, ROOM = 64 * MOST };

static uint64_t state = 1;
static char *packed, *again;
static void *scratch;
static int64_t values[MOST];

static uint64_t draw(void) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state ^ (state >> 29);
}

static uint64_t few_bits(unsigned bits) {
    return bits == 64 ? draw() : draw() & ((UINT64_C(1) << bits) - 1);
}

/* Integer i of the input, as its width has it. */
static uint64_t value_of(const struct sx_pack_input *input, int64_t i) {
    uint64_t value = 0;
    int64_t at = input->rows ? input->rows[i] : i;
    if (input->codes)
        at = input->codes[at];
    memcpy(&value, input->values + at * input->stride_bytes, input->width_bytes);
    return value;
}

static void check(const struct sx_pack_input *input, enum sx_pack_scheme scheme) {
    const uint32_t width = input->width_bytes, stride = 2 * width;
    const size_t bytes = sx_pack(input, scheme, scratch, packed, ROOM);
    const char *plain;
    assert(bytes % SX_PACK_ALIGNMENT == 0 && (bytes > 0 || scheme >= SX_PACK_RUNS));
    if (!bytes)
        return;
    assert(sx_unpack_bytes(packed, bytes, input->n, width, &plain) == bytes);
    assert((plain != NULL) == (scheme == SX_PACK_PLAIN));
    for (uint32_t gap = width; gap <= stride; gap += width) {
        memset(again, 0x5a, (size_t)MOST * 16 + 16);
        assert(sx_unpack(packed, bytes, input->n, width, gap, again) == bytes);
        for (int64_t i = 0; i < input->n; i++) {
            uint64_t value = 0;
            memcpy(&value, again + i * gap, width);
            assert(value == value_of(input, i));
        }
        assert(again[input->n * gap] == 0x5a);
    }
    /* no room, by a little */
    assert(sx_pack(input, scheme, scratch, packed, bytes - SX_PACK_ALIGNMENT) == 0);
    assert(sx_unpack(packed, bytes - SX_PACK_ALIGNMENT, input->n, width, width, again) == 0);
}

static void check_all(const struct sx_pack_input *input) {
    for (int scheme = 0; scheme < SX_PACK_SCHEMES; scheme++)
        check(input, (enum sx_pack_scheme)scheme);
}

static void test_bits(void) {
    static const int64_t lengths[] = {0, 1, 2, 15, 16, 17, 1000, 1023, 1024, 1025, MOST};
    for (unsigned bits = 0; bits <= 64; bits++)
        for (uint32_t width = 1; width <= 8; width *= 2)
            for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
                const uint64_t base = draw();
                const struct sx_pack_input input = {.values = (const char *)values,
                                                    .width_bytes = width,
                                                    .stride_bytes = draw() % 2 ? 8 : width,
                                                    .n = lengths[l]};
                for (int i = 0; i < MOST; i++)
                    values[i] = (int64_t)(base + few_bits(bits));
                check_all(&input);
            }
}

static void test_runs(void) {
    for (int round = 0; round < 200; round++) {
        const uint64_t length = 1 + draw() % 40;
        const struct sx_pack_input input = {.values = (const char *)values,
                                            .width_bytes = 8,
                                            .stride_bytes = 8,
                                            .n = (int64_t)(draw() % MOST)};
        for (int i = 0; i < MOST; i++)
            values[i] = i > 0 && draw() % length ? values[i - 1] : (int64_t)draw();
        check_all(&input);
    }
}

static void test_places(void) {
    static int32_t rows[MOST], codes[MOST];
    static uint8_t valid[MOST];
    for (int i = 0; i < MOST; i++) {
        values[i] = (int64_t)draw();
        rows[i] = (int32_t)(draw() % MOST);
        codes[i] = (int32_t)(draw() % 7);
        valid[i] = draw() % 3 > 0;
    }
    struct sx_pack_input input = {
        .values = (const char *)values, .width_bytes = 4, .stride_bytes = 8, .n = MOST};
    for (int way = 0; way < 4; way++) {
        input.rows = way & 1 ? rows : NULL;
        input.codes = way & 2 ? codes : NULL;
        check_all(&input);
        int64_t out[100];
        input.valid = valid;
        input.nulls_are_zero = way & 1;
        sx_pack_load(&input, 1500, 100, 77, out);
        for (int i = 0; i < 100; i++) {
            const int64_t at = input.rows ? rows[1500 + i] : 1500 + i;
            const int64_t null = input.nulls_are_zero ? 0 : i > 0 ? out[i - 1] : 77;
            assert(valid[at] ? (uint32_t)out[i] == value_of(&input, 1500 + i) : out[i] == null);
        }
        input.valid = NULL;
    }
}

/* Sizes that were promised. */
static void test_sizes(void) {
    struct sx_pack_input input = {
        .values = (const char *)values, .width_bytes = 8, .stride_bytes = 8, .n = 2 * SX_PACK_BLOCK};
    for (int i = 0; i < MOST; i++)
        values[i] = INT64_MIN + i;
    assert(sx_pack(&input, SX_PACK_FRAME, scratch, packed, ROOM) == 16 + 48 + 2 * 1024 * 10 / 8);
    assert(sx_pack(&input, SX_PACK_DELTA, scratch, packed, ROOM) == 16 + 48);
    for (int i = 0; i < MOST; i++)
        values[i] = i / 100;
    assert(sx_pack(&input, SX_PACK_RUN_DELTAS, scratch, packed, ROOM) < 250);
    input.n = SX_PACK_MOST + 1;
    assert(sx_pack(&input, SX_PACK_FRAME, scratch, packed, ROOM) == 0);
}

int main(void) {
    packed = aligned_alloc(SX_PACK_ALIGNMENT, ROOM);
    again = malloc((size_t)MOST * 16 + 16);
    scratch = malloc(sx_pack_scratch_bytes(MOST));
    assert(packed && again && scratch);
    test_bits();
    test_runs();
    test_places();
    test_sizes();
    free(packed);
    free(again);
    free(scratch);
    return 0;
}
