"""Commands that fail or are cancelled before the other ranks have heard them: the session goes on."""

import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

from check import SANITIZED, Checks, require, scratch_directory
from ranks import make_tables, run_ranks, why_no_mpirun

RANK_ERRORS = os.path.join(os.environ["BUILD_DIR"], "test", "rank_errors")
MOST_RANKS = 5
ROUNDS, SECONDS = 100, 4.0


def make_parts(directory):
    """lackN has a file for each rank but N."""
    make_tables(directory)
    for lacking in (0, 1):
        for rank in range(MOST_RANKS):
            os.makedirs(f"{directory}/lack{lacking}/{rank}")
            if rank != lacking:
                shutil.copy(f"{directory}/u.parquet", f"{directory}/lack{lacking}/{rank}/t.parquet")


def command(directory):
    return [RANK_ERRORS, directory, str(ROUNDS), str(SECONDS)]


def check_threads(directory, n):
    ran = subprocess.run(command(directory), env={**os.environ, "STACHIO_LOCAL_RANKS": str(n)}, capture_output=True, text=True,
                         timeout=600 if SANITIZED else 120, check=False)
    require(ran.returncode == 0 and ran.stdout == "ok\n", f"status {ran.returncode}: {ran.stdout}\n{ran.stderr}")


def check_processes(directory, n):
    status, out, err = run_ranks(n, command(directory))
    require(status == 0 and out == "ok\n", f"status {status}: {out}\n{err}")


def main():
    checks = Checks()
    with scratch_directory() as directory:
        make_parts(directory)
        for n in (2, 3, MOST_RANKS):
            with checks.case(f"{n} threads"):
                check_threads(directory, n)
        for n in (2, 3):
            if not why_no_mpirun():
                with checks.case(f"{n} processes"):
                    check_processes(directory, n)
    checks.finish()


main()
