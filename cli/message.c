#include "message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum stachio_status set_error(struct stachio_error *error, enum stachio_status status, const char *format,
                              ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    error->status = status;
    return status;
}

/* Control characters would reach the terminal. */
static void print_line(const char *prefix, const char *text) {
    fputs(prefix, stderr);
    for (; *text; text++) {
        const bool is_control =
            ((unsigned char)*text < 0x20 && *text != '\n' && *text != '\t') || *text == 0x7f;
        fputc(is_control ? '?' : *text, stderr);
    }
    fputc('\n', stderr);
}

int report_error(const struct stachio_error *error) {
    if (!error->text[0])
        return EXIT_CLOSED_PIPE;
    print_line("stachio: error: ", error->text);
    return stachio_status_exit(error->status);
}

int report_usage(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("stachio: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("\nTry 'stachio --help'.\n", stderr);
    va_end(arguments);
    return stachio_status_exit(STACHIO_USAGE);
}

void report_note(const char *format, ...) {
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *at = text; (at = strchr(at, '\n'));)
        *at = ' ';
    print_line("stachio: ", text);
}

const char *size_text(double bytes, char buffer[SIZE_TEXT_BYTES]) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    size_t unit = 0;
    for (; bytes >= 999.5 && unit + 1 < sizeof units / sizeof *units; unit++)
        bytes /= 1000;
    snprintf(buffer, SIZE_TEXT_BYTES, unit && bytes < 99.95 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return buffer;
}

const char *count_text(int64_t count, char buffer[SIZE_TEXT_BYTES]) {
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%lld", (long long)count), out = 0;
    for (int i = 0; i < n; i++) {
        buffer[out++] = digits[i];
        if ((n - 1 - i) % 3 == 0 && i != n - 1 && digits[i] != '-')
            buffer[out++] = ',';
    }
    buffer[out] = 0;
    return buffer;
}

double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
