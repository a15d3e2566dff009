"""Two network namespaces, joined by a veth pair of limited bandwidth, as two hosts for mpirun."""

import os
import shutil
import subprocess
import time

from check import skip
from ranks import rank_environment

SHAPING = "tbf rate 1gbit burst 1mb latency 50ms"

# mpirun's way to another host: options, the host, and a command there.
AGENT = """#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
shift
exec ip netns exec {0} unshare -u sh -c "hostname {0}; $*"
"""


def run(*command):
    return subprocess.run(command, capture_output=True, text=True)


def why_no_namespaces():
    for program in ("ip", "tc", "unshare"):
        if not shutil.which(program):
            return f"there is no {program}"
    name = f"sx{os.getpid()}t"
    made = run("ip", "netns", "add", name)
    if made.returncode:
        return f"network namespaces can't be made: {made.stderr.strip()}"
    entered = run("ip", "netns", "exec", name, "unshare", "-u", "true")
    run("ip", "netns", "del", name)
    return f"namespaces can't be entered: {entered.stderr.strip()}" if entered.returncode else None


class TwoHosts:
    """Each has `slots` ranks; the interface of host i is names[i] with address 10.99.0.(i + 1). `shaping`: a queueing
    discipline in tc's words, each way."""

    def __init__(self, directory, slots, shaping=SHAPING):
        self.shaping = shaping.split()
        self.names = [f"sx{os.getpid()}{side}" for side in "ab"]
        self.slots = slots
        self.agent, self.hosts = f"{directory}/agent", f"{directory}/hosts"
        with open(self.agent, "w") as file:
            file.write(AGENT.format(self.names[1]))
        os.chmod(self.agent, 0o755)
        with open(self.hosts, "w") as file:
            file.writelines(f"10.99.0.{i + 1} slots={slots}\n" for i in range(2))

    def __enter__(self):
        a, b = self.names
        steps = [["ip", "netns", "add", a], ["ip", "netns", "add", b],
                 ["ip", "link", "add", a, "netns", a, "type", "veth", "peer", "name", b, "netns", b]]
        for i, name in enumerate(self.names):
            steps += [["ip", "-n", name, "addr", "add", f"10.99.0.{i + 1}/24", "dev", name],
                      ["ip", "-n", name, "link", "set", "lo", "up"], ["ip", "-n", name, "link", "set", name, "up"],
                      ["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", name, "root", *self.shaping]]
        for step in steps:
            done = run(*step)
            if done.returncode:
                self.__exit__()
                skip(f"{' '.join(step)}: {done.stderr.strip()}")
        self.wait_for_links()
        return self

    def wait_for_links(self):
        """The kernel looks at a new link up to a second late; until then UCX takes it for one that is down."""
        for _ in range(200):
            if all(" UP " in run("ip", "-n", name, "-br", "link", "show", name).stdout for name in self.names):
                return
            time.sleep(0.05)
        self.__exit__()
        skip("the links do not come up")

    def __exit__(self, *_):
        for name in self.names:
            run("ip", "netns", "del", name)

    def start(self, command, **values):
        """The command, a shell's, on all ranks; $INTERFACE is the host's."""
        a, b = self.names
        ranks = ["mpirun", "--hostfile", self.hosts, "--mca", "plm_rsh_agent", self.agent, "--mca", "oob_tcp_if_include", f"{a},{b}",
                 "--mca", "btl_tcp_if_include", "10.99.0.0/24", "-n", str(2 * self.slots)]
        values = {"UCX_TLS": "tcp,self", **values}
        environment = rank_environment(**values)
        for name in ("STACHIO_NET_LIBRARY", "STACHIO_BROADCAST_BYTES", "STACHIO_ALONE_BYTES", "LD_LIBRARY_PATH", "ASAN_OPTIONS", *values):
            if name in environment:
                ranks += ["-x", name]
        ranks += ["sh", "-c", f"INTERFACE=$(hostname); {command}"]
        return subprocess.Popen(["ip", "netns", "exec", a, "unshare", "-u", "sh", "-c", f'hostname {a}; exec "$@"', "sh", *ranks],
                                env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, command, seconds=300, **values):
        """Exit status, stdout, stderr of mpirun."""
        process = self.start(command, **values)
        try:
            out, err = process.communicate(timeout=seconds)
        finally:
            process.kill()
        return process.returncode, out, err

    def sent_bytes(self):
        """Of both hosts, over the pair so far."""
        return sum(int(run("ip", "netns", "exec", name, "cat", f"/sys/class/net/{name}/statistics/tx_bytes").stdout or 0) for name in self.names)
