"""Ranks that are threads of one process answer as one does: TPC-H, random queries, faults, files.

STACHIO_LOCAL_RANKS gives their number; STACHIO_BROADCAST_BYTES says up to which size a join's build side is sent to all
ranks: with 0 every join is repartitioned.
"""

import functools
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from check import SANITIZED, Checks, require, scratch_directory
from damage import replace_at
from oracle import DuckDB, Tables, ask_stachio, check_equal, run_stachio

HERE = pathlib.Path(__file__).parent
ROW_GROUP_ROWS = 2048
IS_CUDA = os.environ.get("STACHIO_DEVICE") == "cuda"
WAYS = [(2, None), (3, None), (3, 0), (5, 20000)]
GROUPS, GROUP_ROWS = 12, 1000

# Compared with DuckDB, order included.
ORDERED = [
    "SELECT id FROM numbers",
    "SELECT id FROM numbers LIMIT 7 OFFSET 5995",
    "SELECT id FROM numbers UNION ALL SELECT -id FROM numbers",
    "SELECT id % 10 AS k, id FROM numbers ORDER BY k DESC, id LIMIT 20 OFFSET 3",
    "SELECT id % 10 AS k, count(*), sum(id), avg(id), min(text), count(DISTINCT id % 100) FROM numbers GROUP BY k ORDER BY k",
    "SELECT count(DISTINCT id % 100), sum(id), first(7) FROM numbers",
    "SELECT count(DISTINCT id % 100), sum(DISTINCT id % 7), avg(id) FROM numbers",
    "SELECT count(DISTINCT id % 100), sum(id), avg(CAST(id AS DOUBLE)) FROM numbers WHERE id < 0",
    "SELECT a.id, b.id FROM numbers a FULL JOIN few b ON a.id = b.id ORDER BY ALL LIMIT 3000 OFFSET 10500",
    "SELECT count(*) FROM numbers a, few b WHERE a.id < b.id",
    "SELECT id, id IN (SELECT CASE WHEN id > 3 THEN id END FROM few) FROM numbers ORDER BY id LIMIT 10",
    "SELECT id FROM few WHERE id NOT IN (SELECT id FROM numbers) ORDER BY id",
    "SELECT id, (SELECT max(b.id) FROM numbers b WHERE b.id % 50 = a.id) FROM few a ORDER BY id",
    "SELECT x, count(*) FROM (SELECT id % 9 AS x FROM numbers EXCEPT ALL SELECT id % 12 FROM numbers) GROUP BY x ORDER BY x",
    "WITH c AS MATERIALIZED (SELECT id % 100 AS k, count(*) AS n FROM numbers GROUP BY k) SELECT a.k, b.n FROM c a JOIN c b ON a.k = b.k "
    "WHERE a.k > (SELECT avg(k) FROM c) ORDER BY 1",
    "SELECT k, n FROM (VALUES (1, 'a'), (2, 'b')) v(k, n) JOIN numbers ON k = id ORDER BY k",
    "SELECT n, count(id) FROM (VALUES (1, 'a'), (-2, 'b')) v(k, n) LEFT JOIN numbers ON k = id GROUP BY n ORDER BY n",
]


PAIR_JOINS = [("", "m.a = f.a AND m.b = f.b"), ("SEMI", "m.b = f.b AND m.a = f.a"), ("RIGHT", "m.a = f.a AND m.b = f.b"),
              ("LEFT", "m.a = f.a AND m.b = f.b"), ("", "m.a IS NOT DISTINCT FROM f.a AND m.b = f.b"),
              ("", "m.a = f.a AND m.b = f.b AND m.v = f.v"), ("", "m.a = f.a AND m.a = f.v AND m.b = f.b")]


def environment(ranks, broadcast=None, hosts=1):
    settings = {**os.environ, "STACHIO_LOCAL_RANKS": str(ranks), "STACHIO_LOCAL_NODES": str(hosts)}
    if broadcast is not None:
        settings["STACHIO_BROADCAST_BYTES"] = str(broadcast)
    if broadcast == 0:
        settings["STACHIO_FEW_GROUPS"] = "0"
    return settings


