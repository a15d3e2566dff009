/* Inside of src/api: reading files as they are, which is all that storage can give. */
#ifndef SX_API_RAW_READ_H
#define SX_API_RAW_READ_H

#include "base/team.h"
#include "storage/reader.h"

enum { SX_RAW_MOST_IN_FLIGHT = 16 };

struct sx_raw_read {
    struct sx_reader *reader;
    const char *const *paths;
    int n_paths;
    int n_in_flight;     /* requests of 4 MiB that a thread has at a time, to SX_RAW_MOST_IN_FLIGHT */
    double most_seconds; /* no request begins after it; 0: all is read */
    /* What was read stays in memory until so many bytes have come after it, as a scan has it; 0: a thread's
     * requests go to the same memory again. Where a virtual disk is copied by processors, that is faster. */
    int64_t kept_bytes;
};

/* Reads with all members of the team, in the order of the files. Errors name the file. */
SX_MUST_CHECK enum sx_status sx_raw_read(struct sx_team *team, const struct sx_raw_read *raw,
                                         int64_t *out_bytes, double *out_seconds, struct sx_error *error);

#endif
