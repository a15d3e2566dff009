"""--memory-limit: what needs more ends with status 4, the operator's name and nothing left behind, and the process stays
near the limit; what fits is answered right. On the CPU: a GPU has a limit of its own."""

import functools
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import duckdb

from check import SANITIZED, Checks, require, scratch_directory
from oracle import TIMEOUT_S, DuckDB, Run, Tables, difference, run_stachio, stachio_command

OUT_OF_MEMORY = 4
MB = 1_000_000
LIMIT_MB = 32
# Above the limit and what the program takes for SELECT 1: footers, plans, thread stacks, what malloc keeps.
ALLOWANCE_MB = 16
ROWS, WIDE_COLUMNS = 1_000_000, 100

# Query -> what stderr must name.
TOO_LARGE = {
    "SELECT count(*), max(a.text), max(b.text) FROM large a JOIN large b ON a.id = b.id": "JOIN build",
    "SELECT count(*), max(b.text) FROM large a LEFT JOIN large b ON a.text = b.text": "JOIN build",
    "SELECT count(*) FROM large WHERE text IN (SELECT text || '' FROM large)": "JOIN build",
    "SELECT count(*) FROM (SELECT id, text, count(*) FROM large GROUP BY id, text)": "AGGREGATE",
    "SELECT count(*) FROM (SELECT DISTINCT id, text FROM large)": "AGGREGATE",
    "SELECT count(*) FROM (SELECT id, text FROM large UNION SELECT id + 5, text FROM large)": "AGGREGATE",
    "SELECT count(*) FROM (SELECT id, text FROM large EXCEPT ALL SELECT id + 5, text FROM large)": "AGGREGATE",
    "SELECT id, text FROM large ORDER BY text DESC": "SORT",
    f"SELECT id, text FROM large ORDER BY text DESC LIMIT {ROWS * 9 // 10}": "TOP_N|SORT",
    f"SELECT id, text FROM large LIMIT {ROWS * 9 // 10}": "LIMIT|RESULT",
    "SELECT id, text FROM large": "RESULT",
    "WITH x AS MATERIALIZED (SELECT id, text FROM large) SELECT count(*) FROM x a, x b WHERE a.text = b.text": "CTE|MATERIALIZE|JOIN build",
}
FITTING = [
    "SELECT g, count(*) AS n, sum(id) AS s FROM large GROUP BY g ORDER BY g",
    "SELECT id, text FROM large ORDER BY id DESC LIMIT 7",
    "SELECT count(*) AS n, sum(a.id) AS s FROM large a JOIN (SELECT DISTINCT g FROM large WHERE g < 10) b ON a.g = b.g",
    "SELECT k, count(*) AS n FROM (SELECT id % 9 AS k FROM large EXCEPT ALL SELECT g FROM large) GROUP BY k ORDER BY k",
    "SELECT count(*) AS n FROM large WHERE id > (SELECT avg(id) FROM large)",
    "SELECT text FROM large WHERE text LIKE '%999999'",
]
# DuckDB's own planning does not fit; both ways of falling back end alike.
TINY_LIMITS = ("1", "10KB", "40KB")

# A process of few pages starts the program, because a forked child counts with its parent's pages until it has begun.
LAUNCHER = """
import os, sys
child = os.fork()
if not child:
    os.execv(sys.argv[2], sys.argv[2:])
_, status, usage = os.wait4(child, 0)
with open(sys.argv[1], "w") as file:
    file.write(str(usage.ru_maxrss * 1024))
sys.exit(os.waitstatus_to_exitcode(status) & 255)
"""


def measure(directory, arguments):
    """The finished run, and the most bytes that it had resident."""
    peak = os.path.join(directory, f"peak-{abs(hash(tuple(arguments)))}")
    command = [sys.executable, "-S", "-E", "-c", LAUNCHER, peak, *stachio_command(), *arguments]
    done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S)
    run = Run(arguments, done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))
    return run, int(pathlib.Path(peak).read_text())


def check_resident(run, peak_bytes, baseline_bytes):
    most = baseline_bytes + (LIMIT_MB + ALLOWANCE_MB) * MB
    require(SANITIZED or peak_bytes <= most, f"{run}\n{peak_bytes // MB} MB resident; allowed are {most // MB}")


def options(tables, threads, limit=f"{LIMIT_MB}MB"):
    return [*tables.options(), "--device", "cpu", "--threads", str(threads), "--memory-limit", limit, "--format", "csv", "--progress", "never"]


