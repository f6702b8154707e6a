#!/usr/bin/env python3
"""Tests 'gallop runs push', 'gallop train --mlflow' and 'gallop runs import' with a real MLflow server and its client.

    mlflow.py PROGRAM [--python PYTHON]

PYTHON is a Python with the package mlflow (default: GALLOP_TEST_PYTHON); without it the test is skipped.
"""

import csv
import io
import json
import math
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "scenario"))
import make_data  # noqa: E402
from checks import HANGS_SECONDS, Server, free_port, program_and_python  # noqa: E402

RECIPE = """\
data: {name: mnist, path: tiny, batch_size: 20}
model: {name: mlp, hidden: [32]}
optimizer: {name: adamw, lr: 0.01}
train: {epochs: 3, precision: fp32, compile: false}
"""

READ = """
import json, sys
from mlflow.tracking import MlflowClient
client = MlflowClient(sys.argv[1])
experiment = client.get_experiment_by_name(sys.argv[2])
runs = {}
for run in client.search_runs([experiment.experiment_id]):
    runs[run.info.run_name] = {
        "status": run.info.status, "params": run.data.params, "tags": run.data.tags, "start": run.info.start_time,
        "end": run.info.end_time,
        "metrics": {key: [(one.step, one.timestamp, one.value) for one in client.get_metric_history(run.info.run_id, key)]
                    for key in run.data.metrics}}
print(json.dumps(runs))
"""

WRITE = """
import sys
from mlflow.tracking import MlflowClient
client = MlflowClient(sys.argv[1])
experiment = client.create_experiment("theirs")
for i in range(2):
    run = client.create_run(experiment, run_name="same/name").info.run_id
    client.log_param(run, "lr", 0.1 * (i + 1))
    client.set_tag(run, "team", "vision")
    for step in range(30):
        client.log_metric(run, "train/loss", 1 / (step + 1), step=step, timestamp=1700000000000 + step)
    client.log_metric(run, "accuracy", 0.5 + i / 10, step=29)
    client.log_metric(run, "odd", float("nan"), step=3)
    client.set_terminated(run, "FINISHED" if i == 0 else "FAILED")
"""


def expect(condition, words):
    if not condition:
        sys.exit(words)


def serve(python, folder, port):
    """MLflow's own server."""
    command = [python, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
               "--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--default-artifact-root", f"{folder}/artifacts"]
    return Server(command, folder, port, "/health")


class Place:
    def __init__(self, program, python, folder):
        self.program, self.python, self.folder = os.path.abspath(program), python, folder

    def gallop(self, *words, code=0):
        result = subprocess.run([self.program, *words], cwd=self.folder, capture_output=True, text=True, check=False,
                                timeout=HANGS_SECONDS)
        expect(result.returncode == code, f"gallop {' '.join(words)}: {result.returncode}\n{result.stdout}{result.stderr}")
        return result.stdout + result.stderr

    def theirs(self, text, *words):
        result = subprocess.run([self.python, "-c", text, *words], cwd=self.folder, capture_output=True, text=True, check=False,
                                timeout=HANGS_SECONDS)
        expect(result.returncode == 0, f"MLflow's client: {result.stderr}")
        return result.stdout

    def points(self, run):
        """By name in MLflow: step, time in ms, value."""
        points = {}
        for row in csv.DictReader(io.StringIO(self.gallop("runs", "export", run))):
            group, _, name = row["metric"].partition(".")
            name = f"{group}/{name}" if name else f"evaluation/{group}"
            points.setdefault(name, []).append((int(row["step"]), int(1e3 * float(row["time"])), float(row["value"])))
        return points


def same(ours, theirs):
    """Compares values; MLflow preserves NaN."""
    if len(ours) != len(theirs):
        return False
    return all(a[:2] == tuple(b[:2]) and (a[2] == b[2] or math.isnan(a[2]) and math.isnan(b[2]))
               for a, b in zip(sorted(ours), sorted(map(tuple, theirs))))


