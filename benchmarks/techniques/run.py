#!/usr/bin/env python3
"""Compares the accuracy of training techniques within the same time budget.

    run.py PROGRAM DATA --json FILE [--seconds 30] [--rounds 3] [--seeds 3] [--only NAME ...] [--phase time|train|table]
           [--docs FILE] [--set OVERRIDE ...]

DATA is fashion-mnist, or a folder of images in classes. A baseline recipe ("plain": a small residual network, SGD at a
constant rate) is trained, then the same with one technique at a time, each for as many steps as fit into the budget, so
that slower steps mean fewer steps. The phases:

1. time: runs a training with the technique and a plain one alternately, one stopped while the other runs, on an idle
   machine. The result is the median of the ratios of all turns of all rounds; the number of plain steps within the
   budget follows from the median of the plain times.
2. train: trains all seeds. Nothing is timed, so other work may run at the same time.
3. table: prints a Markdown table of the results so far: the time of a step relative to the plain one, mean and standard
   deviation over the seeds of the test accuracy, and the difference from the plain recipe with its standard error, in
   bold if it is more than twice that. --docs also writes it into a file, between the lines <!-- techniques NAME --> and
   <!-- /techniques NAME -->, where NAME is fashion-mnist or images.

Without --phase all three run. Each result is written to FILE at once, and results in FILE are not measured again, so a
later call continues an interrupted one, and --only measures in parts. --set is for options that do not affect results,
such as train.threads=1 while training beside other work. The budget excludes reading data, evaluation, and the training
of the teacher for distillation, which is four times as long.
"""

import argparse
import glob
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import docs_table
from results_file import ResultsFile

# Turns of each side. The speed of a machine varies, sometimes for a second, which should affect both sides alike.
TURN_SECONDS, TURNS = 0.5, 6
# Warm-up steps, in which the step is compiled; and the number of steps of a run that logs each of them.
FIRST_STEPS, STEPS = 60, 999
TEACHER_BUDGETS = 4

PLAIN = """
data: {%s, batch_size: 128}
model: {%s}
optimizer: {%s}
train: {evaluate_every: never, checkpoint_every: never}
"""
RESNET = "name: resnet, depth: 14, stem: strided"
SGD = "name: sgd, lr: 0.1, momentum: 0.9"
ONE_CYCLE = ["schedule.name=one-cycle", "optimizer.lr=0.4"]
AIRBENCH = ["model.name=airbench", "model.widths=[32,128,128]", "data.batch_size=512", "optimizer.lr=1", "optimizer.momentum=0.85",
            "optimizer.nesterov=true", "optimizer.weight_decay=1.3e-3", "schedule.name=one-cycle", "schedule.warmup=0.23",
            "schedule.start=0.2", "schedule.final=0.07", "train.label_smoothing=0.2",
            'optimizer.groups=[{match: "layer*.bn*.bias", lr_factor: 64, weight_decay: 2.0e-5}]']
GROWING_LOOKAHEAD = "optimizer.wrappers=[{lookahead: {alpha: 0.226, power: 3}}]"
MOVES = "data.augment=[{random-horizontal-flip: {mode: alternating}}, {random-crop: {padding: 2, mode: reflect}}]"
# Command-line arguments of each technique.
TECHNIQUES = {
    "plain": [],
    "fp32 instead of bf16": ["train.precision=fp32"],
    "NCHW instead of channels_last": ["train.channels_last=false"],
    "not compiled": ["train.compile=false"],
    "batch 32, rate 0.025": ["data.batch_size=32", "optimizer.lr=0.025"],
    "batch 512, rate 0.4": ["data.batch_size=512", "optimizer.lr=0.4"],
    "weight decay 5e-4": ["optimizer.weight_decay=5e-4"],
    "Nesterov": ["optimizer.nesterov=true"],
    "cosine": ["schedule.name=cosine"],
    "warm-up and cosine": ["schedule.name=cosine", "schedule.warmup=0.1"],
    "one-cycle, rate 0.4": ONE_CYCLE,
    "wsd": ["schedule.name=wsd"],
    "rate found by find-lr, one-cycle": ["schedule.name=one-cycle", "optimizer.lr=auto"],
    "AdamW 2e-3, cosine": ["optimizer.name=adamw", "optimizer.lr=2e-3", "schedule.name=cosine"],
    "Lion 3e-4, cosine": ["optimizer.name=lion", "optimizer.lr=3e-4", "schedule.name=cosine"],
    "Muon 0.02, cosine": ["optimizer.name=muon", "optimizer.lr=0.02", "schedule.name=cosine"],
    "schedule-free SGD, rate 1": ["optimizer.name=schedule-free-sgd", "optimizer.lr=1"],
    "EMA, 0.99": ["optimizer.wrappers=[{ema: {decay: 0.99}}]"],
    "SWA of the last half": ["optimizer.wrappers=[{swa: {start: 0.5, every: 50 steps}}]"],
    "Lookahead": ["optimizer.wrappers=[lookahead]"],
    "Lookahead, increasing coefficient": [GROWING_LOOKAHEAD],
    "flip": ["data.augment=[random-horizontal-flip]"],
    "alternating flip": ["data.augment=[{random-horizontal-flip: {mode: alternating}}]"],
    "crop of 2": ["data.augment=[{random-crop: {padding: 2, mode: reflect}}]"],
    "flip, and both views in evaluation": ["data.augment=[random-horizontal-flip]", "evaluate.tta=[flip]", "evaluate.tta_in_training=true"],
    "flip, and six views in evaluation": ["data.augment=[random-horizontal-flip]", "evaluate.tta=[flip, translate]", "evaluate.tta_in_training=true"],
    "label smoothing 0.1": ["train.label_smoothing=0.1"],
    "label smoothing 0.1 that ends": ["train.label_smoothing=0.1", "schedules.label_smoothing.name=linear"],
    "clipping at 1": ["train.clip_grad_norm=1"],
    "adaptive clipping at 0.02": ["train.clip_adaptive=0.02"],
    "sharpness-aware, 0.05": ["train.sam=0.05"],
    "stochastic depth 0.1": ["model.stochastic_depth=0.1"],
    "zero-initialized blocks": ["model.zero_init_residual=true"],
    "twice as wide": ["model.width=2"],
    "20 layers": ["model.depth=20"],
    "one-cycle and EMA, 0.99": [*ONE_CYCLE, "optimizer.wrappers=[{ema: {decay: 0.99}}]"],
    "one-cycle and distillation": [*ONE_CYCLE, "train.distill.teacher=TEACHER"],
    "airbench with its recipe": AIRBENCH,
    "the same, flip and crop": [*AIRBENCH, MOVES],
    "the same, Lookahead, increasing coefficient": [*AIRBENCH, MOVES, GROWING_LOOKAHEAD],
}
TEACHER = [*ONE_CYCLE, "model.width=2", "optimizer.weight_decay=5e-4", "data.augment=[random-horizontal-flip]"]


