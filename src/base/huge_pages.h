/* Memory in huge pages, where the system has them: it costs the kernel less to make, to lock and to read into
 * past its cache of files. */
#ifndef SX_BASE_HUGE_PAGES_H
#define SX_BASE_HUGE_PAGES_H

#include <stddef.h>

#include "base/slab_pool.h"

/* Begins at a multiple of SX_SLAB_ALIGNMENT; zeroed. NULL: there is none. */
void *sx_huge_pages_map(size_t size_bytes);
void sx_huge_pages_unmap(void *memory, size_t size_bytes);

/* Slabs of it, without more. */
struct sx_slab_source sx_huge_pages_source(void);

#endif
