"""stachio rewrite and --format parquet: what is written has the values, types and order of what was read, by DuckDB, by
pyarrow and by stachio; and nothing is left of what fails."""

import datetime
import decimal
import glob
import itertools
import os
import pathlib
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from check import SANITIZED, Checks, require, scratch_directory
from oracle import run_stachio, stachio_command
from test_parquet_testing import ENGINE_TYPE

ENCODINGS = ("auto", "plain", "dictionary", "v2")
COMPRESSIONS = ("none", "snappy", "lz4", "zstd")
REFUSAL_EXPECTED = re.compile("^bad-|corrupt|malformed")
OUTPUT_ERROR, USAGE, QUERY_ERROR, FILE_ERROR, NO_MEMORY, INTERRUPTED = 3, 2, 1, 3, 4, 130

# Every type of the engine; %s is an integer. A value that is null now and then, and the bounds of the type.
TYPES = {
    "BOOLEAN": "{i} % 3 = 0", "TINYINT": "({i} * 7) % 128", "SMALLINT": "({i} * 77) % 30000", "INTEGER": "{i} * 7777",
    "BIGINT": "{i} * 7777777777", "UTINYINT": "{i} % 256", "USMALLINT": "({i} * 7) % 65536",
    "UINTEGER": "4294967295 - {i}", "UBIGINT": "18446744073709551615 - {i}", "FLOAT": "{i} / 7", "DOUBLE": "{i} / 7",
    "DECIMAL(4,2)": "({i} % 9999) / 100", "DECIMAL(9,3)": "{i} / 1000", "DECIMAL(15,2)": "{i} * 1000003 / 100",
    "DECIMAL(18,6)": "-{i} * 10001 / 1000000", "DECIMAL(25,5)": "({i}::HUGEINT * 1000000000000007)::DECIMAL(25,0)",
    "DECIMAL(38,10)": "(-{i}::HUGEINT * 1000000000000000003)::DECIMAL(28,0)", "DATE": "DATE '1992-01-01' + ({i} % 2500)::INTEGER",
    "TIMESTAMP": "TIMESTAMP '1969-12-31 23:00:00' + {i} * INTERVAL 7777777 MICROSECOND",
    "VARCHAR": "'text ' || ({i} % 50)",
}
BOUNDS = {
    "BOOLEAN": (False, True), "TINYINT": (-128, 127), "SMALLINT": (-32768, 32767), "INTEGER": (-2**31, 2**31 - 1),
    "BIGINT": (-2**63, 2**63 - 1), "UTINYINT": (0, 255), "USMALLINT": (0, 65535), "UINTEGER": (0, 2**32 - 1),
    "UBIGINT": (0, 2**64 - 1), "FLOAT": ("-inf", "inf", "nan", "-0.0", "0.0"), "DOUBLE": ("-inf", "inf", "nan", "-0.0"),
    "DECIMAL(4,2)": ("-99.99", "99.99"), "DECIMAL(9,3)": ("-999999.999", "999999.999"),
    "DECIMAL(15,2)": ("-9999999999999.99",), "DECIMAL(18,6)": ("-999999999999.999999", "999999999999.999999"),
    "DECIMAL(25,5)": ("99999999999999999999.99999", "-99999999999999999999.99999"),
    "DECIMAL(38,10)": ("9" * 28 + "." + "9" * 10, "-" + "9" * 28 + "." + "9" * 10), "DATE": ("0001-01-01", "9999-12-31"),
    "TIMESTAMP": ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
    "VARCHAR": ("", "ä" * 100, "\x7f" * 70, "z" * 5000, "\U0001f9ff" * 40, "a\nb"),
}


def quote(text):
    return "'" + str(text).replace("'", "''") + "'"


def make_types(path, rows, nulls=True, start=0):
    """A file with a column of every type, and one of unique texts."""
    columns = []
    for number, (name, text) in enumerate(TYPES.items()):
        value = f"CAST({text.format(i='range')} AS {name})"
        special = " ".join(f"WHEN {k * 97 + 5} THEN CAST({quote(v)} AS {name})" for k, v in enumerate(BOUNDS[name]))
        value = f"CASE range {special} ELSE {value} END"
        if nulls:
            value = f"CASE WHEN hash(range + {number}) % 11 = 0 THEN NULL ELSE {value} END"
        columns.append(f'{value} AS "c{number} {name}"')
    columns.append("'unique text number ' || hash(range) AS unique_text")
    columns.append("CAST(NULL AS INTEGER) AS never")
    columns.append("['plain', 'a/b=c%', 'ä ö', NULL, ''][range % 5 + 1] AS part")
    sql = f"SELECT {', '.join(columns)} FROM range({start}, {start + rows})"
    duckdb.connect().execute(f"COPY ({sql}) TO {quote(path)} (ROW_GROUP_SIZE 2048)")


