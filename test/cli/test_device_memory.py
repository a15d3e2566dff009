"""Joins between emulated GPUs that have no memory for a while: the answer is right all the same, or the error says so; nothing hangs.

Without a filter, or slots claimed ahead, a join goes on; without most else it ends with status 4.
"""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

from check import SANITIZED, Checks, require, skip
from oracle import run_stachio

BUILD_DIR = os.environ.get("BUILD_DIR", "")
EMULATED, NCCL = (os.path.join(BUILD_DIR, f"lib{name}_emulated.so") for name in ("stachio_cuda", "nccl"))
CALLS, STEP = 700, 60 if SANITIZED else 12  # of two ranks' joins, for memory


def environment(first, count):
    return os.environ | {
        "STACHIO_CUDA_LIBRARY": EMULATED, "STACHIO_NCCL_LIBRARY": NCCL, "STACHIO_LOCAL_RANKS": "2", "CUDA_EMULATOR_DEVICES": "2",
        "STACHIO_LINK_BYTES": "1", "STACHIO_BROADCAST_BYTES": "0", "STACHIO_FILTER_ROWS": "0", "STACHIO_LARGE_ROWS": "100",
        "CUDA_EMULATOR_REFUSES": f"{first},{count}"}


def join(first, count, statuses):
    """The program checks the number of rows and the sums of all columns."""
    run = run_stachio(["bench", "join", "--build", "9000", "--probe", "18000", "--columns", "3", "--hit-ratio", "0.5", "--device", "cuda",
                       "--threads", "2", "--runs", "1", "--variant", "auto"], env=environment(first, count))
    require(run.status in (0, 4), f"no memory for calls {first} to {first + count - 1}: {run}")
    require(run.status == 0 or "out of memory" in run.error, f"says so: {run}")
    statuses[first] = run.status


def main():
    if not os.path.exists(EMULATED):
        skip("no emulated GPUs in this build")
    checks, statuses = Checks(), {}
    for first in range(STEP // 2, CALLS, STEP):
        count = 2 + first % 3 * 2  # a call that is refused is tried again once memory is given back
        with checks.case(f"calls {first} to {first + count - 1}"):
            join(first, count, statuses)
    with checks.case("some go on without, and some can't"):
        last = max((first for first, status in statuses.items() if status == 4), default=0)
        require(last > 0 and any(status == 0 for first, status in statuses.items() if first < last), str(statuses))
    checks.finish()


if __name__ == "__main__":
    main()
