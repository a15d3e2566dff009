"""stachio tpch generate and tpch run."""

import csv
import io
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import duckdb

from check import Checks, require, scratch_directory
from oracle import TIMEOUT_S, run_stachio, stachio_command

COLUMNS = ["query", "rows", "stachio_s", "duckdb_s", "ratio", "equal", "t_min_s", "of_t_min"]
TABLES = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"]


def check_generate(data):
    run_stachio(["tpch", "generate", "--sf", "0.01", "-o", data]).succeeded()
    require(sorted(os.listdir(data)) == [f"{table}.parquet" for table in TABLES], f"made {os.listdir(data)}")
    require(os.listdir(os.path.dirname(data)) == [os.path.basename(data)], "left something beside")
    again = run_stachio(["tpch", "generate", "--sf", "0.01", "-o", data])
    require(again.status == 3 and "exists" in again.error, str(again))


def make_generator(directory, script):
    """The environment in which it is the generator; the last argument is where to."""
    os.makedirs(os.path.join(directory, "bin"))
    generator = pathlib.Path(directory, "bin", "tpchgen-cli")
    generator.write_text(f'#!/bin/sh\nfor to; do :; done\n{script}\n')
    generator.chmod(0o755)
    return {**os.environ, "PATH": f"{directory}/bin:{os.environ['PATH']}"}


def check_generate_fails(scratch):
    """The generator isn't there, or fails: nothing is left."""
    directory = os.path.join(scratch, "failed")
    environment = make_generator(directory, "exit 7")
    run = run_stachio(["tpch", "generate", "--sf", "1", "-o", os.path.join(directory, "data")], env=environment)
    require(run.status == 3 and "7" in run.error, str(run))
    require(os.listdir(directory) == ["bin"], f"left {os.listdir(directory)}")


def wait_until(condition, what):
    end = time.monotonic() + TIMEOUT_S
    while not condition():
        require(time.monotonic() < end, f"waited for {what}")
        time.sleep(0.01)


def is_running(pid):
    try:
        return "\nState:\tZ" not in pathlib.Path("/proc", pid, "status").read_text()
    except OSError:
        return False


def check_generate_ends(scratch):
    """However stachio ends, the generator does too; nothing is left of what can be cleared away."""
    directory = os.path.join(scratch, "ended")
    environment = make_generator(directory, 'echo > "$to/nation.parquet"; echo $$ > "$0.new"; mv "$0.new" "$0.pid"; exec sleep 600')
    told = pathlib.Path(directory, "bin", "tpchgen-cli.pid")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
        command = [*stachio_command(), "tpch", "generate", "--sf", "1", "-o", os.path.join(directory, "data")]
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
        wait_until(told.exists, "the generator")
        pid = told.read_text().strip()
        told.unlink()
        process.send_signal(number)
        error = process.communicate(timeout=TIMEOUT_S)[1]
        wait_until(lambda: not is_running(pid), f"the generator's end after {number}")
        if number != signal.SIGKILL:
            require(process.returncode == 130 and b"cancelled" in error, f"{number}: status {process.returncode}, {error!r}")
            require(os.listdir(directory) == ["bin"], f"{number} left {os.listdir(directory)}")


def check_generate_twice(scratch):
    """Two at the same time don't write into each other's directory."""
    directory = os.path.join(scratch, "twice")
    environment = make_generator(directory, 'echo "$to" > "$to/$$"; while [ $(cat "${0%/*}"/../data.*/* | wc -l) -lt 2 ] && '
                                            '[ ! -e "${0%/*}/../data" ]; do sleep 0.1; done')
    command = [*stachio_command(), "tpch", "generate", "--sf", "1", "-o", os.path.join(directory, "data")]
    runs = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) for _ in range(2)]
    errors = [run.communicate(timeout=TIMEOUT_S)[1] for run in runs]
    require(sorted(run.returncode for run in runs) == [0, 3], f"{[run.returncode for run in runs]}, {errors}")
    made = sorted(os.listdir(directory)), os.listdir(os.path.join(directory, "data"))
    require(made[0] == ["bin", "data"] and len(made[1]) == 1, f"made {made}")


def check_run(data):
    run = run_stachio(["tpch", "run", "-d", data, "--queries", "1,3-5", "--repeat", "3", "--compare", "duckdb",
                       "--format", "csv"]).succeeded()
    lines = list(csv.reader(io.StringIO(run.out.decode())))
    require(lines[0] == COLUMNS, f"columns {lines[0]}")
    require([line[0] for line in lines[1:]] == ["1", "3", "4", "5", "geometric mean"], str(lines))
    for line in lines[1:5]:
        ours, theirs, ratio = (float(text) for text in line[2:5])
        require(ours > 0 and theirs > 0 and line[5] == "yes", str(line))
        require(abs(ratio - ours / theirs) <= 0.01 + 0.1 * ratio, f"ratio {line}")
        floor, times = float(line[6]), float(line[7])
        require(0 < floor < ours and abs(times - ours / floor) <= 0.1 * times, f"T_min {line}")
    mean = lines[5]
    require(float(mean[4]) > 0 and mean[5] == "yes" and float(mean[7]) > 1, f"means {mean}")
    require(lines[1][1] == "4", str(lines[1]))


def check_run_table(data):
    run = run_stachio(["tpch", "run", "-d", data, "--queries", "6", "--compare", "duckdb"]).succeeded()
    lines = run.out.decode().splitlines()
    require(lines[0].split() == COLUMNS and "geometric mean" in lines[-1], run.out.decode())
    require(re.match(r" +6 +1 +[\d.]+ +[\d.]+ +[\d.]+ +yes +[\d.]+ +[\d.]+$", lines[1]), lines[1])
    run = run_stachio(["tpch", "run", "-d", data, "--queries", "6"]).succeeded()
    lines = run.out.decode().splitlines()
    require(lines[1].split()[0] == "6" and "T_min" in lines[2] and len(lines) == 3, run.out.decode())


def check_run_fails(data, scratch):
    for queries in ("0", "23", "x", "3-1", "1,,2", ""):
        run = run_stachio(["tpch", "run", "-d", data, "--queries", queries])
        require(run.status == 2, f"{run}\nqueries '{queries}' are taken")
    require(run_stachio(["tpch", "run"]).status == 2, "no directory is needed")
    few = os.path.join(scratch, "few")
    os.makedirs(few)
    duckdb.execute(f"COPY (SELECT 1 AS n) TO '{few}/nation.parquet'")
    run = run_stachio(["tpch", "run", "-d", few, "--queries", "6", "--compare", "duckdb"])
    require(run.status == 1 and "failed" in run.out.decode() and "query 6" in run.error, str(run))


def main():
    checks = Checks()
    with scratch_directory() as scratch:
        data = os.path.join(scratch, "a", "b", "data")
        for name, check in (("generate", lambda: check_generate(data)),
                            ("generate fails", lambda: check_generate_fails(scratch)),
                            ("generate ends", lambda: check_generate_ends(scratch)),
                            ("generate twice", lambda: check_generate_twice(scratch)), ("run", lambda: check_run(data)),
                            ("run as table", lambda: check_run_table(data)),
                            ("run fails", lambda: check_run_fails(data, scratch))):
            with checks.case(name):
                check()
    checks.finish()


if __name__ == "__main__":
    main()
