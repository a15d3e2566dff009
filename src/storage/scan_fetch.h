/* Fetching a row group: what scan_fetch.c (spans, reading, pages) and scan_cache.c (caches) share. */
#ifndef SX_STORAGE_SCAN_FETCH_H
#define SX_STORAGE_SCAN_FETCH_H

#include "storage/reuse.h"
#include "storage/scan_layout.h"
#include "storage/scan_state.h"

/* Bytes of one column that are wanted together: a whole chunk, a dictionary or neighbouring pages. */
struct span {
    int64_t offset;
    int64_t length_bytes;
    int column;
    int page, n_pages;        /* the first of so many; 0: not pages of the index */
    const uint8_t *bytes;     /* NULL: not read yet */
    struct sx_buffer *buffer; /* borrowed from the extent; from the cache: one reference */
    bool is_cached;
    bool is_cold;                  /* came from the disk */
    bool on_device;                /* is read into the device's memory */
    bool is_laid_out;              /* has a place in the batch's layout */
    void *held;                    /* is there, in its cache */
    uint64_t cache_id;             /* of the cache's entry; 0: none */
    uint64_t reuse_id;             /* of what the query's other scans find on the device; 0: nothing */
    struct sx_cached_pages *pages; /* of the cache; NULL: to be found in the bytes */
};

/* Spans near to each other are read as one. */
struct extent {
    struct sx_read read;
    int first, count; /* in `order` */
    bool on_device;   /* as all of its spans */
    bool is_laid_out; /* is one span that has a place in the batch's layout */
};

struct fetch {
    struct sx_scan *scan;
    const struct scan_unit *unit;
    const struct scan_selection *selection;
    struct scan_layout *layout;      /* of the batch */
    struct sx_device_source *device; /* reads what the host need not look at; NULL: nothing */
    struct sx_arena arena;
    bool is_cold;
    struct span *spans; /* by column, then by place in the file */
    int n_spans;
    int *first_span; /* of each column, and one more */
    int *order;      /* spans by place in the file */
    struct extent *extents;
    int n_extents;
    bool takes_held; /* what is on the device already need not be read */
    int n_held;
};

/* ---- scan_cache.c ---- */

/* Fills in the spans that the host's cache has. */
void scan_find_cached(struct fetch *fetch);
/* Of the others those that the device has. */
void scan_find_held(struct fetch *fetch);
/* Spans that the query's other scans read too, and that are not held, get their reuse_id. */
void scan_number_reused(struct fetch *fetch);
/* An extent that has been read goes to the cache, if there is one. */
void scan_keep_extent(struct fetch *fetch, const struct extent *extent);
/* Pages that the walk has appended since the list had `first` were found in the span. */
void scan_note_pages(const struct fetch *fetch, const struct span *span, const struct sx_page_walk *walk,
                     int first);

#endif