def check_too_large(tables, scratch, baseline, sql, named, threads):
    arguments = [*options(tables, threads), "--fallback", "forbid", "-c", sql]
    directory = os.path.join(scratch, f"out-{abs(hash(sql))}-{threads}")
    os.makedirs(directory)
    for more in ([], ["-o", os.path.join(directory, "answer.csv")]):
        run, peak = measure(scratch, arguments + more)
        require(run.status == OUT_OF_MEMORY and not run.out, f"{run}\n{run.out[:100]!r}")
        require(re.search(rf"({named})[^:]*: out of memory: .*--memory-limit", run.error), str(run))
        require(run.error.count("\n") == 1 and not os.listdir(directory), f"{run}\nleft {os.listdir(directory)}")
        check_resident(run, peak, baseline)


def check_fits(tables, scratch, baseline, sql, threads):
    run, peak = measure(scratch, [*options(tables, threads), "--fallback", "forbid", "-c", sql])
    found = difference(DuckDB(tables).answer(sql), run.answer(), "all")
    require(not found and not run.error, f"{run}\n{found}")
    check_resident(run, peak, baseline)


def check_tiny(tables, scratch, limit, fallback):
    sql = "SELECT g, count(*) FROM large a JOIN large b USING (id, g) WHERE a.text LIKE '%1%' GROUP BY g"
    run, _ = measure(scratch, [*options(tables, 2, limit), "--fallback", fallback, "-c", sql])
    require(run.status == OUT_OF_MEMORY and not run.out, str(run))
    require("out of memory: " in run.error and "--memory-limit" in run.error and run.error.count("\n") == 1, str(run))


def check_fallback(tables, scratch):
    """DuckDB as the engine runs out of memory while its rows are fetched."""
    run, _ = measure(scratch, [*options(tables, 2), "-c", "SELECT list(text ORDER BY id DESC) AS x FROM large"])
    require(run.status == OUT_OF_MEMORY and not run.out and "--memory-limit" in run.error, str(run))


def check_workers(tables):
    """As many as the memory is enough for, where nothing is said."""
    for limit, given, wanted in (("30MB", [], 1), ("1MB", [], 1), ("30MB", ["--threads", "3"], 3), ("8GB", [], min(len(os.sched_getaffinity(0)), 8000 * MB // (24 << 20)))):
        command = [*tables.options(), "--device", "cpu", "--memory-limit", limit, "--analyze", *given, "-c", "SELECT count(*) FROM large"]
        run = run_stachio(command).succeeded()
        require(f"stachio on cpu, threads: {wanted}\n" in run.out.decode(), f"{limit} {given}: {run}")


def make_tables(directory):
    os.makedirs(directory)
    connection = duckdb.connect()
    rows = f"SELECT range AS id, range % 1000 AS g, 'some text that is longer than a pointer ' || range AS text FROM range({ROWS})"
    connection.execute(f"COPY ({rows}) TO '{directory}/large.parquet' (ROW_GROUP_SIZE 20000)")
    for codec in ("zstd", "gzip", "brotli", "snappy"):
        columns = ", ".join(f"(range * {i + 3}) % 1009 AS c{i}" for i in range(WIDE_COLUMNS))
        path = f"{directory}/wide_{codec}.parquet"
        connection.execute(f"COPY (SELECT {columns} FROM range(20000)) TO '{path}' (CODEC '{codec}', ROW_GROUP_SIZE 4096)")
    return Tables(directory)


def cases(scratch):
    """Pairs of a name and a function without arguments."""
    tables = make_tables(os.path.join(scratch, "tables"))
    _, baseline = measure(scratch, [*options(tables, 2), "-c", "SELECT 1"])
    for threads in (3,) if SANITIZED else (1, 3):
        for sql, named in TOO_LARGE.items():
            yield f"{sql} with {threads}", functools.partial(check_too_large, tables, scratch, baseline, sql, named, threads)
        # contexts of decompressors are one a worker, not one a column
        wide = [f"SELECT {', '.join(f'sum(c{i}) AS s{i}' for i in range(WIDE_COLUMNS))} FROM wide_{codec}"
                for codec in ("zstd", "gzip", "brotli", "snappy")]
        for sql in FITTING + wide:
            yield f"{sql[:100]} with {threads}", functools.partial(check_fits, tables, scratch, baseline, sql, threads)
    for limit in TINY_LIMITS:
        for fallback in ("allow", "forbid"):
            yield f"limit {limit}, {fallback}", functools.partial(check_tiny, tables, scratch, limit, fallback)
    yield "DuckDB out of memory", lambda: check_fallback(tables, scratch)
    yield "workers", lambda: check_workers(tables)


def main():
    checks = Checks()
    with scratch_directory() as scratch:
        checks.run_all(list(cases(scratch)))
    checks.finish()


if __name__ == "__main__":
    main()
