"""Tables with every type and the values at their edges: few rows, or so many that they cross chunks and row groups."""

import os
import random

import duckdb

# Column -> type, values as DuckDB reads them; "NULL" comes in between.
COLUMNS = {
    "bo": ("BOOLEAN", ["true", "false"]),
    "i1": ("TINYINT", ["-128", "-1", "0", "1", "7", "127"]),
    "i2": ("SMALLINT", ["-32768", "-129", "-1", "0", "1", "128", "32767"]),
    "i4": ("INTEGER", ["-2147483648", "-32769", "-1", "0", "1", "2", "19", "70000", "2147483647"]),
    "i8": ("BIGINT", ["-9223372036854775808", "-1", "0", "1", "3", "4294967296", "9223372036854775807"]),
    "u1": ("UTINYINT", ["0", "1", "2", "127", "128", "255"]),
    "u2": ("USMALLINT", ["0", "1", "255", "256", "32768", "65535"]),
    "u4": ("UINTEGER", ["0", "1", "3", "65536", "2147483648", "4294967295"]),
    "u8": ("UBIGINT", ["0", "1", "5", "9223372036854775807", "9223372036854775808", "18446744073709551615"]),
    "f4": ("FLOAT", ["'nan'", "'inf'", "'-inf'", "-0.0", "0.0", "1.5", "-2.25", "0.1", "3.4e38", "1e-40", "16777217",
                     "127.5", "128.5"]),
    "f8": ("DOUBLE", ["'nan'", "'inf'", "'-inf'", "'-0.0'", "0.0", "0.5", "1.5", "2.5", "-2.5", "0.1", "1e300",
                      "5e-324", "9007199254740993", "1e19", "-129.5", "255.49"]),
    "d4": ("DECIMAL(4,1)", ["-999.9", "-0.5", "0", "0.4", "0.5", "1.5", "12.3", "999.9"]),
    "d9": ("DECIMAL(9,2)", ["-9999999.99", "-1.05", "0", "0.05", "1", "2.50", "128.00", "9999999.99"]),
    "d18": ("DECIMAL(18,3)", ["-999999999999999.999", "-0.001", "0", "0.0005", "1.5", "4294967296", "999999999999999.999"]),
    "d38": ("DECIMAL(38,5)", ["-999999999999999999999999999999999.99999", "-0.00001", "0", "1.5", "18446744073709551616",
                              "999999999999999999999999999999999.99999"]),
    "da": ("DATE", ["'1970-01-01'", "'1969-12-31'", "'0001-01-01'", "'0044-03-15 (BC)'", "'2000-02-29'", "'1900-02-28'",
                    "'2024-01-31'", "'9999-12-31'", "'5877642-06-25 (BC)'", "'infinity'", "'-infinity'"]),
    "ts": ("TIMESTAMP", ["'1970-01-01 00:00:00'", "'1969-12-31 23:59:59.999999'", "'0044-03-15 (BC) 12:00:00'",
                         "'2000-02-29 12:34:56.789'", "'2024-01-31 00:00:00.000001'", "'1582-10-15 01:02:03'",
                         "'9999-12-31 23:59:59'", "'infinity'", "'-infinity'"]),
    "s": ("VARCHAR", ["''", "' '", "'a'", "'A'", "'abcdefghijkl'", "'abcdefghijklm'", "'abcdefghijkl\u00e9'", "'\u00e9t\u00e9'",
                      "'\U0001f986 duck'", "'100%'", "'a_b'", "'a\\b'", "'12'", "'-7.5'", "'1e3'", "'2000-02-29'", "'true'",
                      "'NULL'", "'inf'", "'abcdefghijklz'", "'\u00df'", "'q\"uo,te'", "'li\nne'"]),
}
# What Parquet has no type for is computed.
COMPUTED = {
    "hu": ("HUGEINT", "i8::HUGEINT * 10000000019"),
    "uh": ("UHUGEINT", "u8::UHUGEINT * 18446744073709551615"),
}
TYPES = {name: kind for name, (kind, _) in (COLUMNS | COMPUTED).items()}
ROWS = {"tiny": 46, "large": 9_000}  # the large ones are of several row groups, and more than the CPU's chunks


