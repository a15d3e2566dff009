"""Asks stachio and DuckDB the same question over the same files and compares the answers by value.

An answer holds text: what the CSV contract prints, and what DuckDB's cast to VARCHAR gives; None is NULL.
Text is exact for every type but FLOAT and DOUBLE, which are compared as numbers.
"""

import collections
import errno
import glob
import json
import math
import os
import struct
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field

import duckdb

from check import at_end, require, skip
from server import server_command, servers

FLOAT_TYPES = ("FLOAT", "DOUBLE")
TIMEOUT_S = float(os.environ.get("STACHIO_TEST_TIMEOUT", "300"))
SHOWN_ROWS = 5


@dataclass
class Answer:
    names: list
    rows: list  # tuples of str or None
    types: list = field(default_factory=list)  # DuckDB's type names; empty for stachio's CSV


def signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def settings_text():
    """The variables that decide how stachio runs, in front of its command line as a shell takes them."""
    chosen = ("STACHIO_", "CUDA_EMULATOR_", "NCCL_")
    return "".join(f"{name}={shlex.quote(value)} " for name, value in sorted(os.environ.items()) if name.startswith(chosen))


@dataclass
class Run:
    """A finished stachio process; status is negative when a signal ended it, None when the time was over."""

    arguments: list
    status: int
    out: bytes
    error: str

    def __str__(self):
        if self.status is None:
            end = "no exit status"
        else:
            end = f"exit status {self.status}" if self.status >= 0 else f"ended by {signal_name(-self.status)}"
        return f"{settings_text()}stachio {shlex.join(self.arguments)}\n{end}\nstderr: {self.error.strip()}"

    def succeeded(self):
        require(self.status == 0, str(self))
        return self

    def answer(self):
        return parse_csv(self.succeeded().out.decode("utf-8"))


@dataclass
class Tables:
    """Where tables come from, as stachio's options name it: a directory, or globs by table name."""

    directory: str = None
    globs: dict = field(default_factory=dict)

    def options(self):
        options = ["-d", self.directory] if self.directory else []
        for name, pattern in self.globs.items():
            options += ["-t", f"{name}={pattern}"]
        return options

    def patterns(self):
        """Table name -> glob, as the command line's contract defines it."""
        found = {}
        if self.directory:
            for path in sorted(glob.glob(os.path.join(self.directory, "*.parquet"))):
                found[os.path.basename(path).removesuffix(".parquet")] = path
            for path in sorted(glob.glob(os.path.join(self.directory, "*", "*.parquet"))):
                directory = os.path.dirname(path)
                found[os.path.basename(directory)] = os.path.join(directory, "*.parquet")
        return found | self.globs


def stachio_command():
    command = shlex.split(os.environ.get("STACHIO", ""))
    if not command:
        sys.exit("name the stachio binary in STACHIO")
    return command


def run_stachio(arguments, **popen_options):
    """Runs stachio to its end; a run past the time limit counts as a failure of the case."""
    arguments = [str(argument) for argument in arguments]
    settings = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen_options}
    try:
        done = subprocess.run(stachio_command() + arguments, timeout=TIMEOUT_S, **settings)
    except subprocess.TimeoutExpired:
        require(False, f"stachio {shlex.join(arguments)}\nwas still running after {TIMEOUT_S:.0f} s")
    return Run(arguments, done.returncode, done.stdout or b"", (done.stderr or b"").decode("utf-8", "replace"))


def open_pipe(path, process):
    """For writing, once the process reads it; a process that ends without that is a failure, not a wait without end."""
    while process.poll() is None:
        try:
            return os.fdopen(os.open(path, os.O_WRONLY | os.O_NONBLOCK), "w", encoding="utf-8")
        except OSError as error:
            require(error.errno == errno.ENXIO, str(error))
        time.sleep(0.01)
    require(False, f"status {process.returncode} before the script was read")


def skip_without_device():
    """Where all tests are to run on a GPU and there is none (make test DEVICE=cuda), they are skipped."""
    if os.environ.get("STACHIO_DEVICE") != "cuda":
        return
    run = run_stachio(["-c", "SELECT 1"])
    if run.status == 2 and "device cuda: " in run.error:
        skip(run.error.strip())


skip_without_device()


QUERY_OPTIONS = ("--format", "csv", "--progress", "never")


