"""Random queries, by class. Each has one answer by value: no row or value depends on the order of execution."""

from dataclasses import dataclass

from chains import Chains
from expressions import KINDS, Expressions, Ref
from tables import ALL_COLUMNS, COLUMNS, DEPENDENTS, ID, KEY, TABLES

JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")
LEFT_SIDE_ONLY = ("SEMI JOIN", "ANTI JOIN")
JOIN_KEYS = [KEY, *(column for column in COLUMNS if column.name not in ("c_bool", "c_wild", "c_text"))]
WEIGHTS = {"expr": 5, "joins": 7, "subquery": 5, "errors": 1}  # others have 3
NULLS = ("", " NULLS FIRST", " NULLS LAST")
SUMMABLE = ("int", "exact", "dec")
WRONG = (
    "SELECT id, {a} * CAST(9223372036854775807 AS BIGINT) AS e FROM big",
    "SELECT sum(abs({a}) * CAST(9223372036854775807 AS BIGINT)) AS e FROM big",
    "SELECT CAST({a} + 70000 AS SMALLINT) AS e FROM big",
    "SELECT CAST(c_text AS {t}) AS e FROM big",
    "SELECT id, (SELECT b.{a} FROM dense b WHERE b.c_u8 = big.c_u8) AS e FROM big",
    "SELECT c_i8 * c_i8 * c_i8 AS e FROM big",
    "SELECT CAST(c_dec18 * 1000000 AS DECIMAL(9, 2)) AS e FROM big",
    "SELECT sum(abs(c_dec38) * 1000000000) AS e FROM big",
    "SELECT count(*) AS n FROM big WHERE c_u8 - 200 > {a}",
)


@dataclass
class Query:
    sql: str
    order: object = ()  # what oracle.difference() takes
    may_fail: bool = False  # where DuckDB refuses it, so must stachio


@dataclass
class Relation:
    """What may stand in FROM, and what it offers; prefix is its alias with a dot."""

    sql: str
    prefix: str
    columns: list

    def refs(self):
        return [Ref(self.prefix + column.name, column.kind) for column in self.columns]


@dataclass
class Output:
    name: str
    kind: str


