#include "exec/filter_memory.h"

static int place_of(const struct sx_filter_memory *memory, uint64_t probe) {
    int at = 0;
    while (at < SX_FILTER_RECORDS && memory->records[at].probe != probe)
        at++;
    return at;
}

int64_t sx_filter_memory_find(const struct sx_filter_memory *memory, uint64_t probe) {
    const int at = place_of(memory, probe);
    return at < SX_FILTER_RECORDS ? memory->records[at].build_rows : 0;
}

void sx_filter_memory_keep(struct sx_filter_memory *memory, uint64_t probe, int64_t build_rows) {
    int at = place_of(memory, probe);
    if (at == SX_FILTER_RECORDS)
        at = (int)(memory->n_kept++ % SX_FILTER_RECORDS);
    memory->records[at] = (struct sx_filter_record){probe, build_rows};
}
