#!/usr/bin/env python3
"""Trains in several processes by 'gallop launch', kills one of them at random moments, and compares the final weights.

    kill_rank.py PROGRAM --processes 2 --kills 20 --signal KILL --seed 1
    kill_rank.py PROGRAM --at-saves               kills while a checkpoint is being written, which is slowed down
    kill_rank.py PROGRAM --signal STOP --pause 2  continues the process after that many seconds: nothing may restart
    kill_rank.py PROGRAM --mtbf 60 --epochs 400 --checkpoint-every "2 s"     kills at exponentially distributed times,
                                                  and reports the goodput
    kill_rank.py PROGRAM --layouts tensor         processes that divide the model; after every few kills the launcher is
                                                  killed as well, and the run resumed in another layout of the same bits

With STOP the others must detect the stopped process. Prints one line per kill, with the time until a step was repeated
and the number of steps lost; exits with 1 if the weights differ from those of an undisturbed run in any bit, or a
process hangs or is left behind.
"""

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kill  # noqa: E402
import runs  # noqa: E402

# A stopped process must be declared lost after this many seconds, in a step or elsewhere; after a pause it must not.
STEP_SECONDS, OTHER_SECONDS, GRACE_SECONDS = 3, 10, 2
PATIENT_SECONDS = 600
HANGS_SECONDS = 300
SLOW_CALL_SECONDS = 0.005  # Delay of each of about thirty calls of a save.
LONGEST_BETWEEN_SECONDS = 3
KILLS_IN_LAYOUT = 3

LAYOUT_RECIPE = """\
data: {name: mnist, path: data, batch_size: 16, threads: 1, augment: [{random-horizontal-flip: {}}]}
model: {name: vit, patch: 3, width: 48, depth: 2, heads: 6, dropout: 0.1}
optimizer: {name: adamw, lr: 0.002, weight_decay: 0.01}
schedule: {name: one-cycle}
train: {epochs: 4, precision: fp32, channels_last: "false", compile: "false", clip_grad_norm: 1, checkpoint_every: 7 steps,
        gradient_accumulation: %d, threads: 1}
"""
TENSOR, PIPELINE = "name=tensor tensor_parallel_degree=2", "name=pipeline pipeline_parallel_degree=2"
# Micro-batches, and layouts with the bits of the first one: numbers of processes and options of the section parallel.
LAYOUTS = {
    "zero-3": (1, [(2, "name=zero-3"), (2, "name=ddp"), (2, "name=zero-3 reshard_after_forward=false"),
                   (2, "name=zero-1")]),
    "pipeline": (4, [(4, PIPELINE + " schedule=1f1b data_parallel=ddp"), (2, "name=ddp"),
                     (4, PIPELINE + " schedule=zero-bubble data_parallel=zero-1"),
                     (4, PIPELINE + " schedule=gpipe data_parallel=ddp")]),
    "tensor": (4, [(4, TENSOR + " data_parallel=zero-1"), (4, TENSOR + " data_parallel=ddp"),
                   (8, PIPELINE + " tensor_parallel_degree=2 data_parallel=zero-1")]),
}


class Launch(runs.Process):
    """A launcher, the time of the last step of its training, and the steps lost at each restart, counted in printed
    steps: about 500 per run."""

    def __init__(self, program, processes, run, folder, options, environment):
        self.restarted = self.stepped = time.monotonic()
        self.step = 0
        self.starts = 0
        self.lost = []
        super().__init__(
            [program, "launch", "-n", str(processes), "--max-restarts", "1000", "--grace", str(GRACE_SECONDS),
             "train", *run, "--json", "parallel.start_seconds=30", *options], folder, environment)

    def take_line(self, line):
        if line.startswith(("gallop: starting", "gallop: restarting")):
            self.restarted = time.monotonic()
            self.starts += 1
        if line.startswith("gallop: resumed from step "):
            self.go_on_from(int(line.split()[-1]))
        if line.startswith("{") and (event := json.loads(line))["event"] == "step":
            self.go_on_from(0)
            self.step = event["step"]
            self.stepped = time.monotonic()

    def go_on_from(self, step):
        if len(self.lost) < self.starts:
            self.lost.append(max(0, self.step - step))

    def wait_for_step_after(self, moment):
        """Seconds from that moment to the first step after the restart; None if the training ended before."""
        while not moment < self.restarted < self.stepped:
            if not self.is_running():
                return None
            if time.monotonic() - moment > HANGS_SECONDS:
                sys.exit(f"no step for {HANGS_SECONDS} s:\n" + "".join(self.lines[-20:]))
            time.sleep(0.01)
        return self.stepped - moment


