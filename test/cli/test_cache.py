"""--cache: the second time a query finds its columns in memory, in the host's and in the device's (the emulated one where
there is no GPU), and answers the same; files that change, little room, and damage make no difference."""

import functools
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import pyarrow as pa
import pyarrow.parquet as pq

from check import SANITIZED, Checks, require, scratch_directory
from damage import garbled_compression
from device import INFLATE_ALL, need_device
from oracle import TIMEOUT_S, DuckDB, Tables, difference, open_pipe, parse_csv, run_stachio, stachio_command

SQL = "SELECT k, count(*) AS n, sum(v) AS s, min(t) AS t FROM t WHERE v % 7 <> 3 GROUP BY k ORDER BY k"
RANGE = "SELECT count(*) AS n, sum(v) AS s, max(t) AS t FROM t WHERE v BETWEEN {} AND {}"
ROWS, WIDE_COLUMNS = 4000, 30
# Codec, version of data pages, whether they have CRCs.
LAYOUTS = (("none", "1.0", False), ("snappy", "1.0", False), ("snappy", "2.0", True), ("zstd", "1.0", True), ("zstd", "2.0", False),
           ("gzip", "1.0", False), ("lz4", "2.0", False))
UNITS = {"B": 1, "kB": 1e3, "MB": 1e6}


def write(path, layout, add=0):
    codec, version, has_crc = layout
    table = pa.table({"v": pa.array(range(add, ROWS + add), pa.int64()), "k": pa.array([i % 5 for i in range(ROWS)], pa.int32()),
                      "t": pa.array([None if i % 50 == 7 else f"a longer text {i * 7919 % 997 + add}" for i in range(ROWS)])})
    pq.write_table(table, path, compression=codec, data_page_version=version, write_page_checksum=has_crc, row_group_size=2048,
                   data_page_size=1500, write_batch_size=100, write_page_index=True, use_dictionary=["t"])


def make_tables(directory, layout):
    os.makedirs(directory)
    write(f"{directory}/t.parquet", layout)
    return Tables(directory)


def run(tables, cache, statements, *options, **environment):
    commands = [part for sql in statements for part in ("-c", sql)]
    return run_stachio([*tables.options(), *commands, "--cache", cache, "--format", "csv", "--progress", "never",
                        "--fallback", "forbid", *options], env={**os.environ, **environment})


def answers(run, n):
    """Of n statements of one query, all with as many lines."""
    lines = run.succeeded().out.decode().splitlines(keepends=True)
    require(len(lines) % n == 0, str(run))
    size = len(lines) // n
    return [parse_csv("".join(lines[i * size:(i + 1) * size])) for i in range(n)]


def bytes_of(text):
    number, unit = text.split()
    return float(number) * UNITS[unit]


def cached(run, n):
    """Bytes from files, from the host's cache and from the device's, of each of n statements."""
    text = run.succeeded().out.decode()
    read = re.findall(r"^Read +([\d.]+ \w+),", text, re.M)
    found = re.findall(r"^(?:Read .*\n)(?:Cached +([\d.]+ \w+) in the host's memory, ([\d.]+ \w+) in the device's)?", text, re.M)
    require(len(read) == len(found) == n, f"{run}\n{text}")
    return [(bytes_of(r), bytes_of(h) if h else 0, bytes_of(d) if d else 0) for r, (h, d) in zip(read, found)]


def check_hits(tables):
    for cache, place in (("host", 1), ("device", 2)):
        first, second = cached(run(tables, cache, [SQL, SQL], "--analyze"), 2)
        require(first[0] > 0 and first[1] == first[2] == 0, f"{cache}: the first run: {first}")
        require(second[0] == 0 and second[place] > 0 and second[3 - place] == 0, f"{cache}: the second run: {second}")
    first, second = cached(run(tables, "off", [SQL, SQL], "--analyze"), 2)
    require(first[0] == second[0] > 0 and second[1] == second[2] == 0, f"off: {second}")


def check_answers(tables, *options):
    expected = DuckDB(tables).answer(SQL)
    for given in answers(run(tables, "device", [SQL] * 3, *options), 3):
        found = difference(expected, given, "all")
        require(not found, found)


def check_link(tables, path):
    """What is found on the device does not come over the link again; the trace tells both."""
    totals = []
    for n in (1, 2, 3):
        run(tables, "device", [SQL] * n, "--trace", path).succeeded()
        events = json.loads(pathlib.Path(path).read_text())["traceEvents"]
        totals.append([sum(event["args"]["bytes"] for event in events if event["ph"] == "X" and event["name"] == name)
                       for name in ("upload of pinned memory", "cached in the device's memory", "cached in the host's memory")])
    copied, on_device, on_host = zip(*totals)
    require(copied[0] == copied[1] == copied[2] and copied[0] > 0, f"over the link: {copied}")
    require(on_device[0] == 0 and on_device[2] == 2 * on_device[1] > 0, f"on the device: {on_device}")
    require(on_host == on_device, f"in the host's memory: {on_host}")


