"""Launching ranks with mpirun, for tests."""

import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import time

import duckdb

from check import require, skip


def why_no_mpirun():
    """None: ranks can be launched."""
    if not shutil.which("mpirun"):
        return "there is no mpirun"
    if not os.path.exists(os.path.join(os.environ["BUILD_DIR"], "libstachio_net.so")):
        return "libstachio_net.so was not built"
    if os.environ.get("BUILD_TYPE") == "Tsan":
        return "MPI and UCX are not instrumented for ThreadSanitizer"
    return None


def require_mpirun():
    reason = why_no_mpirun()
    if reason:
        skip(reason)


def rank_environment(**values):
    """Root may launch (containers), more ranks than cores may run, and the libraries' own leaks are not ours."""
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0",
            "STACHIO_NET_LIBRARY": os.path.join(os.environ["BUILD_DIR"], "libstachio_net.so"), **values}


def start_ranks(n, command, **values):
    return subprocess.Popen(["mpirun", "-n", str(n), *command], env=rank_environment(**values), stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")


def run_ranks(n, command, seconds=120, **values):
    """Exit status, stdout, stderr of mpirun."""
    process = start_ranks(n, command, **values)
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        kill_ranks(process)
    return process.returncode, out, err


def per_rank(first, others):
    """A command that is `first` on rank 0 and `others` elsewhere, and tells how it ended; mpirun sees no failure."""
    return ["sh", "-c", f'if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then {first}; else {others}; fi; '
            "echo status $OMPI_COMM_WORLD_RANK $? >&2"]


def make_tables(directory):
    """Tables t and u, and a query of them that takes long (long_query)."""
    con = duckdb.connect()
    con.execute(f"COPY (SELECT i AS v, i % 23 AS k, 'text ' || i % 1000 AS s FROM range(200000) r(i)) TO '{directory}/t.parquet' "
                "(ROW_GROUP_SIZE 10000)")
    con.execute(f"COPY (SELECT i % 30 AS k, 'other ' || i AS s FROM range(900) r(i)) TO '{directory}/u.parquet'")


def long_query(directory, query="SELECT count(*), sum(a.v * b.v) FROM t a JOIN t b ON a.k = b.k", times=200):
    """A shell's command; a short query first, whose answer tells that the ranks are at work."""
    return f"{os.environ['STACHIO']} -d {directory} --threads 1 -c 'SELECT count(*) FROM t;{';'.join([query] * times)}'"


def listening(pid):
    """Local addresses, as the kernel prints them, of the sockets on which the process listens."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            continue
        if found:
            inodes.add(found.group(1))
    for table in ("tcp", "tcp6"):
        for line in open(f"/proc/{pid}/net/{table}").readlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                yield fields[1].split(":")[0]


def parents(pid):
    """Of the process, up to the first one."""
    while pid > 1:
        pid = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
        yield pid


def processes_below(ancestor):
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with contextlib.suppress(OSError):
            if ancestor in parents(pid):
                yield pid


def kill_ranks(process):
    """mpirun, if it still runs, and all that it has started."""
    if process.poll() is not None:
        return
    for pid in [*processes_below(process.pid), process.pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


class Launched:
    """Ranks of the program that run, until one of them gets a signal. A context: nothing runs on behind it."""

    def __init__(self, n, command, **values):
        self.n = n
        self.process = start_ranks(n, command, **values)
        self.pids = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        kill_ranks(self.process)

    def wait_for_answer(self):
        """Until rank 0 prints something; all ranks run then."""
        require(select.select([self.process.stdout], [], [], 60)[0], "no answer comes")
        self.pids = self.find()
        require(len(self.pids) == self.n, f"{len(self.pids)} ranks run")

    def drain(self):
        """Takes what there is of the output, so that no rank waits for its reader."""
        out = self.process.stdout.fileno()
        while select.select([out], [], [], 0)[0] and os.read(out, 1 << 16):
            pass

    def find(self):
        """By rank: the processes of the program below this mpirun."""
        pids = {}
        for pid in processes_below(self.process.pid):
            try:
                if os.readlink(f"/proc/{pid}/exe") != os.path.realpath(os.environ["STACHIO"]):
                    continue
                variables = dict(v.split("=", 1) for v in open(f"/proc/{pid}/environ").read().split("\0") if "=" in v)
                pids[int(variables["OMPI_COMM_WORLD_RANK"])] = pid
            except (OSError, KeyError):
                continue
        return pids

    def end(self, signal_number, rank):
        """What mpirun said; all have to end in time."""
        began = time.monotonic()
        os.kill(self.pids[rank], signal_number)
        err = self.process.communicate(timeout=30)[1]
        require(time.monotonic() - began < 10, f"took {time.monotonic() - began:.1f} s: {err}")
        return err
