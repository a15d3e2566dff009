"""Which device answers: --device, the environment, and what is said where there is no GPU."""

import contextlib
import datetime
import decimal
import json
import os
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from check import SANITIZED, Checks, require, scratch_directory
from device import EMULATED, NCCL, NVML
from oracle import DuckDB, Tables, check_equal, run_stachio

NOWHERE = "/nowhere/libstachio_cuda.so"
QUERIES = ("SELECT k, count(*), sum(v) FROM t GROUP BY k ORDER BY k", "SELECT v, s FROM t WHERE v % 7 = 3 ORDER BY s, v LIMIT 9",
           "SELECT count(*), min(a.s) FROM t a JOIN t b ON a.v = b.k WHERE b.s LIKE '%1%'")
# Short, long, of equal length, empty and NULL.
TEXTS = """SELECT i AS v, (i * 7) % 3000 AS w, chr(97 + (i * 31 % 26)::INT) AS flag, printf('%02d-%03d-%03d-%04d', i % 90, i * 3 % 1000, i * 7 % 1000, i) AS phone,
    CASE WHEN i % 7 = 0 THEN NULL WHEN i % 11 = 0 THEN '' ELSE repeat(chr(65 + (i * 17 % 26)::INT), (i * 13 % 29)::INT) || i END AS note,
    CASE WHEN i % 3 > 0 THEN repeat('x', 10 + (i % 5)::INT) END AS border FROM range(3000) AS r(i)"""
TEXT_QUERIES = ("SELECT a.v, b.flag, b.phone, b.note, b.border FROM texts a JOIN texts b ON a.v = b.w ORDER BY a.v",
                "SELECT count(*), sum(a.v), min(a.note), max(b.note) FROM texts a JOIN texts b ON a.phone = b.phone AND a.border = b.border",
                "SELECT border, flag, count(*), max(note), min(phone) FROM texts GROUP BY ALL ORDER BY ALL",
                "SELECT note, phone FROM texts ORDER BY note NULLS FIRST, v")
# Rows of a may go before b's table is there: a LEFT join gives their scan no filter.
EARLY = "SELECT count(*), sum(a.v), max(a.note), sum(b.w) FROM texts a LEFT JOIN (SELECT w FROM texts WHERE v % 5 <> 3) b ON a.v = b.w"
WIDE = "SELECT count(*), sum(a.v) FROM wide a JOIN wide b ON a.v = b.v"
# A filter of all ranks' keys goes before rows do.
FILTERED = "SELECT count(*), sum(a.v) FROM texts a JOIN texts b ON a.v = b.v AND a.w = b.w WHERE b.v % 40 = 7 OR b.w < 50"


@contextlib.contextmanager
def environment(**values):
    """None: not set."""
    before = {name: os.environ.get(name) for name in values}

    def set_all(wanted):
        for name, value in wanted.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value

    set_all(values)
    try:
        yield
    finally:
        set_all(before)


def make_tables(directory):
    os.makedirs(directory)
    duckdb.connect().execute(f"COPY (SELECT i AS v, i % 5 AS k, 'text ' || (i % 13) AS s FROM range(300) AS r(i)) "
                             f"TO '{directory}/t.parquet'")
    os.makedirs(f"{directory}/wide")
    for part in range(3):
        duckdb.connect().execute(f"COPY (SELECT i * 3 + {part} AS v FROM range(300) AS r(i)) TO '{directory}/wide/{part}.parquet'")
    # no dictionaries: the strings travel themselves
    pq.write_table(duckdb.connect().execute(TEXTS).to_arrow_table(), f"{directory}/texts.parquet", use_dictionary=False, row_group_size=1000)
    return Tables(directory)


def analyze(tables, *options, sql=QUERIES[0]):
    run = run_stachio([*tables.options(), "-c", sql, "--analyze", *options]).succeeded()
    require(not run.error, str(run))
    return run.out.decode()