def make_tpch(directory):
    """Several row groups a table, as ranks share these out."""
    whole, data = os.path.join(directory, "whole"), os.path.join(directory, "tpch")
    run_stachio(["tpch", "generate", "--sf", "0.01", "-o", whole]).succeeded()
    os.mkdir(data)
    connection = duckdb.connect()
    for name in os.listdir(whole):
        connection.execute(f"COPY (FROM '{whole}/{name}') TO '{data}/{name}' (ROW_GROUP_SIZE {ROW_GROUP_ROWS})")
    return data


def make_numbers(path, rows):
    """Of each id one, in order, and as `mixed` in none, so that rows have to travel where ranks join by it."""
    table = pa.table({"id": pa.array(range(rows), pa.int64()), "text": [f"some text of row {i}" for i in range(rows)],
                      "mixed": pa.array([i * 7919 % rows for i in range(rows)], pa.int64())})
    pq.write_table(table, path, row_group_size=GROUP_ROWS, compression="none", use_dictionary=False)


def check_tpch(data, ranks, broadcast, *options, hosts=1):
    run_stachio(["tpch", "run", "-d", data, "--compare", "duckdb", "--fallback", "forbid", "--threads", "2", *options],
                env=environment(ranks, broadcast, hosts)).succeeded()


def check_ordered(tables, sql, ranks, broadcast, *options):
    check_equal(tables, DuckDB(tables), sql, "--fallback", "forbid", *options, order="all", env=environment(ranks, broadcast))


def check_averages(tables):
    """Of every kind that is divided in a way of its own: to the last digit as on one rank."""
    kinds = ", ".join(f"avg(CAST((id * 37 % 9973) / 1000.0 AS {kind}))" for kind in ("SMALLINT", "INTEGER", "HUGEINT", "DECIMAL(4, 1)", "DECIMAL(9, 3)",
                                                                   "DECIMAL(30, 5)"))
    for sql in (f"SELECT id * id % 991 AS k, {kinds} FROM numbers GROUP BY k ORDER BY k", f"SELECT {kinds} FROM numbers"):
        one = ask_stachio(tables, sql, "--fallback", "forbid").succeeded().out
        for ranks in (2, 3):
            run = ask_stachio(tables, sql, "--fallback", "forbid", env=environment(ranks)).succeeded()
            require(run.out == one, f"{ranks} ranks: {sql}")


def check_random(ranks, broadcast, **more):
    settings = {**environment(ranks, broadcast), "RANDOM_QUERIES": "30" if SANITIZED else "200", "RANDOM_SEED": str(ranks), **more}
    done = subprocess.run([sys.executable, HERE / "test_random.py"], env=settings, capture_output=True, text=True)
    require(done.returncode == 0, done.stdout[-4000:] + done.stderr)


