#include "net/ucx/lifeline.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECT_MS = 20000 };
enum word { WORD_LOST = 1, WORD_BYE };

struct note {
    uint32_t word, rank;
};

/* Who calls must know the cookie, which only ranks are told. */
struct hello {
    uint64_t cookie;
    uint32_t rank, unused;
};

struct place {
    struct sockaddr_storage address;
    socklen_t length;
    uint64_t cookie;
};

struct sx_lifeline {
    int rank, size;
    int *sockets; /* per rank; -1: none. All but rank 0 have only the one to rank 0 */
    bool *gone;   /* per rank: has said goodbye, or is lost */
    int stop;     /* eventfd */
    pthread_t thread;
    bool has_thread;
    sx_lifeline_lost lost;
    void *context;
};

/* ---- addresses ---- */

static bool is_wanted(const struct ifaddrs *found, const char *interface) {
    if (!found->ifa_addr || !(found->ifa_flags & IFF_UP) ||
        (found->ifa_addr->sa_family != AF_INET && found->ifa_addr->sa_family != AF_INET6))
        return false;
    return interface ? !strcmp(found->ifa_name, interface) : !(found->ifa_flags & IFF_LOOPBACK);
}

static enum sx_status find_address(const char *interface, struct place *place, struct sx_error *error) {
    struct ifaddrs *all = NULL;
    const struct ifaddrs *best = NULL;
    if (getifaddrs(&all) != 0)
        return sx_error_set(error, SX_INTERNAL, "network interfaces: %s", strerror(errno));
    for (const struct ifaddrs *found = all; found; found = found->ifa_next)
        if (is_wanted(found, interface) &&
            (!best || (best->ifa_addr->sa_family == AF_INET6 && found->ifa_addr->sa_family == AF_INET)))
            best = found;
    if (best) {
        place->length =
            best->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        memcpy(&place->address, best->ifa_addr, place->length);
    }
    freeifaddrs(all);
    if (best)
        return SX_OK;
    return interface ? sx_error_set(error, SX_USAGE, "--interface: no '%s' with an address is up", interface)
                     : sx_error_set(error, SX_USAGE, "no network interface is up");
}