def literals(column):
    """Some constants of the column's type, as SQL."""
    if column in COMPUTED:
        values = {"hu": ["0", "-10000000019", "92233720368547758070000000000"], "uh": ["0", "18446744073709551615"]}[column]
    else:
        values = COLUMNS[column][1]
    return [f"CAST({value} AS {TYPES[column]})" if value.startswith("'") or column[0] in "fd" else
            f"{value}::{TYPES[column]}" if not value.startswith("-") else f"({value})::{TYPES[column]}"
            for value in values]


def random_value(column, source):
    """SQL of a value of some range of the column's type."""
    kind = column.rstrip("0123456789")
    if kind in ("i", "u"):
        return str(source.randint(0, 100))
    if kind == "f":
        return repr(source.randint(-4000, 4000) / 16)
    if kind == "d":
        return f"{source.randint(-9999, 9999) / 10:.1f}"
    if column == "da":
        return f"DATE '1960-01-01' + {source.randint(0, 30000)}"
    if column == "ts":
        return f"TIMESTAMP '1960-01-01' + to_milliseconds({source.randint(0, 10**12)})"
    if column == "s":
        return f"'{source.choice(['x', 'long prefix of '])}{source.randint(0, 300)}'"
    return source.choice(COLUMNS[column][1])


def rows_of(count, source):
    """Rows as SQL: each special value at least once, and NULLs."""
    special = {name: ["NULL", *values] for name, (_, values) in COLUMNS.items()}
    for number in range(count):
        row = [str(number)]
        for name in COLUMNS:
            if number < ROWS["tiny"]:
                row.append(special[name][number % len(special[name])])
            elif source.random() < 0.3:
                row.append(source.choice(special[name]))
            else:
                row.append(random_value(name, source))
        yield "(" + ", ".join(row) + ")"


def write_type_table(path, count, seed=1):
    """Table v: id and the columns above. The row order is the order of id."""
    connection = duckdb.connect()
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
    connection.execute(f"CREATE TABLE v (id INTEGER, {columns})")
    rows = list(rows_of(count, random.Random(seed)))
    for at in range(0, len(rows), 1000):
        connection.execute("INSERT INTO v VALUES " + ", ".join(rows[at:at + 1000]))
    connection.execute(f"COPY (SELECT * FROM v ORDER BY id) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 4096)")


def write_type_tables(directory):
    """Returns the directories of few and of many rows; both know the table w of few rows."""
    found = {}
    for name, count in ROWS.items():
        found[name] = os.path.join(directory, name)
        os.makedirs(found[name])
        write_type_table(os.path.join(found[name], "v.parquet"), count)
        write_type_table(os.path.join(found[name], "w.parquet"), ROWS["tiny"])
    return found


def write_query_tables(directory, count):
    """Tables for joins and sets: a, b (NULLs and duplicates), e (empty), one, wide, big (1 MB strings), dup (one key)."""
    connection = duckdb.connect()
    few = max(count // 40, 7)

    def write(name, sql, group=4096):
        path = os.path.join(directory, f"{name}.parquet")
        connection.execute(f"COPY ({sql}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE {group})")

    sides = """SELECT i::INTEGER AS id, CASE WHEN i % 11 <> {null} THEN ((i * 7919) % {few})::INTEGER END AS k,
               CASE WHEN i % 7 <> 4 THEN i % 4 END AS g,
               CASE WHEN i % 5 <> {null} THEN 'text ' || ((i * 31) % 17) || repeat('x', i % 9) END AS s
               FROM range({count}) AS t(i)"""
    write("a", sides.format(null=3, few=few, count=count))
    write("b", sides.format(null=4, few=few + 5, count=count + 9))
    write("e", "SELECT 1 AS id, 2 AS g, 3 AS k, 'x' AS s WHERE false")
    write("one", "SELECT 1 AS id, 2 AS g, 3 AS k, 'x' AS s")
    columns = ", ".join(f"(i * {n + 1}) % 1000 AS c{n}" if n % 3 else f"'w' || (i + {n}) AS c{n}" for n in range(1, 120))
    write("wide", f"SELECT i AS c0, {columns} FROM range({few}) AS t(i)")
    write("big", "SELECT repeat('x', 1000000) AS s UNION ALL SELECT repeat('x', 999999) || 'z' UNION ALL SELECT 'short' "
                 "UNION ALL SELECT NULL UNION ALL SELECT repeat('x', 1000000)")
    write("dup", f"SELECT CASE WHEN i % 1000 = 999 THEN i ELSE 1 END AS k, i AS v FROM range({count * 50}) AS t(i)", 122880)
