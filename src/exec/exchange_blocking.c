/* Exchanges that do not overlap with anything, to be compared with (PystachIO, section 3.1): all rows are
 * partitioned, then all are sent, and all have come before the first one is given out. */
#include <stdlib.h>

#include "base/array.h"
#include "exec/exchange.h"

/* Takes the message over in every case. */
static enum sx_status append(struct exchange_list *list, const struct sx_net_message *message,
                             struct sx_error *error) {
    struct sx_net_message *grown = sx_array_grow(list->messages, sizeof *grown, list->end, &list->capacity);
    if (!grown) {
        sx_buffer_release(message->buffer);
        return sx_no_memory(error, "a list of messages");
    }
    list->messages = grown;
    list->messages[list->end++] = *message;
    return SX_OK;
}

enum sx_status exchange_hold(struct sx_exchange *exchange, struct sx_worker *worker,
                             const struct sx_net_message *messages, int n) {
    enum sx_status status = SX_OK;
    for (int i = 0; i < n; i++)
        if (status == SX_OK)
            status = append(&exchange->workers[worker->index].held, &messages[i], sx_worker_error(worker));
        else
            sx_buffer_release(messages[i].buffer);
    return status;
}

enum sx_status exchange_send_held(struct sx_exchange *exchange, struct sx_worker *worker) {
    for (int w = 0; w < worker->run->n_workers; w++) {
        struct exchange_list *held = &exchange->workers[w].held;
        while (held->first < held->end)
            SX_TRY(sx_channel_send(exchange->channel, &held->messages[held->first++], 1,
                                   sx_worker_error(worker)));
    }
    return SX_OK;
}

enum sx_status exchange_gather(struct sx_exchange *exchange, struct sx_worker *worker, bool *out_whole) {
    struct sx_net_message message;
    enum sx_status status = SX_OK;
    pthread_mutex_lock(&exchange->arrived_lock);
    while (status == SX_OK && sx_channel_receive(exchange->channel, &message))
        status = append(&exchange->arrived, &message, sx_worker_error(worker));
    *out_whole = sx_channel_ended(exchange->channel);
    pthread_mutex_unlock(&exchange->arrived_lock);
    return status;
}

bool exchange_next_gathered(struct sx_exchange *exchange, struct sx_net_message *out_message) {
    struct exchange_list *arrived = &exchange->arrived;
    pthread_mutex_lock(&exchange->arrived_lock);
    const bool has_one = arrived->first < arrived->end;
    if (has_one)
        *out_message = arrived->messages[arrived->first++];
    pthread_mutex_unlock(&exchange->arrived_lock);
    return has_one;
}

void exchange_list_release(struct exchange_list *list) {
    for (int64_t i = list->first; i < list->end; i++)
        sx_buffer_release(list->messages[i].buffer);
    free(list->messages);
    *list = (struct exchange_list){0};
}
