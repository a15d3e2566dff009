#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "message.h"
#include "trace.h"

enum option_code {
    OPTION_DIRECTORY = 'd',
    OPTION_TABLE = 't',
    OPTION_COMMAND = 'c',
    OPTION_FILE = 'f',
    OPTION_OUTPUT = 'o',
    OPTION_HELP = 'h',
    OPTION_LONG = 256, /* the others */
    OPTION_DEVICE,
    OPTION_THREADS,
    OPTION_MEMORY_LIMIT,
    OPTION_DEVICE_MEMORY_LIMIT,
    OPTION_IO,
    OPTION_CACHE,
    OPTION_CACHE_SIZE,
    OPTION_DEVICE_CACHE_SIZE,
    OPTION_INTERFACE,
    OPTION_SHUFFLE,
    OPTION_SHUFFLE_COMPRESSION,
    OPTION_FORMAT,
    OPTION_FALLBACK,
    OPTION_PROGRESS,
    OPTION_EXPLAIN,
    OPTION_ANALYZE,
    OPTION_TRACE,
    OPTION_OVERLAP,
    OPTION_MAX_ROWS,
    OPTION_VERSION,
    OPTION_SF,
    OPTION_QUERIES,
    OPTION_REPEAT,
    OPTION_COMPARE,
    OPTION_ROWS,
    OPTION_JSON,
    OPTION_BUILD,
    OPTION_PROBE,
    OPTION_COLUMNS,
    OPTION_HIT_RATIO,
    OPTION_SKEW,
    OPTION_VARIANT,
    OPTION_TIMELINE,
    OPTION_WEAK_SCALING,
    OPTION_TPCH,
    OPTION_STEPS,
    OPTION_ROW_GROUP_ROWS,
    OPTION_PAGES,
    OPTION_PAGE_VERSION,
    OPTION_ENCODING,
    OPTION_COMPRESSION,
    OPTION_CHECKSUMS,
    OPTION_FILES,
    OPTION_MAX_FILE_SIZE,
    OPTION_SORT_BY,
    OPTION_PARTITION_BY,
    OPTION_FORCE,
};

/* Which commands take an option, as bits. */
enum {
    QUERY = 1 << COMMAND_QUERY,
    RUN = 1 << COMMAND_TPCH_RUN,
    GENERATE = 1 << COMMAND_TPCH_GENERATE,
    PRIMITIVES = 1 << COMMAND_BENCH_PRIMITIVES,
    SCAN = 1 << COMMAND_BENCH_SCAN,
    EXCHANGE = 1 << COMMAND_BENCH_EXCHANGE,
    JOIN = 1 << COMMAND_BENCH_JOIN,
    BENCH = PRIMITIVES | SCAN | EXCHANGE | JOIN,
    REWRITE = 1 << COMMAND_REWRITE,
    TOPOLOGY = 1 << COMMAND_TOPOLOGY
};

