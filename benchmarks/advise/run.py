#!/usr/bin/env python3
"""Plants bottlenecks in trainings, and checks the advice of `gallop profile` by following it.

    run.py PROGRAM [--only REGEX] [--steps N] [--json FILE]

Each case is a recipe with one thing wrong. The first advice must be the rule that the case names; then it is followed, and
the gain in samples per second is compared with the prediction. Healthy trainings must get no advice with an expected
gain of more than 5 %. Cases whose data are missing are left out: --shards is a folder of WebDataset shards, --text a
text file; the exported models need torch, and the photographs Pillow, in this Python. Needs an idle machine.
"""

import argparse
import contextlib
import dataclasses
import importlib.util
import itertools
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))
from results_file import write_results  # noqa: E402

NUMBERS = "data: {name: fake-images, shape: [3, 32, 32], samples: 20000, batch_size: %d}\n"
MLP = NUMBERS % 64 + "model: {name: mlp, hidden: [256, 256]}\noptimizer: {name: adamw, lr: 0.001}\n"
WIDE = NUMBERS % 64 + "model: {name: mlp, hidden: [2048, 2048]}\noptimizer: {name: adamw, lr: 0.001}\n"
RESNET = NUMBERS % 64 + "model: {name: resnet, depth: 20}\noptimizer: {name: sgd, lr: 0.1, momentum: 0.9}\n"
GPT = ("data: {name: text, path: TEXT, context: 128, batch_size: 16}\n"
       "model: {name: gpt, layers: 4, width: 256, heads: 4}\noptimizer: {name: adamw, lr: 0.001}\n")
SMALL = "model: {name: mlp, hidden: [64]}\noptimizer: {name: sgd, lr: 0.01}\n"
SHARDS = ("data: {name: tar, path: SHARDS, image_size: 32, batch_size: 64, in_memory: 'no', "
          "augment: [random-horizontal-flip]}\n" + SMALL)
# With few samples, later epochs than the first are what is profiled, as data.in_memory is advised for those, and files
# are in the page cache.
FEW = SHARDS.replace("SHARDS", "FEW")
PHOTOGRAPHS = "data: {name: folder, path: PHOTOGRAPHS, image_size: 32, batch_size: 32, in_memory: 'no'}\n" + SMALL
LAYERS = NUMBERS % 64 + "model: {name: layers, layers: [%s]}\noptimizer: {name: sgd, lr: 0.1, momentum: 0.9}\n"
BIASES = LAYERS % ("{repeat: {times: 4, layers: [{conv: {channels: 32, kernel: 3, bias: true}}, batch-norm, relu]}}, "
                   "global-avg-pool, {linear: 10}")
ODD = LAYERS % ("{conv: {channels: %d, kernel: 3}}, relu, {conv: {channels: %d, kernel: 3}}, relu, "
                "{conv: {channels: %d, kernel: 3}}, relu, global-avg-pool, {linear: 10}")
POINTWISE = LAYERS % ("{conv: {channels: 16, kernel: 1}}, {repeat: {times: 8, layers: [batch-norm, silu]}}, "
                      "global-avg-pool, {linear: 10}")
EXPORTED = NUMBERS % 64 + "model: {name: exported, file: ARCHIVE%s}\noptimizer: {name: sgd, lr: 0.1, momentum: 0.9}\n"
RIGHT = ("train.precision=bf16", "train.channels_last=true", "train.compile=true")


@dataclasses.dataclass
class Case:
    recipe: str
    options: tuple
    expected: str | None  # The rule that must come first; None: a healthy training.
    better: str = ""  # The recipe that the advice leads to, where it has no options.
    loops: int = 0  # Busy loops beside the training.
    processes: int = 1  # The last of several shares its core with the busy loops.
    slow_disk: int = 0  # Microseconds of each read.
    archive: str = "plain"  # The exported model that the recipe names.


