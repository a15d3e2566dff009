"""The statements of test/cli/sql/*.sql give DuckDB's answers over small tables and over such that cross chunks.

A comment line before a statement says what is special about it: "ordered": the order of the rows counts; "fails": the
query ends with status 1, as in DuckDB; "falls back: TEXT": DuckDB answers, and the line on stderr names TEXT.
All others run with --fallback forbid. SQL_ONLY: a part of a statement, to run only those.
"""

import os
import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import duckdb

from check import SANITIZED, Checks, require, scratch_directory
from oracle import DuckDB, Tables, ask_stachio, difference
from sql_tables import ROWS, write_query_tables, write_type_tables

ONLY = os.environ.get("SQL_ONLY", "")
STEP = 3 if SANITIZED else 1  # every third statement where each takes ten times as long
THREADS = {"tiny": (1,), "large": (3,)} if SANITIZED else {"tiny": (1, 3), "large": (1, 3)}
DIRECTIVES = ("ordered", "fails", "falls back: ")


def statements(path):
    """(directive, SQL) of a file."""
    directive, lines = "", []
    for line in path.read_text().splitlines():
        if line.startswith("--"):
            directive = next((line[3:] for known in DIRECTIVES if line[3:].startswith(known)), "")
            continue
        lines.append(line)
        if line.endswith(";"):
            yield directive, "\n".join(lines).removesuffix(";")
            directive, lines = "", []


def answer_of(duck, sql):
    """DuckDB's answer, or None and its error."""
    try:
        return duck.answer(sql), ""
    except duckdb.Error as error:
        return None, str(error)


def check_fallback(tables, sql, named):
    refused = ask_stachio(tables, sql, "--fallback", "forbid")
    require(refused.status == 1 and not refused.out and named.lower() in refused.error.lower(), f"{refused}")
    run = ask_stachio(tables, sql)
    require(run.error.count("\n") == 1 and named.lower() in run.error.lower(), f"not one line that names {named}\n{run}")
    return run


def check_statement(tables, directive, sql, threads, wanted, error):
    """wanted, error: DuckDB's (answer_of)."""
    if directive.startswith("falls back: "):
        run = check_fallback(tables, sql, directive.removeprefix("falls back: "))
    else:
        run = ask_stachio(tables, sql, "--threads", threads, "--fallback", "forbid")
    if wanted is None:
        require(directive == "fails", f"DuckDB refuses\n{sql}\n{error}")
        require(run.status == 1 and run.error and not run.out, f"{run}\nDuckDB: {error}")
        require("may not" not in run.error, f"{run}\nDuckDB: {error}")
        return
    require(run.status == 0, f"{run}")
    found = difference(wanted, run.answer(), "all" if directive == "ordered" else ())
    require(found is None, f"{run}\n{found}")


def main():
    checks = Checks()
    local = threading.local()
    with scratch_directory() as directory:
        sets = {name: Tables(path) for name, path in write_type_tables(directory).items()}
        for name, tables in sets.items():
            write_query_tables(tables.directory, ROWS[name])

        def job(size, path, directive, sql):
            def check():
                if not hasattr(local, "ducks"):
                    local.ducks = {name: DuckDB(tables) for name, tables in sets.items()}
                wanted, error = answer_of(local.ducks[size], sql)
                for threads in THREADS[size]:
                    check_statement(sets[size], directive, sql, threads, wanted, error)
            return f"{path.stem} {size}: {sql}", check

        checks.run_all([job(size, path, *statement) for path in sorted(pathlib.Path(__file__).parent.glob("sql/*.sql"))
                        for statement in list(statements(path))[::STEP] if ONLY in statement[1] for size in sets])
    checks.finish()


if __name__ == "__main__":
    main()
