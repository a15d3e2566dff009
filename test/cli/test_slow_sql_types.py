"""Every type in every place where a value can stand gives DuckDB's answer, and runs in the engine.

SQL_TYPES_ONLY: a part of a case's name, to run only those.
"""

import os
import pathlib
import re
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lib"))

import duckdb

from check import Checks, require, scratch_directory
from oracle import DuckDB, Tables, ask_stachio, difference
from sql_tables import COMPUTED, TYPES, literals, write_type_tables

ONLY = os.environ.get("SQL_TYPES_ONLY", "")
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")


def with_sources(column, body):
    """Reads a computed column's table through a subquery that computes it."""
    if column not in COMPUTED:
        return body
    return re.sub(r"(FROM|JOIN) ([vw])\b(?: AS (\w+))?",
                  lambda found: f"{found[1]} (SELECT *, {COMPUTED[column][1]} AS {column} FROM {found[2]}) AS {found[3] or found[2]}",
                  body)


def queries_of(c):
    """(name, SQL, order) for the column."""
    values = literals(c)
    a, b = values[len(values) // 2], values[-1]
    for n, literal in enumerate(values):
        yield f"filter {n}", " UNION ALL ".join(
            f"SELECT '{op}', count(*), sum(id), min(id), max(id) FROM v WHERE {c} {op} {literal}" for op in COMPARISONS), ()
    yield "compare", "SELECT id, " + ", ".join(f"{c} {op} {a}" for op in COMPARISONS) + " FROM v ", ()
    yield "compare columns", (f"SELECT count(*), " + ", ".join(f"sum(CAST(x.{c} {op} y.{c} AS INTEGER))" for op in COMPARISONS)
                              + f" FROM v AS x JOIN w AS y ON x.id % 46 = y.id"), ()
    yield "null tests", f"SELECT id, {c} IS NULL, {c} IS NOT NULL FROM v ", ()
    yield "filter null", f"SELECT id FROM v WHERE {c} IS NULL", ()
    yield "filter not null", f"SELECT id, {c} FROM v WHERE {c} IS NOT NULL", ()
    yield "in", f"SELECT id, {c} IN ({a}, {b}), {c} NOT IN ({a}, {b}), {c} IN ({b}, NULL) FROM v ", ()
    yield "filter in", f"SELECT id FROM v WHERE {c} IN ({', '.join(values)})", ()
    yield "filter not in", f"SELECT id FROM v WHERE {c} NOT IN ({a}, {b})", ()
    yield "filter in null", f"SELECT id FROM v WHERE {c} NOT IN ({a}, NULL)", ()
    yield "between", f"SELECT id, {c} BETWEEN {a} AND {b}, {c} NOT BETWEEN {a} AND {b} FROM v ", ()
    yield "filter between", f"SELECT id FROM v WHERE {c} BETWEEN {a} AND {b}", ()
    yield "case", f"SELECT id, CASE WHEN {c} > {a} THEN {c} WHEN {c} = {a} THEN NULL ELSE {b} END FROM v ", ()
    yield "case of", f"SELECT id, CASE {c} WHEN {a} THEN 'one' WHEN {b} THEN 'two' END FROM v ", ()
    yield "coalesce", f"SELECT id, coalesce({c}, {a}), nullif({c}, {a}), ifnull({c}, {b}) FROM v ", ()
    yield "group", f"SELECT {c}, count(*), count({c}), min(id), max(id), sum(id) FROM v GROUP BY {c}", ()
    yield "group two", f"SELECT {c}, id % 3, count(*), count({c}) FROM v GROUP BY {c}, id % 3", ()
    yield "distinct", f"SELECT DISTINCT {c} FROM v ", ()
    yield "first", f"SELECT id, first({c}), any_value({c}) FROM v GROUP BY id", ()
    calls = [f"min({c}), max({c}), count({c}), count(DISTINCT {c}), min(DISTINCT {c})"]
    if c not in ("bo", "da", "ts", "s"):
        calls += [f"sum({c})", f"avg({c})", f"sum(DISTINCT {c})", f"avg(DISTINCT {c})"]
    for call in calls:
        filtered = call.replace(")", ") FILTER (id % 5 = 2)")
        yield f"aggregate {call}", f"SELECT {call} FROM v ", ()
        yield f"aggregate {call} few", f"SELECT {call} FROM v WHERE id IN (3, 4, 5, 14)", ()
        yield f"aggregate {call} none", f"SELECT {call} FROM v WHERE id < 0", ()
        yield f"aggregate {call} filter", f"SELECT {filtered} FROM v WHERE id < 40", ()
        yield f"aggregate {call} grouped", f"SELECT id % 97, {call} FROM v GROUP BY id % 97", ()
    for kind in ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"):
        yield f"{kind}", f"SELECT x.id, y.id, x.{c}, y.{c} FROM w AS x {kind} w AS y ON x.{c} = y.{c}", ()
        yield f"{kind} not distinct", (f"SELECT count(*), sum(x.id), sum(y.id), count(x.{c}), count(y.{c}) FROM v AS x "
                                       f"{kind} w AS y ON x.{c} IS NOT DISTINCT FROM y.{c}"), ()
    for test in (f"{c} IN (SELECT {c} FROM w WHERE id < 9)", f"{c} NOT IN (SELECT {c} FROM w WHERE id < 9)",
                 f"{c} NOT IN (SELECT {c} FROM w WHERE id < 9 AND {c} IS NOT NULL)",
                 f"EXISTS (SELECT 1 FROM w AS y WHERE y.{c} = v.{c} AND y.id < 9)",
                 f"NOT EXISTS (SELECT 1 FROM w AS y WHERE y.{c} = v.{c} AND y.id < 9)",
                 f"{c} >= ALL (SELECT {c} FROM w WHERE id BETWEEN 2 AND 4)", f"{c} < ANY (SELECT {c} FROM w WHERE id < 5)"):
        yield f"filter {test}", f"SELECT id, {c} FROM v WHERE {test}", ()
        yield f"value {test}", f"SELECT id, {test} FROM v ", ()
    for direction in ("ASC NULLS FIRST", "ASC NULLS LAST", "DESC NULLS FIRST", "DESC NULLS LAST"):
        yield f"order {direction}", f"SELECT {c}, id FROM v ORDER BY {c} {direction}, id", "all"
        yield f"order ties {direction}", f"SELECT id % 4, {c} FROM v ORDER BY id % 4, {c} {direction}", "all"
        yield f"top {direction}", f"SELECT {c}, id FROM v ORDER BY {c} {direction}, id DESC LIMIT 7 OFFSET 3", "all"
    yield "union", f"SELECT {c} FROM v UNION SELECT {c} FROM w ", ()
    yield "except", f"SELECT {c} FROM v EXCEPT ALL SELECT {c} FROM w ", ()
    yield "intersect", f"SELECT {c} FROM v INTERSECT ALL SELECT {c} FROM w ", ()
    yield "text", f"SELECT id, CAST({c} AS VARCHAR), concat({c}, '|'), {c} FROM v ", ()


def casts_of(c, duck):
    """A conversion to each other type that DuckDB has one for: all at once where they may fail, one by one where not."""
    known = [kind for d, kind in TYPES.items() if d != c and converts(duck, TYPES[c], kind)]
    yield "try_cast", "SELECT id, " + ", ".join(f"TRY_CAST({c} AS {kind})" for kind in known) + " FROM v ", ()
    for kind in known:
        yield f"cast {kind}", f"SELECT id, CAST({c} AS {kind}) FROM w ", ()
        yield f"cast {kind} in a branch", (f"SELECT id, CASE WHEN TRY_CAST({c} AS {kind}) IS NOT NULL "
                                           f"THEN CAST({c} AS {kind}) END FROM w "), ()


def converts(duck, source, target):
    try:
        duck.answer(f"SELECT CAST(CAST(NULL AS {source}) AS {target})")
        duck.answer(f"SELECT CAST(x AS {target}) FROM (SELECT CAST(0 AS {source}) AS x WHERE random() < 2)")
    except duckdb.Error as error:
        return "Unimplemented" not in str(error)
    return True


def expect(tables, duck, sql, order, threads):
    """DuckDB's answer, or its refusal."""
    run = ask_stachio(tables, sql, "--threads", threads, "--fallback", "forbid")
    try:
        wanted = duck.answer(sql)
    except duckdb.Error as error:
        require(run.status == 1 and run.error and not run.out, f"{sql}\n{run}\nDuckDB: {error}")
        require("may not" not in run.error, f"{sql}\n{run}\nDuckDB: {error}")
        return
    require(run.status == 0, f"{sql}\n{run}")
    found = difference(wanted, run.answer(), order)
    require(found is None, f"{sql}\n{run}\n{found}")


def reads_large(sql):
    return re.search(r"\bFROM v\b", sql)


def main():
    checks = Checks()
    with scratch_directory() as directory:
        sets = {name: Tables(path) for name, path in write_type_tables(directory).items()}
        local = threading.local()

        def job(name, sql, order):
            def check():
                if not hasattr(local, "ducks"):
                    local.ducks = {size: DuckDB(tables) for size, tables in sets.items()}
                for size, threads in (("tiny", 1), ("large", 3)):
                    if size == "large" and not reads_large(sql):
                        continue
                    expect(sets[size], local.ducks[size], sql, order, threads)
            return name, check

        jobs, converter = [], DuckDB(sets["tiny"])
        for c in TYPES:
            for name, sql, order in queries_of(c):
                jobs.append(job(f"{c} {name}", with_sources(c, sql), order))
            for name, sql, order in casts_of(c, converter):
                jobs.append(job(f"{c} {name}", with_sources(c, sql), order))
        checks.run_all([each for each in jobs if ONLY in each[0]])
    checks.finish()


if __name__ == "__main__":
    main()
