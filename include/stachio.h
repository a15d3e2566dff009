/* stachio: SQL over Parquet files. The one public header; C11 and C++.
 *
 *     struct stachio_error error = {0};
 *     struct stachio_db *db;
 *     struct stachio_query *query;
 *     struct ArrowArrayStream answer;
 *     if (stachio_open(NULL, &db, &error) || stachio_add_directory(db, "data", &error) ||
 *         stachio_query_create(db, "select count(*) from lineitem", &query, &error) ||
 *         stachio_query_execute(query, &error) || stachio_query_stream(query, &answer, &error))
 *         fprintf(stderr, "%s\n", error.text);
 *
 * Rules
 * - A function that can fail returns a status and fills `error` (the caller's; NULL allowed): what failed,
 * where, and with which value. `out_` results are set on success only.
 * - Arguments are borrowed for the call, unless a comment says otherwise. Texts are UTF-8, zero-terminated.
 * - One thread at a time uses a query. Several threads may use one database: queries of one database run one
 * after another. stachio_query_cancel and stachio_query_progress may be called from any thread at any time.
 * - The library prints nothing, sets no signal handler, and ends no process. */
#ifndef STACHIO_H
#define STACHIO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Arrow C data and stream interface, as its specification prints it ---- */

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE           2
#define ARROW_FLAG_MAP_KEYS_SORTED    4

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};
#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};
#endif

/* ---- statuses and errors ---- */

/* X(name, value, exit status of the program, phrase) */
#define STACHIO_STATUS_LIST(X)                                \
    X(OK, 0, 0, "done")                                       \
    X(QUERY, 1, 1, "the query is wrong")                      \
    X(USAGE, 2, 2, "usage")                                   \
    X(FILE, 3, 3, "a file is missing, corrupt or unreadable") \
    X(OUT_OF_MEMORY, 4, 4, "out of memory")                   \
    X(RANK_LOST, 5, 5, "a rank was lost")                     \
    X(CANCELLED, 6, 130, "cancelled")                         \
    X(UNSUPPORTED, 7, 1, "not supported by the engine")       \
    X(OUTPUT, 8, 3, "the output could not be written")        \
    X(INTERNAL, 9, 70, "internal error")

enum stachio_status {
#define STACHIO_STATUS_ENUM(name, value, exit_status, phrase) STACHIO_##name = value,
    STACHIO_STATUS_LIST(STACHIO_STATUS_ENUM)
#undef STACHIO_STATUS_ENUM
};

/* Zeroed: no error. */
struct stachio_error {
    enum stachio_status status;
    char text[2048];
};

/* The exit status that a program should end with. */
int stachio_status_exit(enum stachio_status status);
/* A few words; never NULL. */
const char *stachio_status_phrase(enum stachio_status status);
/* "0.1.0" */
const char *stachio_version(void);

/* ---- the database: tables and the means to answer ---- */

struct stachio_db;
struct stachio_query;

enum stachio_device {
    STACHIO_DEVICE_AUTO, /* an NVIDIA GPU if one works, else the CPU; or what STACHIO_DEVICE (auto, cpu or
                            cuda) says in the environment */
    STACHIO_DEVICE_CPU,
    STACHIO_DEVICE_CUDA /* an NVIDIA GPU; stachio_open fails where none works */
};

/* Who answers. */
enum stachio_engine {
    STACHIO_ENGINE_AUTO,    /* stachio; DuckDB answers the whole query when stachio can't run it */
    STACHIO_ENGINE_STACHIO, /* stachio only: what it can't run is STACHIO_UNSUPPORTED */
    STACHIO_ENGINE_DUCKDB   /* DuckDB only: to compare with */
};

/* Whether stored bytes of columns are kept in memory for later queries of the same database, beside what the
 * operating system keeps of the files. Files that change are read anew. */
enum stachio_cache {
    STACHIO_CACHE_AUTO, /* HOST with a GPU, else OFF */
    STACHIO_CACHE_OFF,
    STACHIO_CACHE_HOST,  /* in the host's memory; with a GPU page-locked, so that it copies at full speed */
    STACHIO_CACHE_DEVICE /* also in the GPU's memory, decompressed; stachio_open fails where the device is the
                            CPU */
};

