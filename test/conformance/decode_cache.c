/* What decoders bring to a device stays there: it is found again, as it was; never where it is damaged, and
 * never another's. */
#include <pthread.h>
#include <string.h>

#include "decode_chunk.h"

enum { ROWS = 300, LARGE_BYTES = 64 << 20 };

static struct sx_cache_usage usage_of(const struct conformance *c) {
    return c->backend->cache_usage(c->backend);
}

/* INT64 or VARCHAR in three pages at least, not all of one kind. */
static enum sx_status make_chunk(struct conformance *c, enum sx_type_id type, enum sx_parquet_codec codec,
                                 struct chunk *chunk) {
    int kind = 0;
    while (decode_cases[kind].type.id != type)
        kind++;
    for (;;) {
        SX_TRY(chunk_make(c, &decode_cases[kind], SX_ENCODING_PLAIN, ROWS, 0.2, chunk));
        if (chunk->spec.codec == codec && chunk->n_pages >= 3 && chunk->pages[1].stored_bytes > 0)
            return SX_OK;
        chunk_release(chunk);
        *chunk = (struct chunk){0};
    }
}

/* Pages and spans of the chunk from `first` on; those in front are pruned. */
struct view {
    struct sx_page pages[DECODE_MAX_PAGES];
    struct sx_stored_chunk stored;
    int64_t first_row;
};

static void look_at(const struct chunk *chunk, bool is_whole, int first, struct view *view) {
    view->first_row = 0;
    for (int i = 0; i < chunk->n_pages; i++) {
        view->pages[i] = chunk->pages[i];
        if (i >= first)
            continue;
        view->pages[i].bytes = NULL;
        view->first_row += chunk->pages[i].n_values;
    }
    view->stored = (struct sx_stored_chunk){.spec = chunk->spec,
                                            .pages = view->pages,
                                            .n_pages = chunk->n_pages,
                                            .spans = is_whole ? &chunk->spans[0] : &chunk->spans[1 + first],
                                            .n_spans = is_whole ? 1 : chunk->n_pages - first,
                                            .owner = chunk->owner};
}

/* Rows [first, end) of a column; its strings may lie in the cache, so they are copied before the decoder
 * goes. */
static enum sx_status read_view(struct conformance *c, const struct view *view, int64_t end,
                                const struct sx_tensor *selection, struct sx_tensor *out_host) {
    const struct sx_backend_ops *ops = &c->backend->ops;
    struct sx_decoder *decoder = NULL;
    struct sx_tensor out = {0};
    struct sx_decode_place place;
    enum sx_status status = chunk_open(c, &view->stored, &decoder);
    const struct sx_decode_part part = {decoder, view->first_row, end - view->first_row};
    const struct sx_column_read read = {&part, 1, &out};
    if (status == SX_OK)
        status = ops->decode(c->stream, &read, 1, selection, &place);
    ops->decoder_destroy(c->stream, decoder);
    if (status == SX_OK)
        status = conformance_receive(c, &out, out_host);
    sx_tensor_release(&out);
    return status;
}

static bool is_right(const struct chunk *chunk, const struct view *view, const struct sx_tensor *got) {
    for (int64_t i = 0; i < got->length; i++) {
        struct sx_scalar wanted, have;
        sx_tensor_scalar(&chunk->host, view->first_row + i, &wanted);
        sx_tensor_scalar(got, i, &have);
        if (!conformance_scalar_equal(&wanted, &have))
            return false;
    }
    return true;
}

static void expect(struct conformance *c, const struct chunk *chunk, const struct view *view,
                   const char *what) {
    struct sx_tensor got = {0};
    const enum sx_status status = read_view(c, view, ROWS, NULL, &got);
    CONFORM(c, status == SX_OK, "decode, %s: %s", what, c->stream->error.text);
    CONFORM(c, status != SX_OK || (got.length == ROWS - view->first_row && is_right(chunk, view, &got)),
            "decode, %s: other values, codec %d", what, (int)chunk->spec.codec);
    sx_tensor_release(&got);
}

