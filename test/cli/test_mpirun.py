"""The program on several ranks that mpirun starts: answers, and what becomes of all when one fails or is gone."""

import json
import os
import pathlib
import re
import shutil
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import duckdb

from check import Checks, require, scratch_directory
from ranks import Launched, long_query, make_tables, per_rank, require_mpirun, run_ranks

STACHIO = os.environ["STACHIO"]
QUERIES = ("SELECT k, count(*), sum(v) FROM t GROUP BY k ORDER BY k",
           "SELECT count(*), sum(a.v), max(b.s) FROM t a JOIN u b ON a.k = b.k WHERE a.v % 3 = 1",
           "SELECT v, s FROM t ORDER BY s DESC, v LIMIT 11",
           "SELECT count(*) FROM t WHERE v > (SELECT avg(v) FROM t)",
           "SELECT count(*) FROM u WHERE k < 0")
LOST = re.compile(r"rank 1 \(host [^ ]+, pid \d+\) was lost")


def as_duckdb(directory, sql):
    con = duckdb.connect()
    for name in ("t", "u"):
        con.execute(f"CREATE VIEW {name} AS FROM '{directory}/{name}.parquet'")
    return [tuple(str(value) for value in row) for row in con.execute(sql).fetchall()]


def check_answers(directory, n, **values):
    for sql in QUERIES:
        status, out, err = run_ranks(n, [STACHIO, "-d", directory, "--fallback", "forbid", "--format", "csv", "-c", sql], **values)
        require(status == 0, f"{sql}: status {status}: {err}")
        rows = [tuple(line.split(",")) for line in out.splitlines()[1:]]
        require(rows == as_duckdb(directory, sql), f"{sql}: {rows}")


def check_configuration(directory):
    base = f"{STACHIO} -d {directory} -c 'SELECT 1'"
    _, _, err = run_ranks(2, per_rank(base, base + " --fallback forbid"))
    require("status 0 2" in err and "status 1 2" in err, err)
    require(re.search(r"rank 1 \(host .*\) has another configuration \(device \w+, --fallback forbid\) than rank 0", err), err)
    _, _, err = run_ranks(2, per_rank(base, base + " --cache-size 1 --device-cache-size 1 --cache device"))
    is_cpu = os.environ.get("STACHIO_DEVICE") != "cuda"  # a GPU has such a cache
    require(not is_cpu or "status 0 2" in err and "status 1 2" in err and "cache device" in err, err)


def check_filters_differ():
    """Whether probe rows are filtered rank 0's environment says: ranks that went by their own would wait for each other."""
    join = f"{STACHIO} bench join --build 100k --probe 400k --runs 1 --threads 1"
    for rows in (("0", "-1"), ("-1", "0")):
        _, _, err = run_ranks(2, per_rank(*(f"STACHIO_FILTER_ROWS={n} {join}" for n in rows)))
        require("status 0 0" in err and "status 1 0" in err, err)


def check_files(directory):
    """Ranks with a directory each under the same name: copies, then what another program made of the same rows on rank 1."""
    for rank in range(3):
        shutil.copytree(directory, f"{directory}/ranks/{rank}", ignore=lambda *_: ["ranks"])
        os.utime(f"{directory}/ranks/{rank}/t.parquet", (rank, rank))

    def ask(sql):
        command = f"cd {directory}/ranks/$OMPI_COMM_WORLD_RANK; {STACHIO} -d . --fallback forbid --format csv -c \"{sql}\""
        return run_ranks(3, ["sh", "-c", command + "; echo status $OMPI_COMM_WORLD_RANK $? >&2"])

    def refused(sql, *words):
        _, out, err = ask(sql)
        require("status 0 2" in err and not out and all(word in err for word in ("rank 1 (host", "than rank 0", *words)), f"{sql}: {out}\n{err}")

    sql = "SELECT sum(v), count(*) FROM t WHERE k >= 0"
    total = as_duckdb(directory, sql)
    _, out, err = ask(sql)
    require("status 0 0" in err and [tuple(out.split()[-1].split(","))] == total, f"{out}\n{err}")
    duckdb.execute(f"COPY (FROM '{directory}/t.parquet') TO '{directory}/ranks/1/t.parquet' (ROW_GROUP_SIZE 34000)")
    refused(sql, "other files of table t (", "./t.parquet)")
    refused("SELECT sum(v) FROM t WHERE s <> 'now'", "other files of table t (")
    refused("SELECT sum(u.k) FROM u JOIN t ON u.k = t.v", "other files of table t (")
    _, out, err = ask("SELECT count(*) FROM u")
    require("status 0 0" in err and out.split()[-1] == "900", f"{out}\n{err}")


