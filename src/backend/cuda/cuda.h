/* The CUDA backend: the host's side of every primitive, in C; kernels are in the .cu files of the same stems,
 * behind the functions of launch.h.
 *
 * Rules
 * - A primitive begins with cuda_enter(stream) and issues to stream->handle only; cuda_read alone has
 * another.
 * - Device memory comes from stream->base.pool (sx_tensor_create, sx_buffer_create and so on work on it; the
 * host never touches what they give). It may be released as soon as the work that uses it has been issued:
 * see memory.c.
 * - The host learns counts and faults of kernels through the control block, at cuda_sync and nowhere else.
 * - Host memory that a copy reads or writes is pinned: cuda_upload and cuda_download take care of that. */
#ifndef SX_BACKEND_CUDA_CUDA_H
#define SX_BACKEND_CUDA_CUDA_H

#include <pthread.h>

#include <cuda_runtime_api.h>

#include "backend/cuda/launch.h"
#include "backend/cuda/load.h"
#include "tensor/backend.h"

enum { CUDA_MAX_STREAMS = 256, CUDA_DOWNLOADS = 64 };

struct cuda_stream;
struct cuda_cache;

/* Tells other streams what may still be at work; see memory.c. */
struct cuda_clock {
    atomic_bool busy; /* something was issued since the last synchronisation */
    atomic_uint_fast64_t quiet_epoch;
};

/* How stored bytes come over the link; bring.c. */
enum cuda_bring_way {
    CUDA_BRING_NOW,   /* what is decoded next, behind what other workers decode next */
    CUDA_BRING_AHEAD, /* likewise what is decoded some time; the worker's stream does not wait for it */
    CUDA_BRING_FEW, /* CUDA_FEW_BYTES or less, on the worker's stream, behind what that has been asked for */
};

/* Of the first two ways. */
struct cuda_bringer {
    _Atomic(struct cuda_stream *) stream; /* NULL: not yet */
    pthread_mutex_t issuing;              /* of what is issued to it */
};

struct cuda_device {
    struct sx_backend backend; /* first: the streams' backend pointer leads here */
    int ordinal;
    char name[256];
    struct sx_pool *budget; /* bytes of all streams' pools, kept blocks included */
    struct cuda_cache *cache;
    _Atomic(struct sx_pool *) messages; /* memory that other ranks reach, until it is used up; NULL: none */
    atomic_uint_fast64_t epoch;
    pthread_mutex_t lock; /* of `streams` and `idle` */
    struct cuda_stream *streams[CUDA_MAX_STREAMS];
    struct cuda_stream *idle;                   /* those that no query has */
    struct cuda_clock clocks[CUDA_MAX_STREAMS]; /* one a stream */
    atomic_int n_clocks;                        /* so many of the first ones have had a stream */
    /* Of no query, NULL until they are first asked for: */
    pthread_mutex_t making; /* of these, and of: */
    cudaStream_t behind;    /* cuda_behind; NULL: not yet */
    struct cuda_bringer bringers[CUDA_BRING_FEW];
    _Atomic(struct cuda_stream *) keeper; /* memory.c: nothing is issued to it */
    uint32_t inflates;                    /* inflate.h: a bit for each codec */
    bool inflates_few;                    /* however few pages there are */
    int64_t sort_few_rows;                /* sort.h */
    bool reads_host;                      /* kernels reach page-locked memory by the host's addresses */
    atomic_size_t ahead_bytes;            /* decode_ahead.c: brought, and not decoded yet */
    size_t limit_bytes;
};

struct cuda_allocator; /* memory.c */

/* More of a stream's tickets than are mostly waited for one by one. */
enum { CUDA_AHEAD_EVENTS = 16 };
/* Expressions that run one after another without a wait, at most. */
enum { CUDA_UNCHECKED = 8 };

