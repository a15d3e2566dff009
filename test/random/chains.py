"""Joins in chains over equal keys: sides of skewed sizes, empty ones, aggregates, unions, limits and joins under
joins, every kind of join at every place. What one join has learned limits what the others read."""

KINDS = ("JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")
LEFT_SIDE_ONLY = ("SEMI JOIN", "ANTI JOIN")
TABLES = ("big", "mid", "small", "dense", "one", "none")


class Chains:
    """Every side has the columns k, from a small domain, and v; few have many rows for each k."""

    def __init__(self, rng):
        self.rng = rng

    def condition(self):
        low = self.rng.randint(0, 60)
        return self.rng.choice(("c_bool", "c_i32 > 0", "k IS NOT NULL", "c_u8 < 3", f"k BETWEEN {low} AND {low + 9}",
                                f"k = {low % 7}", "id < 20", "id % 3 = 0", "id < 0", "k IS NULL", "true", "true"))

    def rows(self, tables=TABLES):
        return f"{self.rng.choice(tables)} WHERE {self.condition()}"

    def side(self, depth=1):
        makers = [
            lambda: f"SELECT k, id AS v FROM {self.rows(('small', 'one', 'none'))}",
            lambda: f"SELECT k, id AS v FROM {self.rng.choice(('big', 'dense'))} WHERE id < {self.rng.randint(1, 90)}",
            lambda: f"SELECT id AS k, k AS v FROM {self.rows()}",
            lambda: f"SELECT k, count(*) AS v FROM {self.rows()} GROUP BY k",
            lambda: f"SELECT k, max(id) AS v FROM {self.rows()} GROUP BY k HAVING count(*) > 3",
            lambda: f"SELECT k, count(DISTINCT c_u8) AS v FROM {self.rows()} GROUP BY k, c_bool",
            lambda: f"SELECT DISTINCT k, k % 5 AS v FROM {self.rows()}",
            lambda: f"SELECT k, id AS v FROM {self.rng.choice(TABLES)} ORDER BY id LIMIT {self.rng.randint(0, 40)}",
            lambda: "SELECT * FROM (VALUES (1, 10), (2, NULL), (NULL, 30), (3, 40)) w(k, v)",
        ]
        if depth:
            makers += [
                lambda: f"({self.side(0)}) UNION ALL ({self.side(0)})",
                lambda: f"({self.side(0)}) {self.rng.choice(('UNION', 'EXCEPT', 'INTERSECT', 'EXCEPT ALL'))} ({self.side(0)})",
                lambda: f"SELECT x.k, sum(x.v) AS v FROM {self.chain('xyz', 2, 0)} GROUP BY x.k",
                lambda: f"SELECT x.k, count(*) AS v FROM {self.chain('xyz', 3, 0)} GROUP BY x.k",
            ]
        return self.rng.choice(makers)()

    def chain(self, aliases, n, depth, visible=None, named=()):
        """FROM clause; adds the aliases that can be seen above it to `visible`."""
        def relation(alias):
            if named and self.rng.random() < 0.3:
                return f"{self.rng.choice(named)} {alias}"
            return f"({self.side(depth)}) {alias}"

        seen, sql = [aliases[0]], relation(aliases[0])
        for alias in aliases[1:n]:
            kind, left = self.rng.choice(KINDS), self.rng.choice(seen)
            operator = "=" if self.rng.random() < 0.9 else "IS NOT DISTINCT FROM"
            condition = f"{left}.k {operator} {alias}.k"
            if self.rng.random() < 0.2:
                condition += f" AND {self.rng.choice(seen)}.v {self.rng.choice(('<>', '<', '>='))} {alias}.v"
            if self.rng.random() < 0.1:
                condition = f"{left}.k = {alias}.k AND {left}.v = {alias}.v"
            sql += f" {kind} {relation(alias)} ON {condition}"
            if kind not in LEFT_SIDE_ONLY:
                seen.append(alias)
        if visible is not None:
            visible += seen
        return sql

    def filters(self, visible):
        alias = self.rng.choice(visible)
        return self.rng.choice((
            "", "", "", f" WHERE {alias}.k < 20", f" WHERE {alias}.v IS NOT NULL",
            f" WHERE {alias}.k IN (SELECT k FROM {self.rows()})",
            f" WHERE {alias}.k NOT IN (SELECT k FROM {self.rows()})",
            f" WHERE EXISTS (SELECT 1 FROM {self.rows()} AND k = {alias}.k)",
            f" WHERE {alias}.v > (SELECT avg(v) FROM ({self.side(0)}) u WHERE u.k = {alias}.k)",
        ))

    def make(self):
        """The SQL of a query; its answer has few rows."""
        named, visible, prefix = (), [], ""
        if self.rng.random() < 0.3:
            named, prefix = ("q",), f"WITH q AS MATERIALIZED ({self.side()}) "
        source = self.chain("abcdef", self.rng.randint(2, 6), 1, visible, named)
        values = [f"{self.rng.choice(('sum', 'count', 'min', 'max'))}({alias}.{self.rng.choice('kv')})"
                  for alias in visible]
        outputs = ["count(*) AS n", *(f"{value} AS e{i}" for i, value in enumerate(values))]
        where = self.filters(visible)
        if self.rng.random() < 0.5:
            return f"{prefix}SELECT {', '.join(outputs)} FROM {source}{where}"
        key = f"{self.rng.choice(visible)}.k"
        return f"{prefix}SELECT {key}, {', '.join(outputs)} FROM {source}{where} GROUP BY {key}"
