"""The forms of an answer: csv, json and table, over every type, with nulls and texts that need quotes."""

import json
import math
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import duckdb

from check import Checks, require, scratch_directory
from oracle import DuckDB, Tables, difference, query_stachio

# Column -> values as SQL; each column also gets a NULL.
COLUMNS = {
    "flag": ("BOOLEAN", ["true", "false", "true"]),
    "tiny": ("TINYINT", ["-128", "127", "0"]),
    "small": ("SMALLINT", ["-32768", "32767", "0"]),
    "int": ("INTEGER", ["-2147483648", "2147483647", "0"]),
    "big": ("BIGINT", ["'-9223372036854775808'", "9223372036854775807", "0"]),
    "utiny": ("UTINYINT", ["255", "0", "7"]),
    "usmall": ("USMALLINT", ["65535", "0", "7"]),
    "uint": ("UINTEGER", ["4294967295", "0", "7"]),
    "ubig": ("UBIGINT", ["18446744073709551615", "0", "7"]),
    "narrow": ("DECIMAL(4, 2)", ["-0.05", "99.99", "1"]),
    "money": ("DECIMAL(15, 2)", ["-9999999999999.99", "0.01", "100"]),
    "wide": ("DECIMAL(38, 10)", ["-1234567890123456789012345678.0123456789", "0.0000000001", "1"]),
    "part": ("DECIMAL(4, 4)", ["-0.05", "0", "0.9999"]),
    "wide_part": ("DECIMAL(38, 38)", ["-0.05", "0", "0.9999"]),
    "whole": ("DECIMAL(38, 0)", ["99999999999999999999999999999999999999", "-1", "0"]),
    "single": ("FLOAT", ["0.1", "'-inf'", "3.4028235e38"]),
    "double": ("DOUBLE", ["0.1", "'nan'", "1e300"]),
    "exact": ("DOUBLE", ["0.30000000000000004", "5e-324", "-123456789012345680.0"]),
    "day": ("DATE", ["'1970-01-01'", "'0001-01-01'", "'9999-12-31'"]),
    "moment": ("TIMESTAMP", ["'2020-02-29 12:34:56.789'", "'1969-12-31 23:59:59.999999'", "'2020-01-01'"]),
    "text": ("VARCHAR", ["'plain'", "''", "'a,b \"quoted\"\nnew line\r\ttab \\ back ü €'"]),
    "longer": ("VARCHAR", ["repeat('long ', 100)", "'NULL'", "' leading'"]),
}
FLOATS = {"single", "double", "exact"}


def make_tables(directory):
    os.makedirs(directory)
    connection = duckdb.connect()
    rows = []
    for i in range(4):
        cells = [f"CAST({values[i] if i < 3 else 'NULL'} AS {kind}) AS {name}"
                 for name, (kind, values) in COLUMNS.items()]
        rows.append(f"SELECT {i} AS id, {', '.join(cells)}")
    connection.execute(f"COPY ({' UNION ALL '.join(rows)}) TO '{directory}/t.parquet'")
    return Tables(directory)


def check_csv(tables, duck):
    for sql in ("SELECT * FROM t ORDER BY id", "SELECT * FROM t WHERE id > 7", "SELECT text FROM t ORDER BY id"):
        run = query_stachio(tables, sql, "--fallback", "forbid")
        found = difference(duck.answer(sql), run.answer(), order="all", tolerance=0)
        require(found is None, f"{run}\n{found}")


def check_null_and_empty(tables):
    run = query_stachio(tables, "SELECT text, longer, id FROM t WHERE id IN (1, 3) ORDER BY id").succeeded()
    require(run.out == b'text,longer,id\n"",NULL,1\n,,3\n', repr(run.out))


def check_fractions(tables):
    """No digit in front of the point where the type has none, as in a cast to VARCHAR; JSON's numbers have one."""
    sql = "SELECT part, part::VARCHAR AS cast FROM t WHERE id < 3 ORDER BY id"
    require(query_stachio(tables, sql).succeeded().out == b"part,cast\n-.0500,-.0500\n.0000,.0000\n.9999,.9999\n", sql)
    wide = query_stachio(tables, "SELECT wide_part FROM t WHERE id = 0").succeeded().out
    require(wide == b"wide_part\n-.05" + 36 * b"0" + b"\n", repr(wide))
    json_text = query_stachio(tables, sql, "--format", "json").succeeded().out
    require(b'{"part":-0.0500,"cast":"-.0500"}' in json_text, repr(json_text))


