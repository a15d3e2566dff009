#!/usr/bin/env python3
"""A table's files under one setting of the layout after the other, each on top of those before, as in Luo, Qi and Binnig
(GPU-friendly Parquet): sizes, the speed of `stachio rewrite`, and the speed of scans over the files.

  bench/rewrite_ladder.py data/tpch-sf10/lineitem.parquet [--device cuda] [--repeat 5] [--keep DIRECTORY]

The scan reads and decodes every column (one aggregate each); its rate is in bytes of the first rung's values as they are
when decoded, so that rungs compare, and in bytes of the file. Prints Markdown. One table for each device: run it again
with --device cuda on a machine with a GPU. Without the Python package duckdb the first rung, DuckDB's own file, is left out.
"""

import argparse
import csv
import importlib.util
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
STACHIO = os.environ.get("STACHIO", str(ROOT / "build/release/stachio"))

# name, options of rewrite; the first one is DuckDB's own
DUCKDB_LAYOUT = ["--row-group-rows", "122880", "--pages", "1", "--page-version", "1", "--encoding", "dictionary",
                 "--compression", "snappy"]
LADDER = (
    ("DuckDB's default file", None),
    ("the same layout by stachio", {}),
    ("200 pages a row group", {"--pages": "200"}),
    ("row groups of 10 M rows", {"--row-group-rows": "10000000"}),
    ("encodings by column chunk", {"--encoding": "auto", "--page-version": "2"}),
    ("no compression", {"--compression": "none"}),
    ("stachio's default (4 Mi rows)", {"--row-group-rows": "4194304"}),
)


def run(*command):
    begin = time.monotonic()
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return time.monotonic() - begin, done.stdout


def answer(sql):
    """Rows of texts."""
    return list(csv.reader(run(STACHIO, "--device", "cpu", "--format", "csv", "-c", sql)[1].splitlines()))[1:]


def write_duckdb(source, target, threads):
    import duckdb  # pylint: disable=import-outside-toplevel

    connection = duckdb.connect(config={"threads": threads, "preserve_insertion_order": True})
    begin = time.monotonic()
    connection.execute(f"COPY (SELECT * FROM '{source}') TO '{target}' (FORMAT parquet)")
    return time.monotonic() - begin


def layout_options(changes):
    options = dict(zip(DUCKDB_LAYOUT[::2], DUCKDB_LAYOUT[1::2]))
    options.update(changes)
    return [part for pair in options.items() for part in pair]


def scan_sql(source):
    """A cheap aggregate of every column, none that statistics answer."""
    described = answer(f"DESCRIBE SELECT * FROM '{source}'")
    forms = {"VARCHAR": 'sum(length("{0}"))', "DATE": "max(\"{0}\" - DATE '1970-01-01')", "BOOLEAN": 'count(nullif("{0}", false))',
             "TIMESTAMP": 'max(year("{0}"))'}
    return "SELECT " + ", ".join(forms.get(row[1], 'sum("{0}")').format(row[0]) for row in described) + " FROM t"


def scan_seconds(path, sql, arguments):
    """Median of the runs' time in the engine, planning left out; all in one process, which begins with one more."""
    _, text = run(STACHIO, "-t", f"t={path}", "--device", arguments.device, "--threads", arguments.threads, "--fallback",
                  "forbid", "--analyze", "-c", ";".join([sql] * (arguments.repeat + 1)))
    seconds = [float(found) for found in re.findall(r"running ([\d.]+) s", text)]
    return statistics.median(seconds[1:])


def figures(path):
    rows, groups = answer(f"SELECT num_rows, num_row_groups FROM parquet_file_metadata('{path}')")[0]
    return int(rows), int(groups), os.path.getsize(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--keep", help="directory for the files; those that are there are not made again")
    arguments = parser.parse_args()
    sql, changes = scan_sql(arguments.source), {}
    plain_bytes = None
    with tempfile.TemporaryDirectory() as scratch:
        directory = arguments.keep or scratch
        os.makedirs(directory, exist_ok=True)
        print(f"{os.path.basename(arguments.source)}, {arguments.threads} threads, scans on {arguments.device}, "
              f"median of {arguments.repeat}\n")
        print("| layout, each on top of the last | row groups | size | bytes a row | written | scan | values | file |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        for number, (name, change) in enumerate(LADDER):
            if change is None and not importlib.util.find_spec("duckdb"):
                continue
            path, written = os.path.join(directory, f"rung{number}.parquet"), None
            if not os.path.exists(path):
                if change is None:
                    written = write_duckdb(arguments.source, path, arguments.threads)
                else:
                    changes.update(change)
                    written, _ = run(STACHIO, "rewrite", arguments.source, "-o", path, "--threads", arguments.threads,
                                     *layout_options(changes))
            elif change is not None:
                changes.update(change)
            rows, groups, size = figures(path)
            plain_bytes = plain_bytes or decoded_bytes(arguments.source, rows)
            pathlib.Path(path).read_bytes()  # into the page cache
            seconds = scan_seconds(path, sql, arguments)
            speed = "" if written is None else f"{rows / written / 1e6:.2f} M rows/s, {plain_bytes / written / 1e6:.0f} MB/s"
            print(f"| {name} | {groups} | {size / 1e6:.1f} MB | {size / rows:.2f} | {speed} | {seconds:.3f} s | "
                  f"{plain_bytes / seconds / 1e9:.2f} GB/s | {size / seconds / 1e9:.2f} GB/s |", flush=True)
            if not arguments.keep:
                os.remove(path)


def decoded_bytes(source, rows):
    """Bytes of all values when decoded: fixed widths, and the characters of texts."""
    widths = {"BOOLEAN": 1, "TINYINT": 1, "UTINYINT": 1, "SMALLINT": 2, "USMALLINT": 2, "INTEGER": 4, "UINTEGER": 4,
              "FLOAT": 4, "DATE": 4}
    fixed, texts = 0, []
    for column, kind, *_ in answer(f"DESCRIBE SELECT * FROM '{source}'"):
        if kind == "VARCHAR":
            texts.append(f'coalesce(sum(strlen("{column}")), 0)')
        else:
            wide = kind.startswith("DECIMAL") and int(re.search(r"\d+", kind).group()) > 18
            fixed += 16 if wide else widths.get(kind, 8)
    of_texts = sum(map(int, answer(f"SELECT {', '.join(texts)} FROM '{source}'")[0])) if texts else 0
    return fixed * rows + of_texts


if __name__ == "__main__":
    main()
