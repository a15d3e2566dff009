/* What kernels get of a tensor. Plain data, for C and for kernels. */
#ifndef SX_BACKEND_CUDA_COLUMN_H
#define SX_BACKEND_CUDA_COLUMN_H

#include "tensor/type.h"

/* Layouts of struct sx_tensor, which only C can include. */
enum cuda_layout { CUDA_FLAT, CUDA_DICT, CUDA_CONSTANT };

struct cuda_column {
    const void *values;   /* of DICT: int32_t codes */
    const uint8_t *valid; /* NULL: no nulls */
    const void *dict;     /* of DICT: the entries' values */
    int32_t layout;
    int32_t phys; /* enum sx_phys */
};

/* What the device tells the host at a synchronisation. */
enum { CUDA_COUNTERS = 256 };
enum cuda_fault_kind {
    CUDA_FAULT_NONE,
    CUDA_FAULT_EXPRESSION, /* what: the step; row: the first one that failed, mostly; detail: the owner */
    CUDA_FAULT_SUM,        /* a sum does not fit its type */
    CUDA_FAULT_PAGE,       /* what: page; detail: enum of the decoder */
    CUDA_FAULT_ROWS        /* of another rank; what: column; row: a damaged one */
};
struct cuda_fault {
    uint32_t kind; /* enum cuda_fault_kind; set last, by compare-and-swap */
    uint32_t what;
    int64_t row;
    uint64_t detail[4];
};
struct cuda_control {
    struct cuda_fault fault;
    int64_t counters[CUDA_COUNTERS];
};
/* The control block on the host: each word has half a counter, or the fault's kind, below the number of the
 * synchronisation that it is of. So words may come in any order, and none waits for another. */
struct cuda_reply {
    uint64_t fault_kind;
    uint64_t counters[CUDA_COUNTERS][2]; /* the low half first */
    struct cuda_fault fault;             /* fetched where there is one */
};

#endif