CASES = {
    "one-thread": Case(RESNET, (*RIGHT, "train.threads=1"), "idle-cores"),
    "too-many-threads": Case(RESNET, (*RIGHT, "train.threads=16"), "too-many-threads"),
    "fp32": Case(RESNET, ("train.precision=fp32", *RIGHT[1:]), "low-precision"),
    "fp32-gpt": Case(GPT, ("train.precision=fp32", "train.compile=true"), "low-precision"),
    "nchw": Case(RESNET, ("train.precision=fp32", "train.channels_last=false", "train.compile=true"),
                 "memory-format|low-precision"),
    "eager": Case(MLP, ("train.precision=bf16", "train.compile=false", "data.batch_size=512"), "eager-steps"),
    "tiny-batch": Case(MLP, ("train.precision=fp32", "data.batch_size=2"), "small-batch|optimizer-share"),
    "optimizer": Case(WIDE, ("train.precision=fp32", "data.batch_size=8"), "small-batch|optimizer-share"),
    "evaluation": Case(WIDE, ("train.precision=bf16", "data.batch_size=2048", "train.evaluate_every=1 steps",
                              "data.validation=0.5"), "evaluation-share"),
    "checkpoint": Case(WIDE, ("train.precision=fp32", "train.checkpoint_every=1 steps",
                              "train.checkpoint_in_background=false"), "checkpoint-share"),
    "verification": Case(RESNET, (*RIGHT[:2], "train.compile=verify"), "verification"),
    "recomputation": Case(GPT, ("train.precision=bf16", "train.compile=true",
                                "train.activation_checkpointing.every=1"), "recomputation"),
    "micro-batches": Case(RESNET, (*RIGHT, "train.gradient_accumulation=16"), "micro-batches"),
    "one-loader-thread": Case(PHOTOGRAPHS, ("data.threads=1", "train.precision=fp32", "train.threads=1"), "data-wait"),
    "loader-in-training-thread": Case(PHOTOGRAPHS, ("data.threads=0", "train.precision=fp32"), "loader-in-training-thread"),
    "slow-disk": Case(FEW, ("data.threads=2", "train.precision=fp32"), "data-wait", slow_disk=2000),
    "slow-decoding": Case(PHOTOGRAPHS, ("data.threads=2", "train.precision=fp32"), "data-wait"),
    "bias-before-norm": Case(BIASES, RIGHT, "bias-before-norm"),
    "unused-branch": Case(EXPORTED % ", output: output", RIGHT, "unused-parameters", archive="branch",
                          better=EXPORTED % ""),
    "odd-sizes": Case(ODD % (33, 33, 33), RIGHT, "layer-sizes", better=ODD % (32, 32, 32)),
    "memory-bound": Case(POINTWISE, RIGHT, "memory-bound"),
    "slow-rank": Case(RESNET, (*RIGHT, "train.threads=1"), "rank-skew|other-programs", loops=1,
                      processes=2),
    "competing-process": Case(RESNET, RIGHT, "other-programs", loops=2),
    "competing-thread": Case(GPT, ("train.precision=bf16", "train.compile=true"), "other-programs", loops=1),
    "healthy-resnet": Case(RESNET, RIGHT, None),
    "healthy-gpt": Case(GPT, ("train.precision=bf16", "train.compile=true"), None),
    "healthy-mlp": Case(WIDE, ("train.precision=auto", "data.batch_size=512"), None),
    "healthy-shards": Case(SHARDS.replace("hidden: [64]", "hidden: [1024, 1024]"),
                           (*RIGHT, "data.in_memory=yes", "data.batch_size=1024"), None),
    "healthy-exported": Case(EXPORTED % "", RIGHT, None),
}


