/* backend/cuda/cufile_api.h says what cuFile's own header says. Nothing of this runs. */
#include <cufile.h>

#include "backend/cuda/cufile_api.h"

_Static_assert((int)CUFILE_SUCCESS == (int)CU_FILE_SUCCESS && CUFILE_FIRST_ERROR == CUFILEOP_BASE_ERR &&
                   (int)CUFILE_ALREADY_OPEN == (int)CU_FILE_DRIVER_ALREADY_OPEN &&
                   (int)CUFILE_FD == (int)CU_FILE_HANDLE_TYPE_OPAQUE_FD &&
                   (int)CUFILE_ALLOW_COMPAT_MODE == (int)CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE,
               "values");

#define SAME_FIELD(own, own_field, type, field)                                      \
    _Static_assert(offsetof(struct own, own_field) == offsetof(type, field) &&       \
                       sizeof((struct own){0}.own_field) == sizeof((type){0}.field), \
                   #field)

_Static_assert(sizeof(struct cufile_error) == sizeof(CUfileError_t), "error");
SAME_FIELD(cufile_error, status, CUfileError_t, err);
SAME_FIELD(cufile_error, cuda, CUfileError_t, cu_err);
_Static_assert(sizeof(struct cufile_descriptor) == sizeof(CUfileDescr_t), "descriptor");
SAME_FIELD(cufile_descriptor, type, CUfileDescr_t, type);
SAME_FIELD(cufile_descriptor, handle.fd, CUfileDescr_t, handle.fd);
SAME_FIELD(cufile_descriptor, operations, CUfileDescr_t, fs_ops);
_Static_assert(sizeof(struct cufile_properties) == sizeof(CUfileDrvProps_t), "properties");
SAME_FIELD(cufile_properties, driver.status_flags, CUfileDrvProps_t, nvfs.dstatusflags);
SAME_FIELD(cufile_properties, driver.control_flags, CUfileDrvProps_t, nvfs.dcontrolflags);

#define SAME_TYPE(function, type) \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&(function)), type), #function)

SAME_TYPE(cuFileSetParameterBool, CUfileError_t (*)(CUFileBoolConfigParameter_t, bool));
SAME_TYPE(cuFileDriverOpen, CUfileError_t (*)(void));
SAME_TYPE(cuFileDriverGetProperties, CUfileError_t (*)(CUfileDrvProps_t *));
SAME_TYPE(cuFileHandleRegister, CUfileError_t (*)(CUfileHandle_t *, CUfileDescr_t *));
SAME_TYPE(cuFileHandleDeregister, void (*)(CUfileHandle_t));
SAME_TYPE(cuFileBufRegister, CUfileError_t (*)(const void *, size_t, int));
SAME_TYPE(cuFileBufDeregister, CUfileError_t (*)(const void *));
SAME_TYPE(cuFileRead, ssize_t (*)(CUfileHandle_t, void *, size_t, off_t, off_t));
