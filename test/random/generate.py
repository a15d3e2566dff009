"""Random tables and random queries from a seed; the same seed gives the same ones.

    generate.py -o DIRECTORY [--seed N] [--count N] [--only CLASS]
writes DIRECTORY/tables and prints the queries, one per line. Classes: expr, filter, joins, subquery, agg, sort, set,
cte, errors, chain. What runs them against DuckDB is test/cli/test_random.py.
"""

import argparse
import os
import random
import re

from queries import Queries
from tables import write_tables


def make_query(seed, number, attempt=0, only=None):
    """The query of that number; further attempts replace one that DuckDB could not run."""
    rng = random.Random(f"{seed} {number} {attempt}")
    return Queries(rng).make(only)


def main():
    parser = argparse.ArgumentParser(description="Writes random tables and prints random queries.")
    parser.add_argument("-o", "--output", required=True, metavar="DIRECTORY")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--only", choices=list(Queries(random.Random()).classes))
    options = parser.parse_args()
    write_tables(os.path.join(options.output, "tables"), options.seed)
    for number in range(options.count):
        print(re.sub(r"\s+", " ", make_query(options.seed, number, only=options.only).sql) + ";")


if __name__ == "__main__":
    main()
