"""Runs a command and prints its exit status and its peak resident memory."""
import resource
import subprocess
import sys

status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
peak_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(f"{' '.join(sys.argv[2:])}: exit {status}, peak {peak_kib / 1024:.0f} MiB")
sys.exit(status)
