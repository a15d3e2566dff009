"""stachio bench primitives: every family on the CPU and on the emulated device, as a table and as JSON; bench scan; bench join."""

import json
import os
import pathlib
import subprocess
import sys
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import pyarrow
from pyarrow import parquet

from check import SANITIZED, Checks, require, scratch_directory
from device import CUFILE, EMULATED
from oracle import run_stachio

FAMILIES = {"copy", "eval_run", "eval_select", "gather", "concat", "mask_to_index", "hash", "partition", "group",
            "join_build", "join_take", "join_filter", "sort"}
OF_DEVICES = {"partition_keys", "rows_pack", "rows_unpack"}
SCAN_ROWS = 4_000 if SANITIZED else 20_000  # of each of two files
ROOT = pathlib.Path(__file__).resolve().parents[2]


def measure(scratch, rows, *options):
    """The results by (primitive, case, rows); checks what every result has."""
    path = os.path.join(scratch, "bench.json")
    run = run_stachio(["bench", "primitives", "--rows", rows, "--json", path, *options]).succeeded()
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    table = run.out.decode().splitlines()
    require(len(table) == len(report["results"]) + 2 and report["device"] in table[0], run.out.decode())
    for result in report["results"]:
        require("failure" not in result, str(result))
        require(result["seconds"] > 0 and result["floor_bytes"] > 0 and result["runs"] >= 1, str(result))
        require(result["copy_bytes_per_second"] > 0, str(result))
    found = {(result["primitive"], result["case"], result["rows"]): result for result in report["results"]}
    require(len(found) == len(report["results"]), "two results of one name")
    return report["device"], found


def check_cpu(scratch):
    device, found = measure(scratch, "5000,20000", "--device", "cpu", "--threads", "2")
    require(device == "cpu" and {key[0] for key in found} == FAMILIES, f"{device}: {sorted(found)}")
    require({key[2] for key in found if key[0] == "sort"} == {5000, 20000}, "sizes")
    require(all(result["threads"] == 2 for result in found.values()), "threads")
    # bytes that follow from the sizes alone
    require(found["copy", "int64", 20000]["floor_bytes"] == 16 * 20000, "copy")
    require(found["partition", "16 parts", 5000]["floor_bytes"] == 12 * 5000, "partition")
    require(found["hash", "two int64", 5000]["floor_bytes"] == 24 * 5000, "hash")


def check_device(scratch):
    os.environ["STACHIO_CUDA_LIBRARY"] = EMULATED
    try:
        _, found = measure(scratch, "1024", "--device", "cuda", "--threads", "2")
        _, alone = measure(scratch, "1024", "--device", "cuda", "hash")
    finally:
        del os.environ["STACHIO_CUDA_LIBRARY"]
    require({key[0] for key in found} == FAMILIES | OF_DEVICES, str(sorted(found)))
    require(all(result["threads"] == 1 for result in alone.values()), "a device has one stream by default")


def check_filter(scratch):
    _, found = measure(scratch, "2000", "sort strings")
    require({key[:2] for key in found} == {("copy", "int64"), ("sort", "strings"), ("sort", "strings, the first 100")},
            str(sorted(found)))


WAYS = {("cold", 1, "blocking"), ("warm", 1, "blocking")} | {
    (state, threads, way) for threads in (1, 2) for state, way in
    (("cold", "chunked"), ("cold", "metadata cached"), ("cold", "direct"), ("cold", "raw, into more"), ("warm", "chunked"),
     ("warm", "metadata cached"), ("warm", "chunks cached"), ("warm", "decoded"))}


def measure_scan(scratch, table, *options):
    path = os.path.join(scratch, "scan.json")
    run = run_stachio(["bench", "scan", "--json", path, "--threads", "2", *options, table]).succeeded()
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    require(len(run.out.decode().splitlines()) == len(report["results"]) + 2, run.out.decode())
    for result in report["results"]:
        require(result["seconds"] > 0 and result["raw_bytes_per_second"] > 0, str(result))
        require(abs(result["t_min_seconds"] * result["raw_bytes_per_second"] / result["bytes"] - 1) < 0.001, str(result))
    return report


