#!/usr/bin/env python3
"""Compares the learning rates that `gallop find-lr` suggests with the best of a grid.

    run.py PROGRAM [--only NAME ...] [--text FILE] [--seeds 1] [--json FILE] [--set OVERRIDE ...]

Trains each problem at rates a factor of 2 apart, 1.4 near the best of them, and at the suggestion of each rule. Prints
a Markdown table: for each problem the best of the grid, and for each rule its rate and how much worse that is, relative
to the best (images: by accuracy; text: by loss), as the mean over seeds. The default rule of find-lr was selected on
the first five problems, not on the others. --json stores the result of every training; a later call skips those in the
file and thus continues an interrupted one. --set is for options that do not affect results, such as train.threads=1.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from results_file import ResultsFile

FASHION = """
data: {name: fashion-mnist, batch_size: 128}
train: {precision: fp32, channels_last: false, epochs: %d}
schedule: {name: cosine}
model: %s
optimizer: %s
"""
SGD = "{name: sgd, momentum: 0.9, nesterov: true}"
VIT = "{name: vit, patch: 7, width: 64, depth: 3, heads: 2}"
RESNET = "{name: resnet, depth: 8, stem: strided}"
# Exponents of 2 of the initial grid, by optimizer.
GRIDS = {"SGD": range(-12, 2), "AdamW": range(-13, -1), "Lion": range(-17, -5)}
PROBLEMS = {
    "MLP, SGD": FASHION % (2, "{name: mlp}", SGD),
    "MLP, AdamW": FASHION % (2, "{name: mlp}", "{name: adamw}"),
    "ResNet-8, SGD": FASHION % (1, RESNET, SGD),
    "ViT, AdamW": FASHION % (1, VIT, "{name: adamw}"),
    "GPT, AdamW": """
data: {name: text, path: "%s", validation: 0.1, context: 64, batch_size: 16}
train: {precision: fp32, steps: 600, clip_grad_norm: 1}
schedule: {name: cosine, warmup: 0.05}
model: {name: gpt, layers: 2, width: 64, heads: 2}
optimizer: {name: adamw}
""",
    "ResNet-8, AdamW": FASHION % (1, RESNET, "{name: adamw}"),
    "MLP, Lion": FASHION % (2, "{name: mlp}", "{name: lion}"),
    "airbench, SGD": FASHION % (1, "{name: airbench, widths: [32, 64, 64]}", SGD),
}


class Results(ResultsFile):
    """Results by problem and measurement."""

    def get(self, problem, key, measure):
        known = self.all.setdefault(problem, {})
        if key not in known:
            known[key] = measure()
            self.save()
        return known[key]


class Problem:
    def __init__(self, name, arguments, results):
        self.name, self.program, self.words, self.results = name, arguments.program, arguments.set, results
        self.is_text = name.startswith("GPT")
        self.seeds = arguments.seeds
        if self.is_text and not arguments.text:
            raise SystemExit("the GPT needs --text FILE")
        self.recipe = PROBLEMS[name] % arguments.text if self.is_text else PROBLEMS[name]

    def run(self, command, *words):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "recipe.yaml")
            with open(path, "w") as file:
                file.write(self.recipe)
            runs = ["--runs", folder] if command == "train" else []
            words = [self.program, command, path, *words, *self.words, "--json", *runs]
            return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()[-1])

    def suggestions(self):
        return self.results.get(self.name, "find-lr", lambda: self.run("find-lr"))["suggestions"]

    def metric(self, lr):
        def train(seed):
            return self.run("train", f"optimizer.lr={lr}", f"train.seed={seed}", "train.on_nonfinite=skip",
                            "train.evaluate_every=never", "train.checkpoint_every=never")["last"]

        ends = [self.results.get(self.name, f"{lr!r}, seed {seed}", lambda: train(seed)) for seed in range(1, self.seeds + 1)]
        return statistics.mean(end["loss" if self.is_text else "accuracy"] for end in ends)

    def row(self):
        powers = [float(power) for power in GRIDS[self.name.split(", ")[1]]]
        best = min if self.is_text else max

        def of_power(power):
            return self.metric(2**power)

        top = best(powers, key=of_power)
        top = best([top, top - 0.5, top + 0.5], key=of_power)
        value = of_power(top)
        cells = [self.name, f"{2**top:.2g}: " + (f"loss {value:.3f}" if self.is_text else f"{100 * value:.1f} %")]
        for lr in self.suggestions().values():
            difference = self.metric(lr) - value
            cells.append(f"{lr:.2g}: {100 * (difference if self.is_text else -difference) / value:.1f} %")
        return cells


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--only", nargs="*", choices=list(PROBLEMS), default=list(PROBLEMS), metavar="NAME")
    parser.add_argument("--text", help="a text file, for the GPT", type=os.path.abspath)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--json", help="file for all results; an existing one is continued")
    parser.add_argument("--set", nargs="*", default=[], metavar="OVERRIDE", help="options of every recipe")
    arguments = parser.parse_args()
    arguments.program = os.path.abspath(arguments.program)
    results = Results(arguments.json)
    problems = [Problem(name, arguments, results) for name in arguments.only]
    for number, problem in enumerate(problems):
        if number == 0:
            print("| | best of the grid |" + "".join(f" `{rule}` |" for rule in problem.suggestions()))
            print("|---|---|" + "---|" * len(problem.suggestions()))
        print("| " + " | ".join(problem.row()) + " |", flush=True)


if __name__ == "__main__":
    main()