def rewrite(*arguments):
    return run_stachio(["rewrite", *arguments, "--progress", "never"])


def pattern_of(path):
    return os.path.join(path, "*.parquet") if os.path.isdir(path) else path


def check_same(source, target, ordered=True):
    """Types, values and order, by DuckDB."""
    connection = duckdb.connect()
    source, target = (quote(pattern_of(path)) for path in (source, target))

    def described(path):
        return [row[:2] for row in connection.execute(f"DESCRIBE SELECT * FROM {path}").fetchall()]

    require(described(source) == described(target), f"{described(source)}\nbecame {described(target)}")
    if ordered:
        rows = "SELECT row_number() OVER () AS row_number, * FROM read_parquet({})"
        both = f"({rows.format(source)}) EXCEPT ALL ({rows.format(target)})"
    else:
        both = f"(SELECT * FROM {source}) EXCEPT ALL (SELECT * FROM {target})"
    missing = connection.execute(f"SELECT * FROM ({both}) LIMIT 3").fetchall()
    require(not missing, f"rows are missing or elsewhere: {missing}")
    counts = [connection.execute(f"SELECT count(*) FROM {path}").fetchone()[0] for path in (source, target)]
    require(counts[0] == counts[1], f"{counts[0]} rows became {counts[1]}")


def check_arrow(source, target):
    """Types and values by pyarrow."""
    before, after = pq.read_table(source), pq.read_table(target)
    for name in before.column_names:
        require(before.schema.field(name).type == after.schema.field(name).type,
                f"{name}: {before.schema.field(name).type} became {after.schema.field(name).type}")
        left, right = before[name].combine_chunks(), after[name].combine_chunks()
        if pa.types.is_floating(left.type):  # NaN equals nothing
            left, right = left.fill_null(7.5).cast(pa.float64()), right.fill_null(7.5).cast(pa.float64())
            same = [a == b or (a != a and b != b) for a, b in zip(left.to_pylist(), right.to_pylist())]
            require(all(same) and len(left) == len(right), f"{name}: values differ")
        else:
            require(left.equals(right), f"{name}: values differ")


def check_stachio(source, target):
    """The same rows by stachio itself."""
    tables = ["-t", f"a={pattern_of(source)}", "-t", f"b={pattern_of(target)}", "--fallback", "forbid", "--format", "csv"]
    for left, right in ("ab", "ba"):
        rows = run_stachio([*tables, "-c", f"SELECT * FROM {left} EXCEPT ALL SELECT * FROM {right}"]).answer().rows
        require(not rows, f"only in {left}: {rows[:3]}")


def check_statistics(path):
    """Bounds and null counts of every row group, and of pages where there is an index, hold for the rows."""
    file = pq.ParquetFile(path)
    for g in range(file.metadata.num_row_groups):
        group, table = file.metadata.row_group(g), file.read_row_group(g)
        for c in range(group.num_columns):
            chunk, column = group.column(c), table.column(c).combine_chunks()
            values = [v for v in column.to_pylist() if v is not None]
            name = f"row group {g}, column {column.type} {file.schema_arrow.names[c]}"
            require(chunk.statistics.null_count == column.null_count, f"{name}: null count")
            has_nan = any(v != v for v in values)
            if not values or has_nan:
                require(not chunk.statistics.has_min_max, f"{name}: bounds of {'NaN' if has_nan else 'nothing'}")
                continue
            if not chunk.statistics.has_min_max:
                require(max(map(len, values)) > 64, f"{name}: no bounds")
                continue
            low, high = chunk.statistics.min, chunk.statistics.max
            if isinstance(values[0], str) and max(map(len, map(str.encode, values))) > 64:
                require(low <= min(values) and max(values) <= high, f"{name}: {low!r} to {high!r}")
            else:
                require((low, high) == (min(values), max(values)), f"{name}: {low!r} to {high!r}, not "
                        f"{min(values)!r} to {max(values)!r}")


