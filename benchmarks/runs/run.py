#!/usr/bin/env python3
"""Measures the seconds that 'gallop runs' takes in a folder of many runs, and the cost of a log record.

    run.py --program GALLOP [--program OTHER] --bench BENCH_RUNS [--runs 5000] [--metrics 100] [--points 10]
           [--repeat 7] [--out FILE]

"cold" is the first call after the index was removed, which rebuilds it, with the files in the system's cache. Each
figure is the wall time of a process: median, minimum and maximum of --repeat. Several programs alternate. Prints JSON.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import many_runs  # noqa: E402
from many_runs import spread  # noqa: E402


def seconds_of(command):
    begin = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def main():
    parser = many_runs.parser(__doc__, repeat=7)
    parser.add_argument("--program", required=True, action="append")
    arguments = parser.parse_args()
    result = {"runs": arguments.runs, "metrics": arguments.metrics, "points": arguments.points, "seconds": {}}
    with tempfile.TemporaryDirectory(prefix="gallop-runs-") as folder:
        many_runs.make(arguments.bench, folder, arguments.runs, arguments.metrics, arguments.points)
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
    many_runs.tell(result, arguments.out)


if __name__ == "__main__":
    main()
