/* Order of use of a cache's entries: a list that goes through links inside of them. Not thread-safe. */
#ifndef SX_BASE_LRU_H
#define SX_BASE_LRU_H

#include <stddef.h>

struct sx_lru_link {
    struct sx_lru_link *newer, *older;
};

/* Starts zeroed. */
struct sx_lru {
    struct sx_lru_link *newest, *oldest;
};

static inline void sx_lru_add(struct sx_lru *lru, struct sx_lru_link *link) {
    link->newer = NULL;
    link->older = lru->newest;
    if (lru->newest)
        lru->newest->newer = link;
    else
        lru->oldest = link;
    lru->newest = link;
}

static inline void sx_lru_remove(struct sx_lru *lru, struct sx_lru_link *link) {
    if (link->newer)
        link->newer->older = link->older;
    else
        lru->newest = link->older;
    if (link->older)
        link->older->newer = link->newer;
    else
        lru->oldest = link->newer;
}

/* It was used. */
static inline void sx_lru_touch(struct sx_lru *lru, struct sx_lru_link *link) {
    sx_lru_remove(lru, link);
    sx_lru_add(lru, link);
}

#endif