static const struct known_option {
    struct option option;
    int commands;
} known_options[] = {
    {{"dir", required_argument, NULL, OPTION_DIRECTORY}, QUERY | RUN},
    {{"table", required_argument, NULL, OPTION_TABLE}, QUERY | RUN},
    {{"command", required_argument, NULL, OPTION_COMMAND}, QUERY},
    {{"file", required_argument, NULL, OPTION_FILE}, QUERY},
    {{"output", required_argument, NULL, OPTION_OUTPUT}, QUERY | RUN | GENERATE | REWRITE},
    {{"help", no_argument, NULL, OPTION_HELP}, QUERY | RUN | GENERATE | BENCH | REWRITE | TOPOLOGY},
    {{"device", required_argument, NULL, OPTION_DEVICE}, QUERY | RUN | BENCH},
    {{"threads", required_argument, NULL, OPTION_THREADS}, QUERY | RUN | BENCH | REWRITE},
    {{"memory-limit", required_argument, NULL, OPTION_MEMORY_LIMIT}, QUERY | RUN | BENCH | REWRITE},
    {{"device-memory-limit", required_argument, NULL, OPTION_DEVICE_MEMORY_LIMIT}, QUERY | RUN | BENCH},
    {{"io", required_argument, NULL, OPTION_IO}, QUERY | RUN | REWRITE},
    {{"cache", required_argument, NULL, OPTION_CACHE}, QUERY | RUN},
    {{"cache-size", required_argument, NULL, OPTION_CACHE_SIZE}, QUERY | RUN},
    {{"device-cache-size", required_argument, NULL, OPTION_DEVICE_CACHE_SIZE}, QUERY | RUN},
    {{"interface", required_argument, NULL, OPTION_INTERFACE}, QUERY | RUN | BENCH | REWRITE | TOPOLOGY},
    {{"shuffle", required_argument, NULL, OPTION_SHUFFLE}, QUERY | RUN | REWRITE | EXCHANGE | JOIN},
    {{"shuffle-compression", required_argument, NULL, OPTION_SHUFFLE_COMPRESSION},
     QUERY | RUN | REWRITE | EXCHANGE | JOIN},
    {{"format", required_argument, NULL, OPTION_FORMAT}, QUERY | RUN},
    {{"fallback", required_argument, NULL, OPTION_FALLBACK}, QUERY | RUN},
    {{"progress", required_argument, NULL, OPTION_PROGRESS}, QUERY | RUN | REWRITE},
    {{"explain", no_argument, NULL, OPTION_EXPLAIN}, QUERY},
    {{"analyze", no_argument, NULL, OPTION_ANALYZE}, QUERY},
    {{"trace", required_argument, NULL, OPTION_TRACE}, QUERY | JOIN},
    {{"overlap", required_argument, NULL, OPTION_OVERLAP}, QUERY | RUN},
    {{"max-rows", required_argument, NULL, OPTION_MAX_ROWS}, QUERY},
    {{"version", no_argument, NULL, OPTION_VERSION}, QUERY},
    {{"sf", required_argument, NULL, OPTION_SF}, GENERATE | JOIN},
    {{"queries", required_argument, NULL, OPTION_QUERIES}, RUN},
    {{"repeat", required_argument, NULL, OPTION_REPEAT}, RUN | SCAN | EXCHANGE | JOIN},
    {{"runs", required_argument, NULL, OPTION_REPEAT}, SCAN | EXCHANGE | JOIN},
    {{"compare", required_argument, NULL, OPTION_COMPARE}, RUN},
    {{"rows", required_argument, NULL, OPTION_ROWS}, PRIMITIVES},
    {{"sizes", required_argument, NULL, OPTION_ROWS}, EXCHANGE | JOIN},
    {{"json", required_argument, NULL, OPTION_JSON}, BENCH | TOPOLOGY},
    {{"build", required_argument, NULL, OPTION_BUILD}, JOIN},
    {{"probe", required_argument, NULL, OPTION_PROBE}, JOIN},
    {{"columns", required_argument, NULL, OPTION_COLUMNS}, JOIN},
    {{"hit-ratio", required_argument, NULL, OPTION_HIT_RATIO}, JOIN},
    {{"skew", required_argument, NULL, OPTION_SKEW}, JOIN},
    {{"variant", required_argument, NULL, OPTION_VARIANT}, JOIN},
    {{"timeline", required_argument, NULL, OPTION_TIMELINE}, JOIN},
    {{"weak-scaling", no_argument, NULL, OPTION_WEAK_SCALING}, JOIN},
    {{"tpch", no_argument, NULL, OPTION_TPCH}, JOIN},
    {{"steps", no_argument, NULL, OPTION_STEPS}, EXCHANGE},
    {{"row-group-rows", required_argument, NULL, OPTION_ROW_GROUP_ROWS}, QUERY | REWRITE},
    {{"pages", required_argument, NULL, OPTION_PAGES}, QUERY | REWRITE},
    {{"page-version", required_argument, NULL, OPTION_PAGE_VERSION}, QUERY | REWRITE},
    {{"encoding", required_argument, NULL, OPTION_ENCODING}, QUERY | REWRITE},
    {{"compression", required_argument, NULL, OPTION_COMPRESSION}, QUERY | REWRITE},
    {{"checksums", no_argument, NULL, OPTION_CHECKSUMS}, QUERY | REWRITE},
    {{"files", required_argument, NULL, OPTION_FILES}, REWRITE},
    {{"max-file-size", required_argument, NULL, OPTION_MAX_FILE_SIZE}, REWRITE},
    {{"sort-by", required_argument, NULL, OPTION_SORT_BY}, REWRITE},
    {{"partition-by", required_argument, NULL, OPTION_PARTITION_BY}, REWRITE},
    {{"force", no_argument, NULL, OPTION_FORCE}, REWRITE},
};
enum { N_OPTIONS = sizeof known_options / sizeof *known_options };

