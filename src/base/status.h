/* Status codes and error texts. The first function that detects an error writes it; callers may put context
 * in front. */
#ifndef SX_BASE_STATUS_H
#define SX_BASE_STATUS_H

/* X(name, exit status of the program, phrase) */
#define SX_STATUS_LIST(X)                                  \
    X(OK, 0, "done")                                       \
    X(QUERY, 1, "the query is wrong")                      \
    X(USAGE, 2, "usage")                                   \
    X(FILE, 3, "a file is missing, corrupt or unreadable") \
    X(OUT_OF_MEMORY, 4, "out of memory")                   \
    X(RANK_LOST, 5, "a rank was lost")                     \
    X(CANCELLED, 130, "cancelled")                         \
    X(UNSUPPORTED, 1, "not supported by the engine")       \
    X(OUTPUT, 3, "the output could not be written")        \
    X(INTERNAL, 70, "internal error")

enum sx_status {
#define SX_STATUS_ENUM(name, exit_status, phrase) SX_##name,
    SX_STATUS_LIST(SX_STATUS_ENUM)
#undef SX_STATUS_ENUM
};

#define SX_ERROR_TEXT_BYTES 2048

/* Provided by the caller; zeroed means "no error". */
struct sx_error {
    enum sx_status status;
    char text[SX_ERROR_TEXT_BYTES];
};

#define SX_MUST_CHECK          __attribute__((warn_unused_result))
#define SX_PRINTF(text, first) __attribute__((format(printf, text, first)))

/* Writes the text (cut to fit) and returns `status`. `error` may be NULL. */
enum sx_status sx_error_set(struct sx_error *error, enum sx_status status, const char *format, ...)
    SX_PRINTF(3, 4);

/* Puts "prefix: " in front of the text of an error that is set; returns its status. */
enum sx_status sx_error_prefix(struct sx_error *error, const char *format, ...) SX_PRINTF(2, 3);

int sx_status_exit(enum sx_status status);
const char *sx_status_phrase(enum sx_status status);

/* Returns from the calling function on failure. */
#define SX_TRY(expression)                            \
    do {                                              \
        enum sx_status sx_try_status_ = (expression); \
        if (sx_try_status_ != SX_OK)                  \
            return sx_try_status_;                    \
    } while (0)

/* Jumps to `out:` on failure; the function's `status` variable holds the failure. */
#define SX_GO(expression)      \
    do {                       \
        status = (expression); \
        if (status != SX_OK)   \
            goto out;          \
    } while (0)

/* The analyser can't see that sx_error_set returns the status it is given. */
#ifdef __clang_analyzer__
#define sx_error_set(error, status, ...) ((void)(sx_error_set)((error), (status), __VA_ARGS__), (status))
#endif

#endif
