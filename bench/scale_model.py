#!/usr/bin/env python3
"""A model of repartitioned joins on 8 to 1,024 GPUs: one-level, two-level and compressed shuffles. docs/scale.md explains it.

  bench/scale_model.py                # the tables of docs/scale.md
  bench/scale_model.py --measure      # also: the CPU's constants measured now, and predictions held against bench join

All constants are in CONSTANTS, each with where it comes from: measured, from a paper's text, or assumed.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
from dataclasses import dataclass

from launch import launch

ROOT = pathlib.Path(__file__).resolve().parent.parent
STACHIO = os.environ.get("STACHIO", str(ROOT / "build/release/stachio"))

# name: (value, unit, where it comes from)
CONSTANTS = {
    # ---- seed 004: DGX A100, 8 GPUs and 8 NICs a node; the figures that its text has of its charts
    "seed_gpus": ((64, 256, 1024), "GPUs", "seed 004, time breakdown"),
    "seed_one_level": ((0.419, 0.549, 0.833), "s", "seed 004: communication of TPC-H, not compressed"),
    "seed_compressed": ((0.300, 0.330, 0.418), "s", "seed 004: the same, compressed"),
    "seed_two_level_extra": (0.17, "of the time at 64 GPUs", "seed 004: '~17' beside the two-level curve at small scale, read as percent"),
    "gpus_a_node": (8, "GPUs", "seed 004"),
    "tpch_bytes_a_gpu": (7.2e9, "B", "assumed: SF100 a GPU, 600 M x 8 B + 150 M x 16 B; the seed's text does not say"),
    # ---- the GPU machine, measured
    "nvlink": (338e9, "B/s", "measured: all to all, 4 H200, 1 GiB a GPU"),
    "device_copy": (4278e9, "B/s", "measured: H200, read and written"),
    # ---- assumed
    "nic": (50e9, "B/s a GPU", "assumed: 400 Gbit/s a GPU"),
    "nic_share": (0.9, "", "assumed: of a NIC's rate that an all-to-all on few nodes reaches (the seed: near 1)"),
    "copies_partition": (4, "times the bytes", "assumed: read, staged, written, and hashes"),
    "copies_join": (10, "times the bytes", "assumed: build, probe at random in sectors, gather; bench primitives has the parts"),
    "compress": (150e9, "B/s", "assumed: of cascaded compression on a GPU, the same back"),
    "compression_ratio": (11.0, "", "measured: bench join --tpch --shuffle-compression on, 3.60 MB become 0.325 MB; keys in order"),
}


def constant(name):
    return CONSTANTS[name][0]


@dataclass
class Fabric:
    """Seconds that a GPU's bytes take over the NICs: each GPU has one, and the fabric's all-to-all loses with its size."""

    bandwidth: float  # B/s a GPU, on few nodes
    half_gpus: float  # GPUs at which half of that is left
    message: float    # s for a message to one other GPU, beside its bytes

    def seconds(self, gpus, bytes_out, messages):
        return bytes_out / self.bandwidth * (1 + gpus / self.half_gpus) + messages * self.message


def across(gpus):
    """The share of a GPU's bytes that leaves its node."""
    node = constant("gpus_a_node")
    return (gpus - node) / gpus if gpus > node else 0.0


def one_level(fabric, gpus, bytes_a_gpu, nvlink):
    node = constant("gpus_a_node")
    near = bytes_a_gpu * (min(gpus, node) - 1) / gpus / nvlink
    far = fabric.seconds(gpus, bytes_a_gpu * across(gpus), max(gpus - node, 0)) if gpus > node else 0.0
    return max(near, far)