def check_without_gpu(tables):
    with environment(STACHIO_DEVICE=None, STACHIO_CUDA_LIBRARY=NOWHERE):
        for options in ([], ["--device", "auto"]):
            text = analyze(tables, *options)
            require("stachio on cpu," in text and "No GPU since" in text and NOWHERE in text, text)
        require("No GPU" not in analyze(tables, "--device", "cpu"), "nobody asked for a GPU")
        run = run_stachio(["--device", "cuda", "-c", "SELECT 1"])
        require(run.status == 2 and "device cuda: " in run.error and NOWHERE in run.error, str(run))
    if not os.path.exists("/dev/nvidiactl") and not os.path.exists("/dev/dxg"):
        with environment(STACHIO_DEVICE=None, STACHIO_CUDA_LIBRARY=None):
            text = analyze(tables)
            require("stachio on cpu," in text and "no NVIDIA driver" in text, text)


def check_hidden(tables):
    """The program shows CUDA one GPU of several, and says which where that does not work; ranks see them all."""
    two = {"STACHIO_CUDA_LIBRARY": EMULATED, "STACHIO_NVML_LIBRARY": NVML, "NVML_EMULATOR_GPUS": "9:0:0:80000 9:0:0:80000", "CUDA_VISIBLE_DEVICES": None}
    for values, tried in (({}, "GPU-emulated-0"), ({"STACHIO_LOCAL_RANKS": "2"}, None), ({"CUDA_VISIBLE_DEVICES": "1"}, "1")):
        with environment(**{**two, **values, "CUDA_EMULATOR_DEVICES": "0"}):
            run = run_stachio(["--device", "cuda", "-c", "SELECT 1"])
        told = "no CUDA device: none found" + (f" (tried: CUDA_VISIBLE_DEVICES, {tried})" if tried else "")
        require(run.status == 2 and told in run.error and ("tried" in run.error) == bool(tried), f"{values}: {run}")
    with environment(**two):
        check_equal(tables, DuckDB(tables), QUERIES[0], "--fallback", "forbid", "--device", "cuda")


def check_environment(tables):
    with environment(STACHIO_DEVICE="cuda", STACHIO_CUDA_LIBRARY=NOWHERE):
        run = run_stachio(["-c", "SELECT 1"])
        require(run.status == 2 and "device cuda: " in run.error, str(run))
        require("stachio on cpu," in analyze(tables, "--device", "cpu"), "the option counts")
    with environment(STACHIO_DEVICE="cpu", STACHIO_CUDA_LIBRARY=NOWHERE):
        require("No GPU" not in analyze(tables), "nobody asked for a GPU")
    with environment(STACHIO_DEVICE="gpu"):
        run = run_stachio(["-c", "SELECT 1"])
        require(run.status == 2 and "STACHIO_DEVICE: 'gpu'" in run.error, str(run))


def check_emulated(tables):
    with environment(STACHIO_DEVICE=None, STACHIO_CUDA_LIBRARY=EMULATED):
        require("stachio on emulated," in analyze(tables), "auto takes a device that works")
        require("stachio on cpu," in analyze(tables, "--device", "cpu"), "the option counts")
    with environment(STACHIO_DEVICE="cuda", STACHIO_CUDA_LIBRARY=EMULATED):
        require("stachio on emulated," in analyze(tables), "the environment counts")
        for sql in QUERIES:
            check_equal(tables, DuckDB(tables), sql, "--fallback", "forbid")


def launches(kernel, tables, sql, directory, **values):
    """How often the emulated device ran it."""
    path = os.path.join(directory, "kernels")
    with environment(STACHIO_DEVICE="cuda", STACHIO_CUDA_LIBRARY=EMULATED, CUDA_EMULATOR_KERNELS=path, **values):
        run_stachio([*tables.options(), "-c", sql, "--fallback", "forbid"]).succeeded()
    lines = [line.split() for line in pathlib.Path(path).read_text().splitlines()]
    os.remove(path)
    return sum(int(line[0]) for line in lines if kernel in line)


