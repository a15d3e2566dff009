/* Group by of strings that come as dictionaries' codes, of few combinations or too many: first batches, whose
 * groups are all new, and later ones, with groups that are known beside new ones. */
#include "group_case.h"

void conform_group_coded(struct conformance *c) {
    enum { MOST_CODED = 4, SMALL_CHUNK = 40, ROWS = 2000 };
    static const struct sx_type types[MOST_CODED] = {
        {SX_TYPE_VARCHAR, 0, 0}, {SX_TYPE_VARCHAR, 0, 0}, {SX_TYPE_VARCHAR, 0, 0}, {SX_TYPE_VARCHAR, 0, 0}};
    static const int64_t chunks[] = {SMALL_CHUNK, 500, ROWS};
    const struct sx_aggregate_spec aggregates[] = {group_aggregate_of(SX_AGG_COUNT_STAR, TYPE(I8)),
                                                   group_aggregate_of(SX_AGG_SUM, DECIMAL(15, 2)),
                                                   group_aggregate_of(SX_AGG_MAX, TYPE(VARCHAR))};
    for (int n_keys = 1; n_keys <= MOST_CODED; n_keys++)
        for (int chunk = 0; chunk < 3; chunk++)
            for (int v = 0; v < 6; v++) {
                const struct sx_group_spec spec = {n_keys, types, v % 3 == 2 ? 0 : 3, aggregates, 1, 0};
                const struct group_shape shape = {.rows = ROWS,
                                                  .fill = FILL_FEW_VALUES,
                                                  .null_share = v == 5 ? 0.1 : 0,
                                                  .n_workers = 1 + v % MAX_WORKERS,
                                                  .dictionaries = true,
                                                  .filtered = v == 4,
                                                  .chunk_rows = chunks[chunk]};
                char what[64];
                snprintf(what, sizeof what, "%d coded keys, %lld rows a chunk", n_keys,
                         (long long)chunks[chunk]);
                group_check_shape(c, &spec, &shape, what);
            }
}
