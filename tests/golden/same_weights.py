#!/usr/bin/env python3
"""Trains every case with two builds and compares the final weights: a restructuring leaves each training bit-identical.

    same_weights.py OLD NEW [--only PATTERN] [--steps 12]

OLD and NEW are programs. The cases are the built-in recipes, with generated data of the same kind, and small trainings
that together use every model, precision, wrapper and parallel strategy, eager and compiled. Exit code: 0 all equal, 1
not.
"""

import argparse
import concurrent.futures
import fnmatch
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "chaos"), os.path.join(HERE, "..", "scenario")]
import kill  # noqa: E402
import make_data  # noqa: E402

SECONDS = 900  # Timeout of one training, on any machine.
MODEL = "model: {name: mlp, hidden: [48], dropout: 0.1}"
ADAMW = "optimizer: {name: adamw, lr: 0.003}"
IDX = "data: {name: mnist, path: idx, batch: 32, threads: 2}"
FOLDER = "data: {name: folder, path: folder, batch: 24, augment: [{flip: {}}, {crop: {padding: 2}}]}"
TAR = "data: {name: tar, path: tar, batch: 24}"
TEXT = "data: {name: text, path: text.txt, batch: 8, context: 32, validation: 0.1}"
GPT = "model: {name: gpt, layers: 2, width: 48, heads: 4, dropout: 0.1}"
RESNET = "model: {name: resnet, depth: 8, width: 0.5}"
TRAIN = "train: {precision: fp32, channels_last: 'false'}"

# Recipe text and overrides; every case has a fixed format, as a measured choice depends on the machine's load.
SMALL = {
    "mlp": ([IDX, MODEL, ADAMW, TRAIN], []),
    "resnet": ([FOLDER, RESNET, "optimizer: {name: sgd, lr: 0.05, momentum: 0.9, nesterov: true}", TRAIN], []),
    "vit": ([FOLDER, "model: {name: vit, patch: 4, depth: 2, width: 32, heads: 2}", ADAMW, TRAIN], []),
    "airbench": ([FOLDER, "model: {name: airbench, widths: [16, 24, 24]}", ADAMW, TRAIN], []),
    "gpt": ([TEXT, GPT, ADAMW, TRAIN], []),
    "tar": ([TAR, RESNET, ADAMW, TRAIN], []),
    "bf16": ([FOLDER, RESNET, ADAMW, TRAIN], ["train.precision=bf16", "train.channels_last=true"]),
    "bf16-weights": ([IDX, MODEL, ADAMW, TRAIN], ["train.precision=bf16-weights"]),
    "fp16": ([IDX, MODEL, ADAMW, TRAIN], ["train.precision=fp16"]),
    "clip": ([TEXT, GPT, ADAMW, TRAIN], ["train.clip=0.5"]),
    "accumulate": ([FOLDER, RESNET, ADAMW, TRAIN], ["train.accumulate=3"]),
    "smoothing": ([IDX, MODEL, ADAMW, TRAIN], ["train.label_smoothing=0.1"]),
    "sam": ([IDX, MODEL, ADAMW, TRAIN], ["train.sam=0.05"]),
    "spikes": ([IDX, MODEL, ADAMW, TRAIN], ["train.spikes.action=skip", "train.spikes.threshold=3"]),
    "recompute": ([TEXT, GPT, ADAMW, TRAIN], ["train.recompute.every=2"]),
    "wrappers": ([IDX, MODEL, "optimizer: {name: sgd, lr: 0.05, wrap: [{ema: {decay: 0.9}}]}", TRAIN], []),
    "ddp": ([IDX, MODEL, ADAMW, TRAIN], ["launch", "parallel.name=ddp"]),
    "deterministic": ([IDX, MODEL, ADAMW, TRAIN], ["launch", "parallel.name=deterministic"]),
}
FORMATS = (["train.precision=fp32", "train.channels_last=false"], ["train.precision=bf16", "train.channels_last=true"])


