#!/usr/bin/env python3
"""Trains every model and optimizer on a real GPU, eager and compiled, in every precision.

    train.py PROGRAM [--jobs 8] [--only REGEX]

Each training must learn; compiled steps are compared with eager ones; a training that is stopped and resumed must be
bit-identical to an uninterrupted one; four trials of a search share the GPU. Skipped (77) without a GPU.
"""

import argparse
import concurrent.futures
import hashlib
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "scenario"))
import make_data

ARCHIVE = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "exported" / "nets" / "normed.pt2"
SKIPPED = 77
STEPS = 40
OPTIMIZERS = ("sgd", "sgdw", "adagrad", "adadelta", "rmsprop", "adam", "adamw", "nadam", "radam", "adamax", "lion", "lars", "lamb",
              "adafactor", "muon", "schedule-free-sgd", "schedule-free-adamw")
MODELS = {
    "mlp": "{name: mlp, hidden: [64, 32], dropout: 0.1}",
    "resnet": "{name: resnet, depth: 8, stem: cifar}",
    "airbench": "{name: airbench, widths: [16, 32, 32]}",
    "vit": "{name: vit, patch: 4, width: 64, depth: 2, heads: 2, dropout: 0.1}",
    "gpt": "{name: gpt, layers: 2, width: 64, heads: 2, dropout: 0.1}",
    "exported": f"{{name: exported, file: {ARCHIVE}}}",
}
PRECISIONS = ("fp32", "tf32", "bf16", "fp16", "bf16-weights", "fp8")
WITHOUT_FP8 = ("resnet", "airbench", "exported")  # They have no linear layer for it.


class Failure(Exception):
    pass


class Gpu:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        make_data.make(str(folder), ["idx", "images", "2048"])
        make_data.make(str(folder), ["text", "text", "2000"])
        for model, optimizer in itertools.product(MODELS, OPTIMIZERS):
            data = (f"{{name: text, path: {folder}/text/text.txt, batch_size: 16, context: 32, validation: 0.1}}" if model == "gpt" else
                    f"{{name: mnist, path: {folder}/images, batch_size: 64}}")
            pathlib.Path(self.recipe(model, optimizer)).write_text(
                f"data: {data}\nmodel: {MODELS[model]}\noptimizer: {{name: {optimizer}}}\n"
                f"train: {{device: cuda, steps: {STEPS}, evaluate_every: never, checkpoint_every: never}}\n")

    def recipe(self, model, optimizer="adamw"):
        return str(self.folder / f"{model}-{optimizer}.yaml")

    def run(self, *words):
        done = subprocess.run([self.program, *words], capture_output=True, text=True, cwd=self.folder, timeout=300,
                              env={**os.environ, "OMP_NUM_THREADS": "1"})
        if done.returncode != 0 or "falls back" in done.stderr or "not compiled" in done.stderr:
            raise Failure(f"{' '.join(words)}: exit code {done.returncode}: {done.stderr.strip()[-600:]}")
        return done.stdout

    def losses(self, recipe, *options):
        text = self.run("train", recipe, "--json", "--runs", str(self.folder / "runs"), *options)
        return [event["loss"] for event in map(json.loads, text.splitlines()) if event["event"] == "step"]

    def learns(self, recipe, *options):
        losses = self.losses(recipe, *options)
        if not all(loss is not None and loss == loss for loss in losses):
            raise Failure(f"{options}: a loss is not finite: {losses}")
        if not losses[-1] < 1.05 * losses[0]:
            raise Failure(f"{options}: the loss goes from {losses[0]} to {losses[-1]}")
        return losses


def precisions(gpu, model, precision):
    options = (f"--train.precision={precision}",)
    plain = gpu.learns(gpu.recipe(model), *options, "--train.compile=false")
    compiled = gpu.learns(gpu.recipe(model), *options, "--train.compile=verify")
    # Later losses depend on the rounding of earlier steps.
    if abs(plain[0] - compiled[0]) > 0.02 * plain[0]:
        raise Failure(f"the first loss is {plain[0]}, compiled {compiled[0]}")


def skips_overflows(gpu, compiled):
    """The loss scale is too large at first, and halved by each overflow."""
    gpu.learns(gpu.recipe("mlp"), "--train.precision=fp16", "--train.loss_scale.initial=1e10", f"--train.compile={compiled}")


def optimizers(gpu, name):
    for precision in ("fp32", "bf16"):
        gpu.losses(gpu.recipe("mlp", name), f"--train.precision={precision}", "--train.compile=verify")