/* Position of `text` among `names`, which end with NULL; -1 and a message when it is none of them. */
static int find_name(const char *option, const char *text, const char *const *names) {
    struct text known = {0};
    for (int i = 0; names[i]; i++) {
        if (!strcmp(names[i], text)) {
            text_release(&known);
            return i;
        }
        text_format(&known, "%s%s", i ? ", " : "", names[i]);
    }
    report_usage("%s: '%s' is none of %s", option, text, text_string(&known));
    text_release(&known);
    return -1;
}

static int read_count(const char *option, const char *text, long least, long most, long *out) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < least || value > most)
        return report_usage("%s: '%s' is not a number from %ld to %ld", option, text, least, most);
    *out = value;
    return 0;
}

/* "512MB", "4GiB", "80%" (of the machine's memory), or bytes. */
static int read_size(const char *option, const char *text, uint64_t *out_bytes) {
    static const struct {
        const char *suffix;
        double bytes;
    } units[] = {{"", 1},      {"B", 1},      {"KB", 1e3},      {"MB", 1e6},     {"GB", 1e9},
                 {"TB", 1e12}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
    char *end;
    double value = strtod(text, &end);
    while (end > text && *end == ' ')
        end++;
    double unit = 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcasecmp(end, units[i].suffix))
            unit = units[i].bytes;
    const bool is_share = !strcmp(end, "%");
    if (is_share && value > 100)
        return report_usage("%s: '%s' is more than the machine has", option, text);
    if (is_share)
        unit = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 100;
    if (end == text || unit <= 0 || !(value * unit >= 1 && value * unit <= 0x1p62))
        return report_usage("%s: '%s' is not a size such as 512MB, 4GiB or 80%%", option, text);
    *out_bytes = (uint64_t)(value * unit);
    return 0;
}

/* Of memory or files of which the machine's memory is no measure. */
static int read_bytes(const char *option, const char *text, uint64_t *out_bytes) {
    if (strchr(text, '%'))
        return report_usage("%s: '%s' is not a size such as 512MB or 4GiB", option, text);
    return read_size(option, text, out_bytes);
}

static int read_table(struct options *options, char *text) {
    char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return report_usage("-t: '%s' is not NAME=GLOB", text);
    char *name = strndup(text, (size_t)(equals - text));
    if (!name)
        return report_usage("-t: no memory");
    for (int i = 0; i < options->n_tables; i++)
        if (options->tables[i].name && !strcasecmp(options->tables[i].name, name)) {
            free(name);
            return report_usage("-t: '%s' and '%s=%s' are one name", text, options->tables[i].name,
                                options->tables[i].pattern);
        }
    options->tables[options->n_tables++] = (struct table_option){name, equals + 1};
    return 0;
}

