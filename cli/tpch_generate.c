#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interrupt.h"
#include "message.h"
#include "temporary.h"
#include "tpch.h"

#define GENERATOR "tpchgen-cli"

enum { NOT_STARTED = 127 }; /* exit status, as shells have it */

/* DIR/a exists afterwards for DIR/a/b, if that can be. */
static void make_directories_above(const char *path) {
    struct text prefix = {0};
    for (const char *at = path; *at; at++) {
        if (*at == '/' && at > path) {
            text_clear(&prefix);
            text_append(&prefix, path, (size_t)(at - path));
            mkdir(text_string(&prefix), 0777);
        }
    }
    text_release(&prefix);
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

/* The generator's own talk goes to standard error. It ends with this program, however that ends. */
static _Noreturn void become_generator(const char *program, const char *scale, const char *directory,
                                       pid_t parent) {
    const char *const arguments[] = {GENERATOR, "parquet", "-s", scale, "--overwrite", "-o", directory, NULL};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
        execvp(program, (char *const *)(uintptr_t)arguments);
    _exit(NOT_STARTED);
}

/* The child's exit status, as shells have it. An interrupt ends it. */
static int wait_for(pid_t child) {
    const int fd = (int)syscall(SYS_pidfd_open, child, 0);
    int status;
    if (fd >= 0 && !interrupt_wait(fd, POLLIN))
        kill(child, SIGKILL);
    if (fd >= 0)
        close(fd);
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR)
            return NOT_STARTED;
        if (interrupt_seen()) /* before Linux 5.3 there is no such fd */
            kill(child, SIGKILL);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_generator(const char *program, const char *scale, const char *directory) {
    const pid_t parent = getpid(), child = fork();
    if (child == 0)
        become_generator(program, scale, directory, parent);
    return child < 0 ? NOT_STARTED : wait_for(child);
}

static int generate(const char *scale, const char *directory) {
    int result = run_generator(GENERATOR, scale, directory);
    if (result == NOT_STARTED) {
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
    int result = generate(options->scale, partial);
    if (result == 0 && rename(partial, options->output) == 0)
        return 0;
    int failure = errno;
    temporary_remove_tree(partial);
    if (result == 0)
        return fail(STACHIO_OUTPUT, options->output, strerror(failure));
    if (interrupt_seen())
        return fail(STACHIO_CANCELLED, GENERATOR, "cancelled");
    if (result == NOT_STARTED)
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
    struct stachio_error error;
    char *partial = NULL;
    interrupt_install();
    make_directories_above(options->output);
    int exit_status = temporary_make(options->output, true, &partial, &error)
                          ? report_error(&error)
                          : generate_directory(options, partial);
    free(partial);
    return exit_status;
}
