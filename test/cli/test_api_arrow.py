"""The library through its public header: Arrow streams, errors, cancellation, progress, reports, life times."""

import ctypes
import decimal
import os
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

from check import SANITIZED, Checks, require, scratch_directory, skip
from oracle import stachio_command

import duckdb
import pyarrow
import pyarrow.parquet

OK, QUERY, USAGE, FILE, CANCELLED, UNSUPPORTED = 0, 1, 2, 3, 6, 7
AUTO, STACHIO, DUCKDB = 0, 1, 2


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("text", ctypes.c_char * 2048)]


class Options(ctypes.Structure):
    _fields_ = [("size_bytes", ctypes.c_size_t), ("threads", ctypes.c_int), ("memory_limit_bytes", ctypes.c_uint64),
                ("device", ctypes.c_int), ("engine", ctypes.c_int)]


class Column(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_char_p)]


class Progress(ctypes.Structure):
    _fields_ = [("total_rows", ctypes.c_int64), ("done_rows", ctypes.c_int64), ("pruned_rows", ctypes.c_int64),
                ("read_bytes", ctypes.c_int64), ("seconds", ctypes.c_double), ("host_cache_bytes", ctypes.c_int64),
                ("device_cache_bytes", ctypes.c_int64), ("device_read_bytes", ctypes.c_int64)]


class Operator(ctypes.Structure):
    _fields_ = [("pipeline", ctypes.c_int), ("name", ctypes.c_char_p), ("rows", ctypes.c_int64),
                ("batches", ctypes.c_int64), ("seconds", ctypes.c_double)]


class Report(ctypes.Structure):
    _fields_ = [("engine", ctypes.c_int), ("fallback_reason", ctypes.c_char_p), ("threads", ctypes.c_int),
                ("plan_seconds", ctypes.c_double), ("execute_seconds", ctypes.c_double),
                ("peak_memory_bytes", ctypes.c_int64), ("progress", Progress),
                ("operators", ctypes.POINTER(Operator)), ("n_operators", ctypes.c_int),
                ("device", ctypes.c_char_p), ("device_reason", ctypes.c_char_p), ("network", ctypes.c_char_p),
                ("ranks", ctypes.c_void_p), ("n_ranks", ctypes.c_int), ("peak_device_memory_bytes", ctypes.c_int64),
                ("gds_reason", ctypes.c_char_p),
                ("what_later_headers_add", ctypes.c_char * 512)]


class Order(ctypes.Structure):
    _fields_ = [("column", ctypes.c_int), ("descending", ctypes.c_int), ("nulls_first", ctypes.c_int)]


class WriteOptions(ctypes.Structure):
    _fields_ = [("size_bytes", ctypes.c_size_t), ("row_group_rows", ctypes.c_int64), ("pages", ctypes.c_int),
                ("page_version", ctypes.c_int), ("checksums", ctypes.c_int), ("encoding", ctypes.c_int),
                ("compression", ctypes.c_int), ("file_rows", ctypes.c_int64), ("file_bytes", ctypes.c_int64),
                ("n_partition", ctypes.c_int), ("orders", ctypes.POINTER(Order)), ("n_orders", ctypes.c_int)]


class Stream(ctypes.Structure):
    _fields_ = [("callbacks", ctypes.c_void_p * 4), ("private_data", ctypes.c_void_p)]


POINTER = ctypes.c_void_p
SIGNATURES = {
    "stachio_open": (ctypes.c_int, [POINTER, POINTER, POINTER]),
    "stachio_close": (None, [POINTER]),
    "stachio_set_engine": (ctypes.c_int, [POINTER, ctypes.c_int]),
    "stachio_add_directory": (ctypes.c_int, [POINTER, ctypes.c_char_p, POINTER]),
    "stachio_add_table": (ctypes.c_int, [POINTER, ctypes.c_char_p, ctypes.c_char_p, POINTER]),
    "stachio_tables": (ctypes.c_int, [POINTER, POINTER]),
    "stachio_describe": (ctypes.c_int, [POINTER, ctypes.c_char_p, POINTER, POINTER, POINTER]),
    "stachio_query_create": (ctypes.c_int, [POINTER, ctypes.c_char_p, POINTER, POINTER]),
    "stachio_query_destroy": (None, [POINTER]),
    "stachio_query_explain": (ctypes.c_int, [POINTER, POINTER, POINTER]),
    "stachio_query_execute": (ctypes.c_int, [POINTER, POINTER]),
    "stachio_write_options_init": (None, [POINTER]),
    "stachio_query_write": (ctypes.c_int, [POINTER, ctypes.c_char_p, POINTER, POINTER]),
    "stachio_query_stream": (ctypes.c_int, [POINTER, POINTER, POINTER]),
    "stachio_query_cancel": (None, [POINTER]),
    "stachio_query_progress": (None, [POINTER, POINTER]),
    "stachio_query_report": (None, [POINTER, POINTER]),
}


