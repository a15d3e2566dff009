"""What execution owes beyond right rows: their order, an end when enough rows are there, bounded memory, and no error
that a condition in front rules out."""

import functools
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import duckdb

from check import SANITIZED, Checks, require, scratch_directory
from oracle import DuckDB, Tables, ask_stachio, difference, run_stachio

MOST = 2**63 - 1
OUTER_ROWS = 200 if SANITIZED else 3000
TABLES = {
    # s is a number where ok; several row groups, so that what the first ones cost and drop is known at the others
    "steps": "SELECT i, i % 2 = 0 AS ok, i % 7 AS k, CASE WHEN i % 2 = 0 THEN (i % 50)::VARCHAR ELSE 'x' END AS s "
             "FROM range(60000) r(i)",
    "few": "SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (3, 'c'), (NULL, 'd')) v(k, v)",
    "high": "SELECT 9223372036854775808::UBIGINT + i::UBIGINT AS u FROM range(20000) r(i)",
    "low": "SELECT i::UBIGINT AS u FROM range(20000) r(i)",
    "none": "SELECT 1 AS k, 'x' AS v WHERE false",
}
ROW_GROUP_ROWS = 4096

# Compared with DuckDB's answers, order included.
ORDERED = [
    "SELECT i FROM steps UNION ALL SELECT -i FROM steps UNION ALL SELECT k FROM few",
    "SELECT i FROM (SELECT i FROM steps UNION ALL SELECT -i FROM steps) LIMIT 10 OFFSET 59995",
    f"SELECT k, v FROM few LIMIT {MOST} OFFSET 1",
    f"SELECT k, v FROM few ORDER BY v LIMIT {MOST} OFFSET 1",
    f"SELECT k, v FROM few ORDER BY v LIMIT {MOST} OFFSET {MOST}",
    f"SELECT count(*) FROM (SELECT i FROM steps UNION ALL SELECT k FROM few LIMIT {MOST} OFFSET 3)",
    "SELECT count(*) FROM steps WHERE k <> 3 AND ok AND CAST(s AS INTEGER) >= 0",
    "SELECT count(*) FROM steps WHERE ok AND CAST(s AS INTEGER) > 20 AND i % 3 = 0",
    "SELECT a.u FROM high a JOIN (SELECT u FROM high LIMIT 5) b ON a.u = b.u ORDER BY 1",
    "SELECT count(*) FROM high a JOIN (SELECT u FROM low UNION ALL SELECT u FROM high) b ON a.u = b.u",
    "SELECT count(*) FROM (SELECT a.i FROM steps a RIGHT JOIN few b ON a.i = b.k LIMIT 100)",
    "SELECT count(*) FROM (SELECT a.i, c.i FROM steps a FULL JOIN few b ON a.i = b.k, steps c LIMIT 100000)",
    "SELECT k, count(*) FROM (SELECT k FROM steps EXCEPT ALL SELECT i FROM steps) GROUP BY k ORDER BY k",
    "SELECT s, k, count(*) FROM (SELECT s, k FROM steps EXCEPT ALL SELECT s, k FROM steps WHERE i % 3 > 0) GROUP BY s, k ORDER BY s, k",
    "SELECT s, count(*) FROM (SELECT s FROM steps WHERE k < 5 INTERSECT ALL SELECT s FROM steps WHERE i % 11 > 0) GROUP BY s ORDER BY s",
    "SELECT r, count(*) FROM (SELECT i * i // 1000000 AS r FROM steps INTERSECT ALL SELECT i % 900 FROM steps) GROUP BY r ORDER BY r",
    "SELECT count(*) FROM (SELECT k, ok FROM steps EXCEPT ALL SELECT k, ok FROM steps WHERE i < 9 LIMIT 50007)",
]

