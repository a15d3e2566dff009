"""Four ranks in two network namespaces, joined by a link of 1 Gbit/s: TPC-H's answers are DuckDB's, and nobody listens elsewhere."""

import glob
import os
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

from check import Checks, require, scratch_directory, skip
from namespaces import TwoHosts, why_no_namespaces
from oracle import run_stachio
from ranks import listening, long_query, make_tables, require_mpirun

STACHIO = os.environ["STACHIO"]
QUERIES = 22


def check_tpch(hosts, data):
    """Compared with DuckDB on rank 0."""
    before = hosts.sent_bytes()
    status, out, err = hosts.run(f"exec {STACHIO} tpch run -d {data} --compare duckdb --fallback forbid --threads 1 "
                                 "--interface $INTERFACE")
    require(status == 0, f"status {status}: {out}\n{err}")
    answers = re.findall(r"^ +\d+ .*\b(yes|no|failed)\b", out, re.MULTILINE)
    require(answers == ["yes"] * QUERIES, out)
    require(hosts.sent_bytes() - before > 1 << 20, "next to nothing went over the link")


def rank_pids(directory):
    """Of the ranks that query these tables."""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            words = open(path).read().split("\0")
            pid = int(path.split("/")[2])
            if directory in words and os.readlink(f"/proc/{pid}/exe") == os.path.realpath(STACHIO):
                yield pid
        except OSError:
            continue


def check_listening(hosts, directory):
    """Only on the addresses of the interface that was named."""
    process = hosts.start(f"exec {long_query(directory)} --interface $INTERFACE")
    try:
        time.sleep(4)
        pids = list(rank_pids(directory))
        require(len(pids) == 4, f"{len(pids)} ranks run")
        addresses = {address for pid in pids for address in listening(pid)}
        require(addresses == {"0100630A", "0200630A"}, f"ranks listen on {addresses}")
    finally:
        process.terminate()
        process.communicate(timeout=30)


def main(sf):
    require_mpirun()
    reason = why_no_namespaces()
    if reason:
        skip(reason)
    checks = Checks()
    with scratch_directory() as directory, TwoHosts(directory, 2) as hosts:
        data, tables = f"{directory}/tpch", f"{directory}/tables"
        os.mkdir(tables)
        make_tables(tables)
        run_stachio(["tpch", "generate", "--sf", sf, "-o", data]).succeeded()
        with checks.case(f"TPC-H, SF {sf}"):
            check_tpch(hosts, data)
        with checks.case("who listens"):
            check_listening(hosts, tables)
    checks.finish()


if __name__ == "__main__":
    main("0.1")