def load_library():
    directory = os.environ.get("BUILD_DIR") or os.path.dirname(stachio_command()[0])
    library = ctypes.CDLL(os.path.join(directory, "libstachio.so"))
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Database:
    def __init__(self, library, directory, **options):
        self.library, self.error, self.handle = library, Error(), POINTER()
        given = Options(ctypes.sizeof(Options), **options)
        self.check(library.stachio_open(ctypes.byref(given), ctypes.byref(self.handle), ctypes.byref(self.error)))
        if directory:
            self.check(library.stachio_add_directory(self.handle, directory.encode(), ctypes.byref(self.error)))

    def check(self, status):
        require(status == OK, f"status {status}: {self.error.text.decode()}")

    def query(self, sql):
        query = POINTER()
        self.check(self.library.stachio_query_create(self.handle, sql.encode(), ctypes.byref(query), None))
        return query

    def execute(self, query):
        return self.library.stachio_query_execute(query, ctypes.byref(self.error))

    def stream(self, query):
        """The answer as a reader, which owns the stream."""
        stream = Stream()
        self.check(self.library.stachio_query_stream(query, ctypes.byref(stream), ctypes.byref(self.error)))
        return pyarrow.RecordBatchReader._import_from_c(ctypes.addressof(stream))

    def table(self, sql):
        query = self.query(sql)
        try:
            self.check(self.execute(query))
            return self.stream(query).read_all()
        finally:
            self.library.stachio_query_destroy(query)

    def close(self):
        self.library.stachio_close(self.handle)


def check_values(library, directory):
    db = Database(library, directory)
    table = db.table("SELECT * FROM t ORDER BY id")
    table.validate(full=True)
    expected = duckdb.execute(f"SELECT * FROM '{directory}/t.parquet' ORDER BY id").to_arrow_table()
    require(table.schema.equals(expected.schema), f"{table.schema}\nis not\n{expected.schema}")
    require(table.equals(expected), f"{table.to_pylist()}\nis not\n{expected.to_pylist()}")
    empty = db.table("SELECT id, text FROM t WHERE id > 99999999")
    require(empty.num_rows == 0 and empty.column_names == ["id", "text"], str(empty))
    total = db.table("SELECT sum(id) AS s FROM t").column(0).to_pylist()
    require(total == [decimal.Decimal(sum(range(5000)))], str(total))
    db.close()


def check_fallback(library, directory):
    db = Database(library, directory)
    query = db.query("SELECT list(id ORDER BY id) AS ids FROM t WHERE id < 3")
    db.check(db.execute(query))
    report = Report()
    library.stachio_query_report(query, ctypes.byref(report))
    require(report.engine == DUCKDB and b"list" in report.fallback_reason, str(report.fallback_reason))
    require(db.stream(query).read_all().to_pydict() == {"ids": [[0, 1, 2]]}, "DuckDB's answer")
    library.stachio_query_destroy(query)
    library.stachio_set_engine(db.handle, STACHIO)
    query = db.query("SELECT list(id) FROM t")
    require(db.execute(query) == UNSUPPORTED and b"list" in db.error.text, db.error.text.decode())
    library.stachio_query_destroy(query)
    library.stachio_set_engine(db.handle, DUCKDB)
    require(db.table("SELECT count(*) AS n FROM t").to_pydict() == {"n": [5000]}, "DuckDB alone")
    db.close()


