"""Control-C at random times: how long it takes, and that nothing half-done is left."""

import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import duckdb

from check import SANITIZED, Checks, require, scratch_directory
from oracle import TIMEOUT_S, Tables, stachio_command
from test_shell import PROMPT, Shell

DONE, INTERRUPTED = 0, 130
IS_CUDA = os.environ.get("STACHIO_DEVICE") == "cuda"  # whose driver begins and ends processes one after the other
LIMIT_S = 10.0 if SANITIZED else 4.0 if IS_CUDA else 1.0  # what is aimed at is 0.2 s; this machine may be busy with other tests
INTERRUPTS = int(os.environ.get("INTERRUPTS", "10"))  # of each query
ROWS = 300_000 if SANITIZED else 3_000_000
STARTED_S = 1.0  # by then the shell is there, on a busy machine too
LATEST_S = 1.5

QUERIES = {
    # few keys, each with a large share of all rows
    "semi join": "SELECT count(*) FROM big a WHERE EXISTS "
    "(SELECT 1 FROM big b WHERE b.few = a.few AND b.some <> a.some)",
    "pairs": "SELECT count(*) FROM big a JOIN big b ON a.few = b.few AND a.some < b.some",
    "join by text": "SELECT max(a.id), max(b.text) FROM big a JOIN big b ON a.text = b.text AND a.id <> b.id",
    "many groups": "SELECT id, text, count(*) AS n FROM big GROUP BY ALL ORDER BY n DESC, id LIMIT 3",
    "sort": "SELECT text, id FROM big ORDER BY text, id",
}
LONG_ANSWERS = (QUERIES["sort"],)


def make_tables(directory):
    os.makedirs(directory)
    columns = "range AS id, range % 7 AS few, range % 1000 AS some, 'text number ' || hash(range // 2) AS text"
    duckdb.connect().execute(f"COPY (SELECT {columns} FROM range({ROWS})) TO '{directory}/big.parquet'")
    return Tables(directory)


def describe(name, seconds):
    seconds = sorted(seconds)
    p50, p99 = (seconds[int(share * (len(seconds) - 1))] for share in (0.5, 0.99))
    print(f"{name}: {len(seconds)} interrupts, p50 {p50:.3f} s, p99 {p99:.3f} s, max {seconds[-1]:.3f} s", flush=True)


def has_handler(pid):
    """Whether the process has its handler yet, and still: it is there from the program's start to the answer's end."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            caught = [line.split()[1] for line in status if line.startswith("SigCgt:")]
    except OSError:
        return False
    return bool(caught) and bool(int(caught[0], 16) >> (signal.SIGINT - 1) & 1)


def interrupt(tables, sql, delay, scratch):
    """Seconds from the signal to the end of the process, with its memory given back; None when it came too early or too
    late."""
    directory = os.path.join(scratch, "output")
    os.makedirs(directory, exist_ok=True)
    to_file = random.random() < 0.5
    output = ["-o", os.path.join(directory, "answer.csv")] if to_file else ["--format", "csv"]
    command = [*stachio_command(), *tables.options(), "--fallback", "forbid", *output, "-c", sql]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        process.wait(delay)
    except subprocess.TimeoutExpired:
        pass
    handled = has_handler(process.pid)
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=TIMEOUT_S)
    took = time.monotonic() - started
    left = os.listdir(directory)
    for name in left:
        os.remove(os.path.join(directory, name))
    outside = process.returncode == -signal.SIGINT and (not handled or out or left)
    if process.returncode == DONE or outside:
        return None
    if out and sql in LONG_ANSWERS and process.returncode == INTERRUPTED:
        return None  # the query had ended; what was cut off is the printing
    require(process.returncode == INTERRUPTED, f"after {delay:.3f} s: status {process.returncode}, {error!r}")
    require(not out and not left, f"after {delay:.3f} s: {out[:100]!r} on standard output, files {left}")
    return took


def check_query(tables, sql, scratch, name, everything):
    took, tries = [], 0
    while len(took) < INTERRUPTS and tries < 4 * INTERRUPTS:
        tries += 1
        seconds = interrupt(tables, sql, random.uniform(0.1, LATEST_S), scratch)
        if seconds is not None:
            took.append(seconds)
    require(took or IS_CUDA, f"none of {tries} interrupts met the query")
    if not took:
        return  # over sooner than what the start takes varies
    describe(name, took)
    everything += took
    require(max(took) < LIMIT_S, f"took {max(took):.3f} s")


def check_shell(tables, scratch):
    shell = Shell(tables.directory, os.path.join(scratch, "history"))
    shell.read_until(PROMPT)
    took = []
    for sql in (QUERIES["semi join"], QUERIES["pairs"], QUERIES["semi join"]):
        shell.send(sql + ";\n")
        time.sleep(random.uniform(STARTED_S, LATEST_S))
        started = time.monotonic()
        shell.send("\x03")
        shell.read_until("cancelled")
        shell.read_until(PROMPT)
        took.append(time.monotonic() - started)
    describe("in the shell", took)
    require(max(took) < LIMIT_S, f"took {max(took):.3f} s")
    shell.send(".quit\n")
    require(shell.status() == DONE, "the shell's end")


def main():
    checks = Checks()
    seed = int(os.environ.get("RANDOM_SEED", time.time_ns() % 1_000_000))
    random.seed(seed)
    print(f"seed {seed}")
    everything = []
    with scratch_directory() as scratch:
        tables = make_tables(os.path.join(scratch, "tables"))
        for name, sql in QUERIES.items():
            with checks.case(name):
                check_query(tables, sql, scratch, name, everything)
        with checks.case("shell"):
            check_shell(tables, scratch)
    with checks.case("some query was met"):
        require(everything, "none of the queries")
        describe("all", everything)
    checks.finish()


if __name__ == "__main__":
    main()