def make_inputs(folder):
    for name, make in (("idx", make_data.make_idx), ("folder", make_data.make_folder), ("tar", make_data.make_tar)):
        os.makedirs(os.path.join(folder, name))
        make(os.path.join(folder, name), 480)
    os.makedirs(os.path.join(folder, "large"))
    make_data.make_idx(os.path.join(folder, "large"), 2000, size=28)
    os.makedirs(os.path.join(folder, "photos"))
    make_data.make_folder(os.path.join(folder, "photos"), 1200, size=32, classes=10)
    rng = random.Random(4)
    words = ["".join(rng.choices("abcdefghij", k=rng.randrange(2, 8))) for _ in range(200)]
    with open(os.path.join(folder, "text.txt"), "w", encoding="utf-8") as file:
        file.write(" ".join(rng.choices(words, k=30000)))


def cases_of(steps):
    """(name, arguments, environment) of every training."""
    built_in = {"fashion-mnist": ["data.name=mnist", "data.path=large"], "fashion-mnist-airbench": ["data.name=mnist", "data.path=large"],
                "cifar10": ["data.path=photos"], "cifar10-airbench": ["data.path=photos"], "shakespeare": ["data.path=text.txt"]}
    for recipe, overrides in built_in.items():
        for form, format_of in enumerate(FORMATS):
            for compiled in ("false", "true"):
                few = max(6, steps // 2)
                yield (f"{recipe}.{('fp32', 'bf16')[form]}.{('eager', 'compiled')[compiled == 'true']}",
                       ["train", recipe, *overrides, *format_of, f"train.compile={compiled}", f"train.steps={few}", "train.evaluate_every=never"])
    for name, (lines, overrides) in SMALL.items():
        for compiled in ("false", "true"):
            starts = ["launch", "-n", "2", "train"] if "launch" in overrides else ["train"]
            words = [word for word in overrides if word != "launch"]
            yield (f"{name}.{('eager', 'compiled')[compiled == 'true']}",
                   [*starts, "recipe.yaml", *words, f"train.compile={compiled}", f"train.steps={steps}"], "\n".join(lines) + "\n")


def weights_of(program, words, recipe, inputs):
    with tempfile.TemporaryDirectory(prefix="gallop-golden-") as folder:
        for name in os.listdir(inputs):
            os.symlink(os.path.join(inputs, name), os.path.join(folder, name))
        with open(os.path.join(folder, "recipe.yaml"), "w", encoding="utf-8") as file:
            file.write(recipe)
        command = [program, *words, "train.threads=1", "--name", "run", "--quiet"]
        result = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS)
        if result.returncode != 0:
            return f"exit code {result.returncode}: {result.stderr.strip().splitlines()[-1:]}"
        return kill.weights_hash(os.path.join(folder, "runs", "run"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=os.path.abspath)
    parser.add_argument("new", type=os.path.abspath)
    parser.add_argument("--only", default="*")
    parser.add_argument("--steps", type=int, default=12)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gallop-golden-") as inputs, concurrent.futures.ThreadPoolExecutor(2) as pool:
        make_inputs(inputs)
        cases = [(case[0], case[1], case[2] if len(case) > 2 else "") for case in cases_of(arguments.steps)
                 if fnmatch.fnmatch(case[0], arguments.only)]
        futures = [[pool.submit(weights_of, program, words, recipe, inputs) for program in (arguments.old, arguments.new)]
                   for _, words, recipe in cases]
        failed = 0
        for (name, _, _), pair in zip(cases, futures):
            old, new = (future.result() for future in pair)
            same = old == new and not old.startswith("exit code")
            failed += not same
            print(f"{name:40} {old[:16]}  {'same' if same else f'DIFFERENT: {old} / {new}'}", flush=True)
    print(f"{len(cases) - failed} of {len(cases)} trainings have the same weights")
    sys.exit(failed > 0 or not cases)


if __name__ == "__main__":
    main()
