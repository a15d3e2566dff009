#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/signals.h"
#include "net/ucx/load.h"
#include "net/ucx/ucx_state.h"

enum { THREAD_END_S = 2 };
static const int64_t close_limit_ns = 2000000000;

static enum sx_status check(ucs_status_t status, const char *what, struct sx_error *error) {
    return status == UCS_OK
               ? SX_OK
               : sx_error_set(error, SX_INTERNAL, "UCX: %s: %s", what, ucs_status_string(status));
}

/* ---- context, worker, endpoints ---- */

/* Reading another process's memory (cma) aborts this one when that one has died. Whoever sets UCX_TLS knows
 * better. */
static enum sx_status configure(ucp_config_t *config, const char *interface, struct sx_error *error) {
    enum sx_status status =
        getenv("UCX_TLS") ? SX_OK : check(ucp_config_modify(config, "TLS", "^cma"), "transports", error);
    if (status == SX_OK && interface)
        status = check(ucp_config_modify(config, "NET_DEVICES", interface), interface, error);
    return status;
}

/* `interface` NULL: what the environment says, or UCX. */
static enum sx_status make_worker(struct sx_ucx *ucx, const char *interface, struct sx_error *error) {
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
                                 .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
                                 .estimated_num_eps = (size_t)ucx->base.size};
    const ucp_worker_params_t worker_params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                               .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucp_config_t *config;
    SX_TRY(check(ucp_config_read(NULL, NULL, &config), "configuration", error));
    enum sx_status status = configure(config, interface, error);
    if (status == SX_OK)
        status = check(ucp_init(&params, config, &ucx->ucp), "start", error);
    ucp_config_release(config);
    if (status == SX_OK)
        status = check(ucp_worker_create(ucx->ucp, &worker_params, &ucx->worker), "worker", error);
    if (status == SX_OK)
        status = check(ucp_worker_get_efd(ucx->worker, &ucx->worker_fd), "no event descriptor", error);
    return status == SX_OK ? sx_ucx_set_handler(ucx, error) : status;
}

static enum sx_status connected(ucs_status_t status, const char *rank, struct sx_error *error) {
    if (status == UCS_ERR_UNREACHABLE)
        return sx_error_set(error, SX_USAGE,
                            "UCX has no way to %s: are the network interfaces of both up, and do UCX_TLS, "
                            "UCX_NET_DEVICES or --interface leave one that both have?",
                            rank);
    return check(status, rank, error);
}

static enum sx_status make_endpoints(struct sx_ucx *ucx, const char *addresses, size_t bytes_each,
                                     struct sx_error *error) {
    for (int r = 0; r < ucx->base.size; r++) {
        const ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                                        .address =
                                            (const ucp_address_t *)(addresses + (size_t)r * bytes_each)};
        if (r != ucx->base.rank)
            SX_TRY(connected(ucp_ep_create(ucx->worker, &params, &ucx->endpoints[r]), ucx->base.rank_names[r],
                             error));
    }
    return SX_OK;
}

static enum sx_status connect_workers(struct sx_ucx *ucx, struct sx_bootstrap *boot, struct sx_error *error) {
    ucp_address_t *own = NULL;
    size_t bytes = 0;
    enum sx_status status = check(ucp_worker_get_address(ucx->worker, &own, &bytes), "address", error);
    const size_t most = sx_bootstrap_most(boot, bytes);
    char *padded = calloc(1, most + 1), *all = calloc((size_t)boot->size, most + 1);
    if (status == SX_OK && (!padded || !all))
        status = sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the addresses of %d ranks", boot->size);
    status = sx_bootstrap_agree(boot, status, error);
    if (status == SX_OK && padded && all && own) {
        memcpy(padded, own, bytes);
        sx_bootstrap_gather(boot, padded, most, all);
        status = sx_bootstrap_agree(boot, make_endpoints(ucx, all, most, error), error);
    }
    if (own)
        ucp_worker_release_address(ucx->worker, own);
    free(padded);
    free(all);
    return status;
}

