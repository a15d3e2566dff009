/* Inside of src/api: libraries of ours that are loaded only where they are needed. */
#ifndef SX_API_LIBRARY_H
#define SX_API_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

/* The environment variable's value, or NULL when it is not set or empty. */
const char *sx_environment(const char *name);
/* The integer that it says, or `usual`. */
int64_t sx_environment_integer(const char *name, int64_t usual);

/* Loads the library that the environment's `variable` names, else `name` beside libstachio (or the program).
 * `flags`: dlopen's. NULL: `problem` says why. */
void *sx_library_load(const char *name, const char *variable, int flags, char *problem, size_t problem_bytes);

#endif
