/* Files straight into device memory by cuFile (GPUDirect Storage): the library, what is read into, and reads.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda.h"
#include "backend/cuda/cufile_api.h"
#include "backend/cuda/inflate.h"
#include "base/slab_pool.h"

/* Of the device's memory 1/SHARE may hold what has been read and is not decoded yet. */
enum { SLAB_BYTES = 64 << 20, SHARE = 8 };

struct cufile_functions {
#define CUFILE_FIELD(name, type) __typeof__((type)0) name;
    CUFILE_FUNCTION_LIST(CUFILE_FIELD)
#undef CUFILE_FIELD
};

/* Device memory that is registered as a whole, and that reads name by its begin. */
struct slab {
    struct slab *next;
    char *memory;
    size_t bytes;
    bool is_registered;
};

/* What a thread needs for a look at the device's memory. */
struct peeker {
    struct peeker *next;
    cudaStream_t stream;
    void *pinned;
};

struct sx_device_files {
    struct cuda_device *device;
    struct cufile_functions cufile;
    struct sx_pool *pool;
    pthread_mutex_t lock; /* of what follows */
    struct slab *slabs;
    size_t slabs_bytes;
    struct peeker *idle;
};

struct sx_device_file {
    void *handle;
};

/* ---- the library ---- */

/* It stays loaded, and its driver open, to the end of the process: both are the process's. */
static enum sx_status load(struct cufile_functions *out, struct sx_error *error) {
    const char *missing = NULL;
    void *library = cuda_library_open(CUFILE_LIBRARY, "STACHIO_CUFILE_LIBRARY");
    if (!library)
        return sx_error_set(error, SX_UNSUPPORTED, "no cuFile: %s", dlerror());
#define CUFILE_FIND(name, type)                                          \
    out->name = (__typeof__(out->name))(uintptr_t)dlsym(library, #name); \
    missing = out->name ? missing : #name;
    CUFILE_FUNCTION_LIST(CUFILE_FIND)
#undef CUFILE_FIND
    return missing ? sx_error_set(error, SX_UNSUPPORTED, "no cuFile that is new enough: it lacks %s", missing)
                   : SX_OK;
}

static enum sx_status check(struct cufile_error result, const char *what, struct sx_error *error) {
    static const struct {
        int status;
        const char *text;
    } known[] = {
        {5001, ": the nvidia-fs driver is not loaded"},
        {5007, ": not on this platform"},
        {5008, ": not on this file system"},
        {5009, ": not on this GPU"},
        {5027, ": the file is not registered"},
        {5034, ": disabled for this file by configuration"},
    };
    const char *text = "";
    if (result.status == CUFILE_SUCCESS)
        return SX_OK;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].status == result.status)
            text = known[i].text;
    return sx_error_set(error, SX_UNSUPPORTED, "%s: cuFile's error %d%s", what, result.status, text);
}

/* Another database, or rank, may have opened the process's driver. */
static enum sx_status check_open(struct cufile_error result, const char *what, struct sx_error *error) {
    return result.status == CUFILE_ALREADY_OPEN ? SX_OK : check(result, what, error);
}

/* Before the driver is opened it can be told not to take the way through the host's memory; without that it
 * takes it silently. */
static enum sx_status open_driver(const struct cufile_functions *cufile, bool may_bounce,
                                  struct sx_error *error) {
    struct cufile_properties properties = {0};
    if (!may_bounce)
        SX_TRY(check_open(cufile->cuFileSetParameterBool(CUFILE_ALLOW_COMPAT_MODE, false),
                          "cuFileSetParameterBool", error));
    SX_TRY(check_open(cufile->cuFileDriverOpen(), "cuFileDriverOpen", error));
    SX_TRY(check(cufile->cuFileDriverGetProperties(&properties), "cuFileDriverGetProperties", error));
    const bool allows_bounce = properties.driver.control_flags >> CUFILE_ALLOW_COMPAT_MODE & 1;
    if (!may_bounce && (properties.driver.status_flags == 0 || allows_bounce))
        return sx_error_set(error, SX_UNSUPPORTED, "cuFile has only its compatibility mode here");
    return SX_OK;
}

/* ---- memory ---- */

static enum sx_status enter(const struct sx_device_files *files, struct sx_error *error) {
    const cudaError_t result = cuda_choose_device(files->device->ordinal);
    return result == cudaSuccess
               ? SX_OK
               : sx_error_set(error, SX_INTERNAL, "the device: %s", cudaGetErrorString(result));
}

