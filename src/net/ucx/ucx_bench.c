/* Active messages alone, all to all, by the network thread itself: what channels are measured against. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "net/ucx/ucx_state.h"

enum {
    RAW_MESSAGE_ID = 2,
    LEAST_IN_FLIGHT = 8, /* messages to each rank, or so many bytes: as a channel's window */
    LEAST_BYTES_IN_FLIGHT = 8 << 20
};

struct sx_ucx_raw {
    struct sx_ucx *ucx;
    size_t bytes;
    int64_t count;    /* messages to each rank */
    char *out, *in;   /* all messages are of the same bytes, and come into the same */
    int64_t *sent;    /* per rank: begun */
    int64_t *left;    /* per rank: done */
    int64_t received; /* from all ranks; begins before this rank does */
    bool has_failed;
};

static void sending_ended(void *request, ucs_status_t status, void *user_data) {
    int64_t *left = user_data;
    (*left)++;
    (void)status; /* a lost rank is told of by the life line */
    ucp_request_free(request);
}

static void receiving_ended(void *request, ucs_status_t status, size_t length, void *user_data) {
    struct sx_ucx_raw *raw = user_data;
    raw->received++;
    (void)status, (void)length;
    ucp_request_free(request);
}

static ucs_status_t handle(void *argument, const void *header, size_t header_length, void *data,
                           size_t length, const ucp_am_recv_param_t *param) {
    struct sx_ucx_raw *raw = argument;
    (void)header, (void)header_length;
    if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        const ucp_request_param_t receive = {
            .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
            .cb = {.recv_am = receiving_ended},
            .user_data = raw,
        };
        ucs_status_ptr_t request = ucp_am_recv_data_nbx(raw->ucx->worker, data, raw->in, length, &receive);
        raw->received += !UCS_PTR_IS_PTR(request);
        return UCS_INPROGRESS;
    }
    memcpy(raw->in, data, length);
    raw->received++;
    return UCS_OK;
}

static void set_handler(struct sx_ucx_raw *raw, bool on) {
    const ucp_am_handler_param_t param = {
        .field_mask =
            UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = RAW_MESSAGE_ID,
        .cb = on ? handle : NULL,
        .arg = raw,
    };
    if (ucp_worker_set_am_recv_handler(raw->ucx->worker, &param) != UCS_OK)
        raw->has_failed = true;
}

static void send_some(struct sx_ucx_raw *raw, int rank) {
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb = {.send = sending_ended},
        .user_data = &raw->left[rank],
    };
    const int64_t fitting = LEAST_BYTES_IN_FLIGHT / (int64_t)raw->bytes;
    const int64_t most = fitting > LEAST_IN_FLIGHT ? fitting : LEAST_IN_FLIGHT;
    while (raw->sent[rank] < raw->count && raw->sent[rank] - raw->left[rank] < most) {
        ucs_status_ptr_t request =
            ucp_am_send_nbx(raw->ucx->endpoints[rank], RAW_MESSAGE_ID, NULL, 0, raw->out, raw->bytes, &param);
        raw->sent[rank]++;
        raw->left[rank] += !UCS_PTR_IS_PTR(request);
    }
}

static bool is_through(const struct sx_ucx_raw *raw) {
    const struct sx_ucx *ucx = raw->ucx;
    for (int r = 0; r < ucx->base.size; r++)
        if (r != ucx->base.rank && raw->left[r] < raw->count)
            return false;
    return raw->received == raw->count * (ucx->base.size - 1);
}

static void prepare(void *context) {
    set_handler(context, true);
}

static void finish(void *context) {
    set_handler(context, false);
}

static void exchange(void *context) {
    struct sx_ucx_raw *raw = context;
    struct sx_ucx *ucx = raw->ucx;
    int64_t busy_ns = sx_clock_ns();
    while (!raw->has_failed && !is_through(raw) && !atomic_load(&ucx->is_lost)) {
        for (int r = 0; r < ucx->base.size; r++)
            if (r != ucx->base.rank)
                send_some(raw, r);
        if (ucp_worker_progress(ucx->worker) > 0)
            busy_ns = sx_clock_ns();
        else if (sx_clock_ns() - busy_ns > SX_UCX_SPIN_NS)
            sx_ucx_wait(ucx);
        else
            sched_yield();
    }
}

static void release(struct sx_ucx_raw *raw) {
    free(raw->out);
    free(raw->in);
    free(raw->sent);
    free(raw->left);
    free(raw);
}

enum sx_status sx_ucx_raw_begin(struct sx_transport *transport, size_t bytes, int64_t count,
                                struct sx_transport_raw **out_raw, struct sx_error *error) {
    struct sx_ucx_raw *raw = calloc(1, sizeof *raw);
    if (!raw)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for messages of %zu bytes", bytes);
    const size_t size = (size_t)transport->size;
    *raw = (struct sx_ucx_raw){.ucx = (struct sx_ucx *)transport,
                               .bytes = bytes,
                               .count = count,
                               .out = calloc(1, bytes),
                               .in = calloc(1, bytes),
                               .sent = calloc(size, sizeof(int64_t)),
                               .left = calloc(size, sizeof(int64_t))};
    if (!raw->out || !raw->in || !raw->sent || !raw->left) {
        release(raw);
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for messages of %zu bytes", bytes);
    }
    sx_ucx_run(raw->ucx, prepare, raw);
    *out_raw = (struct sx_transport_raw *)raw;
    return SX_OK;
}

void sx_ucx_raw_exchange(struct sx_transport_raw *raw) {
    struct sx_ucx_raw *own = (struct sx_ucx_raw *)raw;
    sx_ucx_run(own->ucx, exchange, own);
}

void sx_ucx_raw_end(struct sx_transport_raw *raw) {
    struct sx_ucx_raw *own = (struct sx_ucx_raw *)raw;
    sx_ucx_run(own->ucx, finish, own);
    if (!atomic_load(&own->ucx->is_lost)) /* else something may still be on its way into them */
        release(own);
}
