"""A query that reads columns several times brings them to the device once, whatever the cache; with --cache off and host the next
query brings them again, and their memory is free. On the emulated device where there is no GPU."""

import functools
import json
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import pyarrow as pa
import pyarrow.parquet as pq

from check import SANITIZED, Checks, require, scratch_directory
from damage import garbled_compression
from device import CUFILE, EMULATED, INFLATE_ALL, need_device
from oracle import DuckDB, Tables, check_equal, difference, run_stachio
from test_cache import LAYOUTS, answers, bytes_of, cached, make_tables, run
from test_gds import emulated_reads
from test_tpch import ORDER, QUERIES

# Both columns, all rows: once, twice, three times.
ONCE = "SELECT sum(v) AS s, max(t) AS t FROM t"
TWICE = "SELECT sum(v) AS s, max(t) AS t FROM t WHERE v > (SELECT avg(v) - length(max(t)) * 100000 FROM t)"
THRICE = TWICE + " AND t <> (SELECT min(t) || sum(v) FROM t WHERE v > -1)"
LINES_THRICE = ("SELECT count(*) AS n FROM lineitem WHERE l_extendedprice > (SELECT avg(l_extendedprice) FROM lineitem) "
                "AND l_extendedprice < (SELECT max(l_extendedprice) FROM lineitem)")
RANGES = ("SELECT (SELECT sum(v) FROM t WHERE v BETWEEN 100 AND 300) AS a, (SELECT max(t) FROM t WHERE v BETWEEN 0 AND 2500) AS b, "
          "(SELECT sum(v) + count(t) FROM t WHERE v BETWEEN 2000 AND 2100) AS c, (SELECT min(t) FROM t WHERE v >= 0) AS d")
TPCH = (2, 11, 17, 18, 20, 21, 22)
WIDE_COLUMNS, WIDE_ROWS, WIDE_LIMIT = 8, 100_000, "14MB"
RANGE_ROWS, PIECE_ROWS, RANGE_ENTRIES = 60_000, 1024, 20_000
NOT_KEPT = ("off", "host")


def check_answers(tables, cache, *options, **environment):
    for sql in (TWICE, THRICE, RANGES):
        wanted = DuckDB(tables).answer(sql)
        for given in answers(run(tables, cache, [sql] * 2, *options, **environment), 2):
            found = difference(wanted, given, "all")
            require(not found, f"{sql}\n{found}")


def check_counts(tables, cache):
    """Where the bytes of each scan came from, for two runs of a statement. (Between columns that are read there are gaps, which are not kept.)"""
    (read, *_), _ = cached(run(tables, cache, [ONCE] * 2, "--analyze"), 2)
    _, (_, size, _) = cached(run(tables, "host", [ONCE] * 2, "--analyze"), 2)
    for sql, n_again in ((ONCE, 0), (TWICE, 1), (THRICE, 2)):
        counts = cached(run(tables, cache, [sql] * 2, "--analyze", "--threads", "1"), 2)
        wanted = [(read, 0, n_again * size), (read, 0, n_again * size) if cache == "off" else (0, size, n_again * size)]
        require(all(abs(n - w) <= 0.01 * size for c, ws in zip(counts, wanted) for n, w in zip(c, ws)), f"{sql}: {counts}, not {wanted}")


def link_bytes(tables, cache, statements, path):
    run(tables, cache, statements, "--trace", path, "--threads", "1").succeeded()
    events = json.loads(pathlib.Path(path).read_text())["traceEvents"]
    return sum(event["args"]["bytes"] for event in events if event["ph"] == "X" and event["name"] == "upload of pinned memory")


def check_link(tables, cache, path):
    once = link_bytes(tables, cache, [ONCE], path)
    require(once > 0, "nothing is copied")
    for statements in ([TWICE], [THRICE], [TWICE, TWICE], [ONCE, THRICE, TWICE]):
        copied = link_bytes(tables, cache, statements, path)
        require(copied == once * len(statements), f"{statements}: {copied} bytes, the columns have {once}")


