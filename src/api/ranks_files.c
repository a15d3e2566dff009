#include "api/ranks_files.h"

#include "base/hash_table.h"
#include "net/net.h"

static enum sx_status no_memory(struct sx_error *error) {
    return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory to compare the ranks' files");
}

/* Their number. `out_scans`: NULL, or room for as many. */
static int32_t find_scans(const struct sx_plan *plan, const struct sx_scan_plan **out_scans) {
    int32_t n = 0;
    if (plan->kind == SX_PLAN_SCAN && !plan->u.scan.parts) {
        if (out_scans)
            out_scans[n] = &plan->u.scan;
        n++;
    }
    for (int32_t i = 0; i < plan->n_children; i++)
        n += find_scans(plan->children[i], out_scans ? out_scans + n : NULL);
    return n;
}

enum sx_status sx_ranks_list_files(const struct stachio_query *query, struct sx_arena *arena,
                                   struct sx_ranks_files *out_files, struct sx_error *error) {
    struct sx_ranks_files files = {.n = find_scans(query->plan.root, NULL)};
    files.scans = SX_ARENA_ARRAY(arena, files.n, const struct sx_scan_plan *);
    files.hashes = SX_ARENA_ARRAY(arena, files.n, uint64_t);
    if (!files.scans || !files.hashes)
        return no_memory(error);
    find_scans(query->plan.root, files.scans);
    for (int32_t i = 0; i < files.n; i++) {
        SX_TRY(sx_storage_hash_files(query->db->storage, files.scans[i]->files, files.scans[i]->n_files,
                                     &files.hashes[i], error));
        files.hash = sx_hash_mix(files.hash, files.hashes[i]);
    }
    *out_files = files;
    return SX_OK;
}

enum sx_status sx_ranks_compare_files(struct stachio_query *query, const struct sx_ranks_files *files,
                                      struct sx_error *out_verdict, struct sx_error *error) {
    struct sx_net *net = query->db->net;
    struct sx_arena arena = {0};
    const size_t n = (size_t)files->n;
    uint64_t *all = SX_ARENA_ARRAY(&arena, n * (size_t)sx_net_size(net), uint64_t);
    enum sx_status status =
        all ? sx_net_gather(net, files->hashes, n * sizeof *all, all, &query->cancel, error)
            : no_memory(error);
    for (int r = 1; status == SX_OK && out_verdict->status == SX_OK && r < sx_net_size(net); r++)
        for (size_t i = 0; out_verdict->status == SX_OK && i < n; i++)
            if (all[(size_t)r * n + i] != all[i])
                (void)sx_error_set(
                    out_verdict, SX_USAGE,
                    "%s has other files of table %s (%.900s%s) than rank 0: all ranks need the same files",
                    sx_net_rank_name(net, r), files->scans[i]->table, files->scans[i]->files[0],
                    files->scans[i]->n_files > 1 ? " and others" : "");
    sx_arena_release(&arena);
    return status;
}