def layout(path):
    """Row groups, their rows, and encodings by column."""
    meta = pq.read_metadata(path)
    return [meta.row_group(g).num_rows for g in range(meta.num_row_groups)], {
        meta.row_group(0).column(c).path_in_schema: meta.row_group(0).column(c).encodings
        for c in range(meta.num_columns)} if meta.num_row_groups else {}


# ---- values ----


def check_types(scratch, rows, nulls):
    source, target = (os.path.join(scratch, f"types_{rows}_{nulls}_{end}.parquet") for end in ("in", "out"))
    make_types(source, rows, nulls)
    rewrite(source, "-o", target, "--row-group-rows", "7000").succeeded()
    check_same(source, target)
    check_arrow(source, target)
    check_stachio(source, target)
    check_statistics(target)


def check_combination(scratch, source, encoding, compression, version):
    name = f"{encoding}_{compression}_{version}"
    target = os.path.join(scratch, f"{name}.parquet")
    extra = ["--checksums"] if compression in ("none", "zstd") else []
    rewrite(source, "-o", target, "--encoding", encoding, "--compression", compression, "--page-version", version,
            "--row-group-rows", "6000", "--pages", "3", *extra).succeeded()
    check_same(source, target)
    check_arrow(source, target)
    check_stachio(source, target)
    meta = pq.read_metadata(target)
    used = {meta.row_group(0).column(c).compression for c in range(meta.num_columns)}
    wanted = {"none": "UNCOMPRESSED", "lz4": "LZ4"}.get(compression, compression.upper())
    require(wanted in used and used <= {wanted, "UNCOMPRESSED"}, f"{name}: compressed as {used}")
    encodings = {e for c in range(meta.num_columns) for e in meta.row_group(0).column(c).encodings}
    if encoding == "v2":
        require({"DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "BYTE_STREAM_SPLIT", "RLE"} <= encodings and
                "RLE_DICTIONARY" not in encodings, f"{name}: {encodings}")
    if encoding == "plain":
        require(encodings <= {"PLAIN", "RLE"}, f"{name}: {encodings}")
    if encoding in ("dictionary", "auto"):
        require("RLE_DICTIONARY" in encodings, f"{name}: {encodings}")
    shutil.rmtree(target, ignore_errors=True)


def check_sizes(scratch):
    """auto is the smallest for each column."""
    source = os.path.join(scratch, "sizes.parquet")
    sql = ("SELECT range AS up, range // 100 AS runs, hash(range) % 7 AS few, hash(range) % 100000000 AS many, "
           "'t' || hash(range) % 20 AS word, hash(range)::VARCHAR AS words, random() AS r, range % 5 = 0 AS flag "
           "FROM range(50000)")
    duckdb.connect().execute(f"COPY ({sql}) TO {quote(source)}")
    sizes = {}
    for encoding in ENCODINGS:
        target = os.path.join(scratch, f"sizes_{encoding}.parquet")
        rewrite(source, "-o", target, "--encoding", encoding).succeeded()
        check_same(source, target)
        group = pq.read_metadata(target).row_group(0)
        sizes[encoding] = [group.column(c).total_compressed_size for c in range(group.num_columns)]
    for c, size in enumerate(sizes["auto"]):
        least = min(sizes[encoding][c] for encoding in ENCODINGS)
        require(size <= 1.02 * least + 100, f"column {c}: auto takes {size} bytes, the best {least}")


def check_wide(scratch):
    source, target = os.path.join(scratch, "wide_in.parquet"), os.path.join(scratch, "wide_out.parquet")
    columns = ", ".join(f"range * {c} AS c{c}, 'v' || range % {c + 1} AS t{c}" for c in range(120))
    duckdb.connect().execute(f"COPY (SELECT {columns} FROM range(3000)) TO {quote(source)}")
    rewrite(source, "-o", target, "--row-group-rows", "1000").succeeded()
    check_same(source, target)
    require(layout(target)[0] == [1000] * 3, f"{layout(target)[0]}")


def check_long_texts(scratch):
    source, target = os.path.join(scratch, "long_in.parquet"), os.path.join(scratch, "long_out.parquet")
    sql = "SELECT range AS id, CASE WHEN range % 10 = 3 THEN NULL ELSE repeat(chr((97 + range % 26)::INTEGER), range * 3000) END AS t"
    duckdb.connect().execute(f"COPY ({sql} FROM range(500)) TO {quote(source)}")
    for encoding in ENCODINGS:
        rewrite(source, "-o", target, "--encoding", encoding, "--force").succeeded()
        check_same(source, target)
        check_statistics(target)


def check_required(scratch):
    """Required columns stay so, others don't become so."""
    source, target = os.path.join(scratch, "required_in.parquet"), os.path.join(scratch, "required_out.parquet")
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
    pq.write_table(pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]}, schema=schema), source)
    for options in ((), ("--sort-by", "b desc")):
        rewrite(source, "-o", target, "--force", *options).succeeded()
        found = pq.read_schema(target)
        require([f.nullable for f in found] == [False, True], f"{options}: {found}")
        check_same(source, target, ordered=not options)


