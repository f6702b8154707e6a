#!/usr/bin/env python3
"""Trains a recipe with several seeds and reports the final metrics and the training time.

    run.py PROGRAM [--seeds 3] RECIPE [OVERRIDE ...]

For example: run.py build/gallop --seeds 3 cifar10 data.path=/data/cifar10-jpeg Training seconds exclude evaluations and
checkpoints; total seconds are those of the whole process. Prints one JSON object per seed and one with the extremes.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time


def train(program, arguments, seed, folder):
    begin = time.monotonic()
    command = [program, "train", *arguments, f"train.seed={seed}", "--json", "--runs", folder]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    end = json.loads(output.strip().splitlines()[-1])
    return {"seed": seed, "accuracy": end["last"]["accuracy"], "loss": end["last"]["loss"],
            "part": end["last"]["part"], "training_seconds": round(end["training_seconds"], 1),
            "total_seconds": round(time.monotonic() - begin, 1), "steps": end["steps"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("recipe", nargs="+")
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.program)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, arguments.seeds + 1):
            results.append(train(program, arguments.recipe, seed, folder))
            print(json.dumps(results[-1]), flush=True)
    print(json.dumps({"recipe": arguments.recipe,
                      "lowest_accuracy": min(r["accuracy"] for r in results),
                      "highest_loss": max(r["loss"] for r in results),
                      "longest_training_seconds": max(r["training_seconds"] for r in results),
                      "longest_total_seconds": max(r["total_seconds"] for r in results)}))


if __name__ == "__main__":
    main()