/* How files are read. */
enum stachio_io {
    STACHIO_IO_AUTO, /* through the operating system's cache of files, except what that lacks of tables that
                        it could not hold */
    STACHIO_IO_BUFFERED, /* through that cache */
    STACHIO_IO_DIRECT,   /* past it (O_DIRECT); queries fail on file systems that can't */
    STACHIO_IO_GDS /* straight into the GPU's memory (cuFile), but what the host has to look at; stachio_open
                      fails where the device is the CPU, queries without cuFile and on file systems that can't
                    */
};

/* How far reading, computing and the network overlap (PystachIO, sections 3 and 5). All but FULL are there
 * for comparison. */
enum stachio_overlap {
    STACHIO_OVERLAP_FULL,     /* short pipelines beside others; ranks send while rows are read and computed */
    STACHIO_OVERLAP_COMBINED, /* one pipeline after another; ranks send, and take, nothing before all is there
                               */
    STACHIO_OVERLAP_IO,       /* and a scan reads nothing ahead while another one runs */
    STACHIO_OVERLAP_BLOCKING  /* and what ranks send goes in small messages */
};

/* Whether rows are packed into fewer bytes on their way between ranks. */
enum stachio_shuffle_compression {
    STACHIO_SHUFFLE_COMPRESSION_AUTO, /* where the network is slower than the work that it takes; between GPUs
                                       * else integers of large batches in half of their bytes, if they fit */
    STACHIO_SHUFFLE_COMPRESSION_OFF,
    STACHIO_SHUFFLE_COMPRESSION_ON
};

/* The way of rows to ranks of other hosts. */
enum stachio_shuffle {
    STACHIO_SHUFFLE_AUTO, /* in two levels where messages would be small */
    STACHIO_SHUFFLE_ONE_LEVEL,
    STACHIO_SHUFFLE_TWO_LEVEL /* within the host to the rank with the receiver's place, then across, with what
                                 others send there */
};

struct stachio_options {
    size_t
        size_bytes; /* sizeof(struct stachio_options) of the caller's header: set by stachio_options_init */
    int threads; /* workers; 0: the processors this process may use, but one for 24 MiB of the memory limit,
                  * and 8 with a GPU. So many DuckDB has, too; beside a GPU no fewer than without one */
    uint64_t memory_limit_bytes; /* for columns, tables and queues; 0: 80 % of the machine's (or control
                                    group's) */
    enum stachio_device device;
    enum stachio_engine engine;
    uint64_t device_memory_limit_bytes; /* of a GPU's memory; 0: nine tenths of what is free */
    enum stachio_io io;
    enum stachio_cache cache;
    uint64_t cache_bytes; /* most that the cache holds: a part of memory_limit_bytes, given up when a query
                             needs it; 0: half of that */
    uint64_t device_cache_bytes; /* the same for STACHIO_CACHE_DEVICE and device_memory_limit_bytes; with the
                                    other caches for columns that one query reads several times */
    const char *interface; /* the network interface that ranks use, alone; NULL: loopback where all are on one
                              host, else what is there */
    enum stachio_overlap overlap; /* this rank's */
    enum stachio_shuffle_compression shuffle_compression;
    enum stachio_shuffle shuffle;
    int owns_process; /* not 0: the process, and those that it starts, want a GPU for nothing else. So where
                         there are several, all but one may be hidden from CUDA, for good: it takes 0.2 s to
                         start each that it sees */
};

/* Fills in the defaults. Always the first thing: options that are added may lie where there was padding. */
void stachio_options_init(struct stachio_options *options);

/* `options` may be NULL. STACHIO_USAGE: an option's value is out of range, or the device is not there.
 * Threads start with the first query that needs them. With a GPU or several ranks the first call sets
 * variables of the environment (of CUDA, cuFile, NCCL and UCX), so no other thread may read it at that time.
 * A rank that Open MPI's mpirun has bound unasked gets its processors back, and where there are several NUMA
 * nodes one of them: the calling thread, and those that it creates from then on. */