@contextlib.contextmanager
def busy_loops(count, core=None):
    pin = ["taskset", "-c", str(core)] if core is not None else []
    loops = [subprocess.Popen([*pin, sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def write_few(shards, folder):
    """The first 200 samples of a shard."""
    first = sorted(pathlib.Path(shards).glob("train-*.tar"))[0]
    folder.mkdir()
    with tarfile.open(first) as source, tarfile.open(folder / "train-0000.tar", "w") as target:
        for member in itertools.islice(source, 400):
            target.addfile(member, source.extractfile(member))


def write_photographs(folder):
    """200 JPEG files of 640 x 480 pixels, in two classes."""
    from PIL import Image

    draw = random.Random(0)
    for number in range(200):
        path = folder / "train" / f"class-{number % 2}" / f"{number:03}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = Image.frombytes("RGB", (64, 48), draw.randbytes(64 * 48 * 3))
        pixels.resize((640, 480), Image.Resampling.BICUBIC).save(path, quality=90)


def write_archive(file, name):
    """A convolutional network of two heads; the loss does not depend on the second one."""
    import torch
    from torch import nn

    import exporting

    def block(inputs, outputs):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(block(3, 32), block(32, 32), block(32, 64))
            self.head = nn.Linear(64, 10)
            if name == "branch":
                self.auxiliary = nn.Sequential(block(64, 64), block(64, 64))

        def forward(self, x):
            x = self.stem(x)
            output = self.head(x.mean((2, 3)))
            return {"output": output, "auxiliary": self.auxiliary(x)} if name == "branch" else output

    torch.manual_seed(0)
    exporting.save(Net(), (torch.randn(4, 3, 32, 32),), file)


class Bench:
    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder

    def needs(self, case):
        """What the case needs and this machine lacks; empty if nothing."""
        wanted = {"TEXT": self.arguments.text, "SHARDS": self.arguments.shards, "FEW": self.arguments.shards,
                  "PHOTOGRAPHS": importlib.util.find_spec("PIL"), "ARCHIVE": importlib.util.find_spec("torch")}
        return [name for name, found in wanted.items() if name in case.recipe and not found]

    def place(self, word, archive):
        if word == "TEXT":
            return os.path.abspath(self.arguments.text)
        if word == "SHARDS":
            return os.path.abspath(self.arguments.shards)
        if word == "FEW":
            path = self.folder / "few"
            if not path.exists():
                write_few(self.arguments.shards, path)
            return str(path)
        if word == "PHOTOGRAPHS":
            path = self.folder / "photographs"
            if not path.exists():
                write_photographs(path)
            return str(path)
        path = self.folder / f"{archive}.pt2"
        if not path.exists():
            write_archive(path, archive)
        return str(path)

    def recipe(self, name, text, archive):
        text = re.sub("TEXT|SHARDS|FEW|PHOTOGRAPHS|ARCHIVE", lambda word: json.dumps(self.place(word[0], archive)), text)
        path = self.folder / f"{name}.yaml"
        path.write_text(text)
        return str(path)

    def environment(self, case):
        if not case.slow_disk:
            return os.environ
        library = self.folder / "slow_disk.so"
        if not library.exists():
            source = pathlib.Path(__file__).with_name("slow_disk.c")
            subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        return os.environ | {"LD_PRELOAD": str(library), "SLOW_DISK_US": str(case.slow_disk)}

    def profile(self, case, recipe, options, warm_up=None):
        launch = ["launch", "-n", str(case.processes)] if case.processes > 1 else []
        command = [self.arguments.program, *launch, "profile", recipe, "--json", "--steps", str(self.arguments.steps),
                   "--warmup", str(warm_up or 5), *options]
        run = subprocess.run(command, capture_output=True, text=True, env=self.environment(case))
        if run.returncode != 0:
            sys.exit(f"{' '.join(command)} ended with {run.returncode}: {run.stderr}")
        return json.loads(run.stdout)

    # The median of some profiles, as whole steps differ more than the prediction.
    def samples_per_second(self, case, recipe, options, warm_up=None):
        found = [self.profile(case, recipe, options, warm_up) for _ in range(self.arguments.rounds)]
        return statistics.median(1000 * one["samples"] / one["step_ms"] for one in found)

    def run(self, name, case):
        recipe = self.recipe(name, case.recipe, case.archive)
        options = ["train.epochs=1000", *case.options]
        core = max(os.sched_getaffinity(0)) if case.processes > 1 else None
        with busy_loops(case.loops, core):
            planted = self.profile(case, recipe, options)
        advice = planted["advice"]
        result = {"expected": case.expected, "advice": [one["rule"] for one in advice]}
        if case.expected is None:
            worth = [one for one in advice if (one["gain"]["low"] + one["gain"]["high"]) / 2 > 1.05]
            return result | {"right": not worth}
        result["right"] = bool(advice) and re.fullmatch(case.expected, advice[0]["rule"]) is not None
        if not advice:
            return result
        first = advice[0]
        result |= {"finding": first["finding"], "low": first["gain"]["low"], "high": first["gain"]["high"]}
        if first["options"] or case.better or case.loops:
            with busy_loops(case.loops, core):
                before = self.samples_per_second(case, recipe, options)
            better = self.recipe(f"{name}-better", case.better, "plain") if case.better else recipe
            # Samples that are cached from now on are decoded in the first epoch.
            warm_up = 20 if "data.in_memory=yes" in first["options"] else None
            after = self.samples_per_second(case, better, [*options, *first["options"]], warm_up)
            predicted, measured = (first["gain"]["low"] + first["gain"]["high"]) / 2, after / before
            result |= {"measured": measured, "within": abs(predicted / measured - 1) <= 0.25}
        return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--only", default="", help="regular expression of cases")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3, help="profiles before and after following the advice")
    parser.add_argument("--shards", help="WebDataset shards: train-0000.tar")
    parser.add_argument("--text", help="text file")
    parser.add_argument("--json", help="file for the results")
    arguments = parser.parse_args()
    results = {}
    print(f"{'case':<26} {'first advice':<26} {'':<6} {'predicted':>15} {'measured':>9}")
    with tempfile.TemporaryDirectory(prefix="gallop-advise-") as folder:
        bench = Bench(arguments, pathlib.Path(folder))
        for name, case in CASES.items():
            if not re.search(arguments.only, name):
                continue
            if missing := bench.needs(case):
                print(f"{name:<26} left out for want of {', '.join(missing).lower()}")
                continue
            result = results[name] = bench.run(name, case)
            predicted = f"{result['low']:.2f} to {result['high']:.2f}" if "low" in result else ""
            measured = f"{result['measured']:9.2f}" if "measured" in result else f"{'':>9}"
            print(f"{name:<26} {(result['advice'] or ['none'])[0]:<26} {'right' if result['right'] else 'WRONG':<6} "
                  f"{predicted:>15} {measured}{'' if result.get('within', True) else '  OFF'}", flush=True)
    right = [one["right"] for one in results.values()]
    within = [one["within"] for one in results.values() if "within" in one]
    print(f"advice: {sum(right)} of {len(right)} right; predictions: {sum(within)} of {len(within)} within 25 %")
    write_results(arguments.json, results)


if __name__ == "__main__":
    main()
