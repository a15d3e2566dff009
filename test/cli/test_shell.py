"""The interactive shell, driven through a pseudo terminal."""

import os
import pathlib
import pty
import re
import select
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import duckdb

from check import SANITIZED, Checks, require, scratch_directory
from oracle import stachio_command

PROMPT = "stachio> "
CONTINUED = "   ...> "
WAIT_S = 60
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")
LONG_QUERY = "SELECT sum(a.i % 7 * b.i) FROM big a, big b WHERE a.i + b.i <> 3;"


class Shell:
    """A running shell; what it printed and was not yet taken is in `text`."""

    def __init__(self, directory, history, *options, **variables):
        environment = {**os.environ, "STACHIO_HISTORY": history, "TERM": "xterm", "HOME": os.path.dirname(history), **variables}
        self.terminal, slave = pty.openpty()
        # setsid makes the terminal the controlling one, so that Control-C becomes SIGINT, and becomes the shell.
        command = ["setsid", "--ctty", *stachio_command(), "-d", directory, "--progress", "never", *options]
        self.process = subprocess.Popen(command, env=environment, stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        self.text = ""

    def read_until(self, *wanted, seconds=WAIT_S):
        """Everything up to and with the first of `wanted`."""
        end = time.monotonic() + seconds
        while True:
            for text in wanted:
                if text in self.text:
                    head, _, self.text = self.text.partition(text)
                    return head + text
            ready, _, _ = select.select([self.terminal], [], [], max(0, end - time.monotonic()))
            require(ready, f"waited {seconds} s for {wanted}; the shell printed {self.text!r}")
            try:
                piece = os.read(self.terminal, 65536)
            except OSError:
                piece = b""
            require(piece, f"the shell ended before {wanted}; it printed {self.text!r}")
            self.text += CONTROL.sub("", piece.decode("utf-8", "replace"))

    def send(self, text):
        os.write(self.terminal, text.encode())

    def ask(self, line, prompt=PROMPT):
        """Sends a line at the prompt; what is printed until the next one."""
        self.send(line + "\n")
        return self.read_until(prompt)

    def status(self):
        """Waits for the end."""
        end = time.monotonic() + WAIT_S
        while self.process.poll() is None and time.monotonic() < end:
            try:
                if select.select([self.terminal], [], [], 0.05)[0]:
                    os.read(self.terminal, 65536)
            except OSError:
                pass
        if self.process.poll() is None:
            self.process.kill()
            require(False, "the shell did not end")
        return self.process.wait()


def check_commands(shell):
    require(re.search(r"^big\nt\n", shell.ask(".tables"), re.M), "no tables in .tables")
    schema = shell.ask(".schema t")
    require(re.search(r"id +BIGINT", schema) and re.search(r"price +DECIMAL\(15,2\)", schema), schema)
    schemas = shell.ask(".schema")
    require("price" in schemas and re.search(r"^big$", schemas, re.M), schemas)
    require(".schema" in shell.ask(".help"), "no .help")
    require("no_such" in shell.ask(".no_such"), "an unknown command is not named")
    require("no_such" in shell.ask(".schema no_such"), "an unknown table is not named")


def check_statements(shell):
    require("(1 row)" in shell.ask("SELECT 41 + 1 AS answer;"), "no answer")
    shell.send("SELECT id,\n")
    shell.read_until(CONTINUED)
    shell.send("  price -- a comment; with a semicolon\n")
    shell.read_until(CONTINUED)
    answer = shell.ask("FROM t WHERE name <> ';' AND id = 2;")
    require("2.50" in answer, answer)
    require("no_such_table" in shell.ask("SELECT * FROM no_such_table;"), "no error")
    for sql in (r"SELECT E'it\'s' AS x;", r"SELECT 'a\' AS x;", r"SELECT 1 AS name, e'\\' AS x;", r"SELECT date'2020-01-01' AS x;"):
        require("(1 row)" in shell.ask(sql), f"{sql} is not complete, or has no answer")
    shell.send("SELECT E'\\';\n")
    shell.read_until(CONTINUED)
    require("(1 row)" in shell.ask("' AS x;"), "a text over two lines")
    both = shell.ask("SELECT 1 AS first; SELECT 2 AS second;")
    require("first" in both and "second" in both, both)


def check_modes(shell):
    shell.ask(".mode csv")
    answer = shell.ask("SELECT id, price FROM t ORDER BY id;")
    require("id,price\n1,1.25\n2,2.50\n3,\n" in answer, answer)
    shell.ask(".mode json")
    answer = shell.ask("SELECT id, price FROM t ORDER BY id LIMIT 1;")
    require('[{"id":1,"price":1.25}]' in answer, answer)
    require(".mode" in shell.ask(".mode xml"), "an unknown mode is taken")
    shell.ask(".mode table")


def check_timer(shell):
    shell.ask(".timer on")
    answer = shell.ask("SELECT 1;")
    require(re.search(r"^\d+\.\d+ s$", answer, re.M), answer)
    shell.ask(".timer off")
    answer = shell.ask("SELECT 1;")
    require(not re.search(r"^\d+\.\d+ s$", answer, re.M), answer)


def check_interrupted_line(shell):
    shell.send("SELECT nonsense,\n")
    shell.read_until(CONTINUED)
    shell.send("more nonsense")
    time.sleep(0.3)
    shell.send("\x03")
    shell.read_until(PROMPT)
    require("(1 row)" in shell.ask("SELECT 1;"), "the line was not forgotten")


def check_interrupted_query(shell):
    shell.send(LONG_QUERY + "\n")
    time.sleep(1.0)
    started = time.monotonic()
    shell.send("\x03")
    text = shell.read_until("cancelled", seconds=10)
    took = time.monotonic() - started
    shell.read_until(PROMPT)
    require(SANITIZED or took < 0.5, f"took {took:.3f} s to cancel; printed {text!r}")
    require("(1 row)" in shell.ask("SELECT 1;"), "the shell is of no use after Control-C")


def check_end(shell, history):
    time.sleep(0.5)  # libedit prompts before it takes the terminal over; the terminal itself eats a Control-D in between
    shell.send("\x04")
    require(shell.status() == 0, "Control-D is not the end, or not with status 0")
    kept = pathlib.Path(history).read_text()
    require("answer" in kept, f"the history has {kept!r}")


def check_quit(directory, history):
    shell = Shell(directory, history)
    shell.read_until(PROMPT)
    shell.send(".quit\n")
    require(shell.status() == 0, ".quit is not the end, or not with status 0")


def check_characters(directory, history, locale):
    shell = Shell(directory, history, "--format", "csv", LC_ALL=locale)
    shell.read_until(PROMPT)
    answer = shell.ask("\tSELECT 'ä€\U0001f600\tb' AS x,\tlength('ä€\U0001f600\tb')\tAS n;")
    require("\nx,n\nä€\U0001f600\tb,5\n" in answer, f"{locale}: {answer!r}")
    shell.send(".quit\n")
    require(shell.status() == 0, "status")


def check_output(directory, history, scratch):
    """What succeeded is in the file at the end, and nothing else."""
    path = os.path.join(scratch, "answer.csv")
    shell = Shell(directory, history, "-o", path)
    shell.read_until(PROMPT)
    require("price" in shell.ask(".schema t"), "a command's text is not on the terminal")
    failing = "SELECT CAST(CASE WHEN i < 190000 THEN '1' ELSE 'x' END AS INTEGER) AS n FROM big;"
    for sql in ("SELECT 1 AS a;", "SELECT nope;", failing, "SELECT 2 AS b;"):
        shell.ask(sql)
    shell.send(".quit\n")
    require(shell.status() == 0, "status")
    text = pathlib.Path(path).read_text()
    require(text == "a\n1\nb\n2\n", f"the file has {text[:100]!r}")


def check_parquet_output(directory, history, scratch):
    path = os.path.join(scratch, "answer.parquet")
    shell = Shell(directory, history, "--format", "parquet", "-o", path)
    shell.read_until(PROMPT)
    require("nope" in shell.ask("SELECT nope;"), "no error")
    require("parquet" in shell.ask(".mode csv"), ".mode is taken")
    shell.ask(".tables")
    shell.ask("SELECT id FROM t WHERE id = 3;")
    require("one answer" in shell.ask("SELECT id FROM t;"), "two answers")
    require("plan" in shell.ask("EXPLAIN SELECT id FROM t;"), "a plan")
    shell.send(".quit\n")
    require(shell.status() == 0, "status")
    rows = duckdb.connect().execute(f"FROM '{path}'").fetchall()
    require(rows == [(3,)], f"the file has {rows}")


def make_tables(directory):
    os.makedirs(directory)
    connection = duckdb.connect()
    rows = "(VALUES (1, 'a', 1.25), (2, 'b', 2.50), (3, ';', NULL)) AS v(id, name, price)"
    types = "id::BIGINT AS id, name, price::DECIMAL(15, 2) AS price"
    connection.execute(f"COPY (SELECT {types} FROM {rows}) TO '{directory}/t.parquet'")
    connection.execute(f"COPY (SELECT range AS i FROM range(200000)) TO '{directory}/big.parquet'")


def main():
    checks = Checks()
    with scratch_directory() as scratch:
        tables, history = os.path.join(scratch, "tables"), os.path.join(scratch, "history")
        make_tables(tables)
        shell = Shell(tables, history)
        with checks.case("start"):
            shell.read_until(PROMPT)
        for name, check in (("commands", check_commands), ("statements", check_statements), ("modes", check_modes),
                            ("timer", check_timer), ("an interrupted line", check_interrupted_line),
                            ("an interrupted query", check_interrupted_query)):
            with checks.case(name):
                check(shell)
        with checks.case("end"):
            check_end(shell, history)
        with checks.case("quit"):
            check_quit(tables, history)
        for locale in ("C", "C.UTF-8", "no_such"):
            with checks.case(f"characters, LC_ALL={locale}"):
                check_characters(tables, history, locale)
        with checks.case("output"):
            check_output(tables, history, scratch)
        with checks.case("Parquet output"):
            check_parquet_output(tables, history, scratch)
    checks.finish()


if __name__ == "__main__":
    main()
