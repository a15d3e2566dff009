/* Where statements begin and end. Private to src/plan. */
#ifndef SX_PLAN_SPLIT_H
#define SX_PLAN_SPLIT_H

#include <stdbool.h>

/* Past blanks and comments. */
const char *sx_skip_blanks(const char *at);
/* Whether the text holds one statement, with or without a semicolon behind it. */
bool sx_is_one_statement(const char *text);

#endif
