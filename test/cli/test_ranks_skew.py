"""Joins and groups between ranks over skewed keys: equal to DuckDB's, and rows with heavy keys stay where they are.

The tables are random: one key in many rows, Zipf, NULLs, or none of it, in one column or two, of numbers or strings; row
groups that are few, sorted or mixed, so that samples are wrong at times.
"""

import functools
import json
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

RANKS = (2, 3, 5)
SHAPES = ("half", "zipf", "nulls", "two", "uniform", "sorted")
ROWS, KEYS = 20000, 900

QUERIES = [
    "SELECT count(*), sum(p.v * b.w) FROM probe p JOIN build b ON p.k = b.k",
    "SELECT p.k, p.v, b.w FROM probe p JOIN build b ON p.k = b.k WHERE p.v < 40",
    "SELECT p.s, count(*), sum(b.w) FROM probe p JOIN build b ON p.s = b.s GROUP BY p.s",
    "SELECT count(*), sum(p.v), sum(b.w) FROM probe p JOIN build b ON p.k = b.k AND p.l = b.l",
    "SELECT p.k, count(*), count(b.w), sum(b.w) FROM probe p LEFT JOIN build b ON p.k = b.k GROUP BY p.k",
    "SELECT count(*), count(p.k), count(b.k), sum(p.v), sum(b.w) FROM probe p FULL JOIN build b ON p.k = b.k",
    "SELECT count(*), sum(v) FROM probe WHERE EXISTS (SELECT 1 FROM build b WHERE b.k = probe.k)",
    "SELECT count(*), sum(v) FROM probe WHERE NOT EXISTS (SELECT 1 FROM build b WHERE b.k = probe.k AND b.w > probe.v)",
    "SELECT count(*), sum(v) FROM probe WHERE k NOT IN (SELECT k FROM build WHERE k > 5)",
    "SELECT sum(v), sum(m) FROM (SELECT v, (SELECT max(b.w) FROM build b WHERE b.k = probe.k) m FROM probe)",
    "SELECT count(*), sum(v) FROM probe WHERE v IN (SELECT b.w FROM build b WHERE b.k = probe.k)",
    "SELECT count(*), sum(b.w) FROM build b JOIN probe p ON p.k = b.k JOIN build c ON c.l = p.l",
    "SELECT count(*) FROM probe p JOIN probe q ON p.k = q.v AND p.v = 3",
    "SELECT k, count(*), sum(v), count(DISTINCT v), min(s) FROM probe GROUP BY k",
    "SELECT DISTINCT k, l FROM probe",
    "SELECT count(DISTINCT k), count(DISTINCT s) FROM probe",
]


def skewed(random, shape, rows):
    if shape == "zipf":
        weights = numpy.arange(1, KEYS + 1, dtype=float) ** -1.2
        return random.permutation(KEYS)[numpy.searchsorted(numpy.cumsum(weights) / weights.sum(), random.random(rows))]
    keys = random.integers(0, KEYS, rows)
    share = random.random(rows)
    if shape in ("half", "nulls", "sorted"):
        keys[share < 0.5] = 7
    if shape == "two":
        keys[share < 0.3] = KEYS + 5  # not among the build side's keys
        keys[share > 0.8] = 3
    return numpy.sort(keys) if shape == "sorted" else keys


def make_table(random, shape, rows, first_value, null_share):
    keys = skewed(random, shape, rows)
    nulls = random.random(rows) < null_share
    return pa.table({"k": pa.array(keys, pa.int64(), mask=nulls),
                     "s": pa.array([f"a key that is longer than twelve bytes: {k}" for k in keys], mask=nulls),
                     "l": pa.array(keys % 10, pa.int32()),
                     first_value: random.integers(0, 100, rows)})


def make_tables(directory, seed, shape):
    random = numpy.random.default_rng(seed)
    os.mkdir(directory)
    probe = make_table(random, shape, ROWS, "v", 0.4 if shape == "nulls" else 0.01)
    # each key once, or a few of them often
    build = make_table(random, "uniform" if seed % 2 else "half", 500 if seed % 2 else 120, "w", 0.02)
    pq.write_table(probe, f"{directory}/probe.parquet", row_group_size=int(random.choice([700, 3000, ROWS])))
    pq.write_table(build, f"{directory}/build.parquet", row_group_size=int(random.choice([50, 1000])))
    return Tables(directory)


def environment(ranks):
    return {**os.environ, "STACHIO_LOCAL_RANKS": str(ranks), "STACHIO_BROADCAST_BYTES": "0"}


def check_shape(tables, ranks):
    oracle = DuckDB(tables)
    for sql in QUERIES:
        check_equal(tables, oracle, sql, "--fallback", "forbid", "--threads", "2", env=environment(ranks))


def heavy_keys(tables, sql):
    out = ask_stachio(tables, sql, "--analyze", env=environment(3)).succeeded().out.decode()
    return [int(n) for n in re.findall(r"EXCHANGE HASH: .*heavy keys: (\d+)", out)]


def check_told(tables, keys):
    """Both sides' exchanges tell how many keys are heavy."""
    require(heavy_keys(tables, QUERIES[0]) == [keys] * 2 * (keys > 0), f"{heavy_keys(tables, QUERIES[0])} is not {keys}")


