#include "api/alone_memory.h"

#include <stddef.h>
#include <string.h>

#include "tensor/semantics.h"

enum {
    MOST_GIVEN_UP = 2,
    MORE_PATIENCE = 4, /* once it was given up */
    RUNS_TO_JUDGE = 2  /* each way's, the first of which may have had to read what the second one has */
};

/* Below it all ranks together would not be sooner: two exchanges of GPUs take that long (2.5 ms each; ten of
 * processes). */
static const int64_t quick_ns = 5000000;

static uint64_t hash_of(const char *sql) {
    return sx_hash_bytes(sql, (uint32_t)strlen(sql));
}

/* NULL: nothing is known of it. */
static const struct sx_alone_record *find(const struct sx_alone_memory *memory, const char *sql) {
    const uint64_t query = hash_of(sql);
    for (int i = 0; i < SX_ALONE_RECORDS; i++)
        if (memory->records[i].used > 0 && memory->records[i].query == query)
            return &memory->records[i];
    return NULL;
}

/* What was given up cost most to learn. */
static bool goes_before(const struct sx_alone_record *a, const struct sx_alone_record *b) {
    const bool given_up_a = a->n_given_up > 0, given_up_b = b->n_given_up > 0;
    return given_up_a != given_up_b ? given_up_b : a->used < b->used;
}

static struct sx_alone_record *touch(struct sx_alone_memory *memory, const char *sql) {
    const struct sx_alone_record *found = find(memory, sql);
    struct sx_alone_record *record = found ? &memory->records[found - memory->records] : memory->records;
    for (int i = 1; i < SX_ALONE_RECORDS && !found; i++)
        if (goes_before(&memory->records[i], record))
            record = &memory->records[i];
    if (!found)
        *record = (struct sx_alone_record){.query = hash_of(sql)};
    record->used = ++memory->uses;
    return record;
}

enum sx_alone_way sx_alone_memory_way(const struct sx_alone_memory *memory, const char *sql) {
    const struct sx_alone_record *record = find(memory, sql);
    if (!record)
        return SX_WAY_ALONE;
    if (record->n_given_up >= MOST_GIVEN_UP)
        return SX_WAY_TOGETHER;
    if (record->n_runs[SX_WAY_ALONE] > 0 && record->least_ns[SX_WAY_ALONE] < quick_ns)
        return SX_WAY_ALONE;
    for (int way = 0; way < SX_WAYS; way++)
        if (record->n_runs[way] < RUNS_TO_JUDGE)
            return (enum sx_alone_way)way;
    return record->least_ns[SX_WAY_TOGETHER] < record->least_ns[SX_WAY_ALONE] ? SX_WAY_TOGETHER
                                                                              : SX_WAY_ALONE;
}

int sx_alone_memory_patience(const struct sx_alone_memory *memory, const char *sql) {
    const struct sx_alone_record *record = find(memory, sql);
    return record && record->n_given_up > 0 ? MORE_PATIENCE : 1;
}

void sx_alone_memory_gave_up(struct sx_alone_memory *memory, const char *sql) {
    touch(memory, sql)->n_given_up++;
}

void sx_alone_memory_ran(struct sx_alone_memory *memory, const char *sql, enum sx_alone_way way, int64_t ns) {
    if (ns < quick_ns && !find(memory, sql))
        return; /* as before, and nothing is to be judged */
    struct sx_alone_record *record = touch(memory, sql);
    if (record->n_runs[way]++ == 0 || ns < record->least_ns[way])
        record->least_ns[way] = ns;
}

void sx_alone_memory_failed_together(struct sx_alone_memory *memory, const char *sql) {
    if (!find(memory, sql))
        return;
    struct sx_alone_record *record = touch(memory, sql);
    record->n_runs[SX_WAY_TOGETHER] = RUNS_TO_JUDGE;
    record->least_ns[SX_WAY_TOGETHER] = INT64_MAX;
}
