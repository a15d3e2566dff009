"""The devices and libraries that the tests bring along."""

import os

from check import skip

BUILD = os.environ.get("BUILD_DIR", "")
EMULATED = os.path.join(BUILD, "libstachio_cuda_emulated.so")
NCCL = os.path.join(BUILD, "libnccl_emulated.so")
CUFILE = os.path.join(BUILD, "libcufile_emulated.so")


def has_nvcomp():
    """Whether the device decompresses what nvCOMP is for; the emulated one has a stand-in."""
    return os.environ.get("STACHIO_CUDA_LIBRARY") == EMULATED or os.path.exists(os.path.join(BUILD, "libnvcomp.so.5"))


def need_device():
    """The GPU, where the tests run with one, else the emulated one."""
    if os.environ.get("STACHIO_DEVICE") == "cuda":
        return
    if not os.path.exists(EMULATED):
        skip("the emulated device is not there")
    os.environ |= {"STACHIO_DEVICE": "cuda", "STACHIO_CUDA_LIBRARY": EMULATED}