/* ---- the transport ---- */

static void take_lost(void *context, int rank, const char *why) {
    struct sx_ucx *ucx = context;
    atomic_store(&ucx->is_lost, true);
    ucx->events->lost(ucx->context, rank, why);
}

void sx_ucx_lost(struct sx_ucx *ucx, int rank, ucs_status_t status) {
    char why[96];
    snprintf(why, sizeof why, "UCX: %s", ucs_status_string(status));
    sx_lifeline_tell(ucx->lifeline, rank);
    take_lost(ucx, rank, why);
}

static enum sx_status start(struct sx_transport *transport, const struct sx_transport_events *events,
                            void *context, struct sx_error *error) {
    struct sx_ucx *ucx = (struct sx_ucx *)transport;
    ucx->events = events;
    ucx->context = context;
    sigset_t before;
    sx_signals_block(&before);
    sx_ucx_guard(ucx);
    enum sx_status status = sx_lifeline_watch(ucx->lifeline, take_lost, ucx, error);
    if (status == SX_OK) {
        ucx->has_thread = pthread_create(&ucx->thread, NULL, sx_ucx_thread, ucx) == 0;
        if (!ucx->has_thread)
            status = sx_error_set(error, SX_OUT_OF_MEMORY, "the system refused to start a thread");
    }
    sx_signals_restore(&before);
    return status;
}

static void close_endpoints(struct sx_ucx *ucx) {
    const ucp_request_param_t param = {0};
    const int64_t until_ns = sx_clock_ns() + close_limit_ns;
    for (int r = 0; r < ucx->base.size; r++) {
        if (!ucx->endpoints[r])
            continue;
        ucs_status_ptr_t request = ucp_ep_close_nbx(ucx->endpoints[r], &param);
        if (!UCS_PTR_IS_PTR(request))
            continue;
        while (ucp_request_check_status(request) == UCS_INPROGRESS && sx_clock_ns() < until_ns)
            ucp_worker_progress(ucx->worker);
        ucp_request_free(request);
    }
}

static void destroy(struct sx_ucx *ucx) {
    for (int r = 0; ucx->base.rank_names && r < ucx->base.size; r++)
        free(ucx->base.rank_names[r]);
    free(ucx->base.rank_names);
    free(ucx->endpoints);
    free(ucx->hosts);
    if (ucx->wake_fd >= 0)
        close(ucx->wake_fd);
    pthread_cond_destroy(&ucx->task_done);
    pthread_mutex_destroy(&ucx->lock);
    free(ucx);
}

/* False: it has not ended in time, which happens in UCX when a rank is lost. */
static bool end_thread(struct sx_ucx *ucx) {
    struct timespec until;
    sx_ucx_stop(ucx);
    if (!atomic_load(&ucx->is_lost))
        return pthread_join(ucx->thread, NULL) == 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += THREAD_END_S;
    return pthread_clockjoin_np(ucx->thread, NULL, CLOCK_MONOTONIC, &until) == 0;
}

/* With a rank lost, UCX could wait for it, and what is on its way can't be taken back: the process is about
 * to end, and the transport stays until then. */
static bool close_ucx(struct sx_transport *transport) {
    struct sx_ucx *ucx = (struct sx_ucx *)transport;
    const bool has_ended = !ucx->has_thread || end_thread(ucx);
    const bool is_lost = atomic_load(&ucx->is_lost);
    if (has_ended)
        sx_ucx_unguard(ucx);
    if (!is_lost) {
        if (ucx->worker) {
            close_endpoints(ucx);
            ucp_worker_destroy(ucx->worker);
        }
        if (ucx->ucp)
            ucp_cleanup(ucx->ucp);
    }
    sx_lifeline_close(ucx->lifeline, !is_lost);
    if (!is_lost)
        destroy(ucx);
    return has_ended;
}