def check_nested(tables, duck):
    """DuckDB answers these; their text is DuckDB's too."""
    sql = ("SELECT [1, NULL] AS l, ['a b', 'c,d', '', NULL, 'NULL', 'x''y', ' z'] AS texts, {'a': 1, 'b c': 'x'} AS s, "
           "MAP {'k': 1.5, 'k,2': NULL} AS m, [[1], []] AS ll, [{'d': DATE '2020-01-01'}] AS ls, 'abc\\x00'::BLOB AS b, "
           "INTERVAL '14 months 3 days 04:05:06.789' AS i, INTERVAL '-1 days' AS j, INTERVAL '0 days' AS k, "
           "TIME '10:11:12.5' AS t, 'x'::ENUM('x', 'y') AS e, [1, 2]::INTEGER[2] AS a, "
           "DATE '0044-03-15 (BC)' AS bc, TIMESTAMP 'infinity' AS inf, TIMESTAMP_NS '2020-01-01 00:00:00.123456789' AS ns, "
           "'-170141183460469231731687303715884105728'::HUGEINT AS h")
    run = query_stachio(tables, sql)
    found = difference(duck.answer(sql), run.answer(), order="all")
    require(found is None, f"{run}\n{found}")


def equal_json(value, expected):
    if isinstance(expected, float) and isinstance(value, (float, str)):
        return str(float(value)) == str(expected)
    return value == expected


def check_json(tables):
    run = query_stachio(tables, "SELECT * FROM t ORDER BY id", "--format", "json").succeeded()
    require(run.out.count(b"\n") == 4, "not one row a line")
    rows = json.loads(run.out)
    connection = duckdb.connect()
    result = connection.execute(f"SELECT * FROM '{tables.directory}/t.parquet' ORDER BY id")
    names = [column[0] for column in result.description]
    require([list(row) for row in rows] == [names] * 4, f"names {list(rows[0])}")
    for row, expected in zip(rows, result.fetchall()):
        for name, value in zip(names, expected):
            if name == "single" and value is not None and math.isfinite(value):
                require(math.isclose(row[name], value, rel_tol=1e-6), f"{name}: {row[name]!r} for {value!r}")
            elif value is None or isinstance(value, (bool, int, str, float)):
                require(equal_json(row[name], value), f"{name}: {row[name]!r} for {value!r}")
    require(b'"ubig":18446744073709551615,' in run.out and b'"narrow":-0.05,' in run.out, "numbers are not exact")
    empty = query_stachio(tables, "SELECT id FROM t WHERE id > 7", "--format", "json").succeeded()
    require(json.loads(empty.out) == [], repr(empty.out))


def check_table(tables):
    sql = "SELECT id, text, money FROM t ORDER BY id"
    out = query_stachio(tables, sql, "--format", "table").succeeded().out.decode()
    lines = out.splitlines()
    require(len({len(line) for line in lines[:-1]}) == 1, f"the lines differ in length:\n{out}")
    require(lines[-1] == "(4 rows)" and "NULL" in out and "\\n" in out, out)
    out = query_stachio(tables, "SELECT range AS i FROM range(1000)", "--format", "table", "--max-rows", "10")
    lines = out.succeeded().out.decode().splitlines()
    require(lines[-1] == "(1,000 rows, 10 shown)", lines[-1])
    require(any("999" in line for line in lines) and any(" 0 " in line for line in lines), "not the first and the last")
    require(not any("500" in line for line in lines), "a row from the middle")


def check_large(tables):
    """More than one write, and the closing bracket."""
    sql = "SELECT range AS i, 'text ' || range AS s FROM range(300000) ORDER BY i"
    csv = query_stachio(tables, sql).succeeded().out
    require(csv.count(b"\n") == 300001 and csv.endswith(b"299999,text 299999\n"), csv[-100:])
    rows = json.loads(query_stachio(tables, sql, "--format", "json").succeeded().out)
    require(len(rows) == 300000 and rows[-1] == {"i": 299999, "s": "text 299999"}, rows[-1])


def main():
    checks = Checks()
    with scratch_directory() as scratch:
        tables = make_tables(os.path.join(scratch, "tables"))
        duck = DuckDB(tables)
        for name, check in (("csv", lambda: check_csv(tables, duck)), ("csv: null", lambda: check_null_and_empty(tables)),
                            ("csv: fractions", lambda: check_fractions(tables)), ("csv: nested", lambda: check_nested(tables, duck)), ("json", lambda: check_json(tables)),
                            ("table", lambda: check_table(tables)), ("large", lambda: check_large(tables))):
            with checks.case(name):
                check()
    checks.finish()


if __name__ == "__main__":
    main()
