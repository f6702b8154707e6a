#!/usr/bin/env python3
"""Compares the page of 'gallop ui' with TensorBoard and MLflow on the same runs.

    beside.py --program GALLOP --bench BENCH_RUNS --python PYTHON [--runs 500] [--metrics 20] [--points 10]
              [--long 100000] [--repeat 9] [--out FILE]

PYTHON is a Python with tensorboard and mlflow. Each server receives the runs by 'gallop runs export' or 'gallop runs
push', as users would do it, on the loopback interface. Reports seconds: "ready", from the start of the server until it
lists all runs; "runs", the response with its table of runs (TensorBoard has none: its list of runs and tags); "curve",
the response with the points of one metric of the run with --long points, which Gallop and TensorBoard (by default)
downsample; and the import of the runs. Gallop starts without an index. Median, minimum and maximum of --repeat
requests. Prints JSON.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import many_runs  # noqa: E402

METRIC = "metric_0"
PATIENCE_S = 1200


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def ask(port, path, body=None, **query):
    url = f"http://127.0.0.1:{port}{path}" + (f"?{urllib.parse.urlencode(query)}" if query else "")
    request = urllib.request.Request(url, data=None if body is None else json.dumps(body).encode(),
                                     headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return json.load(answer)


@contextlib.contextmanager
def serving(command, folder):
    """A server, which is ended together with its workers by killing its process group."""
    with open(os.path.join(folder, "server.log"), "ab") as log, \
            subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, start_new_session=True) as process:
        try:
            yield
        finally:
            os.killpg(process.pid, 15)


def until(call):
    """Seconds until the condition holds."""
    begin = time.monotonic()
    while time.monotonic() - begin < PATIENCE_S:
        with contextlib.suppress(OSError, ValueError, KeyError):
            if call():
                return round(time.monotonic() - begin, 3)
        time.sleep(0.02)
    raise RuntimeError("a server is not ready")


def timed(call, repeat):
    times = []
    for _ in range(repeat):
        begin = time.monotonic()
        call()
        times.append(time.monotonic() - begin)
    return many_runs.spread(times)


def measure(command, folder, count, runs, curve, repeat):
    """`runs` and `curve` request these from a server; `count` is the number of runs that it lists."""
    with serving(command, folder):
        ready = until(count)
        begin = time.monotonic()
        curve()
        first = round(time.monotonic() - begin, 3)
        return {"ready": ready, "runs": timed(runs, repeat), "curve, first": first, "curve": timed(curve, repeat)}


def ours(arguments, folder, total):
    port = free_port()
    return measure([arguments.program, "ui", "runs", "--studies", "none", "--port", str(port)], folder,
                   lambda: ask(port, "/api/runs", limit=1)["total"] == total,
                   lambda: ask(port, "/api/runs", limit=1000, columns=f"metrics.{METRIC},params.optimizer.lr"),
                   lambda: ask(port, "/api/curves", metric=METRIC, runs="long", smoothing=0.6), arguments.repeat)


def tensorboard(arguments, folder, total):
    begin = time.monotonic()
    names = sorted(os.listdir(os.path.join(folder, "runs")))
    subprocess.run([arguments.program, "runs", "export", *[name for name in names if not name.startswith(".")], "--format", "tensorboard",
                    "--to", "logdir"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    handed = round(time.monotonic() - begin, 3)
    port, api = free_port(), "/data/plugin/scalars"
    tag = f"evaluation/{METRIC}"
    result = measure([arguments.python, "-m", "tensorboard.main", "--logdir", "logdir", "--port", str(port), "--load_fast", "false"], folder,
                     lambda: len(ask(port, f"{api}/tags")) == total,
                     lambda: ask(port, f"{api}/tags"),
                     lambda: ask(port, f"{api}/scalars", run="long", tag=tag), arguments.repeat)
    return {"handed over": handed} | result


def mlflow(arguments, folder, total):
    port, api = free_port(), "/api/2.0/mlflow"
    address = f"http://127.0.0.1:{port}"
    command = [arguments.python, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
               "--backend-store-uri", "sqlite:///mlflow.db", "--artifacts-destination", "artifacts"]
    with serving(command, folder):
        until(lambda: ask(port, f"{api}/experiments/search", body={"max_results": 1})["experiments"])
        begin = time.monotonic()
        names = sorted(name for name in os.listdir(os.path.join(folder, "runs")) if not name.startswith("."))
        for name in names:
            subprocess.run([arguments.program, "runs", "push", name, "--mlflow", address], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        handed = round(time.monotonic() - begin, 3)
        experiment = ask(port, f"{api}/experiments/get-by-name", experiment_name="gallop")["experiment"]["experiment_id"]
    found = {}

    def search():
        return ask(port, f"{api}/runs/search", body={"experiment_ids": [experiment], "max_results": 1000})["runs"]

    def count():
        found.update({run["info"]["run_name"]: run["info"]["run_id"] for run in search()})
        return len(found) == total

    def history():
        token = {}
        while True:
            answer = ask(port, f"{api}/metrics/get-history", run_id=found["long"], metric_key=f"evaluation/{METRIC}", max_results=25000, **token)
            if not answer.get("next_page_token"):
                return
            token = {"page_token": answer["next_page_token"]}

    return {"handed over": handed} | measure(command, folder, count, search, history, arguments.repeat)


def main():
    parser = many_runs.parser(__doc__, repeat=9)
    parser.set_defaults(runs=500, metrics=20)
    parser.add_argument("--program", required=True, type=os.path.abspath)
    parser.add_argument("--python", required=True)
    parser.add_argument("--long", type=int, default=100_000)
    arguments = parser.parse_args()
    arguments.bench = os.path.abspath(arguments.bench)
    with tempfile.TemporaryDirectory(prefix="gallop-beside-") as folder:
        runs, long = os.path.join(folder, "runs"), os.path.join(folder, "one")
        for place, sizes in ((runs, (arguments.runs, arguments.metrics, arguments.points)), (long, (1, 2, arguments.long))):
            os.mkdir(place)
            many_runs.make(arguments.bench, place, *sizes)
        os.rename(os.path.join(long, "run-0"), os.path.join(runs, "long"))
        total = arguments.runs + 1
        result = {"runs": total, "metrics": arguments.metrics, "points": arguments.points, "long": arguments.long, "seconds": {}}
        for name, call in (("gallop", ours), ("tensorboard", tensorboard), ("mlflow", mlflow)):
            result["seconds"][name] = call(arguments, folder, total)
    many_runs.tell(result, arguments.out)


if __name__ == "__main__":
    main()
