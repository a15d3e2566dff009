"""Joins between ranks whose probe rows pass a filter of the build side's keys before they are sent: equal to DuckDB's.

The keys are expressions, so that no scan can do what the exchange does. On the CPU, and on emulated GPUs.
"""

import functools
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import numpy
import pyarrow as pa
import pyarrow.parquet as pq

from check import SANITIZED, Checks, require, scratch_directory
from oracle import DuckDB, Tables, ask_stachio, check_equal, run_stachio

HERE = pathlib.Path(__file__).parent
EMULATED = os.path.join(os.environ.get("BUILD_DIR", ""), "libstachio_cuda_emulated.so")
ROWS, BUILD_ROWS, MANY_ROWS = 20000, 3000, 400000

QUERIES = [
    "SELECT count(*), sum(p.v * b.w) FROM probe p JOIN build b ON p.k * 3 = b.k * 3 WHERE b.w < 50",
    "SELECT p.k, p.v, p.s, b.w FROM probe p JOIN build b ON p.k + p.l = b.k + b.l AND p.v < b.w WHERE b.w < 50 AND p.v < 9",
    "SELECT p.s, count(*), sum(b.w) FROM probe p JOIN build b ON upper(p.s) = upper(b.s) WHERE b.w < 30 GROUP BY p.s",
    "SELECT count(*), sum(p.v), sum(b.w) FROM probe p JOIN build b ON p.k * 2 = b.k * 2 AND upper(p.s) = upper(b.s) WHERE b.w < 70",
    "SELECT count(*), sum(v), min(s) FROM probe WHERE EXISTS (SELECT 1 FROM build b WHERE b.k * 3 = probe.k * 3 AND b.w < 50)",
    "SELECT count(*), sum(v) FROM probe WHERE NOT EXISTS (SELECT 1 FROM build b WHERE b.k * 3 = probe.k * 3 AND b.w < 50)",
    "SELECT count(*), count(b.w), sum(b.w) FROM probe p LEFT JOIN (FROM build WHERE w < 50) b ON p.k * 3 = b.k * 3",
    "SELECT count(*), count(b.w), sum(p.v) FROM probe p FULL JOIN (FROM build WHERE w < 50) b ON p.k * 3 = b.k * 3",
    "SELECT count(*), sum(p.v) FROM probe p JOIN build b ON p.k * 3 IS NOT DISTINCT FROM b.k * 3 WHERE b.w < 50",
    "SELECT count(*), sum(p.v) FROM probe p JOIN build b ON p.k * 3 = b.k * 3 WHERE b.w < 0",
    "SELECT count(*), sum(p.v) FROM probe p JOIN build b ON p.k * 3 = b.k * 5 + 1000000 WHERE b.w < 50",
    "SELECT count(*), sum(q.v) FROM probe p JOIN build b ON p.k * 3 = b.k * 3 JOIN build c ON b.w + 1 = c.w + 1 JOIN probe q ON q.k * 5 = c.k * 5 "
    "WHERE b.w < 3 AND c.l = 1 AND p.v < 3 AND q.v < 3",
]
ASKED, IN_ALL = QUERIES[0], "SELECT count(*), sum(p.v) FROM probe p JOIN build b ON p.k % 500 = b.k * 1 WHERE b.s LIKE '%a%'"


def make_table(random, rows, values):
    keys = random.permutation(ROWS)[:rows] if rows <= ROWS else random.integers(0, ROWS, rows)
    nulls = random.random(rows) < 0.02
    return pa.table({"k": pa.array(keys, pa.int64(), mask=nulls), "l": pa.array(keys % 7, pa.int32()),
                     "s": pa.array([f"a key that is longer than twelve bytes: {k % 4000}" for k in keys], mask=nulls),
                     values: random.integers(0, 100, rows)})


def make_tables(directory):
    random = numpy.random.default_rng(5)
    pq.write_table(make_table(random, ROWS, "v"), f"{directory}/probe.parquet", row_group_size=700)
    pq.write_table(make_table(random, BUILD_ROWS, "w"), f"{directory}/build.parquet", row_group_size=170)
    return Tables(directory)


def make_many(directory):
    """Probe rows enough to know whether a filter drops any, and all keys that they have, once."""
    os.mkdir(directory)
    ids = numpy.arange(MANY_ROWS)
    pq.write_table(pa.table({"k": ids, "v": ids % 10}), f"{directory}/probe.parquet", row_group_size=20000)
    pq.write_table(pa.table({"k": numpy.arange(500), "s": [f"key a {k}" for k in range(500)]}), f"{directory}/build.parquet", row_group_size=50)
    return Tables(directory)


