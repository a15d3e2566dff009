"""Random queries over random tables give DuckDB's answers, and never fall back.

RANDOM_SEED (1), RANDOM_QUERIES (1000; 150 under sanitizers) and RANDOM_ONLY (a class of test/random/generate.py) choose
the queries; RANDOM_NUMBER runs a single one again. RANDOM_RANK_FILES=N gives each of N ranks (STACHIO_LOCAL_RANKS) files of its own. A query whose plan needs an operator beyond those that the engine promises may be
answered by DuckDB; all others run with --fallback forbid. Failures are told at the end, grouped by their message.
"""

import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import sys
import tempfile
import threading
import traceback
from dataclasses import dataclass

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "random"))

import duckdb

from check import JOBS, SANITIZED, Failed
from generate import make_query
from oracle import Answer, DuckDB, Tables, ask_stachio, difference
from server import servers
from tables import TABLES, write_rank_files, write_tables

SEED = int(os.environ.get("RANDOM_SEED", "1"))
COUNT = int(os.environ.get("RANDOM_QUERIES", "150" if SANITIZED else "1000"))
ONLY = os.environ.get("RANDOM_ONLY")
NUMBER = os.environ.get("RANDOM_NUMBER")
RANK_FILES = int(os.environ.get("RANDOM_RANK_FILES", "0"))
ROW_LIMIT = 20_000
ATTEMPTS = 20
EMPTY_ATTEMPTS = 2
EXAMPLES_SHOWN = 2
THREADS = 5  # of every second query; the others have the default

PROMISED_OPERATORS = {
    f"LOGICAL_{name}" for name in (
        "GET", "FILTER", "PROJECTION", "AGGREGATE_AND_GROUP_BY", "COMPARISON_JOIN", "ANY_JOIN", "DELIM_JOIN",
        "DELIM_GET", "CROSS_PRODUCT", "DISTINCT", "ORDER_BY", "TOP_N", "LIMIT", "UNION", "EXCEPT", "INTERSECT",
        "MATERIALIZED_CTE", "CTE_REF", "CHUNK_GET", "EXPRESSION_GET", "DUMMY_SCAN", "EMPTY_RESULT")}

def unpromised_operator(node):
    """The first operator in DuckDB's JSON plan that the engine does not promise, or None."""
    if isinstance(node, list):
        return next(filter(None, map(unpromised_operator, node)), None)
    if not isinstance(node, dict):
        return None
    kind = node.get("type")
    if isinstance(kind, str) and kind.startswith("LOGICAL_"):
        if kind not in PROMISED_OPERATORS:
            return kind
    return unpromised_operator(list(node.values()))


@dataclass
class Case:
    """A query with DuckDB's answer, or with DuckDB's error where it refuses the query."""

    number: int
    sql: str
    order: object
    answer: Answer = None
    error: str = ""


def find_case(duck, number):
    """The query of that number. What DuckDB can't run, or answers with too many rows, is made again."""
    for attempt in range(ATTEMPTS):
        query = make_query(SEED, number, attempt, ONLY)
        try:
            answer = duck.answer(query.sql, ROW_LIMIT)
        except duckdb.Error as error:
            if query.may_fail:
                return Case(number, query.sql, query.order, error=str(error))
            continue
        if answer and (answer.rows or attempt >= EMPTY_ATTEMPTS):
            return Case(number, query.sql, query.order, answer)
    raise Failed(f"no query that DuckDB can run in {ATTEMPTS} attempts")


def complaint_about(tables, case, operator):
    """Runs the query. What is wrong, as a pair of a short form to group by and the details; None if all is well."""
    options = [] if operator else ["--fallback", "forbid"]
    if case.number % 2:
        options += ["--threads", str(THREADS)]
    run = ask_stachio(tables, case.sql, *options)
    if case.error:
        if run.status == 1 and run.error and not run.out:
            return None
        return f"exit status {run.status} where DuckDB refuses the query", f"{run}\nDuckDB: {case.error}"
    if run.status:
        first_line = run.error.strip().partition("\n")[0]
        return f"exit status {run.status}: " + re.sub(r"\d+", "N", first_line), str(run)
    if run.error and not operator:
        return "stderr is not empty", str(run)
    found = difference(case.answer, run.answer(), case.order)
    return found and ("different answer: " + re.sub(r"\d+", "N", found.partition("\n")[0]), found)


def run_queries(tables, known, numbers):
    """known: the same tables as DuckDB finds them. Returns the complaints, as tuples of group, case's number, SQL and details, and the operators not promised."""
    per_thread = threading.local()
    complaints, unpromised = [], collections.Counter()

    def run_one(number):
        if not hasattr(per_thread, "duck"):
            per_thread.duck = DuckDB(known)
        sql = ""
        try:
            case = find_case(per_thread.duck, number)
            sql = case.sql
            operator = None if case.error else unpromised_operator(per_thread.duck.plan(sql))
            if operator and RANK_FILES:
                return  # nobody but stachio can answer
            if operator:
                unpromised[operator] += 1
            complaint = complaint_about(tables, case, operator)
        except Failed as failure:
            complaint = str(failure).partition("\n")[0], str(failure)
        except Exception:
            complaint = "the test itself failed", traceback.format_exc()
        if complaint:
            complaints.append((complaint[0], number, sql, complaint[1]))

    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        list(pool.map(run_one, numbers))
    return complaints, unpromised


def report(complaints, directory):
    groups = collections.defaultdict(list)
    for group, *details in sorted(complaints):
        groups[group].append(details)
    for group, members in sorted(groups.items(), key=lambda item: -len(item[1])):
        print(f"\n{len(members)} × {group}\n  queries {', '.join(str(number) for number, _, _ in members)}")
        for number, sql, details in members[:EXAMPLES_SHOWN]:
            indented = details.strip().replace("\n", "\n    ")
            print(f"  seed {SEED}, query {number}, tables {directory}\n    {sql}\n    {indented}")


def main():
    directory = tempfile.mkdtemp(prefix="stachio-random-")
    tables = known = Tables(directory)
    if RANK_FILES:
        write_rank_files(directory, SEED, RANK_FILES)
        tables = Tables(f"{directory}/rank-{{rank}}")
        known = Tables(None, {table.name: f"{directory}/rank-*/{table.name}.parquet" for table in TABLES})
    else:
        write_tables(directory, SEED)
    numbers = [int(NUMBER)] if NUMBER else range(COUNT)
    complaints, unpromised = run_queries(tables, known, numbers)
    try:
        servers.end()
    except Failed as failure:
        complaints.append(("a server's end", 0, "", str(failure)))
    report(complaints, directory)
    for operator, times in unpromised.items():
        print(f"{times} queries were free to fall back: {operator}")
    print(f"seed {SEED}: {len(numbers) - len(complaints)} passed, {len(complaints)} failed")
    if complaints:
        print(f"the tables are kept in {directory}")
        sys.exit(1)
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
