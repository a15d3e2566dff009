/* Private to src/api/parts*.c: whose files are whose, and the footers of files that are elsewhere. */
#ifndef SX_API_PARTS_FILE_H
#define SX_API_PARTS_FILE_H

#include "api/parts.h"
#include "api/seat.h"
#include "storage/file.h"

/* Where a rank is. */
struct part_place {
    int rank, node, gpu;
    int node_ranks; /* on its host */
};

/* A file of a table of which each rank has some. */
struct part_file {
    const char *table;
    const char *path; /* on its rank */
    int rank;
    int64_t size_bytes;
    const uint8_t *footer;
    uint32_t footer_bytes;
};

/* What a database keeps of such a table. */
struct part_table {
    char *name;
    struct part_stand_in {
        int fd; /* a file in memory */
        char *name;
    } *stand_ins; /* of other ranks' files */
    int64_t n_stand_ins, stand_in_capacity;
    struct part_own {
        char *path;
        struct sx_file_stamp stamp;
    } *own; /* this rank's files */
    int64_t n_own, own_capacity;
};

struct sx_parts {
    struct part_table *tables;
    int64_t n_tables, capacity;
};

/* Of ranks in these seats: out_places[r]. */
void parts_place(const struct sx_seat *seats, int n, struct part_place *out_places);
/* With the placeholders' values; in the arena, NULL: no memory. */
const char *parts_substitute(struct sx_arena *arena, const char *pattern, const struct part_place *place);

/* A file that has the footer where the one of that size has it, and zeros elsewhere; its path, in the arena.
 * It goes with the table. */
SX_MUST_CHECK enum sx_status parts_stand_in(struct part_table *table, struct sx_arena *arena,
                                            const struct part_file *file, const char **out_path,
                                            struct sx_error *error);
/* Remembers what the file is now. */
SX_MUST_CHECK enum sx_status parts_keep(struct part_table *table, const char *path,
                                        const struct sx_file_stamp *stamp, struct sx_error *error);
/* Writes "rank 1's PATH" where an error names the file in memory. */
void parts_name_ranks(const struct part_table *table, struct sx_error *error);
void parts_table_release(struct part_table *table);

#endif