static int read_format(struct options *options, const char *text) {
    static const char *const names[] = {"table", "csv", "json", "arrow", "parquet", NULL};
    int at = find_name("--format", text, names);
    if (at < 0)
        return 2;
    static const enum format formats[] = {FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON, FORMAT_JSON, FORMAT_PARQUET};
    if (!strcmp(names[at], "arrow"))
        return report_usage("--format: arrow can't be written yet; use table, csv, json or parquet");
    options->format = formats[at];
    options->has_format = true;
    return 0;
}

static int read_fallback(struct options *options, const char *text) {
    static const char *const names[] = {"allow", "forbid", NULL};
    int at = find_name("--fallback", text, names);
    options->db.engine = at == 1 ? STACHIO_ENGINE_STACHIO : STACHIO_ENGINE_AUTO;
    return at < 0 ? 2 : 0;
}

static int read_device(struct options *options, const char *text) {
    static const char *const names[] = {"auto", "cpu", "cuda", NULL};
    int at = find_name("--device", text, names);
    options->db.device = (enum stachio_device)at;
    return at < 0 ? 2 : 0;
}

static int read_io(struct options *options, const char *text) {
    static const char *const names[] = {"auto", "buffered", "direct", "gds", NULL};
    int at = find_name("--io", text, names);
    options->db.io = (enum stachio_io)at;
    return at < 0 ? 2 : 0;
}

static int read_shuffle(struct options *options, const char *text) {
    static const char *const names[] = {"auto", "one-level", "two-level", NULL};
    int at = find_name("--shuffle", text, names);
    options->db.shuffle = (enum stachio_shuffle)at;
    return at < 0 ? 2 : 0;
}

static int read_shuffle_compression(struct options *options, const char *text) {
    static const char *const names[] = {"auto", "off", "on", NULL};
    int at = find_name("--shuffle-compression", text, names);
    options->db.shuffle_compression = (enum stachio_shuffle_compression)at;
    return at < 0 ? 2 : 0;
}

static int read_cache(struct options *options, const char *text) {
    static const char *const names[] = {"auto", "off", "host", "device", NULL};
    int at = find_name("--cache", text, names);
    options->db.cache = (enum stachio_cache)at;
    return at < 0 ? 2 : 0;
}

static int read_progress(struct options *options, const char *text) {
    static const char *const names[] = {"auto", "always", "never", NULL};
    int at = find_name("--progress", text, names);
    options->progress = (enum progress_mode)at;
    return at < 0 ? 2 : 0;
}

static int read_overlap(struct options *options, const char *text) {
    static const char *const names[] = {"full", "combined", "io", "blocking", NULL};
    int at = find_name("--overlap", text, names);
    options->db.overlap = (enum stachio_overlap)at;
    return at < 0 ? 2 : 0;
}

static int read_scale(struct options *options, const char *text) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value > 0 && value <= 100000))
        return report_usage("--sf: '%s' is not a scale factor such as 1 or 0.1", text);
    options->scale = text;
    return 0;
}

static int read_threads(struct options *options, const char *text) {
    long threads = 0;
    int failed = read_count("--threads", text, 1, 1024, &threads);
    if (!failed)
        options->db.threads = (int)threads;
    return failed;
}

static int read_repeat(struct options *options, const char *text) {
    long repeat = 0;
    int failed = read_count("--repeat", text, 1, 1000, &repeat);
    if (!failed)
        options->repeat = (int)repeat;
    return failed;
}

static int read_max_rows(struct options *options, const char *text) {
    long rows = 0;
    int failed = read_count("--max-rows", text, 0, 1000000000, &rows);
    if (!failed)
        options->max_rows = rows;
    return failed;
}

static int read_compare(struct options *options, const char *text) {
    static const char *const names[] = {"duckdb", NULL};
    options->compare = find_name("--compare", text, names) == 0;
    return options->compare ? 0 : 2;
}