def two_level(fabric, gpus, bytes_a_gpu, nvlink, partition):
    """First along the rails, to the same GPU of each node; then within the node, after a second partitioning."""
    node = constant("gpus_a_node")
    if gpus <= node:
        return one_level(fabric, gpus, bytes_a_gpu, nvlink)
    far = fabric.seconds(gpus, bytes_a_gpu * across(gpus), gpus // node - 1)
    return far + partition + bytes_a_gpu * (node - 1) / node / nvlink


# ---- seed 004: constants from two of its points, the others are predicted ----

def fit_seed():
    """The fabric from 64 and 1,024 GPUs, with a message's cost such that two levels are as fast as one at 1,024."""
    low, _, high = constant("seed_gpus")
    t_low, _, t_high = constant("seed_one_level")
    node, volume = constant("gpus_a_node"), constant("tpch_bytes_a_gpu")
    extra = constant("seed_two_level_extra") * t_low
    message = extra / ((high - node) - (high // node - 1))
    f_low = (t_low - message * (low - node)) / across(low)
    f_high = (t_high - message * (high - node)) / across(high)
    half = (high - f_high / f_low * low) / (f_high / f_low - 1)
    return Fabric(volume * (1 + low / half) / f_low, half, message), extra


def table(title, head, rows):
    print(f"\n{title}\n\n| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(str(value) for value in row)} |")


def ms(seconds):
    return f"{seconds * 1e3:.0f}"


def show_constants():
    table("Constants", ("constant", "value", "unit", "from"),
          ((name, ", ".join(f"{v:g}" for v in value) if isinstance(value, tuple) else f"{value:g}", unit, origin)
           for name, (value, unit, origin) in CONSTANTS.items()))


def show_seed():
    fabric, extra = fit_seed()
    volume, ratio = constant("tpch_bytes_a_gpu"), constant("compression_ratio")
    measured = dict(zip(constant("seed_gpus"), constant("seed_one_level")))
    compressed = dict(zip(constant("seed_gpus"), constant("seed_compressed")))
    print(f"\nFitted to seed 004: {fabric.bandwidth / 1e9:.1f} GB/s a GPU on few nodes, half of it at {fabric.half_gpus:.0f} GPUs, "
          f"{fabric.message * 1e6:.0f} us a message, {ms(extra)} ms for the second level")
    rows = []
    for gpus in (64, 128, 256, 512, 1024):
        one = fabric.seconds(gpus, volume * across(gpus), gpus - 8)
        two = fabric.seconds(gpus, volume * across(gpus), gpus // 8 - 1) + extra
        packed = fabric.seconds(gpus, volume / ratio * across(gpus), gpus - 8)
        seen = f"{ms(measured[gpus])} ({100 * (one / measured[gpus] - 1):+.0f} %)" if gpus in measured else ""
        rows.append((gpus, ms(one), seen, ms(two), ms(packed),
                     f"{ms(compressed[gpus])} ({1e3 * (compressed[gpus] - packed):+.0f} ms)" if gpus in compressed else ""))
    table("TPC-H, weak scaling, communication in ms",
          ("GPUs", "one level", "seed 004 (off)", "two levels", "compressed", "seed 004 (more than predicted)"), rows)
    rows = []
    for million in (2, 4, 8, 16, 32, 64, 128, 256):
        volume = 2 * million * 1e6 * 16
        one = fabric.seconds(512, volume * across(512), 504)
        two = fabric.seconds(512, volume * across(512), 63) + extra * volume / constant("tpch_bytes_a_gpu")
        rows.append((million, f"{one * 1e3:.1f}", f"{two * 1e3:.1f}", "two" if two < one else "one"))
    table("Small tables on 512 GPUs (16 B a row), communication in ms", ("M rows a table and GPU", "one level", "two levels", "faster"), rows)


def show_prediction():
    """120 M join 320 M rows of 4 columns for every 4 GPUs, on nodes of 8 H200 with a NIC for each GPU."""
    seed, _ = fit_seed()
    fabric = Fabric(constant("nic") * constant("nic_share"), seed.half_gpus, seed.message)
    volume = (120e6 + 320e6) / 4 * 4 * 8
    copy, nvlink, ratio = constant("device_copy"), constant("nvlink"), constant("compression_ratio")
    partition, join = volume * constant("copies_partition") / copy, volume * constant("copies_join") / copy
    packing = 2 * volume / constant("compress")
    rows = []
    for gpus in (8, 16, 32, 64, 128, 256, 512, 1024):
        one = one_level(fabric, gpus, volume, nvlink)
        two = two_level(fabric, gpus, volume, nvlink, partition)
        packed = one_level(fabric, gpus, volume / ratio, nvlink)
        local = partition + join
        rows.append((gpus, ms(one), ms(two), ms(packed), ms(local), ms(local + one), ms(max(local, one)), ms(max(local, two)),
                     ms(max(local + packing, packed)), f"{440e6 / 4 * gpus / max(local, one) / 1e9:.0f}"))
    table(f"{volume / 1e9:.2f} GB a GPU (30 M join 80 M rows, 4 columns), 8 H200 a node, in ms",
          ("GPUs", "one level", "two levels", "compressed", "local work", "blocking", "overlapped", "two-level", "compressed", "G rows/s"), rows)


# ---- this machine: CPU ranks, predicted and measured ----

def bench(ranks, *options):
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "report.json")
        command = [STACHIO, "bench", *map(str, options), "--json", path]
        done = launch(ranks, command)
        if done.returncode:
            sys.exit(f"status {done.returncode}: {done.stderr}")
        with open(path, encoding="utf-8") as file:
            return json.load(file)["results"][0]


def measure(most_ranks, runs):
    """Weak scaling of one thread a rank: local work from one rank, partitioning and transport from two."""
    build, probe, columns = 250000, 750000, 4
    volume = (build + probe) * columns * 8
    join = ("join", "--build", build, "--probe", probe, "--columns", columns, "--threads", 1, "--runs", runs, "--weak-scaling")
    local = bench(1, *join)["least_seconds"]
    exchange = bench(2, "exchange", "--sizes", 1 << 20, "--steps", "--repeat", runs, "--threads", 1)
    wire = exchange["bytes"] / exchange["least_seconds"]
    # a rank partitions twice what it receives, of two ranks
    partition = 1 / (2 * exchange["partitioned_bytes_per_second"]) - 1 / (2 * wire)
    print(f"\nMeasured now: local join {volume / local / 1e9:.2f} GB/s a rank, channels {wire / 1e9:.2f} GB/s a rank, "
          f"partitioning and packing {1 / partition / 1e9:.2f} GB/s")
    rows = []
    for ranks in range(2, most_ranks + 1):
        share = min(1.0, os.cpu_count() / ranks)  # of a processor that a rank has
        predicted = (local + partition * volume + volume * (ranks - 1) / ranks / wire) / share
        seen = [bench(ranks, *join[:-3], "--runs", 1, "--weak-scaling")["seconds"] for _ in range(runs)]
        rows.append((ranks, ms(predicted), ms(min(seen)), ms(statistics.median(seen)), f"{100 * (predicted / min(seen) - 1):+.0f} %"))
    table(f"CPU ranks, {build} join {probe} rows of {columns} columns a rank, in ms", ("ranks", "predicted", "least", "median", "off the least"), rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="measure the CPU's constants and hold predictions against joins")
    parser.add_argument("--ranks", type=int, default=4, help="most ranks of --measure")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    show_constants()
    show_seed()
    show_prediction()
    if arguments.measure:
        measure(arguments.ranks, arguments.runs)


if __name__ == "__main__":
    main()