struct cuda_stream {
    struct sx_stream base; /* first; base.pool is the stream's device memory */
    struct cuda_device *device;
    cudaStream_t handle;       /* what work is issued to: one of the next two */
    cudaStream_t usual, first; /* `first` gets room before others (of own streams both); NULL until needed */
    cudaEvent_t switched;      /* from one to the other; likewise */
    struct sx_pool *host_pool; /* tensors in host memory: batch_to_host */
    struct cuda_allocator *allocator;
    struct cuda_control *control; /* on the device */
    struct cuda_reply *reply;     /* pinned; what the last cuda_sync brought */
    /* Since the last one: kernels, or a copy engine, write to the host's memory. */
    bool kernels_land, engine_lands;
    int64_t counters[CUDA_COUNTERS]; /* as they were when they last counted */
    bool is_zero[CUDA_COUNTERS];     /* of those on the device, in the stream's order: they count nothing */
    void *tile_scratch;              /* on the device; zeroed but for kernels that are under way */
    char *staging;                   /* pinned */
    size_t staging_used;
    cudaStream_t aside;                   /* of cuda_read; NULL until it is first needed */
    cudaEvent_t brought;                  /* CUDA_BRING_NOW; NULL until it is first needed */
    cudaEvent_t ahead[CUDA_AHEAD_EVENTS]; /* CUDA_BRING_AHEAD, by turns; likewise */
    int64_t n_ahead;                      /* calls of it; the stream waits for those up to n_awaited */
    int64_t n_awaited;
    struct cuda_clock *clock;
    struct cuda_stream *next_idle;
    uint32_t n_syncs;
    atomic_bool has_taken; /* fresh memory, which is there in the stream's order, since cuda_sync */
    /* Puts words to a fault found at cuda_sync; the object that launched sets it. NULL: a general text. */
    enum sx_status (*describe_fault)(struct cuda_stream *stream, const struct cuda_fault *fault,
                                     const void *context);
    const void *fault_context;
    /* Whose faults the next cuda_sync tells, with their words; see eval_error.c. */
    struct sx_eval *unchecked[CUDA_UNCHECKED];
    int n_unchecked;
};

static inline struct cuda_stream *cuda_stream_of(struct sx_stream *stream) {
    return (struct cuda_stream *)stream;
}

/* ---- stream.c ---- */

/* For the calling thread; every thread of the process that calls CUDA does so by this. */
cudaError_t cuda_choose_device(int ordinal);
/* Until all that was issued to the device is done; it is the calling thread's then. */
void cuda_wait(const struct cuda_device *device);

void cuda_stream_free(struct cuda_stream *stream);
/* One of the device's own, made when it is first asked for. */
SX_MUST_CHECK enum sx_status cuda_own_stream(struct cuda_stream *stream, _Atomic(struct cuda_stream *) *own,
                                             struct cuda_stream **out_own);
/* Call first in every primitive that issues work. SX_CANCELLED when the query is. */
SX_MUST_CHECK enum sx_status cuda_enter(struct sx_stream *stream, struct cuda_stream **out_stream);
/* Waits for all that was issued, and brings the counters. Fails with the fault of a kernel, if there was one.
 * `why` (a literal): what the host waits for, for errors and the trace. */
SX_MUST_CHECK enum sx_status cuda_sync(struct cuda_stream *stream, const char *why);
/* The same where nothing goes on counting: all counters are zero then, so that the next ones need no reset.
 */
SX_MUST_CHECK enum sx_status cuda_sync_counters(struct cuda_stream *stream, const char *why);
/* For kernels that get what room of the device all others leave. One for all, so that what is issued to it
 * goes in its order; the allocators know nothing of it: what it uses has to stay until a stream that they
 * know waits for it. */
SX_MUST_CHECK enum sx_status cuda_behind(struct cuda_stream *stream, cudaStream_t *out_handle);
/* Of a runtime call or a launch. */
SX_MUST_CHECK enum sx_status cuda_check(struct cuda_stream *stream, cudaError_t result, const char *what);
/* After launches, before anything that they use is released. */
SX_MUST_CHECK enum sx_status cuda_launched(struct cuda_stream *stream, const char *what);

