"""What statements that DuckDB has run change for those after them: transactions, settings, views, macros; the same on several
ranks, whose plans may also differ by the time they are made at."""

import functools
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from check import Checks, require, scratch_directory
from oracle import Tables, parse_csv, run_stachio, unmatched_rows

ROWS = 9000
BY_DUCKDB = "DuckDB answers: "
ALL_RANKS = {"STACHIO_ALONE_BYTES": "0"}

# Statements, the last of which is compared; whether DuckDB has to answer that one.
SCRIPTS = [
    ("BEGIN; SELECT sum(v) FROM w", True),
    ("BEGIN; SELECT sum(v) FROM w; SELECT max(v) FROM other", True),
    ("BEGIN TRANSACTION; COMMIT; SELECT sum(v) FROM w", False),
    ("START TRANSACTION; ROLLBACK; SELECT sum(v) FROM w", False),
    ("BEGIN; CREATE VIEW made AS SELECT max(v) AS one FROM w; SELECT one FROM made", True),
    ("BEGIN; CREATE VIEW made AS SELECT max(v) AS one FROM w; COMMIT; SELECT one FROM made", False),
    ("CREATE TABLE n AS SELECT range AS a FROM range(10); BEGIN; INSERT INTO n VALUES (NULL); SELECT count(*) FROM n WHERE a IS NULL", True),
    ("CREATE TABLE n AS SELECT range AS a FROM range(10); BEGIN; INSERT INTO n VALUES (10); ROLLBACK; SELECT sum(a) FROM n", True),
    ("SET integer_division = true; SELECT sum(v / 2) AS s FROM w", True),
    ("PRAGMA integer_division = true; SELECT sum(v / 2) AS s FROM w", True),
    ("SET integer_division = true; RESET integer_division; SELECT sum(v / 2) AS s FROM w", False),
    ("SET ieee_floating_point_ops = false; SELECT sum(v / z) AS s FROM w", True),
    ("SET ieee_floating_point_ops = false; SET ieee_floating_point_ops = true; SELECT sum(v / (z + 2)) AS s FROM w", False),
    ("CREATE VIEW made AS SELECT z, sum(v) AS s FROM w GROUP BY z; SELECT * FROM made WHERE s > 5", False),
    ("CREATE VIEW a AS SELECT v FROM w; CREATE OR REPLACE VIEW a AS SELECT v + 1 AS v FROM w; SELECT sum(v) FROM a", False),
    ("CREATE OR REPLACE VIEW w AS SELECT 7 AS v; SELECT sum(v) FROM w", False),
    ("CREATE SCHEMA s; CREATE VIEW s.made AS SELECT max(v) AS m FROM w; USE s; SELECT m FROM made", False),
    ("CREATE MACRO f(x) AS x + 1; SELECT sum(f(v)) FROM w", False),
    ("CREATE MACRO f(x) AS x + 1; DROP MACRO f; CREATE MACRO f(x) AS x + 2; SELECT sum(f(v)) FROM w", False),
    ("CREATE TABLE n AS SELECT 5 AS a; CREATE VIEW made AS SELECT v FROM w, n WHERE v < a; SELECT count(*) FROM made", True),
    ("SET VARIABLE x = 5; SELECT count(*) FROM w WHERE v < getvariable('x')", False),
    ("SET VARIABLE x = (SELECT max(v) - 9 FROM w); SELECT count(*) FROM w WHERE v < getvariable('x')", False),
    ("SET default_order = 'DESC'; SELECT v FROM w ORDER BY v LIMIT 3", False),
    ("SET default_null_order = 'NULLS_FIRST'; SELECT z FROM w ORDER BY z LIMIT 3", False),
    ("CHECKPOINT; SELECT sum(v) FROM same", False),
    ("PRAGMA show_tables; SELECT sum(a.v + b.v) FROM same a JOIN w b ON a.v = b.v", False),
    ("CREATE TABLE n AS SELECT 1 AS a; SELECT count(*) FROM same WHERE z IS NULL", False),
    ("SELECT count(*) FROM w WHERE t < localtimestamp", False),
    ("SELECT count(*), max(v) FROM w WHERE now()::TIMESTAMP > t", False),
    ("SELECT sum(v), localtimestamp > TIMESTAMP '2020-01-01' FROM w", False),
    ("CREATE VIEW made AS SELECT localtimestamp AS present, t, v FROM w; SELECT count(*) FROM made WHERE t < present", False),
]


