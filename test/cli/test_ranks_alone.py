"""What is too little for several ranks is answered by rank 0 alone, or by all where that takes long after all."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import pyarrow as pa
import pyarrow.parquet as pq

from check import Checks, require, scratch_directory
from damage import replace_at
from oracle import DuckDB, Tables, ask_stachio, check_equal, run_stachio, stachio_command
from ranks import Launched, per_rank, why_no_mpirun
from test_interrupt import has_handler
from test_ranks import check_random
from test_rank_faults import check_killed

RANKS, ROWS, GROUP_ROWS = 3, 6000, 500
ALONE = "rank 0 alone"
LONG_MS = "600000"
GROUPED = "SELECT id % 7 AS k, count(*), sum(id), min(text) FROM numbers GROUP BY k ORDER BY k"
# A row for each pair of two rows: nothing tells of it before.
MULTIPLIED = "SELECT count(*), sum(a.id + b.id) FROM numbers a JOIN numbers b ON a.id % 3 = b.id % 3"


def environment(**values):
    """As users have it, but that the machine may be slow."""
    settings = {**os.environ, "STACHIO_LOCAL_RANKS": str(RANKS), "STACHIO_ALONE_MS": LONG_MS, **values}
    if "STACHIO_ALONE_BYTES" not in values:
        settings.pop("STACHIO_ALONE_BYTES", None)
    return settings


def make_numbers(path, rows=ROWS, repeats=1):
    table = pa.table({"id": pa.array(range(rows), pa.int64()), "text": [f"some text of row {i}" * repeats for i in range(rows)]})
    pq.write_table(table, path, row_group_size=GROUP_ROWS, compression="none", use_dictionary=False)


def is_alone(tables, sql, **values):
    out = ask_stachio(tables, sql, "--analyze", "--fallback", "forbid", env=environment(**values)).succeeded().out.decode()
    require(("EXCHANGE" in out) != (ALONE in out), out)
    return ALONE in out


def check_answer(tables, sql, **values):
    check_equal(tables, DuckDB(tables), sql, "--fallback", "forbid", env=environment(**values))


def check_chosen(tables):
    require(is_alone(tables, GROUPED), "it is shared")
    require(not is_alone(tables, GROUPED, STACHIO_ALONE_BYTES="0"), "it is not shared, though it has to be")
    require(not is_alone(tables, GROUPED, STACHIO_ALONE_BYTES="1000"), "it is not shared, though the table is larger")
    check_answer(tables, GROUPED)


def check_too_long(tables):
    for milliseconds in ("0", "1"):
        require(not is_alone(tables, MULTIPLIED, STACHIO_ALONE_MS=milliseconds), "it is not shared, though it takes long")
        check_answer(tables, MULTIPLIED, STACHIO_ALONE_MS=milliseconds)
    require(is_alone(tables, MULTIPLIED), "it is shared, though there is time")


def check_script(tables):
    """Statements of both kinds one after another, some of them with errors."""
    statements = [GROUPED, "SELECT CAST(text AS INTEGER) FROM numbers", MULTIPLIED, "SELECT nothing FROM numbers", GROUPED]
    for statement, status in zip(statements, (0, 1, 0, 1, 0)):
        run = ask_stachio(tables, statement, env=environment(STACHIO_ALONE_MS="1" if statement == MULTIPLIED else LONG_MS))
        require(run.status == status and bool(run.error) == bool(status), str(run))
    script = ";".join([GROUPED, MULTIPLIED] * 5 + [GROUPED] * 140)  # now and then rank 0 waits for the others
    alone = run_stachio([*tables.options(), "-c", script, "--format", "csv"], env=environment()).succeeded()
    shared = run_stachio([*tables.options(), "-c", script, "--format", "csv"], env=environment(STACHIO_ALONE_MS="0")).succeeded()
    require(alone.out == shared.out and alone.out.count(b"\n") > 40, f"{alone.out}\n{shared.out}")


def check_remembered(tables, directory):
    """Given up twice, each time after being planned again; then all ranks have it from the start."""
    trace = os.path.join(directory, "trace.json")
    run = run_stachio([*tables.options(), "-c", ";".join([MULTIPLIED] * 5), "--fallback", "forbid", "--trace", trace],
                      env=environment(STACHIO_ALONE_MS="0")).succeeded()
    planned = sum(event.get("name") == "planning" for event in json.loads(pathlib.Path(trace).read_text())["traceEvents"])
    require(planned == 7, f"planned {planned} times: {run}")


def check_slow(tables):
    """What takes rank 0 some milliseconds, twice, is tried by all ranks as often."""
    run = run_stachio([*tables.options(), "-c", ";".join([MULTIPLIED] * 4), "--analyze", "--fallback", "forbid"], env=environment()).succeeded()
    answered = [ALONE in line for line in run.out.decode().splitlines() if line.startswith("Network")]
    require(answered == [True, True, False, False], str(run))


def check_memory(tables):
    """Groups that one rank has no memory for (by far), and eight have."""
    sql = "SELECT count(*), sum(n) FROM (SELECT id, text, count(*) AS n FROM numbers GROUP BY ALL)"

    def ask(megabytes, **values):
        run = ask_stachio(tables, sql, "--memory-limit", f"{megabytes}MB", "--threads", "1", "--format", "csv",
                          env=environment(**{"STACHIO_LOCAL_RANKS": "8", **values}))
        require(run.status in (0, 4), str(run))
        return run

    most = next(megabytes for megabytes in range(100, 10, -5) if ask(megabytes, STACHIO_LOCAL_RANKS="1").status == 4)
    for run in (ask(most, STACHIO_ALONE_BYTES="0"), ask(most, STACHIO_ALONE_BYTES=str(1 << 40))):
        require(run.out.split()[-1:] == [b"300000,300000"], f"{most} MB: {run}")


def check_damage(directory):
    path = os.path.join(directory, "damaged.parquet")
    make_numbers(path)
    offset = pq.read_metadata(path).row_group(7).column(0).data_page_offset
    damaged = replace_at(pathlib.Path(path), offset, b"\xff" * 8)
    run = ask_stachio(Tables(None, {"damaged": str(damaged)}), "SELECT sum(id) FROM damaged", "--fallback", "forbid", env=environment())
    require(run.status == 3 and not run.out and "row group 7" in run.error and str(path) in run.error, str(run))


def check_files_of_ranks(directory):
    """Rank 0 does not have the others' rows."""
    for rank in range(RANKS):
        os.makedirs(f"{directory}/of{rank}")
        make_numbers(f"{directory}/of{rank}/numbers.parquet", 100 * (rank + 1))
    run = run_stachio(["-d", f"{directory}/of{{rank}}", "--fallback", "forbid", "--format", "csv", "-c", "SELECT count(*) FROM numbers"],
                      env=environment(STACHIO_ALONE_BYTES=str(1 << 40))).succeeded()
    require(run.out.split()[-1] == b"600", str(run))


