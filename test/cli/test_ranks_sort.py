"""ORDER BY between ranks: DuckDB's answer in its order, and ties as on one rank, whatever the types and however skewed the keys.

STACHIO_ROOT_SORT_ROWS=0 and STACHIO_FEW_GROUPS=0 make the ranks share out the smallest sorts.
"""

import decimal
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
from device import EMULATED, NCCL
from oracle import Tables, DuckDB, check_equal, query_stachio

IS_CUDA = os.environ.get("STACHIO_DEVICE") == "cuda"
ROWS = 12000
DIRECTIONS = ("", " DESC", " NULLS FIRST", " DESC NULLS FIRST", " DESC NULLS LAST")
# What is compared with the ends of ranges, over columns of `make_table`.
KEYS = ["wide", "few", "heavy", "small", "dec", "big", "f", "real", "s", "d", "t", "flag", "CAST(wide AS HUGEINT) * 1000000000000000", "u", "few + 1",
        "upper(s)", "CASE WHEN few > 1 THEN NULL ELSE wide END", "nothing"]

# Positions of the order's columns, and a query.
QUERIES = [
    ([0], "SELECT wide, s FROM t WHERE id < 0 ORDER BY wide"),
    ([0], "SELECT wide, s FROM t WHERE id = 7 ORDER BY wide"),
    ([0], "SELECT heavy, id FROM t WHERE id > 11700 ORDER BY heavy"),
    ([0, 1], "SELECT few, id FROM t ORDER BY few, id OFFSET 11000"),
    ([0], "SELECT wide, id FROM (SELECT wide, id FROM t ORDER BY wide, id OFFSET 5) ORDER BY wide DESC"),
    ([0, 1], "SELECT few, count(*) FROM (SELECT few FROM t ORDER BY wide, id OFFSET 100) GROUP BY few ORDER BY few, count(*)"),
    ([0, 1], "SELECT a.few, b.id FROM t a JOIN t b ON a.id = b.wide ORDER BY a.few, b.id"),
    ([0], "SELECT s, count(*), min(id) FROM t GROUP BY s ORDER BY s DESC"),
    ([0], "SELECT heavy, id FROM t UNION ALL SELECT few, -id FROM t ORDER BY 1"),
    ([0], "WITH c AS MATERIALIZED (SELECT wide, id FROM t ORDER BY wide, id OFFSET 3) SELECT a.wide, b.id FROM c a JOIN c b ON a.id = b.id ORDER BY 1"),
    ([0], "SELECT heavy FROM t WHERE id IN (SELECT wide FROM t) ORDER BY heavy"),
]


def some_null(random, values, type, share=0.1):
    return pa.array(values, type, mask=random.random(ROWS) < share)


def make_table(random):
    wide = random.integers(-10**6, 10**6, ROWS)
    doubles = random.choice([0.0, -0.0, 1.5, -2.5, float("nan"), float("inf"), float("-inf"), 1e300], ROWS)
    return pa.table({
        "id": pa.array(range(ROWS), pa.int64()),
        "wide": some_null(random, wide, pa.int64()),
        "few": some_null(random, random.integers(0, 5, ROWS), pa.int32()),
        "heavy": some_null(random, numpy.where(random.random(ROWS) < 0.9, 7, random.integers(0, 1000, ROWS)), pa.int64(), 0.01),
        "small": some_null(random, random.integers(-120, 120, ROWS), pa.int8()),
        "dec": some_null(random, [decimal.Decimal(int(x)).scaleb(-2) for x in wide], pa.decimal128(12, 2)),
        "big": some_null(random, [(decimal.Decimal(int(x)) * 10**24).scaleb(-5) for x in wide], pa.decimal128(36, 5)),
        "f": some_null(random, doubles, pa.float64()),
        "real": some_null(random, random.random(ROWS).astype(numpy.float32), pa.float32()),
        "s": some_null(random, [f"{'the same first bytes ' * int(x % 2)}{x % 3000}" for x in wide], pa.string()),
        "d": some_null(random, random.integers(-10000, 10000, ROWS).astype("datetime64[D]"), pa.date32()),
        "t": some_null(random, (wide * 10**9).astype("datetime64[us]"), pa.timestamp("us")),
        "flag": some_null(random, wide % 2 == 0, pa.bool_()),
        "u": some_null(random, wide.astype(numpy.uint64), pa.uint64()),
        "nothing": pa.array([None] * ROWS, pa.int32()),
    })


def make_tables(directory, seed):
    os.mkdir(directory)
    random = numpy.random.default_rng(seed)
    table = make_table(random)
    if seed % 2:
        table = table.sort_by("wide")
    pq.write_table(table, f"{directory}/t.parquet", row_group_size=int(random.choice([150, 700])))
    return Tables(directory)


def environment(ranks, **more):
    return {**os.environ, "STACHIO_LOCAL_RANKS": str(ranks), "STACHIO_ROOT_SORT_ROWS": "0", "STACHIO_FEW_GROUPS": "0", **more}


def answer(tables, sql, ranks, *options, **more):
    return query_stachio(tables, sql, "--fallback", "forbid", "--threads", "2", *options, env=environment(ranks, **more)).succeeded().out


def check_order(tables, sql, order, ties=True, ranks=(2, 3)):
    """By value as DuckDB; rows with equal keys where one rank has them."""
    check_equal(tables, DuckDB(tables), sql, "--fallback", "forbid", order=order, env=environment(ranks[0]))
    one = answer(tables, sql, 1)
    for n in ranks:
        other = answer(tables, sql, n)
        require(sorted(one.splitlines()) == sorted(other.splitlines()) if not ties else one == other, f"{n} ranks: {sql}")


