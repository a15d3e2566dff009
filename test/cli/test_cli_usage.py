"""Ways to give SQL and to take the answer, exit statuses, and the options that tell about a query."""

import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import duckdb

from check import SANITIZED, Checks, require, scratch_directory
from oracle import TIMEOUT_S, Tables, query_stachio, run_stachio, stachio_command
from test_interrupt import has_handler

CLOSED_PIPE, INTERRUPTED = 141, 130
DUCKDB_ANSWERS = "stachio: DuckDB answers: "

# Statements that DuckDB runs: the answer's lines (None: not compared), and the reason on stderr.
LEFT_TO_DUCKDB = {
    "PIVOT parts ON part USING count(*)": (["0,1,2", "1,1,1"], "PIVOT without IN"),
    "SELECT * FROM (PIVOT parts ON part USING sum(part))": (["0,1,2", "0,1,2"], "PIVOT without IN"),
    "PRAGMA table_info('parts')": (["cid,name,type,notnull,dflt_value,pk", "0,part,INTEGER,false,,false"], "statement PRAGMA"),
    "PRAGMA show_tables": (["name", "big", "parts", "t"], "statement PRAGMA"),
    "SHOW TABLES": (["name", "big", "parts", "t"], "table function duckdb_tables"),
    "SELECT table_name AS n FROM information_schema.tables ORDER BY 1": (["n", "big", "parts", "t"], "table function duckdb_tables"),
    "SUMMARIZE parts": (None, "operator UNNEST"),
    "CALL pragma_version()": (None, "statement CALL"),
    "CHECKPOINT": ([], "statement CHECKPOINT"),
    "/* a */ create -- b\n view w AS SELECT 1": ([], "statement CREATE"),
    "EXPLAIN (FORMAT json) SELECT 1": (None, "statement EXPLAIN"),
    "SELECT a FROM read_csv('{csv}')": (["a", "7"], "table function read_csv"),
}
# What stachio itself answers.
OWN = {
    "PIVOT parts ON part IN (1, 2) USING count(*)": ["1,2", "1,1"],
    "DESCRIBE parts": ["column_name,column_type,null,key,default,extra", "part,INTEGER,YES,,,"],
    "VALUES (1, 2), (3, 4)": ["col0,col1", "1,2", "3,4"],
    "FROM parts ORDER BY ALL LIMIT 1": ["part", "0"],
    "TABLE parts ORDER BY part DESC LIMIT 1": ["part", "2"],
}
# Scripts, the lines that they print, and what stderr must match.
SESSIONS = {
    "SET VARIABLE v = 3; SELECT getvariable('v') AS v": ["v", "3"],
    "PREPARE p AS SELECT count(*) AS n FROM t WHERE id < $1; EXECUTE p(7)": ["n", "7"],
    "ATTACH ':memory:' AS m; USE m; SELECT count(*) AS n FROM memory.parts; USE memory; FROM parts ORDER BY ALL LIMIT 1":
        ["n", "3", "part", "0"],
    "CREATE TABLE x AS SELECT 5 AS five LIMIT 0; INSERT INTO x SELECT id FROM t WHERE id = 9; FROM x": ["Count", "0", "Count", "1", "five", "9"],
}

