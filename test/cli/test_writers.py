"""Small files by pyarrow and DuckDB, over every type, encoding, codec and page form, give DuckDB's values."""

import datetime
import decimal
import functools
import os
import pathlib
import random
import sys
from dataclasses import dataclass

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from check import Checks, scratch_directory
from oracle import DuckDB, Tables, check_equal

SEED = 20
EPOCH = datetime.datetime(1970, 1, 1)
STRINGS = ["", "a", "ab", 'say "hi"', "comma, and\nline", "Ünïcödé ✓", "12 character", "13 characters", "z" * 700]
SPECIAL_FLOATS = [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1e-40, 3e38, 0.1]


def integers(bits, signed):
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)

    def value(rng):
        return rng.choice([low, high, 0, 1]) if rng.random() < 0.05 else rng.randint(low // 4, high // 4)

    return value


def decimals(precision, scale):
    limit = 10**precision - 1
    context = decimal.Context(prec=precision + 2)

    def value(rng):
        unscaled = rng.choice([limit, -limit, 0]) if rng.random() < 0.05 else rng.randint(-limit // 100, limit // 100)
        return decimal.Decimal(unscaled).scaleb(-scale, context)

    return value


def eighths(rng):
    """Floats whose sums are exact, whatever their order."""
    return rng.randint(-8000, 8000) / 8


def special_floats(rng):
    return rng.choice(SPECIAL_FLOATS) if rng.random() < 0.3 else eighths(rng)


def dates(rng):
    if rng.random() < 0.02:
        return rng.choice([datetime.date(1, 1, 1), datetime.date(9999, 12, 31)])
    return datetime.date(1970, 1, 1) + datetime.timedelta(days=rng.randint(-9000, 20000))


def timestamps(step_us):
    def value(rng):
        microseconds = rng.randint(-(10**15), 2 * 10**15)
        return EPOCH + datetime.timedelta(microseconds=microseconds - microseconds % step_us)

    return value


def texts(rng):
    return rng.choice(STRINGS) if rng.random() < 0.2 else f"value {rng.randint(0, 300)}"


def distinct_texts(rng):
    return f"{rng.getrandbits(60):x}"


TYPES = {
    "bool": (pa.bool_(), lambda rng: rng.random() < 0.5),
    **{f"i{bits}": (getattr(pa, f"int{bits}")(), integers(bits, True)) for bits in (8, 16, 32, 64)},
    **{f"u{bits}": (getattr(pa, f"uint{bits}")(), integers(bits, False)) for bits in (8, 16, 32, 64)},
    **{f"dec{p}": (pa.decimal128(p, s), decimals(p, s)) for p, s in ((4, 1), (9, 2), (18, 3), (38, 6))},
    "f32": (pa.float32(), eighths),
    "f64": (pa.float64(), eighths),
    "f32_special": (pa.float32(), special_floats),
    "f64_special": (pa.float64(), special_floats),
    "day": (pa.date32(), dates),
    "ts_s": (pa.timestamp("s"), timestamps(1_000_000)),
    "ts_ms": (pa.timestamp("ms"), timestamps(1000)),
    "ts_us": (pa.timestamp("us"), timestamps(1)),
    "str": (pa.string(), texts),
    "lstr": (pa.large_string(), texts),
    "ustr": (pa.string(), distinct_texts),
}
# Types that the engine may leave to DuckDB.
OTHER_TYPES = {
    "ts_ns": (pa.timestamp("ns"), timestamps(1000)),
    "ts_tz": (pa.timestamp("us", tz="UTC"), timestamps(1)),
    "bin": (pa.binary(), lambda rng: rng.randbytes(rng.randint(0, 5))),
}
INTEGERS = [name for name in TYPES if name[0] in "iu" and name[1:].isdigit()]
DECIMALS = ["dec4", "dec9", "dec18", "dec38"]
FLOATS = ["f32", "f64", "f32_special", "f64_special"]
TEXTS = ["str", "lstr", "ustr"]
SUMMABLE = {*INTEGERS, "dec4", "dec9", "dec18", "f32", "f64"}
KEYS = {"str", "i8", "day", "dec38", "f64_special", "bool"}
FILTERS_PER_QUERY = 48
SMALL_PAGES = {"data_page_size": 256, "write_batch_size": 32}


def make_table(rows=1000, null_share=0.2, types=TYPES, required=False):
    """`id` counts the rows; every other column is random, with nulls, and about a third of its rows are runs."""
    fields, arrays = [pa.field("id", pa.int64(), nullable=False)], [pa.array(range(rows), pa.int64())]
    for name, (arrow_type, make_value) in types.items():
        rng = random.Random(f"{SEED} {name}")
        values = []
        while len(values) < rows:
            value = None if rng.random() < null_share else make_value(rng)
            values += [value] * (rng.randint(2, 40) if rng.random() < 0.02 else 1)
        fields.append(pa.field(name, arrow_type, nullable=not required))
        arrays.append(pa.array(values[:rows], arrow_type))
    return pa.table(arrays, schema=pa.schema(fields))


@dataclass
class Variant:
    """One way to write a table; write(directory) leaves its files there."""

    name: str
    write: callable
    columns: tuple = tuple(TYPES)
    arguments: tuple = ("--fallback", "forbid")
    write_for_duckdb: callable = None  # the same rows in a form that DuckDB can read, where it lacks an encoding


def pyarrow_writer(options=None, **table_options):
    def write(directory):
        pq.write_table(make_table(**table_options), os.path.join(directory, "part.parquet"), **(options or {}))

    return write


def by_pyarrow(name, options=None, **table_options):
    return Variant(f"pyarrow: {name}", pyarrow_writer(options, **table_options))


def encoded(name, encoding, columns, **options):
    """The named columns in one encoding, the others plain."""
    options |= {"use_dictionary": False, "column_encoding": {column: encoding for column in columns}}
    return by_pyarrow(name, options)


def split_integers(name, columns, **options):
    """BYTE_STREAM_SPLIT of other types than floats, which DuckDB does not read."""
    variant = encoded(f"{name}, BYTE_STREAM_SPLIT", "BYTE_STREAM_SPLIT", columns, **options)
    variant.write_for_duckdb = pyarrow_writer()
    return variant


def pyarrow_variants():
    yield by_pyarrow("default")
    yield by_pyarrow("no nulls", null_share=0)
    yield by_pyarrow("all nulls", null_share=1)
    yield by_pyarrow("required columns", null_share=0, required=True)
    yield by_pyarrow("zero rows", rows=0)
    yield by_pyarrow("one row", rows=1, null_share=0)
    yield by_pyarrow("9000 rows", rows=9000)
    yield by_pyarrow("many row groups", {"row_group_size": 37})
    yield by_pyarrow("plain", {"use_dictionary": False})
    yield by_pyarrow("format 1.0", {"version": "1.0"})
    yield by_pyarrow("no statistics", {"write_statistics": False})
    yield by_pyarrow("INT96 timestamps", {"use_deprecated_int96_timestamps": True})
    yield by_pyarrow("page index", {"write_page_index": True, **SMALL_PAGES})
    yield by_pyarrow("page checksums", {"write_page_checksum": True, **SMALL_PAGES})
    yield by_pyarrow("decimals as integers", {"store_decimal_as_integer": True})
    yield by_pyarrow("plain decimals as integers", {"store_decimal_as_integer": True, "use_dictionary": False})
    for page_version in ("1.0", "2.0"):
        yield from page_variants(page_version)


def page_variants(page_version):
    integer_columns = [*INTEGERS, "day", "ts_ms", "ts_us"]
    page = {"data_page_version": page_version}
    tiny = {**page, **SMALL_PAGES}
    as_integers = {**page, "store_decimal_as_integer": True}
    title = f"pages v{page_version[0]}"

    yield by_pyarrow(f"{title}, required columns", page, null_share=0, required=True)
    yield by_pyarrow(f"{title}, tiny pages", tiny)
    yield by_pyarrow(f"{title}, tiny plain pages", {**tiny, "use_dictionary": False})
    yield by_pyarrow(f"{title}, dictionary that overflows", {**tiny, "dictionary_pagesize_limit": 600}, rows=3000)
    for codec in ("none", "snappy", "gzip", "zstd", "lz4", "brotli"):
        yield by_pyarrow(f"{title}, {codec}", {**page, "compression": codec})
    yield encoded(f"{title}, DELTA_BINARY_PACKED", "DELTA_BINARY_PACKED", integer_columns, **page)
    yield encoded(f"{title}, tiny, DELTA_BINARY_PACKED", "DELTA_BINARY_PACKED", integer_columns, **tiny)
    yield encoded(f"{title}, decimals, DELTA_BINARY_PACKED", "DELTA_BINARY_PACKED", DECIMALS[:3], **as_integers)
    yield encoded(f"{title}, DELTA_LENGTH_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", TEXTS, **page)
    yield encoded(f"{title}, DELTA_BYTE_ARRAY", "DELTA_BYTE_ARRAY", TEXTS + DECIMALS, **page)
    yield encoded(f"{title}, BYTE_STREAM_SPLIT", "BYTE_STREAM_SPLIT", FLOATS, **page)
    yield split_integers(f"{title}, integers", [*integer_columns, *DECIMALS], **page)
    yield split_integers(f"{title}, decimals as integers", DECIMALS, **as_integers)
    yield encoded(f"{title}, RLE booleans", "RLE", ["bool"], **page)


def by_duckdb(name, copy_options="", **table_options):
    def write(directory):
        connection = duckdb.connect()
        connection.register("source", make_table(**table_options))
        path = os.path.join(directory, "part.parquet")
        connection.execute(f"COPY source TO '{path}' (FORMAT parquet{copy_options})")

    return Variant(f"DuckDB: {name}", write)


def duckdb_variants():
    yield by_duckdb("default", rows=5000)
    yield by_duckdb("zero rows", rows=0)
    yield by_duckdb("one row", rows=1)
    yield by_duckdb("all nulls", null_share=1)
    yield by_duckdb("small row groups", ", ROW_GROUP_SIZE 2048", rows=9000)
    yield by_duckdb("format V2", ", PARQUET_VERSION V2", rows=5000)
    yield by_duckdb("small dictionary", ", DICTIONARY_SIZE_LIMIT 20", rows=5000)
    for codec in ("uncompressed", "snappy", "gzip", "zstd", "lz4_raw", "brotli"):
        yield by_duckdb(codec, f", COMPRESSION {codec}")


def several_files():
    """Files of one table: their columns in other orders, one file empty, one all null, other writers' defaults."""

    def write(directory):
        shuffled = random.Random(SEED)
        for number, table_options in enumerate([{}, {"rows": 0}, {"null_share": 1}, {"rows": 10}, {"rows": 3000}]):
            table = make_table(**table_options)
            names = table.column_names
            if number:
                shuffled.shuffle(names)
            path = os.path.join(directory, f"part-{number}.parquet")
            if number == 3:
                duckdb.from_arrow(table.select(names)).write_parquet(path)
            else:
                pq.write_table(table.select(names), path, use_dictionary=number != 2)

    return Variant("several files", write)


def other_types():
    return Variant("types that may be left to DuckDB", pyarrow_writer(types=OTHER_TYPES), tuple(OTHER_TYPES), ())


@functools.cache
def literals():
    """Column -> two of its values as SQL, the same for every variant."""
    connection = duckdb.connect()
    connection.register("source", make_table(types=TYPES | OTHER_TYPES))
    found = {}
    for column in TYPES | OTHER_TYPES:
        rows = connection.execute(
            f"SELECT CAST(v AS VARCHAR), typeof(v) FROM (SELECT DISTINCT {column} AS v FROM source) "
            "WHERE v IS NOT NULL ORDER BY v").fetchall()
        column_type = rows[0][1].replace("TIMESTAMP_MS", "TIMESTAMP").replace("TIMESTAMP_S", "TIMESTAMP")
        picked = [rows[len(rows) // 4][0], rows[len(rows) * 3 // 4][0]]
        found[column] = ["CAST('{}' AS {})".format(text.replace("'", "''"), column_type) for text in picked]
    return found


def predicates(column):
    """Every kind of filter that is pushed into a scan."""
    low, high = literals()[column]
    return [
        f"{column} = {low}", f"{column} <> {low}", f"{column} < {high}", f"{column} >= {low}",
        f"{column} BETWEEN {low} AND {high}", f"{column} IN ({low}, {high})", f"{column} NOT IN ({low}, {high})",
        f"{column} IS NULL", f"{column} IS NOT NULL", f"{column} IS DISTINCT FROM {high}",
        f"{column} <= {high} AND id % 3 = 0", f"{column} > {high} OR id < 40",
    ]


def filter_queries(columns):
    """Queries that count the rows of each filter; several filters go into one query, to start fewer processes."""
    counts = ["SELECT '{}' AS filter, count(*) AS n, sum(id) AS ids FROM t WHERE {}".format(
        predicate.replace("'", "''"), predicate) for column in columns for predicate in predicates(column)]
    for first in range(0, len(counts), FILTERS_PER_QUERY):
        yield "\nUNION ALL ".join(counts[first:first + FILTERS_PER_QUERY])


def aggregate_query(columns):
    aggregates = []
    for column in columns:
        functions = ["count", "min", "max"] + (["sum", "avg"] if column in SUMMABLE else [])
        aggregates += [f"{function}({column})" for function in functions] + [f"count(DISTINCT {column})"]
    return f"SELECT {', '.join(aggregates)} FROM t"


def written(write, directory):
    os.makedirs(directory)
    write(directory)
    return Tables(globs={"t": os.path.join(directory, "*.parquet")})


def check_variant(variant, directory):
    tables = written(variant.write, directory)
    duck = DuckDB(written(variant.write_for_duckdb, directory + "-for-duckdb") if variant.write_for_duckdb else tables, in_memory=True)
    keys = sorted(KEYS & set(variant.columns))

    def check(sql, **options):
        check_equal(tables, duck, sql, *variant.arguments, quiet=bool(variant.arguments), **options)

    check("SELECT * FROM t", tolerance=0)
    check("SELECT * FROM t WHERE id BETWEEN 400 AND 410", tolerance=0)
    check(aggregate_query(variant.columns))
    for sql in filter_queries(variant.columns):
        check(sql)
    for key in keys:
        check(f"SELECT * FROM t WHERE {key} = {literals()[key][0]}", tolerance=0)
        check(f"SELECT {key}, count(*) AS n, sum(id) AS ids FROM t GROUP BY {key}")


def main():
    """Arguments, if any: only variants whose names contain one of them."""
    variants = [*pyarrow_variants(), *duckdb_variants(), several_files(), other_types()]
    if sys.argv[1:]:
        variants = [variant for variant in variants if any(part in variant.name for part in sys.argv[1:])]
    checks = Checks()
    with scratch_directory() as scratch:
        checks.run_all([
            (variant.name, functools.partial(check_variant, variant, os.path.join(scratch, str(number))))
            for number, variant in enumerate(variants)])
    checks.finish()


if __name__ == "__main__":
    main()
