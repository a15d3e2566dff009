/* What the program tells on standard error. */
#ifndef CLI_MESSAGE_H
#define CLI_MESSAGE_H

#include <stachio.h>
#include <stdbool.h>

/* Fills `error` and returns `status`. */
enum stachio_status set_error(struct stachio_error *error, enum stachio_status status, const char *format,
                              ...) __attribute__((format(printf, 3, 4)));

/* "stachio: error: TEXT", unless there is no text; returns the exit status. */
int report_error(const struct stachio_error *error);
/* "stachio: TEXT" and a pointer to --help; returns the exit status. */
int report_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "stachio: TEXT" on one line. */
void report_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The reader of the output has gone: what a shell shows for a program that SIGPIPE ended. */
enum { EXIT_CLOSED_PIPE = 141 };

/* "1.2 GB" */
enum { SIZE_TEXT_BYTES = 32 };
const char *size_text(double bytes, char buffer[SIZE_TEXT_BYTES]);
/* "6,001,215" */
const char *count_text(int64_t count, char buffer[SIZE_TEXT_BYTES]);

double seconds_now(void);

#endif