class Queries:
    def __init__(self, rng):
        self.rng = rng
        self.classes = {
            "expr": self.projection, "filter": self.filtered, "joins": self.joined, "subquery": self.with_subquery,
            "agg": self.aggregated, "sort": self.sorted, "set": self.set_operation, "cte": self.with_cte,
            "errors": self.wrong, "chain": lambda: Query(Chains(rng).make()),
        }

    def make(self, only=None):
        names = list(self.classes)
        return self.classes[only or self.rng.choices(names, [WEIGHTS.get(name, 3) for name in names])[0]]()

    # ---- parts --------------------------------------------------------------------------------------------------

    def chance(self, probability):
        return self.rng.random() < probability

    def table(self, alias, largest="big"):
        """A base table, not larger than the one named; the tables with one row and none come less often."""
        names = [table.name for table in TABLES]
        weights = [0 if largest == "mid" and name == "big" else 1 if name in ("one", "none") else 4 for name in names]
        name = self.rng.choices(names, weights)[0]
        return Relation(f"{name} {alias}", f"{alias}.", ALL_COLUMNS)

    def relation(self, alias, largest="big"):
        """A base table, or something computed from one."""
        if self.chance(0.7):
            return self.table(alias, largest)
        inner = self.table("i", largest)
        made = self.rng.choice((self.filtered_columns, self.grouped_columns, self.distinct_columns))
        sql, columns = made(inner)
        return Relation(f"({sql}) {alias}", f"{alias}.", columns)

    def filtered_columns(self, inner):
        expressions = Expressions(self.rng, inner.refs())
        kinds = [self.rng.choice(KINDS) for _ in range(3)]
        computed = [f"{expressions.make(kind, 1)} AS x{i}" for i, kind in enumerate(kinds)]
        columns = [ID, KEY, *self.rng.sample(COLUMNS, 6)]
        names = [inner.prefix + column.name for column in columns]
        sql = f"SELECT {', '.join(names + computed)} FROM {inner.sql} WHERE {expressions.condition(1)}"
        return sql, columns + [Output(f"x{i}", kind) for i, kind in enumerate(kinds)]

    def grouped_columns(self, inner):
        keys = [KEY, *self.rng.sample(COLUMNS, self.rng.randint(0, 1))]
        names = [inner.prefix + key.name for key in keys]
        value = self.rng.choice([column for column in COLUMNS if column.kind in SUMMABLE])
        aggregates = (f"count(*) AS n, sum({inner.prefix}{value.name}) AS total, min({inner.prefix}c_str) AS least, "
                      f"any_value({inner.prefix}k_name) AS k_name")
        sql = f"SELECT {', '.join(names)}, {aggregates} FROM {inner.sql} GROUP BY {', '.join(names)}"
        outputs = {"n": "int", "total": value.kind, "least": "str", "k_name": "str"}
        return sql, keys + [Output(name, kind) for name, kind in outputs.items()]

    def distinct_columns(self, inner):
        columns = [KEY, *self.rng.sample(COLUMNS, self.rng.randint(0, 2))]
        names = [inner.prefix + column.name for column in columns]
        return f"SELECT DISTINCT {', '.join(names)} FROM {inner.sql}", columns

    def where(self, expressions, probability=0.5):
        if not self.chance(probability):
            return ""
        if self.chance(0.05):
            return " WHERE " + self.rng.choice(("false", "1 = 0", "NULL"))
        conditions = [expressions.simple_condition() if self.chance(0.6) else expressions.condition(2)
                      for _ in range(self.rng.randint(1, 3))]
        return " WHERE " + self.rng.choice((" AND ", " AND ", " OR ")).join(conditions)

    def outputs(self, refs, count, depth=2):
        """Computed columns e0, e1, …"""
        expressions = Expressions(self.rng, refs)
        kinds = [expressions.any_kind() for _ in range(count)]
        return [f"{expressions.make(kind, depth)} AS e{i}" for i, kind in enumerate(kinds)]

    def some_refs(self, refs, count):
        return [ref.sql for ref in self.rng.sample(refs, min(count, len(refs)))]

    def named(self, sqls):
        return [f"{sql} AS c{i}" for i, sql in enumerate(sqls)]

    # ---- expr, filter -------------------------------------------------------------------------------------------

    def projection(self):
        if self.chance(0.1):
            computed = f"SELECT {', '.join(self.outputs([], 3, 3))}"
            return Query(self.rng.choice((computed, "SELECT c0, -c0 AS e FROM (VALUES (1), (2), (NULL)) v(c0)")))
        source = self.relation("a")
        outputs = self.outputs(source.refs(), self.rng.randint(2, 6), 3)
        where = self.where(Expressions(self.rng, source.refs()), 0.3)
        return Query(f"SELECT {', '.join(outputs)} FROM {source.sql}{where}")

    def filtered(self):
        source = self.relation("a")
        names = self.named(self.some_refs(source.refs(), 5))
        where = self.where(Expressions(self.rng, source.refs()), 1.0)
        return Query(f"SELECT {', '.join(names)} FROM {source.sql}{where}")

    # ---- joins --------------------------------------------------------------------------------------------------

    def join_condition(self, left, right):
        """One equality at least; then more of them, and residual conditions."""
        shared = [column.name for column in JOIN_KEYS if column in left.columns and column in right.columns]
        conditions = []
        for name in self.rng.sample(shared, min(len(shared), self.rng.choice((1, 1, 1, 2, 3)))):
            operator = "=" if self.chance(0.8) else "IS NOT DISTINCT FROM"
            conditions.append(f"{left.prefix}{name} {operator} {right.prefix}{name}")
        if self.chance(0.2):
            conditions[0] = f"CAST({left.prefix}k AS BIGINT) + 1 = {right.prefix}k"
        if self.chance(0.4):
            conditions.append(self.residual(left, right))
        return " AND ".join(conditions)

    def residual(self, left, right):
        both = Expressions(self.rng, left.refs() + right.refs())
        name = self.rng.choice([column.name for column in left.columns if column in right.columns])
        comparison = f"{left.prefix}{name} {self.rng.choice(('<>', '<', '>', '>='))} {right.prefix}{name}"
        return self.rng.choice((comparison, comparison, both.comparison(1), both.simple_condition()))

    def join_sides(self):
        """Two relations of which at most one is large, in either order."""
        sides = [self.relation("a", "mid"), self.relation("b")]
        if self.chance(0.5):
            sides.reverse()
        return sides

    def joined_source(self):
        """The FROM clause of a join, and the columns that can be seen above it."""
        if self.chance(0.06):
            left, right = self.table("a", "mid"), Relation("small b", "b.", ALL_COLUMNS)
            return f"{left.sql} CROSS JOIN {right.sql}", left.refs() + right.refs()
        left, right = self.join_sides()
        join = self.rng.choice(JOINS)
        if self.chance(0.1):
            sql, visible = f"{left.sql} {join} {right.sql} USING (k)", [Ref("k", "int")]
        else:
            sql, visible = f"{left.sql} {join} {right.sql} ON {self.join_condition(left, right)}", []
        visible += left.refs() + ([] if join in LEFT_SIDE_ONLY else right.refs())
        if self.chance(0.3):
            third = self.table("c", "mid")
            sql += f" {self.rng.choice(('JOIN', 'LEFT JOIN'))} {third.sql} ON {left.prefix}k = c.id"
            visible += third.refs()
        return sql, visible

    def joined(self):
        source, refs = self.joined_source()
        where = self.where(Expressions(self.rng, refs), 0.3)
        if self.chance(0.35):
            outputs = ["count(*) AS n", *self.aggregates(refs, 3)]
        else:
            outputs = self.named(self.some_refs(refs, 5)) + self.outputs(refs, 1)
        return Query(f"SELECT {', '.join(outputs)} FROM {source}{where}")

    # ---- subquery -----------------------------------------------------------------------------------------------

    def inner_where(self, outer, correlated=True):
        inner = Relation("", "s.", ALL_COLUMNS)
        own = Expressions(self.rng, inner.refs())
        conditions = [self.join_condition(outer, inner)] if correlated else []
        if self.chance(0.5) or not conditions:
            conditions.append(own.simple_condition())
        return " AND ".join(conditions)

    def existence(self, outer):
        inner = self.rng.choice(("mid", "small", "dense", "big", "none"))
        key = self.rng.choice(JOIN_KEYS).name
        return self.rng.choice((
            lambda: f"{self.rng.choice(('', 'NOT '))}EXISTS (SELECT 1 FROM {inner} s WHERE {self.inner_where(outer)})",
            lambda: f"{outer.prefix}{key} {self.rng.choice(('', 'NOT '))}IN (SELECT s.{key} FROM {inner} s WHERE "
                    f"{self.inner_where(outer, self.chance(0.3))})",
        ))()

    def scalar(self, outer):
        """A scalar subquery of one row: an aggregate, or a row found by its unique id."""
        inner = self.rng.choice(("mid", "small", "dense", "none", "one"))
        refs = [Ref(f"s.{column.name}", column.kind) for column in ALL_COLUMNS]
        if self.chance(0.3):
            return f"(SELECT {self.rng.choice(refs).sql} FROM {inner} s WHERE s.id = {outer.prefix}k)"
        aggregate = self.rng.choice(("count(*)", self.aggregate(refs)))
        correlated = self.chance(0.7)
        return f"(SELECT {aggregate} FROM {inner} s WHERE {self.inner_where(outer, correlated)})"

    def with_subquery(self):
        outer = self.table("a", "mid")
        if self.chance(0.5):
            outputs = self.named(self.some_refs(outer.refs(), 4))
            where = " WHERE " + self.existence(outer)
            if self.chance(0.4):
                where += f" {self.rng.choice(('AND', 'AND', 'OR'))} {self.existence(outer)}"
        else:
            outputs = ["a.id", f"{self.rng.choice((self.existence, self.scalar))(outer)} AS e0",
                       *([f"{self.scalar(outer)} AS e1"] if self.chance(0.4) else [])]
            where = self.where(Expressions(self.rng, outer.refs()), 0.3)
        return Query(f"SELECT {', '.join(outputs)} FROM {outer.sql}{where}")

    # ---- agg ----------------------------------------------------------------------------------------------------

    def aggregate(self, refs):
        expressions = Expressions(self.rng, refs)
        function = self.rng.choice(("count", "sum", "avg", "min", "max"))
        kind = self.rng.choice(SUMMABLE if function in ("sum", "avg") else KINDS)
        argument = expressions.make(kind, self.rng.choice((0, 0, 1)))
        distinct = "DISTINCT " if self.chance(0.25) else ""
        condition = f" FILTER (WHERE {expressions.condition(1)})" if self.chance(0.2) else ""
        return f"{function}({distinct}{argument}){condition}"

    def aggregates(self, refs, count):
        return [f"{self.aggregate(refs)} AS a{i}" for i in range(count)]

    def group_keys(self, refs):
        """Columns and expressions; `k` often, since other columns depend on it."""
        expressions = Expressions(self.rng, refs)
        keys = [ref.sql for ref in refs if ref.sql.endswith(".k") and self.chance(0.5)]
        for _ in range(self.rng.choice((0, 0, 1, 1, 1, 2, 3))):
            keys.append(self.rng.choice(refs).sql if self.chance(0.7) else expressions.make(expressions.any_kind(), 1))
        return keys

    def dependents(self, refs, keys):
        """first() and any_value() of what depends on the keys."""
        names = {ref.sql for ref in refs}
        found = [f"a.{column.name}" for column in DEPENDENTS if "a.k" in keys and f"a.{column.name}" in names]
        return [f"{self.rng.choice(('any_value', 'first'))}({name}) AS d{i}" for i, name in enumerate(found)]

    def grouped(self, source, refs):
        """A whole GROUP BY query over a FROM clause."""
        where = self.where(Expressions(self.rng, refs), 0.3)
        keys = self.group_keys(refs)
        outputs = self.named(keys) + self.aggregates(refs, self.rng.randint(1, 4)) + self.dependents(refs, keys)
        sql = f"SELECT {', '.join(outputs)} FROM {source}{where}"
        if keys:
            sql += " GROUP BY " + ", ".join(str(position + 1) for position in range(len(keys)))
            if self.chance(0.3):
                sql += " HAVING " + self.rng.choice(("count(*) > 1", f"min({refs[0].sql}) IS NOT NULL"))
        return sql

    def aggregated(self):
        if self.chance(0.15):
            source = self.relation("a")
            names = self.named(self.some_refs(source.refs(), self.rng.randint(1, 3)))
            return Query(f"SELECT DISTINCT {', '.join(names)} FROM {source.sql}")
        if self.chance(0.2):
            return Query(self.grouped(*self.joined_source()))
        source = self.relation("a")
        return Query(self.grouped(source.sql, source.refs()))

    # ---- sort ---------------------------------------------------------------------------------------------------

    def order_keys(self, count):
        """ORDER BY over all output columns, so that only equal rows tie."""
        positions = self.rng.sample(range(1, count + 1), count)
        return ", ".join(f"{p}{self.rng.choice(('', ' ASC', ' DESC'))}{self.rng.choice(NULLS)}" for p in positions)

    def limit(self):
        limit = f" LIMIT {self.rng.choice((0, 1, 5, 10, 100, 1000))}"
        offset = f" OFFSET {self.rng.choice((1, 7, 50, 5000))}"
        return self.rng.choice(("", limit, limit, limit + offset, offset))

    def sorted(self):
        source = self.relation("a")
        refs = source.refs()
        names = self.named(self.some_refs(refs, self.rng.randint(1, 5)))
        outputs = names + self.outputs(refs, self.rng.randint(0, 1))
        where = self.where(Expressions(self.rng, refs), 0.3)
        keys = self.order_keys(len(outputs))
        if ID in source.columns and self.chance(0.2):
            expressions = Expressions(self.rng, refs)
            keys = f"{expressions.make(expressions.any_kind(), 1)}{self.rng.choice(NULLS)}, a.id"
        return Query(f"SELECT {', '.join(outputs)} FROM {source.sql}{where} ORDER BY {keys}{self.limit()}", "all")

    # ---- set, cte -----------------------------------------------------------------------------------------------

    def same_columns(self, columns):
        """A branch of a set operation that shares many rows with others."""
        source = self.table("a", "mid")
        outputs = [f"a.{column.name} AS u{i}" for i, column in enumerate(columns)]
        where = self.where(Expressions(self.rng, source.refs()), 0.4)
        return f"(SELECT {', '.join(outputs)} FROM {source.sql}{where})"

    def same_kinds(self, columns):
        """A branch whose types may differ from the others'."""
        source = self.relation("a", "mid")
        expressions = Expressions(self.rng, source.refs())
        values = [expressions.make(column.kind, self.rng.randint(0, 1)) for column in columns]
        outputs = ", ".join(f"{value} AS u{i}" for i, value in enumerate(values))
        return f"(SELECT {outputs} FROM {source.sql}{self.where(expressions, 0.4)})"

    def set_operation(self):
        columns = self.rng.sample(JOIN_KEYS, self.rng.randint(1, 3))
        make_branch = self.same_columns if self.chance(0.6) else self.same_kinds
        branches = [make_branch(columns) for _ in range(self.rng.choice((2, 2, 3)))]
        sql = branches[0]
        for branch in branches[1:]:
            sql = f"({sql} {self.rng.choice(('UNION ALL', 'UNION', 'EXCEPT', 'INTERSECT'))} {branch})"
        if self.chance(0.3):
            return Query(f"SELECT * FROM ({sql}) q ORDER BY {self.order_keys(len(columns))}{self.limit()}", "all")
        if self.chance(0.2):
            return Query(f"SELECT u0, count(*) AS n FROM ({sql}) q GROUP BY u0")
        return Query(f"SELECT * FROM ({sql}) q")

    def with_cte(self):
        inner = self.table("i", "mid")
        made = self.rng.choice((self.grouped_columns, self.filtered_columns, self.distinct_columns))
        sql, columns = made(inner)
        a, b = Relation("q a", "a.", columns), Relation("q b", "b.", columns)
        names = ", ".join(self.named(self.some_refs(a.refs(), 3)))
        materialised = self.rng.choice((" MATERIALIZED", " MATERIALIZED", ""))
        body = self.rng.choice((
            lambda: f"SELECT {names} FROM q a JOIN q b ON {self.join_condition(a, b)}",
            lambda: f"SELECT {names} FROM q a UNION ALL SELECT {names} FROM q a WHERE a.k > 5",
            lambda: f"SELECT {names}, (SELECT count(*) FROM q b WHERE b.k = a.k) AS n FROM q a",
            lambda: f"SELECT {names} FROM q a WHERE a.k = (SELECT max(b.k) FROM q b)",
            lambda: f"SELECT {names} FROM q a LEFT JOIN q b ON a.k = b.k WHERE a.k NOT IN (SELECT k + 1 FROM q)",
        ))()
        return Query(f"WITH q AS{materialised} ({sql}) {body}")

    # ---- errors -------------------------------------------------------------------------------------------------

    def wrong(self):
        """Queries that fail on every table order: overflow, impossible casts, several rows where one may be."""
        column = self.rng.choice(("c_i16", "c_i32", "c_i8", "k_square"))
        target = self.rng.choice(("INTEGER", "BIGINT", "DOUBLE", "DATE", "TIMESTAMP", "DECIMAL(9, 2)", "BOOLEAN"))
        return Query(self.rng.choice(WRONG).format(a=column, t=target), may_fail=True)
