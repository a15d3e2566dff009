/* stachio without a command: statements over tables. */
#ifndef CLI_QUERY_H
#define CLI_QUERY_H

#include "options.h"

/* Opens the database and does what the options ask for; the exit status. */
int query_run(const struct options *options);
/* The same with a database that is open, and stays so: those options that say what to open do not count. */
int query_run_on(const struct options *options, struct stachio_db *db);

#endif