enum stachio_status stachio_open(const struct stachio_options *options, struct stachio_db **out_db,
                                 struct stachio_error *error);
/* NULL allowed. Queries and answers of the database stay valid until they are released. */
void stachio_close(struct stachio_db *db);

/* ---- ranks: processes that mpirun or srun has started answer queries together ---- */

/* Where there are several, stachio_open is collective over them and fails on all if it fails on one; a
 * process opens one database. Rank 0 uses it as always; the others call stachio_follow, and nothing else, and
 * close it. */
int stachio_rank(const struct stachio_db *db);
int stachio_ranks(const struct stachio_db *db);
/* Does what rank 0 wants until that closes its database. STACHIO_RANK_LOST names a rank that is gone. */
enum stachio_status stachio_follow(struct stachio_db *db, struct stachio_error *error);

/* Who answers queries created from now on. STACHIO_USAGE: there is no such engine, and it stays as it was. */
enum stachio_status stachio_set_engine(struct stachio_db *db, enum stachio_engine engine);

/* Every PATH/NAME.parquet is a table NAME, and so are the .parquet files of PATH/NAME together, in the order
 * of their names (the latter wins where both are there). STACHIO_FILE: unreadable, or without Parquet files.
 * With several ranks {rank}, {node} (the number of the rank's host) and {gpu} (its number on its host) in the
 * path mean that each rank, or host, has files of its own, which together make the tables. */
enum stachio_status stachio_add_directory(struct stachio_db *db, const char *path,
                                          struct stachio_error *error);
/* `pattern`: a file, a directory (all its *.parquet) or a glob; files in the order of their names. A table of
 * that name is replaced. STACHIO_FILE: nothing matches, or a file can't be read. {rank}, {node} and {gpu} as
 * above. */
enum stachio_status stachio_add_table(struct stachio_db *db, const char *name, const char *pattern,
                                      struct stachio_error *error);
/* The same of several files, directories or globs together. */
enum stachio_status stachio_add_files(struct stachio_db *db, const char *name, const char *const *patterns,
                                      int n_patterns, struct stachio_error *error);
/* Number of tables; their names in *out_names, borrowed until the next call with this database. */
int stachio_tables(struct stachio_db *db, const char *const **out_names);

struct stachio_column {
    const char *name;
    const char *type; /* "DECIMAL(15,2)" */
};
/* Columns of a table in *out_columns, borrowed until the next describe of this database. */
enum stachio_status stachio_describe(struct stachio_db *db, const char *table,
                                     const struct stachio_column **out_columns, int *out_n_columns,
                                     struct stachio_error *error);
/* Splits a script at the ends of its statements; texts in *out_statements, borrowed until the next split of
 * this database. STACHIO_QUERY: a syntax error, with its position. */
enum stachio_status stachio_split(struct stachio_db *db, const char *script,
                                  const char *const **out_statements, int *out_n_statements,
                                  struct stachio_error *error);

/* ---- queries ---- */

/* Copies the text (one SQL statement) and does nothing else. */
enum stachio_status stachio_query_create(struct stachio_db *db, const char *sql,
                                         struct stachio_query **out_query, struct stachio_error *error);
/* Where the text begins in its script, from 1: positions in error texts count from there. Before execute and
 * explain. */
void stachio_query_set_origin(struct stachio_query *query, int line, int column);
/* NULL allowed. Streams taken from it stay valid. */
void stachio_query_destroy(struct stachio_query *query);

/* Plans the query, unless that is done: the logical plan and the pipelines as text, or DuckDB's plan with the
 * reason in front when DuckDB will answer. Borrowed from the query. */
enum stachio_status stachio_query_explain(struct stachio_query *query, const char **out_text,
                                          struct stachio_error *error);

