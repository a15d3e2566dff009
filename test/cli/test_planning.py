"""Planning reads a small file in a table's place (storage/stand_in.h). Nobody is to notice: statements that DuckDB runs find the
table itself, by whatever way they come to it, and a file that changes between statements is planned and read anew."""

import functools
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import pyarrow as pa
import pyarrow.parquet as pq

from check import Checks, require, scratch_directory
from oracle import TIMEOUT_S, Tables, open_pipe, run_stachio, stachio_command

ROWS = 1000
PLANNED = ("SELECT count(*), sum(v), min(v) FROM t", f"{ROWS},{ROWS * (ROWS - 1) // 2},0")
# Statements in the order of one run, with their answers.
SESSIONS = {
    "by DuckDB": [PLANNED, ("SELECT quantile_disc(v, 1.0) FROM t", f"{ROWS - 1}"), PLANNED],
    "table not named": [PLANNED, ("SELECT quantile_disc(v, 1.0) FROM query_table(chr(116))", f"{ROWS - 1}"), PLANNED],
    "another table": [PLANNED, ("SELECT quantile_disc(v, 1.0) FROM s", "9"), PLANNED, ("SELECT sum(v) FROM s JOIN t USING (v)", "45")],
    "view": [PLANNED, ("CREATE VIEW w AS SELECT v FROM t", None), ("SELECT quantile_disc(v, 1.0) FROM w", f"{ROWS - 1}"),
             ("SELECT count(*) FROM w", f"{ROWS}"), PLANNED, ("SELECT max(v) FROM w WHERE v < 500", "499")],
    "macro": [PLANNED, ("CREATE MACRO m() AS TABLE SELECT v FROM t", None), ("SELECT count(*) FROM m()", f"{ROWS}"), PLANNED],
    "catalog": [PLANNED, ("SELECT count(*) FROM duckdb_views() WHERE sql LIKE '%/proc/%'", "0"), PLANNED],
    "beyond the bounds": [(f"SELECT count(*) FROM t WHERE v > {ROWS}", "0"), (f"SELECT count(*) FROM t WHERE v >= {ROWS - 1}", "1"),
                          ("SELECT count(*) FROM t WHERE k IS NULL", f"{ROWS // 10}")],
}


def write(path, first, rows):
    values = range(first, first + rows)
    table = pa.table({"v": pa.array(values, pa.int64()), "k": pa.array([None if v % 10 == 3 else f"text {v}" for v in values])})
    pq.write_table(table, f"{path}.new", row_group_size=64)
    os.replace(f"{path}.new", path)


def check_session(tables, statements):
    commands = [part for sql, _ in statements for part in ("-c", sql)]
    run = run_stachio([*tables.options(), *commands, "--format", "csv", "--progress", "never"])
    lines = [line for line in run.succeeded().out.decode().splitlines() if line and line[0] in "0123456789"]
    wanted = [answer for _, answer in statements if answer is not None]
    require(lines == wanted, f"{lines}, not {wanted}: {run}")


KNOWN = " (the plan is known)"
# Statements of one run, and whether DuckDB's plan of each was used again.
PLANS = {
    "again": [(PLANNED[0], False), (PLANNED[0], True), (f"  -- once more\n{PLANNED[0]} ;", True), (PLANNED[0] + " WHERE v < 5", False)],
    "another one between": [(PLANNED[0], False), ("SELECT count(*) FROM t WHERE k < 'text 3'", False), (PLANNED[0], True)],
    "setting": [("SELECT v FROM t ORDER BY k, v LIMIT 2", False), ("SET default_null_order = 'nulls_first'", False),
                ("SELECT v FROM t ORDER BY k, v LIMIT 2", False), ("SELECT v FROM t ORDER BY k, v LIMIT 2", True)],
    "time": [("SELECT count(*) FROM t WHERE v > epoch(now())", False)] * 2,
    "file": [("SELECT count(*) FROM '{t}'", False)] * 2,
}


def check_known(tables, path, statements, ranks=1):
    commands = [part for sql, _ in statements for part in ("-c", sql.format(t=path))]
    environment = {**os.environ, "STACHIO_ALONE_BYTES": "0", **({"STACHIO_LOCAL_RANKS": str(ranks)} if ranks > 1 else {})}
    run = run_stachio([*tables.options(), *commands, "--analyze", "--progress", "never"], env=environment)
    lines = [line for line in run.succeeded().out.decode().splitlines() if line.startswith("Time ")]
    require([KNOWN in line for line in lines] == [known for _, known in statements], f"{lines}: {run}")