def check_inflate(tables):
    """Few pages are decompressed by the host, many by the device; STACHIO_INFLATE counts for both."""
    directory = os.path.join(tables.directory, "..", "inflate")
    for codec, kernel, few, many in (("zstd", "zstd_pieces", 20, 80), ("gzip", "gzip_pieces", 40, 150), ("lz4", "lz4_pieces", 90, 250)):
        for pages, wanted in (few, False), (many, True):
            found = Tables(os.path.join(directory, f"{codec}-{pages}"))
            os.makedirs(found.directory)
            pq.write_table(pa.table({"v": pa.array([i % 97 for i in range(pages * 100)], pa.int64())}), f"{found.directory}/p.parquet",
                           compression=codec, use_dictionary=False, data_page_size=800, write_batch_size=100)
            sql = "SELECT count(*), sum(v), max(v) FROM p"
            for forced, ran in (None, wanted), (codec, True), ("none", False):
                times = launches(kernel, found, sql, directory, STACHIO_INFLATE=forced)
                require((times > 0) == ran, f"{codec}, {pages} pages, STACHIO_INFLATE={forced}: {kernel} ran {times} times")
                with environment(STACHIO_DEVICE="cuda", STACHIO_CUDA_LIBRARY=EMULATED, STACHIO_INFLATE=forced):
                    check_equal(found, DuckDB(found), sql, "--fallback", "forbid")


def check_sort(tables):
    """Few rows are sorted by comparing them; STACHIO_SORT_FEW_ROWS tells how many are few."""
    directory = os.path.join(tables.directory, "..")
    sql = "SELECT v, s FROM t ORDER BY k DESC, s, v"
    for most, is_few in (None, True), ("300", True), ("299", False), ("0", False):
        ran = [launches(kernel, tables, sql, directory, STACHIO_SORT_FEW_ROWS=most) > 0 for kernel in ("sort_runs", "measure_rows")]
        require(ran == [is_few, not is_few], f"STACHIO_SORT_FEW_ROWS={most}: sort_runs, measure_rows ran: {ran}")
        with environment(STACHIO_DEVICE="cuda", STACHIO_CUDA_LIBRARY=EMULATED, STACHIO_SORT_FEW_ROWS=most):
            check_equal(tables, DuckDB(tables), sql, "--fallback", "forbid")


def check_ordered_groups(tables):
    """Rows in the order of their key need no table of groups."""
    directory = os.path.join(tables.directory, "..", "ordered")
    os.makedirs(directory)
    in_order = [n // 3 for n in range(20_000)]
    sql = "SELECT k, count(*) AS n, sum(v) AS v FROM t GROUP BY k ORDER BY k"
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.int64(), nullable=False)])
    for name, keys, is_ordered in (("ascending", in_order, True), ("descending", in_order[::-1], False), ("twice", in_order * 2, False)):
        path = os.path.join(directory, f"{name}.parquet")
        pq.write_table(pa.table({"k": keys, "v": [k * 7 for k in keys]}, schema=schema), path, use_dictionary=False)
        found = Tables(globs={"t": path})
        ran = [launches(kernel, found, sql, directory) > 0 for kernel in ("number_runs", "sum_runs", "find_runs")]
        require(ran == [is_ordered, is_ordered, not is_ordered], f"{name}: number_runs, sum_runs, find_runs ran: {ran}")
        with environment(STACHIO_DEVICE="cuda", STACHIO_CUDA_LIBRARY=EMULATED):
            check_equal(found, DuckDB(found), sql, "--fallback", "forbid", order=(0,))


