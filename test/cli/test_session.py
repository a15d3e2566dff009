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
BY_ONE = "rank 0 alone"
SAME_TIMES = 6  # in a row: ranks that plan within the same microsecond have the same plan, 4 times in 40 on 32 cores
ALL, ONE, DUCKDB = "all ranks", BY_ONE, "DuckDB"  # who answers

# Statements, the last of which is compared; who answers that one of several ranks.
SCRIPTS = [
    ("BEGIN; SELECT sum(v) FROM w", DUCKDB),
    ("BEGIN; SELECT sum(v) FROM w; SELECT max(v) FROM other", DUCKDB),
    ("BEGIN TRANSACTION; COMMIT; SELECT sum(v) FROM w", ALL),
    ("START TRANSACTION; ROLLBACK; SELECT sum(v) FROM w", ALL),
    ("BEGIN; CREATE VIEW made AS SELECT max(v) AS one FROM w; SELECT one FROM made", DUCKDB),
    ("BEGIN; CREATE VIEW made AS SELECT max(v) AS one FROM w; COMMIT; SELECT one FROM made", ALL),
    ("CREATE TABLE n AS SELECT range AS a FROM range(10); BEGIN; INSERT INTO n VALUES (NULL); SELECT count(*) FROM n WHERE a IS NULL", DUCKDB),
    ("CREATE TABLE n AS SELECT range AS a FROM range(10); BEGIN; INSERT INTO n VALUES (10); ROLLBACK; SELECT sum(a) FROM n", DUCKDB),
    ("BEGIN; SET integer_division = true; COMMIT; SELECT sum(v / 2) AS s FROM w", DUCKDB),
    ("BEGIN; CREATE SCHEMA s; USE s; COMMIT; SELECT sum(v) FROM memory.main.w", DUCKDB),
    ("CREATE TABLE n AS SELECT 5 AS a; BEGIN; UPDATE n SET a = 6; SET VARIABLE x = (SELECT max(a) FROM n); COMMIT; "
     "SELECT max(getvariable('x')), max(v) FROM w", DUCKDB),
    ("SET VARIABLE x = random(); SELECT max(v), max(getvariable('x')) < 2 FROM w", DUCKDB),
    ("SET integer_division = true; SELECT sum(v / 2) AS s FROM w", DUCKDB),
    ("PRAGMA integer_division = true; SELECT sum(v / 2) AS s FROM w", DUCKDB),
    ("SET integer_division = true; RESET integer_division; SELECT sum(v / 2) AS s FROM w", ALL),
    ("SET ieee_floating_point_ops = false; SELECT sum(v / z) AS s FROM w", DUCKDB),
    ("SET ieee_floating_point_ops = false; SET ieee_floating_point_ops = true; SELECT sum(v / (z + 2)) AS s FROM w", ALL),
    ("SET default_collation = 'nocase'; SELECT count(*) FROM (SELECT DISTINCT z FROM w)", DUCKDB),
    ("SET default_collation = 'nocase'; RESET default_collation; SELECT count(*) FROM (SELECT DISTINCT z FROM w)", ALL),
    ("SET scalar_subquery_error_on_multiple_rows = false; SELECT sum((SELECT max(b.v) FROM w b WHERE b.z = a.z)) FROM w a", DUCKDB),
    ("CREATE VIEW made AS SELECT z, sum(v) AS s FROM w GROUP BY z; SELECT * FROM made WHERE s > 5", ALL),
    ("CREATE VIEW a AS SELECT v FROM w; CREATE OR REPLACE VIEW a AS SELECT v + 1 AS v FROM w; SELECT sum(v) FROM a", ALL),
    ("CREATE OR REPLACE VIEW w AS SELECT 7 AS v; SELECT sum(v) FROM w", ALL),
    ("CREATE SCHEMA s; CREATE VIEW s.made AS SELECT max(v) AS m FROM w; USE s; SELECT m FROM made", ALL),
    ("CREATE VIEW made AS SELECT v FROM w; ALTER VIEW made RENAME TO renamed; SELECT sum(v) FROM renamed", ALL),
    ("CREATE VIEW made AS SELECT v FROM w; BEGIN; DROP VIEW made; ROLLBACK; SELECT sum(v) FROM made", ONE),
    ("ATTACH ':memory:' AS d; CREATE VIEW d.made AS SELECT v FROM memory.main.w; SELECT sum(v) FROM d.made", ONE),
    ("CREATE MACRO f(x) AS x + 1; SELECT sum(f(v)) FROM w", ALL),
    ("CREATE MACRO f(x) AS x + 1; DROP MACRO f; CREATE MACRO f(x) AS x + 2; SELECT sum(f(v)) FROM w", ALL),
    ("CREATE TABLE n AS SELECT 5 AS a; CREATE VIEW made AS SELECT v FROM w, n WHERE v < a; SELECT count(*) FROM made", DUCKDB),
    ("SET VARIABLE x = 5; SELECT count(*) FROM w WHERE v < getvariable('x')", ALL),
    ("SET VARIABLE x = (SELECT max(v) - 9 FROM w); SELECT count(*) FROM w WHERE v < getvariable('x')", ALL),
    ("SET default_order = 'DESC'; SELECT v FROM w ORDER BY v LIMIT 3", ALL),
    ("SET default_null_order = 'NULLS_FIRST'; SELECT z FROM w ORDER BY z LIMIT 3", ALL),
    ("CHECKPOINT; SELECT sum(v) FROM same", ALL),
    ("PRAGMA show_tables; SELECT sum(a.v + b.v) FROM same a JOIN w b ON a.v = b.v", ALL),
    ("CREATE TABLE n AS SELECT 1 AS a; SELECT count(*) FROM same WHERE z IS NULL", ALL),
    ("SELECT count(*) FROM w WHERE t < localtimestamp", ONE),
    ("SELECT count(*), max(v) FROM w WHERE now()::TIMESTAMP > t", ONE),
    ("SELECT sum(v), localtimestamp > TIMESTAMP '2020-01-01' FROM w", ALL),
    ("CREATE VIEW made AS SELECT localtimestamp AS present, t, v FROM w; SELECT count(*) FROM made WHERE t < present", ONE),
]


