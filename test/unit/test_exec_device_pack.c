/* When rows between devices are packed: by the link's pace, how busy it is, and what packing has brought. */
#include <assert.h>
#include <stdio.h>

#include "exec/exchange.h"

enum { MS = 1000000 };
/* 4.8 TB/s. */
static const double memory_ns_a_byte = 1 / 4800.0;

/* The link was busy for `busy` of the time since the last look, 10 ms ago. */
static bool decide(struct exchange_device_packing *packing, double gb_a_second, double busy) {
    const struct sx_net_pace pace = {.busy_ns = packing->pace.busy_ns + (int64_t)(10 * MS * busy),
                                     .ns_a_byte = gb_a_second > 0 ? 1 / gb_a_second : 0};
    exchange_device_decide(packing, &pace, memory_ns_a_byte, packing->looked_ns + 10 * MS);
    return packing->is_on;
}

static struct exchange_device_packing started(double plain_bytes, double packed_bytes) {
    return (struct exchange_device_packing){.row_bytes = {plain_bytes, packed_bytes}, .looked_ns = MS};
}

static void test_pace(void) {
    static const struct {
        double gb_a_second;
        bool packs;
    } links[] = {{0, false}, {1, true}, {20, true}, {33, true}, {50, true}, {120, false}, {450, false}};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        struct exchange_device_packing guessed = started(24, 0), known = started(24, 12);
        assert(decide(&guessed, links[i].gb_a_second, 1) == links[i].packs);
        assert(decide(&known, links[i].gb_a_second, 1) == links[i].packs);
    }
}

static void test_bound(void) {
    struct exchange_device_packing packing = started(24, 0);
    assert(!decide(&packing, 20, 0.4));
    assert(decide(&packing, 20, 0.6));
    packing.row_bytes[1] = 6;
    assert(decide(&packing, 20, 0.2)); /* it would be busy for 0.8 of the time */
    packing.went_plain = true;         /* what kept it busy was not packed */
    assert(!decide(&packing, 20, 0.2));
    packing.is_on = true;
    packing.went_plain = false;
    assert(!decide(&packing, 20, 0.1));
}

/* What can't be made smaller is not packed again, whatever the link. */
static void test_ratio(void) {
    struct exchange_device_packing packing = started(24, 24);
    assert(!decide(&packing, 1, 1));
    packing = started(24, 2);
    assert(decide(&packing, 100, 1));
}

/* What is packed has to be less than what goes NARROW, not less than what would be plain. */
static void test_narrow(void) {
    enum { ROWS = 10000 };
    struct sx_exchange exchange = {0};
    struct exchange_device_packing *packing = &exchange.device_packing;
    exchange_device_packing_init(packing);
    packing->looked_ns = MS;
    exchange_device_note(&exchange, false, ROWS, 18 * ROWS, 32 * ROWS);
    exchange_device_note(&exchange, true, ROWS, 16 * ROWS, 32 * ROWS);
    assert(packing->row_bytes[0] == 18 && packing->row_bytes[1] == 16);
    assert(!decide(packing, 33, 1));
    exchange_device_note(&exchange, false, ROWS, 32 * ROWS, 32 * ROWS);
    assert(packing->row_bytes[0] == 32 && decide(packing, 33, 1));
    exchange_device_packing_release(packing);
}

static bool decide_first(struct exchange_device_packing *packing, double ns_a_byte) {
    const struct sx_net_pace pace = {.busy_ns = 100 * MS, .ns_a_byte = ns_a_byte};
    *packing = (struct exchange_device_packing){0};
    exchange_device_decide(packing, &pace, memory_ns_a_byte, 5 * MS);
    assert(packing->looked_ns == 5 * MS);
    return packing->is_on;
}

/* The first look has the pace of exchanges before this one, if there was any; a later one is in vain before a
 * plain batch is known. */
static void test_first(void) {
    struct exchange_device_packing packing;
    assert(!decide_first(&packing, 0));
    assert(!decide_first(&packing, 1 / 120.0)); /* as a fast link may look by short messages */
    assert(decide_first(&packing, 1 / 30.0));
    assert(decide(&packing, 30, 0)); /* nothing is known of what it brings */
    packing.row_bytes[0] = packing.row_bytes[1] = 24;
    assert(!decide(&packing, 30, 1));
    assert(!decide_first(&packing, 0) && !decide(&packing, 1, 1));
}

/* A batch has to be the larger, the faster the link is. */
static void test_gains(void) {
    static const struct {
        double gb_a_second, least_mb; /* of rows that become half */
    } links[] = {{0.1, 0.03}, {1, 0.3}, {30, 9}};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        struct exchange_device_packing packing = started(24, 12);
        assert(decide(&packing, links[i].gb_a_second, 1));
        assert(exchange_device_gains(&packing, 1.01e6 * links[i].least_mb));
        assert(!exchange_device_gains(&packing, 0.99e6 * links[i].least_mb));
    }
}

/* What is plain is known of packed batches, too; a few rows tell nothing but their bytes. */
static void test_note(void) {
    enum { ROWS = 10000 };
    struct sx_exchange exchange = {0};
    struct exchange_device_packing *packing = &exchange.device_packing;
    exchange_device_packing_init(packing);
    exchange_device_note(&exchange, true, ROWS, 16 * ROWS, 31 * ROWS);
    assert(packing->row_bytes[0] == 31 && packing->row_bytes[1] == 16);
    exchange_device_note(&exchange, false, ROWS, 32 * ROWS, 32 * ROWS);
    exchange_device_note(&exchange, true, 1, 1, 2);
    assert(packing->row_bytes[0] == 32 && packing->row_bytes[1] == 16);
    assert(exchange.plain_bytes == 63 * ROWS + 2 && exchange.packed_bytes == 48 * ROWS + 1);
    exchange_device_packing_release(packing);
}

int main(void) {
    test_pace();
    test_bound();
    test_ratio();
    test_narrow();
    test_first();
    test_gains();
    test_note();
    puts("ok");
    return 0;
}
