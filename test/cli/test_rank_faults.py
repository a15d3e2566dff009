"""What ends a query on several processes ends it on all of them, with the rank's name."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

from check import SANITIZED, Checks, require, scratch_directory
from ranks import Launched, listening, long_query, make_tables, per_rank, require_mpirun, run_ranks

STACHIO = os.environ["STACHIO"]
# Seconds after the start: while MPI begins, while ranks connect, while tables are added.
EARLY_MOMENTS = (0.05, 0.2, 0.4, 0.6, 0.8, 1.0, 1.3)
# Seconds after the first answer.
LATE_MOMENTS = (0, 0.3, 1.2)
# Short joins, one after another, for each of which ranks share a filter (unit/test_exec_filter.c ends them just then).
FILTERED = "SELECT count(*) FROM t a JOIN t b ON a.v * 3 = b.v * 3 WHERE b.k < 5 AND a.k < 9"
FILTERS = {"STACHIO_FILTER_ROWS": "0", "STACHIO_BROADCAST_BYTES": "0", "STACHIO_ALONE_BYTES": "0"}
NAMED = re.compile(r"rank 1 (\(host [^ ]+, pid \d+\)|on host )")


def check_killed(launched, victim, statuses):
    """statuses: the ranks tell them, mpirun sees no failure, and so each names the lost one. Else mpirun may end them before."""
    began = time.monotonic()
    os.kill(launched.pids[victim], signal.SIGKILL)
    while launched.find():
        require(time.monotonic() - began < 10, f"ranks are left: {launched.find()}")
        launched.drain()
        time.sleep(0.05)
    try:
        err = launched.process.communicate(timeout=10)[1]
        require(launched.process.returncode in ((0,) if statuses else (5, 137)), f"status {launched.process.returncode}: {err}")
    except subprocess.TimeoutExpired:
        launched.process.kill()  # Open MPI 4.1's mpirun may wait for itself, about once in a hundred times
        err = launched.process.communicate(timeout=10)[1]
    is_named = re.search(rf"rank {victim} \(host [^ ]+, pid \d+\) was lost", err)
    require(is_named or not (statuses or "stachio: error" in err), f"the rank is not named: {err}")
    for rank, status in statuses.items():
        require(f"status {rank} {status}" in err, f"rank {rank}, status {status}: {err}")


def check_killed_early(directory, moment, victim):
    with Launched(3, ["sh", "-c", "exec " + long_query(directory)]) as launched:
        time.sleep(moment)
        for _ in range(1000):
            launched.pids = launched.find()
            if victim in launched.pids:
                break
            time.sleep(0.01)
        require(victim in launched.pids, f"rank {victim} does not start")
        check_killed(launched, victim, {})


def check_killed_late(query, moment, victim, **values):
    with Launched(3, per_rank(query, query), **values) as launched:
        launched.wait_for_answer()
        time.sleep(moment)
        check_killed(launched, victim, {rank: 137 if rank == victim else 5 for rank in range(3)})


def check_interrupted(query, moment, **values):
    with Launched(3, per_rank(query, query), **values) as launched:
        launched.wait_for_answer()
        time.sleep(moment)
        err = launched.end(signal.SIGINT, 0)
        require(all(f"status {rank} {status}" in err for rank, status in ((0, 130), (1, 0), (2, 0))), err)


def check_filtered(directory):
    status, out, err = run_ranks(3, [STACHIO, "-d", directory, "--analyze", "-c", FILTERED], **FILTERS)
    require(status == 0 and ", filter of " in out, f"status {status}: {out}{err}")


def check_error(command, others, status, *words):
    """Rank 1 runs the other command; the query ends on both with its error."""
    _, out, err = run_ranks(2, per_rank(command, others), seconds=60)
    require(f"status 0 {status}" in err and not out, f"{out}\n{err}")
    require(NAMED.search(err), f"the rank is not named: {err}")
    for word in words:
        require(word in err, f"{word} is missing: {err}")


def check_unreadable(directory):
    """What rank 1 alone reads is no Parquet file."""
    parts = f"{directory}/parts"
    for rank in range(2):
        os.makedirs(f"{parts}{rank}")
        shutil.copy(f"{directory}/t.parquet", f"{parts}{rank}/t.parquet")
    command = f"{STACHIO} -d '{parts}{{rank}}' --fallback forbid -c 'SELECT sum(v) FROM t'"
    check_error(command, f"rm {parts}1/t.parquet; echo > {parts}1/t.parquet; {command}", 3, f"{parts}1/t.parquet")


def check_memory(directory):
    query = "SELECT s, v, count(*) FROM t GROUP BY s, v"
    command = f"{STACHIO} -d {directory} --fallback forbid -c '{query}'"
    check_error(command, f"{command} --memory-limit 3MB", 4, "memory")


def check_version(directory):
    """Rank 1 has a library in which the version's text is another."""
    build = os.path.dirname(STACHIO)
    library = os.path.realpath(f"{build}/libstachio.so")
    version = (pathlib.Path(os.environ["SOURCE_DIR"]) / "VERSION").read_text().strip()
    other = version[:-1] + ("1" if version[-1] != "1" else "2")
    bytes_ = pathlib.Path(library).read_bytes()
    patched = pathlib.Path(f"{directory}/libstachio.so.0.1")
    require(version.encode() + b"\0" in bytes_, "the library has no version")
    patched.write_bytes(bytes_.replace(version.encode() + b"\0", other.encode() + b"\0"))
    command = f"{STACHIO} -d {directory} -c 'SELECT 1'"
    path = f"{directory}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    check_error(command, f"LD_LIBRARY_PATH={path} {command}", 2, version, other, "version")


def check_listening(directory):
    with Launched(2, ["sh", "-c", "exec " + long_query(directory)]) as launched:
        launched.wait_for_answer()
        addresses = {address for pid in launched.pids.values() for address in listening(pid)}
        require(addresses and addresses <= {"0100007F", "00000000000000000000000001000000"}, f"ranks listen on {addresses}")
        launched.end(signal.SIGKILL, 0)


def main():
    require_mpirun()
    checks = Checks()
    with scratch_directory() as directory:
        make_tables(directory)
        for i, moment in enumerate(EARLY_MOMENTS):
            with checks.case(f"rank {i % 3} is killed {moment} s after the start"):
                check_killed_early(directory, moment * (3 if SANITIZED else 1), i % 3)
        for i, moment in enumerate(LATE_MOMENTS):
            with checks.case(f"rank {i % 3} is killed {moment} s after an answer"):
                check_killed_late(long_query(directory), moment, i % 3)
        with checks.case("joins with filters"):
            check_filtered(directory)
        filtered = long_query(directory, FILTERED, 600)
        for i, moment in enumerate(LATE_MOMENTS):
            with checks.case(f"rank {i % 3} is killed {moment} s after an answer, in joins with filters"):
                check_killed_late(filtered, moment, i % 3, **FILTERS)
            with checks.case(f"Ctrl-C on rank 0 {moment} s after an answer, in joins with filters"):
                check_interrupted(filtered, moment, **FILTERS)
        with checks.case("a rank can't read its file"):
            check_unreadable(directory)
        with checks.case("a rank has too little memory"):
            check_memory(directory)
        with checks.case("another version"):
            check_version(directory)
        with checks.case("who listens"):
            check_listening(directory)
    checks.finish()


if __name__ == "__main__":
    main()
