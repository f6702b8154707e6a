#!/usr/bin/env python3
"""What each technique is worth at the same budget of seconds.

    run.py PROGRAM DATA [--seconds 30] [--seeds 3] [--only NAME ...] [--json FILE]

DATA is fashion-mnist, or a folder of classes with images. A plain recipe (a small residual network, SGD at a constant
rate) is trained, then the same with one technique at a time, each for as many steps as fit into the
budget: those of a short training are timed first, so that what costs time pays for it. Prints a Markdown table of
the test accuracies, mean and standard deviation over the seeds, and the difference from the plain recipe
with its standard error. Run it on a machine that does nothing else.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import tempfile

TIMED_STEPS = 60  # After the first ones, in which formats are measured and the step is compiled.

PLAIN = """
data: {%s, batch: 128}
model: {name: resnet, depth: 14, stem: strided}
optimizer: {%s}
train: {evaluate_every: never, checkpoint_every: never}
"""
SGD = "name: sgd, lr: 0.1, momentum: 0.9"
# Lists of words for the command line.
TECHNIQUES = {
    "fp32 instead of bf16": ["train.precision=fp32"],
    "NCHW instead of channels_last": ["train.channels_last=false"],
    "not compiled": ["train.compile=false"],
    "batch 32, rate 0.025": ["data.batch=32", "optimizer.lr=0.025"],
    "batch 512, rate 0.4": ["data.batch=512", "optimizer.lr=0.4"],
    "weight decay 5e-4": ["optimizer.weight_decay=5e-4"],
    "Nesterov": ["optimizer.nesterov=true"],
    "cosine": ["schedule.name=cosine"],
    "warm-up and cosine": ["schedule.name=cosine", "schedule.warmup=0.1"],
    "one-cycle, rate 0.4": ["schedule.name=one-cycle", "optimizer.lr=0.4"],
    "wsd": ["schedule.name=wsd"],
    "rate found by find-lr, one-cycle": ["schedule.name=one-cycle", "optimizer.lr=auto"],
    "AdamW 2e-3, cosine": ["optimizer.name=adamw", "optimizer.lr=2e-3", "schedule.name=cosine"],
    "Lion 3e-4, cosine": ["optimizer.name=lion", "optimizer.lr=3e-4", "schedule.name=cosine"],
    "Muon 0.02, cosine": ["optimizer.name=muon", "optimizer.lr=0.02", "schedule.name=cosine"],
    "schedule-free SGD, rate 1": ["optimizer.name=schedule-free-sgd", "optimizer.lr=1"],
    "flip": ["data.augment=[flip]"],
    "alternating flip": ["data.augment=[{flip: {mode: alternating}}]"],
    "crop of 2": ["data.augment=[{crop: {padding: 2, mode: reflect}}]"],
    "label smoothing 0.1": ["train.label_smoothing=0.1"],
    "clipping at 1": ["train.clip=1"],
    "sharpness-aware, 0.05": ["train.sam=0.05"],
    "zero-initialized blocks": ["model.zero_init_residual=true"],
    "twice as wide": ["model.width=2"],
    "20 layers": ["model.depth=20"],
}


class Trainer:
    def __init__(self, program, data, folder):
        self.program, self.folder = program, folder
        self.source = "name: fashion-mnist"
        if data != "fashion-mnist":
            self.source = f"name: folder, path: {json.dumps(os.path.abspath(data))}"

    def write_recipe(self, words):
        """Another optimizer on the command line does not have the options of SGD."""
        changed = any(word.startswith("optimizer.name=") for word in words)
        path = os.path.join(self.folder, "recipe.yaml")
        with open(path, "w") as file:
            file.write(PLAIN % (self.source, "name: sgd" if changed else SGD))
        return path

    def train(self, words, steps, seed):
        command = [self.program, "train", self.write_recipe(words), *words, f"train.steps={steps}", f"train.seed={seed}", "--json",
                   "--runs", self.folder]
        output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        return json.loads(output.strip().splitlines()[-1])

    def seconds_a_step(self, words):
        """From two lengths, so that what happens once does not count."""
        short, long = (self.train(words, steps, 1)["training_seconds"] for steps in (TIMED_STEPS, 3 * TIMED_STEPS))
        return (long - short) / (2 * TIMED_STEPS)

    def measure(self, name, words, budget, seeds):
        steps = max(1, round(budget / self.seconds_a_step(words)))
        ends = [self.train(words, steps, seed) for seed in range(1, seeds + 1)]
        accuracies = [end["last"]["accuracy"] for end in ends]
        return {"technique": name, "overrides": words, "steps": steps, "accuracies": accuracies,
                "mean": statistics.mean(accuracies), "deviation": statistics.stdev(accuracies) if seeds > 1 else 0.0,
                "training_seconds": [round(end["training_seconds"], 1) for end in ends]}


def table(results):
    plain = results[0]
    yield "| technique | steps | accuracy, % | against plain |"
    yield "|---|---|---|---|"
    for result in results:
        difference = ""
        if result is not plain:
            count = len(result["accuracies"])
            error = math.sqrt((result["deviation"] ** 2 + plain["deviation"] ** 2) / count)
            difference = f"{100 * (result['mean'] - plain['mean']):+.2f} ± {100 * error:.2f}"
        yield (f"| {result['technique']} | {result['steps']} | {100 * result['mean']:.2f} ± {100 * result['deviation']:.2f} "
               f"| {difference} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("data")
    parser.add_argument("--seconds", type=float, default=30, help="of training, evaluation left out")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=list(TECHNIQUES), default=list(TECHNIQUES), metavar="NAME")
    parser.add_argument("--json", help="file for all results")
    arguments = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(os.path.abspath(arguments.program), arguments.data, folder)
        for name, words in [("plain", []), *((name, TECHNIQUES[name]) for name in arguments.only)]:
            results.append(trainer.measure(name, words, arguments.seconds, arguments.seeds))
            print(json.dumps(results[-1]), flush=True)
    print("\n".join(table(results)))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