def query_stachio(tables, sql, *options, **popen_options):
    """In a process of its own."""
    return run_stachio([*tables.options(), "-c", sql, *QUERY_OPTIONS, *options], **popen_options)


at_end.append(servers.end)


def ask_stachio(tables, sql, *options, env=None):
    """The same in a process that answers others too (lib/server.py)."""
    if not server_command():
        return query_stachio(tables, sql, *options, env=env)
    arguments = [str(argument) for argument in (*tables.options(), *QUERY_OPTIONS, *options)]
    status, out, error = servers.ask(arguments, sql, TIMEOUT_S, env)
    run = Run([*arguments, "-c", sql], status, out, error.decode("utf-8", "replace"))
    require(status is not None, f"{run}\nwas still running after {TIMEOUT_S:.0f} s")
    return run


class DuckDB:
    """DuckDB with the same tables as views. Threads may ask it at the same time: each answer has a connection of its own.

    in_memory: with copies of the tables, where many questions are asked about each.
    """

    def __init__(self, tables, in_memory=False):
        # With many threads it does not see some overflows of sums.
        self.connection = duckdb.connect(config={"threads": 2})
        for name, pattern in tables.patterns().items():
            path = pattern.replace("'", "''")
            self.connection.execute(f"CREATE {'TABLE' if in_memory else 'VIEW'} \"{name}\" AS SELECT * FROM read_parquet('{path}')")

    def answer(self, sql, row_limit=None):
        """The answer as text, or None if it has more rows than that; duckdb.Error where DuckDB refuses the query."""
        with self.connection.cursor() as cursor:
            described = cursor.execute(f"DESCRIBE\n{sql}").fetchall()
            names, types = [row[0] for row in described], [row[1] for row in described]
            columns = ", ".join(f"c{i}" for i in range(len(names)))
            texts = ", ".join(f"CAST(c{i} AS VARCHAR)" for i in range(len(names)))
            cursor.execute(f"SELECT {texts} FROM (\n{sql}\n) AS answer({columns})")
            rows = cursor.fetchall() if row_limit is None else cursor.fetchmany(row_limit + 1)
        return None if row_limit is not None and len(rows) > row_limit else Answer(names, rows, types)

    def plan(self, sql):
        """The optimised plan as DuckDB's JSON, as stachio asks for it; None where DuckDB can't give it."""
        self.connection.execute("SET disabled_optimizers = 'column_lifetime,compressed_materialization'")
        text = self.connection.execute("SELECT json_serialize_plan(?, optimize := true)", [sql]).fetchone()[0]
        self.connection.execute("RESET disabled_optimizers")
        plan = json.loads(text)
        return None if plan["error"] else plan["plans"]


# A quoted field or a bare one, and what ends it.
CSV_FIELD = re.compile(r'(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n)')


def parse_csv(text):
    """Parses CSV with a header line. An empty field is NULL, a quoted empty one is the empty string."""
    require(text.endswith("\n"), "the CSV does not end with a line end")
    lines, quoted = [], ""
    for line in text[:-1].split("\n"):
        if not quoted and '"' not in line and "\r" not in line:
            lines.append(tuple(field or None for field in line.split(",")))
            continue
        quoted += line + "\n"
        if quoted.count('"') % 2 == 0:  # no line end within quotes
            lines.append(parse_fields(quoted))
            quoted = ""
    require(not quoted, "the CSV ends within quotes")
    names, rows = ["" if name is None else name for name in lines[0]], lines[1:]
    for row in rows:
        require(len(row) == len(names), f"a CSV row has {len(row)} fields, the header {len(names)}: {row}")
    return Answer(names, rows)


def parse_fields(text):
    """Those of a line, to its end, of which some are quoted."""
    line, position = [], 0
    while position < len(text):
        match = CSV_FIELD.match(text, position)
        require(match and (match[3] == ",") == (match.end() < len(text)), f"malformed CSV at byte {position} of {text[:200]!r}")
        quoted, bare, _ = match.groups()
        line.append(quoted.replace('""', '"') if quoted is not None else bare or None)
        position = match.end()
    return tuple(line)


def as_float32(value):
    """FLOAT texts of different lengths may name the same value."""
    return struct.unpack("f", struct.pack("f", value))[0] if abs(value) < 3.4e38 else value