def check_many_keys(tables):
    """More keys and aggregates than one kernel moves the arrays of, of groups that grow."""
    path = os.path.join(tables.directory, "..", "keys.parquet")
    rows = 5_000 if SANITIZED else 40_000
    pq.write_table(pa.table({"i": [n * 7919 % 30_011 for n in range(rows)]}), path, row_group_size=rows // 10)
    found = Tables(globs={"t": path})
    keys = ", ".join(f"i + {k}" for k in range(70))
    sums = ", ".join(f"sum(i + {k})" for k in range(40))
    with environment(STACHIO_DEVICE="cuda", STACHIO_CUDA_LIBRARY=EMULATED):
        check_equal(found, DuckDB(found), f"SELECT {sums} FROM t GROUP BY {keys}", "--fallback", "forbid", "--device-memory-limit", "512MB")


def check_kept_batches(tables):
    """Small batches that are kept for two readers are one for each, on a device."""
    path = os.path.join(tables.directory, "..", "kept.parquet")
    rows = 40_000 if SANITIZED else 200_000
    pq.write_table(pa.table({"k": range(rows), "s": [f"text {n % 97}" for n in range(rows)]}), path, row_group_size=rows // 20)
    found = Tables(globs={"t": path})
    sql = ("WITH c AS MATERIALIZED (SELECT k, s FROM t WHERE k % 3 = 0) "
           "SELECT * FROM (SELECT count(*) AS n, max(s) AS s FROM c) x, (SELECT sum(k) AS v, min(s) AS m FROM c) y")
    for ranks in ("1", "2"):
        with environment(STACHIO_DEVICE="cuda", STACHIO_CUDA_LIBRARY=EMULATED, STACHIO_LOCAL_RANKS=ranks, CUDA_EMULATOR_DEVICES=ranks, STACHIO_ALONE_BYTES="0"):
            check_equal(found, DuckDB(found), sql, "--fallback", "forbid", "--device-memory-limit", "512MB")
            profile = run_stachio([*found.options(), "--analyze", "--device-memory-limit", "512MB", "-c", sql]).succeeded().out.decode()
        scanned, *kept = [line.split() for line in profile.splitlines() if " SCAN t" in line or " REFERENCE " in line]
        require(int(scanned[-4]) > 1 and [int(line[-4]) for line in kept] == [1, 1], f"{ranks} ranks: {profile}")


def check_duckdb_threads(tables):
    """Where DuckDB answers beside a GPU it has all processors, whatever the GPU's workers are."""
    with environment(STACHIO_DEVICE=None, STACHIO_CUDA_LIBRARY=EMULATED):
        for device, wanted in (("cuda", len(os.sched_getaffinity(0))), ("cpu", 1)):
            run = run_stachio(["--device", device, "--threads", "1", "--format", "csv", "-c", "SELECT current_setting('threads') AS n"])
            require(run.succeeded().out.decode() == f"n\n{wanted}\n", str(run))


def check_files(tables):
    """Files of one table that store values of a type in different ways are not decoded together."""
    directory = os.path.join(tables.directory, "..", "mixed")
    os.makedirs(directory)
    rows = [(n, decimal.Decimal(n * 37 - 900).scaleb(-1), datetime.datetime(2001, 2, 3) + datetime.timedelta(hours=n))
            for n in range(300)]
    for part, unit in enumerate(["ms", "us", "s", "ns"]):
        table = pa.table({"n": pa.array([row[0] for row in rows], pa.int32()), "d": pa.array([row[1] for row in rows], pa.decimal128(6, 1)),
                          "t": pa.array([row[2] for row in rows], pa.timestamp("ms"))})
        path = os.path.join(directory, f"part-{part}.parquet")
        if part == 1:
            duckdb.from_arrow(table).write_parquet(path)  # decimals as integers, in place of bytes
        else:
            pq.write_table(table, path, coerce_timestamps="us" if unit == "s" else unit if unit != "ns" else "ms",
                           store_decimal_as_integer=unit == "ns", use_dictionary=False)
    mixed = Tables(globs={"mixed": os.path.join(directory, "*.parquet")})
    with environment(STACHIO_DEVICE="cuda", STACHIO_CUDA_LIBRARY=EMULATED):
        for sql in "SELECT * FROM mixed", "SELECT sum(d), min(t), max(t), count(*) FROM mixed WHERE n > 20":
            check_equal(mixed, DuckDB(mixed), sql, "--fallback", "forbid")


def check_ranks(tables):
    """Ranks get the GPUs in turn, by their PCI address (which the emulator's order is not)."""
    with environment(STACHIO_CUDA_LIBRARY=EMULATED, STACHIO_LOCAL_RANKS="3", CUDA_EMULATOR_DEVICES="2"):
        text = analyze(tables, "--device", "cuda")
        places = re.findall(r"^Rank (\d) +host [^ ]+, pid \d+: emulated at ([0-9a-f:.]+), processors [0-9,-]+$", text, re.MULTILINE)
        require(places == [("0", "0000:a0:00.0"), ("1", "0000:a1:00.0"), ("2", "0000:a0:00.0")], text)
        require("Network        local" in text, text)
        for sql in QUERIES:
            check_equal(tables, DuckDB(tables), sql, "--fallback", "forbid", "--device", "cuda")
        require("Rank 2         host " in analyze(tables, "--device", "cpu") and ": cpu, processors " in analyze(tables, "--device", "cpu"),
                "ranks on the CPU")


def check_rounds(group, ways):
    """Rounds, or pulls, in rank 0's trace: about what comes to a rank in a join, and those of a lane one after another. Of four columns
    three fit into half of their bytes."""
    plain, wanted = link_bytes(group, ways, "off")
    narrow, _ = link_bytes(group, ways, "auto")
    for way in ways:
        require(plain[way] > 0.9 * wanted, f"{way}: {plain} of {wanted}")
        require(0.6 * plain[way] < narrow[way] < 0.7 * plain[way], f"{way}: {narrow} of {plain}")


def link_bytes(group, ways, compression):
    """Bytes of all runs by way, and what a run should have."""
    with scratch_directory() as scratch:
        trace, report = os.path.join(scratch, "join.trace"), os.path.join(scratch, "join.json")
        run_stachio(["bench", "join", "--build", "10k", "--probe", "50k", "--device", "cuda", "--runs", "1", "--trace", trace, "--json", report,
                     "--columns", "4", "--shuffle-compression", compression]).succeeded()
        with open(trace, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        lanes = {event["tid"] for event in events if event["name"] == "thread_name" and event["args"]["name"].startswith(group)}
        rounds = [event for event in events if event.get("cat") == "link" and event["tid"] in lanes]
        with open(report, encoding="utf-8") as file:
            wanted = json.load(file)["results"][0]["bytes"]
    rounds.sort(key=lambda event: (event["tid"], event["ts"]))
    for before, after in zip(rounds, rounds[1:]):
        require(before["tid"] != after["tid"] or before["ts"] + before["dur"] <= after["ts"], f"{before}, {after}")
    return {way: sum(event["args"][way] for event in rounds) for way in ways}, wanted


def check_links(tables):
    """Rows go from GPU to GPU where each rank has its own and NCCL is there; else --analyze says why not."""
    def network():
        text = analyze(tables, "--device", "cuda")
        return re.search("^Network +(.*)$", text, re.MULTILINE).group(1)

    base = {"STACHIO_CUDA_LIBRARY": EMULATED, "STACHIO_NCCL_LIBRARY": NCCL, "STACHIO_LOCAL_RANKS": "3", "STACHIO_LINK_BYTES": "1",
            "STACHIO_BROADCAST_BYTES": "0", "STACHIO_FEW_GROUPS": "0", "STACHIO_LARGE_ROWS": "100", "CUDA_EMULATOR_DEVICES": "3", "NCCL_EMULATOR_TELL": None, "STACHIO_TRANSPORT": None}
    nccl = {**base, "STACHIO_TRANSPORT": "nccl"}
    for way in base, nccl:
        with environment(**way):
            for sql in (*QUERIES, *TEXT_QUERIES, EARLY, FILTERED):
                for compression in ("on",) if SANITIZED else ("off", "on", "auto"):
                    check_equal(tables, DuckDB(tables), sql, "--fallback", "forbid", "--device", "cuda", "--shuffle-compression", compression)
    with environment(**base):
        require(network().endswith("; 3 ranks pull from each other's memory"), "pulls")
        check_rounds("from rank ", ["received_bytes"])
        with environment(NCCL_EMULATOR_TELL="1"):
            run = run_stachio([*tables.options(), "-c", FILTERED, "--analyze", "--device", "cuda"]).succeeded()
        require(b"filter of all ranks" in run.out and not run.error, f"a filter goes by pulls, too, and nobody needs a communicator: {run}")
        with environment(NCCL_EMULATOR_TELL="1"):
            run = run_stachio(["bench", "exchange", "--sizes", "70000", "--device", "cuda"]).succeeded()
        require(len(re.findall(r"sent [1-9]", run.error)) == 3, f"who needs one makes it: {run}")
        for sql in WIDE, "SELECT count(*), max(a.note) FROM texts a JOIN texts b ON a.phone = b.phone":
            for compression, is_packed in ("on", True), ("off", False):
                run = run_stachio([*tables.options(), "-c", sql, "--analyze", "--device", "cuda",
                                   "--shuffle-compression", compression]).succeeded()
                require((b"sent (packed, " in run.out) == is_packed, f"{run}: {run.out.decode()}")
        require("sent (narrow, " in analyze(tables, "--device", "cuda", sql=WIDE), "integers that fit")
    with environment(**{**base, "CUDA_EMULATOR_CLOSED": "0"}):
        require(network().endswith("; 3 ranks pull from each other's memory"), "nobody reaches one rank, which reaches the others")
        for sql in QUERIES + TEXT_QUERIES:
            check_equal(tables, DuckDB(tables), sql, "--fallback", "forbid", "--device", "cuda")
    with environment(**{**base, "NCCL_EMULATOR_NO_COMM": "1"}):
        check_equal(tables, DuckDB(tables), QUERIES[2], "--fallback", "forbid", "--device", "cuda")
        run = run_stachio(["bench", "exchange", "--sizes", "70000", "--device", "cuda"])
        require(run.status != 0 and "ncclCommInitRankConfig" in run.error, f"who needs a communicator says why there is none: {run}")
    with environment(**{**base, "NCCL_P2P_DISABLE": "1"}):
        require("pull" not in network(), "NCCL keeps away from other GPUs' memory, and so do pulls")
    with environment(**{**nccl, "NCCL_EMULATOR_TELL": "1"}):
        run = run_stachio([*tables.options(), "-c", QUERIES[2], "--analyze", "--device", "cuda"]).succeeded()
        require(b"local; GPU to GPU by NCCL 2." in run.out, str(run))
        require(re.search(r"emulated NCCL: rank \d sent [1-9]", run.error), str(run))
        table = [line.split() for line in run_stachio(["bench", "exchange", "--sizes", "70000,3000000", "--device", "cuda"])
                 .succeeded().out.decode().splitlines()]
        require(len(table) == 4 and all(float(row[5]) > 0 for row in table[2:]), f"NCCL alone: {table}")
        run = run_stachio(["bench", "join", "--build", "1000", "--probe", "5000", "--device", "cuda"]).succeeded()
        require(b"GPU to GPU by NCCL 2." in run.out, str(run))
        check_rounds("link ", ["sent_bytes", "received_bytes"])
    for values, reason in (({"CUDA_EMULATOR_DEVICES": "2"}, "ranks share a GPU"), ({"STACHIO_TRANSPORT": "host"}, "STACHIO_TRANSPORT=host"),
                           ({"STACHIO_NCCL_LIBRARY": NOWHERE}, "no NCCL: "), ({"NCCL_EMULATOR_NO_ID": "1"}, "ncclGetUniqueId: "),
                           ({"NCCL_EMULATOR_NO_COMM": "1", "CUDA_EMULATOR_CLOSED": "0"}, "ncclCommInitRankConfig: ")):
        began = time.monotonic()
        with environment(**{**base, **values}):
            require(f"local; GPU to GPU by the host's memory: {reason}" in network(), reason)
        require(time.monotonic() - began < 40, f"{reason}: nobody waits for a communicator that can't be")
    with environment(**nccl):
        require("GPU to GPU by NCCL" in network() and "pull" not in network(), "NCCL as demanded")
    for values, device, reason in (({"CUDA_EMULATOR_DEVICES": "2"}, "cuda", "ranks share a GPU"), ({"STACHIO_NCCL_LIBRARY": NOWHERE}, "cuda", "no NCCL: "),
                                   ({}, "cpu", "ranks run on processors")):
        with environment(**{**nccl, **values}):
            run = run_stachio([*tables.options(), "-c", QUERIES[2], "--device", device])
            require(run.status == 2 and f"STACHIO_TRANSPORT=nccl: {reason}" in run.error, f"{reason}: {run}")


def main():
    checks = Checks()
    with scratch_directory() as scratch:
        tables = make_tables(os.path.join(scratch, "tables"))
        found = [check_without_gpu, check_environment]
        if os.path.exists(EMULATED):
            found += [check_emulated, check_hidden, check_sort, check_ordered_groups, check_many_keys, check_kept_batches, check_duckdb_threads, check_files,
                      check_ranks, check_links] + ([] if SANITIZED else [check_inflate])  # of which conformance tests have the kernels
        for check in found:
            with checks.case(check.__name__):
                check(tables)
    checks.finish()


if __name__ == "__main__":
    main()
