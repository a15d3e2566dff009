"""--io gds: files straight into the GPU's memory. Answers are DuckDB's whatever the codec, the layout, the caches and what fails
on the way; damage has the same words as otherwise. On the emulated device and the emulated cuFile."""

import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

from check import SANITIZED, Checks, require, scratch_directory, skip
from damage import column_offset, garbled_compression, replace_at, write_sound, wrong_crc
from device import CUFILE, EMULATED, INFLATE_ALL
from oracle import DuckDB, check_equal, run_stachio
from test_cache import make_tables, write

# Codec, version of data pages, whether they have CRCs; whether the host has no need to see the bytes.
LAYOUTS = (("none", "1.0", False, True), ("snappy", "1.0", False, True), ("snappy", "2.0", False, True), ("lz4", "1.0", False, True),
           ("snappy", "1.0", True, False), ("none", "2.0", True, False), ("zstd", "1.0", False, True), ("gzip", "2.0", False, True),
           ("brotli", "1.0", False, False))
# Those that are tried with the caches and with faults.
STRAIGHT = [layout for layout in LAYOUTS if layout[3]][:3]
if SANITIZED:  # the emulator is slow
    LAYOUTS, STRAIGHT = LAYOUTS[:2] + LAYOUTS[4:5], STRAIGHT[:2]
QUERIES = ("SELECT k, count(*) AS n, sum(v) AS s, min(t) AS t FROM t WHERE v % 7 <> 3 GROUP BY k ORDER BY k",
           "SELECT v, t FROM t WHERE v BETWEEN 2040 AND 2070 ORDER BY v", "SELECT count(*) AS n FROM t",
           "SELECT count(*) AS n, max(a.t) AS t FROM t a JOIN t b ON a.v = b.k + 2100")


def run(tables, *options, **environment):
    return run_stachio([*tables.options(), "--fallback", "forbid", "--progress", "never", "--threads", "2", *options],
                       env={**os.environ, **environment})


def emulated_reads(run):
    """How many reads, and that nothing was left open."""
    found = re.search(r"emulated cuFile: (\d+) reads, (\d+) bytes; (\d+) buffers and (\d+) files left", run.error)
    require(found and found[3] == found[4] == "0", str(run))
    return int(found[1])


def straight(run):
    """For each statement, whether bytes were read, and all of them straight into the device's memory."""
    found = re.findall(r"^Read +([\d.]+ \w+), [^,\n]*(?:, ([\d.]+ \w+) of it straight)?", run.succeeded().out.decode(), re.M)
    return [(read != "0 B", read == to_device) for read, to_device in found]


def check_answers(tables, options, n_queries=len(QUERIES), **environment):
    for sql in QUERIES[:n_queries]:
        check_equal(tables, DuckDB(tables), sql, "--fallback", "forbid", "--io", "gds", *options, env={**os.environ, **environment})


def check_way(tables, layout):
    """Who reads: cuFile where the host need not look at the bytes, and the host alone once it knows that it has to."""
    _, _, has_crc, to_device = layout
    told = run(tables, "--io", "gds", "--cache", "off", "-c", QUERIES[0], "-c", QUERIES[0], "--analyze", CUFILE_EMULATOR_TELL="1")
    require(straight(told) == [(True, to_device)] * 2, f"{layout}: {straight(told)}\n{told.out.decode()}")
    reads = emulated_reads(told)
    require(reads > 0 if to_device or has_crc else reads == 0, str(told))