def first_steps_are_those_of_the_cpu(gpu, model):
    recipe = gpu.recipe(model, "sgd")
    options = ("--train.precision=fp32", "--train.steps=3")
    here, there = gpu.losses(recipe, *options), gpu.losses(recipe, *options, "--train.device=cpu")
    if any(abs(a - b) > 1e-3 * abs(b) for a, b in zip(here, there)):
        raise Failure(f"losses are {here}, and {there} on the CPU")


def weights(folder):
    step = folder / "checkpoints" / f"step-{STEPS:08}"
    return [hashlib.sha256((step / name).read_bytes()).hexdigest() for name in ("model.safetensors", "state.safetensors")]


def resumes_bit_for_bit(gpu, model, compiled):
    runs = gpu.folder / "resumed"
    recipe = gpu.recipe(model)
    # "auto" measures which format is faster, and two runs may choose differently.
    options = ("--quiet", "--runs", str(runs), "--train.precision=bf16", "--train.channels_last=false", f"--train.compile={compiled}",
               "--train.checkpoint_every=20 steps")
    names = [f"{part}-{model}-{compiled}" for part in ("whole", "twin", "cut")]
    for name in names:
        gpu_options = (*options, "--name", name)
        if name.startswith("cut"):
            gpu.run("train", recipe, *gpu_options, "--until", "20 steps")
            gpu.run("train", "--resume", name, "--runs", str(runs), "--quiet")
        else:
            gpu.run("train", recipe, *gpu_options)
    found = [weights(runs / name) for name in names]
    if found[1] != found[0] or found[2] != found[0]:
        raise Failure(f"whole, whole again, resumed: {found}")


def options_of_a_step(gpu, *options):
    for model, compiled in itertools.product(("resnet", "gpt"), ("false", "true")):
        # A compiled step does not repeat the dropout of LibTorch's attention.
        own = ("--model.dropout=0",) if model == "gpt" and "activation_checkpointing" in options[0] else ()
        gpu.learns(gpu.recipe(model), f"--train.compile={compiled}", *options, *own)


def trials_share_the_gpu(gpu):
    sweep = gpu.folder / "sweep.yaml"
    sweep.write_text(f"recipe: {gpu.recipe('resnet')}\nmetric: accuracy\noptions: {{train.evaluate_every: 20 steps}}\n"
                     "parameters:\n  optimizer.lr: {min: 0.001, max: 0.1, scale: log}\ntrials: 8\n")
    gpu.run("tune", str(sweep), "--workers", "4", "--gpus", "0", "--quiet")
    best = gpu.run("tune", "export", "sweep", "--json", "-")
    states = [trial["state"] for trial in json.loads(best)["trials"]]
    if states != ["complete"] * 8:
        raise Failure(f"trials are {states}")


def checks():
    for model, precision in itertools.product(MODELS, PRECISIONS):
        if precision != "fp8" or model not in WITHOUT_FP8:
            yield f"{model} in {precision}", precisions, (model, precision)
    for name in OPTIMIZERS:
        yield f"optimizer {name}", optimizers, (name,)
    for model in ("mlp", "resnet", "gpt", "exported"):
        for compiled in ("false", "true"):
            yield f"{model} resumed, compiled {compiled}", resumes_bit_for_bit, (model, compiled)
    for model in ("resnet", "airbench"):
        yield f"first steps of {model}", first_steps_are_those_of_the_cpu, (model,)
    for option in ("gradient_accumulation=2", "activation_checkpointing.every=1", "sam=0.05", "clip_grad_norm=1", "clip_value=0.1", "clip_adaptive=0.01",
                   "label_smoothing=0.1"):
        yield option, options_of_a_step, (f"--train.{option}",)
    for compiled in ("false", "true"):
        yield f"overflows, compiled {compiled}", skips_overflows, (compiled,)
    yield "trials share the GPU", trials_share_the_gpu, ()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--only", default="", help="regular expression of names of checks")
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.program)
    env = subprocess.run([program, "env"], capture_output=True, text=True, check=True).stdout
    if not any(line.split() == ["gpu", "NVIDIA,", "usable"] for line in env.splitlines()):
        print("skipped: no GPU that can be used")
        return SKIPPED
    failed = 0
    with tempfile.TemporaryDirectory(prefix="gallop-gpu-") as folder, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        gpu = Gpu(program, pathlib.Path(folder))
        running = [(name, pool.submit(check, gpu, *words)) for name, check, words in checks() if re.search(arguments.only, name)]
        for name, result in running:
            error = result.exception()
            failed += error is not None
            print(f"passed  {name}" if error is None else f"FAILED  {name}: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