def check_unreachable(directory):
    command = f"{STACHIO} -d {directory} -c 'SELECT 1'"
    _, out, err = run_ranks(2, per_rank(command, command), UCX_TLS="self")
    require("status 0 2" in err and "status 1 2" in err and re.search(r"UCX has no way to rank \d \(host .*interface", err) and not out, f"{out}\n{err}")


def check_damaged(directory):
    data = bytearray(open(f"{directory}/t.parquet", "rb").read())
    at = len(data) * 3 // 4
    data[at:at + 4000] = b"\xff" * 4000
    os.makedirs(f"{directory}/damaged")
    open(f"{directory}/damaged/t.parquet", "wb").write(data)
    command = f"{STACHIO} -d {directory}/damaged --fallback forbid -c 'SELECT sum(v), max(s), max(k) FROM t'"
    _, out, err = run_ranks(3, per_rank(command, command), seconds=60)
    require("status 0 3" in err and "t.parquet" in err and not out, f"{out}\n{err}")
    require(re.search(r"rank \d \(host ", err), f"no rank is named: {err}")


def end_query(directory, n, signal_number, rank):
    """A rank in a long query gets the signal."""
    with Launched(n, per_rank(*2 * [long_query(directory)])) as launched:
        launched.wait_for_answer()
        time.sleep(1)
        return launched.end(signal_number, rank)


def check_killed(directory):
    err = end_query(directory, 3, signal.SIGKILL, 1)
    require(LOST.search(err), err)
    for rank, status in ((0, 5), (1, 137), (2, 5)):
        require(f"status {rank} {status}" in err, f"rank {rank} has not {status}: {err}")


def check_interrupt(directory):
    err = end_query(directory, 2, signal.SIGINT, 0)
    require("status 0 130" in err and "status 1 " in err, err)


def check_bench(directory):
    path = f"{directory}/exchange.json"
    status, out, err = run_ranks(2, [STACHIO, "bench", "exchange", "--sizes", "65536,1048576", "--steps", "--repeat", "3", "--json", path])
    require(status == 0 and len(out.splitlines()) == 4, f"status {status}: {out}\n{err}")
    with open(path) as file:
        told = json.load(file)
    require(told["ranks"] == 2 and [r["message_bytes"] for r in told["results"]] == [65536, 1048576], told)
    require(all(r["seconds"] > 0 and r["raw_seconds"] > 0 and r["bytes"] == 64 << 20 for r in told["results"]), told)
    require(all(r["seconds"] >= r["least_seconds"] > 0 and r["raw_seconds"] >= r["raw_least_seconds"] > 0 and
                r["processor_seconds"] > 0 and r["raw_processor_seconds"] > 0 and
                r["partitioned_bytes_per_second"] > 0 and r["joined_bytes_per_second"] > 0 for r in told["results"]), told)
    status, out, err = run_ranks(1, [STACHIO, "bench", "exchange"])
    require(status == 2 and "several ranks" in err, f"status {status}: {err}")


def read_trace(path):
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    return events[0], [event for event in events if event["ph"] == "X"]


