/* Inside of src/api: where ranks run. */
#ifndef SX_API_SEAT_H
#define SX_API_SEAT_H

#include "api/device.h"
#include "net/net.h"

/* As ranks tell it each other. */
struct sx_seat {
    char host[256];
    int64_t pid;
    int64_t pids;     /* which numbers those are: containers of a host may have their own */
    char device[256]; /* "cpu", or the GPU's name */
    char bus[32];     /* PCI address; empty: the CPU */
    char processors[512];
};

/* What a rank has not alone. */
struct sx_sharing {
    int host, processors; /* processes on the host, and those with the same processors; this one counts */
    int device;           /* ranks on the GPU */
};

/* This rank's, without the device. */
struct sx_seat sx_seat_here(void);
/* Collective: out_seats of all ranks, *out_local_rank among those of this one's host. */
SX_MUST_CHECK enum sx_status sx_seats_meet(struct sx_net *net, struct sx_seat *out_seats, int *out_local_rank,
                                           struct sx_error *error);
/* Collective, after that: adds the devices and processors. */
SX_MUST_CHECK enum sx_status sx_seats_tell(struct sx_net *net, const struct sx_device *device,
                                           struct sx_seat *seats, struct sx_sharing *out_sharing,
                                           struct sx_error *error);

#endif