# What people get wrong: SQL (bytes: of a file), the exit status, and what stderr must match besides "stachio: ".
MISTAKES = [
    ("SELECT * FROM nope", 1, ["nope", "line 1, column 15:"]),
    ("SELECT nope FROM t", 1, ["nope", "line 1, column 8:"]),
    ("SELECT t.nope, z.id FROM t", 1, ["nope", "line 1, column 8:"]),
    ("SELECT id + '1'::VARCHAR FROM t", 1, [r"\+\(BIGINT, VARCHAR\)", "line 1, column 11:"]),
    ("SELECT sum(id), id FROM t", 1, ["GROUP BY", "line 1, column 17:"]),
    ("SELECT id", 1, ["FROM clause is missing", "line 1, column 8:"]),
    ("SELECT 'abc", 1, ["unterminated quoted string", "line 1, column 8:"]),
    ('SELECT "abc', 1, ["unterminated quoted identifier", "line 1, column 8:"]),
    ("SELECT $$abc", 1, ["unterminated dollar-quoted", "line 1, column 8:"]),
    ("SELECT 1 /* abc", 1, ["unterminated /* comment".replace("*", r"\*"), "line 1, column 10:"]),
    ("SELECT count(*) FROM select", 1, ["syntax error", "select", "line 1, column 22:"]),
    ("SELECT 1;\n-- two\nSELECT 2; EXPLAIN\n SELECT nope\nFROM t", 1, ["nope", r"line 4, column 9:\n {4}SELECT nope\n {11}\^"]),
    ("SELECT 'é'; SELECT 'ö', nope FROM t", 1, ["nope", "line 1, column 25:"]),
    ("SELECT 'FROM nope' x;FROM nope", 1, ["nope", "line 1, column 27:"]),
    ("SELECT " + "(" * 10000 + "1" + ")" * 10000, 1, ["nested too deeply", "line 1, column 10004"]),
    ("SELECT " + "+".join(["1"] * 5000), 1, ["depth"]),
    ("SELECT \x1b[31mx", 1, [r"near \"\?\"", "line 1, column 8"]),
    (b"SELECT 1\0; SELECT 2", 1, [r"script\.sql: a zero byte at line 1, column 9"]),
    (b"SELECT 1;\n\xff\xfe\x01\x00", 1, [r"script\.sql: invalid UTF-8 at line 2, column 1"]),
    (b"SELECT 1;\n'\xc3\xa4' \x00", 1, [r"script\.sql: a zero byte at line 2, column 5"]),
    (b"\x93\xfa\x01 = \xff", 1, [r"script\.sql: invalid UTF-8 at line 1, column 1"]),
    (b"SELECT 1;\xff", 1, [r"script\.sql: invalid UTF-8 at line 1, column 10: "]),
    *((b"SELECT '\xf0\x9f\x98\x80" + wrong + b"'", 1, [r"script\.sql: invalid UTF-8 at line 1, column 10: "])
      for wrong in (b"\x80", b"\xc0\xaf", b"\xc1\x81", b"\xe0\x80\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf8\x88", b"\xe2\x82", b"\xe2A\x82")),
    ("SELECT '\udcff'", 1, ["-c: invalid UTF-8 at line 1, column 9"]),
    ("SELECT * FROM '{scratch}/missing.parquet'", 3, [r"missing\.parquet"]),
]
NO_MISTAKES = ["", "   ", ";", " ;; ;", "-- only a comment", b"", "SELECT 'ä\u20ac\ud7ff\ue000\U0010ffff'".encode(), b"SELECT length('" + b"x" * 10_000_000 + b"')"]
# The same for options.
WRONG_OPTIONS = [
    (["-t", "x={scratch}/nowhere/*.parquet"], 3, [r"nowhere/\*\.parquet: no such file"]),
    (["-t", "x={scratch}/[.parquet"], 3, [r"\[\.parquet: no such file"]),
    (["-t", "x={scratch}/hollow"], 3, [r"hollow: no file .* \.parquet"]),
    (["-d", "{scratch}/hollow"], 3, ["hollow: no Parquet files"]),
    (["-d", "{scratch}/some.csv"], 3, ["some.csv: Not a directory"]),
    (["-t", "x={scratch}/some.csv"], 3, [r"some\.csv: not a Parquet file"]),
    (["-t", "x={scratch}/some.csv", "-t", "X={scratch}/other.parquet"], 2, ["-t: 'X=.*' and 'x=.*' are one name"]),
    (["-t", "x"], 2, ["-t: 'x' is not NAME=GLOB"]),
    (["-t", "=x"], 2, ["-t: '=x'"]),
    (["--threads", "0"], 2, ["--threads: '0' is not a number from 1"]),
    (["--memory-limit", "abc"], 2, ["--memory-limit: 'abc' is not a size"]),
    (["--memory-limit", "101%"], 2, ["--memory-limit: '101%' is more"]),
    (["--device-memory-limit", "50%"], 2, ["--device-memory-limit: '50%' is not a size"]),
    (["--device-cache-size", "50%"], 2, ["--device-cache-size: '50%' is not a size"]),
    (["--io", "mmap"], 2, ["--io: 'mmap' is none of auto, buffered, direct, gds"]),
    (["--io", "gds", "--device", "cpu"], 2, ["io gds: the device is the CPU"]),
    (["--cache", "disk"], 2, ["--cache: 'disk' is none of auto, off, host, device"]),
    (["--cache", "device", "--device", "cpu"], 2, ["cache device: the device is the CPU; use host or off"]),
    (["--device-cache-size", "0"], 2, ["--device-cache-size: '0' is not a size"]),
    (["--cache-size", "0"], 2, ["--cache-size: '0' is not a size"]),
    (["--format", "xml"], 2, ["--format: 'xml' is none of table, csv"]),
    (["--nope"], 2, ["unknown option --nope"]),
    (["-c", "SELECT 1", "-o", "{scratch}/no/folder/a.csv"], 3, [r"/no/folder/a\.csv: there is no folder .*/no/folder$"]),
    (["-f", "{scratch}/nope.sql"], 3, [r"nope\.sql: No such file"]),
]


