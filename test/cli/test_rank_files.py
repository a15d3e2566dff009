"""Tables of which each rank, or each host, has files of its own: {rank}, {node} and {gpu} in their paths."""

import glob
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import duckdb

from check import Checks, require, scratch_directory
from oracle import DuckDB, Tables, ask_stachio, check_equal, open_pipe, run_stachio
from ranks import run_ranks, why_no_mpirun
from test_tpch import ORDER, QUERIES

RANKS = 3
STACHIO = os.environ["STACHIO"]

# The files' ranges of ids do not meet, so that what is pruned by one rank's statistics alone would be missed; rank 1 has
# no rows of `few`, rank 2 no file of it.
QUERIES_OF_IDS = [
    "SELECT id FROM ids",
    "SELECT id, text FROM ids LIMIT 5 OFFSET 998",
    "SELECT count(*), min(id), max(id), sum(id) FROM ids",
    "SELECT count(*) FROM ids WHERE id >= 1000",
    "SELECT count(*) FROM ids WHERE id < 1000",
    "SELECT id FROM ids WHERE id IN (5, 1005, 2005) ORDER BY id",
    "SELECT count(*), count(a.id) FROM ids a LEFT JOIN few b ON a.id = b.id",
    "SELECT a.id, b.text FROM few a JOIN ids b ON a.id = b.id ORDER BY a.id",
    "SELECT id FROM few",
    "SELECT id FROM ids EXCEPT ALL SELECT id FROM few ORDER BY id",
    "SELECT id % 7 AS k, count(*), avg(id) FROM ids GROUP BY k ORDER BY k",
]


def environment(ranks=RANKS):
    return {**os.environ, "STACHIO_LOCAL_RANKS": str(ranks)}


def split_tpch(whole, target):
    """Rank r has r + 1 of 6 rows, and all of the small tables are on rank 1 alone."""
    connection = duckdb.connect()
    for path in glob.glob(f"{whole}/*.parquet"):
        name = os.path.basename(path)
        rows = connection.execute(f"SELECT count(*) FROM '{path}'").fetchone()[0]
        for rank, places in enumerate(((0,), (1, 2), (3, 4, 5))):
            os.makedirs(f"{target}{rank}", exist_ok=True)
            chosen = "true" if rows < 100 else f"file_row_number % 6 IN ({', '.join(map(str, places))})"
            if rows >= 100 or rank == 1:
                connection.execute(f"COPY (SELECT * FROM read_parquet('{path}', file_row_number = true) WHERE {chosen}) "
                                   f"TO '{target}{rank}/{name}' (ROW_GROUP_SIZE 2048)")


def write_ids(path, first, n, columns="range AS id, 'text ' || range AS text"):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    duckdb.execute(f"COPY (SELECT {columns} FROM range({first}, {first + n})) TO '{path}' (ROW_GROUP_SIZE 2048)")


def make_ids(target):
    for rank in range(RANKS):
        write_ids(f"{target}{rank}/ids.parquet", 1000 * rank, 1000)
    write_ids(f"{target}0/few.parquet", 990, 20)
    write_ids(f"{target}1/few.parquet", 0, 0)