static bool is_loopback(int fd) {
    struct sockaddr_storage peer = {0};
    socklen_t length = sizeof peer;
    if (getpeername(fd, (struct sockaddr *)&peer, &length) != 0)
        return false;
    if (peer.ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&peer)->sin6_addr);
    return peer.ss_family == AF_INET &&
           ntohl(((struct sockaddr_in *)&peer)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* A host that dies without a word is noticed within about 5 seconds. Over the loopback the system closes what
 * a dead process had, and that nothing comes for a while only means that it is busy. */
static void set_options(int fd) {
    const int on = 1, idle_s = 2, interval_s = 1, count = 3, timeout_ms = 5000;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (is_loopback(fd))
        return;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
}

/* False with errno 0: the other end has closed it, or nothing has come in time. */
static bool read_all(int fd, void *data, size_t bytes, int timeout_ms) {
    for (size_t done = 0; done < bytes;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        const int n = poll(&ready, 1, timeout_ms);
        if (n < 0 && errno == EINTR)
            continue;
        if (n >= 0)
            errno = 0;
        const ssize_t got = n > 0 ? read(fd, (char *)data + done, bytes - done) : 0;
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static bool write_all(int fd, const void *data, size_t bytes) {
    ssize_t put;
    do
        put = send(fd, data, bytes, MSG_NOSIGNAL);
    while (put < 0 && errno == EINTR);
    return put == (ssize_t)bytes;
}

/* ---- connecting ---- */

static enum sx_status begin_listening(const char *interface, struct place *place, int *out_fd,
                                      struct sx_error *error) {
    SX_TRY(find_address(interface, place, error));
    if (getrandom(&place->cookie, sizeof place->cookie, 0) != (ssize_t)sizeof place->cookie)
        return sx_error_set(error, SX_INTERNAL, "no random numbers: %s", strerror(errno));
    const int fd = socket(place->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&place->address, place->length) != 0 ||
        listen(fd, SOMAXCONN) != 0 ||
        getsockname(fd, (struct sockaddr *)&place->address, &place->length) != 0) {
        const int problem = errno;
        if (fd >= 0)
            close(fd);
        return sx_error_set(error, SX_INTERNAL, "listening for other ranks: %s", strerror(problem));
    }
    *out_fd = fd;
    return SX_OK;
}

static enum sx_status accept_ranks(struct sx_lifeline *lifeline, const struct place *place, int listener,
                                   struct sx_error *error) {
    for (int missing = lifeline->size - 1; missing > 0;) {
        struct pollfd ready = {.fd = listener, .events = POLLIN};
        struct hello hello;
        if (poll(&ready, 1, CONNECT_MS) == 0)
            return sx_error_set(error, SX_RANK_LOST, "%d ranks have not connected to rank 0 within %d s",
                                missing, CONNECT_MS / 1000);
        const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        if (!read_all(fd, &hello, sizeof hello, CONNECT_MS) || hello.cookie != place->cookie ||
            hello.rank == 0 || hello.rank >= (uint32_t)lifeline->size || lifeline->sockets[hello.rank] >= 0) {
            close(fd); /* a stranger */
            continue;
        }
        set_options(fd);
        lifeline->sockets[hello.rank] = fd;
        missing--;
    }
    return SX_OK;
}

static enum sx_status connect_first(struct sx_lifeline *lifeline, const struct place *place,
                                    struct sx_error *error) {
    const struct hello hello = {.cookie = place->cookie, .rank = (uint32_t)lifeline->rank};
    const int fd = socket(place->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        lifeline->sockets[0] = fd;
        if (connect(fd, (const struct sockaddr *)&place->address, place->length) == 0 &&
            write_all(fd, &hello, sizeof hello)) {
            set_options(fd);
            return SX_OK;
        }
    }
    return sx_error_set(error, SX_RANK_LOST, "connecting to rank 0: %s", strerror(errno));
}

static enum sx_status connect_all(struct sx_lifeline *lifeline, struct sx_bootstrap *boot,
                                  const char *interface, struct sx_error *error) {
    struct place place = {0};
    int listener = -1;
    enum sx_status status = boot->rank == 0 ? begin_listening(interface, &place, &listener, error) : SX_OK;
    status = sx_bootstrap_agree(boot, status, error);
    if (status == SX_OK) {
        sx_bootstrap_broadcast(boot, &place, sizeof place);
        status = boot->rank == 0 ? accept_ranks(lifeline, &place, listener, error)
                                 : connect_first(lifeline, &place, error);
        status = sx_bootstrap_agree(boot, status, error);
    }
    if (listener >= 0)
        close(listener);
    return status;
}

enum sx_status sx_lifeline_open(struct sx_bootstrap *boot, const char *interface,
                                struct sx_lifeline **out_lifeline, struct sx_error *error) {
    struct sx_lifeline *lifeline = calloc(1, sizeof *lifeline);
    int *sockets = calloc((size_t)boot->size, sizeof *sockets);
    bool *gone = calloc((size_t)boot->size, sizeof *gone);
    const int stop = eventfd(0, EFD_CLOEXEC);
    enum sx_status status =
        lifeline && sockets && gone && stop >= 0
            ? SX_OK
            : sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for connections to %d ranks", boot->size);
    status = sx_bootstrap_agree(boot, status, error);
    if (!lifeline || !sockets || !gone || stop < 0) {
        free(lifeline);
        free(sockets);
        free(gone);
        if (stop >= 0)
            close(stop);
        return status;
    }
    *lifeline = (struct sx_lifeline){
        .rank = boot->rank, .size = boot->size, .sockets = sockets, .gone = gone, .stop = stop};
    for (int r = 0; r < boot->size; r++)
        sockets[r] = -1;
    if (status == SX_OK)
        status = connect_all(lifeline, boot, interface, error);
    if (status == SX_OK)
        *out_lifeline = lifeline;
    else
        sx_lifeline_close(lifeline, false);
    return status;
}

/* ---- watching ---- */

/* To those whose connections are open; who can't be told is gone, too. */
static void tell_all(const struct sx_lifeline *lifeline, enum word word, int rank) {
    const struct note note = {(uint32_t)word, (uint32_t)rank};
    for (int r = 0; r < lifeline->size; r++)
        if (lifeline->sockets[r] >= 0 && r != rank)
            (void)write_all(lifeline->sockets[r], &note, sizeof note);
}

void sx_lifeline_tell(struct sx_lifeline *lifeline, int lost_rank) {
    tell_all(lifeline, WORD_LOST, lost_rank);
}

static void note_lost(struct sx_lifeline *lifeline, int rank, const char *why) {
    if (lifeline->gone[rank])
        return;
    lifeline->gone[rank] = true;
    lifeline->lost(lifeline->context, rank, why);
    if (lifeline->rank == 0)
        tell_all(lifeline, WORD_LOST, rank);
}

/* Something has come from the rank, or its connection is closed. */
static void hear(struct sx_lifeline *lifeline, int rank) {
    struct note note;
    char why[96];
    if (!read_all(lifeline->sockets[rank], &note, sizeof note, 1000)) {
        const int problem = errno;
        snprintf(why, sizeof why, "the connection to it %s%s", problem ? "failed: " : "was closed",
                 problem ? strerrordesc_np(problem) : "");
        note_lost(lifeline, rank, why);
    } else if (note.word == WORD_BYE)
        lifeline->gone[rank] = true;
    else if (note.word == WORD_LOST && note.rank < (uint32_t)lifeline->size)
        note_lost(lifeline, (int)note.rank, NULL);
}

static void *watch(void *argument) {
    struct sx_lifeline *lifeline = argument;
    struct pollfd *waits = calloc((size_t)lifeline->size + 1, sizeof *waits);
    while (waits) {
        waits[lifeline->size] = (struct pollfd){.fd = lifeline->stop, .events = POLLIN};
        for (int r = 0; r < lifeline->size; r++)
            waits[r] = (struct pollfd){.fd = lifeline->gone[r] ? -1 : lifeline->sockets[r], .events = POLLIN};
        if (poll(waits, (nfds_t)lifeline->size + 1, -1) < 0)
            continue;
        if (waits[lifeline->size].revents)
            break;
        for (int r = 0; r < lifeline->size; r++)
            if (waits[r].revents)
                hear(lifeline, r);
    }
    free(waits);
    return NULL;
}

enum sx_status sx_lifeline_watch(struct sx_lifeline *lifeline, sx_lifeline_lost lost, void *context,
                                 struct sx_error *error) {
    lifeline->lost = lost;
    lifeline->context = context;
    if (pthread_create(&lifeline->thread, NULL, watch, lifeline) != 0)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "the system refused to start a thread");
    lifeline->has_thread = true;
    return SX_OK;
}

void sx_lifeline_close(struct sx_lifeline *lifeline, bool orderly) {
    if (!lifeline)
        return;
    if (lifeline->has_thread) {
        const uint64_t one = 1;
        (void)!write(lifeline->stop, &one, sizeof one);
        pthread_join(lifeline->thread, NULL);
        if (orderly)
            tell_all(lifeline, WORD_BYE, lifeline->rank);
    }
    for (int r = 0; r < lifeline->size; r++)
        if (lifeline->sockets[r] >= 0)
            close(lifeline->sockets[r]);
    close(lifeline->stop);
    free(lifeline->sockets);
    free(lifeline->gone);
    free(lifeline);
}
