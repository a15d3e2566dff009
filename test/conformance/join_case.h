/* Inputs and reference of the join family. */
#ifndef TEST_CONFORMANCE_JOIN_CASE_H
#define TEST_CONFORMANCE_JOIN_CASE_H

#include "conformance.h"

enum { MAX_KEYS = 3, N_PAYLOAD = 3 };

/* DENSE: integers of a small range around 0; UNIQUE: all different, or each `copies` times (0 more often),
 * `step` from one to the next, unordered */
enum style { RANDOM, FEW, DENSE, UNIQUE };
enum dictionaries { NO_DICT, BUILD_DICT, PROBE_DICT, BOTH_DICT };

struct join_case {
    struct sx_type types[MAX_KEYS];
    enum style styles[MAX_KEYS];
    int n_keys, n_workers;
    double nulls;
    int64_t build_rows, probe_rows;
    int64_t max_pairs;
    enum dictionaries dictionaries;
    bool null_equal; /* a key of UNIQUE is NULL once, then */
    int64_t step, copies;
    int64_t expected_rows; /* as the join is told; 0: it is not */
};

/* Both sides in host memory. Payload: the row's number, a string, the string again as a dictionary. */
struct sides {
    struct sx_tensor build[MAX_KEYS], probe[MAX_KEYS], payload[N_PAYLOAD];
};

/* Number of the row's key among all keys of both sides: equal keys have equal numbers; -1 matches nothing. */
struct numbering {
    int64_t *build, *probe;
    int64_t *build_count; /* rows per number */
    bool unique;
};

void join_case_release_sides(struct sides *sides);
/* Random keys of which some are on both sides. */
SX_MUST_CHECK enum sx_status join_case_make_sides(struct conformance *c, const struct join_case *test,
                                                  struct sides *sides);
/* The reference; false when memory is short. */
bool join_case_number_keys(const struct join_case *test, const struct sides *sides, struct numbering *out);
void join_case_release_numbering(struct numbering *numbering);
int64_t join_case_expected_matches(const struct numbering *numbering, int64_t probe_row);
/* Rows [first, first + rows) of n host columns, in the backend's memory. */
SX_MUST_CHECK enum sx_status join_case_send_slices(struct conformance *c, const struct sx_tensor *columns,
                                                   int n, int64_t first, int64_t rows, struct sx_tensor *out);
void join_case_release_all(struct sx_tensor *columns, int n);
/* Payload column k of all build rows, on the backend. */
SX_MUST_CHECK enum sx_status join_case_payload(struct conformance *c, const struct sx_join *join, int k,
                                               struct sx_tensor *out_column);
/* All N_PAYLOAD columns together, on the host. */
SX_MUST_CHECK enum sx_status join_case_receive_all(struct conformance *c, const struct sx_join *join,
                                                   struct sx_tensor *out_columns);
/* One on the host. */
SX_MUST_CHECK enum sx_status join_case_receive(struct conformance *c, const struct sx_join *join, int k,
                                               struct sx_tensor *out_column);
/* Rows [first, first + rows) of the build side. */
SX_MUST_CHECK enum sx_status join_case_append_batch(struct conformance *c, struct sx_join *join,
                                                    const struct join_case *test, const struct sides *sides,
                                                    int worker, int64_t first, int64_t rows);
SX_MUST_CHECK enum sx_status join_case_create(struct conformance *c, const struct join_case *test,
                                              struct sx_join **out);
/* Appends everything, one worker after the other, and builds. */
SX_MUST_CHECK enum sx_status join_case_build(struct conformance *c, const struct join_case *test,
                                             const struct sides *sides, struct sx_join *join);

/* One case with all that is checked of it. */
SX_MUST_CHECK enum sx_status join_case_run(struct conformance *c, const struct join_case *test);
/* With every limit on memory it either works or says so, and leaves nothing behind. */
SX_MUST_CHECK enum sx_status join_case_run_short_of_memory(struct conformance *c,
                                                           const struct join_case *test);

/* join_expect.c: the number of build rows is told before they come. */
SX_MUST_CHECK enum sx_status join_expect_cases(struct conformance *c);
/* join_payload.c: strings that come in several dictionaries, by value and by layout. */
SX_MUST_CHECK enum sx_status join_payload_cases(struct conformance *c);
/* join_key.c: payload with the key in it. */
SX_MUST_CHECK enum sx_status join_key_cases(struct conformance *c);
/* join_wide.c: payload of many columns. */
SX_MUST_CHECK enum sx_status join_wide_cases(struct conformance *c);
/* join_cursor.c: probes in many calls. */
SX_MUST_CHECK enum sx_status join_cursor_cases(struct conformance *c);
SX_MUST_CHECK enum sx_status join_take_cases(struct conformance *c);

/* Whether join_take gives what it should. original[r]: which row of the build input became build row r. */
SX_MUST_CHECK enum sx_status join_case_check_take(struct conformance *c, const struct join_case *test,
                                                  const struct sides *sides,
                                                  const struct numbering *numbering,
                                                  const struct sx_join *join, const int64_t *original);

#endif
