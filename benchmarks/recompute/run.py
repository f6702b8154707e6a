#!/usr/bin/env python3
"""Measures memory and step time with activation checkpointing (`train.activation_checkpointing.every`).

    run.py PROGRAM [--only NAME ...] [--every N ...] [--rounds N]

Times each model with no block (0), every fourth, every second and every block recomputed, alternately for several
rounds, each in its own process. Prints JSON: for each `every` the median milliseconds of a step, their ratio to those
without checkpointing, the peak memory of the process in MiB, and its excess over a process with a batch of one sample.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile

RECIPE = """
data: {name: fashion-mnist}
model: %s
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
train: {precision: fp32, channels_last: %s}
"""
MODELS = {
    "resnet-20": (RECIPE % ("{name: resnet, depth: 20}", "true"), 128),
    "vit": (RECIPE % ("{name: vit, patch: 4, width: 128, depth: 8, heads: 4}", "false"), 128),
    "mlp": (RECIPE % ("{name: mlp, hidden: [1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024]}", "false"), 4096),
}


def measure(program, recipe, batch, every):
    command = [program, "find-batch", recipe, "--json", "--noise-steps", "0", "--no-largest", "--min", str(batch),
               "--max", str(batch), f"train.activation_checkpointing.every={every}"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["points"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--only", nargs="*", default=list(MODELS))
    parser.add_argument("--every", nargs="*", type=int, default=[0, 4, 2, 1])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    every_of = sorted({0, *arguments.every})
    for name in arguments.only:
        text, batch = MODELS[name]
        with tempfile.TemporaryDirectory() as folder:
            recipe = os.path.join(folder, "recipe.yaml")
            with open(recipe, "w") as file:
                file.write(text)
            least = measure(arguments.program, recipe, 1, 0)["bytes"]
            times, peaks = {every: [] for every in every_of}, {every: [] for every in every_of}
            for _ in range(arguments.rounds):
                for every in every_of:
                    point = measure(arguments.program, recipe, batch, every)
                    times[every].append(1000 * batch / point["samples_per_second"])
                    peaks[every].append(point["bytes"])
        without = statistics.median(times[0])
        print(json.dumps({"model": name, "batch": batch, "every": {
            every: {"milliseconds": round(statistics.median(times[every]), 1),
                    "of_without": round(statistics.median(times[every]) / without, 2),
                    "mib": round(statistics.median(peaks[every]) / 2**20),
                    "mib_of_batch": round((statistics.median(peaks[every]) - least) / 2**20)}
            for every in every_of}}), flush=True)


if __name__ == "__main__":
    main()
