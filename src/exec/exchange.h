/* Inside of the exchange operator: its state, and sending (exchange_send.c). */
#ifndef SX_EXEC_EXCHANGE_H
#define SX_EXEC_EXCHANGE_H

#include "exec/operators.h"
#include "net/net.h"
#include "tensor/wire.h"

enum exchange_mode {
    EXCHANGE_TO_HASH,  /* each row to the rank that its keys tell */
    EXCHANGE_TO_RANGE, /* the same, by where they stand in an order */
    EXCHANGE_TO_ALL,
    EXCHANGE_TO_ROOT,
    EXCHANGE_STAY /* nothing travels */
};

/* Rows that this rank keeps, on the way from a worker's driven pipeline to the one that drives it. */
struct exchange_own {
    struct sx_batch batch;
    int64_t sequence;
    bool is_for_any; /* others may take it: its worker's stream is through with it */
};

/* Those that a worker has kept, oldest first. */
struct exchange_owns {
    pthread_mutex_t lock;
    struct exchange_own *list; /* [first, end) */
    int64_t first, end, capacity;
};

/* Small batches that have come, until there are enough rows of them. */
enum { EXCHANGE_MOST_FEW = 32 };
struct exchange_few {
    struct sx_batch batches[EXCHANGE_MOST_FEW];
    int n;
    int64_t rows, sequence; /* sequence: the first one's, behind the exchange */
};

/* A message that is being filled. */
struct exchange_outgoing {
    struct sx_buffer *buffer; /* NULL: none */
    size_t used_bytes;
};

/* Messages that a blocking exchange holds back. */
struct exchange_list {
    struct sx_net_message *messages; /* [first, end) */
    int64_t first, end, capacity;
};

/* How a worker packs what goes to this host's ranks, or to those of others. */
struct exchange_packing {
    struct sx_wire_packer *packer; /* NULL: none yet */
    bool is_on;
    double worth;            /* the packer's */
    int64_t looked_ns;       /* when the pace was looked at; 0: never */
    struct sx_net_pace pace; /* as it was then */
};

/* How an exchange of a device packs; see exchange_device_pack.c. */
struct exchange_device_packing {
    pthread_mutex_t lock;
    double row_bytes[2]; /* of the last batch: if it is not packed, and packed; 0: not known */
    double narrowed;     /* what the last batch that was not packed took of its plain bytes; 0: none was */
    bool is_on;
    bool went_plain;   /* the last batch, all the same, for it had few bytes */
    int64_t looked_ns; /* 0: never */
    struct sx_net_pace pace;
    struct sx_rows_narrow *narrow; /* what is known of the columns; NULL: nothing yet */
};

/* What a worker does in turn with others; see exchange_send.c. */
enum exchange_turn { EXCHANGE_NO_TURN, EXCHANGE_ORDERS, EXCHANGE_PACKS };

struct exchange_worker {
    const struct sx_pipeline *driven; /* the pipeline that it is on; NULL: it is through with all */
    int n_through;                    /* pipelines that it is through with */
    struct exchange_owns own;
    struct exchange_outgoing *outgoing; /* by rank; of EXCHANGE_TO_ALL the first stands for all */
    struct sx_wire_reader reader;       /* of the message that it unpacks; its buffer NULL: none */
    int from;                           /* whose message that is */
    bool is_on_device;                  /* the message */
    struct exchange_list held;          /* to be sent, of a blocking exchange */
    struct exchange_packing packing[2]; /* for this host, and for others */
    struct exchange_few few;
    enum exchange_turn turn;
};

struct exchange_sink {
    struct sx_sink sink;
    struct sx_exchange *exchange;
};

