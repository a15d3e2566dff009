"""Joins and groups by a key in whose order tables are stored: rows meet where they are scanned, and answers are DuckDB's.

Each rank's share of such a table is a range of the key. The tables here have equal keys on both sides of a share's end, NULLs,
negative keys, the largest integer and dates; others only look as if they were in order, or hold few values.
"""

import functools
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import numpy
import pyarrow as pa
import pyarrow.parquet as pq

from check import SANITIZED, Checks, require, scratch_directory
from oracle import DuckDB, Tables, ask_stachio, check_equal

EMULATED = os.path.join(os.environ.get("BUILD_DIR", ""), "libstachio_cuda_emulated.so")
ROWS, GROUP_ROWS = 12000, 500
LARGEST = 2**31 - 1
WAYS = [(2, None), (2, 0), (3, 0), (5, 0)]

QUERIES = [
    "SELECT count(*), sum(t.v * u.w) FROM t JOIN u ON t.k = u.k",
    "SELECT t.k, t.v, u.w FROM t JOIN u ON t.k = u.k WHERE u.w < 30",
    "SELECT t.k, t.v, u.w FROM u JOIN t ON t.k = u.k AND t.v = u.w",
    "SELECT count(*), count(u.k), sum(t.v), sum(u.w) FROM t LEFT JOIN u ON t.k = u.k AND u.w < 500",
    "SELECT count(*), count(t.k), count(u.k), sum(t.v), sum(u.w) FROM t FULL JOIN u ON t.k = u.k",
    "SELECT count(*), count(t.k), sum(u.w) FROM (SELECT * FROM t WHERE v < 100) t RIGHT JOIN u ON t.k = u.k",
    "SELECT count(*), sum(v) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
    "SELECT count(*), sum(v) FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.w > t.v)",
    "SELECT count(*), sum(w) FROM u WHERE k NOT IN (SELECT k FROM t WHERE k > 100)",
    "SELECT count(*), sum(v) FROM t WHERE v IN (SELECT w FROM u WHERE u.k = t.k)",
    "SELECT sum(v), sum(m) FROM (SELECT v, (SELECT max(w) FROM u WHERE u.k = t.k) AS m FROM t)",
    "SELECT count(*), sum(a.v + b.v) FROM t a JOIN t b ON a.k IS NOT DISTINCT FROM b.k AND a.v = b.v",
    "SELECT k, count(*), sum(v), avg(v), min(s), count(DISTINCT v) FROM t GROUP BY k",
    "SELECT k, v % 3 AS r, count(*), max(s) FROM t GROUP BY k, r HAVING count(*) > 1",
    "SELECT d, count(*), sum(v) FROM t GROUP BY d",
    "SELECT DISTINCT k FROM t",
    "SELECT t.d, count(*), sum(u.w) FROM t JOIN u ON t.d = u.d GROUP BY t.d",
    "SELECT a.k, a.n, u.w FROM (SELECT k, count(*) AS n FROM t GROUP BY k) a JOIN u ON a.k = u.k WHERE a.n > 2",
    "SELECT count(*), sum(u.w), sum(m.x) FROM t JOIN m ON t.v = m.x JOIN u ON t.k = u.k",
    "SELECT t.k, count(*), sum(m.x) FROM t JOIN m ON t.v = m.x GROUP BY t.k",
    "SELECT count(*), sum(t.v) FROM t JOIN u ON t.k = u.k JOIN (SELECT k FROM t WHERE v < 20) c ON c.k = u.k",
    "SELECT m.k, count(*), sum(t.v) FROM m JOIN t ON m.k = t.k GROUP BY m.k",
    "SELECT k, n, x FROM (SELECT k, count(*) AS n FROM t GROUP BY k) JOIN (SELECT k, sum(w) AS x FROM u GROUP BY k) USING (k)",
    "SELECT k, sum(v) FROM (SELECT k, v FROM t UNION ALL SELECT k, w FROM u) GROUP BY k",
    "SELECT k FROM t INTERSECT ALL SELECT k FROM u",
    "SELECT f.k, count(*), sum(t.v) FROM f JOIN t ON f.k = t.k GROUP BY f.k",
    "SELECT k, count(*), sum(x) FROM f GROUP BY k",
    "SELECT count(*), sum(t.v) FROM t JOIN u ON t.k = u.k WHERE u.w < 5",
    "SELECT count(*), sum(j.x) FROM i JOIN j ON i.k = j.k",
    "SELECT count(*), sum(j.x), sum(c.x) FROM i JOIN j ON i.k = j.k JOIN (SELECT k, x FROM j WHERE x < 20) c ON c.k = i.k",
    "SELECT i.k, count(*), sum(j.x) FROM i LEFT JOIN j ON i.k = j.k GROUP BY i.k",
    "SELECT count(*), sum(j.x) FROM i JOIN j ON i.k = j.k JOIN t ON t.k = i.k",
    "SELECT count(*), sum(l.v + j.x) FROM l JOIN j ON l.k = j.k",
    "SELECT l.k, count(*), sum(j.x) FROM l LEFT JOIN j ON l.k = j.k GROUP BY l.k",
    "SELECT count(*), sum(l.v) FROM l WHERE NOT EXISTS (SELECT 1 FROM j WHERE j.k = l.k AND j.x > 100)",
]


def with_nulls(random, values, share):
    return pa.array(values, mask=random.random(len(values)) < share)


def write_groups(path, columns, sizes):
    """Row groups of these sizes, so large at the front that some ranks' shares there have no rows."""
    table, at = pa.table(columns), 0
    with pq.ParquetWriter(path, table.schema, compression="none", use_dictionary=False) as writer:
        for size in sizes:
            writer.write_table(table.slice(at, size), row_group_size=size)
            at += size


