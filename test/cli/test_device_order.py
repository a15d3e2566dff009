"""TPC-H and joins on emulated GPUs whose streams do their work as late as they may: what is read before it was waited for is not there yet.

By one worker and by several, which get each other's tables, groups and batches; on one GPU and between several.
"""

import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

from check import SANITIZED, Checks, require, scratch_directory, skip
from device import EMULATED, NCCL
from oracle import run_stachio

LATE = {"STACHIO_DEVICE": "cuda", "STACHIO_CUDA_LIBRARY": EMULATED, "CUDA_EMULATOR_DEFERS": "2", "CUDA_EMULATOR_TELL": "1"}
RANKS = LATE | {"STACHIO_NCCL_LIBRARY": NCCL, "STACHIO_LINK_BYTES": "1", "STACHIO_BROADCAST_BYTES": "0", "STACHIO_FEW_GROUPS": "0", "STACHIO_FILTER_ROWS": "0",
                "STACHIO_LARGE_ROWS": "100", "STACHIO_ALONE_BYTES": "0"}
THREADS = (2,) if SANITIZED else (1, 2, 5)
CACHES = ("device",) if SANITIZED else ("host", "device")


def run_late(arguments, settings):
    run = run_stachio(arguments, env=os.environ | settings).succeeded()
    found = re.search(r"emulator: (\d+) put off", run.error)
    require(found and int(found.group(1)) > 100, f"work was put off: {run}")


def check_all(data, threads, cache):
    """Twice, so that memory is used again, and what is cached."""
    run_late(["tpch", "run", "-d", data, "--compare", "duckdb", "--fallback", "forbid", "--repeat", "2", "--threads", str(threads),
              "--cache", cache], LATE)


def check_ranks(data, n):
    local = RANKS | {"STACHIO_LOCAL_RANKS": str(n), "CUDA_EMULATOR_DEVICES": str(n)}
    run_late(["tpch", "run", "-d", data, "--compare", "duckdb", "--fallback", "forbid", "--threads", "2"], local)


def check_join(variant, columns):
    """The program checks rows and sums."""
    local = RANKS | {"STACHIO_LOCAL_RANKS": "3", "CUDA_EMULATOR_DEVICES": "3"}
    run_late(["bench", "join", "--build", "9000", "--probe", "60000", "--columns", str(columns), "--hit-ratio", "0.5", "--device", "cuda",
              "--threads", "2", "--runs", "2", "--variant", variant], local)


def main():
    if not os.path.exists(EMULATED):
        skip("no emulated GPUs in this build")
    checks = Checks()
    with scratch_directory() as directory:
        data, rewritten = os.path.join(directory, "data"), os.path.join(directory, "rewritten")
        run_stachio(["tpch", "generate", "--sf", "0.02", "-o", data]).succeeded()
        os.makedirs(rewritten)
        for name in os.listdir(data):
            run_stachio(["rewrite", os.path.join(data, name), "-o", os.path.join(rewritten, name), "--row-group-rows", "20000",
                         "--progress", "never"]).succeeded()
        for layout in (data, rewritten):
            for threads in THREADS:
                for cache in CACHES:
                    with checks.case(f"{os.path.basename(layout)}, {threads} thread(s), cache {cache}"):
                        check_all(layout, threads, cache)
        for n in (2,) if SANITIZED else (2, 3):
            with checks.case(f"{n} ranks"):
                check_ranks(data, n)
    for variant in ("auto",) if SANITIZED else ("auto", "deferred", "chunked", "tuned", "blocking"):
        with checks.case(f"a join of three ranks, {variant}"):
            check_join(variant, 3)
    checks.finish()


if __name__ == "__main__":
    main()