class Trainer:
    def __init__(self, arguments, folder):
        self.program, self.words, self.folder = os.path.abspath(arguments.program), arguments.set, folder
        self.source = "name: fashion-mnist"
        if arguments.data != "fashion-mnist":
            self.source = f"name: folder, path: {json.dumps(os.path.abspath(arguments.data))}"

    def write_recipe(self, words):
        """Omits the options of the plain model or optimizer if the command line selects another one."""
        def part(name, plain):
            changed = any(word.startswith(f"{name}.name=") for word in words)
            return plain.partition(",")[0] if changed else plain

        path = os.path.join(self.folder, "recipe.yaml")
        with open(path, "w") as file:
            file.write(PLAIN % (self.source, part("model", RESNET), part("optimizer", SGD)))
        return path

    def command(self, words, steps, seed, runs):
        return [self.program, "train", self.write_recipe(words), *words, *self.words, f"train.steps={steps}", f"train.seed={seed}",
                "--json", "--runs", runs]

    def train(self, words, steps, seed, runs=None):
        command = self.command(words, steps, seed, runs or self.folder)
        output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        return json.loads(output.strip().splitlines()[-1])


class Stopped:
    """A training that is stopped between its turns."""

    def __init__(self, trainer, words, name):
        self.runs, self.turns = os.path.join(trainer.folder, name), []
        always_averaging = [word.replace("start: 0.5", "start: 0") for word in words]
        command = trainer.command(always_averaging, STEPS, 1, self.runs)
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while len(self.times()) < FIRST_STEPS:
            if self.process.poll() is not None:
                raise SystemExit(f"{' '.join(command)}: {self.process.stderr.read()}")
            time.sleep(0.1)
        self.process.send_signal(signal.SIGSTOP)

    def times(self):
        """The end times of all steps logged so far."""
        logs = glob.glob(os.path.join(self.runs, "*", "metrics.log"))
        if not logs:
            return []
        with open(logs[0]) as file:
            records = [json.loads(line.partition("\t")[0]) for line in file if line.endswith("\n")]
        return [record["time"] for record in records if record["kind"] == "step"]

    def take_turn(self):
        begin = time.time()
        self.process.send_signal(signal.SIGCONT)
        time.sleep(TURN_SECONDS)
        self.process.send_signal(signal.SIGSTOP)
        self.turns.append((begin, time.time()))

    def end(self):
        """Seconds per step in each turn, over the steps that began and ended in it."""
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self.process.wait()
        times = self.times()
        shutil.rmtree(self.runs)
        seconds = []
        for begin, end in self.turns:
            inside = [moment for moment in times if begin <= moment <= end]
            seconds.append((inside[-1] - inside[0]) / (len(inside) - 1))
        return seconds


def seconds_in_turns(trainer, words):
    """Seconds per step in each turn: of the technique, and of the plain recipe."""
    both = Stopped(trainer, words, "technique"), Stopped(trainer, [], "plain")
    for _ in range(TURNS):
        for training in both:
            training.take_turn()
    return [training.end() for training in both]