struct sx_exchange {
    struct sx_source source;
    struct exchange_sink *sink;
    struct sx_exchange *next; /* of the run's */
    const struct sx_plan *plan;
    struct sx_join_build *join; /* whose side this is; may be NULL */
    bool is_build;
    bool is_blocking;             /* set when it opens; see exchange_blocking.c */
    atomic_bool is_driven_early;  /* by a worker, right now */
    struct sx_collector *kept;    /* what an adaptive build side, or ranges, are chosen by; else NULL */
    struct exchange_range *range; /* where rows go by ranges; else NULL */
    struct sx_evaluator places;   /* of rows, where the plan has ends: to a number whose high bits tell the */
    int n_places;                 /* part out of so many, a power of two; 0: the plan has no ends */
    int n_drivers;                /* the first workers, which drive and take; set when it opens */
    int64_t least, most;          /* with ends: the keys that this rank gets */
    enum exchange_mode mode;      /* set when it opens */
    bool is_at_root;              /* its plan's root_choice has all of its rows on rank 0; likewise */
    struct sx_evaluator keys;
    struct sx_type *types;
    bool *are_moved; /* columns that the join does nothing with but move them; NULL: none */
    int rank, n_ranks;
    double most_of_mean; /* by hash or range: the most rows that a rank has got, of the mean; 0: not known */
    struct sx_channel *channel;
    struct sx_channel_report report; /* once it is closed */
    bool has_report;                 /* which the name does not tell yet */
    struct exchange_worker *workers;
    atomic_llong kept_rows; /* all that have stayed on this rank */
    atomic_int n_open;      /* driven pipelines whose sources have been opened */
    atomic_int n_spent;     /* driven pipelines whose sources have nothing left */
    atomic_int n_through;   /* summed over drivers */
    size_t message_bytes;   /* when a message is sent */
    size_t most_unsent;     /* bytes: with more nothing is driven; set when the run's exchanges open */
    pthread_mutex_t arrived_lock;
    struct exchange_list arrived;
    enum sx_shuffle_compression compression;
    pthread_mutex_t order_lock, pack_lock; /* of large batches on a device */
    struct exchange_device_packing device_packing;
    atomic_llong plain_bytes, packed_bytes; /* of frames that were sent */
    atomic_bool has_packed;                 /* some of them; else they may be NARROW */
};

/* A batch's sequence number behind the exchange, from its number on its rank: the rows of driven pipelines
 * follow each other, and batches with the same number are in the order of the ranks. Of GATHER RANGES all of
 * one rank follow those of the rank before. */
int64_t exchange_sequence(const struct sx_exchange *exchange, int64_t sequence, int rank);
/* Its number on this rank, for exchange_sequence. */
int64_t exchange_place(const struct sx_exchange *exchange, const struct sx_worker *worker);

/* ---- exchange_adaptive.c ---- */

/* About. */
int64_t exchange_row_bytes(const struct sx_exchange *exchange);
/* Collective, by the exchange of an adaptive build side, whose rows are in `kept`: the number of all ranks'
 * decides, and so does it everywhere. */
SX_MUST_CHECK enum sx_status exchange_choose(struct sx_exchange *exchange, struct sx_worker *worker);

/* ---- exchange_root.c ---- */

/* Collective: what every rank tells, `bytes` each, by rank; in `arena`. */
SX_MUST_CHECK enum sx_status exchange_tell(const struct sx_exchange *exchange, struct sx_worker *worker,
                                           const void *own, size_t bytes, struct sx_arena *arena,
                                           void **out_all);
/* Sets is_at_root. Collective, by the exchange that is its plan's root_choice: the ranks' rows decide, and so
 * do they everywhere. */
SX_MUST_CHECK enum sx_status exchange_choose_root(struct sx_exchange *exchange, struct sx_worker *worker);
/* How rows go if that is set. */
enum exchange_mode exchange_root_mode(const struct sx_exchange *exchange);

/* ---- exchange_own.c ---- */

void exchange_owns_init(struct exchange_owns *owns);
/* Drops what is left; drop may be called before, and again. */
void exchange_owns_drop(struct exchange_owns *owns);
void exchange_owns_release(struct exchange_owns *owns);
/* The rows stay on this rank; taken over, unless it fails. */
SX_MUST_CHECK enum sx_status exchange_keep(struct sx_exchange *exchange, struct sx_worker *worker,
                                           struct sx_batch *batch);
/* The same, but any worker may go on with them, in any order: this waits for what makes them. */
SX_MUST_CHECK enum sx_status exchange_keep_for_any(struct sx_exchange *exchange, struct sx_worker *worker,
                                                   struct sx_batch *batch);
