#!/usr/bin/env python3
"""Measures the cost of a checkpoint: trains without checkpoints, with asynchronous and with synchronous ones.

    run.py PROGRAM DATA... [--models NAME ...] [--rounds 5] [--seconds 10] [--saves 10] [--json FILE]

DATA: fashion-mnist, and a text file (*.txt) for the GPT. The three modes alternate. Prints a Markdown table: the
milliseconds that one checkpoint adds to the training (median over the rounds of the difference from the training
without checkpoints, with quartiles), and the fraction of the time that this is with one checkpoint per minute. The
checkpoint at the end of every training is not counted. Run it on an idle machine.
"""

import argparse
import os
import statistics
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import training  # noqa: E402
from results_file import write_results  # noqa: E402

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
TRAIN = "train: {precision: bf16, evaluate_every: never}\n"


def steps_in(trainer, seconds):
    short, long = (trainer.train(f"train.steps={steps}", *MODES["never"])[-1]["training_seconds"] for steps in (10, 40))
    return max(20, round(seconds * 30 / max(long - short, 1e-3)))


def measure(trainer, rounds, seconds, saves):
    steps = steps_in(trainer, seconds)
    every = max(1, steps // (saves + 1))
    costs = {"background": [], "foreground": []}
    for _ in range(rounds):
        took = {}
        for mode, options in MODES.items():
            interval = [] if mode == "never" else [f"train.checkpoint_every={every} steps"]
            took[mode] = trainer.train(f"train.steps={steps}", *options, *interval)[-1]["seconds"]
        for mode, found in costs.items():
            # A checkpoint at the last step is the final one, which every training has.
            found.append(1000 * (took[mode] - took["never"]) / ((steps - 1) // every))
    return {"steps": steps, "every": every, "costs_ms": costs}


def cells(costs):
    low, middle, high = statistics.quantiles(costs, n=4) if len(costs) > 1 else (costs[0],) * 3
    return f"{middle:.1f} ms ({low:.1f} to {high:.1f}), {middle / 600:.2f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("data", nargs="+")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS), metavar="NAME")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10, help="approximate duration of a training")
    parser.add_argument("--saves", type=int, default=10, help="approximate number of checkpoints of a training")
    parser.add_argument("--json", help="file for all results")
    arguments = parser.parse_args()
    results = {}
    print("| model | asynchronous | synchronous |\n|---|---|---|")
    for name in arguments.models:
        source = training.source_for(name.startswith("GPT"), arguments.data, validation=0.01)
        if source is None:
            parser.error(f"no data for {name}")
        with tempfile.TemporaryDirectory() as folder:
            trainer = training.Trainer(arguments.program, training.recipe_of(*MODELS[name], source, TRAIN), folder)
            results[name] = measure(trainer, arguments.rounds, arguments.seconds, arguments.saves)
        costs = results[name]["costs_ms"]
        print(f"| {name} | {cells(costs['background'])} | {cells(costs['foreground'])} |", flush=True)
    write_results(arguments.json, results)


if __name__ == "__main__":
    main()