def check_testing_file(path, scratch):
    """Read by the engine: written with DuckDB's values. Else refused by name, and nothing is left."""
    target = os.path.join(scratch, "testing_" + os.path.basename(path))
    run = rewrite(path, "-o", target)
    if run.status != 0:
        require(run.status in (QUERY_ERROR, FILE_ERROR) and not os.path.exists(target) and run.error.strip(), str(run))
        if run.status == FILE_ERROR and REFUSAL_EXPECTED.search(os.path.basename(path)):
            return
        try:
            described = duckdb.connect().execute(f"DESCRIBE SELECT * FROM {quote(path)}").fetchall()
            duckdb.connect().execute(f"SELECT * FROM {quote(path)}").fetchall()
        except duckdb.Error:
            return
        readable = all(ENGINE_TYPE.match(row[1]) for row in described)
        require(not readable, f"{run}\nDuckDB reads it, and all its types are the engine's")
        return
    connection = duckdb.connect()
    left, right = (connection.execute(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {quote(p)}").fetchall() for p in (path, target))
    require(left == right, f"{left[:3]}\nbecame {right[:3]}")
    check_stachio(path, target)


# ---- layout ----


def check_layout(scratch, source):
    target = os.path.join(scratch, "layout.parquet")
    rewrite(source, "-o", target, "--row-group-rows", "5000", "--pages", "2").succeeded()
    rows = layout(target)[0]
    require(rows[:-1] == [5000] * (len(rows) - 1) and 0 < rows[-1] <= 5000, f"row groups of {rows}")
    pages = duckdb.connect().execute(
        f"SELECT max(num_values) FROM parquet_metadata({quote(target)})").fetchone()
    require(pages == (5000,), f"{pages}")


def check_default_row_groups(scratch):
    """Of a table of few million rows: even ones, of a million or so."""
    source, target = os.path.join(scratch, "numbers.parquet"), os.path.join(scratch, "even.parquet")
    n_rows = 2_500_001
    pq.write_table(pa.table({"i": pa.array(range(n_rows), pa.int32())}), source)
    rewrite(source, "-o", target).succeeded()
    rows = layout(target)[0]
    require(len(rows) == 3 and sum(rows) == n_rows and max(rows) - min(rows) < len(rows), f"row groups of {rows}")
    rewrite(source, "-o", f"{target}s", "--files", "2").succeeded()
    rows = [layout(path)[0] for path in sorted(glob.glob(f"{target}s/*.parquet"))]
    require(rows == [[625001, 625000], [625001, 624999]], f"row groups of {rows}")


def check_sorted(scratch, source):
    target = os.path.join(scratch, "sorted.parquet")
    rewrite(source, "-o", target, "--sort-by", '"c3 INTEGER" desc nulls first, unique_text', "--row-group-rows",
            "3000").succeeded()
    check_same(source, target, ordered=False)
    connection = duckdb.connect()
    got = connection.execute(f'SELECT "c3 INTEGER", unique_text FROM {quote(target)}').fetchall()
    wanted = connection.execute(f'SELECT "c3 INTEGER", unique_text FROM {quote(source)} '
                                'ORDER BY 1 DESC NULLS FIRST, 2').fetchall()
    require(got == wanted, "not in that order")
    columns = pq.read_metadata(target).row_group(0).sorting_columns
    require([(c.column_index, c.descending, c.nulls_first) for c in columns] ==
            [(3, True, True), (len(TYPES), False, False)], f"{columns}")
    run = run_stachio(["-t", f"t={target}", "--analyze", "-c", 'SELECT count(*) FROM t WHERE "c3 INTEGER" > 100000000'])
    require(re.search(r"pruned", run.succeeded().out.decode()), str(run))


def check_partitions(scratch, source):
    target = os.path.join(scratch, "parts")
    for column, name in (("part", "VARCHAR"), ("c0 BOOLEAN", "BOOLEAN"), ("c17 DATE", "DATE")):
        rewrite(source, "-o", target, "--partition-by", f'"{column}"', "--sort-by", "unique_text", "--force").succeeded()
        connection = duckdb.connect()
        files = f"read_parquet({quote(target + '/*/*.parquet')}, hive_partitioning = true, hive_types_autocast = false)"
        columns = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {quote(source)}").fetchall()]
        listed = ", ".join(f'CAST("{c}" AS {name}) AS "{c}"' if c == column else f'"{c}"' for c in columns)
        for left, right in itertools.permutations((f"SELECT {listed} FROM {files}", f"SELECT * FROM {quote(source)}")):
            rows = connection.execute(f"SELECT * FROM ({left} EXCEPT ALL {right}) LIMIT 3").fetchall()
            require(not rows, f"{column}: {rows}")
    require(all("=" in name for name in os.listdir(target)), f"{os.listdir(target)}")
    odd = os.path.join(scratch, "a [glob]?{b,c}*\\")  # what the folder is called, not a pattern
    out = rewrite(source, "-o", odd, "--partition-by", f'"{column}"').succeeded().out.decode()
    require(glob.glob(glob.escape(odd) + "/*/*.parquet") and "(folders)" in out, out)


def check_files(scratch, source, rows):
    target = os.path.join(scratch, "files")
    run = rewrite(source, "-o", target, "--files", "3", "--row-group-rows", "1500")
    require(b"row groups" in run.succeeded().out and b"bytes per row" in run.out, str(run))
    check_same(source, target)
    each = [sum(layout(os.path.join(target, name))[0]) for name in sorted(os.listdir(target))]
    require(len(each) == 3 and max(each) == -(-rows // 3), f"files of {each} rows")
    rewrite(source, "-o", target, "--max-file-size", "300kB", "--row-group-rows", "1000", "--force").succeeded()
    check_same(source, target)
    sizes = [os.path.getsize(os.path.join(target, name)) for name in os.listdir(target)]
    require(len(sizes) > 2 and max(sizes) < 330_000, f"files of {sizes} bytes")


def check_directories(scratch):
    """Each file becomes one of its name; several become one where OUT is a file."""
    source, target, one = (os.path.join(scratch, name) for name in ("several", "several_out", "one.parquet"))
    os.makedirs(source)
    for number in range(3):
        make_types(os.path.join(source, f"f{number}.parquet"), 500, start=500 * number)
    rewrite(source, "-o", target).succeeded()
    require(sorted(os.listdir(target)) == sorted(os.listdir(source)), f"{os.listdir(target)}")
    for name in os.listdir(source):
        check_same(os.path.join(source, name), os.path.join(target, name))
    rewrite(os.path.join(source, "f0.parquet"), os.path.join(source, "f[12].parquet"), "-o", one).succeeded()
    check_same(source, one)


def check_in_place(scratch):
    path, copy = os.path.join(scratch, "place.parquet"), os.path.join(scratch, "place_copy.parquet")
    make_types(path, 3000)
    shutil.copy(path, copy)
    os.chmod(path, 0o644)
    rewrite(path, "-o", path, "--force").succeeded()
    check_same(copy, path)


def check_replaced(scratch, source):
    """What is replaced keeps its permissions, and the links that lead to it."""
    directory = os.path.join(scratch, "replaced")
    os.makedirs(os.path.join(directory, "folder"))
    file, folder = os.path.join(directory, "file.parquet"), os.path.join(directory, "folder")
    shutil.copy(source, file)
    os.symlink("file.parquet", os.path.join(directory, "link.parquet"))
    os.symlink("folder", os.path.join(directory, "link"))
    for mode, folder_mode in ((0o640, 0o750), (0o440, 0o550), (0o606, 0o707)):
        for prefix in ("", "link"):
            os.chmod(file, mode)
            os.chmod(folder, folder_mode)
            target = os.path.join(directory, f"{prefix or 'file'}.parquet")
            rewrite(source, "-o", target, "--force", "--pages", "3").succeeded()
            rewrite(source, "-o", os.path.join(directory, prefix or "folder"), "--files", "2", "--force").succeeded()
            found = [stat.S_IMODE(os.stat(path).st_mode) for path in (file, folder)]
            require(found == [mode, folder_mode], f"{prefix}: {[oct(m) for m in found]}")
            check_same(source, file)
            check_same(source, folder)
    require(all(os.path.islink(os.path.join(directory, name)) for name in ("link", "link.parquet")), "a link was replaced")
    require(names_in(directory) == ["file.parquet", "folder", "link", "link.parquet"], f"{names_in(directory)}")


def check_cold(scratch):
    """Row groups that come from the disk in any order are written in theirs."""
    source, target = os.path.join(scratch, "cold_in.parquet"), os.path.join(scratch, "cold_out.parquet")
    duckdb.connect().execute(f"COPY (SELECT range AS id, hash(range)::VARCHAR AS text FROM range(1000000)) "
                             f"TO {quote(source)} (ROW_GROUP_SIZE 20480)")
    for _ in range(3):
        with open(source, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        rewrite(source, "-o", target, "--force", "--threads", "4", "--row-group-rows", "300000").succeeded()
        require(duckdb.connect().execute(
            f"SELECT count(*) FROM (SELECT id, row_number() OVER () - 1 AS r FROM {quote(target)}) WHERE id <> r"
        ).fetchone() == (0,), "rows are not in their order")


# ---- failures ----


def names_in(directory):
    return sorted(os.listdir(directory))


def check_fails(directory, status, wanted, *arguments):
    before = names_in(directory)
    run = rewrite(*arguments)
    require(run.status == status, f"{run}\nnot status {status}")
    require(re.search(wanted, run.error), f"{run}\ndoes not say {wanted}")
    require(names_in(directory) == before, f"{run}\nleft {set(names_in(directory)) - set(before)}")


def check_failures(scratch):
    directory = os.path.join(scratch, "failures")
    os.makedirs(directory)
    good, bad, out = (os.path.join(directory, name) for name in ("good.parquet", "bad.parquet", "out.parquet"))
    make_types(good, 5000)
    data = bytearray(pathlib.Path(good).read_bytes())
    half = pq.read_metadata(good).row_group(1).column(20).data_page_offset
    data[half:half + 40] = b"\xff" * 40
    pathlib.Path(bad).write_bytes(data)
    nested, blob = os.path.join(directory, "nested.parquet"), os.path.join(directory, "blob.parquet")
    duckdb.connect().execute(f"COPY (SELECT [1, 2] AS list_column) TO {quote(nested)}")
    duckdb.connect().execute(f"COPY (SELECT 'x'::BLOB AS blob_column) TO {quote(blob)}")
    full = os.path.join(directory, "full")
    os.makedirs(full)
    pathlib.Path(full, "notes.txt").write_text("keep me", encoding="ascii")
    check_fails(directory, FILE_ERROR, "bad.parquet.*row group 1", bad, "-o", out)
    check_fails(directory, FILE_ERROR, "bad.parquet.*row group 1", bad, "-o", os.path.join(directory, "outs"), "--files", "2")
    check_fails(directory, FILE_ERROR, "bad.parquet", good, bad, "-o", os.path.join(directory, "outs"))
    check_fails(directory, FILE_ERROR, "missing.parquet", os.path.join(directory, "missing.parquet"), "-o", out)
    check_fails(directory, QUERY_ERROR, "to be written.*nested.parquet: .*list_column", nested, "-o", out)
    check_fails(directory, QUERY_ERROR, "to be written.*nested.parquet: .*list_column", good, nested, "-o", os.path.join(directory, "outs"))
    check_fails(directory, QUERY_ERROR, "(?i)blob", blob, "-o", out)
    check_fails(directory, OUTPUT_ERROR, "is there already", good, "-o", good)
    check_fails(directory, OUTPUT_ERROR, "notes.txt", good, "-o", full, "--files", "2", "--force")
    check_fails(directory, OUTPUT_ERROR, "nowhere", good, "-o", os.path.join(directory, "nowhere", "out.parquet"))
    check_fails(directory, USAGE, "no column 'nix'", good, "-o", out, "--sort-by", "nix")
    check_fails(directory, USAGE, "no column 'nix'", good, "-o", os.path.join(directory, "outs"), "--partition-by", "nix")
    check_fails(directory, USAGE, "--encoding", good, "-o", out, "--encoding", "best")
    check_fails(directory, USAGE, "needs files", "-o", out)
    check_fails(directory, USAGE, "would both become", good, good, "-o", directory)
    nul, device = os.path.join(directory, "nul.parquet"), os.path.join(directory, "device")
    pq.write_table(pa.table({"id": [0, 1], "text": ["a", "a\0b"]}), nul)
    os.mkfifo(device)
    check_fails(directory, OUTPUT_ERROR, "NUL byte", nul, "-o", os.path.join(directory, "outs"), "--partition-by", "text")
    check_fails(directory, OUTPUT_ERROR, "device: neither a file nor a directory", good, "-o", device, "--force")
    require(stat.S_ISFIFO(os.lstat(device).st_mode), "the device was replaced")
    check_fails(directory, NO_MEMORY, "out of memory", good, "-o", out, "--memory-limit", "1MB")
    require(pathlib.Path(full, "notes.txt").exists(), "a file of others was removed")


def check_memory(scratch):
    """Row groups are cut short where the limit wants it."""
    source, target = os.path.join(scratch, "memory_in.parquet"), os.path.join(scratch, "memory_out.parquet")
    duckdb.connect().execute(f"COPY (SELECT range AS id, 'some text ' || hash(range) AS text FROM range(1000000)) "
                             f"TO {quote(source)}")
    rewrite(source, "-o", target, "--memory-limit", "64MB").succeeded()
    check_same(source, target)
    require(len(layout(target)[0]) > 2, f"row groups of {layout(target)[0]}")


def check_interrupts(scratch):
    source, directory = os.path.join(scratch, "interrupt.parquet"), os.path.join(scratch, "interrupted")
    duckdb.connect().execute(f"COPY (SELECT range AS id, 'some text ' || hash(range) AS text, hash(range) % 10 AS ten "
                             f"FROM range({300_000 if SANITIZED else 3_000_000})) TO {quote(source)}")
    os.makedirs(directory)
    met = 0
    for number in range(8):
        out = ["-o", os.path.join(directory, "out.parquet")] if number % 2 else [
            "-o", os.path.join(directory, "out"), "--files", "3"]
        process = subprocess.Popen([*stachio_command(), "rewrite", source, *out, "--row-group-rows", "100000",
                                    "--compression", "zstd", "--force"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + random.uniform(0, 0.5)
        while not os.listdir(directory) and process.poll() is None:  # it has begun to write
            time.sleep(0.002)
        time.sleep(max(0, deadline - time.monotonic()))
        process.send_signal(signal.SIGINT)
        out, error = process.communicate()
        left = os.listdir(directory)
        if process.returncode == 0:
            require(all("XXXXXX" not in name and name.startswith("out") for name in left), f"{left}")
        else:
            met += 1
            require(process.returncode == INTERRUPTED and not out, f"status {process.returncode}: {error!r}")
            require(not left, f"left {left}")
        for name in left:
            path = os.path.join(directory, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    require(met, "no interrupt met the writing")


# ---- answers of queries ----


def check_query_output(scratch, source):
    target = os.path.join(scratch, "answer.parquet")

    def ask(sql, *options):
        return run_stachio(["-t", f"t={source}", "--format", "parquet", "-o", target, "-c", sql, *options])

    sql = ('SELECT "c3 INTEGER" AS k, count(*) AS n, sum("c2 SMALLINT") AS s, max("c7 UINTEGER") AS a, '
           'max(unique_text) AS t, NULL AS nothing FROM t GROUP BY 1 ORDER BY 1')
    ask(sql, "--fallback", "forbid").succeeded()
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW t AS SELECT * FROM {quote(source)}")
    wanted = connection.execute(sql).fetchall()
    got = connection.execute(f"SELECT * FROM {quote(target)}").fetchall()
    require([tuple(map(str, row)) for row in got] == [tuple(map(str, row)) for row in wanted], f"{got[:3]}, {wanted[:3]}")
    types = [row[1] for row in connection.execute(f"DESCRIBE SELECT * FROM {quote(target)}").fetchall()]
    require(types[:5] == ["INTEGER", "BIGINT", "DECIMAL(38,0)", "UINTEGER", "VARCHAR"], f"{types}")
    ask("SELECT 1 AS one WHERE false", "--fallback", "forbid").succeeded()
    require(connection.execute(f"SELECT * FROM {quote(target)}").fetchall() == [], "rows of an empty answer")
    run = ask("SELECT row_number() OVER (ORDER BY unique_text) AS r, ['a'] AS l, unique_text FROM t").succeeded()
    require("DuckDB answers" in run.error, str(run))
    require(connection.execute(f"SELECT max(r), count(DISTINCT unique_text) FROM {quote(target)}").fetchone() ==
            connection.execute("SELECT count(*), count(DISTINCT unique_text) FROM t").fetchone(), "DuckDB's answer")
    before = pathlib.Path(target).read_bytes()
    for statement, status, wanted in (
            ("SELECT INTERVAL 1 DAY AS i", QUERY_ERROR, "column i: INTERVAL"),
            ("SELECT CAST(1 AS UHUGEINT) AS u", QUERY_ERROR, "column u: UHUGEINT"),
            ("SELECT 170141183460469231731687303715884105727::HUGEINT AS h", QUERY_ERROR, "column h: a HUGEINT"),
            ("SELECT sum(x) OVER () AS h FROM (SELECT 1::HUGEINT AS x)", QUERY_ERROR, "column h: HUGEINT"),
            ("SELECT 1; SELECT 2", USAGE, "one answer"), ("SET threads = 1", USAGE, "no statement"),
            ("SELECT nix", QUERY_ERROR, "nix")):
        run = ask(statement)
        require(run.status == status and re.search(wanted, run.error), f"{run}\nnot {status}, {wanted}")
        require(pathlib.Path(target).read_bytes() == before, f"{statement} changed the file")
    left = [name for name in os.listdir(scratch) if name.startswith("answer.parquet.")]
    require(not left, f"left {left}")


def check_tpch(scratch):
    """All tables, with other settings for each."""
    source, target = os.path.join(scratch, "tpch"), os.path.join(scratch, "tpch_out")
    run_stachio(["tpch", "generate", "--sf", "0.01", "-o", source]).succeeded()
    rewrite(source, "-o", target, "--row-group-rows", "20000").succeeded()
    for name in sorted(os.listdir(source)):
        check_same(os.path.join(source, name), os.path.join(target, name))
        check_stachio(os.path.join(source, name), os.path.join(target, name))
    run = run_stachio(["tpch", "run", "-d", target, "--compare", "duckdb", "--fallback", "forbid"])
    require(b" no" not in run.succeeded().out, str(run))


def main():
    checks = Checks()
    random.seed(int(os.environ.get("RANDOM_SEED", "1")))
    with scratch_directory() as scratch:
        source = os.path.join(scratch, "source.parquet")
        make_types(source, 12345)
        jobs = [(f"types, {rows} rows, {'with' if nulls else 'no'} nulls",
                 lambda rows=rows, nulls=nulls: check_types(scratch, rows, nulls))
                for rows in (0, 1, 2049, 20000) for nulls in (True, False)]
        jobs += [(" ".join(c), lambda c=c: check_combination(scratch, source, *c))
                 for c in itertools.product(ENCODINGS, COMPRESSIONS, ("1", "2"))]
        testing = pathlib.Path(os.environ.get("PARQUET_TESTING") or "/nowhere")
        jobs += [(f"parquet-testing {path.name}", lambda path=path: check_testing_file(str(path), scratch))
                 for path in sorted(testing.glob("*.parquet"))]
        jobs += [(check.__name__, lambda check=check: check(scratch)) for check in (
            check_sizes, check_wide, check_long_texts, check_required, check_directories, check_in_place, check_cold,
            check_failures, check_memory, check_tpch, check_default_row_groups)]
        jobs += [(check.__name__, lambda check=check: check(scratch, source)) for check in (
            check_layout, check_sorted, check_partitions, check_query_output, check_replaced)]
        jobs += [("check_files", lambda: check_files(scratch, source, 12345))]
        checks.run_all(jobs)
        with checks.case("interrupts"):
            check_interrupts(scratch)
    checks.finish()


if __name__ == "__main__":
    main()