/* Of what the worker itself has kept. */
bool exchange_has_own(struct sx_exchange *exchange, const struct sx_worker *worker);
bool exchange_take_own(struct sx_exchange *exchange, struct sx_worker *worker, struct sx_batch *out_batch);
/* What another one has kept for any and not come to yet. */
bool exchange_take_anothers(struct sx_exchange *exchange, struct sx_worker *worker,
                            struct sx_batch *out_batch);

/* ---- exchange_pack.c ---- */

/* The packing of frames for the rank; NULL: they go as they are. */
struct exchange_packing *exchange_packing_for(struct sx_exchange *exchange, struct sx_worker *worker,
                                              int rank);
/* A frame packed so; *out_frame until the next call. `plain_bytes`: of it as it is. */
SX_MUST_CHECK enum sx_status exchange_pack(struct sx_exchange *exchange, struct sx_worker *worker,
                                           struct exchange_packing *packing, const struct sx_batch *batch,
                                           const int32_t *rows, int64_t n_rows, size_t plain_bytes,
                                           const void **out_frame, size_t *out_bytes);
void exchange_packing_release(struct exchange_worker *state);

/* ---- exchange_device.c: where the backend has memory of its own ---- */

/* Finds out which columns are moved alone. */
SX_MUST_CHECK enum sx_status exchange_device_create(struct sx_exchange *exchange, struct sx_run *run,
                                                    struct sx_error *error);
/* To all other ranks, or to the root. */
SX_MUST_CHECK enum sx_status exchange_device_send_whole(struct sx_exchange *exchange,
                                                        struct sx_worker *worker,
                                                        const struct sx_batch *batch);
/* Each rank's part of the rows; this rank's is the own one, and stays. */
SX_MUST_CHECK enum sx_status exchange_device_send_parts(struct sx_exchange *exchange,
                                                        struct sx_worker *worker,
                                                        const struct sx_batch *batch,
                                                        const struct sx_row_parts *parts);
/* The message that the worker's reader has, as a whole. */
SX_MUST_CHECK enum sx_status exchange_device_unpack(struct sx_exchange *exchange, struct sx_worker *worker,
                                                    struct sx_batch *out_batch, int64_t *out_sequence);

/* ---- exchange_device_pack.c ---- */

void exchange_device_packing_init(struct exchange_device_packing *packing);
void exchange_device_packing_release(struct exchange_device_packing *packing);
/* Whether the next batch, of so many rows in all messages of it, is to be packed. */
bool exchange_device_packs(struct sx_exchange *exchange, struct sx_worker *worker, int64_t rows);
/* Whether so many bytes are enough for a batch's packing, at the pace of the last look. */
bool exchange_device_gains(const struct exchange_device_packing *packing, double plain_bytes);
/* Frames of a batch, ready to be sent: `rows` in them all, and their bytes, packed or not. */
void exchange_device_note(struct sx_exchange *exchange, bool packs, int64_t rows, size_t bytes,
                          size_t plain_bytes);
/* What is known of the columns for a batch of so many rows, for rows_pack, and what it has found out of them.
 * *out_narrow: from malloc; NULL: none of them is to be NARROW. */
SX_MUST_CHECK enum sx_status exchange_device_narrow(struct sx_exchange *exchange, struct sx_worker *worker,
                                                    int64_t rows, struct sx_rows_narrow **out_narrow);
void exchange_device_note_narrow(struct sx_exchange *exchange, const struct sx_rows_narrow *narrow);
/* Decides anew, by the link's pace and the time that the device's memory takes for a byte. */
void exchange_device_decide(struct exchange_device_packing *packing, const struct sx_net_pace *pace,
                            double memory_ns_a_byte, int64_t now_ns);

/* ---- exchange_send.c ---- */

/* The least one that is not below n. */
int exchange_power_of_two(int n);
/* A power of two: into so many parts the hashes' range is cut. */
int exchange_count_parts(int n_ranks);
/* The first one of the rank's; of `rank` n_ranks: one behind all. */
int exchange_first_part(int rank, int n_ranks);