/* Counter `i` on the device, for kernels that write it whatever it was. */
int64_t *cuda_counter_place(struct cuda_stream *stream, int i);
/* Counter `i` on the device, set to zero (in stream order); its value is at cuda_counter after cuda_sync. */
SX_MUST_CHECK enum sx_status cuda_counter_reset(struct cuda_stream *stream, int i, int64_t **out_device);
int64_t cuda_counter(const struct cuda_stream *stream, int i);
/* Scratch memory for a kernel of `n_tiles` that look back: the stream's own, or *out_made (else NULL), the
 * caller's. */
SX_MUST_CHECK enum sx_status cuda_tile_scratch(struct cuda_stream *stream, int64_t n_tiles,
                                               struct sx_buffer **out_made, void **out_scratch);
/* The same for cuda_select_flags over `n` flags. */
SX_MUST_CHECK enum sx_status cuda_select_scratch(struct cuda_stream *stream, int64_t n,
                                                 struct sx_buffer **out_made, void **out_scratch);
/* `n` of them from `first` on. */
SX_MUST_CHECK enum sx_status cuda_counters_reset(struct cuda_stream *stream, int first, int n);

/* Copies from and to pageable memory by way of pinned memory. Upload: `from` may be reused at once. Download:
 * synchronises; `why` as in cuda_sync. */
SX_MUST_CHECK enum sx_status cuda_upload(struct cuda_stream *stream, void *device, const void *from,
                                         size_t bytes);
SX_MUST_CHECK enum sx_status cuda_download(struct cuda_stream *stream, void *to, const void *device,
                                           size_t bytes, const char *why);
/* As cuda_upload to memory at a multiple of 8 bytes, but issued with others (`uploads` starts zeroed), by
 * cuda_uploads_issue at the latest; nothing may be waited for in between. */
SX_MUST_CHECK enum sx_status cuda_upload_later(struct cuda_stream *stream, struct cuda_copies *uploads,
                                               void *device, const void *from, size_t bytes);
SX_MUST_CHECK enum sx_status cuda_uploads_issue(struct cuda_stream *stream, struct cuda_copies *uploads);
/* Downloads that are waited for together. */
struct cuda_downloads {
    struct cuda_copies copies; /* that are still to be issued */
    int n;
    struct cuda_landing {
        void *to;
        const char *from; /* staging memory */
        size_t bytes;
    } landings[CUDA_DOWNLOADS];
};
/* As cuda_download, but `to` has the bytes when cuda_downloads_land has returned; until then nothing may be
 * uploaded, nothing waited for, and the device's bytes stay. */
SX_MUST_CHECK enum sx_status cuda_download_later(struct cuda_stream *stream, struct cuda_downloads *downloads,
                                                 void *to, const void *device, size_t bytes, const char *why);
/* Synchronises; the list is empty then. */
SX_MUST_CHECK enum sx_status cuda_downloads_land(struct cuda_stream *stream, struct cuda_downloads *downloads,
                                                 const char *why);
/* A copy of device memory that no work writes that is still to be done: does not wait for what the stream has
 * been asked for. */
SX_MUST_CHECK enum sx_status cuda_read(struct cuda_stream *stream, void *to, const void *device, size_t bytes,
                                       const char *why);
/* From pinned memory, which must stay as it is until the next synchronisation. */
SX_MUST_CHECK enum sx_status cuda_upload_pinned(struct cuda_stream *stream, void *device, const void *from,
                                                size_t bytes);
/* The same for a few, by a kernel if both are at multiples of 8, which does not wait for what the copy engine
 * has been asked to bring. */
SX_MUST_CHECK enum sx_status cuda_upload_few(struct cuda_stream *stream, void *device, const void *from,
                                             size_t bytes);
enum { CUDA_FEW_BYTES = 256 << 10 };
/* To pinned memory, which has it after the next synchronisation; few bytes as those above. */
SX_MUST_CHECK enum sx_status cuda_download_pinned(struct cuda_stream *stream, void *to, const void *device,
                                                  size_t bytes, const char *why);