class Results(ResultsFile):
    """Results by technique."""

    def __init__(self, path, seconds):
        super().__init__(path, {"seconds": seconds}, {"techniques": {}})

    def of(self, name):
        return self.all["techniques"].setdefault(name, {"overrides": TECHNIQUES[name], "costs": [], "accuracies": {}})

    def steps(self, name):
        """The number of steps within the budget, from the relative time of a step."""
        plain = statistics.median(self.all["plain_seconds_a_step"])
        return max(1, round(self.all["seconds"] / (plain * self.cost(name))))

    def cost(self, name):
        if name == "plain":
            return 1.0
        return statistics.median(ratio for ratios in self.of(name)["costs"] for ratio in ratios)


def with_teacher(words, trainer, teacher):
    return [word.replace("=TEACHER", "=" + teacher(trainer)) for word in words] if "train.distill.teacher=TEACHER" in words else words


def short_teacher(trainer):
    return trainer.train(TEACHER, 1, 1)["run_folder"]


def long_teacher(results):
    def train(trainer):
        """Trained once for all calls: its run is stored beside the results file."""
        if "teacher" not in results.all:
            steps = round(TEACHER_BUDGETS * results.steps("plain") / results.cost("twice as wide"))
            end = trainer.train(TEACHER, steps, 1, runs=os.path.abspath(results.path) + ".teacher")
            run = os.path.relpath(end["run_folder"], os.path.dirname(os.path.abspath(results.path)))
            results.all["teacher"] = {"run": run, "steps": steps, "accuracy": end["last"]["accuracy"]}
            results.save()
        return os.path.join(os.path.dirname(os.path.abspath(results.path)), results.all["teacher"]["run"])

    return train


def time_all(names, trainer, results, rounds):
    plain = results.all.setdefault("plain_seconds_a_step", [])
    for number in range(rounds):
        for name in names:
            costs = results.of(name)["costs"]
            if len(costs) > number:
                continue
            own, beside = seconds_in_turns(trainer, with_teacher(TECHNIQUES[name], trainer, short_teacher))
            plain += beside
            costs.append([technique / other for technique, other in zip(own, beside)])
            results.save()
            medians = [round(statistics.median(ratios), 3) for ratios in costs]
            print(json.dumps({"technique": name, "costs": medians}), flush=True)


def train_all(names, trainer, results, seeds):
    for name in names:
        if not results.of(name)["costs"]:
            raise SystemExit(f"'{name}' has not been timed")
        accuracies = results.of(name)["accuracies"]
        for seed in map(str, range(1, seeds + 1)):
            if seed in accuracies:
                continue
            words = with_teacher(TECHNIQUES[name], trainer, long_teacher(results))
            accuracies[seed] = trainer.train(words, results.steps(name), int(seed))["last"]["accuracy"]
            results.save()
            print(json.dumps({"technique": name, "seed": int(seed), "accuracy": accuracies[seed]}), flush=True)


def table(results):
    def moments(name):
        values = list(results.of(name)["accuracies"].values())
        return statistics.mean(values), statistics.stdev(values) if len(values) > 1 else 0.0, len(values)

    plain = moments("plain")
    yield "| technique | time of a step | steps | accuracy, % | against plain |"
    yield "|---|---|---|---|---|"
    for name in TECHNIQUES:
        if not results.of(name)["accuracies"]:
            continue
        own, difference = moments(name), ""
        if name != "plain":
            error = math.sqrt(own[1] ** 2 / own[2] + plain[1] ** 2 / plain[2])
            difference = f"{100 * (own[0] - plain[0]):+.2f} ± {100 * error:.2f}"
            if abs(own[0] - plain[0]) > 2 * error:
                difference = f"**{difference}**"
        yield (f"| {name} | {results.cost(name):.2f} | {results.steps(name)} "
               f"| {100 * own[0]:.2f} ± {100 * own[1]:.2f} | {difference} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("data")
    parser.add_argument("--json", required=True, help="file for all results")
    parser.add_argument("--seconds", type=float, default=30, help="training time, without evaluation")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of timing each technique")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=list(TECHNIQUES), default=list(TECHNIQUES), metavar="NAME")
    parser.add_argument("--docs", help="a file for the tables")
    parser.add_argument("--phase", choices=["time", "train", "table"])
    parser.add_argument("--set", nargs="*", default=[], metavar="OVERRIDE", help="options of every recipe")
    arguments = parser.parse_args()
    results = Results(arguments.json, arguments.seconds)
    names = arguments.only if "plain" in arguments.only else ["plain", *arguments.only]
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(arguments, folder)
        if arguments.phase in (None, "time"):
            time_all(names, trainer, results, arguments.rounds)
        if arguments.phase in (None, "train"):
            train_all(names, trainer, results, arguments.seeds)
    if arguments.phase in (None, "table"):
        text = "\n".join(table(results))
        print(text)
        if arguments.docs:
            name = "fashion-mnist" if arguments.data == "fashion-mnist" else "images"
            docs_table.put(arguments.docs, f"techniques {name}", text)


if __name__ == "__main__":
    main()
