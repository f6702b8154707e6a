#!/usr/bin/env python3
"""Tests that a real optuna-dashboard opens a study exported by 'gallop tune export --optuna', and shows its values.

    optuna_dashboard.py PROGRAM [--python PYTHON]

PYTHON is a Python with the packages optuna and optuna-dashboard (default: GALLOP_TEST_PYTHON); without them the test is
skipped.
"""

import json
import os
import tempfile
import urllib.request

from checks import Server, expect, free_port, program_and_python, run

SWEEP = """
command: [sh, -c, 'for i in 1 2 3; do echo "{{\\"v\\": $i.{width}, \\"step\\": $i}}"; done']
metric: v
parameters:
  rate: {min: 1.0e-3, max: 1, scale: log}
  width: {min: 1, max: 9}
  kind: {cases: {a: {slope: {min: -1.0, max: 1.0}}, b: }}
trials: 30
pruner: median
"""
SERVE = "import sys; from optuna_dashboard._cli import main; sys.argv[0] = 'optuna-dashboard'; main()"
STATES = {"Complete": "complete", "Pruned": "pruned"}


def ask(server, path):
    with urllib.request.urlopen(server.address + path, timeout=60) as answer:
        return json.load(answer)


def compare(found, wanted):
    name = f"trial {wanted['trial']}"
    expect(f"{name}: state", STATES[found["state"]], wanted["state"])
    params = {one["name"]: one["param_external_value"] for one in found["params"]}
    expect(f"{name}: parameters", set(params), set(wanted["parameters"]))
    for key, value in wanted["parameters"].items():
        expect(f"{name}: {key}", params[key] if isinstance(value, str) else json.loads(params[key]), value)
    expect(f"{name}: reports", [[one["step"], one["value"]] for one in found["intermediate_values"]], wanted["reports"])
    if wanted["state"] == "complete":
        expect(f"{name}: value", found["values"], list(wanted["values"].values()))


def check(program, python, folder):
    with open(os.path.join(folder, "sweep.yaml"), "w", encoding="utf-8") as sweep:
        sweep.write(SWEEP)
    run([program, "tune", "sweep.yaml", "--quiet"], folder)
    run([program, "tune", "export", "sweep", "--optuna", "sweep.db", "--json", "trials.json"], folder)
    with open(os.path.join(folder, "trials.json"), encoding="utf-8") as file:
        trials = json.load(file)["trials"]
    port = free_port()
    server = Server([python, "-c", SERVE, "sqlite:///sweep.db", "--host", "127.0.0.1", "--port", str(port)], folder, port,
                    "/api/studies")
    try:
        study = ask(server, "/api/studies")["study_summaries"][0]
        expect("the study", (study["study_name"], study["directions"]), ("sweep", ["minimize"]))
        found = ask(server, f"/api/studies/{study['study_id']}")["trials"]
        expect("trials", (len(found), len(trials)), (30, 30))
        for one, wanted in zip(found, trials):
            compare(one, wanted)
        shares = ask(server, f"/api/studies/{study['study_id']}/param_importances")["param_importances"][0]
        expect("the most important", max(shares, key=lambda one: one["importance"])["name"], "width")
    finally:
        server.end()


def main():
    program, python = program_and_python(__doc__, "import optuna_dashboard", "optuna-dashboard")
    with tempfile.TemporaryDirectory(prefix="gallop-dashboard-") as folder:
        check(program, python, folder)
    print("passed")


if __name__ == "__main__":
    main()