/* What can't be registered serves too, by way of cuFile's own buffers. */
static void *map(void *context, size_t size_bytes) {
    struct sx_device_files *files = context;
    struct slab *slab = calloc(1, sizeof *slab);
    void *memory = NULL;
    pthread_mutex_lock(&files->lock);
    const bool has_room = files->slabs_bytes + size_bytes <= files->device->limit_bytes / SHARE;
    if (has_room)
        files->slabs_bytes += size_bytes;
    pthread_mutex_unlock(&files->lock);
    if (!slab || !has_room || enter(files, NULL) != SX_OK || cudaMalloc(&memory, size_bytes) != cudaSuccess) {
        (void)cudaGetLastError();
        pthread_mutex_lock(&files->lock);
        files->slabs_bytes -= has_room ? size_bytes : 0;
        pthread_mutex_unlock(&files->lock);
        free(slab);
        return NULL;
    }
    *slab = (struct slab){.memory = memory, .bytes = size_bytes};
    slab->is_registered = files->cufile.cuFileBufRegister(memory, size_bytes, 0).status == CUFILE_SUCCESS;
    pthread_mutex_lock(&files->lock);
    slab->next = files->slabs;
    files->slabs = slab;
    pthread_mutex_unlock(&files->lock);
    return memory;
}

static void unmap(void *context, void *memory, size_t size_bytes) {
    struct sx_device_files *files = context;
    pthread_mutex_lock(&files->lock);
    struct slab **at = &files->slabs;
    while ((*at)->memory != memory)
        at = &(*at)->next;
    struct slab *slab = *at;
    *at = slab->next;
    files->slabs_bytes -= size_bytes;
    pthread_mutex_unlock(&files->lock);
    (void)enter(files, NULL);
    if (slab->is_registered)
        (void)files->cufile.cuFileBufDeregister(memory);
    cudaFree(memory);
    free(slab);
}

/* The begin of the registered slab that holds it, or itself. */
static char *base_of(struct sx_device_files *files, uint8_t *memory) {
    char *base = (char *)memory;
    pthread_mutex_lock(&files->lock);
    for (const struct slab *slab = files->slabs; slab; slab = slab->next)
        if (slab->is_registered && (char *)memory >= slab->memory &&
            (char *)memory < slab->memory + slab->bytes)
            base = slab->memory;
    pthread_mutex_unlock(&files->lock);
    return base;
}

static struct sx_pool *pool_of(const struct sx_device_files *files) {
    return files->pool;
}

/* ---- reading ---- */

static enum sx_status open_file(struct sx_device_files *files, int fd, struct sx_device_file **out_file,
                                struct sx_error *error) {
    struct cufile_descriptor descriptor = {.type = CUFILE_FD, .handle.fd = fd};
    struct sx_device_file *file = calloc(1, sizeof *file);
    if (!file)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a file");
    enum sx_status status = enter(files, error);
    if (status == SX_OK)
        status = check(files->cufile.cuFileHandleRegister(&file->handle, &descriptor), "cuFileHandleRegister",
                       error);
    if (status != SX_OK) {
        free(file);
        return status;
    }
    *out_file = file;
    return SX_OK;
}

static void close_file(struct sx_device_files *files, struct sx_device_file *file) {
    if (!file)
        return;
    files->cufile.cuFileHandleDeregister(file->handle);
    free(file);
}

static enum sx_status refuse(ssize_t result, const struct sx_transfer *transfer, struct sx_error *error) {
    const long long offset = (long long)transfer->offset;
    if (result == -1)
        return sx_error_set(error, SX_FILE, "reading %zu bytes at %lld failed: %s", transfer->needed_bytes,
                            offset, strerror(errno));
    if (result < 0)
        return sx_error_set(error, SX_FILE, "reading %zu bytes at %lld failed: cuFile's error %lld",
                            transfer->needed_bytes, offset, (long long)-result);
    return sx_error_set(error, SX_FILE, "the file ends inside of the %zu bytes at %lld",
                        transfer->needed_bytes, offset);
}

