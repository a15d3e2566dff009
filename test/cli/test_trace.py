"""--trace: a file that Perfetto opens, whatever becomes of the query; it lists every synchronisation with its cause."""

import collections
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

from check import Checks, require, scratch_directory
from device import EMULATED
from oracle import DuckDB, Tables, check_equal, run_stachio, stachio_command
from test_ranks_skew import make_tables

Q3 = (pathlib.Path(__file__).parent.parent.parent / "cli" / "tpch" / "q03.sql").read_text()
CATEGORIES = {"query", "pipeline", "operator", "primitive", "read", "cache", "wait", "sync", "copy"}
# What a sum, a count or an order has to wait for; more may come.
DEVICE_CAUSES = {"pages decoded", "rows selected", "a batch to the host"}
END = "the end of a pipeline"
TICK_US = 0.0015  # times are cut to a thousandth


def read_trace(path):
    """Spans by lane, each list in order of its beginnings and the longer first; checks what every trace keeps."""
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    require(trace["otherData"]["dropped_spans"] == "0", str(trace["otherData"]))
    lanes, names = collections.defaultdict(list), {}
    for event in trace["traceEvents"]:
        if event["ph"] == "M":
            names[event.get("tid")] = event["args"]
            continue
        require(event["ph"] == "X" and event["cat"] in CATEGORIES and event["name"], str(event))
        require(event["dur"] >= 0 and event["ts"] >= 0, str(event))
        lanes[event["tid"]].append(event)
    require(set(lanes) <= set(names), f"lanes without a name: {set(lanes) - set(names)}")
    for lane in lanes.values():
        lane.sort(key=lambda event: (event["ts"], -event["dur"]))
        check_nesting(lane)
    return lanes


def check_nesting(lane):
    open_ends = []
    for event in lane:
        tick_us = TICK_US + 4 * math.ulp(event["ts"])  # what a machine has been up for is a large number
        while open_ends and open_ends[-1] <= event["ts"] + tick_us:
            open_ends.pop()
        end = event["ts"] + event["dur"]
        require(not open_ends or end <= open_ends[-1] + tick_us, f"a span crosses the one around it: {event}")
        open_ends.append(end)


def spans(lanes, category):
    return [event for lane in lanes.values() for event in lane if event["cat"] == category]


def causes(lanes):
    """How many times each is waited for."""
    for event in spans(lanes, "sync"):
        require(event["name"].startswith("sync: ") and len(event["name"]) > len("sync: "), str(event))
    return collections.Counter(event["name"].removeprefix("sync: ") for event in spans(lanes, "sync"))


def check_waiting(lanes):
    """No lane waits for longer than the query takes."""
    took = sum(event["dur"] for event in spans(lanes, "query"))
    for lane in lanes.values():
        waited = sum(event["dur"] for event in lane if event["cat"] == "sync")
        require(waited <= took, f"{waited} us of waiting in {took} us")


def trace(tables, scratch, sql, *options, status=0):
    path = os.path.join(scratch, "trace.json")
    run = run_stachio([*tables.options(), "-c", sql, "--trace", path, "--progress", "never", *options])
    require(run.status == status, str(run))
    return read_trace(path)


def many_batches(tables, scratch):
    """The same rows in row groups that two workers share."""
    many = os.path.join(scratch, "many")
    os.makedirs(many)
    for path in pathlib.Path(tables.directory).glob("*.parquet"):
        run_stachio(["rewrite", str(path), "-o", os.path.join(many, path.name), "--row-group-rows", "4000"]).succeeded()
    return Tables(many)


def check_cpu(tables, scratch):
    tables = many_batches(tables, scratch)
    sort = causes(trace(tables, scratch, "SELECT l_comment FROM lineitem ORDER BY l_comment", "--device", "cpu", "--threads", "2",
                        "--format", "csv", "-o", os.path.join(scratch, "sorted.csv")))
    require("rows are sorted" in sort, f"what one worker makes for all: {sort}")
    lanes = trace(tables, scratch, Q3, "--device", "cpu", "--threads", "2")
    check_waiting(lanes)
    require({END, "a sink is sealed"} <= set(causes(lanes)), str(causes(lanes)))
    operators = {event["name"] for event in spans(lanes, "operator")}
    for name in ("SCAN lineitem", "SCAN orders", "SCAN customer", "JOIN probe INNER", "AGGREGATE", "TOP_N"):
        require(name in operators, f"{name} is not among {operators}")
    primitives = {event["name"] for event in spans(lanes, "primitive")}
    require({"decode", "eval_select", "join_append", "join_take", "group_update"} <= primitives, str(primitives))
    reads = spans(lanes, "read")
    require({os.path.basename(event["name"]) for event in reads} == {f"{name}.parquet" for name in ("lineitem", "orders", "customer")},
            "files that were read")
    require(all(event["args"]["bytes"] > 0 and event["args"]["row_group"] >= 0 for event in reads), "reads without bytes")
    given = sum(event["args"]["rows_out"] for event in spans(lanes, "operator") if event["name"] == "SCAN customer")
    taken = DuckDB(tables).answer("SELECT count(*) FROM customer WHERE c_mktsegment = 'BUILDING'").rows[0][0]
    require(given == int(taken), f"SCAN customer gave {given} rows of {taken}")


def check_alone(tables, scratch):
    """One worker waits for what it has made once, at the end: all of it is in its stream's order."""
    for options in (["--threads", "1"], ["--threads", "2"]):  # the second has nothing to do
        alone = causes(trace(tables, scratch, Q3, "--device", "cpu", *options))
        require(sum(alone.values()) == 1 and END not in alone, f"{options}: {alone}")