/* Plans the query, unless that is done, and runs it to the end; once per query. The answer is kept for
 * stachio_query_stream. STACHIO_QUERY: the query is wrong (syntax errors tell the position) or failed on a
 * value; STACHIO_UNSUPPORTED: only DuckDB could answer, and the engine is STACHIO_ENGINE_STACHIO;
 * STACHIO_FILE, STACHIO_OUT_OF_MEMORY, STACHIO_CANCELLED. */
enum stachio_status stachio_query_execute(struct stachio_query *query, struct stachio_error *error);

/* The answer's rows in order as arrays of struct type; the caller releases the stream, and may do so after
 * query and database are gone. Once per query, after execute. HUGEINT comes as decimal128(38, 0), as DuckDB
 * has it; UHUGEINT too, with the field's metadata "stachio:type" = "UHUGEINT" and the bits of an unsigned
 * number. */
enum stachio_status stachio_query_stream(struct stachio_query *query, struct ArrowArrayStream *out_stream,
                                         struct stachio_error *error);

/* Ends the query soon, or before it starts: its functions then return STACHIO_CANCELLED. Async-signal-safe.
 */
void stachio_query_cancel(struct stachio_query *query);

struct stachio_progress {
    int64_t total_rows;         /* of all scans; 0 while unknown or when DuckDB answers */
    int64_t done_rows;          /* read or pruned */
    int64_t pruned_rows;        /* never read, thanks to statistics */
    int64_t read_bytes;         /* from files */
    double seconds;             /* since execute began; 0 before */
    int64_t host_cache_bytes;   /* not read, since the cache in the host's memory had them, */
    int64_t device_cache_bytes; /* or the one in the device's, or the query itself had brought them there
                                   (known once the query has ended); as stored */
    int64_t device_read_bytes;  /* of read_bytes: straight into the device's memory */
};
void stachio_query_progress(struct stachio_query *query, struct stachio_progress *out_progress);

/* What one operator did. */
struct stachio_operator {
    int pipeline;     /* operators of a pipeline follow each other from source to sink */
    const char *name; /* "SCAN lineitem" */
    int64_t rows;     /* that it gave */
    int64_t batches;
    double seconds; /* summed over workers, without the operators after it */
};

/* Where a rank runs. */
struct stachio_rank {
    const char *host;
    int64_t pid;
    const char *device;     /* "cpu", or the GPU's name */
    const char *bus;        /* its PCI address; "": the CPU */
    const char *processors; /* that its threads may run on, as in "0-15,32" */
};

struct stachio_report {
    enum stachio_engine engine; /* who answered: STACHIO_ENGINE_STACHIO or STACHIO_ENGINE_DUCKDB */
    const char
        *fallback_reason; /* why DuckDB answered under STACHIO_ENGINE_AUTO ("operator WINDOW"), else NULL */
    int threads;
    double plan_seconds;
    double execute_seconds;
    int64_t peak_memory_bytes; /* of the database's pool since it was opened */
    struct stachio_progress progress;
    const struct stachio_operator *operators; /* none when DuckDB answered */
    int n_operators;
    const char *device;        /* "cpu", or the GPU's name */
    const char *device_reason; /* why STACHIO_DEVICE_AUTO came to the CPU ("no NVIDIA driver"), else NULL */
    const char *network;       /* how rows travel between ranks; NULL: there is one */
    const struct stachio_rank *ranks; /* none where there is one */
    int n_ranks;
    int64_t peak_device_memory_bytes; /* of a GPU's, since the database was opened; 0 on the CPU */
    const char *gds_reason; /* why STACHIO_IO_AUTO came to read large tables to the host's memory, not
                               straight into a GPU's; else NULL */
    int plan_known;         /* 1: the query came before, and DuckDB's plan of it was used again */
    int alone;              /* 1: rank 0 answered without the others, since there was little to read */
};
/* After execute. What *out_report points to belongs to the query. */
void stachio_query_report(struct stachio_query *query, struct stachio_report *out_report);

/* The least time in which the query's data could have come: T_min of PystachIO (section 6.1), on one machine.
 * Stored bytes of column chunks and pages that the scans needed, each once, over what brings them: the disk,
 * for those that were not in memory, and the link to the device, but for those that its cache had, or on a
 * CPU the memory, for all. */
