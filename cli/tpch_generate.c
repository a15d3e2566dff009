#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "message.h"
#include "tpch.h"

#define GENERATOR "tpchgen-cli"

static const char *const tables[] = {"customer", "lineitem", "nation", "orders",
                                     "part",     "partsupp", "region", "supplier"};
enum { N_TABLES = sizeof tables / sizeof *tables };

/* DIR/a/b exists afterwards, if that can be. */
static void make_directories(const char *path) {
    struct text prefix = {0};
    for (const char *at = path; *at; at++) {
        if (*at == '/' && at > path) {
            text_clear(&prefix);
            text_append(&prefix, path, (size_t)(at - path));
            mkdir(text_string(&prefix), 0777);
        }
    }
    mkdir(path, 0777);
    text_release(&prefix);
}

/* What a failed run left. */
static void remove_tables(const char *directory) {
    for (int i = 0; i < N_TABLES; i++) {
        struct text path = {0};
        text_format(&path, "%s/%s.parquet", directory, tables[i]);
        unlink(text_string(&path));
        text_release(&path);
    }
    rmdir(directory);
}

/* The generator of a source tree: PROGRAM/../../../.deps/venv/bin, for a PROGRAM of build/PRESET. */
static void find_beside_program(struct text *out) {
    char program[4096];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n < 0)
        n = 0;
    program[n] = 0;
    for (int i = 0; i < 3; i++) {
        char *slash = strrchr(program, '/');
        if (slash)
            *slash = 0;
    }
    text_format(out, "%s/.deps/venv/bin/" GENERATOR, program);
}

/* The generator's own talk goes to standard error. Its exit status; -1: it could not be started. */
static int run_generator(const char *program, const char *scale, const char *directory) {
    const char *const arguments[] = {GENERATOR, "parquet", "-s", scale, "--overwrite", "-o", directory, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    pid_t child;
    int failure = posix_spawnp(&child, program, &actions, NULL, (char *const *)(uintptr_t)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    if (failure || waitpid(child, &status, 0) < 0)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int generate(const char *scale, const char *directory) {
    int result = run_generator(GENERATOR, scale, directory);
    if (result < 0) {
        struct text beside = {0};
        find_beside_program(&beside);
        result = run_generator(text_string(&beside), scale, directory);
        text_release(&beside);
    }
    return result;
}

static int fail(enum stachio_status status, const char *what, const char *why) {
    struct stachio_error error;
    set_error(&error, status, "%s: %s", what, why);
    return report_error(&error);
}

/* Generates into `partial`, then renames. */
static int generate_directory(const struct options *options, const char *partial) {
    make_directories(partial);
    int result = generate(options->scale, partial);
    if (result == 0 && rename(partial, options->output) == 0)
        return 0;
    int failure = errno;
    remove_tables(partial);
    if (result == 0)
        return fail(STACHIO_OUTPUT, options->output, strerror(failure));
    if (result < 0)
        return fail(STACHIO_USAGE, GENERATOR,
                    "not found on the PATH; 'make demo' installs it, or 'pip install tpchgen-cli'");
    struct text why = {0};
    text_format(&why, "ended with status %d", result);
    int exit_status = fail(STACHIO_OUTPUT, GENERATOR, text_string(&why));
    text_release(&why);
    return exit_status;
}

int tpch_generate(const struct options *options) {
    if (!options->scale || !options->output)
        return report_usage("tpch generate needs --sf N and -o DIR");
    struct stat existing;
    if (!stat(options->output, &existing) && rmdir(options->output))
        return fail(STACHIO_OUTPUT, options->output, "exists already");
    struct text partial = {0};
    text_add(&partial, options->output);
    while (partial.used_bytes > 1 && partial.bytes[partial.used_bytes - 1] == '/')
        partial.used_bytes--;
    text_add(&partial, ".part");
    int exit_status = generate_directory(options, text_string(&partial));
    text_release(&partial);
    return exit_status;
}
