/* How fast messages leave. */
#include "base/clock.h"
#include "net/state.h"

enum {
    WINDOW_BYTES = 4 << 20, /* that are timed together */
    LEAST_WINDOWS = 2,      /* before anything is told */
    /* Periods with less than both in the mean have a link's pace from its rounds, on which ranks agree. */
    LINK_PERIOD_BYTES = 16 << 20,
    LINK_PERIOD_NS = 2000000
};
static const double forgetting = 1.02; /* from window to window, should the link have become slower */

enum sx_net_way sx_net_way_to(const struct sx_net *net, int rank) {
    return sx_net_host(net, rank) == sx_net_host(net, net->rank) ? SX_NET_OWN_HOST : SX_NET_OTHER_HOSTS;
}

/* With what is on its way. */
static struct sx_net_pace pace_now(const struct sx_paced *paced) {
    struct sx_net_pace pace = paced->gone;
    if (paced->bytes > 0)
        pace.busy_ns += sx_clock_ns() - paced->since_ns;
    return pace;
}

static bool tells(const struct sx_paced *paced, const struct sx_net_pace *now, enum sx_net_way way) {
    const int64_t periods = paced->periods - paced->before_window;
    return way != SX_NET_LINK || now->bytes - paced->window.bytes >= periods * LINK_PERIOD_BYTES ||
           now->busy_ns - paced->window.busy_ns >= periods * LINK_PERIOD_NS;
}

static void end_window(struct sx_paced *paced, enum sx_net_way way) {
    const struct sx_net_pace now = pace_now(paced);
    if (tells(paced, &now, way)) {
        const double took =
            (double)(now.busy_ns - paced->window.busy_ns) / (double)(now.bytes - paced->window.bytes);
        const double best = paced->gone.ns_a_byte * forgetting;
        paced->gone.ns_a_byte = paced->windows == 0 || took < best ? took : best;
        paced->windows++;
    }
    paced->window = now;
    paced->before_window = paced->periods;
}

void sx_net_pace_begin(struct sx_net *net, enum sx_net_way way, size_t bytes) {
    struct sx_paced *paced = &net->paced[way];
    if (paced->bytes == 0 && bytes > 0) {
        paced->since_ns = sx_clock_ns();
        paced->periods++;
    }
    paced->bytes += bytes;
}

void sx_net_pace_end(struct sx_net *net, enum sx_net_way way, size_t bytes) {
    struct sx_paced *paced = &net->paced[way];
    paced->bytes -= bytes;
    paced->gone.bytes += (int64_t)bytes;
    if (paced->bytes == 0 && bytes > 0)
        paced->gone.busy_ns += sx_clock_ns() - paced->since_ns;
    if (paced->gone.bytes - paced->window.bytes >= WINDOW_BYTES)
        end_window(paced, way);
}

struct sx_net_pace sx_net_pace(struct sx_net *net, enum sx_net_way way) {
    pthread_mutex_lock(&net->lock);
    const struct sx_paced *paced = &net->paced[way];
    struct sx_net_pace pace = pace_now(paced);
    if (paced->windows < LEAST_WINDOWS)
        pace.ns_a_byte = 0;
    pthread_mutex_unlock(&net->lock);
    return pace;
}
