#include <stdio.h>

#include "storage/footer.h"

static const char *const codecs[] = {"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO",
                                     "BROTLI",       "LZ4",    "ZSTD", "LZ4_RAW"};

static const char *const encodings[] = {
    "PLAIN",
    "GROUP_VAR_INT",
    "PLAIN_DICTIONARY",
    "RLE",
    "BIT_PACKED",
    "DELTA_BINARY_PACKED",
    "DELTA_LENGTH_BYTE_ARRAY",
    "DELTA_BYTE_ARRAY",
    "RLE_DICTIONARY",
    "BYTE_STREAM_SPLIT",
    "ALP",
};

static const char *name_of(const char *const *names, int32_t n_names, int32_t number, char *buffer) {
    const char *name = number >= 0 && number < n_names ? names[number] : "unknown";
    snprintf(buffer, SX_FORMAT_NAME_BYTES, "%s (%d)", name, number);
    return buffer;
}

const char *sx_codec_name(int32_t codec, char buffer[SX_FORMAT_NAME_BYTES]) {
    return name_of(codecs, (int32_t)(sizeof codecs / sizeof *codecs), codec, buffer);
}

const char *sx_encoding_name(int32_t encoding, char buffer[SX_FORMAT_NAME_BYTES]) {
    return name_of(encodings, (int32_t)(sizeof encodings / sizeof *encodings), encoding, buffer);
}

bool sx_codec_is_known(int32_t codec) {
    return codec >= SX_CODEC_UNCOMPRESSED && codec <= SX_CODEC_LZ4_RAW && codec != 3;
}

bool sx_encoding_is_known(int32_t encoding) {
    return encoding >= SX_ENCODING_PLAIN && encoding <= SX_ENCODING_BYTE_STREAM_SPLIT && encoding != 1;
}