def check_life_times(library, directory):
    """A stream outlives query and database, and arrays the stream."""
    for engine in (AUTO, DUCKDB):
        db = Database(library, directory, engine=engine)
        query = db.query("SELECT id, text FROM t ORDER BY id")
        db.check(db.execute(query))
        reader = db.stream(query)
        library.stachio_query_destroy(query)
        db.close()
        batch = reader.read_next_batch()
        reader.close()
        del reader
        require(batch.column(0)[0].as_py() == 0 and batch.column(1)[1].as_py() == "text 1", str(batch))


def check_errors(library, directory):
    db = Database(library, directory)
    query = db.query("SELECT no_such_column FROM t")
    require(db.execute(query) == QUERY and b"no_such_column" in db.error.text, db.error.text.decode())
    stream = Stream()
    require(library.stachio_query_stream(query, ctypes.byref(stream), None) == USAGE, "a failed query has an answer")
    library.stachio_query_destroy(query)
    status = library.stachio_add_table(db.handle, b"x", b"/nowhere/*.parquet", ctypes.byref(db.error))
    require(status == FILE and b"/nowhere" in db.error.text, db.error.text.decode())
    handle = POINTER()
    for wrong in (Options(0), Options(ctypes.sizeof(Options), -1), Options(ctypes.sizeof(Options), device=7)):
        status = library.stachio_open(ctypes.byref(wrong), ctypes.byref(handle), ctypes.byref(db.error))
        require(status == USAGE, "wrong options are taken")
    library.stachio_set_engine(db.handle, STACHIO)
    for wrong in (-1, 3):
        require(library.stachio_set_engine(db.handle, wrong) == USAGE, f"engine {wrong} is taken")
    query = db.query("SELECT list(id) FROM t")
    require(db.execute(query) == UNSUPPORTED, "the engine is another one")
    library.stachio_query_destroy(query)
    db.close()


def write(library, db, path, column, n_partition=0, n_orders=1):
    """Of an answer with two columns."""
    options = WriteOptions()
    library.stachio_write_options_init(ctypes.byref(options))
    options.n_partition, options.n_orders = n_partition, n_orders
    options.orders = (Order * 1)(Order(column, 1, 0)) if column is not None else None
    query = db.query("SELECT text, id FROM t ORDER BY id DESC LIMIT 3")
    status = library.stachio_query_write(query, path.encode(), ctypes.byref(options), ctypes.byref(db.error))
    library.stachio_query_destroy(query)
    return status, db.error.text.decode()


def check_orders(library, directory):
    db, path = Database(library, directory), os.path.join(directory, "..", "orders-told.parquet")
    for column, n_partition in ((-1, 0), (2, 0), (2**31 - 1, 0), (0, 1), (2, 1)):
        status, text = write(library, db, path, column, n_partition)
        require(status == USAGE and f"column {column} is not" in text and not os.path.exists(path), f"{column}: {status}: {text}")
    for column, n_orders in ((0, -1), (None, 1)):
        status, text = write(library, db, path, column, n_orders=n_orders)
        require(status == USAGE and "n_orders" in text, f"{n_orders}: {status}: {text}")
    require(write(library, db, path, 1)[0] == OK, db.error.text.decode())
    told = pyarrow.parquet.read_metadata(path).row_group(0).sorting_columns
    require([(order.column_index, order.descending) for order in told] == [(1, True)], str(told))
    db.close()


def check_catalog(library, directory):
    db = Database(library, directory)
    names = ctypes.POINTER(ctypes.c_char_p)()
    n = library.stachio_tables(db.handle, ctypes.byref(names))
    require([names[i] for i in range(n)] == [b"big", b"t"], str([names[i] for i in range(n)]))
    columns, count = ctypes.POINTER(Column)(), ctypes.c_int()
    db.check(library.stachio_describe(db.handle, b"t", ctypes.byref(columns), ctypes.byref(count),
                                      ctypes.byref(db.error)))
    found = [(columns[i].name, columns[i].type) for i in range(count.value)]
    require(found[0] == (b"id", b"BIGINT") and (b"money", b"DECIMAL(15,2)") in found, str(found))
    db.close()