def make_tables(directory):
    random = numpy.random.default_rng(7)
    day = numpy.datetime64("1999-12-01")
    keys = numpy.sort(random.integers(-2000, 2000, ROWS))
    other = numpy.sort(random.integers(-2500, 1500, ROWS // 3))
    mixed = random.integers(-2000, 2000, ROWS)
    few = numpy.sort(random.integers(0, 3, ROWS))
    narrow = numpy.sort(random.integers(-2000, 2000, 2 * GROUP_ROWS - 1))  # fewer row groups than ranks
    tables = {
        "t": {"k": with_nulls(random, keys, 0.02), "d": (day + keys // 4).astype("datetime64[D]"), "v": random.integers(0, 1000, ROWS),
              "s": [f"text {i % 77}" for i in range(ROWS)]},
        "u": {"k": with_nulls(random, other, 0.02), "d": (day + other // 4).astype("datetime64[D]"), "w": random.integers(0, 1000, ROWS // 3)},
        "m": {"k": mixed, "x": random.integers(0, 300, ROWS)},
        "f": {"k": few, "x": random.integers(0, 300, ROWS)},
        "i": {"k": numpy.append(narrow, LARGEST).astype("int32")},
        "j": {"k": random.choice(numpy.append(narrow, [-5000, LARGEST, LARGEST]), ROWS).astype("int32"), "x": random.integers(0, 300, ROWS)},
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), os.path.join(directory, f"{name}.parquet"), row_group_size=GROUP_ROWS)
    write_groups(os.path.join(directory, "l.parquet"), {"k": pa.array(keys[:5000], pa.int32()), "v": pa.array(range(5000))}, (4000, 1000))
    return Tables(directory)


def settings(ranks, broadcast=0, **more):
    made = {**os.environ, "STACHIO_LOCAL_RANKS": str(ranks), "STACHIO_ALONE_BYTES": "0", **more}
    if broadcast is not None:
        made["STACHIO_BROADCAST_BYTES"] = str(broadcast)
    return made


def explain(tables, sql, ranks):
    return ask_stachio(tables, sql, "--explain", env=settings(ranks)).succeeded().out.decode()


def check_plans(tables):
    """Ranges where a table is in order, and nowhere else; one step of groups."""
    for sql, has_ranges in (("SELECT count(*) FROM t JOIN m ON t.k = m.k", True), ("SELECT count(*) FROM m JOIN t ON t.k = m.k AND m.x = t.v", None),
                            ("SELECT k, count(*) FROM t GROUP BY k", True), ("SELECT d, v, count(*) FROM t GROUP BY d, v", True),
                            ("SELECT k, count(*) FROM m GROUP BY k", False), ("SELECT k, count(*) FROM f GROUP BY k", False),
                            ("SELECT k + 1 AS n, count(*) FROM t GROUP BY n", False), ("SELECT s, count(*) FROM t GROUP BY s", False)):
        text = explain(tables, sql, 3)
        if has_ranges is not None:
            require(("ranges as scanned" in text) == has_ranges, f"{sql}:\n{text}")
    require(explain(tables, "SELECT k, count(*) FROM t GROUP BY k", 2).count("AGGREGATE count") == 1, "groups in one step")


def check_ends(tables):
    """Every rank but the last has an end, and they ascend."""
    for ranks in (2, 5):
        text = explain(tables, "SELECT k, count(*) FROM t GROUP BY k", ranks)
        ends = [int(end) for end in re.search(r"ranges as scanned, to ([-0-9, ]+)", text).group(1).split(", ")]
        require(len(ends) == ranks - 1 and ends == sorted(ends) and -2000 <= ends[0] and ends[-1] < 2000, text)


def check_traffic(tables):
    """Few rows travel, and those that the build side lacks do not leave the scan."""
    run = ask_stachio(tables, "SELECT count(*), sum(t.v) FROM t JOIN u ON t.k = u.k WHERE u.w < 5", "--analyze", env=settings(2)).succeeded()
    text = run.out.decode()
    dropped, seen = map(int, re.search(r"SCAN t: filters of joins dropped (\d+) of (\d+) rows", text).groups())
    require(dropped > seen * 0.9, text)
    sent = [float(mb) for mb in re.findall(r"EXCHANGE HASH: ([0-9.]+) MB sent", text)]
    require(sent and max(sent) < 0.05, text)


def main():
    checks = Checks()
    with scratch_directory() as scratch:
        tables = make_tables(scratch)
        oracle = DuckDB(tables)
        for check in check_plans, check_ends, check_traffic:
            with checks.case(check.__name__):
                check(tables)
        cases = [(f"{ranks} ranks, broadcast up to {broadcast}: {sql}",
                  functools.partial(check_equal, tables, oracle, sql, "--fallback", "forbid", env=settings(ranks, broadcast)))
                 for ranks, broadcast in WAYS for sql in QUERIES]
        if os.path.exists(EMULATED):
            more = {"STACHIO_CUDA_LIBRARY": EMULATED, "CUDA_EMULATOR_DEVICES": "3"}
            cases += [(f"3 emulated GPUs: {sql}",
                       functools.partial(check_equal, tables, oracle, sql, "--fallback", "forbid", "--device", "cuda", env=settings(3, **more)))
                      for sql in (QUERIES[::4] if SANITIZED else QUERIES)]
        checks.run_all(cases)
    checks.finish()


if __name__ == "__main__":
    main()