def random_orders(random):
    keys = random.choice(len(KEYS), int(random.integers(1, 4)), replace=False)
    return [(KEYS[k], str(random.choice(DIRECTIONS))) for k in keys]


def check_random(tables, seed, number):
    random = numpy.random.default_rng(seed)
    for _ in range(number):
        orders = random_orders(random)
        selected = ", ".join(f"{key} AS k{i}" for i, (key, _) in enumerate(orders))
        sql = f"SELECT {selected}, id FROM t ORDER BY {', '.join(f'k{i}{direction}' for i, (_, direction) in enumerate(orders))}"
        check_order(tables, sql, list(range(len(orders))), ranks=[(2, 3), (3, 5), (2, 7)][int(random.integers(3))])


def check_each_key(tables):
    for i, key in enumerate(KEYS):
        check_order(tables, f"SELECT {key} AS k, id FROM t ORDER BY k{DIRECTIONS[i % len(DIRECTIONS)]}", [0])


def check_queries(tables):
    for order, sql in QUERIES:
        check_order(tables, sql, order, ties="JOIN" not in sql and "GROUP" not in sql and " IN " not in sql)


def check_ways(tables):
    """However rows travel."""
    sql = "SELECT few, s, id FROM t ORDER BY few DESC, s"
    one = answer(tables, sql, 1)
    for options in (["--overlap", "blocking"], ["--overlap", "combined"], ["--shuffle-compression", "on"], ["--shuffle", "two-level"]):
        require(answer(tables, sql, 4, *options, STACHIO_LOCAL_NODES="2") == one, f"{options}")
    require(answer(tables, sql, 70) == one, "more ranks than ranges")


def balances(tables, sql, **more):
    out = answer(tables, sql, 3, "--analyze", **more).decode()
    require(re.search(r"EXCHANGE GATHER RANGES: ", out), out)
    return [float(n) for n in re.findall(r"EXCHANGE RANGE: .*most/mean ([\d.]+)", out)], out


def check_balance(tables):
    """Ranges have about as many rows each, also where most rows have one key: which are told apart by their batches, of which a
    GPU has one a rank here."""
    for key in ("wide", "s") if IS_CUDA else ("wide", "heavy", "few", "s", "nothing"):
        found, out = balances(tables, f"SELECT {key}, id FROM t ORDER BY {key}")
        require(len(found) == 1 and found[0] < 1.3, out)


def check_few(tables):
    """A small sort is rank 0's."""
    most = ROWS // 8 if IS_CUDA else ROWS
    found, out = balances(tables, "SELECT wide FROM t ORDER BY wide", STACHIO_ROOT_SORT_ROWS=str(most))
    require(not found and "EXCHANGE RANGE: 0.0 MB sent, 0.1 MB received, few rows: all to rank 0" in out, out)
    found, out = balances(tables, "SELECT wide FROM t ORDER BY wide", STACHIO_ROOT_SORT_ROWS=str(most - 1))
    require(len(found) == 1 and "few rows" not in out, out)


def check_written(tables, directory):
    sql, path = "SELECT heavy, s, id FROM t ORDER BY heavy, s", os.path.join(directory, "written.parquet")
    for ranks in (3, 9):
        answer(tables, sql, ranks, "--format", "parquet", "-o", path)
        written = answer(Tables(None, {"w": path}), "SELECT * FROM w", 1)
        require(written == answer(tables, sql, 1), f"as {ranks} ranks have written it")
        os.remove(path)


def check_devices(tables):
    """Ranks on emulated GPUs, by the host's memory and by NCCL."""
    cuda = {"STACHIO_DEVICE": "cuda", "STACHIO_CUDA_LIBRARY": EMULATED, "CUDA_EMULATOR_DEVICES": "3"}
    for order, sql in [([0, 1], "SELECT few, s, id FROM t WHERE id % 5 = 0 ORDER BY few DESC, s"), ([0], "SELECT heavy, big, id FROM t ORDER BY heavy"),
                       ([0, 1], "SELECT f, dec FROM t ORDER BY f, dec NULLS FIRST"), *QUERIES[:3]]:
        one = answer(tables, sql, 1)
        require(answer(tables, sql, 3, **cuda) == one, f"by the host: {sql}")
        if os.path.exists(NCCL):
            require(answer(tables, sql, 3, **cuda, STACHIO_NCCL_LIBRARY=NCCL, STACHIO_LINK_BYTES="1") == one, f"by NCCL: {sql}")


def main():
    checks = Checks()
    with scratch_directory() as directory:
        mixed, ordered = (make_tables(os.path.join(directory, name), seed) for seed, name in enumerate(("mixed", "ordered")))
        cases = [(f"{name}, seed {seed}", functools.partial(check_random, tables, seed, 3 if SANITIZED else 8))
                 for name, tables in (("mixed", mixed), ("ordered", ordered)) for seed in range(2)]
        for check in (check_each_key, check_queries, check_ways, check_balance, check_few):
            cases.append((check.__name__, functools.partial(check, mixed)))
        cases.append(("written", functools.partial(check_written, mixed, directory)))
        if os.path.exists(EMULATED):
            cases.append(("devices", functools.partial(check_devices, mixed)))
        checks.run_all(cases)
    checks.finish()


if __name__ == "__main__":
    main()