def make_tables(directory):
    os.makedirs(os.path.join(directory, "parts"))
    connection = duckdb.connect()
    connection.execute(f"COPY (SELECT range AS id FROM range(1000)) TO '{directory}/t.parquet'")
    connection.execute(f"COPY (SELECT range AS i FROM range(200000)) TO '{directory}/big.parquet'")
    for part in range(3):
        connection.execute(f"COPY (SELECT {part} AS part) TO '{directory}/parts/{part}.parquet'")
    return Tables(directory)


def answer_lines(run):
    return run.succeeded().out.decode().split()


def check_sources(tables, scratch):
    csv = [*tables.options(), "--format", "csv"]
    script = os.path.join(scratch, "script.sql")
    pathlib.Path(script).write_text("SELECT count(*) AS n FROM t; -- first\nSELECT ';' AS semicolon;\n")
    expected = ["n", "1000", "semicolon", ";"]
    require(answer_lines(run_stachio([*csv, "-f", script])) == expected, "-f")
    require(answer_lines(run_stachio([*csv, "-c", pathlib.Path(script).read_text()])) == expected, "-c")
    with open(script, "rb") as standard_input:
        require(answer_lines(run_stachio(csv, stdin=standard_input)) == expected, "standard input")
    with open(script, "rb") as standard_input:
        require(answer_lines(run_stachio([*csv, "-f", "-"], stdin=standard_input)) == expected, "-f -")
    both = run_stachio([*csv, "-c", "SELECT 1 AS a", "-f", script, "-c", "SELECT 2 AS b"])
    require(answer_lines(both) == ["a", "1", *expected, "b", "2"], "several of -c and -f")
    require(answer_lines(run_stachio([*csv, "-c", " ; -- nothing\n"])) == [], "an empty script")
    run = run_stachio([*csv, "-c", "SET threads = 1; CREATE VIEW v AS SELECT 7 AS n; SELECT n AS Count FROM v"])
    require(answer_lines(run) == ["Count", "7"], f"{run}\nstatements without an answer")


def check_tables(tables):
    sql = "SELECT count(*) AS n, sum(part) AS s FROM parts"
    require(answer_lines(query_stachio(tables, sql)) == ["n,s", "3,3"], "a directory of files is a table")
    pattern = os.path.join(tables.directory, "parts", "[12].parquet")
    run = query_stachio(Tables(globs={"few": pattern}), "SELECT sum(part) AS s FROM few")
    require(answer_lines(run) == ["s", "3"], "a glob is a table")
    run = query_stachio(Tables(globs={"all": os.path.join(tables.directory, "parts")}), 'SELECT count(*) AS n FROM "all"')
    require(answer_lines(run) == ["n", "3"], "a directory given by -t is a table")


def check_output(tables, scratch):
    directory = os.path.join(scratch, "output")
    os.makedirs(directory)
    path = os.path.join(directory, "answer.csv")
    run = query_stachio(tables, "SELECT 1 AS a", "-o", path).succeeded()
    require(not run.out and pathlib.Path(path).read_text() == "a\n1\n", "-o")
    os.chmod(path, 0o640)
    query_stachio(tables, "SELECT 2 AS a", "-o", path).succeeded()
    require(pathlib.Path(path).read_text() == "a\n2\n" and os.stat(path).st_mode & 0o777 == 0o640, "-o once more")
    link = os.path.join(directory, "link.csv")
    os.symlink("answer.csv", link)
    query_stachio(tables, "SELECT 3 AS a", "-o", link).succeeded()
    require(os.path.islink(link) and pathlib.Path(path).read_text() == "a\n3\n", "-o through a link")
    run = query_stachio(tables, "SELECT 4 AS a; SELECT no_such_column", "-o", path)
    require(run.status == 1 and pathlib.Path(path).read_text() == "a\n3\n", f"{run}\nthe file is not as it was")
    require(sorted(os.listdir(directory)) == ["answer.csv", "link.csv"], f"left {os.listdir(directory)}")
    run = query_stachio(tables, "SELECT 5 AS a", "-o", "/dev/stdout").succeeded()
    require(run.out == b"a\n5\n", repr(run.out))