def equal_values(expected, actual, is_float, tolerance):
    if expected == actual:
        return True
    if not is_float or expected is None or actual is None:
        return False
    try:
        left, right = float(expected), float(actual)
        if is_float == "FLOAT":
            left, right = as_float32(left), as_float32(right)
    except ValueError:
        return False
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return math.isclose(left, right, rel_tol=tolerance, abs_tol=0.0)


def equal_rows(expected, actual, floats, tolerance):
    return all(equal_values(*pair, is_float, tolerance) for *pair, is_float in zip(expected, actual, floats))


def sort_key(row, floats):
    """Exact columns first, then floats with few digits, so that equal rows meet after sorting."""

    def rounded(text):
        try:
            value = float(text)
        except ValueError:
            return (2, 0.0)
        return (1, 0.0) if math.isnan(value) else (0, float(f"{value:.6g}"))

    exact = [(text is not None, text or "") for text, is_float in zip(row, floats) if not is_float]
    inexact = [(-1, 0.0) if text is None else rounded(text) for text, is_float in zip(row, floats) if is_float]
    return exact, inexact


def unmatched_rows(expected, actual, floats, tolerance):
    """What is left of both multisets after taking out the pairs of equal rows: first the same texts, then the rest."""
    left, right = collections.Counter(expected), collections.Counter(actual)
    left, right = left - right, right - left
    left, right = (sorted(rows.elements(), key=lambda row: sort_key(row, floats)) for rows in (left, right))
    pairs = [(a, b) for a, b in zip(left, right) if not equal_rows(a, b, floats, tolerance)]
    missing = [a for a, _ in pairs] + left[len(right):]
    surplus = [b for _, b in pairs] + right[len(left):]
    if len(missing) * len(surplus) > 4_000_000:  # far from equal: the pairing below would only take time
        return missing, surplus
    kept = []
    for row in missing:
        partner = next((i for i, other in enumerate(surplus) if equal_rows(row, other, floats, tolerance)), None)
        if partner is None:
            kept.append(row)
        else:
            surplus.pop(partner)
    return kept, surplus


def show(rows):
    lines = ["  " + " | ".join("NULL" if value is None else repr(value) for value in row) for row in rows[:SHOWN_ROWS]]
    return "\n".join(lines + ([f"  … {len(rows) - SHOWN_ROWS} more"] if len(rows) > SHOWN_ROWS else []))


def first_out_of_order(expected, actual, order, floats, tolerance):
    """The first row whose sort keys differ from the expected ones, or None."""
    key_floats = [floats[i] for i in order]
    for number, (left, right) in enumerate(zip(expected, actual)):
        if not equal_rows([left[i] for i in order], [right[i] for i in order], key_floats, tolerance):
            return number
    return None


def difference(expected, actual, order=(), tolerance=1e-9):
    """Says how `actual` differs from DuckDB's `expected`, or returns None.

    order: the positions of the ORDER BY's columns, or "all" where it is a total order; rows with equal keys may come
    in any order. tolerance: relative, for FLOAT and DOUBLE; 0 where values are only read, not summed.
    """
    if expected.names != actual.names:
        return f"column names\n  DuckDB  {expected.names}\n  stachio {actual.names}"
    if expected.rows == actual.rows:
        return None
    if len(expected.rows) != len(actual.rows):
        head = f"row counts: DuckDB {len(expected.rows)}, stachio {len(actual.rows)}\n"
    else:
        head = "values\n"
    floats = [name if name in FLOAT_TYPES else "" for name in expected.types]
    missing, surplus = unmatched_rows(expected.rows, actual.rows, floats, tolerance)
    if missing or surplus:
        return f"{head}only DuckDB has\n{show(missing)}\nonly stachio has\n{show(surplus)}"
    order = range(len(expected.names)) if order == "all" else order
    at = first_out_of_order(expected.rows, actual.rows, order, floats, tolerance)
    if at is not None:
        return f"order of rows, from row {at}\nDuckDB\n{show(expected.rows[at:])}\nstachio\n{show(actual.rows[at:])}"
    return None


def check_equal(tables, duck, sql, *options, order=(), tolerance=1e-9, quiet=True, env=None):
    """Requires stachio's answer to be DuckDB's; quiet: also that stderr stays empty."""
    run = ask_stachio(tables, sql, *options, env=env)
    found = difference(duck.answer(sql), run.answer(), order, tolerance)
    require(found is None, f"{run}\n{found}")
    require(not quiet or not run.error, f"{run}\nstderr should be empty")
    return run
