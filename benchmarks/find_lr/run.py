#!/usr/bin/env python3
"""How near the rates that `gallop find-lr` suggests come to the best of a grid.

    run.py PROGRAM [--only NAME ...] [--text FILE]

Five problems are trained at rates a factor of 2 apart, and at what each rule suggests. Prints JSON: for each problem the
metric at each rate, and for each rule its rate, its metric, and how much that is worse than the best of the grid, as
a share of it (accuracy: of the accuracy; text: of the loss).
"""

import argparse
import json
import os
import subprocess
import tempfile

FASHION = """
data: {name: fashion-mnist, batch: 128}
train: {precision: fp32, channels_last: false, epochs: %d}
schedule: {name: cosine}
model: %s
optimizer: %s
"""
SGD = "{name: sgd, momentum: 0.9, nesterov: true}"
VIT = "{name: vit, patch: 4, width: 64, depth: 3, heads: 2}"
PROBLEMS = {
    "mlp, sgd": FASHION % (2, "{name: mlp}", SGD),
    "mlp, adamw": FASHION % (2, "{name: mlp}", "{name: adamw}"),
    "resnet, sgd": FASHION % (1, "{name: resnet, depth: 8, stem: strided}", SGD),
    "vit, adamw": FASHION % (1, VIT, "{name: adamw}"),
    "gpt, adamw": """
data: {name: text, path: "%s", context: 64, batch: 16}
train: {precision: fp32, steps: 400}
schedule: {name: cosine, warmup: 0.05}
model: {name: gpt, layers: 2, width: 64, heads: 2}
optimizer: {name: adamw}
""",
}


def run(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def train(program, recipe, lr, folder):
    lines = run([program, "train", recipe, f"optimizer.lr={lr}", "train.on_nonfinite=skip", "--json", "--runs", folder])
    return json.loads(lines.splitlines()[-1])["last"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--only", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--text", help="a text file, for the GPT")
    arguments = parser.parse_args()
    for name in arguments.only:
        is_text = name.startswith("gpt")
        with tempfile.TemporaryDirectory() as folder:
            recipe = os.path.join(folder, "recipe.yaml")
            with open(recipe, "w") as file:
                file.write(PROBLEMS[name] % arguments.text if is_text else PROBLEMS[name])
            found = json.loads(run([arguments.program, "find-lr", recipe, "--json"]))

            def metric(lr):
                last = train(arguments.program, recipe, lr, folder)
                return last["loss"] if is_text else last["accuracy"]

            low = -13 if "sgd" in name else -15
            grid = {2.0**power: metric(2.0**power) for power in range(low, low + 14)}
            best = min(grid.values()) if is_text else max(grid.values())
            rules = {}
            for rule, lr in found["suggestions"].items():
                value = metric(lr)
                worse = (value - best if is_text else best - value) / best
                rules[rule] = {"lr": lr, "metric": value, "worse": round(worse, 4)}
        print(json.dumps({"problem": name, "best": best, "rules": rules, "range": found.get("range"), "grid": grid}), flush=True)


if __name__ == "__main__":
    main()