class Disturbance:
    """Sends signals to the ranks of one run, which it starts as often as necessary."""

    def __init__(self, arguments, there):
        self.arguments, self.there = arguments, there
        self.signal = getattr(signal, "SIG" + arguments.signal)
        self.rng = random.Random(arguments.seed)
        self.sent = self.during_saves = 0
        self.layouts = LAYOUTS[arguments.layouts][1] if arguments.layouts else [(arguments.processes, "")]
        self.layout = self.changes = 0
        self.hit_at = time.monotonic()
        self.costs, self.lost = [], []

    def launch(self, name, resumes=False):
        processes, in_layout = self.layouts[self.layout]
        patience = (PATIENT_SECONDS, PATIENT_SECONDS) if self.arguments.pause else (STEP_SECONDS, OTHER_SECONDS)
        options = [f"parallel.{what}_seconds={seconds}" for what, seconds in zip(("step", "other"), patience)]
        options += [f"parallel.{option}" for option in in_layout.split()]
        if self.arguments.epochs:
            options.append(f"train.epochs={self.arguments.epochs}")
        if self.arguments.checkpoint_every:
            options.append(f"train.checkpoint_every={self.arguments.checkpoint_every}")
        environment = self.there.preload(
            "calls", FAULT_PATH="/.tmp-step-", FAULT_AT=1, FAULT_ACTION="slow", FAULT_SECONDS=SLOW_CALL_SECONDS,
            FAULT_RESTARTS=1) if self.arguments.at_saves else {}
        run = ["--resume", f"runs/{name}"] if resumes else ["recipe.yaml", "--name", name, "--continue"]
        launch = Launch(self.there.program, processes, run, self.there.folder, options, environment)
        self.there.started.append(launch)
        return launch

    def saves(self):
        """Whether a checkpoint is being written."""
        try:
            names = os.listdir(self.there.path("disturbed", "checkpoints"))
        except FileNotFoundError:
            return False
        return any(name.startswith(".tmp-step-") for name in names)

    def is_done(self):
        """Whether all kills were sent; if their number is not given, only the end of the training ends them."""
        counted = self.during_saves if self.arguments.at_saves else self.sent
        return not self.arguments.mtbf and counted >= self.arguments.kills

    def wait(self, launch):
        """Waits until the next moment for a signal."""
        if self.arguments.mtbf:
            next_at = self.hit_at + self.rng.expovariate(1 / self.arguments.mtbf)
            try:
                launch.process.wait(timeout=max(0, next_at - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
            return
        time.sleep(self.rng.uniform(0, LONGEST_BETWEEN_SECONDS))
        while self.arguments.at_saves and not self.saves() and launch.is_running():
            time.sleep(0.0005)

    def hit(self, launch):
        """Sends the signal to a rank, and waits for a step; False if there was no rank to signal."""
        ranks = launch.children()
        if not ranks:
            return False
        victim = self.rng.choice(ranks)
        self.hit_at = moment = time.monotonic()
        try:
            os.kill(victim, self.signal)
        except ProcessLookupError:
            return False
        self.sent += 1
        self.during_saves += self.arguments.at_saves and self.saves()
        if self.arguments.pause:
            time.sleep(self.arguments.pause)
            runs.send([victim], signal.SIGCONT)
            print(f"pause {self.sent}: {self.arguments.pause} s", flush=True)
            return True
        cost = launch.wait_for_step_after(moment)
        if cost is None:
            print(f"kill {self.sent}: at the end", flush=True)
            return True
        self.costs.append(cost)
        print(f"kill {self.sent}: step repeated after {cost:.2f} s, {launch.lost[-1]} steps lost", flush=True)
        return True

    def can_change(self, sent_before):
        """Whether it is time for another layout, and there is a checkpoint to continue from."""
        return (len(self.layouts) > 1 and self.sent - sent_before >= KILLS_IN_LAYOUT and not self.is_done() and
                os.path.exists(self.there.path("disturbed", "checkpoints", "latest")))

    def run(self):
        """Runs until the training has ended and all kills were sent."""
        resumes = False
        while True:
            launch = self.launch("disturbed", resumes)
            sent_before = self.sent
            while launch.is_running() and not self.is_done() and not self.can_change(sent_before):
                self.wait(launch)
                if launch.is_running():
                    self.hit(launch)
            if resumes := launch.is_running() and self.can_change(sent_before):
                launch.kill()
                self.lost += launch.lost
                self.layout = (self.layout + 1) % len(self.layouts)
                self.changes += 1
                processes, in_layout = self.layouts[self.layout]
                print(f"the launcher was killed; {processes} processes, {in_layout}", flush=True)
                continue
            code, output = launch.finish(seconds=3600)
            self.lost += launch.lost
            if code != kill.FINISHED:
                sys.exit(f"the launcher ended with {code}:\n{output[-4000:]}")
            if self.arguments.pause and launch.starts:
                sys.exit(f"it was restarted, although the process continued:\n{output[-4000:]}")
            if self.arguments.mtbf or self.is_done():
                return
            # It finished before every kill was sent: start over, and keep the count of kills.
            self.there.remove("disturbed")


def share_below(values, share):
    """The quantile: the smallest value that this fraction of them does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def left_behind(folder):
    """Processes that still run in the folder."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/cwd") == folder:
                found.append(pid)
        except OSError:
            pass
    return found


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--signal", choices=["KILL", "SEGV", "STOP"], default="KILL")
    parser.add_argument("--at-saves", action="store_true")
    parser.add_argument("--pause", type=float, default=0)
    parser.add_argument("--mtbf", type=float, default=0, help="mean seconds between kills, instead of their number")
    parser.add_argument("--epochs", type=int, default=0)
    parser.add_argument("--checkpoint-every", default="")
    parser.add_argument("--layouts", choices=sorted(LAYOUTS))
    parser.add_argument("--model", choices=sorted(kill.MODELS), default="resnet")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.pause and arguments.signal != "STOP":
        parser.error("--pause is for --signal STOP")
    return arguments


def main():
    arguments = parse_arguments()
    recipe = kill.RECIPE % kill.MODELS[arguments.model]
    if arguments.layouts:
        recipe = LAYOUT_RECIPE % LAYOUTS[arguments.layouts][0]
    with runs.make(arguments.program, recipe, "idx data 1000") as there:
        disturbance = Disturbance(arguments, there)
        begin = time.monotonic()
        code, output = disturbance.launch("undisturbed").finish(seconds=3600)
        undisturbed_seconds = time.monotonic() - begin
        if code != kill.FINISHED:
            sys.exit(f"the undisturbed run ended with {code}:\n{output}")
        wanted = there.weights("undisturbed")
        print(f"undisturbed: {undisturbed_seconds:.1f} s, weights {wanted}", flush=True)

        begin = time.monotonic()
        disturbance.run()
        seconds = time.monotonic() - begin
        found = there.weights("disturbed")
        print(f"disturbed:   {disturbance.sent} times SIG{arguments.signal}, weights {found}")
        if costs := disturbance.costs:
            print(f"step after {share_below(costs, 0.5):.2f} s in the median, {share_below(costs, 0.99):.2f} s "
                  f"in 99 of 100, {max(costs):.2f} s at most")
        if lost := disturbance.lost:
            print(f"steps lost per kill: {sum(lost) / len(lost):.1f} in the mean, {max(lost)} at most")
        if arguments.layouts:
            print(f"{disturbance.changes} changes of layout")
        if arguments.at_saves:
            print(f"{disturbance.during_saves} of them while a checkpoint was half-written")
        if arguments.mtbf:
            print(f"a kill every {arguments.mtbf:g} s in the mean: {undisturbed_seconds:.1f} s of use in "
                  f"{seconds:.1f} s, {100 * undisturbed_seconds / seconds:.1f} %")
        if remains := left_behind(there.folder):
            sys.exit(f"processes were left behind: {remains}")
        if found != wanted:
            sys.exit("the weights differ")
        print("the weights are equal, bit for bit")


if __name__ == "__main__":
    main()
