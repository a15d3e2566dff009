"""Random tables: every column type, nulls, duplicates, skew, several row groups and files, one row, no row.

All tables have the same columns (in different orders) over the same small domains, so that any two can be joined.
"""

import datetime
import decimal
import os
import random
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

WORDS = [*(f"key {i}" for i in range(40)), "", "a", "A", "a_b%c", "100%", "Ünïcödé ✓", "ÜNÏCÖDÉ",
         "exactly 12 b", "a text of more than twelve bytes", "x" * 300]
UNUSUAL = [float("nan"), float("inf"), float("-inf"), 1e300, -1e-300, 0.1, 0.0, 2.5, -7.0]
FIRST_DAY = datetime.date(2019, 12, 20)


def exact_decimal(unscaled, scale):
    return decimal.Decimal(unscaled).scaleb(-scale, decimal.Context(prec=40))


def skewed(rng, size):
    """A number below size; small numbers are much more likely."""
    return min(int(rng.expovariate(4.0 / size)), size - 1)


@dataclass
class Column:
    """What queries know of a column. kind: bool, int, float, exact (floats with exact sums), dec, date, ts or str."""

    name: str
    kind: str
    arrow_type: pa.DataType = None
    make: callable = None  # random.Random -> value


COLUMNS = [
    Column("c_bool", "bool", pa.bool_(), lambda rng: rng.random() < 0.4),
    Column("c_i8", "int", pa.int8(), lambda rng: rng.randint(-10, 10)),
    Column("c_i16", "int", pa.int16(), lambda rng: skewed(rng, 100) - 20),
    Column("c_i32", "int", pa.int32(), lambda rng: rng.randint(-50, 50)),
    Column("c_i64", "int", pa.int64(), lambda rng: skewed(rng, 60) * 10**9),
    Column("c_u8", "int", pa.uint8(), lambda rng: rng.randint(0, 9)),
    Column("c_u16", "int", pa.uint16(), lambda rng: skewed(rng, 300)),
    Column("c_u32", "int", pa.uint32(), lambda rng: rng.randint(0, 60)),
    Column("c_u64", "int", pa.uint64(), lambda rng: skewed(rng, 50)),
    Column("c_f32", "exact", pa.float32(), lambda rng: rng.randint(-40, 40) / 4),
    Column("c_f64", "exact", pa.float64(), lambda rng: rng.randint(-400, 400) / 8),
    Column("c_wild", "float", pa.float64(), lambda rng: rng.choice(UNUSUAL) if rng.random() < 0.4 else rng.gauss(0, 9)),
    Column("c_dec4", "dec", pa.decimal128(4, 1), lambda rng: exact_decimal(rng.randint(-500, 500), 1)),
    Column("c_dec9", "dec", pa.decimal128(9, 2), lambda rng: exact_decimal(skewed(rng, 9000), 2)),
    Column("c_dec18", "dec", pa.decimal128(18, 3), lambda rng: exact_decimal(rng.randint(-50, 50) * 12345678, 3)),
    Column("c_dec38", "dec", pa.decimal128(38, 6), lambda rng: exact_decimal(rng.randint(-50, 50) * 10**25 + 1, 6)),
    Column("c_date", "date", pa.date32(), lambda rng: FIRST_DAY + datetime.timedelta(days=skewed(rng, 400))),
    Column("c_ts", "ts", pa.timestamp("us"), lambda rng: datetime.datetime(2020, 1, 1) + datetime.timedelta(
        hours=rng.randint(-99, 99), microseconds=rng.choice([0, 0, 1, 500000]))),
    Column("c_str", "str", pa.string(), lambda rng: WORDS[skewed(rng, len(WORDS))]),
    Column("c_text", "str", pa.string(), lambda rng: f"{rng.choice(WORDS[:40])} {rng.getrandbits(20):x}"),
]
ID = Column("id", "int")
KEY = Column("k", "int")
# These depend on k alone, so that any_value() of them per k is one value.
DEPENDENTS = [Column("k_name", "str"), Column("k_square", "int"), Column("k_day", "date")]
ALL_COLUMNS = [ID, KEY, *DEPENDENTS, *COLUMNS]