def check_device(tables, scratch):
    os.environ["STACHIO_CUDA_LIBRARY"] = EMULATED
    try:
        lanes = trace(tables, scratch, Q3, "--device", "cuda", "--threads", "2")
    finally:
        del os.environ["STACHIO_CUDA_LIBRARY"]
    check_waiting(lanes)
    require(DEVICE_CAUSES <= set(causes(lanes)) and END not in causes(lanes), str(causes(lanes)))
    copies = spans(lanes, "copy")
    require({event["name"] for event in copies} >= {"upload", "download"}, "no copies")
    require(all(event["args"]["bytes"] >= 0 for event in copies) and any(event["args"]["bytes"] for event in copies),
            "copies without bytes")


def taken_at_first(tables, scratch, *options):
    """Of the second run of a join of three tables, which are in the cache: how many batches are taken in the first pipeline."""
    sql = "SELECT count(*) FROM supplier, nation, region WHERE s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'"
    os.environ["STACHIO_CUDA_LIBRARY"] = EMULATED
    try:
        lanes = trace(tables, scratch, f"{sql}; {sql}", "--device", "cuda", "--cache", "host", *options)
    finally:
        del os.environ["STACHIO_CUDA_LIBRARY"]
    began = max(event["ts"] for event in spans(lanes, "query") if event["name"] == "running")
    first = [event for event in spans(lanes, "pipeline") if event["ts"] >= began and event["args"]["number"] == 0]
    end = max(event["ts"] + event["dur"] for event in first)
    taken = [event["ts"] for event in spans(lanes, "cache") if event["ts"] >= began]
    require(len(taken) == 3, f"{len(taken)} batches of three tables")
    return sum(at < end for at in taken)


def check_ahead(tables, scratch):
    """Workers look past tables of which all is taken, as far as nothing is read for it."""
    require(taken_at_first(tables, scratch) == 3, "what is behind the next table is not looked at")
    require(taken_at_first(tables, scratch, "--overlap", "io") == 1, "something is looked at without overlap")


def check_opening(_, scratch):
    """What one worker makes for all before they begin: the filter of heavy keys."""
    skewed = make_tables(os.path.join(scratch, "skewed"), 1, "half")
    os.environ.update(STACHIO_LOCAL_RANKS="3", STACHIO_BROADCAST_BYTES="0")
    try:
        lanes = trace(skewed, scratch, "SELECT count(*), sum(p.v * b.w) FROM probe p JOIN build b ON p.k = b.k")
    finally:
        del os.environ["STACHIO_LOCAL_RANKS"], os.environ["STACHIO_BROADCAST_BYTES"]
    require("heavy keys are known" in causes(lanes), str(causes(lanes)))


def check_statements(tables, scratch):
    lanes = trace(tables, scratch, "SELECT 1 AS a; SELECT count(*) AS \"quo\"\"te\" FROM nation")
    require(len(spans(lanes, "query")) == 4, "two statements are planned and run")
    lanes = trace(tables, scratch, "SELECT count(DISTINCT n_name) FROM nation GROUP BY n_regionkey", "--explain")
    require(spans(lanes, "query") and not spans(lanes, "pipeline"), "planned, not run")


def check_same_answer(tables, scratch):
    check_equal(tables, DuckDB(tables), Q3, "--trace", os.path.join(scratch, "same.json"), order=(1, 2))


def check_failures(tables, scratch):
    lanes = trace(tables, scratch, "SELECT sum(CAST(n_name AS INTEGER)) FROM nation", status=1)
    require(spans(lanes, "pipeline"), "the pipeline that failed is not there")
    trace(tables, scratch, "SELECT no_such_column FROM nation", status=1)
    for path in ("/dev/full", os.path.join(scratch, "nowhere", "trace.json")):
        run = run_stachio([*tables.options(), "-c", "SELECT 1 AS a", "--trace", path, "--format", "csv"])
        require(run.status == 3 and run.out == b"a\n1\n" and path in run.error, f"{run}\n{run.out!r}")


def check_interrupt(tables, scratch):
    path = os.path.join(scratch, "interrupted.json")
    sql = "SELECT count(*) FROM lineitem a JOIN lineitem b ON a.l_linestatus = b.l_linestatus JOIN lineitem c " \
          "ON b.l_linestatus = c.l_linestatus WHERE a.l_comment < b.l_comment || c.l_comment"
    command = [*stachio_command(), *tables.options(), "-c", sql, "--trace", path, "--device", "cpu"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        status = process.wait(60)
    require(status == 130, f"status {status}")
    lanes = read_trace(path)
    require(spans(lanes, "operator"), "nothing was recorded")


def main():
    checks = Checks()
    with scratch_directory() as scratch:
        data = os.path.join(scratch, "data")
        run_stachio(["tpch", "generate", "--sf", "0.01", "-o", data]).succeeded()
        tiny = os.path.join(scratch, "tiny")
        run_stachio(["tpch", "generate", "--sf", "0.001", "-o", tiny]).succeeded()
        for check in (check_cpu, check_alone, check_opening, check_statements, check_same_answer, check_failures, check_interrupt):
            with checks.case(check.__name__):
                check(Tables(data), scratch)
        if os.path.exists(EMULATED):
            with checks.case("on the emulated device"):
                check_device(Tables(tiny), scratch)
            with checks.case("tables ahead"):
                check_ahead(Tables(tiny), scratch)
    checks.finish()


if __name__ == "__main__":
    main()
