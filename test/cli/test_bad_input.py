"""Bad files, bad queries and bad surroundings: a clear message, the right exit status, and no partial answer."""

import functools
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import duckdb

import damage
from check import Checks, require, scratch_directory
from oracle import TIMEOUT_S, DuckDB, Tables, check_equal, open_pipe, query_stachio, run_stachio, stachio_command

WRONG_QUERY, WRONG_USAGE, BAD_FILE, OUT_OF_MEMORY = 1, 2, 3, 4
POSITION = r"line \d+|position \d+|\^"
PAGE = r"row group 0"
ANY_COLUMN = r"column.{0,3}(id|v)\b"

# Name of the bad file -> how it is made, and what the message must tell besides the file's name.
BAD_FILES = {
    "empty": (damage.empty, []),
    "text": (damage.text, []),
    "only_magic": (damage.only_magic, []),
    "truncated_footer": (damage.truncated_footer, []),
    "footer_longer_than_file": (functools.partial(damage.footer_length_lies, length=damage.HUGE), []),
    "footer_shorter": (functools.partial(damage.footer_length_lies, length=b"\x20\x00\x00\x00"), []),
    "garbled_footer": (damage.garbled_footer, []),
    "unknown_codec": (damage.unknown_codec, ["codec", "50"]),
    "unknown_encoding": (damage.unknown_encoding, ["encoding", "50", PAGE, r"column.{0,3}id\b"]),
    "truncated_page": (damage.truncated_page, [PAGE, ANY_COLUMN]),
    "uncompressed_size_lies": (functools.partial(damage.page_field_lies, field=1, high_byte=0x1C), [PAGE, ANY_COLUMN]),
    "compressed_size_lies": (functools.partial(damage.page_field_lies, field=2, high_byte=0x7C), [PAGE, ANY_COLUMN]),
    "too_many_values": (functools.partial(damage.value_count_lies, count_bytes=b"\xc8\x7e"), [PAGE, ANY_COLUMN]),
    "too_few_values": (functools.partial(damage.value_count_lies, count_bytes=b"\x90\x01"), [PAGE, ANY_COLUMN]),
    "level_length_lies": (damage.level_length_lies, [PAGE, ANY_COLUMN]),
    "string_length_lies": (damage.string_length_lies, [PAGE, r"column.{0,3}v\b"]),
    "dictionary_index": (damage.dictionary_index_too_large, [PAGE, r"column.{0,3}v\b"]),
    "wrong_crc_v1": (functools.partial(damage.wrong_crc, version="1.0"), [PAGE, ANY_COLUMN, "crc|checksum"]),
    "wrong_crc_v2": (functools.partial(damage.wrong_crc, version="2.0"), [PAGE, ANY_COLUMN, "crc|checksum"]),
    **{f"garbled_{codec}": (functools.partial(damage.garbled_compression, codec=codec), [PAGE, ANY_COLUMN])
       for codec in ("snappy", "gzip", "zstd", "lz4", "brotli")},
    "encrypted": (functools.partial(damage.encrypted, plaintext_footer=False), ["encrypt"]),
    "encrypted_column": (functools.partial(damage.encrypted, plaintext_footer=True), ["encrypt"]),
}

# Over the table t (id BIGINT, v VARCHAR, big BIGINT all at the type's maximum, tiny TINYINT, d DECIMAL(38,0)).
WRONG_QUERIES = {
    "syntax error": ("SELECT id FROM t WHERE AND id = 1", ["syntax error", POSITION]),
    "syntax error on a later line": ("SELECT id\nFROM t\nGROUPED BY id", ["syntax error", POSITION]),
    "unknown table": ("SELECT * FROM no_such_table", ["no_such_table"]),
    "unknown column": ("SELECT no_such_column FROM t", ["no_such_column"]),
    "unknown function": ("SELECT no_such_function(id) FROM t", ["no_such_function"]),
    "overflow of BIGINT +": ("SELECT big + 1 FROM t", ["out of range", "overflow"]),
    "overflow of BIGINT *": ("SELECT big * id FROM t", ["out of range", "overflow"]),
    "overflow of TINYINT": ("SELECT tiny + tiny FROM t", ["out of range", "overflow"]),
    "overflow in a filter": ("SELECT id FROM t WHERE big + id > 5", ["out of range", "overflow"]),
    "overflow in an aggregate's argument": ("SELECT sum(big * 2) FROM t", ["out of range", "overflow"]),
    "overflow of a DECIMAL sum": ("SELECT sum(d) FROM t", ["out of range|overflow"]),
    "cast out of range": ("SELECT CAST(big AS INTEGER) FROM t", ["conversion|out of range"]),
    "cast of text": ("SELECT CAST(v AS INTEGER) FROM t", ["conversion|convert", "string .s[0-9]+"]),
    "several rows in a scalar subquery": ("SELECT (SELECT id FROM t) FROM t", ["more than one row"]),
    "fallback forbidden": ("SELECT list(id) FROM t", ["list"]),
}

