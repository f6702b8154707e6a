#!/usr/bin/env python3
"""Optimizes plain recipes, and checks the result by training both recipes.

    run.py PROGRAM --folder FOLDER [--only REGEX] [--budget TIME] [--seeds N] [--json FILE]

Each case is a recipe without any technique: fp32, batches of 32, one loader thread, a constant learning rate, eager
steps. `gallop optimize` searches for a better one in FOLDER, which continues an earlier search. Then the plain and the
best recipe are trained alternately, with several seeds: the target is the mean final metric of the plain one, and what
counts is the time of training until an evaluation reaches it. Both final metrics are those after as many epochs as the
plain recipe has. Cases whose data are missing are left out: --cifar10 is CIFAR-10 as a folder of images, --shakespeare a
text file, --vit an archive of torch.export for images of 32 x 32. Needs an idle machine.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from results_file import write_results  # noqa: E402

PLAIN = "train: {precision: fp32, channels_last: false, compile: false, epochs: %s}\n"
CASES = {
    "resnet": ("cifar10", "data: {name: folder, path: %s, batch_size: 32, threads: 1, "
               "augment: [random-horizontal-flip, random-crop]}\n"
               "model: {name: resnet, depth: 20, stem: strided}\n"
               "optimizer: {name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 5.0e-4}\n" + PLAIN % 10),
    "gpt": ("shakespeare", "data: {name: text, path: %s, context: 64, batch_size: 32, threads: 1, validation: 0.1}\n"
            "model: {name: gpt, layers: 4, width: 128, heads: 4, dropout: 0}\n"
            "optimizer: {name: adamw, lr: 0.0003}\n" + PLAIN % 3),
    "mlp": ("table", "data: {name: csv, path: %s, batch_size: 32, threads: 1, validation: 0.15, task: classification}\n"
            "model: {name: mlp, hidden: [512, 512]}\noptimizer: {name: adam, lr: 0.001}\n" + PLAIN % 10),
    "vit": ("vit", "data: {name: folder, path: %s, batch_size: 32, threads: 1, augment: [random-horizontal-flip]}\n"
            "model: {name: exported, file: %s}\noptimizer: {name: adamw, lr: 0.0003}\n" + PLAIN % 3),
}


def make_table(path, rows=60000, columns=20, classes=5):
    """Classes by a random network of two layers, with noise."""
    import random
    rng = random.Random(0)
    first = [[rng.gauss(0, 1) for _ in range(columns)] for _ in range(40)]
    second = [[rng.gauss(0, 1) for _ in range(40)] for _ in range(classes)]
    with open(path, "w") as file:
        file.write(",".join(f"x{i}" for i in range(columns)) + ",label\n")
        for _ in range(rows):
            x = [rng.gauss(0, 1) for _ in range(columns)]
            hidden = [max(0.0, sum(a * b for a, b in zip(x, row))) for row in first]
            scores = [sum(a * b for a, b in zip(hidden, row)) + rng.gauss(0, 2) for row in second]
            file.write(",".join(f"{value:.4f}" for value in x) + f",c{scores.index(max(scores))}\n")


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}")
    return done.stdout


def evaluations(folder, metric):
    """(seconds of training, metric) of each evaluation."""
    found = []
    with open(os.path.join(folder, "metrics.log")) as file:
        for line in file:
            record = json.loads(line.rsplit("\t", 1)[0])
            if record["kind"] == "evaluation":
                values = record["values"]
                found.append((float(values["training_seconds"]), float(values[metric])))
    return found


def train(program, recipe, options, runs, name, metric):
    if not os.path.exists(os.path.join(runs, name)):
        run([program, "train", recipe, "--runs", runs, "--name", name, "--quiet", *options])
    return evaluations(os.path.join(runs, name), metric)


def check(program, folder, recipe, report, seeds):
    metric, runs = report["metric"], os.path.join(folder, "check")
    sign = -1 if metric in ("loss", "perplexity", "bits-per-character") else 1
    plain, best = [], []
    for seed in range(1, seeds + 1):
        option = [f"train.seed={seed}"]
        plain.append(train(program, recipe, option, runs, f"plain-{seed}", metric))
        best.append(train(program, os.path.join(folder, "best.yaml"), option, runs, f"best-{seed}", metric))
    target = statistics.mean(points[-1][1] for points in plain)

    def seconds(points):
        return next((at for at, value in points if sign * value >= sign * target), points[-1][0])

    return {"metric": metric, "target": target,
            "plain_seconds": [seconds(points) for points in plain],
            "best_seconds": [seconds(points) for points in best],
            "plain_metrics": [points[-1][1] for points in plain],
            "best_metrics": [points[-1][1] for points in best],
            "equal_epochs_metrics": report.get("equal_runs", {}).get("metrics", [])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--folder", required=True, help="of the searches")
    parser.add_argument("--only", default="", help="regular expression of cases")
    parser.add_argument("--budget", default="20 min")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cifar10")
    parser.add_argument("--shakespeare")
    parser.add_argument("--vit")
    parser.add_argument("--json", help="file for the results")
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    table = os.path.join(arguments.folder, "table.csv")
    if re.search(arguments.only, "mlp") and not os.path.exists(table):
        make_table(table)
    sources = {"cifar10": [arguments.cifar10], "shakespeare": [arguments.shakespeare], "table": [table],
               "vit": [arguments.cifar10, arguments.vit]}
    results = {}
    for name, (source, text) in CASES.items():
        if not re.search(arguments.only, name) or not all(sources[source]):
            continue
        recipe, folder = os.path.join(arguments.folder, f"{name}.yaml"), os.path.join(arguments.folder, name)
        with open(recipe, "w") as file:
            file.write(text % tuple(json.dumps(os.path.abspath(path)) for path in sources[source]))
        run([arguments.program, "optimize", recipe, "--budget", arguments.budget, "--folder", folder, "--json"])
        with open(os.path.join(folder, "report.json")) as file:
            report = json.load(file)
        result = {"budget_seconds": report["budget_seconds"], "seconds": report["seconds"], "predicted": report["gain"],
                  "command": report["command"]}
        if "target" in report:
            result |= check(arguments.program, folder, recipe, report, arguments.seeds)
            gain = statistics.mean(result["plain_seconds"]) / statistics.mean(result["best_seconds"])
            result["gain"] = gain
            print(f"{name:<8} {gain:.2f} times less time to {result['metric']} {result['target']:.4f} (the search "
                  f"found {report['gain']:.2f}, in {report['seconds']:.0f} of {report['budget_seconds']:.0f} s)",
                  flush=True)
        else:
            print(f"{name:<8} {report['gain']:.2f} times the samples per second; {report['why_no_training_changes']}")
        results[name] = result
        write_results(arguments.json, results)


if __name__ == "__main__":
    main()