/* A number of that many at most into *out. */
static int read_int(const char *option, const char *text, long most, int *out) {
    long value = 0;
    int failed = read_count(option, text, 1, most, &value);
    if (!failed)
        *out = (int)value;
    return failed;
}

static int read_row_group_rows(struct options *options, const char *text) {
    long rows = 0;
    int failed = read_count("--row-group-rows", text, 1, 1L << 30, &rows);
    if (!failed)
        options->write.row_group_rows = rows;
    return failed;
}

static int read_encoding(struct options *options, const char *text) {
    static const char *const names[] = {"auto", "plain", "dictionary", "v2", NULL};
    int at = find_name("--encoding", text, names);
    options->write.encoding = (enum stachio_encoding)at;
    return at < 0 ? 2 : 0;
}

static int read_compression(struct options *options, const char *text) {
    static const char *const names[] = {"none", "snappy", "lz4", "zstd", NULL};
    int at = find_name("--compression", text, names);
    options->write.compression = (enum stachio_compression)at;
    return at < 0 ? 2 : 0;
}

static int read_max_file_size(struct options *options, const char *text) {
    uint64_t bytes = 0;
    int failed = read_bytes("--max-file-size", text, &bytes);
    if (!failed)
        options->write.file_bytes = (int64_t)bytes;
    return failed;
}

/* "120000000", "120M", "1.5G": so many rows. */
static int read_rows(const char *option, const char *text, int64_t *out_rows) {
    static const char suffixes[] = "kMG";
    char *end;
    double rows = strtod(text, &end);
    const char *suffix = *end ? strchr(suffixes, *end) : NULL;
    for (ptrdiff_t i = 0; suffix && i <= suffix - suffixes; i++)
        rows *= 1000;
    if (end == text || (*end && (!suffix || end[1])) || !(rows >= 0 && rows <= 0x1p40))
        return report_usage("%s: '%s' is not a number of rows such as 1000000 or 120M", option, text);
    *out_rows = (int64_t)rows;
    return 0;
}

static int read_number(const char *option, const char *text, double most, double *out) {
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0 && value <= most))
        return report_usage("%s: '%s' is not a number from 0 to %g", option, text, most);
    *out = value;
    return 0;
}

static int read_variant(struct options *options, const char *text) {
    static const char *const names[] = {"auto", "blocking", "tuned", "chunked", "deferred", NULL};
    const int at = find_name("--variant", text, names);
    options->join.variant = (enum stachio_join_variant)at;
    return at < 0 ? 2 : 0;
}

/* Options of bench join. */
static int read_join_option(struct options *options, int code, const char *argument) {
    struct join_options *join = &options->join;
    switch (code) {
    case OPTION_BUILD: return read_rows(join->tables = "--build", argument, &join->build_rows);
    case OPTION_PROBE: return read_rows(join->tables = "--probe", argument, &join->probe_rows);
    case OPTION_COLUMNS: return read_int(join->tables = "--columns", argument, 64, &join->columns);
    case OPTION_HIT_RATIO: return read_number(join->tables = "--hit-ratio", argument, 1, &join->hit_ratio);
    case OPTION_SKEW: return read_number(join->tables = "--skew", argument, 10, &join->skew);
    case OPTION_VARIANT: return read_variant(options, argument);
    case OPTION_TIMELINE: join->timeline = argument; return 0;
    case OPTION_WEAK_SCALING: join->weak_scaling = true; return 0;
    case OPTION_STEPS: options->steps = true; return 0;
    default: join->tpch = true; return 0;
    }
}

