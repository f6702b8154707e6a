#!/usr/bin/env python3
"""Compares the batch size that `data.batch_size: auto` selects with the fastest of a fine grid.

    run.py PROGRAM [--only NAME ...] [--text FILE] [--rounds N]

For each model `gallop find-batch` runs as for `batch_size: auto`, but without measuring the noise scale. Then batch
sizes a factor of about 1.4 apart, from 8 to four times the one found, and the one found itself, are timed alternately
for several rounds; the best round of each counts. Prints JSON: the samples per second of each batch size, and the
fraction of the best that the batch size found reaches.
"""

import argparse
import json
import os
import subprocess
import tempfile

FASHION = """
data: {name: fashion-mnist}
model: %s
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
train: {precision: fp32, channels_last: %s}
"""
MODELS = {
    "mlp": FASHION % ("{name: mlp}", "false"),
    "resnet-8": FASHION % ("{name: resnet, depth: 8, stem: strided}", "true"),
    "vit": FASHION % ("{name: vit, patch: 4, width: 64, depth: 3, heads: 2}", "false"),
    "gpt": """
data: {name: text, path: "%s", context: 64}
model: {name: gpt, layers: 2, width: 64, heads: 2}
optimizer: {name: adamw, lr: 0.003}
train: {precision: fp32}
""",
}


def find(program, recipe, *words):
    command = [program, "find-batch", recipe, "--json", "--noise-steps", "0", "--step-seconds", "5", *words]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def time_of(program, recipe, batch):
    return find(program, recipe, "--min", str(batch), "--max", str(batch))["points"][0]["samples_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--only", nargs="*", default=["mlp", "resnet-8", "vit"])
    parser.add_argument("--text", help="a text file, for the GPT")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    for name in arguments.only:
        with tempfile.TemporaryDirectory() as folder:
            recipe = os.path.join(folder, "recipe.yaml")
            with open(recipe, "w") as file:
                file.write(MODELS[name] % arguments.text if name == "gpt" else MODELS[name])
            found = find(arguments.program, recipe, "--no-largest")
            batch = found["batch"]
            grid = {round(8 * 2 ** (half / 2)) for half in range(40)}
            grid = sorted({one for one in grid if one <= 4 * batch} | {batch})
            speeds = {one: 0.0 for one in grid}
            for _ in range(arguments.rounds):
                for one in grid:
                    speeds[one] = max(speeds[one], time_of(arguments.program, recipe, one))
        best = max(speeds, key=speeds.get)
        print(json.dumps({"model": name, "found": batch, "seconds": round(found["seconds"], 1), "best": best,
                          "share": round(speeds[batch] / speeds[best], 3),
                          "samples_per_second": {one: round(speed) for one, speed in speeds.items()}}), flush=True)


if __name__ == "__main__":
    main()
