#!/usr/bin/env python3
"""Tests that profiles agree with the time of steps that are not profiled, for compiled and eager steps.

    agreement.py PROGRAM [--window STEPS] [--profiles N] [--within FRACTION] [--only NAME] [--json FILE]

A training repeats four windows of as many steps: two in which the last profile is evaluated in the background, one
without a profiler, and one that is profiled. Prints the median and the range of the ratios of a step in
the profile, which is the sum of its phases, to the time of a step in the window without a profiler before it. Exit code:
0 if all medians are within FRACTION (0.03) of 1, else 1. Needs an idle machine.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from results_file import write_results  # noqa: E402
from training import Trainer  # noqa: E402

WINDOWS = 4
RECIPE = """
data: {name: fake-images, shape: [3, 32, 32], samples: 4000, batch_size: %d}
model: %s
optimizer: {name: sgd, lr: 0.01, momentum: 0.9}
train: {precision: fp32, channels_last: true, compile: %s, checkpoint_every: never}
"""
MODELS = {"mlp": (256, "{name: mlp, hidden: [1024, 1024]}"), "resnet": (32, "{name: resnet, depth: 8}")}
RECIPES = {f"{model}-{'compiled' if compiled == 'true' else 'eager'}": RECIPE % (*MODELS[model], compiled)
           for model in MODELS for compiled in ("true", "false")}


def ratios_of(program, recipe, window, profiles):
    every = WINDOWS * window
    with tempfile.TemporaryDirectory(prefix="gallop-agreement-") as folder:
        events = Trainer(program, recipe, folder).train(f"train.steps={every * profiles}", f"train.evaluate_every={window} steps",
                                                        f"profile.every={every} steps", f"profile.steps={window}", "profile.keep=all")
        # Seconds of the training, without evaluations, by step.
        seconds = {event["step"]: event["training_seconds"] for event in events if event["event"] == "evaluation"}
        ratios = []
        for end in range(every, every * profiles + 1, every):
            with open(os.path.join(events[-1]["run_folder"], "profiles", f"step-{end}.json"), encoding="utf-8") as file:
                profile = json.load(file)
            step_ms = sum(phase["ms"] for phase in profile["phases"] if phase["name"] != "evaluation")
            plain = (seconds[end - window] - seconds[end - 2 * window]) / window
            ratios.append(step_ms / 1000 / plain)
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--window", type=int, default=50)
    parser.add_argument("--profiles", type=int, default=9)
    parser.add_argument("--within", type=float, default=0.03)
    parser.add_argument("--only", choices=list(RECIPES))
    parser.add_argument("--json", help="write the results to this file")
    arguments = parser.parse_args()
    results = {}
    for name, recipe in RECIPES.items():
        if arguments.only not in (None, name):
            continue
        ratios = ratios_of(arguments.program, recipe, arguments.window, arguments.profiles)
        results[name] = {"ratio": statistics.median(ratios), "range": [min(ratios), max(ratios)]}
        print(f"{name:16} x {results[name]['ratio']:.4f} ({min(ratios):.4f} to {max(ratios):.4f})", flush=True)
    write_results(arguments.json, results)
    return 0 if all(abs(one["ratio"] - 1) <= arguments.within for one in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
