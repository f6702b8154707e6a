#!/usr/bin/env python3
"""What a checkpoint costs: a training without any, with some in the background, and with as many that it waits for.

    run.py PROGRAM DATA... [--models NAME ...] [--rounds 5] [--seconds 10] [--saves 10] [--json FILE]

DATA: fashion-mnist, and a text file (*.txt) for the GPT. The three take turns. Prints a Markdown table: milliseconds that one
checkpoint adds to the training (median over the rounds of the difference to the training without, and quartiles), and what
share of the time that is where one is saved each minute. Every training saves at its end, which does not count. Run it on a
machine that does nothing else.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile

SGD = "{name: sgd, lr: 0.1, momentum: 0.9, nesterov: true}"
ADAMW = "{name: adamw, lr: 1.0e-3}"
# Model, optimizer, batch.
MODELS = {
    "ResNet-20": ("{name: resnet, depth: 20, stem: strided}", SGD, 128),
    "MLP of 26 M parameters": ("{name: mlp, hidden: [4096, 4096, 1024]}", ADAMW, 128),
    "GPT of 10.8 M parameters": ("{name: gpt, layers: 6, width: 384, heads: 6}", ADAMW, 8),
}
MODES = {
    "never": ["train.checkpoint_every=never"],
    "background": ["train.checkpoint_in_background=true"],
    "foreground": ["train.checkpoint_in_background=false"],
}


class Training:
    def __init__(self, program, name, source, folder):
        self.program, self.folder = program, folder
        model, optimizer, batch = MODELS[name]
        self.recipe = os.path.join(folder, "recipe.yaml")
        with open(self.recipe, "w") as file:
            file.write(f"data: {{{source}, batch: {batch}}}\nmodel: {model}\noptimizer: {optimizer}\n"
                       "train: {precision: bf16, evaluate_every: never}\n")

    def run(self, steps, *options):
        command = [self.program, "train", self.recipe, f"train.steps={steps}", *options, "--json", "--runs", self.folder]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return json.loads(done.stdout.splitlines()[-1])

    def steps_in(self, seconds):
        short, long = (self.run(steps, *MODES["never"])["training_seconds"] for steps in (10, 40))
        return max(20, round(seconds * 30 / max(long - short, 1e-3)))


def measure(training, rounds, seconds, saves):
    steps = training.steps_in(seconds)
    every = max(1, steps // (saves + 1))
    costs = {"background": [], "foreground": []}
    for _ in range(rounds):
        took = {}
        for mode, options in MODES.items():
            interval = [] if mode == "never" else [f"train.checkpoint_every={every} steps"]
            took[mode] = training.run(steps, *options, *interval)["seconds"]
        for mode, found in costs.items():
            # One at the last step is that of the end.
            found.append(1000 * (took[mode] - took["never"]) / ((steps - 1) // every))
    return {"steps": steps, "every": every, "costs_ms": costs}


def cells(costs):
    low, middle, high = statistics.quantiles(costs, n=4) if len(costs) > 1 else (costs[0],) * 3
    return f"{middle:.1f} ms ({low:.1f} to {high:.1f}), {middle / 600:.2f} %"


def source_of(name, data):
    for source in data:
        if source.endswith(".txt") == name.startswith("GPT"):
            path = json.dumps(os.path.abspath(source))
            return f"name: text, path: {path}, context: 128, validation: 0.01" if source.endswith(".txt") else f"name: {source}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS), metavar="NAME")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10, help="of a training")
    parser.add_argument("--saves", type=int, default=10, help="of a training, about")
    parser.add_argument("--json", help="file for all results")
    arguments = parser.parse_args()
    results = {}
    print("| model | in the background | waited for |\n|---|---|---|")
    for name in arguments.models:
        source = source_of(name, arguments.data)
        if source is None:
            parser.error(f"no data for {name}")
        with tempfile.TemporaryDirectory() as folder:
            training = Training(arguments.program, name, source, folder)
            results[name] = measure(training, arguments.rounds, arguments.seconds, arguments.saves)
        costs = results[name]["costs_ms"]
        print(f"| {name} | {cells(costs['background'])} | {cells(costs['foreground'])} |", flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
