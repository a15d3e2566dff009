#include "net/ucx/bootstrap.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct report {
    int status;
    char text[SX_ERROR_TEXT_BYTES];
};

/* MPI moves a few bytes once, on the host or over plain sockets: what it may choose itself is slow to start.
 * Whoever has set these knows better. */
static void prefer_little(void) {
    setenv("OMPI_MCA_pml", "ob1", 0);
    setenv("OMPI_MCA_btl", "self,vader,tcp", 0);
    setenv("OMPI_MCA_osc", "^ucx", 0);
}

static void describe_self(struct sx_peer *self, const char *version) {
    if (gethostname(self->host, sizeof self->host - 1) != 0)
        snprintf(self->host, sizeof self->host, "unknown");
    snprintf(self->version, sizeof self->version, "%s", version);
    self->pid = (long)getpid();
}

static enum sx_status check_versions(const struct sx_bootstrap *boot, struct sx_error *error) {
    const struct sx_peer *first = &boot->peers[0];
    for (int r = 1; r < boot->size; r++) {
        const struct sx_peer *peer = &boot->peers[r];
        if (strcmp(peer->version, first->version) != 0)
            return sx_error_set(
                error, SX_USAGE,
                "rank %d on host %s is stachio %s, rank 0 on host %s is stachio %s: all ranks "
                "need the same version",
                r, peer->host, peer->version, first->host, first->version);
    }
    return SX_OK;
}

enum sx_status sx_bootstrap_begin(struct sx_bootstrap *boot, int launched_ranks, const char *version,
                                  struct sx_error *error) {
    int had_begun = 0, level;
    MPI_Initialized(&had_begun);
    if (had_begun)
        return sx_error_set(error, SX_USAGE, "ranks: MPI has been started before in this process");
    prefer_little();
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
        return sx_error_set(error, SX_INTERNAL, "ranks: MPI does not start");
    MPI_Comm_rank(MPI_COMM_WORLD, &boot->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &boot->size);
    if (boot->size != launched_ranks)
        return sx_error_set(
            error, SX_USAGE,
            "ranks: the launcher started %d, but Open MPI sees %d; launch with Open MPI's mpirun, "
            "or with srun --mpi=pmix",
            launched_ranks, boot->size);
    boot->peers = calloc((size_t)boot->size, sizeof *boot->peers);
    if (!boot->peers)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for %d ranks", boot->size);
    struct sx_peer self = {0};
    describe_self(&self, version);
    sx_bootstrap_gather(boot, &self, sizeof self, boot->peers);
    boot->is_one_host = true;
    for (int r = 1; r < boot->size; r++)
        boot->is_one_host = boot->is_one_host && !strcmp(boot->peers[r].host, boot->peers[0].host);
    return check_versions(boot, error);
}

enum sx_status sx_bootstrap_agree(struct sx_bootstrap *boot, enum sx_status status, struct sx_error *error) {
    struct {
        int status, rank;
    } mine = {status != SX_OK, boot->rank}, first;
    struct report report = {.status = (int)status};
    MPI_Allreduce(&mine, &first, 1, MPI_2INT, MPI_MAXLOC, MPI_COMM_WORLD);
    if (first.status == 0)
        return SX_OK;
    if (first.rank == boot->rank)
        memcpy(report.text, error->text, sizeof report.text);
    MPI_Bcast(&report, sizeof report, MPI_BYTE, first.rank, MPI_COMM_WORLD);
    return sx_error_set(error, (enum sx_status)report.status, "rank %d (host %s, pid %ld): %.1700s",
                        first.rank, boot->peers[first.rank].host, boot->peers[first.rank].pid, report.text);
}

void sx_bootstrap_broadcast(struct sx_bootstrap *boot, void *data, size_t bytes) {
    (void)boot;
    MPI_Bcast(data, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

void sx_bootstrap_gather(struct sx_bootstrap *boot, const void *data, size_t bytes_each, void *out) {
    (void)boot;
    MPI_Allgather(data, (int)bytes_each, MPI_BYTE, out, (int)bytes_each, MPI_BYTE, MPI_COMM_WORLD);
}

size_t sx_bootstrap_most(struct sx_bootstrap *boot, size_t value) {
    unsigned long mine = value, most = 0;
    (void)boot;
    MPI_Allreduce(&mine, &most, 1, MPI_UNSIGNED_LONG, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

void sx_bootstrap_end(struct sx_bootstrap *boot) {
    int begun = 0, ended = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    if (begun && !ended)
        MPI_Finalize();
    free(boot->peers);
    boot->peers = NULL;
}