/* Options of writing Parquet. */
static int read_write_option(struct options *options, int code, char *argument) {
    switch (code) {
    case OPTION_ROW_GROUP_ROWS: return read_row_group_rows(options, argument);
    case OPTION_PAGES: return read_int("--pages", argument, 1L << 20, &options->write.pages);
    case OPTION_PAGE_VERSION: return read_int("--page-version", argument, 2, &options->write.page_version);
    case OPTION_ENCODING: return read_encoding(options, argument);
    case OPTION_COMPRESSION: return read_compression(options, argument);
    case OPTION_CHECKSUMS: options->write.checksums = 1; return 0;
    case OPTION_FILES: return read_int("--files", argument, 100000, &options->files);
    case OPTION_MAX_FILE_SIZE: return read_max_file_size(options, argument);
    case OPTION_SORT_BY: options->sort_by = argument; return 0;
    case OPTION_PARTITION_BY: options->partition_by = argument; return 0;
    default: options->force = true; return 0;
    }
}

/* One option with its argument. */
static int read_option(struct options *options, int code, char *argument) {
    if (code >= OPTION_ROW_GROUP_ROWS)
        return read_write_option(options, code, argument);
    if (code >= OPTION_BUILD)
        return read_join_option(options, code, argument);
    switch (code) {
    case OPTION_DIRECTORY:
        options->tables[options->n_tables++] = (struct table_option){NULL, argument};
        return 0;
    case OPTION_TABLE: return read_table(options, argument);
    case OPTION_COMMAND:
        options->scripts[options->n_scripts++] = (struct script_option){argument, NULL};
        return 0;
    case OPTION_FILE:
        options->scripts[options->n_scripts++] = (struct script_option){NULL, argument};
        return 0;
    case OPTION_OUTPUT: options->output = argument; return 0;
    case OPTION_HELP: options->help = true; return 0;
    case OPTION_VERSION: options->version = true; return 0;
    case OPTION_DEVICE: return read_device(options, argument);
    case OPTION_THREADS: return read_threads(options, argument);
    case OPTION_MEMORY_LIMIT: return read_size("--memory-limit", argument, &options->db.memory_limit_bytes);
    case OPTION_DEVICE_MEMORY_LIMIT:
        return read_bytes("--device-memory-limit", argument, &options->db.device_memory_limit_bytes);
    case OPTION_IO: return read_io(options, argument);
    case OPTION_CACHE: return read_cache(options, argument);
    case OPTION_CACHE_SIZE: return read_size("--cache-size", argument, &options->db.cache_bytes);
    case OPTION_DEVICE_CACHE_SIZE:
        return read_bytes("--device-cache-size", argument, &options->db.device_cache_bytes);
    case OPTION_INTERFACE: options->db.interface = argument; return 0;
    case OPTION_FORMAT: return read_format(options, argument);
    case OPTION_SHUFFLE: return read_shuffle(options, argument);
    case OPTION_SHUFFLE_COMPRESSION: return read_shuffle_compression(options, argument);
    case OPTION_FALLBACK: return read_fallback(options, argument);
    case OPTION_PROGRESS: return read_progress(options, argument);
    case OPTION_EXPLAIN: options->explain = true; return 0;
    case OPTION_ANALYZE: options->analyze = true; return 0;
    case OPTION_TRACE: options->trace = argument; return 0;
    case OPTION_OVERLAP: return read_overlap(options, argument);
    case OPTION_MAX_ROWS: return read_max_rows(options, argument);
    case OPTION_SF: return read_scale(options, argument);
    case OPTION_QUERIES: options->queries = argument; return 0;
    case OPTION_ROWS: options->sizes = argument; return 0;
    case OPTION_JSON: options->json = argument; return 0;
    case OPTION_REPEAT: return read_repeat(options, argument);
    default: return read_compare(options, argument);
    }
}

/* What getopt_long wants, for one command; `letters` has room for two an option and two more. */
static void select_options(enum command command, struct option *out_long, char *letters) {
    *letters++ = ':';
    for (int i = 0; i < N_OPTIONS; i++) {
        const struct known_option *known = &known_options[i];
        if (!(known->commands & 1 << command))
            continue;
        *out_long++ = known->option;
        if (known->option.val > OPTION_LONG)
            continue;
        *letters++ = (char)known->option.val;
        if (known->option.has_arg)
            *letters++ = ':';
    }
    *letters = 0;
    *out_long = (struct option){0};
}