# No row of a build side has a text: all answers are the same, also in memory that others have used.
PADDED = "(SELECT n.v, few.k FROM few LEFT JOIN none n ON n.k = few.k)"
ALL_NULL = [
    f"SELECT x.v, count(*) FROM steps JOIN {PADDED} x ON x.k = steps.i GROUP BY 1",
    f"SELECT count(*), count(DISTINCT x.v), max(x.v) FROM steps JOIN {PADDED} x ON x.k = steps.i WHERE x.v LIKE 'a%' IS NULL",
]
N_TIMES = 8

# Rows that come very often: batches of the usual size, not one for each copy.
REPEATED = "SELECT k, ok FROM steps EXCEPT ALL SELECT k, ok FROM steps WHERE i < 60"
MOST_BATCHES = 64

# Enough with little memory, and soon.
BOUNDED = {
    "SELECT count(*) AS n FROM (SELECT a.i FROM steps a, steps b, steps c LIMIT 1000)": "1000",
    "SELECT count(*) AS n FROM (SELECT a.i FROM steps a LEFT JOIN steps b ON a.i < b.i + 70000 LIMIT 1000 OFFSET 500)": "1000",
    f"SELECT count(*) AS n FROM (SELECT * FROM steps LIMIT {OUTER_ROWS}) a LEFT JOIN steps b ON a.i <> b.i": f"{OUTER_ROWS * 59999}",
    f"SELECT count(*) AS n FROM (SELECT * FROM steps LIMIT {OUTER_ROWS}) a WHERE EXISTS (SELECT 1 FROM steps b WHERE a.i <> b.i)": f"{OUTER_ROWS}",
}


def make_tables(directory):
    connection = duckdb.connect()
    for name, sql in TABLES.items():
        path = os.path.join(directory, f"{name}.parquet")
        connection.execute(f"COPY ({sql}) TO '{path}' (ROW_GROUP_SIZE {ROW_GROUP_ROWS})")
    return Tables(directory)


def check_answer(tables, sql, threads):
    run = ask_stachio(tables, sql, "--threads", threads, "--fallback", "forbid")
    found = difference(DuckDB(tables).answer(sql), run.answer(), "all")
    require(not found, f"{run}\n{found}")


def check_bounded(tables, sql, expected, threads):
    run = ask_stachio(tables, sql, "--threads", threads, "--memory-limit", "200MB", "--fallback", "forbid")
    require(run.succeeded().out.decode().split() == ["n", expected], str(run))


def check_repeated(tables):
    out = ask_stachio(tables, REPEATED, "--analyze", "--fallback", "forbid").succeeded().out.decode()
    rows, batches = re.search(r"REPEAT +([\d,]+) +([\d,]+)", out).groups()
    require(rows == "59,940" and int(batches.replace(",", "")) <= MOST_BATCHES, out)


def check_all_null(tables, sql, threads):
    statements = [part for _ in range(N_TIMES) for part in ("-c", sql)]
    run = run_stachio([*tables.options(), *statements, "--format", "csv", "--threads", threads, "--fallback", "forbid"])
    answer = run_stachio([*tables.options(), "-c", sql, "--format", "csv", "--fallback", "forbid"])
    found = difference(DuckDB(tables).answer(sql), answer.answer(), "all")
    require(not found, f"{answer}\n{found}")
    require(run.succeeded().out == answer.out * N_TIMES, str(run))


def main():
    checks = Checks()
    with scratch_directory() as scratch:
        tables = make_tables(scratch)
        jobs = [(f"{sql} with {threads} threads", functools.partial(check_answer, tables, sql, threads))
                for sql in ORDERED for threads in (1, 4)]
        jobs += [(f"{sql} with {threads} threads", functools.partial(check_bounded, tables, sql, expected, threads))
                 for sql, expected in BOUNDED.items() for threads in (1, 2)]
        jobs += [(f"{sql} with {threads} threads", functools.partial(check_all_null, tables, sql, threads))
                 for sql in ALL_NULL for threads in (1, 4)]
        jobs.append(("rows that come often", functools.partial(check_repeated, tables)))
        checks.run_all(jobs)
    checks.finish()


if __name__ == "__main__":
    main()