def check_distributed_once(tables, scratch):
    """Rank 0 of three distributes the plan of a statement that comes again once, and of others each."""
    path = os.path.join(scratch, "trace.json")
    statements = [PLANNED[0], PLANNED[0], "SELECT count(*) FROM t WHERE v < 7", PLANNED[0], PLANNED[0]]
    run_stachio([*tables.options(), *(part for sql in statements for part in ("-c", sql)), "--trace", path],
                env={**os.environ, "STACHIO_ALONE_BYTES": "0", "STACHIO_LOCAL_RANKS": "3"}).succeeded()
    names = [event["name"] for event in json.loads(pathlib.Path(path).read_text())["traceEvents"]]
    require((names.count("planning"), names.count("distributing")) == (len(statements), 2), str(names.count("distributing")))


def check_null_order(tables):
    """A setting that a plan depends on, between two runs of one query."""
    sql = "SELECT v FROM t ORDER BY k, v LIMIT 1"
    check_session(tables, [(sql, "0"), (sql, "0"), ("SET default_null_order = 'nulls_first'", None), (sql, "3"), (sql, "3")])


def check_changed(folder, ranks=1):
    """The second statement comes through a pipe, which is opened after the first; of what it asks the old file had nothing. Several
    ranks share out what the file has now."""
    path, script = os.path.join(folder, f"t{ranks}.parquet"), os.path.join(folder, f"script of {ranks}")
    sql = "SELECT count(*), min(k) FROM t WHERE v >= 5000" if ranks == 1 else \
        "SELECT count(*), min(b.k) FROM t a JOIN t b ON a.v = b.v WHERE a.v >= 5000"
    environment = {**os.environ, "STACHIO_ALONE_BYTES": "0", "STACHIO_BROADCAST_BYTES": "0"}
    if ranks > 1:
        environment["STACHIO_LOCAL_RANKS"] = str(ranks)
    write(path, 0, ROWS)
    os.mkfifo(script)
    command = [*stachio_command(), "-t", f"t={path}", "--format", "csv", "-c", sql, "-c", sql, "-f", script]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment) as process:
        with open_pipe(script, process) as pipe:
            write(path, 5000, 100)
            pipe.write(f"{sql}; {sql}")
        out = process.communicate(timeout=TIMEOUT_S)[0].decode()
    require(out.splitlines()[1::2] == ["0,"] * 2 + ["100,text 5000"] * 2, out)


def check_two_tables(folder):
    """Two tables of one file, which is another one before each statement: both look at it in turn."""
    path, asked = os.path.join(folder, "both.parquet"), "SELECT count(*), max(v) FROM a WHERE v >= 5000"
    steps = [(0, f"{asked}; SELECT count(*) FROM b"), (0, "SELECT count(*) FROM b"), (0, asked), (0, "SELECT count(*) FROM b"), (5000, asked)]
    scripts = [os.path.join(folder, f"script {i}") for i in range(len(steps))]
    for script in scripts:
        os.mkfifo(script)
    write(path, 0, ROWS)
    command = [*stachio_command(), "-t", f"a={path}", "-t", f"b={path}", "--format", "csv", *(part for script in scripts for part in ("-f", script))]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        for i, (first, sql) in enumerate(steps):
            with open_pipe(scripts[i], process) as pipe:
                write(path, first, ROWS + i)
                pipe.write(sql)
        out = process.communicate(timeout=TIMEOUT_S)[0].decode()
    require(out.splitlines()[1::2] == ["0,", "1000", "1001", "0,", "1003", "1004,6003"], out)


def main():
    checks = Checks()
    with scratch_directory() as scratch:
        write(f"{scratch}/t.parquet", 0, ROWS)
        write(f"{scratch}/s.parquet", 0, 10)
        tables = Tables(scratch)
        os.makedirs(f"{scratch}/changed")
        cases = [(name, functools.partial(check_session, tables, statements)) for name, statements in SESSIONS.items()]
        cases += [(f"plan: {name}", functools.partial(check_known, tables, f"{scratch}/t.parquet", statements))
                  for name, statements in PLANS.items()]
        cases += [(f"plan of 3 ranks: {name}", functools.partial(check_known, tables, f"{scratch}/t.parquet", PLANS[name], 3))
                  for name in ("again", "another one between", "time")]
        cases.append(("distributed once", functools.partial(check_distributed_once, tables, scratch)))
        cases.append(("null order", functools.partial(check_null_order, tables)))
        cases.append(("two tables", functools.partial(check_two_tables, f"{scratch}/changed")))
        checks.run_all([*cases, ("changed", functools.partial(check_changed, f"{scratch}/changed")),
                        ("changed, 3 ranks", functools.partial(check_changed, f"{scratch}/changed", 3))])
    checks.finish()


if __name__ == "__main__":
    main()
