/* How fast a way looks by what has gone: a link not by rounds of few bytes, whose time is not that of bytes.
 */
#include <assert.h>
#include <stdio.h>

#include "base/clock.h"
#include "net/state.h"

enum { MB = 1 << 20, US = 1000 };

/* Periods in which so many bytes are on their way, for so long. */
static void go(struct sx_net *net, enum sx_net_way way, int periods, size_t bytes, int64_t ns) {
    for (int i = 0; i < periods; i++) {
        sx_net_pace_begin(net, way, bytes);
        net->paced[way].since_ns = sx_clock_ns() - ns;
        sx_net_pace_end(net, way, bytes);
    }
}

/* In MB a millisecond; 0: not known. */
static double rate(struct sx_net *net, enum sx_net_way way) {
    const struct sx_net_pace pace = sx_net_pace(net, way);
    return pace.ns_a_byte > 0 ? 1000.0 * US / MB / pace.ns_a_byte : 0;
}

static struct sx_net *make_net(struct sx_net *net) {
    pthread_mutex_init(&net->lock, NULL);
    return net;
}

static void test_fast_link(void) {
    static struct sx_net made;
    struct sx_net *net = make_net(&made);
    go(net, SX_NET_LINK, 40, MB, 100 * US);
    assert(rate(net, SX_NET_LINK) == 0 && sx_net_pace(net, SX_NET_LINK).busy_ns >= 4000 * US);
    go(net, SX_NET_LINK, 10, 64 * MB, 200 * US);
    const double fast = rate(net, SX_NET_LINK);
    assert(fast > 100 && fast <= 320);
    go(net, SX_NET_LINK, 200, MB, 100 * US); /* they don't make it look slower */
    assert(rate(net, SX_NET_LINK) == fast);
    pthread_mutex_destroy(&net->lock);
}

/* Few bytes tell a slow link's pace, and that of what is no link. */
static void test_slow_link(void) {
    static struct sx_net made;
    struct sx_net *net = make_net(&made);
    go(net, SX_NET_LINK, 40, MB, 4000 * US);
    assert(rate(net, SX_NET_LINK) > 0.2 && rate(net, SX_NET_LINK) <= 0.25);
    go(net, SX_NET_OWN_HOST, 40, MB, 100 * US);
    assert(rate(net, SX_NET_OWN_HOST) > 5 && rate(net, SX_NET_OWN_HOST) <= 10);
    pthread_mutex_destroy(&net->lock);
}

int main(void) {
    test_fast_link();
    test_slow_link();
    puts("ok");
    return 0;
}