WRONG_USES = {
    "unknown option": ["--no-such-option"],
    "no threads": ["--threads", "0", "-c", "SELECT 1"],
    "threads not a number": ["--threads", "many", "-c", "SELECT 1"],
    "memory limit not a size": ["--memory-limit", "lots", "-c", "SELECT 1"],
    "unknown format": ["--format", "xml", "-c", "SELECT 1"],
    "unknown fallback": ["--fallback", "maybe", "-c", "SELECT 1"],
    "table without a glob": ["-t", "t", "-c", "SELECT 1"],
    "option without its value": ["-c"],
}


def check_failed(run, status, mentions):
    require(run.status == status, f"{run}\nexit status should be {status}")
    require("Sanitizer" not in run.error, str(run))
    require(not run.out, f"{run}\nprinted a partial answer: {run.out[:200]!r}")
    for mention in mentions:
        require(re.search(mention, run.error, re.IGNORECASE), f"{run}\nstderr should match {mention!r}")


def check_query_fails(tables, sql, status, mentions, *options):
    """On stdout and with an output file, of which nothing may be left."""
    check_failed(query_stachio(tables, sql, *options), status, mentions)
    with scratch_directory() as directory:
        output = os.path.join(directory, "answer.csv")
        check_failed(query_stachio(tables, sql, *options, "-o", output), status, mentions)
        require(not os.listdir(directory), f"{sql}: left {os.listdir(directory)} behind")


def check_bad_file(directory, name, make, mentions):
    path = make(pathlib.Path(directory) / f"{name}.parquet")
    tables = Tables(globs={"t": str(path)})
    for sql in ("SELECT * FROM t", "SELECT sum(id), max(v) FROM t"):
        check_query_fails(tables, sql, BAD_FILE, [re.escape(path.name), *mentions], "--fallback", "forbid")


def check_mixed_files(directory, second, mentions):
    """Two files of one table of which the second does not fit the first."""
    pattern = os.path.join(directory, "part-*.parquet")
    os.makedirs(directory)
    connection = duckdb.connect()
    for number, sql in enumerate(["SELECT 1::INTEGER AS a, 'x' AS b", second]):
        connection.execute(f"COPY ({sql}) TO '{pattern.replace('*', str(number))}'")
    tables = Tables(globs={"t": pattern})
    check_query_fails(tables, "SELECT a, b FROM t", BAD_FILE, [r"part-1\.parquet", *mentions], "--fallback", "forbid")


def check_missing(directory):
    nowhere = os.path.join(directory, "nowhere")
    check_failed(run_stachio(["-d", nowhere, "-c", "SELECT 1"]), BAD_FILE, ["nowhere"])
    check_failed(run_stachio(["-t", f"t={nowhere}.parquet", "-c", "SELECT * FROM t"]), BAD_FILE, [r"nowhere\.parquet"])
    check_failed(run_stachio(["-t", f"t={nowhere}/*.parquet", "-c", "SELECT * FROM t"]), BAD_FILE, ["nowhere"])
    check_failed(run_stachio(["-f", f"{nowhere}.sql"]), BAD_FILE, [r"nowhere\.sql"])
    check_failed(run_stachio(["-c", "SELECT 1", "-o", f"{nowhere}/answer.csv"]), BAD_FILE, ["nowhere"])


def check_unreadable(directory):
    path = damage.write_sound(pathlib.Path(directory) / "unreadable.parquet")
    path.chmod(0)
    if os.access(path, os.R_OK):
        return  # the superuser reads every file
    tables = Tables(globs={"t": str(path)})
    check_query_fails(tables, "SELECT * FROM t", BAD_FILE, [r"unreadable\.parquet"])


def check_pipe(directory):
    os.makedirs(directory)
    path = os.path.join(directory, "pipe.parquet")
    os.mkfifo(path)
    for options in (["-d", directory], ["-t", f"t={path}"]):
        check_failed(run_stachio([*options, "-c", "SELECT 1"]), BAD_FILE, [r"pipe\.parquet: is not a regular file"])


def check_becomes_pipe(directory, before, after):
    """Between two statements; the second is read from a pipe, too."""
    os.makedirs(directory)
    path, script = damage.write_sound(pathlib.Path(directory) / "t.parquet"), os.path.join(directory, "script")
    os.mkfifo(script)
    command = [*stachio_command(), "-d", directory, "--format", "csv", "-c", before, "-f", script]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        with open_pipe(script, process) as pipe:
            path.unlink()
            os.mkfifo(path)
            pipe.write(after)
        try:
            error = process.communicate(timeout=60)[1]
        finally:
            process.kill()
    if "FROM t" not in after:
        require(process.returncode == 0, f"status {process.returncode}: {error}")
        return
    require(process.returncode == BAD_FILE and "t.parquet: is not a regular file" in error, f"status {process.returncode}: {error}")


def check_division_by_zero(tables):
    sql = ("SELECT id // 0 AS a, id % 0 AS b, id / 0 AS c, d / 0 AS e, id // (id - id) AS f, "
           "CAST(id AS DOUBLE) / (id - id) AS g FROM t")
    check_equal(tables, DuckDB(tables), sql, "--fallback", "forbid")