def check_pushed(place, run, there, status):
    points = place.points(run)
    expect(set(points) == set(there["metrics"]), f"{sorted(points)} are not {sorted(there['metrics'])}")
    for name, ours in points.items():
        expect(same(ours, there["metrics"][name]), f"{name}: {ours} is not {there['metrics'][name]}")
    expect(there["status"] == status, f"{run} is {there['status']}")
    expect(there["params"]["optimizer.lr"] == "0.01" and there["params"]["model.name"] == "mlp", f"params: {there['params']}")
    return sum(map(len, points.values()))


def check(program, python, folder):
    place = Place(program, python, folder)
    port = free_port()
    with open(os.path.join(folder, "recipe.yaml"), "w", encoding="utf-8") as file:
        file.write(RECIPE)
    make_data.make(folder, ["idx", "tiny", "200"])
    address = f"http://127.0.0.1:{port}"

    # Without a server: the training finishes, and prints how to send the rest.
    output = place.gallop("train", "recipe.yaml", "--name", "early", "--mlflow", address)
    expect("to send the rest: gallop runs push runs/early --mlflow " in output, f"without a server: {output}")
    place.gallop("runs", "push", "early", "--mlflow", address, code=4)

    server = serve(python, folder, port)
    try:
        place.gallop("runs", "tag", "early", "--set", "team=vision")
        place.gallop("runs", "push", "early", "--mlflow", address)
        there = json.loads(place.theirs(READ, address, "gallop"))
        points = check_pushed(place, "early", there["early"], "FINISHED")
        expect(there["early"]["tags"]["team"] == "vision", f"tags: {there['early']['tags']}")
        expect("0 points" in place.gallop("runs", "push", "early", "--mlflow", address), "what is there was sent again")

        # While it trains; and a stopped training that continues is the same run in MLflow.
        place.gallop("train", "recipe.yaml", "--name", "live", "--mlflow", address, "--experiment", "other", "--until", "1 epochs")
        there = json.loads(place.theirs(READ, address, "other"))
        check_pushed(place, "live", there["live"], "KILLED")
        place.gallop("train", "--resume", "live", "--mlflow", address, "--experiment", "other")
        there = json.loads(place.theirs(READ, address, "other"))
        check_pushed(place, "live", there["live"], "FINISHED")

        # The server ends during the transfer: data are neither lost nor sent twice.
        state = os.path.join(folder, "runs", "early", "mlflow.json")
        with open(state, encoding="utf-8") as file:
            places = json.load(file)
        places[0]["last_sent"] = -1
        with open(state, "w", encoding="utf-8") as file:
            json.dump(places, file)
        server.end()
        server = serve(python, folder, port)
        place.gallop("runs", "push", "early", "--mlflow", address)
        there = json.loads(place.theirs(READ, address, "gallop"))
        expect(check_pushed(place, "early", there["early"], "FINISHED") == points, "points were doubled")

        # And back.
        place.theirs(WRITE, address)
        place.gallop("runs", "import", address, "--experiment", "theirs", "--prefix", "mlflow-")
        imported = place.points("mlflow-same-name")
        expect(len(imported["train/loss"]) == 30 and imported["train/loss"][29] == (29, 1700000000029, 1 / 30), f"{imported}")
        expect(math.isnan(imported["evaluation/odd"][0][2]), f"{imported}")
        table = place.gallop("runs", "list", "--filter", "tags.team = \"vision\" and params.lr = 0.2", "--columns",
                             "metrics.accuracy", "--format", "csv")
        rows = list(csv.DictReader(io.StringIO(table)))
        expect([(row["name"], row["state"], row["metrics.accuracy"]) for row in rows] == [("mlflow-same-name-2", "failed", "0.6")],
               table)
        output = place.gallop("runs", "import", address, "--experiment", "none", code=2)
        expect("has no experiment 'none'" in output, output)
    finally:
        server.end()


def main():
    program, python = program_and_python(__doc__, "import mlflow.server, flask", "package mlflow with its server")
    os.environ.update(MLFLOW_TRACKING_URI="", MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true")
    del os.environ["MLFLOW_TRACKING_URI"]
    with tempfile.TemporaryDirectory() as folder:
        check(program, python, folder)


if __name__ == "__main__":
    main()
