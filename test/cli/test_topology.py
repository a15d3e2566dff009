"""stachio topology: this machine, machines that hwloc reads from files, ranks, and what is wrong.

topology/two_packages.xml, made by hand: package 0 has a PCI switch with GPUs 18 and 19 and the interfaces eth2 and eth3, and
nvme0n1 on another root complex; package 1 has a switch with GPU 9a and nvme1n1, and a root complex without a switch with GPU db
and ib0.
"""

import json
import os
import pathlib
import re
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

from check import Checks, require, scratch_directory, skip
from oracle import run_stachio
from ranks import run_ranks, why_no_mpirun

STACHIO = os.environ["STACHIO"]
LIBRARY = os.path.join(os.environ["BUILD_DIR"], "libstachio_topology.so")
XML = pathlib.Path(__file__).parent / "topology" / "two_packages.xml"
BUSES = ["0000:18:00.0", "0000:19:00.0", "0000:9a:00.0", "0000:db:00.0"]


def topology(scratch, **values):
    """The table's lines and the JSON."""
    path = os.path.join(scratch, "topology.json")
    run = run_stachio(["topology", "--json", path], env=dict(os.environ, **values)).succeeded()
    require(not run.error, str(run))
    with open(path) as file:
        return run.out.decode().splitlines(), json.load(file)


def by_name(devices, *fields):
    return {device["name"]: tuple(device[field] for field in fields) for device in devices}