def check_twice(tables, cache):
    """A cache on the device is filled by these reads; one of the host is not."""
    told = run(tables, "--io", "gds", "--cache", cache, *["-c", QUERIES[0]] * 3, "--analyze", CUFILE_EMULATOR_TELL="1")
    require(straight(told)[0] == (True, True), told.out.decode())
    again = [(cache != "device", cache != "device")] * 2
    require(straight(told)[1:] == again, f"{cache}: {straight(told)}\n{told.out.decode()}")
    same = run(tables, "--io", "gds", "--cache", cache, *["-c", QUERIES[0]] * 3, "--format", "csv").succeeded()
    lines = same.out.splitlines()
    require(len(lines) % 3 == 0 and lines[:len(lines) // 3] * 3 == lines, str(lines))


def check_fault(tables, environment):
    """What fails is read by the host."""
    told = run(tables, "--io", "gds", "--cache", "off", "-c", QUERIES[0], "--analyze", CUFILE_EMULATOR_TELL="1", **environment)
    failing = "CUFILE_EMULATOR_FAIL" in environment
    require(straight(told)[0] == (True, not failing) and emulated_reads(told) > 1, f"{told}\n{told.out.decode()}")
    check_answers(tables, [], 2, **environment)


def check_damage(directory):
    """The same words and status as without."""
    sound = write_sound(directory / "header.parquet")
    levels = write_sound(directory / "levels.parquet", compression="snappy")
    cases = (garbled_compression(directory / "garbled.parquet", "snappy"), garbled_compression(directory / "gzip.parquet", "gzip"),
             replace_at(sound, column_offset(sound, 0), b"\xff" * 8),
             replace_at(levels, column_offset(levels, 1) + 40, b"\xff" * 20), wrong_crc(directory / "crc.parquet", "1.0"))
    for path in cases:
        runs = [run_stachio(["-t", f"t={path}", "--fallback", "forbid", "--io", io, "-c", "SELECT count(*), min(id), max(v) FROM t"])
                for io in ("buffered", "gds")]
        require(runs[0].status == 3, f"{path.name}: {runs[0]}")
        require((runs[1].status, runs[1].error) == (runs[0].status, runs[0].error), f"{runs[0]}\n{runs[1]}")


def check_refused(tables):
    nowhere = {"STACHIO_CUFILE_LIBRARY": "/nowhere/libcufile.so.0"}
    for options, environment, status, words in (
            (["--device", "cpu"], {}, 2, "io gds: the device is the CPU"),
            ([], nowhere, 2, "io gds: no cuFile: /nowhere/libcufile.so.0"),
            ([], {"CUFILE_EMULATOR_MODE": "absent"}, 2, "io gds: cuFileDriverOpen: cuFile's error 5001: the nvidia-fs driver is not loaded"),
            ([], {"CUFILE_EMULATOR_MODE": "fileless"}, 3, "io gds: cuFileHandleRegister: cuFile's error 5027: the file is not registered")):
        refused = run(tables, "--io", "gds", "-c", QUERIES[0], *options, **environment)
        require(refused.status == status and words in refused.error and not refused.out, f"{words}: {refused}")
        require(run(tables, "--io", "auto", "-c", QUERIES[0], *options, **environment).status == 0, "auto goes on")
    require(straight(run(tables, "--io", "gds", "-c", QUERIES[0], "--analyze", CUFILE_EMULATOR_MODE="compat")) == [(True, True)],
            "forced, the compatibility mode serves")


def check_directless():
    """A file system without direct I/O."""
    if not os.path.isdir("/dev/shm"):
        return
    path = f"/dev/shm/stachio-gds-{os.getpid()}.parquet"
    try:
        write(path, LAYOUTS[0][:3])
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
            return
        except OSError:
            pass
        refused = run_stachio(["-t", f"t={path}", "--io", "gds", "-c", QUERIES[0]])
        require(refused.status == 3 and "no direct I/O" in refused.error and path in refused.error, str(refused))
    finally:
        os.unlink(path)


def main():
    if not os.path.exists(EMULATED) or not os.path.exists(CUFILE):
        skip("no emulated device in this build")
    os.environ.update(STACHIO_DEVICE="cuda", STACHIO_CUDA_LIBRARY=EMULATED, STACHIO_CUFILE_LIBRARY=CUFILE, **INFLATE_ALL)
    checks = Checks()
    with scratch_directory() as directory:
        tables = {layout: make_tables(f"{directory}/{'-'.join(map(str, layout))}", layout[:3]) for layout in LAYOUTS}
        try:
            os.close(os.open(f"{directory}/{'-'.join(map(str, LAYOUTS[0]))}/t.parquet", os.O_RDONLY | os.O_DIRECT))
        except OSError:
            skip("the file system has no direct I/O")
        for layout in LAYOUTS:
            with checks.case(f"{layout}: who reads"):
                check_way(tables[layout], layout)
            with checks.case(f"{layout}: answers"):
                check_answers(tables[layout], ["--cache", "off"])
        for layout in STRAIGHT:
            with checks.case(f"{layout}: answers, device cache"):
                check_answers(tables[layout], ["--cache", "device"], 2)
            for cache in ("off", "host", "device"):
                with checks.case(f"{layout}: again and again, cache {cache}"):
                    check_twice(tables[layout], cache)
            for environment in ({"CUFILE_EMULATOR_SHORT": "4096"}, {"CUFILE_EMULATOR_FAIL": "1"}, {"CUFILE_EMULATOR_FAIL": "2"}):
                with checks.case(f"{layout}: {environment}"):
                    check_fault(tables[layout], environment)
        with checks.case("damage"):
            check_damage(pathlib.Path(directory))
        with checks.case("refused"):
            check_refused(tables[LAYOUTS[0]])
        with checks.case("a file system without direct I/O"):
            check_directless()
    checks.finish()


if __name__ == "__main__":
    main()