struct stachio_floor {
    double seconds;    /* T_min; 0: nothing was read, or DuckDB answered */
    const char *bound; /* what needs that time: "disk", "link" or "memory" */
    int64_t bytes;     /* that it has to bring */
    double bytes_per_second;
};
/* After execute. What is asked for the first time is measured, in 0.3 s at most: the disk by direct reads of
 * a file of the query (where the file system takes none, no time is counted for it), the link by copies from
 * page-locked memory, the memory by all threads' reading of up to 512 MiB. STACHIO_USAGE: not executed. */
enum stachio_status stachio_query_floor(struct stachio_query *query, struct stachio_floor *out_floor,
                                        struct stachio_error *error);

/* ---- traces ---- */

/* What threads do, and when, while queries run that have the trace: pipelines, operators, primitives, reads,
 * waits, and synchronisations with a device. */
struct stachio_trace;
enum stachio_status stachio_trace_create(struct stachio_trace **out_trace, struct stachio_error *error);
/* Before explain and execute; the query keeps the trace. Queries of one trace are of one database. */
void stachio_query_set_trace(struct stachio_query *query, struct stachio_trace *trace);
/* The same for what a rank other than 0 does from now on: before stachio_follow. */
void stachio_set_follow_trace(struct stachio_db *db, struct stachio_trace *trace);
/* Gives all that was recorded as JSON (Chrome's trace event format, which Perfetto opens) to `write` in
 * pieces, while no query runs. Times are the host's monotonic clock. STACHIO_OUTPUT: `write` returned
 * something else than 0. */
enum stachio_status stachio_trace_write(struct stachio_trace *trace,
                                        int (*write)(void *context, const char *bytes, size_t size_bytes),
                                        void *context, struct stachio_error *error);
/* NULL allowed. */
void stachio_trace_destroy(struct stachio_trace *trace);

/* ---- measuring ---- */

struct stachio_bench_options {
    size_t size_bytes;   /* sizeof(struct stachio_bench_options) of the caller's header */
    const int64_t *rows; /* sizes to measure with */
    int n_rows;
    const char *filter; /* cases with this in "PRIMITIVE NAME" only; NULL: all */
    int threads;        /* each with a stream and its share of the rows; 0: the processors, on a GPU one */
};

/* One case of one primitive. */
struct stachio_bench_result {
    const char *primitive; /* "join_probe"; the first result is "copy" */
    const char *name;
    const char *device; /* as in a report */
    int threads;
    int64_t rows; /* of all threads together */
    int runs;
    double seconds;               /* the median of the runs */
    double floor_bytes;           /* that have to be read and written */
    double copy_bytes_per_second; /* what a plain copy reaches on this device, read and written */
    const char *failure;          /* NULL: none; else why there are no times */
};

/* Times the primitives of the database's device and tells each result as soon as it is there. */
enum stachio_status stachio_bench_primitives(struct stachio_db *db,
                                             const struct stachio_bench_options *options,
                                             void (*result)(void *context,
                                                            const struct stachio_bench_result *result),
                                             void *context, struct stachio_error *error);

struct stachio_bench_scan_options {
    size_t size_bytes;   /* sizeof(struct stachio_bench_scan_options) of the caller's header */
    const char *pattern; /* a file, a directory or a glob, as for stachio_add_table */
    int threads;         /* most; 1, 2, 4 and so on are tried. 0: 8 */
    int runs;            /* of which the median is told */
};

/* One way of reading all columns of all files, as they are stored; the last ones decode them. */
struct stachio_bench_scan_result {
    const char *name; /* "metadata cached"; each way has what the ones before it have */
    int is_warm;      /* the system's cache of files had all; 0: it had been asked to drop them */
    const char *device;
    int threads;
    int files;
    int runs;
    int64_t bytes;
    double seconds;
    double bound_bytes_per_second; /* of reading the files as they are, on as many threads: cold past the
                                      system's cache, warm out of it */
    int64_t value_bytes; /* of the columns that were made: values, views of strings, codes where a dictionary
                            is kept; 0: this way decodes nothing */
};

