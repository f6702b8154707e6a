#!/usr/bin/env python3
"""Seconds that 'gallop runs' takes in a folder of many runs, and what a record of a log costs.

    run.py --program GALLOP [--program OTHER] --bench BENCH_RUNS [--runs 5000] [--metrics 100] [--points 10] [--repeat 7]
           [--out FILE]

The index is removed before the first call, which makes it anew ("cold"); the files themselves are in the
system's cache then. Each figure is the wall time of a process, median, least and most of --repeat; of several programs
in turn. Prints JSON.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time


def seconds_of(command):
    begin = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def spread(times):
    return {"median": round(statistics.median(times), 4), "min": round(min(times), 4), "max": round(max(times), 4)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, action="append")
    parser.add_argument("--bench", required=True)
    parser.add_argument("--runs", type=int, default=5000)
    parser.add_argument("--metrics", type=int, default=100)
    parser.add_argument("--points", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    result = {"runs": arguments.runs, "metrics": arguments.metrics, "points": arguments.points, "seconds": {}}
    with tempfile.TemporaryDirectory(prefix="gallop-runs-") as folder:
        subprocess.run([arguments.bench, "make", folder, *map(str, (arguments.runs, arguments.metrics,
                                                                    arguments.points))], check=True)
        listing = ["runs", "list", "--runs", folder]
        calls = {
            "--version": ["--version"],
            "list": listing + ["-n", "20"],
            "list, all": listing,
            "list, filter and sort": listing + ["--filter", "metrics.metric_1 > 0.5 and params.optimizer.lr < 0.05",
                                                "--sort", "metrics.metric_2", "-n", "20"],
            "list, ten columns": listing + ["--columns", ",".join(f"metrics.metric_{i}" for i in range(10))],
            "show": ["runs", "show", "run-7", "--runs", folder],
        }

        def cold(program):
            for name in (".index.db", ".index.db-wal", ".index.db-shm"):
                if os.path.exists(os.path.join(folder, name)):
                    os.remove(os.path.join(folder, name))
            return seconds_of([program, *calls["list"]])

        times = {program: {"cold index": []} | {name: [] for name in calls} for program in arguments.program}
        for _ in range(3):
            for program, ours in times.items():
                ours["cold index"].append(cold(program))
        for _ in range(arguments.repeat):
            for name, words in calls.items():
                for program, ours in times.items():
                    ours[name].append(seconds_of([program, *words]))
        result["seconds"] = {program: {name: spread(list_) for name, list_ in ours.items()}
                             for program, ours in times.items()}
        result["index_bytes"] = os.path.getsize(os.path.join(folder, ".index.db"))
    result["log"] = [json.loads(subprocess.run([arguments.bench, "log", "20000", str(metrics)], check=True, text=True,
                                               capture_output=True).stdout) for metrics in (6, 100)]
    text = json.dumps(result, indent=1)
    print(text)
    if arguments.out:
        with open(arguments.out, "w", encoding="utf-8") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
