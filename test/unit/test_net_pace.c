/* How fast a way looks by what has gone: a link not by rounds of few bytes, whose time is not that of bytes.
 */
#include <assert.h>
#include <stdio.h>
#include <time.h>

#include "net/state.h"

enum { MB = 1 << 20, MS = 1000000 };

/* Periods in which so many bytes are on their way, as two messages at the same time, each of a millisecond.
 */
static void go(struct sx_net *net, enum sx_net_way way, int periods, size_t bytes) {
    const struct timespec moment = {.tv_nsec = MS};
    for (int i = 0; i < periods; i++) {
        sx_net_pace_begin(net, way, bytes);
        nanosleep(&moment, NULL);
        sx_net_pace_end(net, way, bytes);
    }
}

/* In MB a millisecond, at most. */
static double rate(struct sx_net *net, enum sx_net_way way) {
    const struct sx_net_pace pace = sx_net_pace(net, way);
    return pace.ns_a_byte > 0 ? (double)MS / MB / pace.ns_a_byte : 0;
}

int main(void) {
    static struct sx_net net;
    pthread_mutex_init(&net.lock, NULL);
    go(&net, SX_NET_LINK, 40, MB);
    assert(rate(&net, SX_NET_LINK) == 0); /* nothing is known by these */
    assert(sx_net_pace(&net, SX_NET_LINK).busy_ns >= 40 * MS);
    go(&net, SX_NET_OWN_HOST, 40, MB);
    assert(rate(&net, SX_NET_OWN_HOST) > 0 && rate(&net, SX_NET_OWN_HOST) <= 1);
    go(&net, SX_NET_LINK, 10, 64 * MB);
    const double large = rate(&net, SX_NET_LINK);
    assert(large > 1 && large <= 64);
    go(&net, SX_NET_LINK, 200, MB); /* they don't make it look slower */
    assert(rate(&net, SX_NET_LINK) == large);
    pthread_mutex_destroy(&net.lock);
    puts("ok");
    return 0;
}
