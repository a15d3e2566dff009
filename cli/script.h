/* Files of SQL. */
#ifndef CLI_SCRIPT_H
#define CLI_SCRIPT_H

#include <stachio.h>

#include "text.h"

/* Appends all of a file; "-" is standard input. */
enum stachio_status script_read(const char *path, struct text *out, struct stachio_error *error);

/* That it is UTF-8 without zero bytes, as SQL must be; STACHIO_QUERY says where it is not. */
enum stachio_status script_check(const char *name, const char *text, size_t n, struct stachio_error *error);

#endif