def check_scan(scratch):
    """Bytes are those of the column chunks, as pyarrow counts them."""
    table = os.path.join(scratch, "table")
    os.makedirs(table)
    for part in range(2):
        rows = pyarrow.table({"a": range(part, SCAN_ROWS + part), "b": [str(i % 999) for i in range(SCAN_ROWS)]})
        parquet.write_table(rows, os.path.join(table, f"{part}.parquet"), row_group_size=SCAN_ROWS * 3 // 20)
    stored = 0
    for part in range(2):
        metadata = parquet.ParquetFile(os.path.join(table, f"{part}.parquet")).metadata
        stored += sum(metadata.row_group(g).column(c).total_compressed_size
                      for g in range(metadata.num_row_groups) for c in range(2))
    report = measure_scan(scratch, table, "--device", "cpu", "--repeat", "2")
    found = {(result["state"], result["threads"], result["way"]): result for result in report["results"]}
    require(report["files"] == 2 and report["runs"] == 2 and set(found) == WAYS, str(sorted(found)))
    files = sum(os.path.getsize(os.path.join(table, f"{part}.parquet")) for part in range(2))
    for (_, _, way), result in found.items():
        require(result["bytes"] == (files if way.startswith("raw") else stored), f"{stored}, {files}: {result}")
    made = 2 * SCAN_ROWS * (8 + 4)  # integers, and codes of texts
    for (_, _, way), result in found.items():
        require(result["value_bytes"] == (made if way == "decoded" else 0), f"{made}: {result}")
    for options, status in (([], 2), (["/nowhere.parquet"], 3), (["--rows", "5000", table], 2)):
        run = run_stachio(["bench", "scan", *options])
        require(run.status == status and run.error.startswith("stachio: "), str(run))


def check_scan_device(scratch):
    """Page-locked memory and, where there is cuFile, files straight into the device's memory; as many bytes."""
    cases = ((CUFILE, "", True), (CUFILE, "fileless", False), ("/nowhere/libcufile.so.0", "", False))
    for library, mode, has_gds in cases[:1] if SANITIZED else cases:
        os.environ.update(STACHIO_CUDA_LIBRARY=EMULATED, STACHIO_CUFILE_LIBRARY=library, CUFILE_EMULATOR_MODE=mode)
        try:
            results = measure_scan(scratch, os.path.join(scratch, "table"), "--device", "cuda", "--repeat", "1")["results"]
        finally:
            for name in ("STACHIO_CUDA_LIBRARY", "STACHIO_CUFILE_LIBRARY", "CUFILE_EMULATOR_MODE"):
                del os.environ[name]
        ways = {(result["state"], result["way"]) for result in results}
        require({("warm", "pinned memory"), ("warm", "decoded"), ("warm", "decoded there")} <= ways, str(ways))
        made = {result["value_bytes"] for result in results if result["way"].startswith("decoded")}
        require(made == {2 * SCAN_ROWS * (8 + 4)}, str(made))
        takes_direct = ("cold", "direct") in ways
        require((("cold", "gds") in ways) == (has_gds and takes_direct) and ("warm", "gds") not in ways, f"{library} {mode}: {ways}")
        require(len({result["bytes"] for result in results if not result["way"].startswith("raw")}) == 1, str(results))


def check_scan_damage(scratch):
    """Found where pages are decoded, with the place in words; nothing is left hanging."""
    path = os.path.join(scratch, "damaged.parquet")
    rows = pyarrow.table({"a": range(50000), "b": [str(i * 7919 % 100003) * 3 for i in range(50000)]})
    parquet.write_table(rows, path, row_group_size=20000, compression="snappy", use_dictionary=False)
    chunk = parquet.ParquetFile(path).metadata.row_group(1).column(1)
    with open(path, "r+b") as file:
        file.seek(chunk.data_page_offset + chunk.total_compressed_size // 2)
        file.write(b"\xff" * 64)
    run = run_stachio(["bench", "scan", "--device", "cpu", "--threads", "2", "--repeat", "1", path])
    require(run.status == 3 and f"{path}, row group 1, column b: page 0: " in run.error, str(run))


def measure_join(scratch, ranks, *options):
    """The results; stachio itself compares counts and sums with what the generator knows."""
    path = os.path.join(scratch, "join.json")
    run = run_stachio(["bench", "join", "--threads", "2", "--json", path, *options], env=dict(os.environ, STACHIO_LOCAL_RANKS=str(ranks)))
    run.succeeded()
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    require(report["ranks"] == ranks and len(run.out.decode().splitlines()) == len(report["results"]) + 3, run.out.decode())
    for result in report["results"]:
        require(result["seconds"] >= result["least_seconds"] > 0 and result["peak_memory_bytes"] > 0, str(result))
        require((result["exchange_ratio"] > 0) == (result["exchange_seconds"] > 0) == (ranks > 1), str(result))
    return report


def check_join(scratch, variant):
    """Rows and bytes follow from the numbers given, whatever the ranks."""
    for ranks in (3,) if SANITIZED else (1, 2, 3):
        for hit_ratio, skew, columns in ((0, 0, 1), (0.5, 0, 3), (1, 0, 2), (0.5, 1.2, 2), (1, 1, 1)):
            report = measure_join(scratch, ranks, "--variant", variant, "--build", "7k", "--probe", "50001", "--columns", columns,
                                  "--hit-ratio", hit_ratio, "--skew", skew, "--sizes", "1024,1048576")
            require(report["variant"] == variant and [r["message_bytes"] for r in report["results"]] == [1024, 1048576], str(report))
            for result in report["results"]:
                require(result["rows"] == int(50001 * hit_ratio), str(result))
                require(result["bytes"] == 57001 * columns * 8 * (ranks - 1) // ranks**2, str(result))


def check_join_sizes(scratch):
    for rows in (("0", "5000"), ("5000", "0"), ("1", "1")):
        report = measure_join(scratch, 3, "--build", rows[0], "--probe", rows[1], "--hit-ratio", "1")
        require(report["results"][0]["rows"] == (int(rows[1]) if rows[0] != "0" else 0), str(report))
    report = measure_join(scratch, 2, "--tpch", "--sf", "0.01", "--weak-scaling", "--runs", "3")
    require(report["runs"] == 3 and report["build_rows"] == 30000 and report["results"][0]["rows"] == 120000, str(report))
    require((report["build_columns"], report["probe_columns"]) == (2, 1), str(report))


def check_join_memory(scratch):
    """What does not fit at once fits in chunks: the tables take 64 MB a rank, of the host's memory."""
    options = ("--device", "cpu", "--build", "100k", "--probe", "4M", "--columns", "4", "--memory-limit", "115MB")
    require(measure_join(scratch, 2, *options, "--variant", "chunked")["results"][0]["rows"] == 2000000, "chunked")
    for variant in ("blocking", "tuned"):
        run = run_stachio(["bench", "join", "--variant", variant, *options], env=dict(os.environ, STACHIO_LOCAL_RANKS="2"))
        require(run.status == 4 and "out of memory" in run.error and "EXCHANGE" in run.error, str(run))


def check_join_timeline(scratch):
    path = os.path.join(scratch, "timeline.csv")
    measure_join(scratch, 2, "--build", "20k", "--probe", "300k", "--timeline", path)
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    samples = [tuple(map(float, line.split(","))) for line in lines[1:]]
    require(lines[0] == "seconds,bytes" and samples == sorted(samples) and len(samples) > 1, str(lines))
    sent = 320000 * 2 * 8 / 4
    require(samples[0][1] < samples[-1][1] and 0.95 * sent < samples[-1][1] < 1.15 * sent, str(samples[-1]))
    run = run_stachio(["bench", "join", "--timeline", path + "1"])
    require(run.status == 2 and "--timeline" in run.error and not os.path.exists(path + "1"), str(run))


def check_join_trace(scratch):
    path = os.path.join(scratch, "trace.json")
    measure_join(scratch, 2, "--build", "20k", "--probe", "30k", "--trace", path)
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    pipelines = [event for event in events if event.get("cat") == "pipeline" and event["name"].endswith("JOIN build INNER")]
    require(len(pipelines) >= 2 and any(event["name"] == "join_take" for event in events), str(events)[:1000])


def sends_before_probing(scratch, variant, large_rows):
    """How many batches rank 0 sends until the table is there: those of the build side, and what is early of the other."""
    path = os.path.join(scratch, "early.json")
    with mock.patch.dict(os.environ, STACHIO_CUDA_LIBRARY=EMULATED, STACHIO_LARGE_ROWS=large_rows):
        report = measure_join(scratch, 2, "--variant", variant, "--device", "cuda", "--build", "80k", "--probe", "80k", "--trace", path)
    require(report["results"][0]["rows"] == 40000, str(report))
    with open(path, encoding="utf-8") as file:
        events = [event for event in json.load(file)["traceEvents"] if event.get("ph") == "X"]
    ends = sorted(event["ts"] + event["dur"] for event in events if event["name"] == "seal JOIN build INNER")
    sends = sorted(event["ts"] for event in events if event["name"] == "EXCHANGE HASH send")
    a_run = len(sends) // len(ends)
    require(a_run > 0 and len(sends) == a_run * len(ends), str(events)[:1000])
    return [sum(sent < end for sent in sends[run * a_run:(run + 1) * a_run]) for run, end in enumerate(ends)]


def check_join_early(scratch):
    """Rows of the probe side go while the build side's last ones come, or while the table is made, if that is large enough."""
    none = sends_before_probing(scratch, "blocking", "1000")
    require(sum(sends_before_probing(scratch, "auto", "1000")) > sum(none), "nothing is sent early")
    require(sends_before_probing(scratch, "auto", "1000000") == none, "something is sent early")


def run_script(*command):
    done = subprocess.run([sys.executable, str(ROOT / "bench" / command[0]), *command[1:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    require(done.returncode == 0, done.stdout + done.stderr)
    return done.stdout


def check_join_figures(scratch):
    """Figure 6 has a row a variant; in figure 8 the blocking variants run out of memory where the others go on."""
    path = os.path.join(scratch, "figures.json")
    out = run_script("join_figures", "--local", "--figures", "6,8", "--build", "100k", "--probe", "1M", "--most-ranks", "2", "--runs", "1",
                     "--json", path, "--", "--threads", "1")
    with open(path, encoding="utf-8") as file:
        results = json.load(file)
    by_variant = {}
    for result in results:
        by_variant.setdefault(result["variant"], []).append(result)
    require(set(by_variant) == {"auto", "blocking", "tuned", "chunked", "deferred"} and "### Figure 8" in out, out)
    for variant, found in by_variant.items():
        failed = [result for result in found if result.get("out_of_memory")]
        require(len(found) == 1 + 4 + 2 and bool(failed) == (variant in ("blocking", "tuned")), f"{variant}: {failed}")
        require(found[0]["timeline"][-1][1] > 0, variant)
        for option in ("--memory-limit", "--device-memory-limit"):
            require(sum(option in result["options"] for result in found) == 4, f"{variant}: {option}")


def check_join_figures_memory(scratch):
    """A variant of figure 6 without enough memory has no timeline."""
    path = os.path.join(scratch, "figures.json")
    out = run_script("join_figures", "--local", "--figures", "6", "--build", "10k", "--probe", "6M", "--runs", "1", "--json", path, "--",
                     "--device", "cpu", "--threads", "1", "--memory-limit", "130MB")
    with open(path, encoding="utf-8") as file:
        results = {result["variant"]: result for result in json.load(file)}
    failed = {variant for variant, result in results.items() if result.get("out_of_memory")}
    require(failed and len(failed) < len(results), out)
    require(failed == {variant for variant, result in results.items() if "timeline" not in result}, str(results.keys()))


def check_scale_model(_):
    """The points that it was fitted to come out as they are."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in run_script("scale_model.py").splitlines() if line.startswith("|")]
    seed = {line[0]: line for line in lines if "%)" in line[2]}
    require(seed["64"][2] == "419 (+0 %)" and seed["1024"][1] == seed["1024"][3] == "833" and abs(int(seed["256"][1]) - 549) < 28, str(seed))


def check_join_device(scratch):
    os.environ["STACHIO_CUDA_LIBRARY"] = EMULATED
    try:
        for variant in ("chunked", "deferred", "tuned"):
            report = measure_join(scratch, 2, "--variant", variant, "--device", "cuda", "--build", "500", "--probe", "3000")
            require(report["device"] != "cpu" and report["results"][0]["rows"] == 1500, str(report))
        if SANITIZED:  # the emulator is slow
            return
        # tables of 10 MB a rank: what an exchange puts together has to fit beside them (27 to 34 MB; 41 where the limit has no say in it)
        options = ("--device", "cuda", "--build", "500", "--probe", "600k", "--columns", "4", "--device-memory-limit", "36MB")
        require(measure_join(scratch, 2, "--variant", "chunked", *options)["results"][0]["rows"] == 300000, "a small device")
    finally:
        del os.environ["STACHIO_CUDA_LIBRARY"]


def check_join_usage(_):
    for options in (["--build", "1x"], ["--columns", "0"], ["--columns", "65"], ["--hit-ratio", "2"], ["--skew", "-1"],
                    ["--variant", "quick"], ["--runs", "0"], ["--sizes", "10"], ["more"]):
        run = run_stachio(["bench", "join", *options])
        require(run.status == 2 and run.error.startswith("stachio: "), str(run))


def check_idle_options(_):
    """Options that would do nothing are refused, by name."""
    join = ["--build", "1k", "--probe", "1k"]
    for name, *options in (("--sf", "join", "--sf", "10", *join), ("--columns", "join", "--tpch", "--columns", "9"), ("--skew", "join", "--skew", "0", "--tpch"),
                           ("--steps", "join", "--steps", *join), ("--rows", "join", "--rows", "2000", *join),
                           *((name, "primitives", "copy", name, *value) for name, *value in (
                               ("--build", "5"), ("--steps",), ("--tpch",), ("--sf", "1"), ("--columns", "7"), ("--timeline", "F"), ("--shuffle", "two-level"),
                               ("--repeat", "3"), ("--sizes", "2000"))),
                           *((name, "scan", "FILE", name, *value) for name, *value in (("--tpch",), ("--skew", "2"), ("--rows", "5000"))),
                           *((name, "exchange", name, *value) for name, *value in (("--skew", "1"), ("--build", "5"), ("--weak-scaling",)))):
        run = run_stachio(["bench", *options])
        require(run.status == 2 and name in run.error, f"{options}: {run}")


def check_usage(_):
    for options in (["--rows", "1"], ["--rows", "x"], ["--rows", "2000,"], ["--rows", ""], ["a", "b"], ["-c", "SELECT 1"]):
        run = run_stachio(["bench", "primitives", *options])
        require(run.status == 2 and run.error.startswith("stachio: "), str(run))
    run = run_stachio(["bench", "primitives", "--rows", "2000", "--json", "/nowhere/x.json", "hash"])
    require(run.status == 3, str(run))


def main():
    checks = Checks()
    with scratch_directory() as scratch:
        cases = [check_cpu, check_filter, check_usage, check_scan, check_scan_damage, check_join_sizes, check_join_memory, check_join_timeline, check_join_trace, check_join_usage, check_idle_options,
                 check_scale_model]
        cases += [] if SANITIZED else [check_join_figures, check_join_figures_memory]
        cases += [check_device, check_scan_device, check_join_device] if os.path.exists(EMULATED) else []
        cases += [check_join_early] if os.path.exists(EMULATED) and not SANITIZED else []  # the emulator is slow
        for check in cases:
            with checks.case(check.__name__):
                check(scratch)
        for variant in ("auto", "blocking", "tuned", "chunked", "deferred"):
            with checks.case(f"join, {variant}"):
                check_join(scratch, variant)
    checks.finish()


if __name__ == "__main__":
    main()
