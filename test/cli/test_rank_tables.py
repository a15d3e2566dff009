"""Tables of which each rank has files of its own, by the library: added again, failed to be added, changed on the disk."""

import ctypes
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import duckdb

from check import SANITIZED, Checks, require, scratch_directory, skip
from test_api_arrow import FILE, OK, Database, load_library

RANKS = 2


def write(path, columns):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    duckdb.execute(f"COPY (SELECT {columns}) TO '{path}'")


class Tables:
    def __init__(self, library, directory):
        self.library, self.directory = library, directory
        self.database = Database(library, None, threads=2)
        for rank in range(RANKS):
            self.write(rank, "n", f"{rank} AS k")
            self.write(rank, "other", f"{rank} AS k")

    def write(self, rank, table, columns):
        write(f"{self.directory}/{rank}/{table}.parquet", columns)

    def add(self, name, file=None):
        path = f"{self.directory}/{{rank}}/{file or name}.parquet"
        status = self.library.stachio_add_table(self.database.handle, name.encode(), path.encode(),
                                                ctypes.byref(self.database.error))
        return status, self.database.error.text.decode()

    def ask(self, sql):
        query = self.database.query(sql)
        status = self.database.execute(query)
        text = self.database.error.text.decode()
        if status == OK:
            text = self.database.stream(query).read_all().column(0)[0].as_py()
        self.library.stachio_query_destroy(query)
        return status, text

    def refused(self, sql):
        status, text = self.ask(sql)
        require(status == FILE and "changed" in text and "rank 1 " in text and f"{self.directory}/1/" in text, f"{status}: {text}")


def count_stand_ins():
    links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    return sum(os.path.exists(link) and "stachio footer" in os.readlink(link) for link in links)


def check_replaced(tables):
    """What is added again is as it is then, and nothing of what it was is left."""
    for name in ("n", "other"):
        require(tables.add(name)[0] == OK, name)
    require(tables.ask("SELECT CAST(sum(k) AS BIGINT) FROM n") == (OK, 1), "the sum")
    kept = count_stand_ins()
    tables.write(1, "n", "10 AS k")
    tables.refused("SELECT sum(k) FROM n")
    require(tables.ask("SELECT CAST(sum(k) AS BIGINT) FROM other") == (OK, 1), "a table that has not changed")
    require(tables.ask("SELECT 1") == (OK, 1), "no table")
    require(tables.add("N", "n")[0] == OK, "added again")
    require(tables.ask("SELECT CAST(sum(k) AS BIGINT) FROM n") == (OK, 10), "the sum of what it is now")
    require(count_stand_ins() == kept > 0, f"{count_stand_ins()} files in memory, not {kept}")


def check_failed(tables):
    """A table that could not be added is what it was."""
    require(tables.add("n")[0] == OK and tables.add("other")[0] == OK, "added")
    kept = count_stand_ins()
    tables.write(0, "bad", "1 AS k")
    tables.write(1, "bad", "'x' AS k")
    status, text = tables.add("n", "bad")
    require(status == FILE and "column k" in text, f"{status}: {text}")
    tables.write(1, "bad", "'another one' AS k")
    require(tables.ask("SELECT CAST(sum(k) AS BIGINT) FROM n") == (OK, 10), "what it was")
    require(count_stand_ins() == kept, f"{count_stand_ins()} files in memory, not {kept}")


def check_of_all(tables):
    """A table that all ranks see takes the place of one of which each has a part."""
    require(tables.add("n")[0] == OK, "added")
    tables.write(0, "all", "5 AS k")
    path = f"{tables.directory}/0/all.parquet"
    database = tables.database
    database.check(tables.library.stachio_add_table(database.handle, b"n", path.encode(), ctypes.byref(database.error)))
    tables.write(1, "n", "12 AS k")
    require(tables.ask("SELECT CAST(sum(k) AS BIGINT) FROM n") == (OK, 5), "the new one's")


def check_names(tables):
    """Errors name another rank's file, not what stands in for it."""
    tables.write(1, "mine", "INTERVAL 1 DAY AS i")
    os.makedirs(f"{tables.directory}/0", exist_ok=True)
    path = f"{tables.directory}/{{rank}}/mine*.parquet"
    database = tables.database
    status = tables.library.stachio_add_table(database.handle, b"mine", path.encode(), ctypes.byref(database.error))
    text = database.error.text.decode()
    if status == OK:
        status, text = tables.ask("SELECT i FROM mine")
    require(status != OK and f"{tables.directory}/1/mine.parquet" in text and "rank 1's " in text and "/proc/" not in text,
            f"{status}: {text}")


def main():
    if SANITIZED:
        skip("a sanitized library can't be loaded into python")
    os.environ["STACHIO_LOCAL_RANKS"] = str(RANKS)
    library = load_library()
    checks = Checks()
    with scratch_directory() as directory:
        tables = Tables(library, directory)
        for check in (check_replaced, check_failed, check_of_all, check_names):
            with checks.case(check.__name__):
                check(tables)
        tables.database.close()
    checks.finish()


if __name__ == "__main__":
    main()