/* A second read needs none of the host's bytes. */
static void try_again(struct conformance *c, struct chunk *chunk, bool is_whole) {
    struct view view;
    look_at(chunk, is_whole, 0, &view);
    expect(c, chunk, &view, "first read");
    const struct sx_cache_usage before = usage_of(c);
    CONFORM(c, before.held_bytes > 0 && before.n_entries >= view.stored.n_spans, "decode: nothing is kept");
    memset(chunk->owner->data, 0xa5, chunk->bytes.length);
    expect(c, chunk, &view, "cached");
    const struct sx_cache_usage after = usage_of(c);
    CONFORM(c, after.n_hits - before.n_hits == view.stored.n_spans, "decode: %lld hits of %d",
            (long long)(after.n_hits - before.n_hits), view.stored.n_spans);
    CONFORM(c, after.hit_bytes - before.hit_bytes == (int64_t)chunk->bytes.length, "decode: %lld bytes hit",
            (long long)(after.hit_bytes - before.hit_bytes));
    CONFORM(c, after.held_bytes == before.held_bytes, "decode: a hit is kept again");
    memcpy(chunk->owner->data, chunk->bytes.data, chunk->bytes.length);
}

/* Pages that were pruned come later, and those that were not are found then. */
static void try_pruned(struct conformance *c, struct chunk *chunk) {
    struct view view;
    chunk_renew(chunk);
    look_at(chunk, false, 1, &view);
    expect(c, chunk, &view, "the first page pruned");
    const int64_t n_hits = usage_of(c).n_hits;
    look_at(chunk, false, 0, &view);
    expect(c, chunk, &view, "no page pruned");
    CONFORM(c, usage_of(c).n_hits - n_hits == chunk->n_pages - 1,
            "decode: pages of a pruned chunk not found");
}

/* Another id is another content. */
static void try_changed(struct conformance *c, struct chunk *chunk) {
    struct chunk other = {0};
    struct view view;
    if (make_chunk(c, chunk->spec.type.id, chunk->spec.codec, &other) != SX_OK)
        CONFORM(c, false, "decode: %s", c->error.text);
    look_at(chunk, true, 0, &view);
    expect(c, chunk, &view, "before a change");
    look_at(&other, true, 0, &view);
    expect(c, &other, &view, "after a change");
    look_at(chunk, true, 0, &view);
    expect(c, chunk, &view, "changed back");
    chunk_release(&other);
}

/* The last page is damaged: what is in front of it can be read, and the page is never good. */
static void try_damaged(struct conformance *c, struct chunk *chunk) {
    const struct sx_page *last = &chunk->pages[chunk->n_pages - 1];
    uint8_t *bytes = (uint8_t *)chunk->owner->data + chunk->offsets[chunk->n_pages - 1];
    struct sx_tensor got = {0};
    struct view view;
    if (chunk->spec.codec == SX_CODEC_UNCOMPRESSED || last->stored_bytes == last->definition_bytes)
        return; /* nothing is compressed */
    chunk_renew(chunk);
    memset(bytes + last->definition_bytes, 0xff, last->stored_bytes - last->definition_bytes);
    look_at(chunk, true, 0, &view);
    for (int i = 0; i < 3; i++) {
        enum sx_status status = read_view(c, &view, ROWS - last->n_values, NULL, &got);
        CONFORM(c, status == SX_OK && is_right(chunk, &view, &got), "decode, in front of damage: %s",
                c->stream->error.text);
        sx_tensor_release(&got);
        status = read_view(c, &view, ROWS, NULL, &got);
        CONFORM(c, status == SX_FILE, "decode: a damaged page gives status %d", (int)status);
    }
    memcpy(chunk->owner->data, chunk->bytes.data, chunk->bytes.length);
    chunk_renew(chunk);
    look_at(chunk, true, 0, &view);
    expect(c, chunk, &view, "damage repaired");
}

/* The last of so many readers leaves nothing behind. */
static void try_readers(struct conformance *c, struct chunk *chunk) {
    enum { N_READERS = 3 };
    const struct sx_cache_usage before = usage_of(c);
    struct view view;
    chunk_renew(chunk);
    chunk->spans[0].n_readers = N_READERS;
    look_at(chunk, true, 0, &view);
    for (int i = 0; i < 2 * N_READERS; i++) {
        expect(c, chunk, &view, "one of some readers");
        const struct sx_cache_usage after = usage_of(c);
        const bool is_last = i % N_READERS == N_READERS - 1;
        CONFORM(c, after.n_entries == before.n_entries + !is_last, "decode: %lld entries after reader %d",
                (long long)(after.n_entries - before.n_entries), i);
        CONFORM(c, is_last == (after.held_bytes == before.held_bytes),
                "decode: %zu bytes held after reader %d", after.held_bytes - before.held_bytes, i);
    }
    CONFORM(c, usage_of(c).n_hits - before.n_hits == 2 * (N_READERS - 1), "decode: readers did not find it");
    chunk->spans[0].n_readers = 0;
    chunk_renew(chunk);
}