/* The messages take their way, now or, in a blocking exchange, later; taken over. */
SX_MUST_CHECK enum sx_status exchange_give(struct sx_exchange *exchange, struct sx_worker *worker,
                                           const struct sx_net_message *messages, int n);

SX_MUST_CHECK enum sx_status exchange_send_create(struct sx_exchange *exchange, struct sx_run *run,
                                                  struct sx_error *error);
/* Sends what the worker still holds back. */
SX_MUST_CHECK enum sx_status exchange_flush(struct sx_exchange *exchange, struct sx_worker *worker);

/* ---- exchange_ends.c ---- */

/* Where the plan has ends; else nothing. */
SX_MUST_CHECK enum sx_status exchange_ends_create(struct sx_exchange *exchange, struct sx_run *run,
                                                  struct sx_error *error);
/* Numbers (U64, FLAT) of a batch's rows, whose high bits are their parts, of which rank r has part r. */
SX_MUST_CHECK enum sx_status exchange_places(struct sx_worker *worker, struct sx_evaluator *places,
                                             const struct sx_batch *batch, struct sx_tensor *out_places);
/* Whether it is known that the batch that is sent stays here as a whole. */
bool exchange_keeps_all(const struct sx_exchange *exchange, const struct sx_worker *worker);
/* `sum` (NULL: 0) and, where is_beyond, a part out of n_parts of U64's range; NULL: no memory. */
struct sx_expression *exchange_add_part(struct sx_arena *arena, struct sx_expression *sum,
                                        struct sx_expression *is_beyond, int n_parts);

/* ---- exchange_combine.c ---- */

/* So many rows are enough for a batch: the worker's smaller ones are put together, as far as the device has
 * the memory; 0: they are not. */
int64_t exchange_enough_rows(const struct sx_exchange *exchange, const struct sx_worker *worker);
/* Takes the batch over, if it is small; there has to be room for one. */
bool exchange_put_by(struct exchange_few *few, int64_t enough_rows, struct sx_batch *batch, int64_t sequence);
/* Whether they are to go on now: there are rows enough, or no room for another batch. */
bool exchange_has_enough(const struct exchange_few *few, int64_t enough_rows);
/* What the worker has put by, as one batch. */
SX_MUST_CHECK enum sx_status exchange_combine(struct sx_exchange *exchange, struct sx_worker *worker,
                                              struct sx_batch *out_batch);
void exchange_few_release(struct exchange_few *few);

/* ---- exchange_blocking.c ---- */

/* Takes the messages over in every case; exchange_send_held sends them. */
SX_MUST_CHECK enum sx_status exchange_hold(struct sx_exchange *exchange, struct sx_worker *worker,
                                           const struct sx_net_message *messages, int n);
/* What all workers hold, once they are through. */
SX_MUST_CHECK enum sx_status exchange_send_held(struct sx_exchange *exchange, struct sx_worker *worker);
/* Takes what has come. *out_whole: that is all. */
SX_MUST_CHECK enum sx_status exchange_gather(struct sx_exchange *exchange, struct sx_worker *worker,
                                             bool *out_whole);
/* The next of what was gathered. False: there is none. */
bool exchange_next_gathered(struct sx_exchange *exchange, struct sx_net_message *out_message);
void exchange_list_release(struct exchange_list *list);

/* Hashes that tell a row's rank: of its keys and of a constant behind them, since a table's own use of the
 * same bits must not find them spent. The last column of `keys` is left for it. */
SX_MUST_CHECK enum sx_status exchange_hash(struct sx_worker *worker, struct sx_batch *keys,
                                           struct sx_tensor *out_hashes);
/* Of the exchange's keys. */
SX_MUST_CHECK enum sx_status exchange_hash_keys(struct sx_exchange *exchange, struct sx_worker *worker,
                                                const struct sx_batch *batch, struct sx_tensor *out_hashes);
/* The same hashes' bits to a bloom filter. */
SX_MUST_CHECK enum sx_status exchange_add_keys(struct sx_exchange *exchange, struct sx_worker *worker,
                                               const struct sx_batch *batch, struct sx_tensor *words);

#endif
