/* backend/cuda/nvcomp.h says what nvCOMP's own headers say. Nothing of this runs. */
#include <nvcomp.h>
#include <nvcomp/lz4.h>
#include <nvcomp/zstd.h>

#include "backend/cuda/nvcomp.h"

#define SAME_TYPE(function, type) \
    _Static_assert(__builtin_types_compatible_p(__typeof__(function), type), #function)

#define CODEC(name)                                                                                          \
    typedef NVCOMP_GET_ALIGNMENTS(name##_alignments, nvcompStatus_t, nvcompBatched##name##DecompressOpts_t,  \
                                  nvcompAlignmentRequirements_t);                                            \
    typedef NVCOMP_GET_TEMP_BYTES(name##_temp_bytes, nvcompStatus_t, nvcompBatched##name##DecompressOpts_t); \
    typedef NVCOMP_DECOMPRESS(name##_decompress, nvcompStatus_t, nvcompBatched##name##DecompressOpts_t);     \
    SAME_TYPE(nvcompBatched##name##DecompressGetRequiredAlignments, name##_alignments);                      \
    SAME_TYPE(nvcompBatched##name##DecompressGetTempSizeAsync, name##_temp_bytes);                           \
    SAME_TYPE(nvcompBatched##name##DecompressAsync, name##_decompress);                                      \
    _Static_assert(sizeof(struct nvcomp_options) == sizeof(nvcompBatched##name##DecompressOpts_t) &&         \
                       offsetof(nvcompBatched##name##DecompressOpts_t, backend) == 0,                        \
                   "options of " #name);

CODEC(LZ4)
CODEC(Zstd)

_Static_assert(sizeof(enum nvcomp_status) == sizeof(nvcompStatus_t), "status");
_Static_assert((int)NVCOMP_SUCCESS == (int)nvcompSuccess &&
                   (int)NVCOMP_CANNOT_DECOMPRESS == (int)nvcompErrorCannotDecompress &&
                   (int)NVCOMP_INTERNAL == (int)nvcompErrorInternal,
               "status");
_Static_assert((int)NVCOMP_BACKEND_CUDA == (int)NVCOMP_DECOMPRESS_BACKEND_CUDA, "backend");
_Static_assert(NVCOMP_TYPE_CHAR == 0 && NVCOMP_BITSHUFFLE_NONE == 0, "the defaults of LZ4 are zeros");
_Static_assert(sizeof(struct nvcomp_alignments) == sizeof(nvcompAlignmentRequirements_t) &&
                   offsetof(struct nvcomp_alignments, input) ==
                       offsetof(nvcompAlignmentRequirements_t, input) &&
                   offsetof(struct nvcomp_alignments, output) ==
                       offsetof(nvcompAlignmentRequirements_t, output),
               "alignments");
