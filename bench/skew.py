"""A join whose probe side is uniform, Zipf 1.2, or holds one key in half its rows, between ranks: times as ratios of
the uniform one's, and how evenly the probe side's rows come to be spread.

Usage: STACHIO=build/release/stachio python bench/skew.py [--rows N] [--keys N] [--ranks N] [--repeat N] [--local]

Ranks are processes (mpirun); with --local they are threads of one. Both sides are repartitioned, whatever their size
(STACHIO_BROADCAST_BYTES=0). Needs numpy and pyarrow.
"""

import argparse
import os
import re
import sys
import tempfile

import numpy
import pyarrow as pa
import pyarrow.parquet as pq

from launch import launch

SQL = "SELECT count(*), sum(p.v + b.w) FROM probe p JOIN build b ON p.k = b.k"


def zipf(random, exponent, keys, rows):
    weights = numpy.arange(1, keys + 1, dtype=float) ** -exponent
    return random.permutation(keys)[numpy.searchsorted(numpy.cumsum(weights) / weights.sum(), random.random(rows))]


def make_keys(random, name, keys, rows):
    if name == "zipf":
        return zipf(random, 1.2, keys, rows)
    made = random.integers(0, keys, rows)
    if name == "half":
        made[random.random(rows) < 0.5] = keys // 3
    return made


def make_tables(directory, name, keys, rows):
    random = numpy.random.default_rng(7)
    os.mkdir(directory)
    probe = pa.table({"k": make_keys(random, name, keys, rows), "v": random.integers(0, 1000, rows)})
    build = pa.table({"k": random.permutation(keys), "w": random.integers(0, 1000, keys)})
    pq.write_table(probe, f"{directory}/probe.parquet", row_group_size=1 << 17)
    pq.write_table(build, f"{directory}/build.parquet", row_group_size=1 << 15)


def run(stachio, directory, ranks, is_local, *options):
    command = [stachio, "-d", directory, "-c", SQL, "--fallback", "forbid", *options]
    done = launch(ranks, command, is_local, STACHIO_BROADCAST_BYTES="0", STACHIO_ALONE_BYTES="0")
    if done.returncode:
        sys.exit(f"status {done.returncode}: {done.stderr}")
    return done.stdout


def measure(stachio, directory, arguments):
    """Least seconds, and rank 0's exchange of the probe side."""
    best = None
    for _ in range(arguments.repeat):
        out = run(stachio, directory, arguments.ranks, arguments.local, "--analyze")
        seconds = float(re.search(r"running ([\d.]+) s", out).group(1))
        exchange = re.findall(r"(EXCHANGE HASH: .*?)  ", out)[1]
        if not best or seconds < best[0]:
            best = seconds, exchange
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--local", action="store_true")
    arguments = parser.parse_args()
    stachio = os.environ.get("STACHIO", "stachio")
    uniform = None
    print(f"{'probe side':<10} {'seconds':>8} {'ratio':>6}  probe side's exchange, on rank 0; most/mean: rows of ranks behind it")
    with tempfile.TemporaryDirectory() as directory:
        for name in ("uniform", "zipf", "half"):
            make_tables(f"{directory}/{name}", name, arguments.keys, arguments.rows)
            seconds, exchange = measure(stachio, f"{directory}/{name}", arguments)
            uniform = uniform or seconds
            print(f"{name:<10} {seconds:>8.3f} {seconds / uniform:>6.2f}  {exchange}", flush=True)


if __name__ == "__main__":
    main()