def check_fallback_line(tables):
    """What the engine can't run is answered by DuckDB, and one line says why."""
    sql = "SELECT list(id ORDER BY id) AS ids FROM t"
    run = check_equal(tables, DuckDB(tables), sql, quiet=False)
    require(run.error.count("\n") == 1 and "list" in run.error, f"{run}\none line should name the function")


def check_out_of_memory(tables):
    sql = "SELECT count(*) FROM (SELECT id, text, count(*) FROM large GROUP BY id, text)"
    options = ("--memory-limit", "24MB", "--device-memory-limit", "24MB", "--fallback", "forbid")
    check_query_fails(tables, sql, OUT_OF_MEMORY, ["see --(device-)?memory-limit", "group|aggregate"], *options)


def check_closed_pipe(tables):
    """As in `stachio … | head -1`: it ends soon, with no noise."""
    command = [*stachio_command(), *tables.options(), "--format", "csv", "-c", "SELECT * FROM large"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    require(process.stdout.read(10), "no answer came")
    process.stdout.close()
    error = process.stderr.read().decode()
    status = process.wait(TIMEOUT_S)
    require(status in (0, BAD_FILE, -signal.SIGPIPE, 128 + signal.SIGPIPE), f"exit status {status}\n{error}")
    require(error.count("\n") <= 1 and "Sanitizer" not in error, error)


def check_full_disk(tables):
    with open("/dev/full", "wb") as full:
        run = run_stachio([*tables.options(), "--format", "csv", "-c", "SELECT * FROM large"], stdout=full)
    check_failed(run, BAD_FILE, ["no space left"])


def check_full_file_system(tables, directory):
    """-o on a file system of 64 KiB; only the superuser can make one."""
    os.makedirs(directory)
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", directory]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        print("not tried: -o on a full file system, for want of the right to mount one")
        return
    try:
        for sql, name in (("SELECT * FROM large", "answer.csv"), ("SELECT *, random() AS r FROM large", "answer.parquet")):
            run = query_stachio(tables, sql, "--format", pathlib.Path(name).suffix[1:], "-o", os.path.join(directory, name))
            check_failed(run, BAD_FILE, ["no space left", r"answer\."])
            require(not os.listdir(directory), f"left {os.listdir(directory)} behind")
    finally:
        subprocess.run(["umount", directory], check=True)


def make_tables(directory):
    os.makedirs(directory)
    connection = duckdb.connect()
    rows = ("SELECT range AS id, 's' || range AS v, 9223372036854775807 AS big, 100::TINYINT AS tiny, "
            "90000000000000000000000000000000000000::DECIMAL(38, 0) AS d FROM range(1000)")
    connection.execute(f"COPY ({rows}) TO '{directory}/t.parquet'")
    large = "SELECT range AS id, 'some text that is longer than a pointer ' || range AS text FROM range(2000000)"
    connection.execute(f"COPY ({large}) TO '{directory}/large.parquet'")
    return Tables(directory)


def cases(scratch):
    """Pairs of a name and a function without arguments."""
    within = functools.partial(os.path.join, scratch)
    tables = make_tables(within("tables"))
    for name, (make, mentions) in BAD_FILES.items():
        yield f"bad file: {name}", functools.partial(check_bad_file, scratch, name, make, mentions)
    for name, (sql, mentions) in WRONG_QUERIES.items():
        arguments = (tables, sql, WRONG_QUERY, mentions, "--fallback", "forbid")
        yield f"wrong query: {name}", functools.partial(check_query_fails, *arguments)
    for name, arguments in WRONG_USES.items():
        yield f"usage: {name}", lambda arguments=arguments: check_failed(run_stachio(arguments), WRONG_USAGE, ["."])
    yield "missing files", lambda: check_missing(scratch)
    yield "unreadable file", lambda: check_unreadable(scratch)
    for second, column in (("SELECT 'x' AS a, 'x' AS b", "a"), ("SELECT 1::INTEGER AS a", "b")):
        arguments = (within(f"misfit-{column}"), second, [rf"\b{column}\b"])
        yield f"a file whose column {column} does not fit", functools.partial(check_mixed_files, *arguments)
    yield "a pipe", lambda: check_pipe(within("pipe"))
    ours, theirs = "SELECT sum(id) FROM t", "SELECT list(id) FROM t"
    for i, statements in enumerate([(ours, ours), (ours, "SELECT max(v) FROM t"), (ours, theirs), (theirs, ours), (ours, "SELECT list(1)")]):
        yield f"a pipe for a file: {statements}", functools.partial(check_becomes_pipe, within(f"pipe{i}"), *statements)
    yield "division by zero", lambda: check_division_by_zero(tables)
    yield "fallback line", lambda: check_fallback_line(tables)
    yield "out of memory", lambda: check_out_of_memory(tables)
    yield "closed pipe", lambda: check_closed_pipe(tables)
    yield "full disk, stdout", lambda: check_full_disk(tables)
    yield "full disk, output file", lambda: check_full_file_system(tables, within("small"))


def main():
    checks = Checks()
    with scratch_directory() as scratch:
        checks.run_all(list(cases(scratch)))
    checks.finish()


if __name__ == "__main__":
    main()
