"""The 22 TPC-H queries over generated data give DuckDB's answers, with one thread and two, and never fall back."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

from check import Checks, scratch_directory
from oracle import DuckDB, Tables, check_equal, run_stachio

QUERIES = pathlib.Path(__file__).parent.parent.parent / "cli" / "tpch"

# Query -> positions of the columns of its ORDER BY; queries without one are left out.
ORDER = {
    1: (0, 1), 2: (0, 2, 1, 3), 3: (1, 2), 4: (0,), 5: (1,), 7: (0, 1, 2), 8: (0,), 9: (0, 1), 10: (2,), 11: (1,),
    12: (0,), 13: (1, 0), 15: (0,), 16: (3, 0, 1, 2), 18: (4, 3), 20: (0,), 21: (1, 0), 22: (0,),
}


def check_query(tables, duck, number, threads):
    sql = (QUERIES / f"q{number:02}.sql").read_text()
    order = ORDER.get(number, ())
    check_equal(tables, duck, sql, "--threads", threads, "--fallback", "forbid", order=order)


# Ways of reading; all queries run in one process, so that a cache has what the earlier ones read.
READING = (["--io", "buffered"], ["--io", "direct"], ["--io", "direct", "--cache", "host"], ["--cache", "host"], ["--cache", "host", "--cache-size", "1MB"])


def check_reading(data, options):
    run_stachio(["tpch", "run", "-d", data, "--compare", "duckdb", "--repeat", "2", "--threads", "2", *options]).succeeded()


def takes_direct(path):
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        return False
    return True


def main(scale, reading=READING):
    checks = Checks()
    with scratch_directory() as directory:
        data = os.path.join(directory, "data")
        run_stachio(["tpch", "generate", "--sf", scale, "-o", data]).succeeded()
        tables = Tables(data)
        duck = DuckDB(tables)
        for number in range(1, 23):
            for threads in (1, 2):
                with checks.case(f"TPC-H query {number}, scale factor {scale}, {threads} thread(s)"):
                    check_query(tables, duck, number, threads)
        for options in reading:
            if "direct" in options and not takes_direct(os.path.join(data, "nation.parquet")):
                continue
            with checks.case(f"all queries twice with {' '.join(options)}"):
                check_reading(data, options)
    checks.finish()


if __name__ == "__main__":
    main("0.01")