@dataclass
class Table:
    name: str
    rows: int
    null_share: float = 0.1
    files: int = 1
    row_group_rows: int = 700
    writer_options: tuple = ()


TABLES = [
    Table("big", 4000),
    Table("mid", 500, files=3, row_group_rows=64, writer_options=(("use_dictionary", False), ("compression", "zstd"))),
    Table("small", 30, null_share=0.3),
    Table("dense", 300, null_share=0.0, writer_options=(("data_page_version", "2.0"), ("write_page_index", True))),
    Table("one", 1, null_share=0.0),
    Table("none", 0),
]


def dependents_of(keys):
    def derive(function):
        return [None if key is None else function(key) for key in keys]

    return {
        "k": pa.array(keys, pa.int32()),
        "k_name": pa.array(derive(lambda key: f"name {key}"), pa.string()),
        "k_square": pa.array(derive(lambda key: key * key), pa.int64()),
        "k_day": pa.array(derive(lambda key: FIRST_DAY + datetime.timedelta(days=key)), pa.date32()),
    }


HEAVY_KEY, HEAVY_SHARE = 7, 0.5


def make_rows(table, seed, heavy=False):
    """heavy: one key has half of the rows."""
    rng = random.Random(f"{seed} {table.name}")

    def value_or_null(make):
        return None if rng.random() < table.null_share else make(rng)

    keys = [value_or_null(lambda rng: skewed(rng, 120)) for _ in range(table.rows)]
    if heavy:
        keys = [HEAVY_KEY if rng.random() < HEAVY_SHARE else key for key in keys]
    arrays = {"id": pa.array(range(table.rows), pa.int64()), **dependents_of(keys)}
    for column in COLUMNS:
        values = [value_or_null(column.make) for _ in range(table.rows)]
        arrays[column.name] = pa.array(values, column.arrow_type)
    names = list(arrays)
    rng.shuffle(names)
    return pa.table({name: arrays[name] for name in names})


def write_rank_files(directory, seed, ranks):
    """The tables, each with a heavy key, in pieces: rank r's are in directory/rank-r. Ranks have many rows, few, none in a
    file, or no file."""
    rng = random.Random(f"{seed} ranks")
    for rank in range(ranks):
        os.makedirs(os.path.join(directory, f"rank-{rank}"))
    for table in TABLES:
        rows = make_rows(table, seed, heavy=True)
        cuts = [0, *sorted(rng.choice([0, rng.randint(0, table.rows), table.rows]) for _ in range(ranks - 1)), table.rows]
        owner = rng.randrange(ranks)  # has a file in any case
        for rank in range(ranks):
            piece = rows.slice(cuts[rank], cuts[rank + 1] - cuts[rank])
            if len(piece) or rank == owner:
                pq.write_table(piece, os.path.join(directory, f"rank-{rank}", f"{table.name}.parquet"),
                               row_group_size=table.row_group_rows, **dict(table.writer_options))


def write_tables(directory, seed):
    """Leaves each table as directory/NAME.parquet, or as files in directory/NAME."""
    os.makedirs(directory, exist_ok=True)
    for table in TABLES:
        rows = make_rows(table, seed)
        options = {"row_group_size": table.row_group_rows, **dict(table.writer_options)}
        if table.files == 1:
            pq.write_table(rows, os.path.join(directory, f"{table.name}.parquet"), **options)
            continue
        os.makedirs(os.path.join(directory, table.name), exist_ok=True)
        share = -(-table.rows // table.files)
        for number in range(table.files):
            path = os.path.join(directory, table.name, f"part-{number}.parquet")
            pq.write_table(rows.slice(number * share, share), path, **options)
