"""Joins between ranks on emulated GPUs whose columns travel as offsets and stay so until the join moves them: equal to DuckDB's.

Columns of many widths and ranges, more than can be narrow, with and without NULLs; keys that are output, too; inner and outer joins, EXISTS, IN and scalar subqueries.
"""

import datetime
import decimal
import functools
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import numpy
import pyarrow as pa
import pyarrow.parquet as pq

from check import SANITIZED, Checks, require, scratch_directory, skip
from oracle import DuckDB, Tables, ask_stachio, check_equal

EMULATED = os.path.join(os.environ.get("BUILD_DIR", ""), "libstachio_cuda_emulated.so")
ROWS, BUILD_ROWS, COLUMNS = 3000 if SANITIZED else 8000, 2500, 70
SPREAD = 1000003  # of keys, so that they are not dense

QUERIES = [
    "SELECT p.*, b.* FROM probe p JOIN build b ON p.k = b.k",
    "SELECT p.k, b.k, p.t, b.t, b.c1 FROM probe p JOIN build b ON p.k = b.k AND p.c1 < b.c2",
    "SELECT p.*, b.d, b.c69 FROM probe p LEFT JOIN build b ON p.k = b.k",
    "SELECT p.k, p.d, p.c3, b.* FROM probe p FULL JOIN build b ON p.k = b.k",
    "SELECT p.* FROM probe p WHERE EXISTS (SELECT 1 FROM build b WHERE b.k = p.k)",
    "SELECT p.* FROM probe p WHERE NOT EXISTS (SELECT 1 FROM build b WHERE b.k = p.k)",
    "SELECT p.id, p.d, p.c1 FROM probe p WHERE p.k IN (SELECT k FROM build) OR p.c1 < 5",
    "SELECT p.id, p.d, p.c1, p.c2 FROM probe p WHERE p.k IN (SELECT b.k FROM build b WHERE b.l = p.l) OR p.c1 < 5",
    "SELECT p.id, p.d, p.c1, p.c2, p.k IN (SELECT b.k FROM build b WHERE b.l = p.l) FROM probe p",
    "SELECT p.*, b.c1 FROM probe p LEFT JOIN build b ON b.k = p.id * 7919 + 1",
    "SELECT p.id, b.d, b.c1 FROM probe p JOIN build b ON p.k = b.k",
    "SELECT p.id, p.t, (SELECT b.c2 FROM build b WHERE b.k = p.k) FROM probe p",
    # Every probe row matches once, so that its columns need not be gathered; then by a dense key, and by two keys.
    "SELECT q.*, p.c1, p.d FROM probe p JOIN probe q ON p.id * 7919 = q.id * 7919",
    "SELECT q.*, p.c1, p.d FROM probe p JOIN probe q ON p.id = q.id",
    "SELECT p.c1, p.d, b.* FROM probe p JOIN build b ON p.k = b.k AND p.l = b.l",
    # Duplicates; and the same keys once more behind that.
    "SELECT b.c1, b.t, count(*), sum(p.c1), max(p.d) FROM build b JOIN probe p ON p.l * 1000003 = b.l * 1000003 WHERE b.c1 % 40 = 0 GROUP BY b.c1, b.t",
    "SELECT p.k, b.k, a.k, p.c1, b.c2, a.t FROM probe p JOIN build b ON p.k = b.k JOIN build a ON a.k = b.k",
]
# Columns that sums, counts and expressions alone read, behind a join.
SUMMED = [
    "SELECT count(*), " + ", ".join(f"sum(p.c{k}), count(p.c{k})" for k in range(20)) + ", sum(p.d), sum(p.u), sum(p.id), sum(b.c1), sum(b.u) FROM probe p JOIN build b ON p.k = b.k",
    "SELECT sum(p.c1 + p.c2), sum(p.c1), min(p.c3), max(p.t), sum(p.d * 2), avg(p.c5), sum(p.c0) FILTER (p.c1 > 10), sum(DISTINCT p.c6), any_value(p.c1) IS NULL FROM probe p JOIN build b ON p.k = b.k",
    "SELECT p.l, sum(p.c1), sum(p.d), count(p.c3), sum(p.u), min(p.c2), sum(p.c5 - p.c6) FROM probe p JOIN build b ON p.k = b.k GROUP BY p.l",
    "SELECT sum(p.c1), sum(p.u), sum(p.d), count(b.k) FROM probe p LEFT JOIN build b ON p.k = b.k",
    "SELECT sum(p.c1), sum(p.c2), sum(p.u) FROM probe p WHERE EXISTS (SELECT 1 FROM build b WHERE b.k = p.k)",
    "SELECT sum(p.c1), sum(p.c2), sum(p.u) FROM probe p WHERE NOT EXISTS (SELECT 1 FROM build b WHERE b.k = p.k)",
    "SELECT sum(p.c1), sum(q.c2), sum(p.d), sum(p.u) FROM probe p JOIN probe q ON p.id * 7919 = q.id * 7919",
]
# Keys without NULLs that are not dense: build rows claim their slots as they come.
CLAIMED = [
    "SELECT p.id, p.d, p.c1, b.* FROM probe p JOIN build b ON p.id * 7919 = b.id * 7919",
    "SELECT p.*, b.d, b.c69 FROM probe p LEFT JOIN build b ON p.id * 7919 = b.id * 7919",
    "SELECT p.l, b.id, b.d, b.c1 FROM probe p JOIN build b ON p.l * 1000003 = b.l * 1000003 WHERE p.id % 50 = 0",  # duplicates
]