/* A device buffer with a copy of `bytes` of host memory. */
SX_MUST_CHECK enum sx_status cuda_upload_buffer(struct cuda_stream *stream, const void *from, size_t bytes,
                                                struct sx_buffer **out_buffer);

/* What kernels get; the tensor must stay until the work has been issued. */
struct cuda_column cuda_column_of(const struct sx_tensor *tensor);
/* What keeps the bytes of a VARCHAR column's strings, borrowed; may be NULL. */
struct sx_buffer *cuda_heap_of(const struct sx_tensor *column);
/* The same as cuda_column_of for `n` tensors, as an array on the device. */
SX_MUST_CHECK enum sx_status cuda_columns_upload(struct cuda_stream *stream, const struct sx_tensor *tensors,
                                                 int n, struct sx_buffer **out_buffer);

/* Values of a NARROW column, FLAT, to where there is room for them. `to_valid` may be NULL if none is null.
 */
void cuda_widen(struct cuda_stream *stream, const struct sx_tensor *column, void *to, uint8_t *to_valid);
/* Values in FLAT layout (a second owner where they are). */
SX_MUST_CHECK enum sx_status cuda_flatten(struct cuda_stream *stream, const struct sx_tensor *column,
                                          struct sx_tensor *out_flat);

/* Ascending positions (I32) with flags[i] != 0 (device bytes). Synchronises, and so brings faults and
 * counters other than counter 0, which it uses. */
SX_MUST_CHECK enum sx_status cuda_select(struct cuda_stream *stream, const uint8_t *flags, int64_t n,
                                         struct sx_tensor *out_index);

/* ---- bring.c ---- */

/* In front of the two below; few bytes need it not. */
SX_MUST_CHECK enum sx_status cuda_bring_begin(struct cuda_stream *stream, enum cuda_bring_way way);
/* Memory for what is brought that way; but for few bytes other streams may see it. */
SX_MUST_CHECK enum sx_status cuda_bring_memory(struct cuda_stream *stream, enum cuda_bring_way way,
                                               size_t bytes, struct sx_buffer **out_buffer);
/* Issues `n` copies of pinned memory, which must stay as it is until the stream's next synchronisation, to
 * memory of cuda_bring_memory. What is issued to the stream from then on finds the bytes there; after
 * CUDA_BRING_AHEAD, only behind cuda_bring_wait. */
SX_MUST_CHECK enum sx_status cuda_bring(struct cuda_stream *stream, enum cuda_bring_way way,
                                        const struct cuda_bring_copy *copies, int64_t n);
/* Of the next CUDA_BRING_AHEAD. */
static inline int64_t cuda_bring_ticket(const struct cuda_stream *stream) {
    return stream->n_ahead + 1;
}
/* For the copies of the ticket and of all before it; 0: none. */
SX_MUST_CHECK enum sx_status cuda_bring_wait(struct cuda_stream *stream, int64_t ticket);
/* The calling thread waits. */
void cuda_bring_join(const struct cuda_stream *stream, int64_t ticket);

/* ---- cufile.c ---- */

extern const struct sx_device_files_ops sx_cuda_files;

/* ---- library.c ---- */

/* Loads another library: what the environment's `variable` names, or `name` beside this one, in the folder
 * stachio beside it, or where the system looks. NULL: dlerror says why. */
void *cuda_library_open(const char *name, const char *variable);

/* ---- memory.c ---- */

SX_MUST_CHECK enum sx_status cuda_allocator_create(struct cuda_stream *stream, struct sx_error *error);
/* From now on other streams may see what this one has in use. To be called before they can: where an object
 * that workers share was changed, and at the executor's synchronisation. */
void cuda_hand_over(struct cuda_stream *stream);
/* The same for one block of the stream's memory, in use. */
void cuda_share(struct cuda_stream *stream, const void *memory);
/* Memory of what workers share and make larger in turn: where it is released other workers find it, and not
 * only that one of them which happens to need as much again. They are kept from seeing it before it is there.
 */
