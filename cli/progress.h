/* A line on standard error that tells how far a query is. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <pthread.h>

#include "options.h"

struct progress {
    struct stachio_query *query;
    bool runs;
    bool redraws; /* one line, drawn again and again; else a line each time */
    bool drawn;
    bool stop;
    double delay_s; /* before the first line */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
};

/* Begins to tell about a query that is about to run. Does nothing where the mode says so. */
void progress_start(struct progress *progress, struct stachio_query *query, enum progress_mode mode);
/* Clears the line. */
void progress_stop(struct progress *progress);

#endif
