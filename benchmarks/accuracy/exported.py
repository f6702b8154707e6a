#!/usr/bin/env python3
"""Trains recipes with a built-in model and with the same model exported from PyTorch, and compares the results.

    exported.py PROGRAM [--cifar10 PATH] [--shakespeare PATH] [--seeds 3] [OVERRIDE ...]

For example: exported.py build/release/gallop --cifar10 /data/cifar10-jpeg --shakespeare /data/shakespeare.txt
Trains ResNet-20 by the recipe cifar10 and a GPT with 6 layers of width 256 by the recipe shakespeare. The models of
PyTorch are those of ../step/torch_step.py, exported by tools/gallop_export.py with the initial weights of the same
seed. Prints one JSON object per run, as run.py does, and for each recipe one with the means of both models over the
seeds. Needs a Python with torch (this one).
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "step")]
import run  # noqa: E402
from export import export  # noqa: E402

BUILT_IN = {"cifar10": "model={name: resnet, depth: 20}",
            "shakespeare": "model={name: gpt, layers: 6, width: 256, heads: 8}"}
WORKLOADS = {"cifar10": "resnet20", "shakespeare": "gpt"}


def compare(program, recipe, overrides, seeds):
    results = {"built-in": [], "exported": []}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, seeds + 1):
            file = os.path.join(folder, f"{seed}.pt2")
            export(WORKLOADS[recipe], file, seed)
            models = {"built-in": BUILT_IN[recipe], "exported": f"model={{name: exported, file: {file}}}"}
            for name, model in models.items():
                result = run.train(program, [recipe, *overrides, model], seed, folder)
                results[name].append(result)
                print(json.dumps({"model": name, **result}), flush=True)
    mean = lambda name, field: round(statistics.mean(result[field] for result in results[name]), 4)
    print(json.dumps({"recipe": recipe, "seeds": seeds,
                      **{name: {field: mean(name, field) for field in ("accuracy", "loss", "training_seconds")}
                         for name in results}}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--cifar10", help="folder or archive of the images")
    parser.add_argument("--shakespeare", help="file of the text")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("overrides", nargs="*", help="options of both recipes")
    arguments = parser.parse_intermixed_args()
    for recipe in BUILT_IN:
        if path := getattr(arguments, recipe):
            compare(os.path.abspath(arguments.program), recipe,
                    [f"data.path={os.path.abspath(path)}", *arguments.overrides], arguments.seeds)


if __name__ == "__main__":
    main()