def make_column(random, rows, k):
    """Small values, values around 0, far ones, some with NULLs, and some that do not fit."""
    values = random.integers(0, 1000, rows) + (0, -500, -(1 << 40), 1 << 50)[k % 4]
    if k % 9 == 8:
        values[random.integers(0, rows)] = 1 << 62
    return pa.array(values, pa.int64(), mask=random.random(rows) < 0.1 if k % 5 == 4 else None)


def make_table(random, rows):
    keys = random.permutation(ROWS)[:rows] if rows < ROWS else random.integers(0, ROWS, rows)
    began = datetime.datetime(2020, 1, 1)
    table = {"id": numpy.arange(rows), "k": pa.array(keys * SPREAD, pa.int64(), mask=random.random(rows) < 0.02), "l": keys % 97, "u": numpy.uint64(1 << 63) + random.integers(0, 1000, rows).astype(numpy.uint64),
             "t": pa.array([began + datetime.timedelta(seconds=int(s)) for s in random.integers(0, 1000, rows)], pa.timestamp("us")),
             "d": pa.array([decimal.Decimal(int(v)) / 100 for v in random.integers(-10**9, 10**9, rows)], pa.decimal128(30, 2)),
             "s": [f"a text that is longer than twelve bytes: {k % 400}" for k in keys]}
    return pa.table(table | {f"c{k}": make_column(random, rows, k) for k in range(COLUMNS)})


def make_tables(directory):
    random = numpy.random.default_rng(7)
    pq.write_table(make_table(random, ROWS), f"{directory}/probe.parquet", row_group_size=3000)
    pq.write_table(make_table(random, BUILD_ROWS), f"{directory}/build.parquet", row_group_size=500)
    return Tables(directory)


def environment(ranks, large_rows):
    return {**os.environ, "STACHIO_LOCAL_RANKS": str(ranks), "STACHIO_BROADCAST_BYTES": "0", "STACHIO_FEW_GROUPS": "0", "STACHIO_ALONE_BYTES": "0", "STACHIO_LINK_BYTES": "1",
            "STACHIO_DEVICE": "cuda", "STACHIO_CUDA_LIBRARY": EMULATED, "CUDA_EMULATOR_DEVICES": str(ranks), "STACHIO_LARGE_ROWS": large_rows}


def check_query(tables, sql, settings):
    check_equal(tables, DuckDB(tables), sql, "--fallback", "forbid", "--threads", "3", env=settings)


def check_told(tables):
    for large_rows, is_narrow in (("100", True), ("1000000", False)):
        out = ask_stachio(tables, QUERIES[0], "--analyze", env=environment(2, large_rows)).succeeded().out.decode()
        require(("(narrow, " in out) == is_narrow, out[-3000:])


def main():
    if not os.path.exists(EMULATED):
        skip("no emulated GPUs in this build")
    checks = Checks()
    with scratch_directory() as directory:
        tables = make_tables(directory)
        for ranks in (2,) if SANITIZED else (2, 3):
            settings = environment(ranks, "100")
            checks.run_all([(f"{sql}, {ranks} ranks", functools.partial(check_query, tables, sql, settings)) for sql in QUERIES + SUMMED + CLAIMED])
        settings = environment(2, "100") | {"CUDA_EMULATOR_DEFERS": "1"}
        checks.run_all([(f"{sql}, claims put off", functools.partial(check_query, tables, sql, settings)) for sql in CLAIMED])
        with checks.case("--analyze"):
            check_told(tables)
    checks.finish()


if __name__ == "__main__":
    main()
