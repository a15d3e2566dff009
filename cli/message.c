#include "message.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "interrupt.h"

enum stachio_status set_error(struct stachio_error *error, enum stachio_status status, const char *format,
                              ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    error->status = status;
    return status;
}

enum { MESSAGE_BYTES = 4096 };

/* In one write, since launchers mix what several processes write. Control characters would reach the
 * terminal.
 */
__attribute__((format(printf, 1, 0))) static void print_message(const char *format, va_list arguments) {
    char text[MESSAGE_BYTES];
    const int length = vsnprintf(text, sizeof text - 1, format, arguments);
    const size_t used = length < 0 ? 0 : length < MESSAGE_BYTES - 1 ? (size_t)length : MESSAGE_BYTES - 2;
    for (size_t i = 0; i < used; i++)
        if (((unsigned char)text[i] < 0x20 && text[i] != '\n' && text[i] != '\t') || text[i] == 0x7f)
            text[i] = '?';
    text[used] = '\n';
    if (interrupt_wait(STDERR_FILENO, POLLOUT)) /* one that ends does not wait for a reader */
        fwrite(text, 1, used + 1, stderr);
}

__attribute__((format(printf, 1, 2))) static void print_line(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_message(format, arguments);
    va_end(arguments);
}

int report_error(const struct stachio_error *error) {
    if (!error->text[0])
        return EXIT_CLOSED_PIPE;
    print_line("stachio: error: %s", error->text);
    return stachio_status_exit(error->status);
}

int report_usage(const char *format, ...) {
    char text[MESSAGE_BYTES - 64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    print_line("stachio: %s\nTry 'stachio --help'.", text);
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
    print_line("stachio: %s", text);
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