def make_tables(scratch):
    table = pa.table({"v": pa.array(range(ROWS), pa.int64()), "z": [None if i % 10 == 3 else i % 5 - 1 for i in range(ROWS)],
                      "t": pa.array([i * 5 * 86_400_000_000 for i in range(ROWS)], pa.timestamp("us"))})
    for name in ("w", "other"):
        pq.write_table(table, os.path.join(scratch, f"{name}.parquet"), row_group_size=1000)
    return Tables(globs={"w": os.path.join(scratch, "w.parquet"), "same": os.path.join(scratch, "w.parquet"),
                         "other": os.path.join(scratch, "other.parquet")})


def run(tables, statements, **environment):
    options = [option for statement in statements for option in ("-c", statement)]
    return run_stachio([*tables.options(), *options, "--format", "csv"], env={**os.environ, **environment})


def rows_of_last(tables, statements, **environment):
    """Without the rows of the statements before, which answer the same each time."""
    before, whole = [run(tables, some, **environment).succeeded() for some in (statements[:-1], statements)]
    require(whole.out.startswith(before.out), f"{before}\n{whole}")
    notes = whole.error.replace(before.error, "", 1)
    return parse_csv(whole.out[len(before.out):].decode()).rows, BY_DUCKDB in notes


def wanted_rows(tables, statements):
    connection = duckdb.connect()
    for name, pattern in tables.globs.items():
        connection.execute(f"CREATE VIEW {name} AS FROM '{pattern}'")
    for statement in statements[:-1]:
        connection.execute(statement)
    return [tuple(None if value is None else str(value).lower() if isinstance(value, bool) else str(value) for value in row)
            for row in connection.execute(statements[-1]).fetchall()]


def check_script(tables, script, by_duckdb, ranks):
    statements = script.split("; ")
    rows, was_by_duckdb = rows_of_last(tables, statements, STACHIO_LOCAL_RANKS=str(ranks), **ALL_RANKS)
    missing, surplus = unmatched_rows(wanted_rows(tables, statements), rows, [True] * len(rows[0]), 1e-12)
    require(not missing and not surplus, f"missing {missing}, surplus {surplus}")
    require(was_by_duckdb == by_duckdb, f"DuckDB answered: {was_by_duckdb}")


def check_forbidden(tables):
    """What only DuckDB may answer is refused, and nothing else after it."""
    done = run_stachio([*tables.options(), "-c", "SET integer_division = true", "-c", "SELECT sum(v / 2) FROM w", "--fallback", "forbid"])
    require(done.status == 1 and "statement SET" in done.error, str(done))


def check_shared(tables):
    """A plan that differs by its time is rank 0's alone; others are not."""
    for sql, alone in (("SELECT count(*) FROM w WHERE t < localtimestamp", True), ("SELECT sum(v) AS now FROM w", False)):
        options = [*tables.options(), "-c", sql, "--analyze"]
        out = run_stachio(options, env={**os.environ, "STACHIO_LOCAL_RANKS": "3", **ALL_RANKS}).succeeded().out.decode()
        require(("rank 0 alone" in out) == alone and ("EXCHANGE" in out) != alone, out)


def main():
    checks = Checks()
    with scratch_directory() as scratch:
        tables = make_tables(scratch)
        jobs = [(f"{ranks} ranks: {script}", functools.partial(check_script, tables, script, by_duckdb, ranks))
                for script, by_duckdb in SCRIPTS for ranks in (1, 3)]
        checks.run_all([*jobs, ("forbidden", functools.partial(check_forbidden, tables)), ("shared", functools.partial(check_shared, tables))])
    checks.finish()


if __name__ == "__main__":
    main()
