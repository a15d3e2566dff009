"""The server of test statements (test/server) says what the program says, and how it ended."""

import os
import pathlib
import re
import signal
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import duckdb

from check import Checks, Failed, require, scratch_directory, skip
from oracle import Tables, ask_stachio, query_stachio
from server import Server, server_command, servers

LONG = "SELECT count(*) FROM range(1000000) a(i), range(1000000) b(i) WHERE a.i * b.i % 7 = 3"
# Statement and further options; others are opened in between, more than stay open.
SAME = [
    ("SELECT 'a' AS a, count(*) AS n FROM t", ()),
    ("SELECT 1 AS a; SELECT i FROM t WHERE i < 2;", ()),
    ("SELECT nothing FROM t", ()),
    ("SELECT\n  1 +", ()),
    ("SELECT row_number() OVER () AS r FROM t WHERE i < 2", ()),
    ("SELECT row_number() OVER () AS r FROM t WHERE i < 2", ("--fallback", "forbid")),
    ("SELECT 1; SELECT CAST('x' AS INTEGER)", ()),
    ("SELECT i FROM t", ("--format", "nothing")),
    ("SELECT i FROM t", ("-zqqqq",)),
    ("SELECT i FROM t", ("-t", "u=nowhere.parquet")),
    ("SELECT i FROM t ORDER BY i", ("--format", "json")),
    ("SELECT sum(i) FROM t", ("--memory-limit", "1B")),
    *((f"SELECT {n} AS n, count(*) FROM t", ("--max-rows", str(n))) for n in range(12)),
]


def outcome(run):
    """What DuckDB lacks memory for depends on how far its threads have come."""
    return run.status, run.out, re.sub(r"out of memory: .* used\)", "out of memory", run.error)


def check_same(tables):
    for round_number in range(2):
        for sql, options in SAME:
            wanted, given = query_stachio(tables, sql, *options), ask_stachio(tables, sql, *options)
            require(outcome(wanted) == outcome(given), f"round {round_number}\nprogram {outcome(wanted)}\nserver {outcome(given)}\n{given}")


def check_killed(tables):
    """A server that a signal ends: that is its status, and the next statement has another one."""
    server = servers.borrow((), dict(os.environ))
    servers.give_back(server)
    threading.Timer(1.0, server.process.send_signal, (signal.SIGSEGV,)).start()
    run = ask_stachio(tables, LONG)
    require(run.status < 0 or "SEGV" in run.error, str(run))
    require(ask_stachio(tables, "SELECT 1 AS a").succeeded().out == b"a\n1\n", "no other server")


def check_time(tables):
    server = Server(dict(os.environ))
    began = time.monotonic()
    require(server.ask([*tables.options()], LONG, 1.0)[0] is None and time.monotonic() - began < 30, "not ended in time")
    require(server.end(), "a server that was killed ends well")


def check_end(tables):
    """What a server says at its end is told."""
    ask_stachio(tables, "SELECT 1")
    servers.end()
    server = servers.borrow((), dict(os.environ))
    server.process.kill()
    server.process.wait()
    servers.end_those([server])
    try:
        servers.end()
    except Failed:
        return
    require(False, "nothing is told")


def main():
    if not server_command():
        skip("there is no server")
    checks = Checks()
    with scratch_directory() as directory:
        duckdb.connect().execute(f"COPY (SELECT i FROM range(1000) r(i)) TO '{directory}/t.parquet'")
        tables = Tables(directory)
        for name, check in (("same as the program", check_same), ("killed", check_killed), ("out of time", check_time), ("end", check_end)):
            with checks.case(name):
                check(tables)
    checks.finish()


if __name__ == "__main__":
    main()
