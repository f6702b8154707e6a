#!/usr/bin/env python3
"""Tests that 'gallop runs import' imports the trials of an Optuna study as runs, with the same values, in one group.

    optuna.py PROGRAM [--python PYTHON]

PYTHON is a Python with Optuna 5 (default: GALLOP_TEST_PYTHON); without it the test is skipped.
"""

import json
import math
import os
import sys
import tempfile

from checks import expect, program_and_python, run

SEARCH = """
import json, math, sys
import optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
storage = sys.argv[1]
def objective(trial):
    lr = trial.suggest_float("optimizer.lr", 1e-3, 1, log=True)
    depth = trial.suggest_int("depth", 1, 9, step=2)
    act = trial.suggest_categorical("act", ["relu", None, 1.5, True])
    trial.set_user_attr("host", "a")
    trial.set_user_attr("cores", 4)
    for step in range(1, 4):
        trial.report(float("inf") if trial.number == 2 and step == 2 else lr * step, step)
    if trial.number % 3 == 1:
        raise optuna.TrialPruned()
    if trial.number == 5:
        raise ValueError("broken")
    return lr * 3 + depth
one = optuna.create_study(study_name="widths/a", storage=storage, direction="maximize", sampler=optuna.samplers.RandomSampler(seed=1))
one.set_metric_names(["accuracy"])
one.optimize(objective, n_trials=9, catch=(ValueError,))
one.enqueue_trial({"optimizer.lr": 0.1})
two = optuna.create_study(study_name="two", storage=storage, directions=["minimize", "maximize"], sampler=optuna.samplers.RandomSampler(seed=1))
two.optimize(lambda trial: (trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)), n_trials=2)
print(json.dumps([{"number": trial.number, "state": trial.state.name, "params": trial.params, "values": trial.values,
                   "reports": trial.intermediate_values, "seconds": trial.duration.total_seconds() if trial.duration else None}
                  for trial in one.get_trials() + two.get_trials()]))
"""


def shown(value):
    """The value as the text of an option."""
    return json.dumps(value) if value is None or isinstance(value, bool) else value if isinstance(value, float) else str(value)


def number(value):
    return float(value)


def compare(program, folder, name, trial, metrics, sweep):
    found = json.loads(run([program, "runs", "show", name, "--json"], folder))
    expect(f"{name}: sweep", (found["tags"]["sweep"], found["tags"]["trial"], found["tags"]["trial_state"]),
           (sweep, str(trial["number"]), trial["state"]))
    for option, value in trial["params"].items():
        text = found["params"][option]
        expect(f"{name}: {option}", float(text) if isinstance(value, float) else text, shown(value))
    final = trial["values"] if trial["state"] == "COMPLETE" else None
    reports = {int(step): value for step, value in trial["reports"].items()}
    for i, metric in enumerate(metrics):
        if not final and not reports:
            continue
        last = final[i] if final else reports[max(reports)]
        expect(f"{name}: {metric}", number(found["metrics"][metric]["last"]), last)
    if reports:
        lines = run([program, "runs", "export", name, "--format", "json"], folder).splitlines()
        points = [one for one in map(json.loads, lines) if one["metric"] == metrics[0]]
        wanted = dict(reports)
        if final:
            wanted[max(reports)] = final[0]
        expect(f"{name}: points", {one["step"]: number(one["value"]) for one in points}, wanted)
    state = {"COMPLETE": "finished", "PRUNED": "stopped", "FAIL": "failed"}.get(trial["state"], "died")
    expect(f"{name}: state", found["state"], state)
    if trial["seconds"] is not None and trial["state"] != "FAIL" and not math.isclose(found["seconds"], trial["seconds"], abs_tol=2e-3):
        sys.exit(f"{name}: {found['seconds']} s, and Optuna says {trial['seconds']}")


def main():
    program, python = program_and_python(__doc__, "import optuna; assert optuna.__version__ >= '5'", "Optuna 5")
    with tempfile.TemporaryDirectory(prefix="gallop-optuna-") as folder:
        file = os.path.join(folder, "optuna.db")
        trials = json.loads(run([python, "-c", SEARCH, f"sqlite:///{file}"], folder))
        one, two = [trial for trial in trials[:10] if trial["state"] != "WAITING"], trials[10:]
        expect("trials", (len(one), len(two)), (9, 2))
        run([program, "runs", "import", "optuna.db", "--study", "widths/a"], folder)
        for trial in one:
            compare(program, folder, f"widths-a-{trial['number']:04}", trial, ["accuracy"], "widths/a")
        listed = json.loads(run([program, "runs", "list", "--filter", 'tags.sweep = "widths/a"', "--format", "json"], folder))
        expect("the group", len(listed), len(one))
        # All studies, one of which was already imported.
        words = run([program, "runs", "import", "optuna.db"], folder, code=2)
        expect("the error names --prefix", "already exists; use --prefix" in words, True)
        run([program, "runs", "import", "optuna.db", "--prefix", "all-"], folder)
        for trial in two:
            compare(program, folder, f"all-two-{trial['number']:04}", trial, ["value_0", "value_1"], "two")
        for words, code in ((["optuna.db", "--study", "none"], 2), (["search.txt"], 3), ([".", "--study", "two"], 2)):
            with open(os.path.join(folder, "search.txt"), "w", encoding="utf-8") as text:
                text.write("no database\n" * 100)
            run([program, "runs", "import", *words], folder, code=code)
    print("passed")


if __name__ == "__main__":
    main()