def check_failures(tables, scratch):
    for status, options in ((2, ["--format", "parquet", "-c", "SELECT 1"]), (2, ["tpch"]), (2, ["bench", "scan"]),
                            (2, ["--explain", "--analyze", "-c", "SELECT 1"]),
                            (2, ["surplus"]), (2, ["--memory-limit", "-1"]),
                            (3, ["-d", scratch + "/nothing-here", "-c", "SELECT 1"]), (3, ["-f", scratch, "-c", "SELECT 1"]),
                            (3, ["-c", "SELECT 1", "-o", "/dev/full"]), (1, ["-c", "SELECT 1; SELECT no_such_column"])):
        run = run_stachio(options)
        require(run.status == status and run.error.startswith("stachio: "), f"{run}\nstatus should be {status}")
    first = query_stachio(tables, "SELECT 1 AS a; SELECT no_such_column; SELECT 2 AS b")
    require(first.status == 1 and first.out in (b"a\n1\n", b""), f"{first}\n{first.out!r}")


def check_statements(tables, scratch):
    csv = os.path.join(scratch, "one.csv")
    pathlib.Path(csv).write_text("a\n7\n")
    for sql, (lines, reason) in LEFT_TO_DUCKDB.items():
        sql = sql.replace("{csv}", csv)
        run = query_stachio(tables, sql)
        require(lines is None or answer_lines(run) == lines, f"{run}\n{run.succeeded().out!r}")
        require(re.fullmatch(f"{DUCKDB_ANSWERS}({reason})\n", run.error), str(run))
        run = query_stachio(tables, sql, "--fallback", "forbid")
        require(run.status == 1 and not run.out and re.search(reason, run.error), str(run))
    for sql, lines in OWN.items():
        run = query_stachio(tables, sql, "--fallback", "forbid")
        require(answer_lines(run) == lines and not run.error, f"{run}\n{run.out!r}")
    for sql, lines in SESSIONS.items():
        run = query_stachio(tables, sql)
        require(answer_lines(run) == lines, f"{run}\n{run.out!r}")
        require(query_stachio(tables, sql, "--fallback", "forbid").status == 1, sql)
    run = query_stachio(tables, "CREATE TEMP TABLE x AS SELECT 1")
    require(run.status == 1 and "TEMP" in run.error, str(run))


def run_text(tables, scratch, sql):
    """SQL that is bytes, or too long for an argument, comes from a file."""
    if isinstance(sql, str) and len(sql) < 1000:
        return query_stachio(tables, sql.replace("{scratch}", scratch))
    path = os.path.join(scratch, "script.sql")
    pathlib.Path(path).write_bytes(sql if isinstance(sql, bytes) else sql.encode())
    return run_stachio([*tables.options(), "--format", "csv", "-f", path])


def check_mistakes(tables, scratch):
    for sql, status, mentions in MISTAKES:
        run = run_text(tables, scratch, sql)
        text = f"{run}\nof {sql[:100]!r}"
        require(run.status == status and run.error.startswith("stachio: error: "), text)
        require(len(run.error) < 2100 and "\x1b" not in run.error, text)
        for mention in mentions:
            require(re.search(mention, run.error), f"{text}\nshould match {mention!r}")
    for sql in NO_MISTAKES:
        run = run_text(tables, scratch, sql).succeeded()
        require(not run.error, str(run))


