#include "api/seat.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/processors.h"

struct sx_seat sx_seat_here(void) {
    struct sx_seat seat = {.pid = getpid()};
    struct stat namespace;
    if (stat("/proc/self/ns/pid", &namespace) == 0)
        seat.pids = (int64_t) namespace.st_ino;
    if (gethostname(seat.host, sizeof seat.host - 1) != 0)
        snprintf(seat.host, sizeof seat.host, "unknown");
    return seat;
}

enum sx_status sx_seats_meet(struct sx_net *net, struct sx_seat *out_seats, int *out_local_rank,
                             struct sx_error *error) {
    const struct sx_seat own = sx_seat_here();
    int local_rank = 0;
    SX_TRY(sx_net_gather(net, &own, sizeof own, out_seats, NULL, error));
    for (int r = 0; r < sx_net_rank(net); r++)
        local_rank += strcmp(out_seats[r].host, own.host) == 0;
    *out_local_rank = local_rank;
    return SX_OK;
}

/* The first rank of its process: ranks of a test are threads of one. */
static bool is_first(const struct sx_seat *seats, int rank) {
    for (int r = 0; r < rank; r++)
        if (seats[r].pid == seats[rank].pid && seats[r].pids == seats[rank].pids &&
            strcmp(seats[r].host, seats[rank].host) == 0)
            return false;
    return true;
}

enum sx_status sx_seats_tell(struct sx_net *net, const struct sx_device *device, struct sx_seat *seats,
                             struct sx_sharing *out_sharing, struct sx_error *error) {
    struct sx_seat own = sx_seat_here();
    const bool has_gpu = device->library != NULL;
    const struct sx_processors processors = sx_processors_own();
    snprintf(own.device, sizeof own.device, "%s", has_gpu ? device->choice.name : "cpu");
    snprintf(own.bus, sizeof own.bus, "%s", has_gpu ? device->choice.bus : "");
    sx_processors_text(&processors, own.processors, sizeof own.processors);
    SX_TRY(sx_net_gather(net, &own, sizeof own, seats, NULL, error));
    *out_sharing = (struct sx_sharing){0};
    for (int r = 0; r < sx_net_size(net); r++) {
        if (strcmp(seats[r].host, own.host) != 0)
            continue;
        const bool is_process = is_first(seats, r);
        out_sharing->host += is_process;
        out_sharing->processors += is_process && strcmp(seats[r].processors, own.processors) == 0;
        out_sharing->device += strcmp(seats[r].bus, own.bus) == 0;
    }
    return SX_OK;
}
