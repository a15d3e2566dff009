/* A scratch folder of the test's own, in TMPDIR. */
#ifndef SX_TEST_UNIT_SCRATCH_H
#define SX_TEST_UNIT_SCRATCH_H

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static char scratch[192];

static inline void make_scratch(void) {
    const char *parent = getenv("TMPDIR");
    const int length =
        snprintf(scratch, sizeof scratch, "%s/stachio_test_XXXXXX", parent && *parent ? parent : "/tmp");
    assert(length < (int)sizeof scratch && mkdtemp(scratch));
}

static inline void remove_scratch(void) {
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s'", scratch);
    assert(system(command) == 0);
}

/* The path of a file in the scratch folder; a few of them live at the same time. */
static inline const char *in_scratch(const char *name) {
    static char paths[16][256];
    static int next = 0;
    char *path = paths[next++ % 16];
    assert(snprintf(path, sizeof paths[0], "%s/%s", scratch, name) < (int)sizeof paths[0]);
    return path;
}

#endif
