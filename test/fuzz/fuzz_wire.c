/* Arbitrary bytes as a message of another rank: reading ends, stays within the message, and gives all of its
 * memory back. Layout of an input: 16 bytes, the number of columns and their types; then the message. */
#include <stdlib.h>
#include <string.h>

#include "tensor/wire.h"

enum { HEAD_BYTES = 16, MOST_COLUMNS = HEAD_BYTES - 1, POOL_BYTES = 64 << 20 };

static struct sx_type type_of(uint8_t byte) {
    const enum sx_type_id id = (enum sx_type_id)(byte % (SX_TYPE_COUNT + 1));
    if (id == SX_TYPE_COUNT)
        return sx_type_decimal(30, 4);
    return id == SX_TYPE_DECIMAL ? sx_type_decimal(12, 2) : sx_type_of(id);
}

/* Every value that came can be read. */
static uint64_t touch(const struct sx_batch *batch) {
    uint64_t sum = 0;
    for (int c = 0; c < batch->n_columns; c++)
        for (int64_t i = 0; i < batch->rows && i < 100000; i++) {
            struct sx_scalar scalar;
            sx_tensor_scalar(&batch->columns[c], i, &scalar);
            if (!scalar.is_null && scalar.type.id == SX_TYPE_VARCHAR)
                for (uint32_t b = 0; b < scalar.v.text.length_bytes; b++)
                    sum += (uint8_t)scalar.v.text.bytes[b];
        }
    return sum;
}

static void read_message(struct sx_pool *pool, const struct sx_type *types, int32_t n_columns,
                         const uint8_t *data, size_t size) {
    struct sx_buffer *message;
    struct sx_error error = {0};
    static volatile uint64_t kept;
    if (sx_buffer_create(pool, size, &message, &error) != SX_OK)
        return;
    memcpy(message->data, data, size);
    struct sx_wire_reader reader = {message, size, types, n_columns, 0};
    while (reader.offset < size) {
        struct sx_batch batch = {0};
        int64_t sequence;
        if (sx_wire_unpack(&reader, pool, &batch, &sequence, &error) != SX_OK)
            break;
        kept = kept + touch(&batch);
        sx_batch_release(&batch);
    }
    sx_buffer_release(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct sx_type types[MOST_COLUMNS];
    struct sx_pool *pool;
    if (size <= HEAD_BYTES || sx_pool_create(POOL_BYTES, &pool, NULL) != SX_OK)
        return 0;
    for (int c = 0; c < MOST_COLUMNS; c++)
        types[c] = type_of(data[1 + c]);
    read_message(pool, types, data[0] % (MOST_COLUMNS + 1), data + HEAD_BYTES, size - HEAD_BYTES);
    if (sx_pool_usage(pool).used_bytes != 0)
        abort();
    sx_pool_destroy(pool);
    return 0;
}