def write_files(scratch, files):
    """What Linux tells of devices, below the folder that is returned."""
    root = os.path.join(scratch, "files")
    for path, text in files.items():
        whole = os.path.join(root, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        pathlib.Path(whole).write_text(text)
    return root


def check_this_machine(scratch):
    lines, told = topology(scratch)
    require(told["host"] == socket.gethostname() and lines[0].startswith(f"Host {told['host']}, packages: "), lines[0])
    processors = sum(node["processors"] for node in told["nodes"])
    require(len(os.sched_getaffinity(0)) <= processors <= os.cpu_count(), f"{told['nodes']}")
    for node in told["nodes"]:
        about = pathlib.Path(f"/sys/devices/system/node/node{node['node']}/meminfo")
        if about.exists():
            memory = int(re.search(r"MemTotal: *(\d+) kB", about.read_text()).group(1)) * 1024
            require(abs(node["memory_bytes"] - memory) < memory / 4, f"{node} has {memory}")
    for interface in told["interfaces"]:
        at = pathlib.Path("/sys/class/net") / interface["name"]
        if at.exists():
            require(os.path.basename(os.path.realpath(at / "device/..")) == interface["bus"]
                    or os.path.basename(os.path.realpath(at / "device")) == interface["bus"], f"{interface}")
            require(interface["is_down"] == ((at / "operstate").read_text() == "down\n"), f"{interface}")
    require(len(told["ranks"]) == (len(told["gpus"]) or len([n for n in told["nodes"] if n["processors"]])), f"{told}")


def check_pairs(scratch):
    lines, told = topology(scratch, HWLOC_XMLFILE=str(XML))
    require(told["host"] == "two" and told["packages"] == 2, f"{told}")
    require([(n["node"], n["package"], n["processor_list"], n["memory_bytes"], n["interface"]) for n in told["nodes"]]
            == [(0, 0, "0-1", 1 << 34, "eth2"), (1, 1, "2-3", 2 << 34, "ib0")], f"{told['nodes']}")
    require([(g["name"], g["bus"], g["node"], g["interface"], g["interface_path"]) for g in told["gpus"]]
            == [("10de:2330", BUSES[0], 0, "eth2", "switch"), ("10de:2330", BUSES[1], 0, "eth3", "switch"),
                ("10de:2330", BUSES[2], 1, "ib0", "package"), ("10de:2330", BUSES[3], 1, "ib0", "root")], f"{told['gpus']}")
    require(by_name(told["interfaces"], "rdma", "node", "gpu", "gpu_path", "bits_per_second")
            == {"eth2": ("mlx5_0", 0, 0, "switch", 0), "eth3": ("mlx5_1", 0, 0, "switch", 0),
                "ib0": ("mlx5_2", 1, 3, "root", 0)}, f"{told['interfaces']}")
    require(by_name(told["nvme"], "node", "gpu", "gpu_path", "interface", "interface_path", "bytes", "model")
            == {"nvme0n1": (0, 0, "package", "eth2", "package", 3840755982336, "Fast disk A"),
                "nvme1n1": (1, 2, "switch", "ib0", "package", 1920377991168, "Fast disk B")}, f"{told['nvme']}")
    require([(r["local_rank"], r["gpu_bus"], r["node"], r["interface"], r["pid"]) for r in told["ranks"]]
            == list(zip(range(4), BUSES, (0, 0, 1, 1), ("eth2", "eth3", "ib0", "ib0"), [0] * 4)), f"{told['ranks']}")
    for words in (["2", BUSES[2], "1", "ib0", "package", "10de:2330"], ["nvme1n1", "0000:9b:00.0", "1", "1.9", "TB", "2", "switch"],
                  ["3", "3", "3", BUSES[3], "1", "ib0"]):
        require(any(line.split()[:len(words)] == words for line in lines), f"{words} are no line of\n" + "\n".join(lines))
    require(not any(line != line.rstrip() for line in lines), "blanks at the end of a line")


def check_files(scratch):
    """Names and speeds; the faster of two interfaces that are as near, and none without a link."""
    root = write_files(scratch, {
        "sys/class/net/eth2/speed": "100000\n", "sys/class/net/eth2/operstate": "up\n",
        "sys/class/net/eth3/speed": "400000\n", "sys/class/net/ib0/speed": "-1\n",
        "sys/class/infiniband/mlx5_2/ports/1/rate": "200 Gb/sec (4X HDR)\n",
        f"proc/driver/nvidia/gpus/{BUSES[1]}/information": "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 1\n"})
    lines, told = topology(scratch, HWLOC_XMLFILE=str(XML), HWLOC_FSROOT=root)
    require(by_name(told["interfaces"], "bits_per_second", "is_down")
            == {"eth2": (100 * 10**9, False), "eth3": (400 * 10**9, False), "ib0": (200 * 10**9, False)}, f"{told['interfaces']}")
    require([g["name"] for g in told["gpus"]] == ["10de:2330", "NVIDIA H100 80GB HBM3", "10de:2330", "10de:2330"], f"{told['gpus']}")
    require([g["interface"] for g in told["gpus"]] == ["eth3", "eth3", "ib0", "ib0"], f"{told['gpus']}")
    require(any(line.split()[:5] == ["eth3", "0000:1b:00.0", "0", "400", "Gb/s"] for line in lines), "\n".join(lines))
    write_files(scratch, {"sys/class/net/ib0/operstate": "down\n", "sys/class/infiniband/mlx5_2/ports/1/state": "4: ACTIVE\n"})
    _, told = topology(scratch, HWLOC_XMLFILE=str(XML), HWLOC_FSROOT=root)
    require(by_name(told["interfaces"], "is_down")["ib0"] == (False,), f"RDMA goes without IP: {told['interfaces']}")
    write_files(scratch, {"sys/class/infiniband/mlx5_2/ports/1/state": "1: DOWN\n", "sys/class/net/eth2/speed": "400000\n"})
    _, told = topology(scratch, HWLOC_XMLFILE=str(XML), HWLOC_FSROOT=root)
    require(by_name(told["interfaces"], "is_down") == {"eth2": (False,), "eth3": (False,), "ib0": (True,)}, f"{told['interfaces']}")
    require([(g["interface"], g["interface_path"]) for g in told["gpus"]]
            == [("eth2", "switch"), ("eth3", "switch"), ("eth2", "machine"), ("eth3", "machine")], f"{told['gpus']}")
    write_files(scratch, {"sys/class/net/eth2/operstate": "down\n"})
    lines, told = topology(scratch, HWLOC_XMLFILE=str(XML), HWLOC_FSROOT=root)
    require([g["interface"] for g in told["gpus"]] == ["eth3"] * 4, f"{told['gpus']}")
    require(any(line.split()[:4] == ["eth2", "0000:1a:00.0", "0", "down"] for line in lines), "\n".join(lines))


def check_variants(scratch):
    """GPUs are numbered by address. Without RDMA on one interface the other one is better; without GPUs ranks get NUMA nodes."""
    text = XML.read_text()
    variant = os.path.join(scratch, "variant.xml")
    pathlib.Path(variant).write_text(text.replace("0000:19:00.0", "0000:e9:00.0"))
    _, told = topology(scratch, HWLOC_XMLFILE=variant)
    require([(g["bus"], g["node"]) for g in told["gpus"]]
            == [(BUSES[0], 0), (BUSES[2], 1), (BUSES[3], 1), ("0000:e9:00.0", 0)], f"{told['gpus']}")
    pathlib.Path(variant).write_text(re.sub(r' *<object type="OSDev" name="mlx5_0".*\n', "", text))
    _, told = topology(scratch, HWLOC_XMLFILE=variant)
    require([g["interface"] for g in told["gpus"]] == ["eth3", "eth3", "ib0", "ib0"], f"{told['gpus']}")
    require(by_name(told["interfaces"], "rdma")["eth2"] == (None,), f"{told['interfaces']}")
    pathlib.Path(variant).write_text(re.sub(r' *<object type="PCIDev".*10de:2330.*\n', "", text))
    lines, told = topology(scratch, HWLOC_XMLFILE=variant)
    require("No GPU" in lines and not told["gpus"], "\n".join(lines))
    require([(r["node"], r["gpu"], r["interface"]) for r in told["ranks"]] == [(0, None, "eth2"), (1, None, "ib0")], f"{told['ranks']}")
    require(by_name(told["nvme"], "gpu", "gpu_path", "interface")["nvme1n1"] == (None, "-", "ib0"), f"{told['nvme']}")


def check_local_ranks(scratch):
    _, told = topology(scratch, HWLOC_XMLFILE=str(XML), STACHIO_LOCAL_RANKS="5")
    require([(r["rank"], r["local_rank"], r["gpu"]) for r in told["ranks"]] == [(0, 0, 0), (1, 1, 1), (2, 2, 2), (3, 3, 3), (4, 4, 0)],
            f"{told['ranks']}")


def check_ranks(scratch):
    path = os.path.join(scratch, "ranks.json")
    status, out, err = run_ranks(3, ["env", f"HWLOC_XMLFILE={XML}", STACHIO, "topology", "--json", path])
    require(status == 0 and not err, f"status {status}: {err}")
    ranks = json.loads(pathlib.Path(path).read_text())["ranks"]
    require([(r["rank"], r["local_rank"], r["gpu_bus"], r["interface"], r["host"]) for r in ranks]
            == [(i, i, BUSES[i], ("eth2", "eth3", "ib0")[i], socket.gethostname()) for i in range(3)], f"{ranks}")
    require(len({r["pid"] for r in ranks}) == 3 and all(f"host {r['host']}, pid {r['pid']}" in out for r in ranks), out)
    status, _, err = run_ranks(2, ["sh", "-c", f'[ "$OMPI_COMM_WORLD_RANK" = 0 ] || export STACHIO_TOPOLOGY_LIBRARY=none; '
                                   f'{STACHIO} topology'])
    require(status == 2 and re.search(r"rank 1 \(host .*\): topology: there is no hwloc", err), f"status {status}: {err}")


def check_wrong(scratch):
    for options in (["--rows", "5"], ["surplus"], ["--json"], ["-c", "SELECT 1"]):
        run = run_stachio(["topology", *options])
        require(run.status == 2 and run.error.startswith("stachio: ") and not run.out, str(run))
    path = os.path.join(scratch, "none.json")
    run = run_stachio(["topology", "--json", path], env=dict(os.environ, STACHIO_TOPOLOGY_LIBRARY="none"))
    require(run.status == 2 and "there is no hwloc" in run.error and "none" in run.error and not run.out, str(run))
    run = run_stachio(["topology", "--json", "/nowhere/x.json"])
    require(run.status == 3, str(run))
    broken = os.path.join(scratch, "broken.xml")
    pathlib.Path(broken).write_text("no XML\n")
    for xml in ("/nowhere/machine.xml", broken, os.path.dirname(broken)):
        run = run_stachio(["topology", "--json", path], env=dict(os.environ, HWLOC_XMLFILE=xml))
        require(run.status == 3 and "HWLOC_XMLFILE" in run.error and xml in run.error and not run.out, str(run))
    require(not os.path.exists(path), "a file was left")


def main():
    if not os.path.exists(LIBRARY):
        skip("libstachio_topology.so was not built")
    for name in ("HWLOC_XMLFILE", "HWLOC_FSROOT"):
        os.environ.pop(name, None)
    checks = Checks()
    cases = [check_this_machine, check_pairs, check_files, check_variants, check_local_ranks, check_wrong]
    for check in cases + ([] if why_no_mpirun() else [check_ranks]):
        with checks.case(check.__name__), scratch_directory() as scratch:
            check(scratch)
    checks.finish()


main()
