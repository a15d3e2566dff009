/* query_server FD: what `stachio OPTIONS... -c SQL` would do, for one request after the other in one process,
 * so that tests pay for the start of a process and of a GPU once (test/lib/server.py).
 *
 * A request on standard input is "N BYTES\n" and BYTES bytes: N texts, each with a zero byte behind it, the
 * options and, last, the SQL. Answers and messages go to standard output and standard error; then the exit
 * status goes to the descriptor FD, as "STATUS\n". Databases stay open for later requests with the same
 * options. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "message.h"
#include "query.h"

enum { MOST_OPEN = 6, MOST_ARGUMENTS = 1000, EXIT_BROKEN = 70 };

struct request {
    char *argv[MOST_ARGUMENTS + 3]; /* "stachio", options, "-c", SQL */
    int argc;
    char *bytes;      /* the texts */
    size_t key_bytes; /* the options' share of them */
};

/* A database by its options; key NULL: none. */
struct opened {
    char *key;
    size_t key_bytes;
    struct stachio_db *db;
    long last_request; /* that used it */
};

struct server {
    struct opened opened[MOST_OPEN];
    long n_requests;
};

/* Cuts `bytes` up; false: these are not n texts. */
static bool split_request(struct request *request, int n, size_t size_bytes) {
    char *at = request->bytes, *end = at + size_bytes;
    request->argv[request->argc++] = "stachio";
    for (int i = 0; i < n; i++) {
        char *zero = memchr(at, 0, (size_t)(end - at));
        if (!zero)
            return false;
        if (i == n - 1) {
            request->key_bytes = (size_t)(at - request->bytes);
            request->argv[request->argc++] = "-c";
        }
        request->argv[request->argc++] = at;
        at = zero + 1;
    }
    return at == end;
}

/* False at the end of the requests, and where one makes no sense. */
static bool read_request(FILE *from, struct request *request) {
    char line[64], *at;
    *request = (struct request){0};
    if (!fgets(line, sizeof line, from))
        return false;
    const long n = strtol(line, &at, 10), size_bytes = strtol(at, NULL, 10);
    if (n < 1 || n > MOST_ARGUMENTS || size_bytes < n)
        return false;
    request->bytes = malloc((size_t)size_bytes);
    return request->bytes && fread(request->bytes, (size_t)size_bytes, 1, from) == 1 &&
           split_request(request, (int)n, (size_t)size_bytes);
}

static void close_database(struct opened *opened) {
    stachio_close(opened->db);
    free(opened->key);
    *opened = (struct opened){0};
}

/* NULL: none is open for these options. */
static struct opened *find_database(struct server *server, const struct request *request) {
    for (int i = 0; i < MOST_OPEN; i++) {
        struct opened *opened = &server->opened[i];
        if (opened->key && opened->key_bytes == request->key_bytes &&
            memcmp(opened->key, request->bytes, request->key_bytes) == 0)
            return opened;
    }
    return NULL;
}

/* A place without a database: the one of the least recently used, where all have one. */
static struct opened *make_place(struct server *server) {
    struct opened *oldest = server->opened;
    for (int i = 0; i < MOST_OPEN && oldest->key; i++)
        if (!server->opened[i].key || server->opened[i].last_request < oldest->last_request)
            oldest = &server->opened[i];
    close_database(oldest);
    return oldest;
}

/* NULL: `error` says why. */
static struct opened *open_database(struct server *server, const struct request *request,
                                    const struct options *options, struct stachio_error *error) {
    struct opened opened = {.key = malloc(request->key_bytes + 1), .key_bytes = request->key_bytes};
    if (!opened.key) {
        set_error(error, STACHIO_OUT_OF_MEMORY, "no memory for a request");
        return NULL;
    }
    if (options_open(options, &opened.db, error)) {
        free(opened.key);
        return NULL;
    }
    memcpy(opened.key, request->bytes, request->key_bytes);
    struct opened *place = make_place(server);
    *place = opened;
    return place;
}

/* The exit status. */
static int run(struct server *server, const struct request *request, const struct options *options) {
    struct stachio_error error = {0};
    struct opened *opened = find_database(server, request);
    if (!opened)
        opened = open_database(server, request, options, &error);
    if (!opened)
        return report_error(&error);
    opened->last_request = ++server->n_requests;
    return query_run_on(options, opened->db);
}

static int answer(struct server *server, struct request *request) {
    struct options options;
    int exit_status = options_read(&options, COMMAND_QUERY, request->argc, request->argv);
    if (!exit_status)
        exit_status = run(server, request, &options);
    options_release(&options);
    return exit_status;
}

/* Requests come from what was standard input, where statements find nothing. */
static FILE *take_input(void) {
    const int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0)
        return NULL;
    close(nothing);
    return fdopen(fd, "rb");
}

int main(int argc, char **argv) {
    struct server server = {0};
    struct request request;
    FILE *requests = take_input(), *replies = fdopen(argc > 1 ? atoi(argv[1]) : -1, "wb");
    if (!requests || !replies)
        return EXIT_BROKEN;
    signal(SIGPIPE, SIG_IGN);
    while (read_request(requests, &request)) {
        const int exit_status = answer(&server, &request);
        free(request.bytes);
        fflush(stdout);
        fprintf(replies, "%d\n", exit_status);
        fflush(replies);
    }
    free(request.bytes);
    for (int i = 0; i < MOST_OPEN; i++)
        close_database(&server.opened[i]);
    fclose(replies);
    fclose(requests);
    return 0;
}