/* A read may give less than was asked for; what is left begins where it stopped. */
static enum sx_status read_file(struct sx_device_files *files, const struct sx_device_file *file,
                                const struct sx_transfer *transfer, const atomic_bool *cancel,
                                struct sx_error *error) {
    char *base = base_of(files, transfer->to);
    const off_t at = (char *)transfer->to - base;
    size_t done = 0;
    SX_TRY(enter(files, error));
    if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
        return sx_error_set(error, SX_CANCELLED, "the query was cancelled");
    while (done < transfer->needed_bytes) {
        const ssize_t result =
            files->cufile.cuFileRead(file->handle, base, transfer->length_bytes - done,
                                     (off_t)transfer->offset + (off_t)done, at + (off_t)done);
        if (result == -1 && errno == EINTR)
            continue;
        if (result <= 0)
            return refuse(result, transfer, error);
        done += (size_t)result;
    }
    return SX_OK;
}

static bool takes(const struct sx_device_files *files, enum sx_parquet_codec codec) {
    return cuda_inflate_serves(files->device, codec);
}

/* ---- looking ---- */

static void free_peeker(struct peeker *peeker) {
    if (peeker->stream)
        cudaStreamDestroy(peeker->stream);
    if (peeker->pinned)
        cudaFreeHost(peeker->pinned);
    free(peeker);
}

/* NULL: there can't be one more. */
static struct peeker *take_peeker(struct sx_device_files *files) {
    pthread_mutex_lock(&files->lock);
    struct peeker *peeker = files->idle;
    if (peeker)
        files->idle = peeker->next;
    pthread_mutex_unlock(&files->lock);
    if (peeker)
        return peeker;
    peeker = calloc(1, sizeof *peeker);
    if (peeker &&
        (cudaStreamCreateWithFlags(&peeker->stream, cudaStreamNonBlocking) != cudaSuccess ||
         cudaHostAlloc(&peeker->pinned, SX_DEVICE_PEEK_BYTES, cudaHostAllocDefault) != cudaSuccess)) {
        (void)cudaGetLastError();
        free_peeker(peeker);
        return NULL;
    }
    return peeker;
}

static enum sx_status peek(struct sx_device_files *files, const uint8_t *device, size_t bytes,
                           void *out_bytes, struct sx_error *error) {
    SX_TRY(enter(files, error));
    struct peeker *peeker = take_peeker(files);
    if (!peeker)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a look at what was read");
    cudaError_t result =
        cudaMemcpyAsync(peeker->pinned, device, bytes, cudaMemcpyDeviceToHost, peeker->stream);
    if (result == cudaSuccess)
        result = cudaStreamSynchronize(peeker->stream);
    if (result == cudaSuccess)
        memcpy(out_bytes, peeker->pinned, bytes);
    pthread_mutex_lock(&files->lock);
    peeker->next = files->idle;
    files->idle = peeker;
    pthread_mutex_unlock(&files->lock);
    return result == cudaSuccess
               ? SX_OK
               : sx_error_set(error, SX_INTERNAL, "a look at what was read: %s", cudaGetErrorString(result));
}

/* ---- life ---- */

static void close_files(struct sx_device_files *files) {
    if (!files)
        return;
    sx_pool_destroy(files->pool);
    (void)enter(files, NULL);
    while (files->idle) {
        struct peeker *peeker = files->idle;
        files->idle = peeker->next;
        free_peeker(peeker);
    }
    pthread_mutex_destroy(&files->lock);
    free(files);
}

static enum sx_status open_files(const struct sx_backend *backend, bool may_bounce,
                                 struct sx_device_files **out_files, struct sx_error *error) {
    struct sx_device_files *files = calloc(1, sizeof *files);
    if (!files)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for cuFile");
    files->device = (struct cuda_device *)(uintptr_t)backend;
    pthread_mutex_init(&files->lock, NULL);
    const struct sx_slab_source source = {.map = map, .unmap = unmap, .context = files};
    enum sx_status status = enter(files, error);
    if (status == SX_OK)
        status = load(&files->cufile, error);
    if (status == SX_OK)
        status = open_driver(&files->cufile, may_bounce, error);
    if (status == SX_OK)
        status = sx_slab_pool_create(files->device->budget, SLAB_BYTES, source, &files->pool, error);
    if (status != SX_OK) {
        close_files(files);
        return status;
    }
    *out_files = files;
    return SX_OK;
}

const struct sx_device_files_ops sx_cuda_files = {
    .open = open_files,
    .close = close_files,
    .pool = pool_of,
    .takes = takes,
    .file_open = open_file,
    .file_close = close_file,
    .read = read_file,
    .peek = peek,
};
