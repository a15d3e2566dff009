"""Joins and queries between emulated GPUs that have no memory for a while: the answer is right all the same, or the error says so; nothing hangs.

Without a filter, or slots claimed ahead, a join goes on; without most else it, or a query, ends with status 4.
"""

import itertools
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import numpy
import pyarrow as pa
import pyarrow.parquet as pq

from check import SANITIZED, Checks, require, scratch_directory, skip
from oracle import DuckDB, Tables, check_equal, run_stachio

BUILD_DIR = os.environ.get("BUILD_DIR", "")
EMULATED, NCCL = (os.path.join(BUILD_DIR, f"lib{name}_emulated.so") for name in ("stachio_cuda", "nccl"))
CALLS, STEP = 700, 60 if SANITIZED else 12  # of two ranks' joins, for memory
MORE_CALLS = 180
QUERY_CALLS, QUERY_STEP = 800, 120 if SANITIZED else 40
QUERY = ("SELECT b.g, count(*), sum(p.v), max(p.s), min(b.w) FROM probe p JOIN build b ON p.k = b.k WHERE p.v <> 3 GROUP BY b.g "
         "ORDER BY count(*) DESC, b.g LIMIT 30")


def environment(first, count):
    return os.environ | {
        "STACHIO_CUDA_LIBRARY": EMULATED, "STACHIO_NCCL_LIBRARY": NCCL, "STACHIO_LOCAL_RANKS": "2", "CUDA_EMULATOR_DEVICES": "2",
        "STACHIO_LINK_BYTES": "1", "STACHIO_BROADCAST_BYTES": "0", "STACHIO_FEW_GROUPS": "0", "STACHIO_FILTER_ROWS": "0", "STACHIO_LARGE_ROWS": "100",
        "STACHIO_ALONE_BYTES": "0", "CUDA_EMULATOR_REFUSES": f"{first},{count}"}


def make_tables(directory):
    random = numpy.random.default_rng(11)
    keys = random.permutation(6000)
    table = {"k": keys * 1000003, "v": random.integers(-50, 50, 6000), "s": [f"a text that is longer than twelve bytes: {k % 300}" for k in keys]}
    pq.write_table(pa.table(table), f"{directory}/probe.parquet", row_group_size=900)
    table = {"k": numpy.arange(3000) * 1000003, "w": random.integers(0, 10**9, 3000), "g": random.integers(0, 200, 3000)}
    pq.write_table(pa.table(table), f"{directory}/build.parquet", row_group_size=400)
    return Tables(directory)


def query(tables, expected, first, count, statuses):
    run = run_stachio([*tables.options(), "-c", QUERY, "--fallback", "forbid", "--device", "cuda", "--threads", "2"], env=environment(first, count))
    require(run.status in (0, 4), f"no memory for calls {first} to {first + count - 1}: {run}")
    require(run.out == expected if run.status == 0 else "out of memory" in run.error, f"calls {first} to {first + count - 1}: {run}")
    statuses[first] = run.status


def join(first, count, statuses):
    """The program checks the number of rows and the sums of all columns."""
    run = run_stachio(["bench", "join", "--build", "9000", "--probe", "18000", "--columns", "3", "--hit-ratio", "0.5", "--device", "cuda",
                       "--threads", "2", "--runs", "1", "--variant", "auto"], env=environment(first, count))
    require(run.status in (0, 4), f"no memory for calls {first} to {first + count - 1}: {run}")
    require(run.status == 0 or "out of memory" in run.error, f"says so: {run}")
    statuses[first] = run.status


def refuse(checks, name, calls, step, ask):
    """Memory for some calls, each in turn, is refused: a call that is refused is tried again once memory is given back."""
    statuses = {}
    for first in range(step // 2, calls, step):
        count = 2 + first // step % 3 * 2
        with checks.case(f"{name}, calls {first} to {first + count - 1}"):
            ask(first, count, statuses)
    with checks.case(f"{name}: some can't go on"):
        require(4 in statuses.values(), str(statuses))
    return statuses


def some_go_on(statuses):
    """One call of some ten is for what a join can be without, and ranks' calls come in any order: looks at more of them until one is.

    Two refusals each: a request asks again once memory has been given back.
    """
    last = max((first for first, status in statuses.items() if status == 4), default=0)
    more = (first for offset in range(1, STEP, 5) for first in range(offset, last, STEP))
    for first in itertools.chain([first for first in statuses if first < last], itertools.islice(more, MORE_CALLS)):
        if first not in statuses:
            join(first, 2, statuses)
        if statuses[first] == 0:
            return
    require(False, f"none of {statuses}")


def main():
    if not os.path.exists(EMULATED):
        skip("no emulated GPUs in this build")
    checks = Checks()
    statuses = refuse(checks, "joins", CALLS, STEP, join)
    with checks.case("some joins go on without"):
        some_go_on(statuses)
    with scratch_directory() as directory:
        tables = make_tables(directory)
        never = environment(10**9, 1)
        check_equal(tables, DuckDB(tables), QUERY, "--fallback", "forbid", "--device", "cuda", "--threads", "2", env=never)
        right = run_stachio([*tables.options(), "-c", QUERY, "--device", "cuda", "--threads", "2"], env=never).succeeded()
        refuse(checks, "a query", QUERY_CALLS, QUERY_STEP, lambda *call: query(tables, right.out, *call))
    checks.finish()


if __name__ == "__main__":
    main()
