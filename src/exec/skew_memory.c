#include "exec/skew_memory.h"

#include <stddef.h>

static struct sx_skew_record *find(struct sx_skew_memory *memory, uint64_t sample) {
    for (int i = 0; i < SX_SKEW_RECORDS; i++)
        if (memory->records[i].used > 0 && memory->records[i].sample == sample)
            return &memory->records[i];
    return NULL;
}

static struct sx_skew_record *least_recent(struct sx_skew_memory *memory) {
    struct sx_skew_record *least = memory->records;
    for (int i = 1; i < SX_SKEW_RECORDS; i++)
        if (memory->records[i].used < least->used)
            least = &memory->records[i];
    return least;
}

const struct sx_heavy_list *sx_skew_memory_find(struct sx_skew_memory *memory, uint64_t sample) {
    struct sx_skew_record *record = find(memory, sample);
    if (!record)
        return NULL;
    record->used = ++memory->uses;
    return &record->list;
}

void sx_skew_memory_keep(struct sx_skew_memory *memory, uint64_t sample, const struct sx_heavy_list *list) {
    struct sx_skew_record *record = find(memory, sample);
    if (!record)
        record = least_recent(memory);
    *record = (struct sx_skew_record){sample, ++memory->uses, *list};
}