static const struct sx_transport_ops ops = {.start = start,
                                            .send = sx_ucx_send,
                                            .close = close_ucx,
                                            .raw_begin = sx_ucx_raw_begin,
                                            .raw_exchange = sx_ucx_raw_exchange,
                                            .raw_end = sx_ucx_raw_end};

/* ---- opening ---- */

/* The lowest rank of the rank's host. */
static int first_on_host(const struct sx_bootstrap *boot, int rank) {
    int first = 0;
    while (strcmp(boot->peers[first].host, boot->peers[rank].host) != 0)
        first++;
    return first;
}

static enum sx_status make(struct sx_bootstrap *boot, struct sx_ucx **out_ucx, struct sx_error *error) {
    struct sx_ucx *ucx = calloc(1, sizeof *ucx);
    if (!ucx)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the network");
    pthread_mutex_init(&ucx->lock, NULL);
    pthread_cond_init(&ucx->task_done, NULL);
    *out_ucx = ucx;
    ucx->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ucx->endpoints = calloc((size_t)boot->size, sizeof(ucp_ep_h));
    ucx->base = (struct sx_transport){.ops = &ops,
                                      .rank = boot->rank,
                                      .size = boot->size,
                                      .name = ucx->name,
                                      .rank_names = calloc((size_t)boot->size, sizeof(char *))};
    ucx->base.hosts = ucx->hosts = calloc((size_t)boot->size, sizeof *ucx->hosts);
    bool made = ucx->wake_fd >= 0 && ucx->endpoints && ucx->base.rank_names && ucx->hosts;
    for (int r = 0; made && r < boot->size; r++) {
        ucx->hosts[r] = first_on_host(boot, r);
        ucx->base.rank_names[r] = sx_rank_name(r, boot->peers[r].host, boot->peers[r].pid);
        made = ucx->base.rank_names[r] != NULL;
    }
    return made ? SX_OK : sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for %d ranks", boot->size);
}

/* Where all ranks are on one host nothing leaves it. */
static enum sx_status join(struct sx_bootstrap *boot, const struct sx_ucx_options *options,
                           struct sx_ucx **out_ucx, struct sx_error *error) {
    const char *interface = options->interface ? options->interface : boot->is_one_host ? "lo" : NULL;
    const bool by_environment = !options->interface && getenv("UCX_NET_DEVICES");
    enum sx_status made = sx_bootstrap_agree(boot, make(boot, out_ucx, error), error);
    struct sx_ucx *ucx = *out_ucx;
    if (made != SX_OK || !ucx)
        return made;
    snprintf(ucx->name, sizeof ucx->name, "ucx (%s%s)", boot->is_one_host ? "one host, " : "",
             by_environment ? getenv("UCX_NET_DEVICES") : interface ? interface : "any interface");
    SX_TRY(sx_bootstrap_agree(boot, make_worker(ucx, by_environment ? NULL : interface, error), error));
    SX_TRY(sx_lifeline_open(boot, interface, &ucx->lifeline, error));
    return connect_workers(ucx, boot, error);
}

__attribute__((visibility("default"))) enum sx_status sx_ucx_open(const struct sx_ucx_options *options,
                                                                  struct sx_transport **out_transport,
                                                                  struct sx_error *error);

enum sx_status sx_ucx_open(const struct sx_ucx_options *options, struct sx_transport **out_transport,
                           struct sx_error *error) {
    struct sx_bootstrap boot = {0};
    struct sx_ucx *ucx = NULL;
    enum sx_status status = sx_bootstrap_begin(&boot, options->launched_ranks, options->version, error);
    if (status == SX_OK)
        status = join(&boot, options, &ucx, error);
    sx_bootstrap_end(&boot);
    if (status == SX_OK)
        *out_transport = &ucx->base;
    else if (ucx)
        (void)close_ucx(&ucx->base);
    return status;
}
