"""Shuffles over a network of limited pace: one level against two, packed frames against plain ones, and rows that have partners
against all (the filter of an exchange; from 5,000,000 --rows on).

Usage: [STACHIO=build/release/stachio] python bench/levels.py [--links 1gbit,200mbit] [--slots 2] [--sizes 4096,65536,1048576]
       [--rows 1000000] [--columns 4] [--rounds 3] [--runs 3]

Two network namespaces with --slots ranks each, joined by a veth pair that is shaped each way; `delay` (where the kernel has
netem) is 1 Gbit/s and 1 ms.
`stachio bench join` runs in turn with each choice, --rounds times; times are medians of the processes' medians, and ratios are of them.
As root, where namespaces may be made.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test/lib"))
os.environ.setdefault("BUILD_DIR", str(ROOT / "build/release"))

from namespaces import TwoHosts, why_no_namespaces

STACHIO = os.environ.get("STACHIO", str(ROOT / "build/release/stachio"))
LINKS = {"1gbit": "tbf rate 1gbit burst 1mb latency 50ms", "200mbit": "tbf rate 200mbit burst 1mb latency 50ms",
         "delay": "netem rate 1gbit delay 1ms limit 100000"}
LEVELS = [("one-level", "--shuffle one-level --shuffle-compression off"), ("two-level", "--shuffle two-level --shuffle-compression off"),
          ("auto", "--shuffle auto --shuffle-compression off")]
PACKING = [(f"packing {way}", f"--shuffle one-level --shuffle-compression {way}") for way in ("off", "on", "auto")]
FILTERS = [(rows, f"--shuffle one-level --shuffle-compression off --variant {variant}") for rows, variant in (("all rows", "deferred"), ("filter", "auto"))]


SHARES = (0.5, 0.1, 1.0)


def join_ms(hosts, arguments, report, options):
    """Median of a process's runs."""
    command = (f"exec {STACHIO} bench join --build {arguments.rows // 4} --probe {arguments.rows} --columns {arguments.columns} "
               f"--runs {arguments.runs} --threads 1 --interface $INTERFACE --json {report} {options}")
    status, out, err = hosts.run(command)
    if status:
        sys.exit(f"{command}\n{out}{err}")
    with open(report, encoding="utf-8") as file:
        return json.load(file)["results"][0]["seconds"] * 1e3


def compare(hosts, arguments, report, choices, common):
    """A cell a choice: ms, and the ratio to the first one's."""
    times = {name: [] for name, _ in choices}
    for _ in range(arguments.rounds):
        for name, options in choices:
            times[name].append(join_ms(hosts, arguments, report, f"{options} {common}"))
    joins = {name: statistics.median(got) for name, got in times.items()}
    first = joins[choices[0][0]]
    return [f"{join:.0f} ({join / first:.2f})" for join in joins.values()]


def table(head, rows):
    print(f"\n| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def measure(arguments):
    for link in arguments.links.split(","):
        with tempfile.TemporaryDirectory() as scratch, TwoHosts(scratch, arguments.slots, LINKS[link]) as hosts:
            report, every_row = f"{scratch}/report.json", "--variant deferred"
            table([f"{link}, ms (ratio)", *(name for name, _ in LEVELS)],
                  ([f"{size} B", *compare(hosts, arguments, report, LEVELS, f"{every_row} --sizes {size}")] for size in arguments.sizes.split(",")))
            table([f"{link}, ms (ratio)", *(name for name, _ in PACKING)], [["1 MiB", *compare(hosts, arguments, report, PACKING, every_row)]])
            table([f"{link}, ms (ratio)", *(name for name, _ in FILTERS)],
                  ([f"{share} have partners", *compare(hosts, arguments, report, FILTERS, f"--hit-ratio {share}")] for share in SHARES))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--links", default="1gbit,200mbit")
    parser.add_argument("--sizes", default="4096,65536,1048576", help="of messages, in bytes")
    for name, value in (("slots", 2), ("rows", 1_000_000), ("columns", 4), ("rounds", 3), ("runs", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    arguments = parser.parse_args()
    reason = why_no_namespaces()
    if reason:
        sys.exit(reason)
    print(f"{2 * arguments.slots} ranks of 1 thread on 2 hosts: {arguments.rows // 4} join {arguments.rows} rows of {arguments.columns} columns, "
          f"medians of {arguments.rounds} x {arguments.runs} runs")
    measure(arguments)


if __name__ == "__main__":
    main()
