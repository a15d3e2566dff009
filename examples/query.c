/* Runs a statement over a folder of Parquet files and adds up the integers of the answer's first column.
 * Usage: query DIR SQL */
#include <inttypes.h>
#include <stachio.h>
#include <stdio.h>

static int64_t add_up(const struct ArrowArray *column) {
    const int64_t *values = (const int64_t *)column->buffers[1] + column->offset;
    int64_t sum = 0;
    for (int64_t i = 0; i < column->length; i++)
        sum += values[i];
    return sum;
}

int main(int argc, char **argv) {
    struct stachio_error error = {STACHIO_OK, ""};
    struct stachio_db *db = NULL;
    struct stachio_query *query = NULL;
    struct ArrowArrayStream answer = {0};
    struct ArrowArray rows = {0};
    int64_t sum = 0;
    if (argc != 3) {
        fprintf(stderr, "usage: %s DIR SQL\n", argv[0]);
        return 2;
    }
    if (stachio_open(NULL, &db, &error) == STACHIO_OK &&
        stachio_add_directory(db, argv[1], &error) == STACHIO_OK &&
        stachio_query_create(db, argv[2], &query, &error) == STACHIO_OK &&
        stachio_query_execute(query, &error) == STACHIO_OK &&
        stachio_query_stream(query, &answer, &error) == STACHIO_OK) {
        for (; answer.get_next(&answer, &rows) == 0 && rows.release; rows.release(&rows))
            sum += add_up(rows.children[0]);
        answer.release(&answer);
        printf("%" PRId64 "\n", sum);
    } else {
        fprintf(stderr, "%s\n", error.text);
    }
    stachio_query_destroy(query);
    stachio_close(db);
    return stachio_status_exit(error.status);
}