def check_copies(tables, path):
    """The chunks of a column, one of each of two row groups, come by one copy."""
    run(tables, "host", [SQL], "--trace", path, "--threads", "1").succeeded()
    events = json.loads(pathlib.Path(path).read_text())["traceEvents"]
    copies = sum(event["args"]["copies"] for event in events if event["ph"] == "X" and event["name"] == "upload of pinned memory")
    require(copies == 3, f"{copies} copies of three columns")


def check_ranges(tables):
    """Pages that one query prunes are asked for by another."""
    ranges = [(100, 300), (0, 2500), (2000, 2100), (0, ROWS), (100, 300)]
    statements = [RANGE.format(low, high) for low, high in ranges]
    for sql, given in zip(statements, answers(run(tables, "device", statements), len(statements))):
        found = difference(DuckDB(tables).answer(sql), given, "all")
        require(not found, f"{sql}\n{found}")


def check_memory(scratch):
    """The cache may take all of the device's memory, and gives it up when a query needs it."""
    path = os.path.join(scratch, "wide.parquet")
    texts = {f"c{c}": [f"{(i * 7919 + c) % 4001} of column {c}" for i in range(ROWS)] for c in range(WIDE_COLUMNS)}
    pq.write_table(pa.table(texts), path, compression="snappy", use_dictionary=False)
    tables = Tables(globs={"t": path})
    statements = [f"SELECT max(c{c}) AS c FROM t" for c in range(WIDE_COLUMNS)]
    given = answers(run(tables, "device", statements, "--device-memory-limit", "2MB", "--device-cache-size", "2MB", "--threads", "2"),
                    len(statements))
    for column, answer in zip(texts.values(), given):
        require(answer.rows == [(max(column),)], f"{answer.rows}, not {max(column)}")


def check_changed(tables, layout):
    """A file is replaced between two statements of one run: the second comes through a pipe, which opens after the first."""
    path, script = os.path.join(tables.directory, "t.parquet"), os.path.join(tables.directory, "script")
    os.mkfifo(script)
    answers_wanted = [DuckDB(tables).answer(SQL)]
    command = [*stachio_command(), *tables.options(), "--cache", "device", "--format", "csv", "-c", SQL, "-f", script]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        with open_pipe(script, process) as pipe:
            write(f"{path}.new", layout, add=1000)
            os.replace(f"{path}.new", path)
            pipe.write(SQL)
        out = process.communicate(timeout=TIMEOUT_S)[0].decode()
    answers_wanted.append(DuckDB(tables).answer(SQL))
    require(difference(*answers_wanted, "all"), "both files are the same")
    lines = out.splitlines(keepends=True)
    require(process.returncode == 0 and len(lines) % 2 == 0, f"status {process.returncode}: {out}")
    for i, wanted in enumerate(answers_wanted):
        found = difference(wanted, parse_csv("".join(lines[i * len(lines) // 2:(i + 1) * len(lines) // 2])), "all")
        require(not found, f"statement {i}: {found}")


def check_damaged(scratch, codec):
    path = garbled_compression(pathlib.Path(scratch, "t.parquet"), codec)
    tables = Tables(globs={"t": str(path)})
    runs = [run_stachio([*tables.options(), "-c", "SELECT count(v) FROM t", "-c", "SELECT sum(id) FROM t", "--format", "csv", *options])
            for options in (["--cache", "device"], ["--device", "cpu"])]
    require(runs[0].status == runs[1].status == 3 and runs[0].error == runs[1].error, f"{runs[0]}\n{runs[1]}")


def cases(scratch):
    for layout in LAYOUTS[1::2] if SANITIZED else LAYOUTS:  # snappy, zstd, gzip
        name = " ".join(map(str, layout))
        tables = make_tables(os.path.join(scratch, name), layout)
        yield f"hits, {name}", functools.partial(check_hits, tables)
        yield f"link, {name}", functools.partial(check_link, tables, os.path.join(scratch, f"{name}.json"))
        yield f"copies, {name}", functools.partial(check_copies, tables, os.path.join(scratch, f"{name}-copies.json"))
        yield f"answers, {name}", functools.partial(check_answers, tables)
        yield f"three workers, {name}", functools.partial(check_answers, tables, "--threads", "3")
        for size in ("1", "12KB", "40KB"):
            yield f"room for {size}, {name}", functools.partial(check_answers, tables, "--device-cache-size", size)
        yield f"little memory, {name}", functools.partial(check_answers, tables, "--device-memory-limit", "2MB", "--threads", "2")
        yield f"ranges, {name}", functools.partial(check_ranges, tables)
        yield f"changed, {name}", functools.partial(check_changed, make_tables(os.path.join(scratch, f"{name} changed"), layout), layout)
    yield "the cache gives memory up", functools.partial(check_memory, scratch)
    for codec in ("snappy", "zstd", "gzip"):
        folder = os.path.join(scratch, f"{codec}-damaged")
        os.makedirs(folder)
        yield f"damaged, {codec}", functools.partial(check_damaged, folder, codec)


def main():
    need_device()
    os.environ.update(INFLATE_ALL)
    checks = Checks()
    with scratch_directory() as scratch:
        checks.run_all(list(cases(scratch)))
    checks.finish()


if __name__ == "__main__":
    main()
