/* Part of the family `move`. */
#ifndef TEST_CONFORMANCE_MOVE_STREAMS_H
#define TEST_CONFORMANCE_MOVE_STREAMS_H

#include "conformance.h"

void move_between_streams(struct conformance *c);

#endif
