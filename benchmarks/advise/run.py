#!/usr/bin/env python3
"""Plants bottlenecks in trainings, and checks the advice of `gallop profile` by following it.

    run.py PROGRAM [--only REGEX] [--steps N] [--json FILE]

Each case is a recipe with one thing wrong. The first advice must be the rule that the case names; then its options are
applied, and the gain in samples per second is compared with the prediction. Healthy trainings must get no advice with an
expected gain of more than 5 %. Cases whose data are missing are left out: --shards is a folder of WebDataset shards,
--text a text file. Needs an idle machine.
"""

import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

NUMBERS = "data: {name: fake-images, shape: [3, 32, 32], samples: 20000, batch_size: %d}\n"
MLP = NUMBERS % 64 + "model: {name: mlp, hidden: [256, 256]}\noptimizer: {name: adamw, lr: 0.001}\n"
WIDE = NUMBERS % 64 + "model: {name: mlp, hidden: [2048, 2048]}\noptimizer: {name: adamw, lr: 0.001}\n"
RESNET = (NUMBERS % 64 + "model: {name: resnet, depth: 20}\noptimizer: {name: sgd, lr: 0.1, momentum: 0.9}\n")
GPT = ("data: {name: text, path: %s, context: 128, batch_size: 16}\n"
       "model: {name: gpt, layers: 4, width: 256, heads: 4}\noptimizer: {name: adamw, lr: 0.001}\n")
SHARDS = ("data: {name: tar, path: %s, image_size: 32, batch_size: 64, in_memory: 'no', "
         "augment: [random-horizontal-flip]}\n"
         "model: {name: mlp, hidden: [64]}\noptimizer: {name: sgd, lr: 0.1}\n")
RIGHT = ["train.precision=bf16", "train.channels_last=true", "train.compile=true"]

# name: recipe, options, the rule that must come first (None: a healthy training), busy loops beside it
CASES = {
    "one-thread": (RESNET, [*RIGHT, "train.threads=1"], "idle-cores", 0),
    "too-many-threads": (RESNET, [*RIGHT, "train.threads=16"], "too-many-threads", 0),
    "fp32": (RESNET, ["train.precision=fp32", *RIGHT[1:]], "low-precision", 0),
    "fp32-gpt": (GPT, ["train.precision=fp32", "train.compile=true"], "low-precision", 0),
    "nchw": (RESNET, ["train.precision=fp32", "train.channels_last=false", "train.compile=true"],
             "memory-format|low-precision", 0),
    "eager": (MLP, ["train.precision=bf16", "train.compile=false", "data.batch_size=512"], "eager-steps", 0),
    "tiny-batch": (MLP, ["train.precision=fp32", "data.batch_size=2"], "small-batch|optimizer-share", 0),
    "optimizer": (WIDE, ["train.precision=fp32", "data.batch_size=8"], "small-batch|optimizer-share", 0),
    "evaluation": (MLP, ["train.precision=bf16", "data.batch_size=512", "train.evaluate_every=4 steps",
                         "data.validation=0.1"], "evaluation-share", 0),
    "checkpoint": (WIDE, ["train.precision=fp32", "train.checkpoint_every=1 steps",
                          "train.checkpoint_in_background=false"], "checkpoint-share", 0),
    "verification": (RESNET, ["train.precision=bf16", "train.channels_last=true", "train.compile=verify"],
                     "verification", 0),
    "recomputation": (GPT, ["train.precision=bf16", "train.compile=true", "train.activation_checkpointing.every=1"],
                      "recomputation", 0),
    "micro-batches": (RESNET, [*RIGHT, "train.gradient_accumulation=16"], "micro-batches", 0),
    "one-loader-thread": (SHARDS, ["data.threads=1", "train.precision=fp32", "train.threads=1"], "data-wait", 0),
    "loader-in-training-thread": (SHARDS, ["data.threads=0", "train.precision=fp32"], "loader-in-training-thread", 0),
    "competing-process": (RESNET, RIGHT, "other-programs", 2),
    "healthy-resnet": (RESNET, RIGHT, None, 0),
    "healthy-gpt": (GPT, ["train.precision=bf16", "train.compile=true"], None, 0),
    "healthy-mlp": (WIDE, ["train.precision=auto", "data.batch_size=512"], None, 0),
}


@contextlib.contextmanager
def busy_loops(count):
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def profile(program, recipe, options, steps):
    command = [program, "profile", recipe, "--json", "--steps", str(steps), *options]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {run.returncode}: {run.stderr}")
    return json.loads(run.stdout)


# The median of some profiles, as whole steps differ more than the prediction.
def samples_per_second(program, recipe, options, steps, rounds):
    found = [profile(program, recipe, options, steps) for _ in range(rounds)]
    return statistics.median(1000 * one["samples"] / one["step_ms"] for one in found)


def run_case(program, folder, name, arguments):
    text, options, expected, loops = CASES[name]
    if "%s" in text:
        source = arguments.text if "name: text" in text else arguments.shards
        if not source:
            return None
        text %= json.dumps(os.path.abspath(source))
    recipe = os.path.join(folder, f"{name}.yaml")
    with open(recipe, "w") as file:
        file.write(text)
    options = ["train.epochs=1000", *options]
    with busy_loops(loops):
        planted = profile(program, recipe, options, arguments.steps)
    advice = planted["advice"]
    result = {"expected": expected, "advice": [one["rule"] for one in advice]}
    if expected is None:
        worth = [one for one in advice if (one["gain"]["low"] + one["gain"]["high"]) / 2 > 1.05]
        return result | {"right": not worth}
    result["right"] = bool(advice) and re.fullmatch(expected, advice[0]["rule"]) is not None
    if not advice:
        return result
    first = advice[0]
    result |= {"finding": first["finding"], "low": first["gain"]["low"], "high": first["gain"]["high"]}
    if first["options"] or loops:
        rounds = arguments.rounds
        with busy_loops(loops):
            before = samples_per_second(program, recipe, options, arguments.steps, rounds)
        after = samples_per_second(program, recipe, [*options, *first["options"]], arguments.steps, rounds)
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
        for name in CASES:
            if not re.search(arguments.only, name):
                continue
            result = run_case(arguments.program, folder, name, arguments)
            if result is None:
                continue
            results[name] = result
            predicted = f"{result['low']:.2f} to {result['high']:.2f}" if "low" in result else ""
            measured = f"{result['measured']:9.2f}" if "measured" in result else f"{'':>9}"
            print(f"{name:<26} {(result['advice'] or ['none'])[0]:<26} {'right' if result['right'] else 'WRONG':<6} "
                  f"{predicted:>15} {measured}{'' if result.get('within', True) else '  OFF'}", flush=True)
    right = [one["right"] for one in results.values()]
    within = [one["within"] for one in results.values() if "within" in one]
    print(f"advice: {sum(right)} of {len(right)} right; predictions: {sum(within)} of {len(within)} within 25 %")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(results, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
