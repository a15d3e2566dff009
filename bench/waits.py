"""What a query's workers waited for, by cause, from the file of `stachio --trace`: how often, how long in sum, and the longest.

Usage: waits.py TRACE [RUN]    RUN: which of several statements' queries, from 1 (the last one by default).
"""
import collections
import json
import sys


def queries(events):
    return sorted((e for e in events if e["cat"] == "query" and e["name"] == "running"), key=lambda e: e["ts"])


def waits(events, query):
    """Causes to durations in ms, of what began within the query."""
    begin, end = query["ts"], query["ts"] + query["dur"]
    found = collections.defaultdict(list)
    for event in events:
        if event["cat"] == "sync" and begin <= event["ts"] <= end:
            found[event["name"].removeprefix("sync: ")].append(event["dur"] / 1e3)
    return found


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        events = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X"]
    runs = queries(events)
    query = runs[int(sys.argv[2]) - 1 if len(sys.argv) > 2 else -1]
    found = waits(events, query)
    print(f"query {query['dur'] / 1e3:.2f} ms, {sum(map(len, found.values()))} waits")
    print(f"{'cause':<40} {'times':>6} {'ms':>9} {'longest':>9}")
    for cause, times in sorted(found.items(), key=lambda item: -sum(item[1])):
        print(f"{cause:<40} {len(times):>6} {sum(times):>9.2f} {max(times):>9.3f}")


if __name__ == "__main__":
    main()
