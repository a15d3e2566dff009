#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/ucx/ucx_state.h"

/* ---- out ---- */

static void end_sending(struct sx_ucx_transfer *transfer, ucs_status_t status) {
    struct sx_ucx *ucx = transfer->ucx;
    if (status != UCS_OK)
        sx_ucx_lost(ucx, transfer->rank, status);
    sx_buffer_release(transfer->buffer);
    ucx->events->sent(ucx->context, transfer->rank, &transfer->header.frame, transfer->bytes);
    free(transfer);
}

static void sending_ended(void *request, ucs_status_t status, void *user_data) {
    end_sending(user_data, status);
    ucp_request_free(request);
}

static void begin_sending(struct sx_ucx *ucx, struct sx_ucx_transfer *transfer) {
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb = {.send = sending_ended},
        .user_data = transfer,
    };
    const void *data = transfer->buffer ? transfer->buffer->data : NULL;
    ucs_status_ptr_t request =
        ucp_am_send_nbx(ucx->endpoints[transfer->rank], SX_UCX_MESSAGE_ID, &transfer->header,
                        sizeof transfer->header, data, transfer->bytes, &param);
    if (!UCS_PTR_IS_PTR(request))
        end_sending(transfer, UCS_PTR_STATUS(request));
}

void sx_ucx_send(struct sx_transport *transport, int rank, const struct sx_frame *frame,
                 struct sx_buffer *buffer, size_t bytes) {
    struct sx_ucx *ucx = (struct sx_ucx *)transport;
    struct sx_ucx_transfer *transfer = malloc(sizeof *transfer);
    if (!transfer)
        abort();
    *transfer = (struct sx_ucx_transfer){.ucx = ucx,
                                         .header = {.frame = *frame, .rank = (uint32_t)transport->rank},
                                         .rank = rank,
                                         .buffer = buffer,
                                         .bytes = bytes};
    pthread_mutex_lock(&ucx->lock);
    if (ucx->last)
        ucx->last->next = transfer;
    else
        ucx->first = transfer;
    ucx->last = transfer;
    const bool wake = ucx->sleeping;
    ucx->sleeping = false;
    pthread_mutex_unlock(&ucx->lock);
    if (wake)
        eventfd_write(ucx->wake_fd, 1);
}

static bool send_given(struct sx_ucx *ucx) {
    pthread_mutex_lock(&ucx->lock);
    struct sx_ucx_transfer *transfer = ucx->first;
    ucx->first = ucx->last = NULL;
    pthread_mutex_unlock(&ucx->lock);
    const bool any = transfer != NULL;
    while (transfer) {
        struct sx_ucx_transfer *next = transfer->next;
        begin_sending(ucx, transfer);
        transfer = next;
    }
    return any;
}

/* ---- in ---- */

static void end_receiving(struct sx_ucx_transfer *transfer, ucs_status_t status) {
    struct sx_ucx *ucx = transfer->ucx;
    if (status == UCS_OK) {
        ucx->events->received(ucx->context, transfer->rank, &transfer->header.frame, transfer->buffer,
                              transfer->bytes);
    } else {
        sx_buffer_release(transfer->buffer);
        sx_ucx_lost(ucx, transfer->rank, status);
    }
    free(transfer);
}

static void receiving_ended(void *request, ucs_status_t status, size_t length, void *user_data) {
    (void)length;
    end_receiving(user_data, status);
    ucp_request_free(request);
}

static void begin_receiving(struct sx_ucx *ucx, const struct sx_ucx_header *header, struct sx_buffer *buffer,
                            void *announced, size_t bytes) {
    struct sx_ucx_transfer *transfer = malloc(sizeof *transfer);
    if (!transfer)
        abort();
    *transfer = (struct sx_ucx_transfer){
        .ucx = ucx, .header = *header, .rank = (int)header->rank, .buffer = buffer, .bytes = bytes};
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb = {.recv_am = receiving_ended},
        .user_data = transfer,
    };
    ucs_status_ptr_t request = ucp_am_recv_data_nbx(ucx->worker, announced, buffer->data, bytes, &param);
    if (!UCS_PTR_IS_PTR(request))
        end_receiving(transfer, UCS_PTR_STATUS(request));
}

