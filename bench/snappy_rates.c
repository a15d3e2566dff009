/* How fast one core opens snappy: src/tensor/snappy.c beside the library, in GB/s of plain bytes, over the
 * snappy pages of a Parquet file's columns (all, or those that are named). The two take turns; best of
 * REPEATS.
 *
 *     snappy_rates FILE [COLUMN]... */
#include <snappy-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "storage/file.h"
#include "storage/page_walk.h"
#include "tensor/snappy.h"

enum { REPEATS = 7 };
static const size_t most_bytes = (size_t)256 << 20; /* of plain bytes of a column that are looked at */

struct pages {
    struct piece {
        const uint8_t *stored;
        size_t stored_bytes, plain_bytes;
    } *pieces;
    int n, room;
    size_t stored_bytes, plain_bytes, largest_bytes;
    uint8_t **chunks; /* that the pieces lie in */
    int n_chunks;
};

static void fail(const char *what) {
    fprintf(stderr, "snappy_rates: %s\n", what);
    exit(1);
}

static void *must(void *memory) {
    if (!memory)
        fail("no memory");
    return memory;
}

static void add_page(struct pages *pages, const struct sx_page *page) {
    const size_t levels = page->kind == SX_PAGE_DATA_V2 ? page->definition_bytes + page->repetition_bytes : 0;
    if (!page->is_compressed || page->plain_bytes <= levels)
        return;
    if (pages->n == pages->room) {
        pages->room = pages->room ? 2 * pages->room : 64;
        pages->pieces = must(realloc(pages->pieces, (size_t)pages->room * sizeof *pages->pieces));
    }
    const struct piece piece = {page->bytes + levels, page->stored_bytes - levels,
                                page->plain_bytes - levels};
    pages->pieces[pages->n++] = piece;
    pages->stored_bytes += piece.stored_bytes;
    pages->plain_bytes += piece.plain_bytes;
    if (piece.plain_bytes > pages->largest_bytes)
        pages->largest_bytes = piece.plain_bytes;
}

static void add_chunk(struct pages *pages, int fd, struct sx_file_column *column,
                      const struct sx_chunk_meta *chunk) {
    const size_t bytes = (size_t)chunk->stored_bytes;
    struct sx_page_list list = {0};
    struct sx_page_walk walk = {.column = column, .chunk = chunk, .list = &list};
    struct sx_error error = {0};
    uint8_t *stored = must(malloc(bytes + 1));
    if (sx_file_read(fd, sx_chunk_begin(chunk), bytes, stored, &error) != SX_OK ||
        sx_page_walk_chunk(&walk, stored, bytes, &error) != SX_OK)
        fail(error.text);
    for (int p = 0; p < list.count; p++)
        add_page(pages, &list.pages[p]);
    free(list.pages);
    pages->chunks[pages->n_chunks++] = stored;
}

typedef bool opens(const struct piece *piece, uint8_t *plain);

static bool own(const struct piece *piece, uint8_t *plain) {
    return sx_snappy_open(piece->stored, piece->stored_bytes, plain, piece->plain_bytes);
}

static bool library(const struct piece *piece, uint8_t *plain) {
    size_t bytes = piece->plain_bytes;
    return snappy_uncompress((const char *)piece->stored, piece->stored_bytes, (char *)plain, &bytes) ==
               SNAPPY_OK &&
           bytes == piece->plain_bytes;
}

/* Seconds for all pages. */
static double time_pages(const struct pages *pages, opens *open, uint8_t *plain) {
    const int64_t began_ns = sx_clock_ns();
    for (int i = 0; i < pages->n; i++)
        if (!open(&pages->pieces[i], plain))
            fail("a page is damaged");
    return (double)(sx_clock_ns() - began_ns) * 1e-9;
}

static void check(const struct pages *pages, uint8_t *plain, uint8_t *other) {
    for (int i = 0; i < pages->n; i++)
        if (!own(&pages->pieces[i], plain) || !library(&pages->pieces[i], other) ||
            memcmp(plain, other, pages->pieces[i].plain_bytes) != 0)
            fail("the two do not agree");
}

static void measure(const char *name, const struct pages *pages) {
    uint8_t *plain = must(malloc(pages->largest_bytes + 1)), *other = must(malloc(pages->largest_bytes + 1));
    double best[2] = {1e9, 1e9};
    check(pages, plain, other);
    for (int r = 0; r < REPEATS; r++)
        for (int which = 0; which < 2; which++) {
            const double seconds = time_pages(pages, which ? library : own, plain);
            best[which] = seconds < best[which] ? seconds : best[which];
        }
    const double bytes = (double)pages->plain_bytes;
    printf("%-16s %6d %10.2f %8.2f %8.2f %8.2f %6.2f\n", name, pages->n, bytes / 1e6,
           bytes / (double)pages->stored_bytes, bytes / best[0] / 1e9, bytes / best[1] / 1e9,
           best[1] / best[0]);
    free(plain);
    free(other);
}

static void try_column(const struct sx_footer *footer, int fd, int c) {
    struct sx_file_column *column = &footer->columns[c];
    struct pages pages = {.chunks = must(calloc((size_t)footer->n_groups + 1, sizeof(uint8_t *)))};
    for (int g = 0; g < footer->n_groups && pages.plain_bytes < most_bytes; g++) {
        const struct sx_chunk_meta *chunk = &footer->groups[g].chunks[column->leaf];
        if (chunk->codec == SX_CODEC_SNAPPY)
            add_chunk(&pages, fd, column, chunk);
    }
    if (pages.n > 0)
        measure(column->name, &pages);
    for (int i = 0; i < pages.n_chunks; i++)
        free(pages.chunks[i]);
    free(pages.chunks);
    free(pages.pieces);
}

int main(int argc, char **argv) {
    struct sx_file_stamp stamp;
    struct sx_footer *footer = NULL;
    struct sx_error error = {0};
    int fd = -1;
    if (argc < 2)
        fail("usage: snappy_rates FILE [COLUMN]...");
    if (sx_file_open(argv[1], &fd, &stamp, &error) != SX_OK ||
        sx_footer_read(argv[1], fd, stamp.size_bytes, &footer, &error) != SX_OK)
        fail(error.text);
    printf("%-16s %6s %10s %8s %8s %8s %6s\n", "column", "pages", "plain MB", "ratio", "GB/s", "library",
           "times");
    for (int a = 2; a < argc; a++) {
        const int found = sx_footer_find(footer, argv[a]);
        if (found < 0)
            fail("the file has no such column");
        try_column(footer, fd, found);
    }
    for (int c = 0; argc == 2 && c < footer->n_columns; c++)
        try_column(footer, fd, c);
    sx_footer_release(footer);
    sx_file_close(fd);
    return 0;
}
