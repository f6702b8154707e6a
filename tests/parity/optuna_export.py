#!/usr/bin/env python3
"""Opens an exported study with Optuna, and compares everything that Optuna reads with the study.

    optuna_export.py PROGRAM [--python PATH]     PATH: a Python with optuna 5 (default: GALLOP_TEST_PYTHON)

PROGRAM is built from tests/parity/optuna_export_program.cpp. Exits with 77 if that Python has no Optuna.
"""

import argparse
import datetime
import json
import math
import os
import subprocess
import sys
import tempfile

SKIPPED = 77
STATES = {"WAITING": "waiting", "RUNNING": "running", "COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}


def number_of(value):
    return float(value) if isinstance(value, str) else value


def same(found, wanted):
    return found == wanted or (isinstance(found, float) and isinstance(wanted, float) and math.isnan(found)
                               and math.isnan(wanted))


def require(found, wanted, what):
    if not same(found, wanted):
        sys.exit(f"{what}: Optuna found {found!r}, expected {wanted!r}")


def seconds(date):
    return None if date is None else date.astimezone(datetime.timezone.utc).timestamp()


def compare_trial(trial, wanted):
    name = f"trial {wanted['number']}"
    require(trial.number, wanted["number"], name)
    require(STATES[trial.state.name], wanted["state"], f"{name}, state")
    # Optuna does not support lists as choices.
    params = {key: json.dumps(value) if isinstance(value, list) else value for key, value in wanted["params"].items()}
    require(trial.params, params, f"{name}, params")
    values = wanted["values"] or None
    if wanted["state"] == "pruned":
        values = [number_of(list(wanted["reports"].values())[-1])]
    require(trial.values, values, f"{name}, values")
    reports = {int(step): number_of(value) for step, value in wanted["reports"].items()}
    require(sorted(trial.intermediate_values), sorted(reports), f"{name}, steps")
    for step, value in reports.items():
        require(float(trial.intermediate_values[step]), float(value), f"{name}, step {step}")
    require(list(trial.constraints.values()), wanted["violations"], f"{name}, constraints")
    require(seconds(trial.datetime_start), wanted["started"] or None, f"{name}, start")
    require(seconds(trial.datetime_complete), wanted["ended"] or None, f"{name}, end")
    require(trial.user_attrs.get("message", ""), wanted["message"], f"{name}, message")
    require(trial.user_attrs.get("worker", ""), wanted["worker"], f"{name}, worker")


def compare(optuna, program, objectives):
    with tempfile.TemporaryDirectory(prefix="gallop-optuna-") as folder:
        path = os.path.join(folder, "study.db")
        wanted = json.loads(subprocess.run([program, path, str(objectives)], check=True, stdout=subprocess.PIPE,
                                           text=True).stdout)
        study = optuna.load_study(study_name=wanted["name"], storage=f"sqlite:///{path}")
        require(study.metric_names, ["accuracy", "seconds"][:objectives], "metrics")
        require([one.name for one in study.directions], ["MAXIMIZE", "MINIMIZE"][:objectives], "directions")
        trials = study.get_trials(deepcopy=False)
        require(len(trials), len(wanted["trials"]), "trials")
        for trial, one in zip(trials, wanted["trials"]):
            compare_trial(trial, one)
        distributions = optuna.distributions
        require(trials[0].distributions, {
            "lr": distributions.FloatDistribution(1e-4, 1, log=True),
            "share": distributions.FloatDistribution(0, 0.75, step=0.25),
            "width": distributions.IntDistribution(1, 9, step=2),
            "depth": distributions.IntDistribution(1, 64, log=True),
            "act": distributions.CategoricalDistribution(["relu", None, 1.5, True, "[64, 64]"]),
            "slope": distributions.FloatDistribution(-1, 1)}, "distributions")
        # Optuna can continue the study: with the waiting trial, then with a new one.
        require([study.ask().number, study.ask().number], [4, 5], "the next trials")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--python", default=os.environ.get("GALLOP_TEST_PYTHON") or sys.executable)
    arguments = parser.parse_args()
    if arguments.python != sys.executable:
        os.execv(arguments.python, [arguments.python, os.path.abspath(__file__), arguments.program])
    try:
        import optuna  # noqa: PLC0415
    except ImportError:
        print(f"skipped: {sys.executable} has no optuna")
        sys.exit(SKIPPED)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    for objectives in (1, 2):
        compare(optuna, os.path.abspath(arguments.program), objectives)
    print(f"Optuna {optuna.__version__} found all that was exported")


if __name__ == "__main__":
    main()