def check_options(tables, scratch):
    os.makedirs(os.path.join(scratch, "hollow"))
    pathlib.Path(scratch, "some.csv").write_text("a,b\n1,2\n" * 100)
    for options, status, mentions in WRONG_OPTIONS:
        sql = [] if "-f" in options else ["-c", "SELECT * FROM x"]
        run = run_stachio([*(option.replace("{scratch}", scratch) for option in options), *sql])
        require(run.status == status and not run.out and run.error.startswith("stachio: "), f"{run}\nstatus {status}")
        for mention in mentions:
            require(re.search(mention, run.error), f"{run}\nshould match {mention!r}")
    few = ["-t", "t=" + os.path.join(tables.directory, "parts", "1.parquet")]
    for options in ([*few, *tables.options()], [*tables.options(), *few]):
        run = run_stachio([*options, "--format", "csv", "-c", "FROM t"])
        require(answer_lines(run) == ["part", "1"], f"{run}\n-t takes the place of a directory's table")


def check_version():
    run = run_stachio(["--version"]).succeeded()
    require(re.fullmatch(r"stachio \d+\.\d+\.\d+\n", run.out.decode()), repr(run.out))
    for command in ([], ["tpch"], ["bench"], ["bench", "scan"], ["tpch", "run"], ["rewrite"]):
        for name in ("--help", "-h"):
            require(b"--memory-limit" in run_stachio([*command, name]).succeeded().out, f"{command} {name}")


def floor_bytes(tables, sql, *options):
    """The bytes that T_min counts."""
    out = query_stachio(tables, sql, "--analyze", *options).succeeded().out.decode()
    found = re.search(r"^T_min +([\d.e-]+) s: ([\d.]+) (k?)B (from memory|from the disk|over the link to the device) at "
                      r"[\d.]+ [kMGT]?B/s; the time is [\d.]+ x\nBound +(\w+)$", out, re.M)
    require(found and float(found[1]) > 0, f"no T_min in\n{out}")
    return float(found[2]) * (1000 if found[3] else 1)


def check_floor(tables):
    """Each byte counts once, whoever asks for it and where it comes from."""
    once = floor_bytes(tables, "SELECT sum(id) FROM t")
    require(once > 500, f"T_min of {once} bytes")
    both = "SELECT (SELECT sum(id) FROM t WHERE id > 2) + (SELECT count(id) FROM t WHERE id < 100)"
    for sql in (both, f"{both}; {both}"):
        require(floor_bytes(tables, sql, "--cache", "host") == once, f"{sql}: not as one scan")
    run = query_stachio(tables, "SELECT sum(id) FROM t", "--analyze", "--io", "direct", "--device", "cpu")
    require(" from the disk at " in run.out.decode() if run.status == 0 else "direct I/O" in run.error, str(run))
    out = query_stachio(tables, "SELECT 1 + 1", "--analyze").succeeded().out.decode()
    require("T_min" not in out, f"nothing is read in\n{out}")


def check_plans(tables):
    sql = "SELECT id, count(*) FROM t WHERE id > 3 GROUP BY id"
    out = query_stachio(tables, sql, "--explain").succeeded().out.decode()
    require("AGGREGATE" in out and "SCAN" in out and "ipeline" in out, out)
    require(query_stachio(tables, "EXPLAIN " + sql).succeeded().out.decode() == out, "EXPLAIN differs from --explain")
    out = query_stachio(tables, sql, "--analyze").succeeded().out.decode()
    for wanted in ("Answered by +stachio", "Peak memory", "Read", "SCAN", "1,000|996", "seconds"):
        require(re.search(wanted, out), f"no {wanted} in\n{out}")
    check_floor(tables)
    require("Answered by" in query_stachio(tables, "explain analyze " + sql).succeeded().out.decode(), "EXPLAIN ANALYZE")
    fallback = "SELECT list(id) FROM t"
    out = query_stachio(tables, fallback, "--explain").succeeded().out.decode()
    require("DuckDB answers" in out and "list" in out, out)
    out = query_stachio(tables, fallback, "--analyze").succeeded().out.decode()
    require(re.search("Answered by +duckdb", out) and "list" in out, out)


def check_progress(tables):
    run = query_stachio(tables, "SELECT sum(i) FROM big").succeeded()
    require(not run.error, f"{run}\nprogress without a terminal")
    options = [*tables.options(), "--format", "csv", "--progress", "always"]
    product = f"FROM big a, big b WHERE a.i + b.i = 3 AND b.i < {200 if SANITIZED else 5000}"
    run = run_stachio([*options, "-c", f"SELECT sum(a.i % 7) {product}"])
    require(re.search(r"rows|running", run.succeeded().error), f"{run}\nno progress")


