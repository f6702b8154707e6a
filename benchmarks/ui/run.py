#!/usr/bin/env python3
"""Measures the response times of 'gallop ui' in a folder of many runs, one with a million points.

    run.py --program GALLOP --bench BENCH_RUNS [--runs 5000] [--metrics 100] [--points 10] [--repeat 9] [--out FILE]

"start" is the time from the start of the program to its first response, with an existing index. Each other figure is
the time of a request over one connection: median, minimum and maximum of --repeat; "first" is the request that reads a
run's log. Prints JSON.
"""

import http.client
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import many_runs  # noqa: E402
from many_runs import spread  # noqa: E402


class Page:
    """The server on a free port, and one connection to it."""

    def __init__(self, program, runs):
        self.process = subprocess.Popen([program, "ui", runs, "--studies", "none", "--port", "0"], text=True, stdout=subprocess.PIPE)
        self.address = self.process.stdout.readline().split("http://")[1].split("/")[0]
        self.connection = http.client.HTTPConnection(self.address, timeout=600)

    def seconds(self, path, **query):
        text = urllib.parse.urlencode(query)
        begin = time.monotonic()
        self.connection.request("GET", f"/api/{path}?{text}")
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status}: {body[:300]}")
        return time.monotonic() - begin

    def close(self):
        self.connection.close()
        self.process.terminate()
        self.process.wait()


def main():
    parser = many_runs.parser(__doc__, repeat=9)
    parser.add_argument("--program", required=True)
    parser.add_argument("--million", type=int, default=1_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gallop-ui-") as folder:
        many, one = os.path.join(folder, "many"), os.path.join(folder, "one")
        for runs, sizes in ((many, (arguments.runs, arguments.metrics, arguments.points)),
                            (one, (1, 2, arguments.million))):
            os.mkdir(runs)
            many_runs.make(arguments.bench, runs, *sizes)
        Page(arguments.program, many).close()  # Creates the index.
        begin = time.monotonic()
        page = Page(arguments.program, many)
        page.seconds("session")
        result = {"runs": arguments.runs, "metrics": arguments.metrics, "seconds": {"start": round(time.monotonic() - begin, 4)}}
        columns = ",".join([f"metrics.metric_{i}" for i in range(arguments.metrics // 2)] +
                           [f"metrics.train.metric_{i}" for i in range(arguments.metrics // 2)])
        calls = {
            "columns": ("columns", {}),
            "runs": ("runs", {}),
            "runs, filter and sort": ("runs", {"filter": "metrics.metric_1 > 0.5 and params.optimizer.lr < 0.05",
                                               "sort": "metrics.metric_2"}),
            f"runs, {arguments.metrics} columns": ("runs", {"columns": columns}),
            "groups": ("groups", {"by": "params.model.hidden"}),
            "curves of 10 runs": ("curves", {"metric": "metric_1", "runs": ",".join(f"run-{i}" for i in range(10)), "smoothing": 0.6}),
            "run": ("run", {"name": "run-7"}),
        }
        for name, (path, query) in calls.items():
            result["seconds"][name] = spread([page.seconds(path, **query) for _ in range(arguments.repeat)])
        result["seconds"]["band of all runs, first"] = round(page.seconds("band", metric="metric_1", by="params.model.hidden"), 4)
        page.close()
        page = Page(arguments.program, one)
        curve = {"metric": "metric_0", "runs": "run-0", "smoothing": 0.6}
        result["seconds"]["curve of a million points, first"] = round(page.seconds("curves", **curve), 4)
        result["seconds"]["curve of a million points"] = spread([page.seconds("curves", **curve) for _ in range(arguments.repeat)])
        page.close()
    many_runs.tell(result, arguments.out)


if __name__ == "__main__":
    main()