/* Times reading and tells each result as soon as it is there. */
enum stachio_status stachio_bench_scan(struct stachio_db *db,
                                       const struct stachio_bench_scan_options *options,
                                       void (*result)(void *context,
                                                      const struct stachio_bench_scan_result *result),
                                       void *context, struct stachio_error *error);

struct stachio_bench_exchange_options {
    size_t size_bytes; /* sizeof(struct stachio_bench_exchange_options) of the caller's header */
    const int64_t *message_bytes;
    int n_message_bytes;
    int64_t rank_bytes; /* that each rank sends to each other one in a run */
    int runs;           /* of which the median is told */
};

/* All to all: each rank sends to and receives from each other one. */
struct stachio_bench_exchange_result {
    const char *transport;
    int ranks;
    int64_t message_bytes;
    int64_t bytes; /* that each rank receives in a run */
    int runs;
    double seconds;     /* by the channels that queries use; of the slowest rank */
    double raw_seconds; /* by the transport's messages alone, in turn; 0: there is no such thing */
    double least_seconds;
    double raw_least_seconds;
    double processor_seconds; /* the median, of all of a rank's threads; the rank that took most */
    double raw_processor_seconds;
};

/* Times exchanges between the ranks, called on rank 0, and tells each result as soon as it is there. */
enum stachio_status stachio_bench_exchange(struct stachio_db *db,
                                           const struct stachio_bench_exchange_options *options,
                                           void (*result)(void *context,
                                                          const struct stachio_bench_exchange_result *result),
                                           void *context, struct stachio_error *error);

/* How the exchanges of a join go (PystachIO, figure 4). */
enum stachio_join_variant {
    STACHIO_JOIN_AUTO, /* as the last one, but rows without a partner are mostly not sent, as in queries */
    STACHIO_JOIN_BLOCKING, /* all rows are partitioned, then all are sent, then joined; small messages */
    STACHIO_JOIN_TUNED,    /* the same with large messages */
    STACHIO_JOIN_CHUNKED,  /* rows are partitioned, sent and joined chunk by chunk, at the same time */
    STACHIO_JOIN_DEFERRED  /* and a device's row counts are read as late as can be */
};

struct stachio_bench_join_options {
    size_t size_bytes;  /* sizeof(struct stachio_bench_join_options) of the caller's header */
    int64_t build_rows; /* of all ranks together */
    int64_t probe_rows;
    int build_columns; /* of 8 bytes, with the key */
    int probe_columns;
    double hit_ratio; /* share of the probe rows that match one build row */
    double skew;      /* Zipf exponent of the keys that match; 0: uniform */
    int is_tpch;      /* keys and their order are those of orders and lineitem */
    int is_shuffle;   /* the probe table is exchanged, and nothing is joined */
    enum stachio_join_variant variant;
    int64_t message_bytes; /* 0: what queries use */
    int has_timeline;
    int runs;
    struct stachio_trace
        *trace; /* of what rank 0 does, in all runs; may be NULL. See stachio_set_follow_trace */
};

struct stachio_bench_sample {
    double seconds; /* since the join began */
    int64_t bytes;  /* that rank 0 has sent */
};

/* A join of tables in memory, by the operators that queries use, beside an exchange of as many bytes. */
struct stachio_bench_join_result {
    const char *device;
    const char *transport; /* NULL: there is one rank */
    int ranks;
    int threads; /* a rank's */
    int runs;
    int64_t rows;        /* of the answer, which was compared with the known one */
    int64_t table_bytes; /* of rank 0's share of both tables */
    int64_t bytes;       /* that each rank receives of the tables' */
    double seconds;      /* the median; of the slowest rank */
    double least_seconds;
    double exchange_seconds; /* the median of exchanges of as many bytes, each made after one of the joins; 0:
                                there is one rank */
    double exchange_ratio;   /* the median of exchange over join */
    int64_t peak_memory_bytes; /* of the rank that had most, with the tables: of the GPU's memory, or the
                                  host's */
    const struct stachio_bench_sample *samples; /* of the last run, until `result` returns */
    int n_samples;
};

