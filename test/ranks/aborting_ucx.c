/* For LD_PRELOAD: UCX that aborts in the network thread as soon as the file ABORT_FILE is there, as some
 * versions do when a peer has died. */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

/* `worker`: a ucp_worker_h */
__attribute__((visibility("default"))) unsigned ucp_worker_progress(void *worker);

unsigned ucp_worker_progress(void *worker) {
    static unsigned (*progress)(void *worker);
    if (!progress)
        *(void **)&progress = dlsym(RTLD_NEXT, "ucp_worker_progress");
    const char *file = getenv("ABORT_FILE");
    if (file && access(file, F_OK) == 0)
        abort();
    return progress(worker);
}
