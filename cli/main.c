#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "message.h"
#include "processor.h"
#include "query.h"
#include "rewrite.h"
#include "topology.h"
#include "tpch.h"

static const char help[] =
    "Usage: stachio [-d DIR]... [-t NAME=GLOB]... [-c SQL | -f FILE]... [OPTIONS]\n"
    "       stachio tpch generate --sf N -o DIR\n"
    "       stachio tpch run -d DIR [--queries 1,3-5] [--repeat N] [--compare duckdb] [OPTIONS]\n"
    "       stachio bench primitives [--rows N,...] [--json FILE] [OPTIONS] [FILTER]\n"
    "       stachio bench scan [--repeat N] [--json FILE] [OPTIONS] FILE|DIR|GLOB\n"
    "       mpirun -n N stachio bench exchange [--sizes BYTES,...] [--steps] [--repeat N] [--json FILE] "
    "[OPTIONS]\n"
    "       [mpirun -n N] stachio bench join [--build ROWS] [--probe ROWS] [--columns C] [--hit-ratio H] "
    "[--skew Z]\n"
    "               [--tpch [--sf N]] [--weak-scaling] [--variant auto|blocking|tuned|chunked|deferred] "
    "[--sizes "
    "BYTES,...]\n"
    "               [--runs N] [--timeline FILE] [--trace FILE] [--json FILE] [OPTIONS]\n"
    "       stachio rewrite IN... -o OUT [LAYOUT] [OPTIONS]\n"
    "       [mpirun -n N] stachio topology [--json FILE]\n"
    "Answers SQL over Parquet files. Without SQL: an interactive shell, or a script from standard input.\n"
    "\n"
    "  -d, --dir DIR             every DIR/NAME.parquet and DIR/NAME/*.parquet is a table NAME\n"
    "  -t, --table NAME=GLOB     the files that match are the table NAME\n"
    "  -c, --command SQL         run these statements\n"
    "  -f, --file FILE           run the statements of a file (-: standard input)\n"
    "  -o, --output FILE         write the answer to a file\n"
    "      --format F            table, csv, json or parquet (table by default, csv with -o)\n"
    "      --max-rows N          rows of a table that are shown; 0: all (40 on a terminal, else all)\n"
    "      --threads N           worker threads (all processors; 8 with a GPU)\n"
    "      --memory-limit SIZE   for columns, tables and queues, as in 512MB, 4GiB, 50% (80% of the memory)\n"
    "      --device-memory-limit SIZE  the same in the GPU's memory (nine tenths of what is free)\n"
    "      --io IO               auto, buffered, direct (past the system's cache) or gds (to the GPU): how "
    "files are "
    "read\n"
    "      --cache C             auto, off, host or device: where columns are kept for later queries (auto: "
    "host "
    "with a GPU)\n"
    "      --cache-size SIZE     most that the cache takes of the memory limit (half of it)\n"
    "      --device-cache-size SIZE  the same in the device's memory (half of its limit)\n"
    "      --device D            auto, cpu or cuda\n"
    "      --interface NAME      the network interface that ranks (mpirun) use\n"
    "      --shuffle S           auto, one-level or two-level: the way of rows to ranks of other hosts\n"
    "      --shuffle-compression C  auto, off or on: whether rows are packed on their way between ranks\n"
    "      --fallback F          allow or forbid: whether DuckDB may run what stachio can't\n"
    "      --progress P          auto, always or never\n"
    "      --explain             print the plans instead of running them\n"
    "      --analyze             run, then print a profile instead of the answer\n"
    "      --trace FILE          write what threads and the device did, and when, for Perfetto\n"
    "      --overlap O           full, combined, io or blocking: how much goes on at the same time (full)\n"
    "      --version             print the version\n"
    "  -h, --help                print this\n"
    "\n"
    "Layout of Parquet files, for rewrite and --format parquet:\n"
    "      --row-group-rows N    rows of a row group (to 4 Mi)\n"
    "      --pages N             pages of a column chunk, about (200)\n"
    "      --page-version V      data pages of version 1 or 2 (2)\n"
    "      --encoding E          auto (the smallest, by column chunk), plain, dictionary or v2\n"
    "      --compression C       none, snappy, lz4 or zstd (none)\n"
    "      --checksums           a CRC in every page header\n"
    "Only rewrite (OUT: NAME.parquet, or a directory):\n"
    "      --sort-by COL[ desc][ nulls first],...\n"
    "      --partition-by COL,...  a directory of folders COL=VALUE\n"
    "      --files N             a directory of N files\n"
    "      --max-file-size SIZE  a directory of files of SIZE at most\n"
    "      --force               replace what is there\n"
    "\n"
    "Exit status: 0 done, 1 the query is wrong or answers differ (tpch run), 2 usage, 3 a file is missing, "
    "corrupt\n"
    "or can't be written, 4 out of memory, 5 a rank was lost, 70 an internal error, 130 interrupted, 141 the "
    "reader\n"
    "of the output has gone.\n";

/* Standard output takes the text, or the exit status tells. */
static int print_text(const char *text) {
    struct output output;
    struct stachio_error error;
    enum stachio_status status = output_open(&output, NULL, &error);
    text_add(&output.text, text);
    if (!status)
        status = output_commit(&output, &error);
    output_close(&output);
    return status ? report_error(&error) : 0;
}

static int run_query(int argc, char **argv) {
    struct options options;
    int exit_status = options_read(&options, COMMAND_QUERY, argc, argv);
    if (exit_status == 0) {
        if (options.help)
            exit_status = print_text(help);
        else if (options.version)
            exit_status = print_text("stachio " STACHIO_VERSION "\n");
        else if (options.format == FORMAT_PARQUET && !options.output)
            exit_status = report_usage("--format: parquet needs -o FILE");
        else
            exit_status = query_run(&options);
    }
    options_release(&options);
    return exit_status;
}

static int run_command(int argc, char **argv) {
    static const char *const planned[] = {"report"};
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file too large is an error of write, which leaves nothing (ulimit -f) */
    const char *command = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < sizeof planned / sizeof *planned; i++)
        if (!strcmp(command, planned[i]))
            return report_usage("the command %s is not in this build", command);
    const bool has_parts = !strcmp(command, "tpch") || !strcmp(command, "bench");
    if (has_parts && argc == 3 && (!strcmp(argv[2], "--help") || !strcmp(argv[2], "-h")))
        return print_text(help);
    if (!strcmp(command, "tpch"))
        return tpch_main(argc - 1, argv + 1, help);
    if (!strcmp(command, "bench"))
        return bench_main(argc - 1, argv + 1, help);
    if (!strcmp(command, "rewrite"))
        return rewrite_main(argc - 1, argv + 1, help);
    if (!strcmp(command, "topology"))
        return topology_main(argc - 1, argv + 1, help);
    return run_query(argc, argv);
}

/* Else what is opened first would be taken for them. Input and output can't be used (EBADF); messages go
 * nowhere.
 */
static void fill_descriptors(void) {
    static const int ways[] = {O_WRONLY, O_RDONLY, O_WRONLY};
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", ways[fd]) != fd)
            _exit(stachio_status_exit(STACHIO_OUTPUT));
}

int main(int argc, char **argv) {
    fill_descriptors();
    return processor_is_too_old() ? 2 : run_command(argc, argv);
}