SX_MUST_CHECK enum sx_status cuda_shared_create(struct cuda_stream *stream, size_t bytes,
                                                struct sx_buffer **out_buffer);
/* Of the device's budget, for memory that is taken past the streams; kept blocks give way. The caller holds
 * no allocator's lock. */
bool cuda_reserve(struct cuda_device *device, size_t bytes);
/* Memory for a message to other ranks. Where they reach it, it is anybody's as soon as it is released: what
 * was issued to it has ended then. */
SX_MUST_CHECK enum sx_status cuda_message_create(struct cuda_stream *stream, size_t bytes,
                                                 struct sx_buffer **out_buffer);
/* Whether what the stream asks for is refused rather than taken from the device's cache. */
void cuda_spare_cache(struct cuda_stream *stream, bool spares);
/* What is still in use is given back when it is released. The stream has been synchronised. */
void cuda_allocator_close(struct cuda_allocator *allocator);

/* ---- words for faults that do not need whoever is at work: group_emit.c, eval_error.c ---- */

enum sx_status cuda_group_describe(struct cuda_stream *stream, const struct cuda_fault *fault);
/* Of an expression; false: it is not of one in the stream's list. */
bool cuda_eval_describe(struct cuda_stream *stream, const struct cuda_fault *fault,
                        enum sx_status *out_status);
/* Empties the list. */
void cuda_eval_all_checked(struct cuda_stream *stream);

/* ---- pinned.c ---- */

/* See struct sx_backend. Where the system refuses to lock memory the pool goes on with pageable memory. */
enum sx_status sx_cuda_io_pool_create(const struct sx_backend *backend, struct sx_pool *budget,
                                      struct sx_pool **out_pool, struct sx_error *error);

/* ---- link.c ---- */

/* See struct sx_backend. */
enum sx_status sx_cuda_link_measure(const struct sx_backend *backend, struct sx_pool *io_pool,
                                    double *out_bytes_per_second, struct sx_error *error);

/* ---- hash.c ---- */

/* Of each row the bits of its keys' hash from `shift` on, at most 8 of them, in a byte; of those that the
 * bloom filter `words` (NULL: there is none) lacks 1 << (64 - shift). Up to CUDA_HASH_KEYS keys. */
SX_MUST_CHECK enum sx_status cuda_digits_of(struct cuda_stream *stream, const struct sx_tensor *keys,
                                            int n_keys, int64_t rows, int shift,
                                            const struct sx_tensor *words, struct sx_buffer **out_digits);

/* ---- the primitives: see struct sx_backend_ops ---- */

enum sx_status sx_cuda_stream_create(const struct sx_backend *backend, struct sx_pool *pool,
                                     const atomic_bool *cancel, struct sx_stream **out_stream,
                                     struct sx_error *error);
void sx_cuda_stream_destroy(struct sx_stream *base);
enum sx_status sx_cuda_synchronise(struct sx_stream *base, const char *why);
enum sx_status sx_cuda_prioritise(struct sx_stream *base, bool is_first);
enum sx_status sx_cuda_batch_rows(struct sx_stream *base, struct sx_batch *batch);
enum sx_status sx_cuda_batch_to_host(struct sx_stream *base, const struct sx_batch *batch,
                                     struct sx_batch *out_batch);
enum sx_status sx_cuda_batch_from_host(struct sx_stream *base, const struct sx_batch *batch,
                                       struct sx_batch *out_batch);
enum sx_status sx_cuda_constant(struct sx_stream *base, const struct sx_scalar *scalar, int64_t length,
                                struct sx_tensor *out_column);
enum sx_status sx_cuda_eval_create(struct sx_stream *base, const struct sx_program *program,
                                   struct sx_eval **out_eval);
