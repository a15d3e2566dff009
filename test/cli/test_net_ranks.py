"""Ranks that are processes: messages over shared memory and tcp, failures, killed ranks, who listens where."""

import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

from check import Checks, require, scratch_directory
from ranks import kill_ranks, listening, processes_below, require_mpirun, run_ranks, start_ranks

RANKS = os.path.join(os.environ["BUILD_DIR"], "test", "ranks")
TRANSPORTS = {"shared memory": {}, "tcp": {"UCX_TLS": "tcp,self"}}


def check_ok(n, what, **values):
    status, out, err = run_ranks(n, [RANKS, what], **values)
    require(status == 0 and out.startswith("ok ucx (one host, lo)"), f"status {status}: {out}\n{err}")


def check_bad_interface():
    status, out, err = run_ranks(2, [RANKS, "exchange"], STACHIO_INTERFACE="nowhere7")
    require(status == 2, f"status {status}: {err}")
    require("nowhere7" in err and "rank 0 (host " in err, err)


def check_library_missing():
    status, out, err = run_ranks(2, ["env", "STACHIO_NET_LIBRARY=/nowhere/libstachio_net.so", RANKS, "exchange"])
    require(status == 2 and "2 ranks were launched, but there is no network" in err, f"status {status}: {err}")


def check_no_launch():
    """A shell in an allocation of Slurm's is no launch."""
    status, out, err = run_ranks(1, ["env", "-u", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS=8", "SLURM_PROCID=0", "SLURM_JOB_ID=1",
                                     RANKS, "exchange"])
    require(status == 0 and out.startswith("ok self"), f"status {status}: {out}\n{err}")


class Waiting:
    """Ranks that exchange until something happens. Under `shell` mpirun does not see how they end."""

    def __init__(self, n, shell, **values):
        command = ["sh", "-c", f"{RANKS} wait; echo status $OMPI_COMM_WORLD_RANK $? >&2"] if shell else [RANKS, "wait"]
        self.process = start_ranks(n, command, **values)
        self.names, self.pids = [], []
        for _ in range(n):
            self.names.append(self.process.stdout.readline().strip())
            found = re.search(r"pid (\d+)\)$", self.names[-1])
            require(found, f"no rank's name: {self.names[-1]}\n" + ("" if found else self.end()))
            self.pids.append(int(found.group(1)))

    def end(self):
        try:
            return self.process.communicate(timeout=30)[1]
        finally:
            self.process.kill()


def check_killed(victim, shell, **values):
    waiting = Waiting(3, shell, **values)
    time.sleep(random.uniform(0, 0.5))
    began = time.monotonic()
    os.kill(waiting.pids[victim], signal.SIGKILL)
    err = waiting.end()
    took = time.monotonic() - began
    require(took < 10, f"took {took:.1f} s")
    require(f"{waiting.names[victim]} was lost" in err, f"the rank is not named: {err}")
    if shell:
        for r in range(3):
            wanted = 137 if r == victim else 5
            require(f"status {r} {wanted}" in err, f"rank {r} did not end with {wanted}: {err}")
    else:
        # of the first that it saw to end: the killed one, or one that had heard of it
        require(waiting.process.returncode in (137, 5), f"mpirun's status is {waiting.process.returncode}")


def check_aborted(scratch):
    """UCX aborts the network threads of the others; without a lost rank abort() ends the process as ever, and its loss is told."""
    preload = {"LD_PRELOAD": os.path.join(os.path.dirname(RANKS), "libaborting_ucx.so")}
    for victim in (0, 2):
        file = os.path.join(scratch, f"abort-{victim}")
        waiting = Waiting(3, True, ABORT_FILE=file, **preload)
        pathlib.Path(file).touch()
        time.sleep(random.uniform(0, 0.3))
        began = time.monotonic()
        os.kill(waiting.pids[victim], signal.SIGKILL)
        err = waiting.end()
        require(time.monotonic() - began < 10 and f"{waiting.names[victim]} was lost" in err, err)
        for r in range(3):
            require(f"status {r} {137 if r == victim else 5}" in err, f"rank {r}: {err}")
    file = os.path.join(scratch, "abort-one")
    command = f'[ "$OMPI_COMM_WORLD_RANK" = 1 ] || unset LD_PRELOAD; {RANKS} wait; echo status $OMPI_COMM_WORLD_RANK $? >&2'
    process = start_ranks(2, ["sh", "-c", command], ABORT_FILE=file, **preload)
    try:
        require("rank 0" in process.stdout.readline() + process.stdout.readline(), "no ranks")
        pathlib.Path(file).touch()
        err = process.communicate(timeout=30)[1]
    except subprocess.TimeoutExpired:
        left = list(processes_below(process.pid))
        kill_ranks(process)
        require(False, f"{left} are left: {process.communicate()[1]}")
    finally:
        kill_ranks(process)
    require("status 1 134" in err and "status 0 5" in err and "rank 1 (host" in err, err)


def check_listening(**values):
    waiting = Waiting(2, True, **values)
    try:
        for pid in waiting.pids:
            for address in listening(pid):
                require(address in ("0100007F", "00000000000000000000000001000000"), f"it listens on {address}")
    finally:
        os.kill(waiting.pids[0], signal.SIGKILL)
        waiting.end()


def main():
    require_mpirun()
    checks = Checks()
    for name, values in TRANSPORTS.items():
        for n in (2, 3, 4):
            with checks.case(f"exchange, {n} ranks, {name}"):
                check_ok(n, "exchange", **values)
        with checks.case(f"no memory for large messages, {name}"):
            check_ok(3, "lack", **values)
        with checks.case(f"a failure, {name}"):
            check_ok(3, "fail", **values)
        for victim in range(3):
            with checks.case(f"rank {victim} is killed, {name}"):
                check_killed(victim, True, **values)
        with checks.case(f"rank 1 is killed, mpirun sees it, {name}"):
            check_killed(1, False, **values)
        with checks.case(f"who listens, {name}"):
            check_listening(**values)
    if os.environ.get("BUILD_TYPE") != "Asan":  # whose library wants to be the first
        with checks.case("UCX aborts"), scratch_directory() as scratch:
            check_aborted(scratch)
    with checks.case("an interface that is not there"):
        check_bad_interface()
    with checks.case("no library"):
        check_library_missing()
    with checks.case("no launch"):
        check_no_launch()
    checks.finish()


main()