def check_interrupt(tables, sql, *options):
    command = [*stachio_command(), *tables.options(), "--format", "csv", *options, "-c", sql]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(3 if SANITIZED else 1)
    require(process.poll() is None, "the query is too quick to be interrupted")
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=TIMEOUT_S)
    took = time.monotonic() - started
    require(process.returncode == INTERRUPTED and not out, f"status {process.returncode}, {out!r}, {error!r}")
    require(SANITIZED or took < (1.5 if os.environ.get("STACHIO_DEVICE") == "cuda" else 0.5), f"took {took:.3f} s")  # a driver's end takes its time


def end_by(process, number):
    """Status and stderr of a process that gets a signal where it waits for the other side of a pipe."""
    try:
        deadline = time.monotonic() + TIMEOUT_S
        while not has_handler(process.pid) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(3 if SANITIZED else 1)
        require(process.poll() is None, f"status {process.returncode} before the signal")
        process.send_signal(number)
        process.wait(10)
    except subprocess.TimeoutExpired:
        require(False, f"{signal.Signals(number).name} is not the end of {process.args}")
    finally:
        process.kill()
    return process.returncode, process.communicate()[1]


def check_file_size(tables, scratch):
    """A file that gets larger than is allowed: nothing is left of it."""
    directory, big = os.path.join(scratch, "sizes"), os.path.join(tables.directory, "big.parquet")
    os.makedirs(directory)
    out = os.path.join(directory, "out.parquet")
    query = [*tables.options(), "-o", out, "-c", "SELECT i, hash(i)::VARCHAR AS h FROM big"]
    for arguments in (query, [*query, "--format", "parquet"], [*query[:-1], "SELECT i, i * i % 99991 AS h FROM big", "--format", "parquet"],
                      ["rewrite", big, "-o", out],
                      ["rewrite", big, "-o", os.path.join(directory, "out"), "--files", "2"]):
        run = run_stachio(arguments, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)))
        require(run.status == 3 and "File too large" in run.error, str(run))
        require(not os.listdir(directory), f"{run}\nleft {os.listdir(directory)}")


