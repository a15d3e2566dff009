/* Small tables for the tests of plans: Parquet files in the scratch folder, written by the front end. */
#ifndef SX_TEST_UNIT_PLAN_TABLES_H
#define SX_TEST_UNIT_PLAN_TABLES_H

#include "base/arrow.h"
#include "plan/frontend.h"
#include "scratch.h"

/* The table `name`, of the query's rows. */
static inline void add_table(struct sx_frontend *frontend, const char *name, const char *select) {
    static char sql[1 << 14];
    struct sx_error error = {0};
    struct ArrowArrayStream stream;
    struct ArrowArray array;
    char file[64];
    snprintf(file, sizeof file, "%s.parquet", name);
    const char *path = in_scratch(file);
    const int length = snprintf(sql, sizeof sql, "COPY (%s) TO '%s' (FORMAT parquet)", select, path);
    assert(length < (int)sizeof sql);
    if (sx_frontend_run(frontend, sql, &stream, &error) != SX_OK) {
        fprintf(stderr, "%s\n%s\n", sql, error.text);
        abort();
    }
    assert(stream.get_next(&stream, &array) == 0 && array.length == 1);
    array.release(&array);
    stream.release(&stream);
    assert(sx_frontend_add_table(frontend, name, &path, 1, NULL, &error) == SX_OK);
}

#endif