def check_report(library, directory):
    db = Database(library, directory, threads=2)
    query, progress, report = db.query("SELECT text, count(*) FROM t GROUP BY text"), Progress(), Report()
    library.stachio_query_progress(query, ctypes.byref(progress))
    require(progress.seconds == 0 and progress.total_rows == 0, "progress before it begins")
    db.check(db.execute(query))
    library.stachio_query_report(query, ctypes.byref(report))
    require(report.engine == STACHIO and report.threads == 2 and not report.fallback_reason, "who answered")
    require(report.progress.total_rows == 5000 and report.progress.done_rows == 5000, "rows of the scan")
    require(report.progress.read_bytes > 0 and report.peak_memory_bytes > 0, "bytes")
    operators = [(report.operators[i].name.decode(), report.operators[i].rows) for i in range(report.n_operators)]
    require(any("SCAN" in name and rows == 5000 for name, rows in operators), str(operators))
    text = ctypes.c_char_p()
    db.check(library.stachio_query_explain(query, ctypes.byref(text), ctypes.byref(db.error)))
    require(b"AGGREGATE" in text.value, text.value.decode())
    library.stachio_query_destroy(query)
    db.close()


def check_cancel(library, directory):
    sql = "SELECT sum(a.i % 7 * b.i) FROM big a, big b WHERE a.i + b.i <> 3"
    for engine in (STACHIO, DUCKDB):
        db = Database(library, directory, engine=engine)
        query = db.query(sql)
        started = time.monotonic()
        timer = threading.Timer(0.5, lambda: library.stachio_query_cancel(query))
        timer.start()
        status = db.execute(query)
        timer.join()
        ended = time.monotonic()
        require(status == CANCELLED, f"engine {engine}: status {status}: {db.error.text.decode()}")
        require(ended - started < 5, f"engine {engine}: ended after {ended - started:.2f} s")
        library.stachio_query_destroy(query)
        early = db.query("SELECT 1")
        library.stachio_query_cancel(early)
        require(db.execute(early) == CANCELLED, "a query cancelled before it begins runs")
        library.stachio_query_destroy(early)
        require(db.table("SELECT 1 AS one").to_pydict() == {"one": [1]}, "no query after a cancelled one")
        db.close()


def check_threads(library, directory):
    """Queries of several threads on one database wait for each other."""
    db, answers = Database(library, directory), []

    def ask(number):
        answers.append(db.table(f"SELECT count(*) + {number} AS n FROM t").column(0)[0].as_py() - number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    require(answers == [5000] * 8, str(answers))
    db.close()


def make_tables(directory):
    os.makedirs(directory)
    null = "CASE WHEN id % 7 = 3 THEN NULL ELSE {} END AS {}"
    columns = {"flag": "id % 2 = 0", "tiny": "(id % 100)::TINYINT", "ushort": "(id % 65536)::USMALLINT",
               "int": "id::INTEGER", "ubig": "id::UBIGINT", "single": "(id / 3)::FLOAT", "double": "id / 7",
               "money": "(id / 100)::DECIMAL(15, 2)", "wide": "(id * 1000000007)::DECIMAL(38, 5)",
               "day": "DATE '2020-01-01' + id::INTEGER", "moment": "TIMESTAMP '2020-01-01' + INTERVAL (id) SECOND",
               "text": "'text ' || id", "longer": "repeat('x', id::INTEGER % 40)"}
    select = ", ".join(["id", "'text ' || id AS text"] +
                       [null.format(value, name) for name, value in columns.items() if name != "text"])
    duckdb.execute(f"COPY (SELECT {select} FROM range(5000) r(id)) TO '{directory}/t.parquet'")
    duckdb.execute(f"COPY (SELECT range AS i FROM range(200000)) TO '{directory}/big.parquet'")


def main():
    if SANITIZED:
        skip("a sanitizer can't be loaded into Python")
    checks, library = Checks(), load_library()
    with scratch_directory() as scratch:
        directory = os.path.join(scratch, "tables")
        make_tables(directory)
        for check in (check_values, check_fallback, check_life_times, check_errors, check_catalog, check_report,
                      check_cancel, check_threads, check_orders):
            with checks.case(check.__name__.removeprefix("check_")):
                check(library, directory)
    checks.finish()


if __name__ == "__main__":
    main()
