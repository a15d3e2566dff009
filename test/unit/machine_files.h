/* A machine's system files, made up in a scratch folder. */
#ifndef SX_TEST_UNIT_MACHINE_FILES_H
#define SX_TEST_UNIT_MACHINE_FILES_H

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[] = "/tmp/stachio_machine_XXXXXX";

static inline void make_machine(void) {
    assert(mkdtemp(root));
}

static inline void write_line(const char *name, const char *line) {
    char path[256];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert(file && fprintf(file, "%s\n", line) > 0 && fclose(file) == 0);
}

static inline void remove_machine(void) {
    char command[64];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    assert(system(command) == 0);
}

#endif
