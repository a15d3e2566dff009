"""Random scalar expressions over the columns in scope, by kind of value. Their values depend on nothing but the row.

Kinds are those of tables.Column. An expression of kind exact is a float whose sums do not depend on their order.
"""

from dataclasses import dataclass

KINDS = ("bool", "int", "float", "exact", "dec", "date", "ts", "str")
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
SIGNED_TYPES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
UNSIGNED_TYPES = ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")  # UHUGEINT meets signed types as DOUBLE
PATTERNS = ("key%", "%1%", "%2", "_ey 1_", "%", "", "a%", "%ö%", "key 1%f", "%e%1%", "k_y%a")
ESCAPED_PATTERNS = ("a!_b!%%", "%!%", "100!%", "%!_%")
ROUNDINGS = ("floor({})", "ceil({})", "abs({})", "round({})", "round({}, 1)", "round({}, 2)")
PIECES = ("key", "key 1", "1", "", "a", "c", "%", "ö", "bytes")


@dataclass
class Ref:
    """A column in scope, as an expression."""

    sql: str
    kind: str


class Expressions:
    def __init__(self, rng, columns):
        self.rng = rng
        self.columns = columns
        self.by_kind = {
            "bool": [self.comparison, self.comparison, self.between, self.is_in, self.is_null, self.logic, self.logic,
                     self.like, self.like, self.text_test, self.distinct_from],
            "int": [self.arithmetic, self.division, self.negation, self.integer_cast, self.integer_of_other,
                    self.integer_of_other],
            "float": [self.float_arithmetic, self.quotient, self.float_rounding, self.float_cast],
            "exact": [self.exact_arithmetic, self.exact_cast],
            "dec": [self.decimal_arithmetic, self.decimal_product, self.decimal_rounding, self.decimal_cast],
            "date": [self.date_arithmetic, self.date_cast],
            "ts": [self.timestamp_arithmetic, self.timestamp_cast],
            "str": [self.concatenation, self.letter_case, self.substring, self.text_cast],
        }

    def any_kind(self):
        return self.rng.choice(KINDS)

    def make(self, kind, depth=2):
        if depth <= 0 or self.rng.random() < 0.15:
            return self.leaf(kind)
        if self.rng.random() < 0.2:
            return self.choice_between(kind, depth - 1)
        return self.rng.choice(self.by_kind[kind])(depth - 1)

    def condition(self, depth=2):
        return self.make("bool", depth)

    def simple_condition(self):
        """A column against constants: what is pushed into scans."""
        kind = self.any_kind()
        ref, rng = self.column(kind), self.rng
        if ref is None:
            return self.leaf("bool")
        forms = [
            lambda: f"{ref} {rng.choice(COMPARISONS)} {self.literal(kind)}",
            lambda: f"{ref} BETWEEN {self.literal(kind)} AND {self.literal(kind)}",
            lambda: f"{ref} {self.maybe_not()}IN ({self.literal(kind)}, {self.literal(kind)}, {self.literal(kind)})",
            lambda: f"{ref} IS {self.maybe_not()}NULL",
        ]
        return rng.choice(forms)()

    # ---- leaves -------------------------------------------------------------------------------------------------

    def column(self, kind):
        kinds = ("float", "exact") if kind == "float" else (kind,)
        refs = [ref.sql for ref in self.columns if ref.kind in kinds]
        return self.rng.choice(refs) if refs else None

    def leaf(self, kind):
        column = self.column(kind)
        return column if column and self.rng.random() < 0.8 else self.literal(kind)

    def literal(self, kind):
        rng = self.rng
        if kind == "bool":
            return rng.choice(("true", "false"))
        if kind == "int":
            return str(rng.choice((0, 1, 2, 3, 5, 7, 10, 20, 40, 3 * 10**9, rng.randint(0, 100))))
        if kind in ("float", "exact"):
            return f"CAST({rng.randint(-80, 80) / 4} AS {rng.choice(('DOUBLE', 'DOUBLE', 'FLOAT'))})"
        if kind == "dec":
            return rng.choice((f"{rng.randint(0, 60)}.{rng.randint(0, 99):02}", f"{rng.randint(0, 40)}.5", "0.001"))
        if kind == "date":
            return f"DATE '{self.day()}'"
        if kind == "ts":
            return f"TIMESTAMP '{self.day()} {rng.randint(0, 23):02}:00:00'"
        return "'{}'".format(rng.choice(("key 1", "key 7", "key 23", "", "a", "m", "Ünïcödé ✓", "name 5")))

    def day(self):
        return f"20{self.rng.choice((19, 20, 20))}-{self.rng.randint(1, 12):02}-{self.rng.randint(1, 28):02}"

    def maybe_not(self):
        return self.rng.choice(("", "", "NOT "))

    # ---- forms of every kind ------------------------------------------------------------------------------------

    def choice_between(self, kind, depth):
        rng, make = self.rng, lambda: self.make(kind, depth)
        forms = [
            lambda: f"CASE WHEN {self.condition(depth)} THEN {make()} ELSE {make()} END",
            lambda: f"CASE WHEN {self.condition(depth)} THEN {make()} WHEN {self.condition(depth)} THEN {make()} END",
            lambda: f"CASE {self.leaf('int')} WHEN {self.literal('int')} THEN {make()} ELSE {make()} END",
            lambda: f"coalesce({make()}, {make()})",
            lambda: f"nullif({make()}, {self.leaf(kind)})",
        ]
        return rng.choice(forms)()

    # ---- bool ---------------------------------------------------------------------------------------------------

    def pair(self, depth):
        """Two expressions that may be compared, now and then of different numeric kinds."""
        if self.rng.random() < 0.15:
            kinds = [self.rng.choice(("int", "dec", "exact")) for _ in range(2)]
        else:
            kinds = [self.any_kind()] * 2
        return [self.make(kind, depth) for kind in kinds]

    def comparison(self, depth):
        left, right = self.pair(depth)
        return f"({left} {self.rng.choice(COMPARISONS)} {right})"

    def distinct_from(self, depth):
        left, right = self.pair(depth)
        return f"({left} IS {self.maybe_not()}DISTINCT FROM {right})"

    def between(self, depth):
        kind = self.any_kind()
        value, low, high = (self.make(kind, depth - part) for part in (0, 1, 1))
        return f"({value} {self.maybe_not()}BETWEEN {low} AND {high})"

    def is_in(self, depth):
        kind = self.any_kind()
        values = [self.literal(kind) for _ in range(self.rng.randint(1, 5))] + self.rng.choice(([], [], ["NULL"]))
        return f"({self.make(kind, depth)} {self.maybe_not()}IN ({', '.join(values)}))"

    def is_null(self, depth):
        return f"({self.make(self.any_kind(), depth)} IS {self.maybe_not()}NULL)"

    def logic(self, depth):
        left, right = self.condition(depth), self.condition(depth)
        return self.rng.choice((f"({left} AND {right})", f"({left} OR {right})", f"(NOT {left})"))

    def like(self, depth):
        text = self.make("str", depth)
        if self.rng.random() < 0.3:
            return f"({text} {self.maybe_not()}LIKE '{self.rng.choice(ESCAPED_PATTERNS)}' ESCAPE '!')"
        return f"({text} {self.maybe_not()}LIKE '{self.rng.choice(PATTERNS)}')"

    def text_test(self, depth):
        function = self.rng.choice(("prefix", "suffix", "contains", "starts_with", "ends_with"))
        return f"{function}({self.make('str', depth)}, '{self.rng.choice(PIECES)}')"

    # ---- int ----------------------------------------------------------------------------------------------------

    def wide(self, depth):
        """An integer that arithmetic will hardly overflow; now and then one of its own type."""
        value = self.make("int", depth)
        wider = self.rng.choice(("BIGINT", "BIGINT", "BIGINT", "HUGEINT", None))
        return f"CAST({value} AS {wider})" if wider else value

    def arithmetic(self, depth):
        return f"({self.wide(depth)} {self.rng.choice('+-*')} {self.wide(depth)})"

    def division(self, depth):
        return f"({self.wide(depth)} {self.rng.choice(('//', '%'))} {self.wide(depth)})"

    def negation(self, depth):
        value = f"CAST({self.make('int', depth)} AS {self.rng.choice(('BIGINT', 'HUGEINT'))})"
        return self.rng.choice((f"(-{value})", f"abs({value})"))

    def integer_cast(self, depth):
        value = self.make("int", depth)
        return self.rng.choice((
            f"CAST({value} % 100 AS {self.rng.choice(SIGNED_TYPES)})",
            f"CAST(abs(CAST({value} AS HUGEINT)) % 100 AS {self.rng.choice(UNSIGNED_TYPES)})",
            f"CAST(CAST(abs(CAST({value} AS HUGEINT)) AS UHUGEINT) AS HUGEINT)",
            f"CAST(CAST({value} AS VARCHAR) AS BIGINT)",
        ))

    def integer_of_other(self, depth):
        day = self.make(self.rng.choice(("date", "ts")), depth)
        part = self.rng.choice(("year", "month", "day"))
        return self.rng.choice((
            f"length({self.make('str', depth)})", f"{part}({day})", f"extract({part} FROM {day})",
            f"({self.make('date', depth)} - {self.make('date', depth)})", f"CAST({self.leaf('dec')} AS HUGEINT)",
            f"CAST({self.make('bool', depth)} AS INTEGER)", f"CAST({self.make('exact', depth)} AS BIGINT)",
        ))

    # ---- float, exact -------------------------------------------------------------------------------------------

    def float_arithmetic(self, depth):
        return f"({self.make('float', depth)} {self.rng.choice('+-*')} {self.make('float', depth)})"

    def quotient(self, depth):
        kind = self.rng.choice(("int", "float", "dec"))
        return f"({self.make(kind, depth)} / {self.leaf(kind)})"

    def float_rounding(self, depth):
        value = self.make("float", depth)
        return self.rng.choice(ROUNDINGS).format(value)

    def float_cast(self, depth):
        value = self.make(self.rng.choice(("int", "dec", "exact")), depth)
        return f"CAST({value} AS {self.rng.choice(('DOUBLE', 'FLOAT'))})"

    def exact_arithmetic(self, depth):
        return f"({self.make('exact', depth)} {self.rng.choice('+-')} {self.leaf('exact')})"

    def exact_cast(self, _depth):
        small, value = f"CAST({self.leaf('int')} AS BIGINT) % 1000", self.leaf("exact")
        return self.rng.choice((f"CAST({small} AS DOUBLE)", f"floor({value})", f"ceil({value})"))

    # ---- dec ----------------------------------------------------------------------------------------------------

    def decimal_arithmetic(self, depth):
        """No modulo of what no decimal holds together: DuckDB computes it in doubles, and stachio leaves it to DuckDB."""
        operator = self.rng.choice(("+", "-", "-", "%"))
        left = f"CAST({self.make('int', depth)} % 1000 AS DECIMAL(9, 2))" if operator == "%" else self.make("dec", depth)
        return f"({left} {operator} {self.leaf('dec')})"

    def decimal_product(self, depth):
        left, right = (f"CAST({self.make('int', depth - part)} % 1000 AS DECIMAL(9, 2))" for part in (0, 1))
        return f"({self.rng.choice((left, self.leaf('dec')))} * {self.rng.choice((right, f'(1 - {right})'))})"

    def decimal_rounding(self, depth):
        value = self.make("dec", depth)
        return self.rng.choice(ROUNDINGS).format(value)

    def decimal_cast(self, depth):
        value = self.rng.choice((self.make("dec", depth), f"{self.make('int', depth)} % 1000", self.leaf("exact")))
        return f"CAST({value} AS DECIMAL({self.rng.choice(('18, 1', '18, 4', '38, 2', '38, 9', '9, 0'))}))"

    # ---- date, ts -----------------------------------------------------------------------------------------------

    def interval(self):
        unit = self.rng.choice(("DAY", "MONTH", "YEAR", "HOUR", "MINUTE", "SECOND", "WEEK"))
        return f"INTERVAL {self.rng.randint(0, 40)} {unit}"

    def date_arithmetic(self, depth):
        days = self.rng.choice((str(self.rng.randint(0, 400)), f"CAST({self.leaf('int')} % 100 AS INTEGER)"))
        return f"({self.make('date', depth)} {self.rng.choice('+-')} {days})"

    def date_cast(self, depth):
        text = f"CAST({self.make('date', depth)} AS VARCHAR)"
        return self.rng.choice((f"CAST({self.make('ts', depth)} AS DATE)", f"CAST({text} AS DATE)"))

    def timestamp_arithmetic(self, depth):
        return f"({self.make(self.rng.choice(('date', 'ts')), depth)} {self.rng.choice('+-')} {self.interval()})"

    def timestamp_cast(self, depth):
        text = f"CAST({self.make('ts', depth)} AS VARCHAR)"
        return self.rng.choice((f"CAST({self.make('date', depth)} AS TIMESTAMP)", f"CAST({text} AS TIMESTAMP)"))

    # ---- str ----------------------------------------------------------------------------------------------------

    def concatenation(self, depth):
        left, right = self.make("str", depth), self.make("str", depth)
        return self.rng.choice((f"({left} || {right})", f"concat({left}, {right}, '-', {self.leaf('int')})"))

    def letter_case(self, depth):
        return f"{self.rng.choice(('upper', 'lower'))}({self.make('str', depth)})"

    def substring(self, depth):
        start, length = self.rng.randint(-5, 8), self.rng.randint(0, 6)
        arguments = self.rng.choice((f", {start}, {length}", f", {start}", f" FROM {abs(start) + 1} FOR {length}"))
        return f"substring({self.make('str', depth)}{arguments})"

    def text_cast(self, depth):
        return f"CAST({self.make(self.rng.choice(('int', 'dec', 'date', 'ts', 'bool', 'exact')), depth)} AS VARCHAR)"
