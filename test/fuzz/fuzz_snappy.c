/* Arbitrary elements of snappy: what the library takes is opened to the same bytes, what it refuses is
 * refused, and nothing beyond either side is touched. One difference is meant: the library counts a literal's
 * bytes in 32 bits, so that one of 2^32 is empty there; no stream has room for it here. Layout of an input: 3
 * bytes, how many plain bytes there are to be; then the elements. */
#include <stdlib.h>
#include <string.h>

#include <snappy-c.h>

#include "tensor/snappy.h"

enum { LENGTH_BYTES = 3, HEAD_BYTES = 4 };

/* Whether these bytes are anywhere, be it as an element or not. */
static bool may_have_longest_literal(const uint8_t *stream, size_t bytes) {
    static const uint8_t longest[] = {0xfc, 0xff, 0xff, 0xff, 0xff};
    for (size_t at = 0; at + sizeof longest <= bytes; at++)
        if (memcmp(stream + at, longest, sizeof longest) == 0)
            return true;
    return false;
}

static void compare(const uint8_t *stream, size_t stored_bytes, size_t plain_bytes) {
    uint8_t *plain = calloc(plain_bytes + 1, 1), *wanted = calloc(plain_bytes + 1, 1);
    if (plain && wanted) {
        /* at the end of its memory */
        uint8_t *given = plain_bytes ? realloc(plain, plain_bytes) : plain;
        size_t bytes = plain_bytes;
        plain = given ? given : plain;
        const bool good =
            snappy_uncompress((const char *)stream, stored_bytes, (char *)wanted, &bytes) == SNAPPY_OK;
        const bool opened = sx_snappy_open(stream, stored_bytes, plain, plain_bytes);
        if (opened ? !good || memcmp(plain, wanted, plain_bytes) != 0
                   : good && !may_have_longest_literal(stream, stored_bytes))
            abort();
    }
    free(plain);
    free(wanted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < LENGTH_BYTES)
        return 0;
    const size_t plain_bytes = data[0] | (size_t)data[1] << 8 | (size_t)(data[2] & 3) << 16;
    const size_t stored_bytes = HEAD_BYTES + size - LENGTH_BYTES;
    uint8_t *stream = malloc(stored_bytes);
    if (!stream)
        return 0;
    for (int i = 0; i < HEAD_BYTES; i++)
        stream[i] = (uint8_t)((plain_bytes >> (7 * i) & 0x7f) | (i < HEAD_BYTES - 1 ? 0x80 : 0));
    memcpy(stream + HEAD_BYTES, data + LENGTH_BYTES, size - LENGTH_BYTES);
    compare(stream, stored_bytes, plain_bytes);
    free(stream);
    return 0;
}