def check_gds(tables, cache):
    settings = {"STACHIO_CUFILE_LIBRARY": CUFILE, "CUFILE_EMULATOR_TELL": "1"}
    once, twice, again = [emulated_reads(run(tables, cache, statements, "--io", "gds", **settings))
                          for statements in ([ONCE], [TWICE], [TWICE, TWICE])]
    require(once > 0 and twice == once and again == 2 * once, f"reads: {once}, {twice}, {again}")
    check_answers(tables, cache, "--io", "gds", **settings)


def check_tpch(tables, duck, number, *options):
    sql = (QUERIES / f"q{number:02}.sql").read_text()
    check_equal(tables, duck, sql, "--threads", "2", "--fallback", "forbid", *options, order=ORDER.get(number, ()))


def check_little(tables, sql, cache, limit_kb, threads=1):
    """With little memory a query goes through if it does without keeping anything, and answers the same."""
    limit = ["--device-memory-limit", f"{limit_kb}kB", "--threads", threads]
    without, with_reuse = run(tables, cache, [sql], *limit, "--device-cache-size", "1"), run(tables, cache, [sql], *limit)
    require((without.status, without.out) == (with_reuse.status, with_reuse.out), f"{without}\n{with_reuse}")
    require(without.status in (0, 4), str(without))


def peaks_of(run):
    """Of the device's memory, of each statement."""
    return [bytes_of(text) for text in re.findall(r"^Peak memory.* on the GPU ([\d.]+ \w+)", run.succeeded().out.decode(), re.M)]


def check_memory(scratch, cache):
    """Many columns one after another take no more of the device's memory than a few. (With a limit,
    since the second query takes more where there is room, which would hide columns that stay.)"""
    path = os.path.join(scratch, f"wide-{cache}.parquet")
    table = {f"c{c}": pa.array(range(c, WIDE_ROWS + c), pa.int64()) for c in range(WIDE_COLUMNS)}
    pq.write_table(pa.table(table), path, compression="none", use_dictionary=False)
    tables = Tables(globs={"t": path})
    statements = [f"SELECT count(*) AS n FROM t WHERE c{c} >= (SELECT avg(c{c}) FROM t)" for c in range(WIDE_COLUMNS)]
    limit = ("--device-memory-limit", WIDE_LIMIT)
    peaks = peaks_of(run(tables, cache, statements, "--analyze", "--threads", "1", *limit))
    column = WIDE_ROWS * 8
    require(len(peaks) == WIDE_COLUMNS and peaks[0] > column, str(peaks))
    require(peaks[-1] - peaks[1] < column, f"a column has {column} bytes; the device's peak is {peaks}")