/* STACHIO_INTERNAL: the answer was wrong. */
enum stachio_status stachio_bench_join(struct stachio_db *db,
                                       const struct stachio_bench_join_options *options,
                                       void (*result)(void *context,
                                                      const struct stachio_bench_join_result *result),
                                       void *context, struct stachio_error *error);

/* ---- what the machine has, and what belongs together ---- */

/* By what the way between two devices goes, the shortest last. */
enum stachio_path {
    STACHIO_PATH_NONE,    /* there is no other device */
    STACHIO_PATH_MACHINE, /* from one package to another */
    STACHIO_PATH_PACKAGE, /* within a package */
    STACHIO_PATH_ROOT,    /* one PCI root complex */
    STACHIO_PATH_SWITCH   /* one PCI switch */
};

/* A NUMA node. */
struct stachio_topology_node {
    int number;                 /* the system's */
    int package;                /* from 0; -1: of several */
    int processors;             /* that the process may use */
    const char *processor_list; /* "0-15,32-47" */
    int64_t memory_bytes;
    int interface; /* the nearest, a position in `interfaces`; -1: there is none */
};

/* A GPU, a network interface or an NVMe device. */
struct stachio_topology_device {
    const char *name; /* "NVIDIA H100 80GB HBM3" (or vendor and device, "10de:2330"), "eth0", "nvme0n1" */
    const char *bus;  /* its PCI address, "0000:18:00.0" */
    int node;         /* the number of its NUMA node; -1: of several */
    int gpu;          /* the nearest, a position in `gpus`; of a GPU itself; -1: there is none */
    int interface;    /* the same in `interfaces`; those as near and as fast are shared out among the GPUs */
    enum stachio_path gpu_path;
    enum stachio_path interface_path;
    const char *rdma;        /* interfaces: "mlx5_0"; NULL: none */
    int64_t bits_per_second; /* interfaces: of the link; 0: unknown */
    int is_down;       /* interfaces: there is no link. Such a one is not near to anything but as the last */
    const char *model; /* NVMe devices; NULL: unknown */
    int64_t bytes;     /* NVMe devices */
};

/* Where a rank is, and what is meant for it: GPUs (without any: NUMA nodes) in turn by its number on the
 * host, and the interface that is nearest to that. */
struct stachio_topology_rank {
    int rank;
    int local_rank; /* among those of the host */
    const char *host;
    int64_t pid;           /* 0: there is no such process */
    int node;              /* the number of a NUMA node; -1: any */
    int gpu;               /* by PCI address, from 0; -1: none */
    const char *gpu_bus;   /* "": none */
    const char *gpu_name;  /* "": none */
    const char *interface; /* "": none */
};

struct stachio_topology {
    const char *host;
    int packages;
    const struct stachio_topology_node *nodes;
    int n_nodes;
    const struct stachio_topology_device *gpus; /* NVIDIA's, by PCI address; so are the others */
    int n_gpus;
    const struct stachio_topology_device *interfaces; /* without virtual ones */
    int n_interfaces;
    const struct stachio_topology_device *disks; /* NVMe devices */
    int n_disks;
    const struct stachio_topology_rank *ranks; /* the running ones; of one alone: a rank for each GPU, or else
                                                  for each NUMA node */
    int n_ranks;
};

/* Tells of the machine on which rank 0 is, and of all ranks; called on rank 0. *out_topology is borrowed
 * until the next call for this database. STACHIO_USAGE: libstachio_topology.so, or hwloc which it needs, is
 * not there. The environment's HWLOC_XMLFILE may name the description of another machine (STACHIO_FILE: it is
 * none). */
enum stachio_status stachio_topology(struct stachio_db *db, const struct stachio_topology **out_topology,
                                     struct stachio_error *error);

/* ---- Parquet files ---- */

