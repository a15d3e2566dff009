"""Statements of many tests in few processes: test/server/query_server.c does what the program does with `OPTIONS -c SQL`.

STACHIO_TEST_SERVER names that program (BUILD_DIR/test/query_server; where it is not there, or "none", each statement
gets a process of its own). A server keeps databases open, one for each set of options, and has one environment.
"""

import fcntl
import os
import select
import shlex
import subprocess
import threading

from check import JOBS, Failed

DEFAULT = os.path.join(os.environ.get("BUILD_DIR", ""), "test", "query_server")


def server_command():
    """None: there is none."""
    command = shlex.split(os.environ.get("STACHIO_TEST_SERVER", DEFAULT))
    return command if command and command != ["none"] and (command != [DEFAULT] or os.path.exists(DEFAULT)) else None


def output_file(name):
    """In memory, for a process to append to."""
    descriptor = os.memfd_create(name)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_APPEND)
    return descriptor


def take(descriptor):
    """What has been written to the file, which is empty again."""
    content = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    os.ftruncate(descriptor, 0)
    return content


class Server:
    def __init__(self, environment):
        self.environment = environment
        self.known = set()  # options that it has had
        self.out, self.error = output_file("out"), output_file("error")
        replies, to = os.pipe()
        self.process = subprocess.Popen([*server_command(), str(to)], stdin=subprocess.PIPE, stdout=self.out, stderr=self.error,
                                        pass_fds=(to,), env=environment)
        os.close(to)
        self.replies = os.fdopen(replies, "rb")

    def ask(self, options, sql, seconds):
        """Exit status (of a process that a signal ended, when negative), stdout, stderr; no status: time is over."""
        self.known.add(tuple(options))
        texts = b"".join(text.encode() + b"\0" for text in (*options, sql))
        try:
            self.process.stdin.write(b"%d %d\n" % (len(options) + 1, len(texts)) + texts)
            self.process.stdin.flush()
            in_time = select.select([self.replies], [], [], seconds)[0]
        except BrokenPipeError:
            in_time = True
        line = self.replies.readline() if in_time else b""
        if not in_time:
            self.process.kill()
            self.process.wait()
        status = int(line) if line else self.process.wait() if in_time else None
        return status, take(self.out), take(self.error)

    def is_alive(self):
        return self.process.poll() is None

    def end(self):
        """What is wrong about its end: leaks, say. None: nothing."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        status = self.process.wait()
        text = take(self.error).decode("utf-8", "replace")
        self.replies.close()
        os.close(self.out)
        os.close(self.error)
        return f"a server's end: status {status}: {text}" if status else None


class Servers:
    """Each is used by one thread at a time; at most JOBS idle ones are kept."""

    def __init__(self):
        self.lock = threading.Lock()
        self.idle = []
        self.complaints = []

    def borrow(self, options, environment):
        key = tuple(options)
        with self.lock:
            fitting = [server for server in self.idle if server.environment == environment]
            if fitting:
                found = next((server for server in reversed(fitting) if key in server.known), fitting[-1])
                self.idle.remove(found)
                return found
            surplus = self.idle[:max(0, len(self.idle) + 1 - JOBS)]
            self.idle = self.idle[len(surplus):]
        self.end_those(surplus)
        return Server(environment)

    def give_back(self, server):
        if server.is_alive():
            with self.lock:
                self.idle.append(server)
        # One that is gone has said so by the status of its last statement.

    def end_those(self, servers):
        complaints = [complaint for complaint in (server.end() for server in servers) if complaint]
        with self.lock:
            self.complaints += complaints

    def ask(self, options, sql, seconds, environment=None):
        server = self.borrow(options, dict(environment or os.environ))
        try:
            return server.ask(options, sql, seconds)
        finally:
            self.give_back(server)

    def end(self):
        """Of all of them; Failed where one does not end well. Other statements may follow."""
        with self.lock:
            servers, self.idle = self.idle, []
        self.end_those(servers)
        with self.lock:
            complaints, self.complaints = self.complaints, []
        if complaints:
            raise Failed("\n".join(complaints))


servers = Servers()