/* Values that were decoded are there for later readers, until the last has been; not more of them than there
 * is room for. */
static void try_values(struct conformance *c, bool has_room) {
    enum { N_READERS = 3 };
    struct chunk chunk = {.is_required = true};
    struct view view;
    int kind = 0;
    while (decode_cases[kind].type.id != SX_TYPE_I64)
        kind++;
    if (chunk_make(c, &decode_cases[kind], SX_ENCODING_DELTA_BINARY_PACKED, ROWS, 0, &chunk) != SX_OK)
        CONFORM(c, false, "decode: %s", c->error.text);
    const size_t bytes = ROWS * sizeof(int64_t);
    c->backend->cache_limit(c->backend, 0, 0);
    c->backend->cache_limit(c->backend, LARGE_BYTES, has_room ? bytes : bytes - 1);
    const struct sx_cache_usage before = usage_of(c);
    chunk.spans[0].n_readers = N_READERS;
    look_at(&chunk, true, 0, &view);
    for (int i = 0; i < N_READERS; i++) {
        expect(c, &chunk, &view, "one of some readers");
        const struct sx_cache_usage after = usage_of(c);
        const bool is_there = has_room && i < N_READERS - 1;
        CONFORM(c, after.values_bytes == (is_there ? bytes : 0),
                "decode: %zu bytes of values after reader %d", after.values_bytes, i);
        CONFORM(c, after.n_values_taken - before.n_values_taken == (has_room ? i : 0),
                "decode: reader %d did not take what was decoded", i);
    }
    chunk_release(&chunk);
    c->backend->cache_limit(c->backend, LARGE_BYTES, 0);
}

/* One page of PLAIN timestamps in milliseconds, as they are. */
static enum sx_status make_millis(struct conformance *c, struct chunk *chunk) {
    int kind = 0;
    while (decode_cases[kind].conversion != SX_CONVERT_MILLIS)
        kind++;
    for (;;) {
        chunk->is_whole = true;
        SX_TRY(chunk_make(c, &decode_cases[kind], SX_ENCODING_PLAIN, ROWS, 0, chunk));
        if (chunk->spec.codec == SX_CODEC_UNCOMPRESSED && chunk->n_pages == 1)
            return SX_OK;
        chunk_release(chunk);
        *chunk = (struct chunk){0};
    }
}

/* A value that does not fit, in a row that nobody has asked for yet, is no error, though a later reader may
 * want it. */
static void try_unwanted(struct conformance *c) {
    struct chunk chunk = {0};
    struct view view;
    struct sx_tensor host_selection = {0}, selection = {0}, got = {0};
    const int64_t bad = (int64_t)below(c, ROWS), too_large = INT64_MAX - 1;
    enum sx_status status;
    SX_GO(make_millis(c, &chunk));
    memcpy((uint8_t *)chunk.owner->data + chunk.offsets[0] + (size_t)bad * sizeof too_large, &too_large,
           sizeof too_large);
    chunk.spans[0].n_readers = 2;
    look_at(&chunk, true, 0, &view);
    SX_GO(sx_tensor_create_index(c->pool, SX_TYPE_I32, ROWS - 1, &host_selection, &c->error));
    for (int32_t i = 0; i < ROWS - 1; i++)
        ((int32_t *)host_selection.values)[i] = i + (i >= bad);
    SX_GO(conformance_send(c, &host_selection, &selection));
    SX_GO(read_view(c, &view, ROWS, &selection, &got));
    for (int32_t i = 0; i < ROWS - 1; i++) {
        struct sx_scalar wanted, have;
        sx_tensor_scalar(&chunk.host, i + (i >= bad), &wanted);
        sx_tensor_scalar(&got, i, &have);
        CONFORM(c, conformance_scalar_equal(&wanted, &have),
                "decode: row %d beside a value that is too large", i);
    }
    sx_tensor_release(&got);
    status = read_view(c, &view, ROWS, NULL, &got);
    CONFORM(c, status == SX_FILE, "decode: a value that is too large gives status %d", (int)status);
    status = SX_OK;
out:
    CONFORM(c, status == SX_OK, "decode: %s", c->stream->error.text);
    sx_tensor_release(&host_selection);
    sx_tensor_release(&selection);
    sx_tensor_release(&got);
    chunk_release(&chunk);
}