def sampled(tables, directory, statements):
    """Of each statement, whether keys are hashed between pipelines: a sample's."""
    path = os.path.join(directory, "trace.json")
    ask_stachio(tables, "; ".join(statements), "--trace", path, env=environment(3)).succeeded()
    with open(path, encoding="utf-8") as file:
        spans = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    pipelines = [span for span in spans if span["cat"] == "pipeline"]

    def is_within(span, others):
        return any(other["ts"] <= span["ts"] <= other["ts"] + other["dur"] and other["tid"] == span["tid"] for other in others)
    hashed = [span for span in spans if span["name"] == "hash" and not is_within(span, pipelines)]
    running = sorted((span for span in spans if span["name"] == "running"), key=lambda span: span["ts"])
    return [any(is_within(span, [statement]) for span in hashed) for statement in running]


def check_remembered(directory):
    """A second query of the same tables takes what the first one's sample has told, but not of other files."""
    os.mkdir(directory)
    random = numpy.random.default_rng(11)
    pq.write_table(make_table(random, "uniform", 500, "w", 0), f"{directory}/build.parquet")
    for name, shape in (("probe", "half"), ("other", "two"), ("even", "uniform")):
        pq.write_table(make_table(random, shape, ROWS, "v", 0), f"{directory}/{name}.parquet", row_group_size=700)
    tables = Tables(directory)
    sql = [QUERIES[0].replace("FROM probe", f"FROM {name}") for name in ("probe", "probe", "other", "even", "probe", "other")]
    keys = [n for s, n in zip(sql, (1, 1, 2, 0, 1, 2)) for _ in range(2 * (n > 0))]
    require(heavy_keys(tables, "; ".join(sql)) == keys, f"{heavy_keys(tables, '; '.join(sql))} is not {keys}")
    by_both = QUERIES[3]  # more columns of a table of which a sample of one is known
    require(heavy_keys(tables, f"{QUERIES[0]}; {by_both}") == [1, 1, *heavy_keys(tables, by_both)], "a sample of other columns")
    require(sampled(tables, directory, [QUERIES[0]] * 3 + [by_both] * 2) == [True, False, False, True, False], "samples that were read")
    oracle = DuckDB(tables)
    for s in sql[:4]:
        answers = ask_stachio(tables, f"{s}; {s}", "--format", "csv", env=environment(3)).succeeded().out.decode().splitlines()
        wanted = ",".join(str(v) for v in oracle.connection.execute(s).fetchone())
        require(answers[1::2] == [wanted] * 2, f"{answers} is not twice {wanted}")


def check_balance(directory):
    """Half of the probe side's rows have one key, and yet the ranks get about as many."""
    os.mkdir(directory)
    random = numpy.random.default_rng(3)
    pq.write_table(make_table(random, "half", ROWS, "v", 0), f"{directory}/probe.parquet", row_group_size=200)
    pq.write_table(make_table(random, "uniform", 500, "w", 0), f"{directory}/build.parquet")
    out = ask_stachio(Tables(directory), QUERIES[0], "--analyze", env=environment(3)).succeeded().out.decode()
    balance = [float(n) for n in re.findall(r"EXCHANGE HASH: .*most/mean ([\d.]+), heavy keys: 1", out)]
    require(len(balance) == 2 and balance[1] < 1.25, out)


def check_filter(directory):
    """Heavy keys' build rows, which every rank has, do not make a range look full that is not: its filter stays."""
    os.mkdir(directory)
    random = numpy.random.default_rng(5)
    keys = random.integers(0, 100, ROWS)
    often = random.random(ROWS) < 0.8
    keys[often] = random.integers(0, 20, ROWS)[often]
    pq.write_table(pa.table({"k": keys, "v": keys}), f"{directory}/probe.parquet")
    built = numpy.concatenate([numpy.arange(59), [99]])
    pq.write_table(pa.table({"k": built, "w": built}), f"{directory}/build.parquet")
    out = ask_stachio(Tables(directory), QUERIES[0], "--analyze", env=environment(3)).succeeded().out.decode()
    require(re.search(r"heavy keys: [1-9]", out) and "JOIN build INNER: filter of all ranks" in out, out)


def main():
    checks = Checks()
    with scratch_directory() as directory:
        cases = []
        for seed in range(2 if SANITIZED else 4):
            for shape in SHAPES:
                tables = make_tables(os.path.join(directory, f"{shape}{seed}"), seed, shape)
                ranks = RANKS[(seed + len(shape)) % len(RANKS)]
                cases.append((f"{shape}, seed {seed}, {ranks} ranks", functools.partial(check_shape, tables, ranks)))
                if seed == 1 and shape in ("half", "two", "uniform"):
                    keys = {"half": 1, "two": 2, "uniform": 0}[shape]
                    cases.append((f"{shape}: {keys} heavy keys", functools.partial(check_told, tables, keys)))
        cases.append(("balance", functools.partial(check_balance, os.path.join(directory, "balance"))))
        cases.append(("remembered", functools.partial(check_remembered, os.path.join(directory, "remembered"))))
        cases.append(("filter", functools.partial(check_filter, os.path.join(directory, "filter"))))
        checks.run_all(cases)
    checks.finish()


if __name__ == "__main__":
    main()
