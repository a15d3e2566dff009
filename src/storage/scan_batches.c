/* Which row groups a caller of a scan gets at a time. */
#include "storage/scan_state.h"

static int64_t within(int64_t rows, int64_t least, int64_t most) {
    return rows < least ? least : rows > most ? most : rows;
}

/* Few and large ones keep a device busy, but some have to overlap; and towards the end they get smaller,
 * since what is done with the last ones overlaps with no reading. `left`: rows that no batch has. */
static int64_t rows_of_batch(const struct sx_scan *scan, int64_t left) {
    enum { BATCHES = 4, LEAST_PART = 8, LAST_PART = 4 };
    const int64_t most = scan->batch_rows;
    const int64_t first = within(scan->total_rows / BATCHES, most / LEAST_PART, most);
    const int64_t last = first < most / LAST_PART ? first : most / LAST_PART;
    return within(left / BATCHES, last, first);
}

/* Whether chunks of the two may be decoded together: writers store values of one type in different ways. */
static bool are_alike(const struct sx_scan *scan, const struct scan_unit *a, const struct scan_unit *b) {
    for (int c = 0; a->file != b->file && c < scan->n_columns; c++)
        if (!sx_column_stored_alike(scan_column(scan, a, c), scan_column(scan, b, c)))
            return false;
    return true;
}

/* Row groups go into a batch as long as it has not too many rows, nor takes more than a part of the queue. */
enum sx_status scan_list_batches(struct sx_scan *scan, struct sx_error *error) {
    enum { PARTS_OF_QUEUE = 4 };
    static const size_t enough_bytes = (size_t)64 << 20; /* for a large copy */
    const size_t part_bytes = scan->queue_bytes / PARTS_OF_QUEUE;
    const size_t most_bytes = part_bytes < enough_bytes ? part_bytes : enough_bytes;
    scan->batches = SX_ARENA_ARRAY(&scan->arena, scan->n_units, struct scan_batch);
    if (!scan->batches)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for a scan");
    int64_t rows = 0, left = scan->total_rows, most_rows = 0;
    size_t bytes = 0;
    for (int u = 0; u < scan->n_units; u++) {
        const int64_t unit_rows = scan_unit_rows(scan, &scan->units[u]);
        const size_t unit_bytes = scan_unit_bytes(scan, &scan->units[u]);
        rows += unit_rows;
        bytes += unit_bytes;
        scan->stored_bytes += (int64_t)unit_bytes;
        if (scan->n_batches > 0 && rows <= most_rows && bytes <= most_bytes &&
            are_alike(scan, &scan->units[u - 1], &scan->units[u])) {
            scan->batches[scan->n_batches - 1].n_units++;
        } else {
            scan->batches[scan->n_batches++] = (struct scan_batch){.first_unit = u, .n_units = 1};
            most_rows = rows_of_batch(scan, left);
            rows = unit_rows;
            bytes = unit_bytes;
        }
        left -= unit_rows;
        scan->units[u].batch = scan->n_batches - 1;
    }
    return SX_OK;
}
