/* Ranks that are processes of one launch. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/launch.h"
#include "api/ranks.h"

enum { CONFIGURATION_BYTES = 128 };

/* What has to be the same on all ranks, in words. */
static void describe(const struct stachio_db *db, char text[CONFIGURATION_BYTES]) {
    static const char *const engines[] = {"--fallback allow", "--fallback forbid", "DuckDB alone"};
    snprintf(text, CONFIGURATION_BYTES, "device %s, %s", db->backend->name,
             engines[atomic_load(&((struct stachio_db *)db)->engine)]);
}

static enum sx_status agree(const struct stachio_db *db, struct sx_net *net, struct sx_error *error) {
    const int size = sx_net_size(net);
    char own[CONFIGURATION_BYTES] = "", *all = calloc((size_t)size, CONFIGURATION_BYTES);
    describe(db, own);
    enum sx_status status = all ? sx_net_gather(net, own, sizeof own, all, NULL, error)
                                : sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for %d ranks", size);
    for (int r = 1; status == SX_OK && r < size; r++)
        if (strcmp(all + (size_t)r * CONFIGURATION_BYTES, all) != 0)
            status = sx_error_set(error, SX_USAGE, "%s has another configuration (%s) than rank 0 (%s)",
                                  sx_net_rank_name(net, r), all + (size_t)r * CONFIGURATION_BYTES, all);
    free(all);
    return status;
}

static const char *interface_of(const struct stachio_options *options) {
    const size_t needed = offsetof(struct stachio_options, interface) + sizeof options->interface;
    return options && options->size_bytes >= needed ? options->interface : NULL;
}

enum stachio_status sx_ranks_open_one(const struct stachio_options *options, struct sx_net *net,
                                      struct stachio_db **out_db, struct stachio_error *error) {
    struct sx_error inner = {0};
    struct stachio_db *db;
    enum stachio_status status = sx_db_open(options, net, &db, error);
    if (status) {
        (void)sx_error_set(&inner, SX_USAGE, "%.1900s", error ? error->text : "it does not start");
        sx_net_fail(net, &inner);
        sx_net_close(net);
        return status;
    }
    /* After the barrier no rank is in these calls any more, to fail with the first command. */
    if (agree(db, net, &inner) != SX_OK || sx_ranks_link(db, net, &inner) != SX_OK ||
        sx_net_barrier(net, NULL, &inner) != SX_OK) {
        sx_net_close(net); /* before what its link is made of */
        sx_db_release(db);
        return sx_api_fail(&inner, error);
    }
    db->net = net;
    *out_db = db;
    return STACHIO_OK;
}

enum stachio_status sx_ranks_open_launched(const struct stachio_options *options, struct stachio_db **out_db,
                                           struct stachio_error *error) {
    struct sx_error inner = {0};
    struct sx_net *net;
    if (sx_launch_open(interface_of(options), &net, &inner) != SX_OK)
        return sx_api_fail(&inner, error);
    enum stachio_status status = sx_ranks_open_one(options, net, out_db, error);
    if (!status)
        (*out_db)->is_launched = true;
    return status;
}

void sx_ranks_leave(struct stachio_db *db) {
    if (!db->is_launched)
        return;
    if (sx_net_rank(db->net) == 0)
        sx_ranks_tell_stop(db);
    sx_net_close(db->net);
    db->net = NULL;
    db->is_launched = false;
}

int stachio_rank(const struct stachio_db *db) {
    return db->net ? sx_net_rank(db->net) : 0;
}

int stachio_ranks(const struct stachio_db *db) {
    return db->net ? sx_net_size(db->net) : 1;
}

enum stachio_status stachio_follow(struct stachio_db *db, struct stachio_error *error) {
    struct sx_error inner = {0};
    if (stachio_rank(db) == 0)
        return STACHIO_OK;
    sx_ranks_follow(db);
    return sx_net_check(db->net, &inner) == SX_OK ? STACHIO_OK : sx_api_fail(&inner, error);
}