def check_unread_pipe(tables, scratch):
    fifo = os.path.join(scratch, "fifo")
    os.mkfifo(fifo)
    big = ["-c", "SELECT i FROM big"]
    for number, arguments in ((signal.SIGINT, big), (signal.SIGTERM, big), (signal.SIGHUP, big),
                              (signal.SIGINT, [*big, "-o", fifo]), (signal.SIGTERM, ["-f", fifo])):
        command = [*stachio_command(), *tables.options(), "--format", "csv", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        status, error = end_by(process, number)
        require((status, error) == (INTERRUPTED, b"stachio: error: cancelled\n"), f"{arguments}: status {status}, {error!r}")
    command = [*stachio_command(), *tables.options(), "--format", "csv", *big]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    require(end_by(process, signal.SIGTERM)[0] == INTERRUPTED, "the message has no reader either")


def check_ignored_signals():
    command = ["sh", "-c", "trap '' HUP INT; exec \"$@\"", "sh", *stachio_command(), "--format", "csv"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(3 if SANITIZED else 1)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    require(process.poll() is None, f"status {process.returncode} by a signal that is ignored")
    out, error = process.communicate(b"SELECT 1 AS a", timeout=TIMEOUT_S)
    require(process.returncode == 0 and out == b"a\n1\n", f"status {process.returncode}, {out!r}, {error!r}")


def check_parquet(tables, scratch):
    """What has an answer is written, or refused; never left out."""
    path = os.path.join(scratch, "answer.parquet")
    pivot = "PIVOT parts ON part IN (1, 2) USING count(*)"
    for sql, expected in (("DESCRIBE parts", "part"), (pivot, 1), ("PIVOT parts ON part USING count(*)", 1),
                          ("UNPIVOT (SELECT 7 AS a) ON a", "a"), ("SET threads = 1; SELECT 8 AS a", 8),
                          ("CREATE TABLE x AS SELECT 1 AS a; INSERT INTO x SELECT 2; SELECT max(a) FROM x", 2)):
        query_stachio(tables, sql, "--format", "parquet", "-o", path).succeeded()
        row = duckdb.connect().execute(f"FROM '{path}'").fetchone()
        require(row[0] == expected, f"{sql}: {row}")
        os.remove(path)
    for sql in ("DESCRIBE parts; SELECT 1 AS a", f"SELECT 1 AS a; {pivot}", "SELECT 1 AS a; SUMMARIZE parts", "SHOW TABLES",
                "PREPARE p AS SELECT 1 AS a; EXECUTE p", "CALL pragma_version()", "SELECT 1 AS a; EXPLAIN SELECT 2"):
        run = query_stachio(tables, sql, "--format", "parquet", "-o", path)
        require(run.status == 2 and "stachio: error: --format: " in run.error, str(run))
        require(not os.path.exists(path), f"{run}\nleft a file")


def check_closed_pipe(tables):
    command = [*stachio_command(), *tables.options(), "--format", "csv", "-c", "SELECT a.i FROM big a, t"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.read(10)
    process.stdout.close()
    error = process.stderr.read()
    require(process.wait(TIMEOUT_S) == CLOSED_PIPE and not error, f"status {process.returncode}, {error!r}")


def check_closed_descriptors(tables, scratch):
    """What is opened does not take the place of a standard descriptor."""
    path = os.path.join(scratch, "closed.csv")
    command = [*stachio_command(), *tables.options(), "--format", "csv"]
    wrong = [*command, "-o", path, "-c", "SELECT 1 AS a; SELECT nope"]
    for closed, arguments, status, text, error in (
            (">&-", [*command, "-c", "SELECT id FROM t"], 3, None, "can't write the answer: standard output is closed"),
            (">&-", [*command, "-c", "SELECT list(id) FROM t"], 3, None, "standard output is closed"),
            (">&-", [*stachio_command(), "--help"], 3, None, "standard output is closed"),
            (">&-", [*command, "-o", path, "-c", "SELECT 1 AS a"], 0, "a\n1\n", ""), ("2>&-", wrong, 1, None, ""),
            ("<&- >&- 2>&-", wrong, 1, None, ""), ("2>&-", [*command, "-o", path, "-c", "SELECT [1] AS a"], 0, "a\n[1]\n", ""),
            ("<&-", command, 3, None, "standard input: Bad file descriptor"),
            ("<&-", [*command, "-o", path, "-c", "SELECT 1 AS a"], 0, "a\n1\n", "")):
        done = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", *arguments], capture_output=True, timeout=TIMEOUT_S)
        told = f"{closed} {arguments}: status {done.returncode}, {done.stdout!r}, {done.stderr!r}"
        require(done.returncode == status and not done.stdout and error in done.stderr.decode(), told)
        require(os.path.exists(path) == (text is not None), f"{told}\nthe file is {'not ' if text else ''}there")
        if text is not None:
            found = pathlib.Path(path).read_text()
            require(found == text, f"{told}\nthe file has {found!r}")
            os.remove(path)


def main():
    checks = Checks()
    product = "SELECT sum(a.i % 7 * b.i) FROM big a, big b WHERE a.i + b.i <> 3"
    with scratch_directory() as scratch:
        tables = make_tables(os.path.join(scratch, "tables"))
        for name, check in (
                ("sources", lambda: check_sources(tables, scratch)), ("tables", lambda: check_tables(tables)),
                ("output", lambda: check_output(tables, scratch)), ("failures", lambda: check_failures(tables, scratch)),
                ("statements", lambda: check_statements(tables, scratch)), ("version", check_version),
                ("mistakes", lambda: check_mistakes(tables, scratch)), ("options", lambda: check_options(tables, scratch)), ("plans", lambda: check_plans(tables)),
                ("progress", lambda: check_progress(tables)), ("closed pipe", lambda: check_closed_pipe(tables)),
                ("closed descriptors", lambda: check_closed_descriptors(tables, scratch)),
                ("file size", lambda: check_file_size(tables, scratch)), ("unread pipe", lambda: check_unread_pipe(tables, scratch)), ("ignored signals", check_ignored_signals),
                ("parquet", lambda: check_parquet(tables, scratch)),
                ("interrupt", lambda: check_interrupt(tables, product, "--fallback", "forbid")),
                ("interrupt DuckDB", lambda: check_interrupt(tables, product.replace("sum", "stddev_pop")))):
            with checks.case(name):
                check()
    checks.finish()


if __name__ == "__main__":
    main()