def environment(ranks, rows="0", devices=0):
    settings = {**os.environ, "STACHIO_LOCAL_RANKS": str(ranks), "STACHIO_BROADCAST_BYTES": "0", "STACHIO_FILTER_ROWS": rows,
                "STACHIO_ALONE_BYTES": "0"}
    if devices:
        settings |= {"STACHIO_DEVICE": "cuda", "STACHIO_CUDA_LIBRARY": EMULATED, "CUDA_EMULATOR_DEVICES": str(devices),
                     "STACHIO_LARGE_ROWS": "100", "STACHIO_LINK_BYTES": "1"}
    return settings


def check_query(tables, sql, settings, *options):
    check_equal(tables, DuckDB(tables), sql, "--fallback", "forbid", "--threads", "3", *options, env=settings)


def filters(tables, sql, settings):
    """Of each exchange that filters: how many rows of 100 passed rank 0's."""
    out = ask_stachio(tables, sql, "--analyze", env=settings).succeeded().out.decode()
    return [int(passed) for passed in re.findall(r"EXCHANGE HASH: .*, filter of [\d.]+ MB: (\d+) % of \d+ rows passed", out)]


def check_told(tables, settings):
    """Of 20,000 keys the build side has 3,000, half of which are wanted."""
    passed = filters(tables, ASKED, settings)
    require(len(passed) == 1 and 4 <= passed[0] <= 14, f"{passed}")


def check_without(tables):
    for sql, settings in ((ASKED, environment(2, "-1")), (ASKED, environment(2, "3000")), (QUERIES[6], environment(2)),
                          (ASKED.replace("WHERE b.w < 50", ""), environment(2))):
        require(filters(tables, sql, settings) == [], f"{sql}: a filter")


def check_given_up(tables, settings):
    """A filter that all rows pass is not asked to the end (a GPU has all in one batch), nor made again for the next query of the tables."""
    out = run_stachio([*tables.options(), "-c", "; ".join([IN_ALL] * 3), "--analyze", "--threads", "2"], env=settings).succeeded().out.decode()
    asked = re.findall(r"filter of [\d.]+ MB: (\d+) % of (\d+) rows passed", out)
    most = MANY_ROWS / 2 if os.environ.get("STACHIO_DEVICE") == "cuda" else MANY_ROWS / 2 / 1.2
    require(len(asked) == 1 and asked[0][0] == "100" and int(asked[0][1]) <= most, f"{asked}: {out}")


def check_random(ranks):
    settings = {**environment(ranks), "RANDOM_QUERIES": "30" if SANITIZED else "100", "RANDOM_SEED": str(100 + ranks)}
    done = subprocess.run([sys.executable, HERE / "test_random.py"], env=settings, capture_output=True, text=True)
    require(done.returncode == 0, done.stdout[-4000:] + done.stderr)


def main():
    checks = Checks()
    with scratch_directory() as directory:
        tables = make_tables(directory)
        many = make_many(os.path.join(directory, "many"))
        # two and four ranks' parts of the hashes are digits, three ranks' are runs of them
        ways = [(f"{ranks} ranks", environment(ranks)) for ranks in (2, 3, 5)]
        if os.path.exists(EMULATED):
            ways += [(f"{ranks} ranks on emulated GPUs", environment(ranks, devices=ranks)) for ranks in (2, 3, 4)]
        for way, settings in ways:
            checks.run_all([(f"{sql}, {way}", functools.partial(check_query, tables, sql, settings)) for sql in QUERIES])
            with checks.case(f"--analyze, {way}"):
                check_told(tables, settings)
        for options in (("--overlap", "combined"), ("--overlap", "blocking"), ("--shuffle", "two-level")):
            settings = environment(5) | {"STACHIO_LOCAL_NODES": "2"}
            checks.run_all([(f"{sql}, {' '.join(options)}", functools.partial(check_query, tables, sql, settings, *options)) for sql in QUERIES[:4]])
        with checks.case("no filter"):
            check_without(tables)
        with checks.case("a filter that drops nothing"):
            check_given_up(many, environment(2))
        for ranks in (2, 3):
            with checks.case(f"random queries, {ranks} ranks"):
                check_random(ranks)
    checks.finish()


if __name__ == "__main__":
    main()