void sx_cuda_eval_destroy(struct sx_stream *base, struct sx_eval *eval);
enum sx_status sx_cuda_eval_run(struct sx_stream *base, struct sx_eval *eval, const struct sx_batch *batch,
                                struct sx_tensor *out_columns);
enum sx_status sx_cuda_eval_select(struct sx_stream *base, struct sx_eval *eval, const struct sx_batch *batch,
                                   const struct sx_tensor *selection, struct sx_tensor *out_selection);
enum sx_status sx_cuda_gather(struct sx_stream *base, const struct sx_tensor *column,
                              const struct sx_tensor *index, struct sx_tensor *out_column);
enum sx_status sx_cuda_gather_columns(struct sx_stream *base, const struct sx_tensor *const *columns, int n,
                                      const struct sx_tensor *index, struct sx_tensor *out_columns);
enum sx_status sx_cuda_concat(struct sx_stream *base, struct sx_type type,
                              const struct sx_tensor *const *columns, int64_t n, enum sx_concat how,
                              struct sx_tensor *out_column);
enum sx_status sx_cuda_iota(struct sx_stream *base, enum sx_type_id id, int64_t first, int64_t length,
                            struct sx_tensor *out_index);
enum sx_status sx_cuda_index_to_mask(struct sx_stream *base, const struct sx_tensor *index, int64_t rows,
                                     struct sx_tensor *out_mask);
enum sx_status sx_cuda_mask_to_index(struct sx_stream *base, const struct sx_tensor *mask, bool wanted,
                                     struct sx_tensor *out_index);
enum sx_status sx_cuda_hash(struct sx_stream *base, const struct sx_tensor *keys, int n_keys, int64_t rows,
                            struct sx_tensor *out_hashes);
enum sx_status sx_cuda_partition_keys(struct sx_stream *base, const struct sx_tensor *keys, int n_keys,
                                      int64_t rows, const struct sx_tensor *words, int n_parts,
                                      struct sx_tensor *out_index, int64_t *out_offsets);
enum sx_status sx_cuda_partition(struct sx_stream *base, const struct sx_tensor *hashes, int n_parts,
                                 struct sx_tensor *out_index, int64_t *out_offsets);
enum sx_status sx_cuda_bloom_add(struct sx_stream *base, const struct sx_tensor *hashes,
                                 struct sx_tensor *words);
enum sx_status sx_cuda_bloom_add_keys(struct sx_stream *base, const struct sx_tensor *keys, int n_keys,
                                      int64_t rows, struct sx_tensor *words);
enum sx_status sx_cuda_bloom_merge(struct sx_stream *base, const struct sx_tensor *other,
                                   struct sx_tensor *words);
enum sx_status sx_cuda_bloom_test(struct sx_stream *base, const struct sx_tensor *hashes,
                                  const struct sx_tensor *words, struct sx_tensor *out_selection);
enum sx_status sx_cuda_rows_pack(struct sx_stream *base, const struct sx_batch *batch,
                                 const struct sx_row_parts *parts, int64_t sequence, bool packs,
                                 struct sx_rows_narrow *narrow, struct sx_buffer **out_parts,
                                 size_t *out_plain_bytes, struct sx_batch *out_own);
enum sx_status sx_cuda_rows_unpack(struct sx_stream *base, struct sx_buffer *frame, size_t bytes,
                                   bool from_host, const struct sx_type *types, int n_columns,
                                   const bool *are_moved, struct sx_batch *out_batch, int64_t *out_sequence);
enum sx_status sx_cuda_bytes_to_host(struct sx_stream *base, struct sx_buffer *const *buffers, int n,
                                     struct sx_pool *pool, struct sx_buffer **out_buffers);
enum sx_status sx_cuda_bytes_from_host(struct sx_stream *base, struct sx_buffer *buffer, size_t bytes,
                                       struct sx_buffer **out_buffer);
enum sx_status sx_cuda_bytes_to_send(struct sx_stream *base, const struct sx_buffer *buffer, size_t first,
                                     size_t bytes, struct sx_buffer **out_buffer);