/* Which encodings a column chunk may get. */
enum stachio_encoding {
    STACHIO_ENCODING_AUTO,       /* the smallest of all, for each column chunk */
    STACHIO_ENCODING_PLAIN,      /* PLAIN */
    STACHIO_ENCODING_DICTIONARY, /* RLE_DICTIONARY, or PLAIN where the dictionary makes it no smaller */
    STACHIO_ENCODING_V2          /* DELTA_*, BYTE_STREAM_SPLIT or RLE, as the type goes */
};

enum stachio_compression {
    STACHIO_COMPRESSION_NONE,
    STACHIO_COMPRESSION_SNAPPY,
    STACHIO_COMPRESSION_LZ4, /* LZ4_RAW */
    STACHIO_COMPRESSION_ZSTD /* level 1 */
};

/* The answer's rows are in the order of a column: told in the files, not made by writing. */
struct stachio_order {
    int column; /* of the answer, from 0; none of the partition's. STACHIO_USAGE: it has none such */
    int descending;
    int nulls_first;
};

struct stachio_write_options {
    size_t size_bytes;      /* sizeof(struct stachio_write_options): set by stachio_write_options_init */
    int64_t row_group_rows; /* most rows of a row group; 0: 4 Mi. Fewer where the memory limit wants it */
    int pages;              /* about so many data pages in a column chunk; 0: 200 */
    int page_version;       /* 1 or 2; 0: 2 */
    int checksums;          /* not 0: page headers have CRCs */
    enum stachio_encoding encoding;
    enum stachio_compression compression; /* of pages that get smaller by it */
    int64_t file_rows;                    /* another file after so many rows; 0: never */
    int64_t file_bytes;                   /* another file rather than one of more bytes; 0: never */
    int n_partition; /* the answer's first columns, of type VARCHAR, are not stored but name folders
                        COLUMN=VALUE; equal rows follow each other */
    const struct stachio_order *orders; /* borrowed for the call */
    int n_orders;
};

/* Fills in the defaults. */
void stachio_write_options_init(struct stachio_write_options *options);

/* In place of execute and stream: runs the query and writes its answer as Parquet while it runs, to the file
 * `path` (there or not) or, with file_rows, file_bytes or n_partition, to the directory `path` (there or not)
 * as part-00000.parquet, …. Columns that are required in all files they come from stay so. HUGEINT becomes
 * DECIMAL(38,0); what Parquet has no type for is STACHIO_QUERY, with the column's name, before anything is
 * written. Where DuckDB answers it writes the file too, by its own choice of encodings. On failure what was
 * made is removed; a file that was there is gone. `options` may be NULL. */
enum stachio_status stachio_query_write(struct stachio_query *query, const char *path,
                                        const struct stachio_write_options *options,
                                        struct stachio_error *error);

/* Rows that stachio_query_write has put into files so far. From any thread. */
int64_t stachio_query_written_rows(struct stachio_query *query);

struct stachio_parquet_column {
    const char *name;
    const char *type;      /* "DECIMAL(15,2)", or why the engine can't read it */
    const char *encodings; /* of the data pages, by share: "RLE_DICTIONARY, PLAIN 12 %" */
    const char *codecs;    /* "SNAPPY"; "" where nothing is compressed */
    int is_optional;
    int64_t stored_bytes;
    int64_t plain_bytes; /* decompressed */
};

struct stachio_parquet_file {
    const char *path;
    int64_t rows;
    int64_t bytes;
};

struct stachio_parquet {
    const struct stachio_parquet_file *files; /* in the order of a table of them */
    int n_files;
    int64_t rows;
    int64_t bytes;
    int64_t row_groups;
    int64_t pages;                                /* data pages */
    const struct stachio_parquet_column *columns; /* of the first file; others by name */
    int n_columns;
};

/* How Parquet files, directories and globs are laid out, from their footers and page headers. *out_parquet is
 * borrowed until the next inspection of this database. */
enum stachio_status stachio_inspect(struct stachio_db *db, const char *const *patterns, int n_patterns,
                                    const struct stachio_parquet **out_parquet, struct stachio_error *error);

#ifdef __cplusplus
}
#endif

#endif