def make_tables(scratch):
    table = pa.table({"v": pa.array(range(ROWS), pa.int64()), "z": [None if i % 10 == 3 else i % 5 - 1 for i in range(ROWS)],
                      "t": pa.array([i * 5 * 86_400_000_000 for i in range(ROWS)], pa.timestamp("us"))})
    for name in ("w", "other"):
        pq.write_table(table, os.path.join(scratch, f"{name}.parquet"), row_group_size=1000)
    return Tables(globs={"w": os.path.join(scratch, "w.parquet"), "same": os.path.join(scratch, "w.parquet"),
                         "other": os.path.join(scratch, "other.parquet")})


def run(tables, statements, ranks, *more):
    options = [option for statement in statements for option in ("-c", statement)]
    return run_stachio([*tables.options(), *options, *more], env={**os.environ, "STACHIO_LOCAL_RANKS": str(ranks), "STACHIO_ALONE_BYTES": "0"})


def rows_of_last(tables, statements, ranks):
    """Without the rows of the statements before, which answer the same each time."""
    before, whole = [run(tables, some, ranks, "--format", "csv").succeeded() for some in (statements[:-1], statements)]
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


def check_script(tables, script, who, ranks):
    statements = script.split("; ")
    rows, was_by_duckdb = rows_of_last(tables, statements, ranks)
    missing, surplus = unmatched_rows(wanted_rows(tables, statements), rows, [True] * len(rows[0]), 1e-12)
    require(not missing and not surplus, f"missing {missing}, surplus {surplus}")
    require(was_by_duckdb == (who == DUCKDB), f"DuckDB answered: {was_by_duckdb}")
    if ranks > 1 and who != DUCKDB:
        for _ in range(SAME_TIMES if "now()" in script or "localtimestamp" in script else 1):
            out = run(tables, statements, ranks, "--analyze").succeeded().out.decode()
            if (BY_ONE in out) == (who == ONE):
                break
        require((BY_ONE in out) == (who == ONE), f"not by {who}: {out}")


def check_forbidden(tables):
    """What only DuckDB may answer is refused, and nothing else after it."""
    done = run(tables, ["SET integer_division = true", "SELECT sum(v / 2) FROM w"], 1, "--fallback", "forbid")
    require(done.status == 1 and "statement SET" in done.error, str(done))


def check_temporary(tables):
    for before in ("BEGIN", "SET integer_division = true", "SELECT 1"):
        done = run(tables, [before, "CREATE OR REPLACE TEMP VIEW w AS SELECT 7 AS v"], 1)
        require(done.status == 1 and "leave out TEMP" in done.error, str(done))


def check_broken(tables, scratch):
    """A transaction can begin beside a table that can't be read."""
    broken = os.path.join(scratch, "broken.parquet")
    pathlib.Path(broken).write_bytes(pathlib.Path(tables.globs["w"]).read_bytes()[:-9])
    tables = Tables(globs={**tables.globs, "broken": broken})
    for statements, status in ((["BEGIN", "SELECT sum(v) FROM w", "COMMIT"], 0), (["BEGIN", "SELECT sum(v) FROM broken"], 3)):
        done = run(tables, statements, 1)
        require(done.status == status, str(done))


def main():
    checks = Checks()
    with scratch_directory() as scratch:
        tables = make_tables(scratch)
        jobs = [(f"{ranks} ranks: {script}", functools.partial(check_script, tables, script, who, ranks))
                for script, who in SCRIPTS for ranks in (1, 3)]
        checks.run_all([*jobs, ("forbidden", functools.partial(check_forbidden, tables)), ("temporary", functools.partial(check_temporary, tables)),
                        ("broken", functools.partial(check_broken, tables, scratch))])
    checks.finish()


if __name__ == "__main__":
    main()
