/* The interactive shell. */
#ifndef CLI_SHELL_H
#define CLI_SHELL_H

#include "session.h"

/* Reads and runs statements until the input ends; returns the exit status. */
int shell_run(struct session *session);

#endif