def check_damage(tables, path, group):
    """Whichever rank it is that reads the damaged row group, the query ends with its error, and prints nothing."""
    offset = pq.read_metadata(path).row_group(group).column(0).data_page_offset
    damaged = replace_at(pathlib.Path(path), offset, b"\xff" * 8)
    run = ask_stachio(Tables(None, {"damaged": str(damaged)}), "SELECT a.id FROM damaged a JOIN damaged b ON a.id = b.id + 1",
                        "--fallback", "forbid", env=environment(3, 0))
    require(run.status == 3 and not run.out, str(run))
    require(f"row group {group}" in run.error and str(path) in run.error, str(run))
    require(group < GROUPS // 2 or "rank 2" in run.error, str(run))


def check_failing(tables, sql, *options, status):
    run = ask_stachio(tables, sql, *options, env=environment(3))
    require(run.status == status and run.error and not run.out, str(run))


def check_written(tables, directory):
    path = os.path.join(directory, "written.parquet")
    sql = "SELECT id, text FROM numbers WHERE id % 3 > 0"
    run_stachio([*tables.options(), "-c", sql, "--format", "parquet", "-o", path], env=environment(3)).succeeded()
    require(pq.read_table(path).to_pylist() == [{"id": i, "text": f"some text of row {i}"} for i in range(GROUPS * GROUP_ROWS) if i % 3],
            "another table was written")


def check_analyze(tables):
    out = ask_stachio(tables, "SELECT id % 7, count(*) FROM numbers GROUP BY 1", "--analyze", env=environment(2)).succeeded().out.decode()
    require("EXCHANGE HASH: " in out and "MB sent" in out and "EXCHANGE GATHER: " in out, out)


def check_few_groups(tables):
    """Few groups are rank 0's, and nothing is sent behind them."""
    most = 3 if IS_CUDA else 24
    for sql, behind in (("SELECT id % 8 AS k, count(*) FROM numbers GROUP BY k ORDER BY k", ("RANGE", "GATHER RANGES")),
                        ("SELECT id % 8 AS k, count(*) FROM numbers GROUP BY k", ("GATHER",)),
                        ("SELECT id % 8 AS k, count(*) FROM numbers GROUP BY k HAVING count(*) > 10 ORDER BY k DESC LIMIT 3", ("GATHER",))):
        for few, are_sent in ((most, False), (most - 1, True)):
            environ = environment(3) | {"STACHIO_FEW_GROUPS": str(few)}
            check_equal(tables, DuckDB(tables), sql, "--fallback", "forbid", order=[0] if "ORDER" in sql else (), env=environ)
            out = ask_stachio(tables, sql, "--threads", "1", "--analyze", env=environ).succeeded().out.decode()
            require(("few rows: all to rank 0" in re.search(r"EXCHANGE HASH: .*", out)[0]) != are_sent, out)
            taken = [re.search(rf"EXCHANGE {kind}: .* (\d+) +\d+ ", out) for kind in behind]
            require(all(taken) and (are_sent or all("few rows" not in line[0] for line in taken)), out)


def check_filter(tables):
    """Rows without a partner on any rank are dropped by the scan: as many as there are, but for a few that the filter lets pass."""
    sql = "SELECT count(*) FROM numbers a JOIN (SELECT id * 60 AS id FROM numbers WHERE id < 200) b ON a.mixed = b.id"
    run = ask_stachio(tables, sql, "--fallback", "forbid", env=environment(3, 0)).succeeded()
    require("200" in run.out.decode(), str(run))
    out = ask_stachio(tables, sql, "--analyze", env=environment(3, 0)).succeeded().out.decode()
    require("filter of all ranks" in out, out)
    dropped, looked_at = map(int, re.search(r"SCAN numbers: filters of joins dropped (\d+) of (\d+) rows", out).groups())
    require(0.8 * looked_at < dropped < looked_at, out)


def make_pairs(path, rows, step, group):
    """Two keys, NULL now and then; one by one both tables' keys have the same values."""
    ids = range(0, rows * step, step)
    pq.write_table(pa.table({"a": pa.array([None if i % 29 == 0 else i % 100 for i in ids], pa.int64()),
                             "b": pa.array([None if i % 31 == 0 else f"text of {i // 100 % 50}" for i in ids]),
                             "v": pa.array(list(ids), pa.int64())}), path, row_group_size=group)


def check_pair_filter(directory, ranks, broadcast):
    """A filter of two keys together drops what one key's could not; NULL in either has no partner, unless joined by IS NOT DISTINCT FROM."""
    tables = Tables(directory)
    for kind, keys in PAIR_JOINS:
        values = "sum(m.v)" if kind == "SEMI" else "sum(m.v), sum(f.v)"
        check_equal(tables, DuckDB(tables), f"SELECT count(*), {values} FROM many m {kind} JOIN pairs f ON {keys}",
                    "--fallback", "forbid", env=environment(ranks, broadcast))
    out = ask_stachio(tables, "SELECT count(*), sum(m.v) FROM many m JOIN pairs f ON m.a = f.a AND m.b = f.b", "--analyze",
                        env=environment(ranks, broadcast)).succeeded().out.decode()
    require(("filter of all ranks" if ranks > 1 and broadcast == 0 else "filter of all keys") in out, out)
    dropped, looked_at = map(int, re.search(r"SCAN many: filters of joins dropped (\d+) of (\d+) rows", out).groups())
    require(0.8 * looked_at < dropped < looked_at, out)


def check_packed(tables):
    """Packed frames are fewer bytes; off, and within a host by default, they go as they are. (A GPU packs by the link's
    pace.)"""
    is_cuda = os.environ.get("STACHIO_DEVICE") == "cuda"
    sql = "SELECT count(*) FROM numbers a JOIN numbers b ON a.mixed = b.mixed AND a.text = b.text"
    for mode, packed in [("on", True), ("off", False)] + ([] if is_cuda else [("auto", False)]):
        out = ask_stachio(tables, sql, "--analyze", "--shuffle-compression", mode, env=environment(2, 0)).succeeded().out.decode()
        require(("MB sent (packed, " in out) == packed, out)


def main():
    checks = Checks()
    with scratch_directory() as directory:
        data = make_tpch(directory)
        plain = os.path.join(directory, "plain")
        os.mkdir(plain)
        make_numbers(os.path.join(plain, "numbers.parquet"), GROUPS * GROUP_ROWS)
        make_numbers(os.path.join(plain, "few.parquet"), 40)
        tables = Tables(plain)
        for ranks, broadcast in WAYS:
            way = f"{ranks} ranks, broadcast up to {broadcast} bytes"
            with checks.case(f"TPC-H, {way}"):
                check_tpch(data, ranks, broadcast)
            with checks.case(f"random queries, {way}"):
                check_random(ranks, broadcast)
        for broadcast in (0, 20000):
            with checks.case(f"random queries of files of each rank, a heavy key, broadcast up to {broadcast} bytes"):
                check_random(3, broadcast, RANDOM_RANK_FILES="3", RANDOM_SEED=str(7 + broadcast))
        for overlap in ("combined", "io", "blocking"):
            with checks.case(f"TPC-H, 3 ranks, overlap {overlap}"):
                check_tpch(data, 3, 0, "--overlap", overlap)
        with checks.case("TPC-H, packed"):
            check_tpch(data, 3, 0, "--shuffle-compression", "on")
        for shuffle in ("one-level", "two-level"):
            with checks.case(f"TPC-H, two hosts, {shuffle}"):
                check_tpch(data, 5, 0, "--shuffle", shuffle, hosts=2)
        with checks.case("packing"):
            check_packed(tables)
        checks.run_all([(f"{sql}, {ranks} ranks, broadcast up to {broadcast} bytes", functools.partial(check_ordered, tables, sql, ranks, broadcast))
                        for sql in ORDERED for ranks, broadcast in WAYS[1:3]])
        checks.run_all([(f"{sql}, packed", functools.partial(check_ordered, tables, sql, 3, 0, "--shuffle-compression", "on")) for sql in ORDERED])
        for group in (0, 5, GROUPS - 1):
            path = os.path.join(directory, f"damaged{group}.parquet")
            make_numbers(path, GROUPS * GROUP_ROWS)
            with checks.case(f"row group {group} is damaged"):
                check_damage(tables, path, group)
        with checks.case("averages"):
            check_averages(tables)
        with checks.case("an error while running"):
            check_failing(tables, "SELECT CAST(text AS INTEGER) FROM numbers WHERE id = 11999", "--fallback", "forbid", status=1)
        with checks.case("a query that is wrong"):
            check_failing(tables, "SELECT nothing FROM numbers", status=1)
        with checks.case("too little memory"):
            check_failing(tables, "SELECT a.text, count(*) FROM numbers a, few b GROUP BY a.text, b.id", "--memory-limit", "4MB", status=4)
        with checks.case("Parquet as the answer"):
            check_written(tables, directory)
        with checks.case("--analyze"):
            check_analyze(tables)
        with checks.case("few groups"):
            check_few_groups(tables)
        with checks.case("a filter of all ranks"):
            check_filter(tables)
        pairs = os.path.join(directory, "pairs")
        os.mkdir(pairs)
        make_pairs(os.path.join(pairs, "many.parquet"), 20000, 1, 1000)
        make_pairs(os.path.join(pairs, "pairs.parquet"), 40, 113, 7)
        for ranks, broadcast in [(1, None), (2, None), (2, 0), (3, 0)]:
            with checks.case(f"a filter of two keys, {ranks} ranks, broadcast up to {broadcast} bytes"):
                check_pair_filter(pairs, ranks, broadcast)
        with checks.case("DuckDB takes over"):
            run = ask_stachio(tables, "SELECT id, row_number() OVER (ORDER BY id) FROM few", env=environment(2)).succeeded()
            require("WINDOW" in run.error and len(run.answer().rows) == 40, str(run))
    checks.finish()


if __name__ == "__main__":
    main()
