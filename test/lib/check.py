"""What every test script shares: named cases, a summary of all failures, the exit status CTest reads."""

import concurrent.futures
import contextlib
import os
import signal
import sys
import tempfile
import traceback

SKIPPED = 77
# Each step takes about ten times as long: tests do less of what differs in its data alone.
SANITIZED = os.environ.get("BUILD_TYPE") in ("Asan", "Tsan")
# Cases of a script that run at the same time. Processes that use a GPU start one after the other, so they should be few.
JOBS = int(os.environ.get("STACHIO_TEST_JOBS", 0)) or (4 if os.environ.get("STACHIO_DEVICE") == "cuda" else os.cpu_count())
# Ranks share what they are asked, however little it is, but where a test says otherwise.
os.environ.setdefault("STACHIO_ALONE_BYTES", "0")
# Below nohup or & some are ignored, and stachio leaves them so.
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
at_end = []  # functions that raise Failed, before the summary


class Failed(Exception):
    """A check that did not hold; its text is shown in the summary."""


def require(condition, message):
    if not condition:
        raise Failed(message)


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


class Checks:
    """Runs cases, goes on after a failure, and tells all of them at the end."""

    def __init__(self):
        self.passed = 0
        self.failures = []
        signal.signal(signal.SIGTERM, self.end_early)

    @contextlib.contextmanager
    def case(self, name):
        try:
            yield
            self.passed += 1
        except Failed as failure:
            self.failures.append((name, str(failure)))
        except Exception:  # a test's own mistake is a failure too, and the other cases still run
            self.failures.append((name, traceback.format_exc()))

    def run_all(self, jobs):
        """jobs: (name, function without arguments); JOBS at the same time."""

        def run_one(job):
            name, function = job
            with self.case(name):
                function()

        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            list(pool.map(run_one, jobs))

    def finish(self):
        """Prints the summary and ends the script."""
        for function in at_end:
            with self.case("end"):
                function()
                self.passed -= 1  # no case of its own
        self.summarise("")
        sys.exit(1 if self.failures else 0)

    def summarise(self, when):
        for name, message in self.failures:
            print(f"FAILED {name}\n    " + message.strip().replace("\n", "\n    "))
        print(f"{self.passed} passed, {len(self.failures)} failed{when}", flush=True)

    def end_early(self, *_):
        """The time for the script is over (scripts/gpu_tests.sh)."""
        self.summarise(" until it was ended")
        os._exit(128 + signal.SIGTERM)


@contextlib.contextmanager
def scratch_directory():
    """A temporary directory; kept, and named, when KEEP_FILES is set."""
    if os.environ.get("KEEP_FILES"):
        directory = tempfile.mkdtemp(prefix="stachio-test-")
        print(f"files are kept in {directory}")
        yield directory
        return
    with tempfile.TemporaryDirectory(prefix="stachio-test-") as directory:
        yield directory