/* Least recently used first. */
static void try_limits(struct conformance *c, struct chunk *chunks, int n) {
    struct view view;
    c->backend->cache_limit(c->backend, 0, 0);
    CONFORM(c, usage_of(c).held_bytes == 0 && usage_of(c).n_entries == 0,
            "decode: a cache that is off holds");
    look_at(&chunks[0], true, 0, &view);
    expect(c, &chunks[0], &view, "cache off");
    CONFORM(c, usage_of(c).held_bytes == 0, "decode: kept though the cache is off");
    c->backend->cache_limit(c->backend, LARGE_BYTES, 0);
    expect(c, &chunks[0], &view, "one chunk");
    const size_t one_bytes = usage_of(c).held_bytes, limit_bytes = one_bytes * 5 / 2;
    c->backend->cache_limit(c->backend, limit_bytes, 0);
    for (int i = 0; i < 5 * n; i++) {
        look_at(&chunks[i % n], i % 2, 0, &view);
        expect(c, &chunks[i % n], &view, "a small cache");
        CONFORM(c, usage_of(c).held_bytes <= limit_bytes, "decode: %zu bytes held, the limit is %zu",
                usage_of(c).held_bytes, limit_bytes);
    }
    c->backend->cache_limit(c->backend, LARGE_BYTES, 0);
}

enum { N_CHUNKS = 6, N_USERS = 4, N_READS = 40 };

struct user {
    struct conformance c;
    const struct chunk *chunks;
};

static void *use(void *context) {
    struct user *user = context;
    struct view view;
    for (int i = 0; i < N_READS; i++) {
        const struct chunk *chunk = &user->chunks[below(&user->c, N_CHUNKS)];
        look_at(chunk, below(&user->c, 2), 0, &view);
        expect(&user->c, chunk, &view, "several users");
    }
    return NULL;
}

/* Each with a stream, while entries come and go. */
static void try_users(struct conformance *c, const struct chunk *chunks) {
    struct user users[N_USERS];
    pthread_t threads[N_USERS];
    c->backend->cache_limit(c->backend, 20000, 0);
    for (int i = 0; i < N_USERS; i++) {
        users[i] = (struct user){*c, chunks};
        users[i].c.random_state += (uint64_t)i;
        users[i].c.checks = users[i].c.failures = 0;
        if (c->backend->ops.stream_create(c->backend, c->pool, NULL, &users[i].c.stream, &c->error) != SX_OK)
            CONFORM(c, false, "no stream: %s", c->error.text);
    }
    for (int i = 0; i < N_USERS; i++)
        CONFORM(c, pthread_create(&threads[i], NULL, use, &users[i]) == 0, "no thread");
    for (int i = 0; i < N_USERS; i++) {
        pthread_join(threads[i], NULL);
        c->checks += users[i].c.checks;
        c->failures += users[i].c.failures;
        c->backend->ops.stream_destroy(users[i].c.stream);
    }
}

void conform_decode_cache(struct conformance *c) {
    static const enum sx_parquet_codec codecs[] = {SX_CODEC_UNCOMPRESSED, SX_CODEC_SNAPPY, SX_CODEC_ZSTD};
    struct chunk chunks[N_CHUNKS] = {0};
    c->backend->cache_limit(c->backend, LARGE_BYTES, 0);
    for (int i = 0; i < N_CHUNKS; i++) {
        const enum sx_type_id type = i % 2 ? SX_TYPE_VARCHAR : SX_TYPE_I64;
        if (make_chunk(c, type, codecs[i / 2], &chunks[i]) != SX_OK)
            CONFORM(c, false, "decode: %s", c->error.text);
        if (!conformance_takes(c))
            continue;
        try_again(c, &chunks[i], true);
        try_again(c, &chunks[i], false);
        try_pruned(c, &chunks[i]);
        try_changed(c, &chunks[i]);
        try_damaged(c, &chunks[i]);
        try_readers(c, &chunks[i]);
    }
    if (conformance_takes(c)) {
        try_values(c, true);
        try_values(c, false);
    }
    c->backend->cache_limit(c->backend, LARGE_BYTES, LARGE_BYTES);
    if (conformance_takes(c))
        try_unwanted(c);
    c->backend->cache_limit(c->backend, LARGE_BYTES, 0);
    if (conformance_takes(c))
        try_limits(c, chunks, N_CHUNKS);
    if (conformance_takes(c))
        try_users(c, chunks);
    c->backend->cache_limit(c->backend, 0, 0);
    for (int i = 0; i < N_CHUNKS; i++)
        chunk_release(&chunks[i]);
}