enum sx_status sx_cuda_group_create(struct sx_stream *base, const struct sx_group_spec *spec,
                                    struct sx_group **out_group);
void sx_cuda_group_destroy(struct sx_stream *base, struct sx_group *group);
enum sx_status sx_cuda_group_update(struct sx_stream *base, struct sx_group *group, int worker,
                                    const struct sx_tensor *keys, const struct sx_tensor *inputs,
                                    const struct sx_tensor *filters, int64_t rows);
enum sx_status sx_cuda_group_finish(struct sx_stream *base, struct sx_group *group, int *out_parts,
                                    int64_t *out_most_rows);
enum sx_status sx_cuda_group_emit(struct sx_stream *base, struct sx_group *group, int part, int64_t *cursor,
                                  int64_t max_rows, struct sx_batch *out_batch);
enum sx_status sx_cuda_join_create(struct sx_stream *base, const struct sx_join_spec *spec,
                                   struct sx_join **out_join);
void sx_cuda_join_destroy(struct sx_stream *base, struct sx_join *join);
void sx_cuda_join_expect(struct sx_join *join, int64_t rows);
enum sx_status sx_cuda_join_append(struct sx_stream *base, struct sx_join *join, int worker,
                                   const struct sx_tensor *keys, const struct sx_tensor *payload,
                                   int64_t rows);
enum sx_status sx_cuda_join_finish(struct sx_stream *base, struct sx_join *join, int *out_parts);
enum sx_status sx_cuda_join_build(struct sx_stream *base, struct sx_join *join, int part);
void sx_cuda_join_info(const struct sx_join *join, struct sx_join_info *out_info);
enum sx_status sx_cuda_join_gather(struct sx_stream *base, const struct sx_join *join, const int32_t *payload,
                                   int n, const struct sx_tensor *build_rows, struct sx_tensor *out_columns);
enum sx_status sx_cuda_join_take(struct sx_stream *base, const struct sx_join *join,
                                 const struct sx_tensor *keys, int64_t rows, int64_t max_pairs,
                                 struct sx_probe_cursor *cursor, const int32_t *payload, int n,
                                 struct sx_tensor *out_probe_rows, struct sx_tensor *out_build_rows,
                                 struct sx_tensor *out_columns);
enum sx_status sx_cuda_join_probe(struct sx_stream *base, const struct sx_join *join,
                                  const struct sx_tensor *keys, int64_t rows, enum sx_probe_mode mode,
                                  int64_t max_pairs, struct sx_probe_cursor *cursor,
                                  struct sx_tensor *out_probe_rows, struct sx_tensor *out_build_rows);
enum sx_status sx_cuda_join_filter(struct sx_stream *base, const struct sx_join *join,
                                   const struct sx_tensor *key, const struct sx_tensor *selection,
                                   struct sx_tensor *out_selection);
enum sx_status sx_cuda_join_mark(struct sx_stream *base, struct sx_join *join,
                                 const struct sx_tensor *build_rows);
enum sx_status sx_cuda_join_marked(struct sx_stream *base, const struct sx_join *join, bool wanted,
                                   int64_t first, int64_t count, struct sx_tensor *out_build_rows);
enum sx_status sx_cuda_sort(struct sx_stream *base, const struct sx_tensor *keys,
                            const struct sx_sort_key *orders, int n_keys, int64_t rows, int64_t limit,
                            struct sx_tensor *out_order);
enum sx_status sx_cuda_decoder_create(struct sx_stream *base, const struct sx_stored_chunk *chunk,
                                      struct sx_decoder **out_decoder);
void sx_cuda_decoder_destroy(struct sx_stream *base, struct sx_decoder *decoder);
enum sx_status sx_cuda_decode(struct sx_stream *base, const struct sx_column_read *reads, int n_reads,
                              const struct sx_tensor *selection, struct sx_decode_place *out_place);
enum sx_status sx_cuda_decode_ahead(struct sx_stream *base, struct sx_decoder *const *decoders, int n);

#endif
