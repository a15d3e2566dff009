"""Files by many writers: each is read with DuckDB's values or refused by name, never misread.

The folder is named by PARQUET_TESTING. Its README says which files must give an error.
"""

import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import duckdb

from check import Checks, require, skip
from oracle import DuckDB, Tables, ask_stachio, check_equal, difference

# These may be refused; every other file must be read.
REFUSAL_EXPECTED = re.compile(r"^bad-|corrupt|malformed")

# What the engine runs itself; columns of other types go to DuckDB.
ENGINE_TYPE = re.compile(r"^(BOOLEAN|U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)|FLOAT|DOUBLE|DECIMAL\([\d,]+\)|DATE|"
                         r"TIMESTAMP|VARCHAR)$")


def is_refused_by_name(run, path):
    return run.status == 3 and os.path.basename(path) in run.error and not run.out


def check_may_be_refused(tables, path):
    """Refused by name. Else equal to DuckDB, unless the file is corrupt and DuckDB does not look."""
    run = ask_stachio(tables, "SELECT * FROM t")
    if is_refused_by_name(run, path):
        return
    require(run.status == 0, f"{run}\nneither answered nor refused by name with exit status 3")
    require("corrupt" not in os.path.basename(path), f"{run}\na corrupt file was read")
    try:
        expected = DuckDB(tables).answer("SELECT * FROM t")
    except duckdb.Error as error:
        require(False, f"{run}\nanswered, where DuckDB says: {error}")
    found = difference(expected, run.answer(), tolerance=0)
    require(found is None, f"{run}\n{found}")


def check_is_read(tables):
    duck = DuckDB(tables)
    described = duck.connection.execute("DESCRIBE t").fetchall()
    engine_columns = [f'"{name}"' for name, column_type, *_ in described if ENGINE_TYPE.match(column_type)]
    if engine_columns:
        sql = f"SELECT {', '.join(engine_columns)} FROM t"
        check_equal(tables, duck, sql, "--fallback", "forbid", tolerance=0)
    if len(engine_columns) < len(described):
        run = check_equal(tables, duck, "SELECT * FROM t", tolerance=0, quiet=False)
        require(run.error.count("\n") == 1, f"{run}\none line on stderr should say why DuckDB answered")


def main():
    directory = pathlib.Path(os.environ.get("PARQUET_TESTING", ""))
    paths = sorted(directory.glob("*.parquet")) if directory.name else []
    if not paths:
        skip(f"PARQUET_TESTING names no folder with Parquet files ({directory})")
    checks = Checks()
    for path in paths:
        tables = Tables(globs={"t": str(path)})
        with checks.case(path.name):
            if REFUSAL_EXPECTED.search(path.name):
                check_may_be_refused(tables, str(path))
            else:
                check_is_read(tables)
    checks.finish()


if __name__ == "__main__":
    main()