def check_traces(directory):
    """A file for each rank, by one clock: all run the same pipelines, while rank 0 runs the query."""
    sql = "SELECT count(*), sum(a.v) FROM t a JOIN u b ON a.k = b.k"
    values = {"STACHIO_ALONE_BYTES": "0", "STACHIO_BROADCAST_BYTES": "0"}
    status, _, err = run_ranks(3, [STACHIO, "-d", directory, "--fallback", "forbid", "--trace", f"{directory}/trace-{{rank}}.json", "-c", sql], **values)
    require(status == 0, f"status {status}: {err}")
    traces = [read_trace(f"{directory}/trace-{rank}.json") for rank in range(3)]
    running = next(span for span in traces[0][1] if span["name"] == "running")
    pipelines = []
    for rank, (process, spans) in enumerate(traces):
        require(process["pid"] == rank + 1 and process["args"]["name"] == f"stachio, rank {rank}", str(process))
        mine = [span for span in spans if span["cat"] == "pipeline"]
        pipelines.append({span["args"]["number"] for span in mine})
        require(all(running["ts"] <= span["ts"] <= running["ts"] + running["dur"] for span in mine), f"{running} {mine}")
    require(pipelines[1] and pipelines[1] == pipelines[2] and pipelines[1] <= pipelines[0], str(pipelines))
    for path in ("alone.json", "join-{rank}.json"):
        command = [STACHIO, "-d", directory, "-c", sql] if path == "alone.json" else [STACHIO, "bench", "join", "--build", "20k", "--probe", "30k", "--runs", "2"]
        status, _, err = run_ranks(2, [*command, "--trace", f"{directory}/{path}"], **values)
        require(status == 0, f"status {status}: {err}")
    require(read_trace(f"{directory}/alone.json")[1], "rank 0 writes its own")
    require(all(read_trace(f"{directory}/join-{rank}.json")[1] for rank in range(2)), "a join's trace is empty")
    status, _, err = run_ranks(2, [STACHIO, "-d", directory, "--trace", f"{directory}/nowhere/{{rank}}.json", "-c", sql], **values)
    require(status != 0 and "nowhere/0.json" in err and "nowhere/1.json" in err, f"status {status}: {err}")


def processors(directory, *settings, **values):
    """Rank 0's threads, and the processors of each rank; a GPU has a say in them. `settings`: of the ranks' environment, and not
    mpirun's."""
    status, out, err = run_ranks(2, ["env", *settings, STACHIO, "--device", "cpu", "-d", directory, "--analyze", "-c", "SELECT count(*) FROM t"], OMPI_MCA_rmaps_base_oversubscribe="0", **values)
    if "not enough slots" in err:
        return None  # a core with two processors
    require(status == 0, f"status {status}: {err}")
    lists = re.findall(r"^Rank \d .*, processors (\S+)$", out, re.M)
    require(len(lists) == 2, out)
    sets = [{p for part in text.split(",") for p in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)} for text in lists]
    return int(re.search(r"threads: (\d+)", out)[1]), sets


def check_processors(directory):
    """Ranks share what mpirun may run on, or take a NUMA node each; where somebody has bound them it stays so."""
    own = os.sched_getaffinity(0)
    first = min(own)
    if not processors(directory):
        return
    require(processors(directory) == ((len(own) + 1) // 2, [own, own]), "not shared")
    os.sched_setaffinity(0, {first})  # of mpirun, which then binds ranks to others all the same
    try:
        require(processors(directory) == (1, [{first}] * 2), "ranks run where mpirun may not")
    finally:
        os.sched_setaffinity(0, own)
    threads, sets = processors(directory, OMPI_MCA_hwloc_base_binding_policy="core")
    require(threads == len(sets[0]) < len(own) and not sets[0] & sets[1], f"bound to cores: {threads}, {sets}")
    files = pathlib.Path(directory, "machine")
    for name, text in (("online", "0-1"), ("node0/cpulist", str(first)), ("node1/cpulist", ",".join(map(str, sorted(own - {first}))))):
        path = files / "sys/devices/system/node" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    require(processors(directory, f"HWLOC_FSROOT={files}") == (1, [{first}, own - {first}]), "not a node each")


def main():
    require_mpirun()
    checks = Checks()
    with scratch_directory() as directory:
        make_tables(directory)
        for n in (1, 2, 3):
            with checks.case(f"answers, {n} ranks"):
                check_answers(directory, n)
        with checks.case("answers, 2 ranks, tcp"):
            check_answers(directory, 2, UCX_TLS="tcp,self")
        if len(os.sched_getaffinity(0)) > 1:
            with checks.case("processors"):
                check_processors(directory)
        with checks.case("configurations that differ"):
            check_configuration(directory)
        with checks.case("filters that differ"):
            check_filters_differ()
        with checks.case("files that differ"):
            check_files(directory)
        with checks.case("no way between ranks"):
            check_unreachable(directory)
        with checks.case("a damaged page"):
            check_damaged(directory)
        with checks.case("bench exchange"):
            check_bench(directory)
        with checks.case("traces"):
            check_traces(directory)
        with checks.case("a rank is killed"):
            check_killed(directory)
        with checks.case("Ctrl-C on rank 0"):
            check_interrupt(directory)
    checks.finish()


main()