def check_ranges(scratch):
    """What page pruning leaves in many pieces takes about as much of the device's memory as all of it, and gives the same:
    one dictionary for all pieces, and pages decompressed once."""
    path = os.path.join(scratch, "ranges.parquet")
    rows = range(RANGE_ROWS)
    pq.write_table(pa.table({"a": pa.array([i // PIECE_ROWS % 2 for i in rows], pa.int32()),
                             "v": pa.array([i * 7919 % RANGE_ENTRIES for i in rows], pa.int64()),
                             "s": [f"a text of some length {i * 7919 % RANGE_ENTRIES}" for i in rows]}), path,
                   max_rows_per_page=PIECE_ROWS, write_page_index=True, dictionary_pagesize_limit=1 << 24, compression="snappy")
    tables = Tables(globs={"t": path})
    sql = "SELECT count(*) AS n, sum(v) AS v, max(s) AS s FROM t WHERE {} = 1"
    pruned, whole = (run(tables, "off", [sql.format(column)], "--threads", "1") for column in ("a", "a + v * 0"))
    require(pruned.succeeded().out == whole.succeeded().out, f"{pruned}\n{whole}")
    pruned, whole = (peaks_of(run(tables, "off", [sql.format(column)], "--threads", "1", "--analyze"))[0] for column in ("a", "a + v * 0"))
    require(pruned < 2 * whole, f"pruned {pruned} bytes, whole {whole}")


def check_damaged(scratch, codec, cache):
    path = garbled_compression(pathlib.Path(scratch, "t.parquet"), codec)
    sql = "SELECT count(*) FROM t WHERE id >= (SELECT avg(id) FROM t)"
    runs = [run_stachio(["-t", f"t={path}", "-c", sql, "--format", "csv", *options])
            for options in (["--cache", cache], ["--device", "cpu"])]
    require(runs[0].status == runs[1].status == 3 and runs[0].error == runs[1].error, f"{runs[0]}\n{runs[1]}")


def layout_cases(scratch, layout):
    name = " ".join(map(str, layout))
    tables = make_tables(os.path.join(scratch, name), layout)
    for cache in NOT_KEPT:
        where = f"{cache}, {name}"
        yield f"counts, {where}", functools.partial(check_counts, tables, cache)
        yield f"link, {where}", functools.partial(check_link, tables, cache, os.path.join(scratch, f"{where}.json"))
        yield f"answers, {where}", functools.partial(check_answers, tables, cache)
        for limit_kb in (300, 600, 1500):
            yield f"{limit_kb} kB, {where}", functools.partial(check_little, tables, THRICE, cache, limit_kb)
    yield f"room for one column, {name}", functools.partial(check_answers, tables, "off", "--device-cache-size", "40KB")
    yield f"three workers, {name}", functools.partial(check_answers, tables, "off", "--threads", "3")


def cases(scratch):
    for layout in (LAYOUTS[1],) if SANITIZED else (LAYOUTS[0], LAYOUTS[1], LAYOUTS[3], LAYOUTS[5]):  # none, snappy, zstd, gzip
        yield from layout_cases(scratch, layout)
    for codec in ("snappy", "zstd", "gzip"):
        for cache in NOT_KEPT:
            folder = os.path.join(scratch, f"{codec}-damaged-{cache}")
            os.makedirs(folder)
            yield f"damaged, {codec}, {cache}", functools.partial(check_damaged, folder, codec, cache)
    yield "many ranges of rows", functools.partial(check_ranges, scratch)
    for cache in NOT_KEPT:
        yield f"memory, {cache}", functools.partial(check_memory, scratch, cache)
        if os.environ["STACHIO_CUDA_LIBRARY"] == EMULATED and os.path.exists(CUFILE):
            yield f"gds, {cache}", functools.partial(check_gds, Tables(os.path.join(scratch, "snappy 1.0 False")), cache)


def tpch_cases(scratch):
    data = os.path.join(scratch, "tpch")
    run_stachio(["tpch", "generate", "--sf", "0.01", "-o", data]).succeeded()
    tables = Tables(data)
    for number in (11, 21) if SANITIZED else TPCH:
        duck = DuckDB(tables)
        for cache in ("off", "host", "device") if number == 21 else NOT_KEPT:
            yield f"TPC-H query {number}, {cache}", functools.partial(check_tpch, tables, duck, number, "--cache", cache)
    for cache in NOT_KEPT:
        for limit_kb in (3500,) if SANITIZED else (3000, 3500, 4000):
            sql = (QUERIES / "q21.sql").read_text()
            yield f"TPC-H query 21, {limit_kb} kB, {cache}", functools.partial(check_little, tables, sql, cache, limit_kb)
    for limit_kb in (2000, 5200):  # a device has 256 streams
        yield f"130 threads, {limit_kb} kB", functools.partial(check_little, tables, LINES_THRICE, "off", limit_kb, 130)


def main():
    need_device()
    os.environ.update(INFLATE_ALL)
    checks = Checks()
    with scratch_directory() as scratch:
        checks.run_all([*cases(scratch), *tpch_cases(scratch)])
    checks.finish()


if __name__ == "__main__":
    main()
