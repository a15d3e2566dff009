/* As much of SQL's syntax as the program itself needs. */
#ifndef CLI_STATEMENT_H
#define CLI_STATEMENT_H

#include <stdbool.h>

/* The text behind `keyword` (any case) and the space after it when the statement begins so, else NULL. */
const char *statement_after(const char *sql, const char *keyword);
/* Whether it is one that has rows for an answer, which can be written as Parquet too. */
bool statement_is_select(const char *sql);
/* Whether a text ends with a semicolon that is outside of quotes and comments, so that it can be run. */
bool statement_is_complete(const char *text);
/* Nothing but space, comments and semicolons. */
bool statement_is_empty(const char *text);

/* NULL: no memory. */
char **statements_copy(const char *const *statements, int n);
void statements_free(char **statements, int n);

#endif