def check_written(tables, directory):
    """By all ranks: each tells what it can't read."""
    damaged = Tables(None, {"damaged": os.path.join(directory, "damaged.parquet")})
    run = run_stachio([*damaged.options(), "-c", "SELECT id FROM damaged", "--format", "parquet", "-o", os.path.join(directory, "not.parquet")],
                      env=environment())
    require(run.status == 3 and "rank 1" in run.error and not os.path.exists(os.path.join(directory, "not.parquet")), str(run))
    path = os.path.join(directory, "written.parquet")
    run_stachio([*tables.options(), "-c", "SELECT id FROM numbers WHERE id % 3 > 0", "--format", "parquet", "-o", path],
                env=environment()).succeeded()
    require(pq.read_table(path)["id"].to_pylist() == [i for i in range(ROWS) if i % 3], "another table was written")


def check_interrupted(directory):
    """While rank 0 is at work, and the others wait."""
    query = "SELECT count(*) FROM numbers a, numbers b, numbers c WHERE a.id + b.id + c.id = 17"
    process = subprocess.Popen([*stachio_command(), "-d", directory, "-c", query], env=environment(), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    for _ in range(1000):
        if has_handler(process.pid):
            break
        time.sleep(0.02)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    require(process.returncode == 130 and not out, f"{process.returncode} {out} {err}")


def check_killed_rank(directory, victim):
    """Small queries one after another, for which the ranks wait for each other now and then, notice that one is gone."""
    script = f"{directory}/script.sql"
    pathlib.Path(script).write_text(f"{GROUPED};\n" * 200_000)
    query = f"env -u STACHIO_ALONE_BYTES {os.environ['STACHIO']} -d {directory} --threads 1 -f {script}"
    with Launched(3, per_rank(query, query)) as launched:
        launched.wait_for_answer()
        time.sleep(0.3)
        check_killed(launched, victim, {rank: 137 if rank == victim else 5 for rank in range(3)})


def main():
    checks = Checks()
    with scratch_directory() as directory:
        plain = os.path.join(directory, "plain")
        os.mkdir(plain)
        make_numbers(os.path.join(plain, "numbers.parquet"))
        tables = Tables(plain)
        with checks.case("TPC-H"):
            data = os.path.join(directory, "tpch")
            run_stachio(["tpch", "generate", "--sf", "0.01", "-o", data]).succeeded()
            run_stachio(["tpch", "run", "-d", data, "--compare", "duckdb", "--fallback", "forbid", "--threads", "2", "--repeat", "2"],
                        env=environment(STACHIO_ALONE_MS="5")).succeeded()
        for case, check in (("chosen", check_chosen), ("too long", check_too_long), ("scripts", check_script)):
            with checks.case(case):
                check(tables)
        with checks.case("remembered"):
            check_remembered(tables, directory)
        if os.environ.get("STACHIO_DEVICE") != "cuda":  # which may need less than that
            with checks.case("slow alone"):
                check_slow(tables)
        with checks.case("random queries, some alone, some stopped"):
            check_random(RANKS, 0, STACHIO_ALONE_BYTES="20000", STACHIO_ALONE_MS="2")
        if os.environ.get("STACHIO_DEVICE") != "cuda":  # whose memory the limit is not of
            with checks.case("memory"):
                many = os.path.join(directory, "many")
                os.mkdir(many)
                make_numbers(os.path.join(many, "numbers.parquet"), 300_000, repeats=8)
                check_memory(Tables(many))
        with checks.case("a damaged file"):
            check_damage(directory)
        with checks.case("files of each rank"):
            check_files_of_ranks(directory)
        with checks.case("a written file"):
            check_written(tables, directory)
        with checks.case("interrupted"):
            check_interrupted(plain)
        if not why_no_mpirun():
            for victim in (0, 1):
                with checks.case(f"rank {victim} is killed"):
                    check_killed_rank(plain, victim)
    checks.finish()


if __name__ == "__main__":
    main()
