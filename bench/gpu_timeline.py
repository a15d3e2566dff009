"""A table of what bench/gpu_timeline.c has written: how long the device computed, copied, did both, or nothing.

Usage: gpu_timeline.py FILE RUNS|NAME [KERNELS]    the file of a program that does the same thing RUNS times; the runs are
told apart by the longest times in which the device had nothing to do, and the first one is left out. Or: runs have the
kernel NAME in them, and pauses or NCCL's kernels between them (`claim` for bench join, which exchanges bytes alone after
each join). KERNELS: how many are named.
"""
import collections
import re
import sys

PAUSE_NS = 1_500_000


def read(path):
    with open(path) as lines:
        for line in lines:
            kind, begin, end, stream, n_bytes, name = line.rstrip("\n").split(" ", 5)
            yield kind, int(begin), int(end), stream, int(n_bytes), name


def split(records, runs):
    """Lists of records, cut at the longest idle time near to each n-th part of them."""
    gaps, latest = [0], records[0][2]
    for record in records[1:]:
        gaps.append(record[1] - latest)
        latest = max(latest, record[2])
    cuts, part = [0], len(records) / runs
    for run in range(1, runs):
        near = range(int((run - 0.3) * part), int((run + 0.3) * part))
        cuts.append(max(near, key=lambda i: gaps[i]))
    cuts.append(len(records))
    return [records[a:b] for a, b in zip(cuts, cuts[1:])]


def split_by(records, name):
    """Lists of records without a pause, and without NCCL, that have a kernel of the name."""
    parts, latest = [[]], records[0][2]
    for record in records:
        if "nccl" in record[5] or record[1] - latest > PAUSE_NS:
            parts.append([])
        if "nccl" not in record[5]:
            parts[-1].append(record)
        latest = max(latest, record[2])
    return [part for part in parts if any(short(record[5]) == name for record in part)]


def union(spans):
    merged = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([begin, end])
    return merged


def total(merged):
    return sum(end - begin for begin, end in merged) / 1e6


def short(name):
    found = re.match(r"_Z(?:N12_GLOBAL__N_1)?(?:L)?(\d+)(.*)", name)
    return found.group(2)[: int(found.group(1))] if found else name


def figures(run):
    kernels = union((r[1], r[2]) for r in run if r[0] in "ks")
    copies = union((r[1], r[2]) for r in run if r[0] == "h")
    both = union((r[1], r[2]) for r in run)
    wall = (max(r[2] for r in run) - run[0][1]) / 1e6
    return {
        "wall": wall,
        "compute": total(kernels),
        "link": total(copies),
        "either": total(both),
        "idle": wall - total(both),
        "MB": sum(r[4] for r in run if r[0] == "h") / 1e6,
        "copies": sum(r[0] == "h" for r in run),
        "kernels": sum(r[0] == "k" for r in run),
    }


def main():
    path, runs = sys.argv[1], sys.argv[2]
    n_named = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    records = sorted(read(path), key=lambda record: record[1])
    kept = (split(records, int(runs)) if runs.isdigit() else split_by(records, runs))[1:]
    all_figures = [figures(run) for run in kept]
    middle = sorted(range(len(kept)), key=lambda i: all_figures[i]["wall"])[len(kept) // 2]
    print(" ".join(f"{name} {value:.1f}" for name, value in all_figures[middle].items()))
    times = collections.Counter()
    for kind, begin, end, _, _, name in kept[middle]:
        if kind in "ks":
            times[short(name)] += (end - begin) / 1e6
    for name, milliseconds in times.most_common(n_named):
        print(f"    {milliseconds:8.2f} ms {name}")


main()