class Refusals:
    """Queries that fail, on ranks with files in a directory each."""

    def __init__(self, directory):
        self.directory = directory
        self.n = 0

    def fresh(self):
        self.n += 1
        target = f"{self.directory}/refused{self.n}-"
        make_ids(target)
        return target

    def check(self, tables, status, *words, sql="SELECT count(*) FROM ids"):
        run = ask_stachio(tables, sql, env=environment())
        require(run.status == status and not run.out, str(run))
        for word in words:
            require(word in run.error, f"{word} is not named: {run}")

    def missing_directory(self):
        target = self.fresh()
        shutil.rmtree(f"{target}2")
        self.check(Tables(target + "{rank}"), 3, "rank 2 ", f"{target}2")

    def missing_file(self):
        target = self.fresh()
        os.remove(f"{target}1/ids.parquet")
        self.check(Tables(None, {"ids": target + "{rank}/ids.parquet"}), 3, "rank 1 ", f"{target}1/ids.parquet")

    def missing_directory_of_glob(self):
        target = self.fresh()
        shutil.rmtree(f"{target}1")
        self.check(Tables(None, {"ids": target + "{rank}/*.parquet"}), 3, "rank 1 ", f"{target}1/")

    def nowhere(self):
        target = self.fresh()
        self.check(Tables(None, {"ids": target + "{rank}/nothing*.parquet"}), 3, "no rank has", "nothing*.parquet")

    def other_type(self):
        target = self.fresh()
        write_ids(f"{target}2/ids.parquet", 0, 10, "CAST(range AS INTEGER) AS id, '' AS text")
        self.check(Tables(target + "{rank}"), 3, "rank 2 ", f"{target}2/ids.parquet", "column id", "INTEGER", "BIGINT", "rank 0 ")

    def missing_column(self):
        target = self.fresh()
        write_ids(f"{target}1/ids.parquet", 0, 10, "range AS id")
        self.check(Tables(target + "{rank}"), 3, "rank 1 ", f"{target}1/ids.parquet", "no column text")

    def further_column(self):
        target = self.fresh()
        write_ids(f"{target}1/ids.parquet", 0, 10, "range AS id, '' AS text, 1 AS more")
        self.check(Tables(target + "{rank}"), 3, "rank 1 ", f"{target}1/ids.parquet", "a column more")

    def no_parquet(self):
        target = self.fresh()
        pathlib.Path(f"{target}1/ids.parquet").write_text("no Parquet file at all")
        self.check(Tables(target + "{rank}"), 3, "rank 1 ", f"{target}1/ids.parquet", "not a Parquet file")

    def names_by_case(self):
        target = self.fresh()
        os.rename(f"{target}1/ids.parquet", f"{target}1/IDS.parquet")
        self.check(Tables(target + "{rank}"), 3, "case", f"{target}0/ids.parquet", "IDS")

    def duckdb(self):
        target = self.fresh()
        tables = Tables(target + "{rank}")
        self.check(tables, 1, "WINDOW", "table ids", "rank 0 alone", sql="SELECT row_number() OVER (ORDER BY id) FROM ids")
        self.check(tables, 1, "table ids", "rank 0 alone", sql="CREATE VIEW v AS SELECT * FROM ids")
        run = ask_stachio(tables, "DESCRIBE ids", env=environment()).succeeded()
        require([row[0] for row in run.answer().rows] == ["id", "text"], str(run))

    def tpch_compare(self, data):
        run = run_stachio(["tpch", "run", "-d", data + "{rank}", "--compare", "duckdb"], env=environment())
        require(run.status == 1 and "rank 0 alone" in run.error, str(run))

    def changed(self):
        """Between two queries: the second one is read from a pipe."""
        target = self.fresh()
        pipe = f"{target}pipe"
        os.mkfifo(pipe)
        sql = "SELECT count(*) FROM ids"
        process = subprocess.Popen([STACHIO, "-d", target + "{rank}", "--format", "csv", "-c", sql, "-f", pipe], env=environment(),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        with open_pipe(pipe, process) as opened:
            write_ids(f"{target}2/ids.parquet", 0, 5)
            opened.write(sql)
        out, err = process.communicate(timeout=60)
        require(process.returncode == 3 and out.endswith("\n3000\n"), f"{process.returncode}: {out}\n{err}")
        require(f"{target}2/ids.parquet" in err and "rank 2 " in err and "changed" in err, err)


def check_names(directory):
    """What the placeholders stand for on one host, and without ranks."""
    for rank in range(2):
        write_ids(f"{directory}/names/r{rank}n0g{rank}/t.parquet", rank * 10, 10)
    path = f"{directory}/names/r{{rank}}n{{node}}g{{gpu}}/t.parquet"
    for ranks, total in ((2, 190), (1, 45)):
        run = ask_stachio(Tables(None, {"t": path}), "SELECT sum(id) FROM t", env=environment(ranks))
        require(run.answer().rows == [(str(total),)], str(run))


def check_broadcast_all(data, duck):
    """However much may be sent to all, no rank has other ranks' files."""
    sql = "SELECT count(*), sum(n_nationkey) FROM supplier, nation WHERE s_nationkey = n_nationkey"
    check_equal(Tables(data + "{rank}"), duck, sql, "--fallback", "forbid",
                env={**environment(), "STACHIO_BROADCAST_BYTES": str(2**63 - 1)})


def check_node(directory):
    """Ranks of one host share its files."""
    for i in range(4):
        write_ids(f"{directory}/nodes/0/f{i}.parquet", i * 5000, 5000)
    check_equal(Tables(None, {"t": f"{directory}/nodes/{{node}}/*.parquet"}),
                DuckDB(Tables(None, {"t": f"{directory}/nodes/0/*.parquet"})), "SELECT id FROM t", "--fallback", "forbid",
                order="all", env=environment())


def check_hosts(directory):
    """Four ranks that take themselves for two of each of two hosts."""
    for node in range(2):
        for i in range(2):
            write_ids(f"{directory}/hosts/{node}/f{i}.parquet", node * 10000 + i * 5000, 5000)
    command = (f"hostname host$((OMPI_COMM_WORLD_RANK / 2)); exec {STACHIO} --interface lo --fallback forbid --format csv "
               f"-t 't={directory}/hosts/{{node}}/*.parquet' -c 'SELECT count(*), sum(id) FROM t'")
    status, out, err = run_ranks(4, ["unshare", "-u", "sh", "-c", command])
    require(status == 0 and out.split() == ["count_star(),sum(id)", f"20000,{sum(range(20000))}"], f"status {status}: {out}\n{err}")


def may_unshare():
    return shutil.which("unshare") and subprocess.run(["unshare", "-u", "true"], capture_output=True).returncode == 0


def main():
    checks = Checks()
    with scratch_directory() as directory:
        whole, data, ids = f"{directory}/whole", f"{directory}/tpch", f"{directory}/ids"
        run_stachio(["tpch", "generate", "--sf", "0.01", "-o", whole]).succeeded()
        split_tpch(whole, data)
        duck = DuckDB(Tables(whole))
        for number in range(1, 23):
            with checks.case(f"TPC-H {number}"):
                sql = (QUERIES / f"q{number:02}.sql").read_text()
                check_equal(Tables(data + "{rank}"), duck, sql, "--fallback", "forbid", order=ORDER.get(number, ()), env=environment())
        with checks.case("all build sides to all ranks"):
            check_broadcast_all(data, duck)
        make_ids(ids)
        duck = DuckDB(Tables(None, {"ids": f"{ids}*/ids.parquet", "few": f"{ids}*/few.parquet"}))
        for sql in QUERIES_OF_IDS:
            with checks.case(sql):
                check_equal(Tables(ids + "{rank}"), duck, sql, "--fallback", "forbid", order="all", env=environment())
        with checks.case("tables of all ranks beside those of each"):
            write_ids(f"{directory}/all.parquet", 995, 10)
            check_equal(Tables(ids + "{rank}", {"everywhere": f"{directory}/all.parquet"}),
                        DuckDB(Tables(None, {"ids": f"{ids}*/ids.parquet", "everywhere": f"{directory}/all.parquet"})),
                        "SELECT a.id, b.text FROM ids a JOIN everywhere b ON a.id = b.id ORDER BY a.id", "--fallback", "forbid",
                        order="all", env=environment())
        with checks.case("what the placeholders stand for"):
            check_names(directory)
        with checks.case("{node}"):
            check_node(directory)
        refusals = Refusals(directory)
        for name in ("missing_directory", "missing_file", "missing_directory_of_glob", "nowhere", "other_type", "missing_column",
                     "further_column", "no_parquet", "names_by_case", "duckdb", "changed"):
            with checks.case(name):
                getattr(refusals, name)()
        with checks.case("tpch run --compare duckdb"):
            refusals.tpch_compare(data)
        if not why_no_mpirun() and may_unshare():
            with checks.case("{node} with two hosts"):
                check_hosts(directory)
    checks.finish()


if __name__ == "__main__":
    main()
