"""Launching ranks with mpirun, for tests."""

import os
import shutil
import subprocess

from check import skip


def why_no_mpirun():
    """None: ranks can be launched."""
    if not shutil.which("mpirun"):
        return "there is no mpirun"
    if not os.path.exists(os.path.join(os.environ["BUILD_DIR"], "libstachio_net.so")):
        return "libstachio_net.so was not built"
    if os.environ.get("BUILD_TYPE") == "Tsan":
        return "MPI and UCX are not instrumented for ThreadSanitizer"
    return None


def require_mpirun():
    reason = why_no_mpirun()
    if reason:
        skip(reason)


def rank_environment(**values):
    """Root may launch (containers), more ranks than cores may run, and the libraries' own leaks are not ours."""
    return dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                OMPI_MCA_rmaps_base_oversubscribe="1",
                ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0",
                STACHIO_NET_LIBRARY=os.path.join(os.environ["BUILD_DIR"], "libstachio_net.so"), **values)


def start_ranks(n, command, **values):
    return subprocess.Popen(["mpirun", "-n", str(n), *command], env=rank_environment(**values), stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_ranks(n, command, seconds=120, **values):
    """Exit status, stdout, stderr of mpirun."""
    process = start_ranks(n, command, **values)
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        process.kill()
    return process.returncode, out, err
