#!/usr/bin/env python3
"""Measures what profiles during a run cost.

    overhead.py PROGRAM [--every STEPS] [--profiles N] [--rounds N] [--only NAME] [--json FILE]

Trains each recipe with and without `profile.every`, alternately, and prints the median and the range of the ratios of
their seconds: of the training alone, and of the whole process with the measurement of the machine's peaks. Final weights
must be equal. Needs an idle machine.
"""

import argparse
import glob
import hashlib
import os
import statistics
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from results_file import write_results  # noqa: E402
from training import Trainer  # noqa: E402

DATA = "data: {name: fake-images, shape: [3, 32, 32], samples: 20000, batch_size: %d}\n"
TRAIN = "train: {precision: fp32, channels_last: %s, compile: true, evaluate_every: never, checkpoint_every: never}\n"
RECIPES = {
    "mlp": DATA % 64 + "model: {name: mlp, hidden: [256, 256]}\noptimizer: {name: adamw, lr: 0.001}\n" + TRAIN % "false",
    "resnet": DATA % 16 + "model: {name: resnet, depth: 8}\noptimizer: {name: sgd, lr: 0.1, momentum: 0.9}\n" + TRAIN % "true",
    "eager": (DATA % 64 + "model: {name: mlp, hidden: [256, 256]}\noptimizer: {name: adamw, lr: 0.001}\n" +
              (TRAIN % "false").replace("compile: true", "compile: false")),
}


def weights_of(folder):
    """The checksum of the weights of the last checkpoint."""
    files = sorted(glob.glob(os.path.join(folder, "checkpoints", "step-*", "model.safetensors")))
    with open(files[-1], "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def measure(program, recipe, every, profiles, rounds):
    ends = {True: [], False: []}
    with tempfile.TemporaryDirectory(prefix="gallop-overhead-") as folder:
        trainer = Trainer(program, recipe, folder)
        weights = set()
        for i in range(rounds + 1):
            for profiled in ((True, False), (False, True))[i % 2]:
                options = [f"train.steps={every * profiles}"] + ([f"profile.every={every} steps"] if profiled else [])
                end = trainer.train(*options)[-1]
                weights.add(weights_of(end["run_folder"]))
                if profiled and len(glob.glob(os.path.join(end["run_folder"], "profiles", "*.json"))) != profiles:
                    sys.exit("profiles are missing")
                if i > 0:  # The first round fills caches.
                    ends[profiled].append(end)
        if len(weights) != 1:
            sys.exit("final weights differ")
    result = {}
    for name in ("training_seconds", "seconds"):
        ratios = [with_[name] / without[name] for with_, without in zip(ends[True], ends[False])]
        result[name] = {"ratio": statistics.median(ratios), "range": [min(ratios), max(ratios)],
                        "without": statistics.median(end[name] for end in ends[False])}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--every", type=int, default=1000)
    parser.add_argument("--profiles", type=int, default=3, help="length of a run, in intervals")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=list(RECIPES))
    parser.add_argument("--json", help="write the results to this file")
    arguments = parser.parse_args()
    results = {}
    for name, recipe in RECIPES.items():
        if arguments.only not in (None, name):
            continue
        results[name] = result = measure(arguments.program, recipe, arguments.every, arguments.profiles, arguments.rounds)
        for kind, one in result.items():
            print(f"{name:8} {kind:17} {one['without']:8.2f} s without, x {one['ratio']:.4f} ({one['range'][0]:.4f} to {one['range'][1]:.4f}) with")
    write_results(arguments.json, results)


if __name__ == "__main__":
    main()
