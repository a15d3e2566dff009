/* Where the chunks of a batch go in the host's memory: those of a column behind each other, in the order of
 * the row groups, since one large copy to a device is quicker than many small ones. */
#ifndef SX_STORAGE_SCAN_LAYOUT_H
#define SX_STORAGE_SCAN_LAYOUT_H

#include "storage/scan_state.h"

struct scan_layout_block;

struct scan_layout {
    struct sx_scan *scan;
    const struct scan_batch *batch;
    const struct scan_selection *selections; /* of its units */
    struct scan_layout_block *blocks;        /* of each column; NULL: every chunk has memory of its own */
    bool is_direct;                          /* chunks may be read past the page cache */
    size_t most_bytes;                       /* of a block */
    bool is_refused;                         /* there was no memory for one */
};

/* Of a batch that one thread is going to read. There is none where copies to a device gain nothing. */
void scan_layout_begin(struct sx_scan *scan, const struct scan_batch *batch,
                       const struct scan_selection *selections, struct scan_layout *out_layout);
void scan_layout_end(struct scan_layout *layout);

/* Whether the column's chunk of the unit may have a place in it: it is read, and as a whole. */
bool scan_layout_has(const struct scan_layout *layout, const struct scan_unit *unit, int column);
/* Room for one that it has, as sx_read has it, where there is memory. */
void scan_layout_take(struct scan_layout *layout, const struct scan_unit *unit, int column,
                      struct sx_read *read);

/* What was kept in the cache of the column's block before; NULL: nothing, or it is another buffer. */
const struct sx_chunk_place *scan_layout_beside(const struct scan_layout *layout, int column,
                                                const struct sx_buffer *buffer);
void scan_layout_note_kept(struct scan_layout *layout, int column, const struct sx_buffer *buffer,
                           const struct sx_chunk_place *place);

#endif
