"""The devices and libraries that the tests bring along."""

import os

from check import skip

BUILD = os.environ.get("BUILD_DIR", "")
EMULATED = os.path.join(BUILD, "libstachio_cuda_emulated.so")
NCCL = os.path.join(BUILD, "libnccl_emulated.so")
NVML = os.path.join(BUILD, "libnvml_emulated.so")
CUFILE = os.path.join(BUILD, "libcufile_emulated.so")
# For tests of what the device decompresses, however few pages there are.
INFLATE_ALL = {"STACHIO_INFLATE": "snappy,gzip,lz4,zstd"}


def need_device():
    """The GPU, where the tests run with one, else the emulated one."""
    if os.environ.get("STACHIO_DEVICE") == "cuda":
        return
    if not os.path.exists(EMULATED):
        skip("the emulated device is not there")
    os.environ |= {"STACHIO_DEVICE": "cuda", "STACHIO_CUDA_LIBRARY": EMULATED}