/* What getopt_long has refused: it stands behind it, or still at a group of letters. */
static int report_unknown(char **argv, int at) {
    if (optopt == 0 || (optind > at && !strncmp(argv[optind - 1], "--", 2)))
        return report_usage("unknown option %s", argv[optind - 1]);
    return report_usage("unknown option -%c", optopt);
}

static int read_all(struct options *options, enum command command, int argc, char **argv) {
    struct option selected[N_OPTIONS + 1];
    char letters[2 * N_OPTIONS + 2];
    select_options(command, selected, letters);
    opterr = 0;
    optind = 0; /* anew, also behind a group of letters that was left in its middle */
    for (;;) {
        int at = optind;
        int code = getopt_long(argc, argv, letters, selected, NULL);
        if (code < 0)
            break;
        if (code == ':')
            return report_usage("the option %s needs a value", argv[optind - 1]);
        if (code == '?')
            return report_unknown(argv, at);
        int failed = read_option(options, code, optarg);
        if (failed)
            return failed;
    }
    if (command == COMMAND_REWRITE) {
        options->inputs = argv + optind;
        options->n_inputs = argc - optind;
        optind = argc;
    }
    if ((BENCH & 1 << command) && optind < argc)
        options->filter = argv[optind++];
    if (optind < argc)
        return report_usage("'%s' is not an option; SQL goes behind -c", argv[optind]);
    if (options->explain && options->analyze)
        return report_usage("--explain and --analyze exclude each other");
    return 0;
}

int options_read(struct options *options, enum command command, int argc, char **argv) {
    *options = (struct options){
        .max_rows = -1,
        .repeat = 1,
        .join = {.build_rows = 1000000, .probe_rows = 4000000, .columns = 2, .hit_ratio = 0.5}};
    stachio_options_init(&options->db);
    options->db.owns_process = 1;
    stachio_write_options_init(&options->write);
    options->tables = calloc((size_t)argc + 1, sizeof *options->tables);
    options->scripts = calloc((size_t)argc + 1, sizeof *options->scripts);
    if (!options->tables || !options->scripts)
        return report_usage("no memory for the options");
    return read_all(options, command, argc, argv);
}

void options_release(struct options *options) {
    for (int i = 0; i < options->n_tables; i++)
        free(options->tables[i].name);
    free(options->tables);
    free(options->scripts);
    *options = (struct options){0};
}

/* The ranks that follow rank 0 end here. */
static void follow(const struct options *options, struct stachio_db *db) {
    struct stachio_error error = {0};
    const int exit_status = trace_follow(db, options->trace, &error) ? report_error(&error) : 0;
    stachio_close(db); /* rank 0 may end from here on, and mpirun what is left */
    exit(exit_status);
}

enum stachio_status options_open_rank(const struct options *options, struct stachio_db **out_db,
                                      struct stachio_error *error) {
    enum stachio_status status = stachio_open(&options->db, out_db, error);
    if (!status && stachio_rank(*out_db) > 0)
        follow(options, *out_db);
    return status;
}

enum stachio_status options_open(const struct options *options, struct stachio_db **out_db,
                                 struct stachio_error *error) {
    struct stachio_db *db;
    enum stachio_status status = options_open_rank(options, &db, error);
    if (status)
        return status;
    for (int i = 0; !status && i < options->n_tables; i++)
        if (!options->tables[i].name)
            status = stachio_add_directory(db, options->tables[i].pattern, error);
    for (int i = 0; !status && i < options->n_tables; i++)
        if (options->tables[i].name) /* in place of a directory's table of that name */
            status = stachio_add_table(db, options->tables[i].name, options->tables[i].pattern, error);
    if (status)
        stachio_close(db);
    else
        *out_db = db;
    return status;
}