static ucs_status_t handle(void *argument, const void *header, size_t header_length, void *data,
                           size_t length, const ucp_am_recv_param_t *param) {
    struct sx_ucx *ucx = argument;
    struct sx_ucx_header known;
    struct sx_buffer *buffer;
    if (header_length != sizeof known)
        return UCS_OK;
    memcpy(&known, header, sizeof known);
    if (known.rank >= (uint32_t)ucx->base.size ||
        !ucx->events->expect(ucx->context, (int)known.rank, &known.frame, length, &buffer))
        return UCS_OK; /* what is only announced is dropped by this, too */
    if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        begin_receiving(ucx, &known, buffer, data, length);
        return UCS_INPROGRESS;
    }
    if (length)
        memcpy(buffer->data, data, length);
    ucx->events->received(ucx->context, (int)known.rank, &known.frame, buffer, length);
    return UCS_OK;
}

enum sx_status sx_ucx_set_handler(struct sx_ucx *ucx, struct sx_error *error) {
    const ucp_am_handler_param_t param = {
        .field_mask =
            UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = SX_UCX_MESSAGE_ID,
        .cb = handle,
        .arg = ucx,
    };
    const ucs_status_t status = ucp_worker_set_am_recv_handler(ucx->worker, &param);
    return status == UCS_OK ? SX_OK : sx_error_set(error, SX_INTERNAL, "UCX: %s", ucs_status_string(status));
}

/* ---- the thread ---- */

void sx_ucx_stop(struct sx_ucx *ucx) {
    pthread_mutex_lock(&ucx->lock);
    ucx->stopping = true;
    pthread_mutex_unlock(&ucx->lock);
    eventfd_write(ucx->wake_fd, 1);
}

void sx_ucx_run(struct sx_ucx *ucx, void (*task)(void *context), void *context) {
    pthread_mutex_lock(&ucx->lock);
    ucx->task = task;
    ucx->task_context = context;
    eventfd_write(ucx->wake_fd, 1);
    while (ucx->task)
        pthread_cond_wait(&ucx->task_done, &ucx->lock);
    pthread_mutex_unlock(&ucx->lock);
}

static void run_task(struct sx_ucx *ucx) {
    pthread_mutex_lock(&ucx->lock);
    void (*task)(void *context) = ucx->task;
    pthread_mutex_unlock(&ucx->lock);
    if (!task)
        return;
    (void)send_given(ucx); /* others may wait for it before they come to the same task */
    task(ucx->task_context);
    pthread_mutex_lock(&ucx->lock);
    ucx->task = NULL;
    pthread_cond_signal(&ucx->task_done);
    pthread_mutex_unlock(&ucx->lock);
}

/* False: there is something to do. */
static bool may_sleep(struct sx_ucx *ucx) {
    pthread_mutex_lock(&ucx->lock);
    ucx->sleeping = !ucx->first && !ucx->stopping && !ucx->task;
    const bool may = ucx->sleeping;
    pthread_mutex_unlock(&ucx->lock);
    return may;
}

void sx_ucx_wait(struct sx_ucx *ucx) {
    struct pollfd waits[] = {{.fd = ucx->worker_fd, .events = POLLIN},
                             {.fd = ucx->wake_fd, .events = POLLIN}};
    eventfd_t count;
    if (ucp_worker_arm(ucx->worker) != UCS_OK) {
        sched_yield(); /* what is to be sent waits for another rank, maybe on this processor */
        return;
    }
    poll(waits, 2, -1);
    if (waits[1].revents)
        eventfd_read(ucx->wake_fd, &count);
}

static bool is_stopping(struct sx_ucx *ucx) {
    pthread_mutex_lock(&ucx->lock);
    const bool stopping = ucx->stopping;
    pthread_mutex_unlock(&ucx->lock);
    return stopping;
}

/* Since when there has been nothing to do. */
static bool is_idle(struct sx_ucx *ucx, int64_t busy_ns) {
    const int64_t spin_ns = atomic_load(&ucx->base.spin_ns);
    return sx_clock_ns() - busy_ns > (spin_ns > SX_UCX_SPIN_NS ? spin_ns : SX_UCX_SPIN_NS);
}

void *sx_ucx_thread(void *argument) {
    struct sx_ucx *ucx = argument;
    ucx->runner = pthread_self();
    atomic_store(&ucx->runs, true);
    int64_t busy_ns = sx_clock_ns();
    while (!is_stopping(ucx)) {
        const bool sent = send_given(ucx);
        run_task(ucx);
        if (ucp_worker_progress(ucx->worker) > 0 || sent)
            busy_ns = sx_clock_ns();
        else if (is_idle(ucx, busy_ns) && may_sleep(ucx))
            sx_ucx_wait(ucx);
        else
            sched_yield(); /* to a rank on the same processor */
    }
    return NULL;
}
