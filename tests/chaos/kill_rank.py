#!/usr/bin/env python3
"""Trains in several processes by 'gallop launch', kills one of them at random moments, and compares the
final weights bit for bit with those of a run that nobody disturbed.

    kill_rank.py PROGRAM --processes 2 --kills 20 --signal KILL --seed 1

The signal may be STOP: the others must notice. Prints one line a kill, with the time until a step was done
again, and ends with 1 where the weights differ or a process hangs or is left behind.
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kill  # noqa: E402

# A process that is stopped is lost after so many seconds.
STEP_SECONDS, GRACE_SECONDS = 3, 2
HANGS_SECONDS = 60


class Launch:
    """A launcher, and when its training last did a step."""

    def __init__(self, program, processes, name, folder):
        self.process = subprocess.Popen(
            [program, "launch", "-n", str(processes), "--max-restarts", "1000", "--grace", str(GRACE_SECONDS),
             "train", "recipe.yaml", "--name", name, "--continue", "--json",
             f"parallel.step_seconds={STEP_SECONDS}", "parallel.start_seconds=30"],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.restarted = self.stepped = time.monotonic()
        self.lines = []
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line)
            if line.startswith("gallop: starting"):
                self.restarted = time.monotonic()
            if line.startswith("{") and json.loads(line).get("event") == "step":
                self.stepped = time.monotonic()

    def ranks(self):
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        try:
            with open(path, encoding="utf-8") as file:
                return [int(word) for word in file.read().split()]
        except FileNotFoundError:
            return []

    def finish(self):
        code = self.process.wait(timeout=300)
        self.reader.join()
        return code, "".join(self.lines)

    def wait_for_step_after(self, moment):
        """Seconds from then to the first step of those who were started again; None where it ended before."""
        while not moment < self.restarted < self.stepped:
            if self.process.poll() is not None:
                return None
            if time.monotonic() - moment > HANGS_SECONDS:
                sys.exit("no step for a minute:\n" + "".join(self.lines[-20:]))
            time.sleep(0.01)
        return self.stepped - moment


def disturb(program, processes, folder, kills, signal_number, rng):
    """Runs to the end through `kills` signals. Returns the seconds that each cost."""
    costs, sent = [], 0
    while True:
        launch = Launch(program, processes, "disturbed", folder)
        while sent < kills and launch.process.poll() is None:
            time.sleep(rng.uniform(0, 3))
            ranks = launch.ranks()
            if not ranks:
                continue
            victim = rng.choice(ranks)
            moment = time.monotonic()
            try:
                os.kill(victim, signal_number)
            except ProcessLookupError:
                continue
            sent += 1
            cost = launch.wait_for_step_after(moment)
            if cost is not None:
                costs.append(cost)
            print(f"kill {sent}: " + ("at the end" if cost is None else f"a step again after {cost:.2f} s"), flush=True)
        code, output = launch.finish()
        if code != kill.FINISHED:
            sys.exit(f"the launcher ended with {code}:\n{output[-4000:]}")
        if sent >= kills:
            return costs
        # It finished before every kill was sent: start over, the kills so far stay counted.
        subprocess.run(["rm", "-rf", os.path.join(folder, "runs", "disturbed")], check=True)


def left_behind(folder):
    """Processes that still work in the folder."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/cwd") == folder:
                found.append(pid)
        except OSError:
            pass
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--signal", choices=["KILL", "SEGV", "STOP"], default="KILL")
    parser.add_argument("--model", choices=sorted(kill.MODELS), default="resnet")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.program)

    with tempfile.TemporaryDirectory(prefix="gallop-chaos-") as folder:
        os.makedirs(os.path.join(folder, "data"))
        kill.make_data.make_idx(os.path.join(folder, "data"), 1000)
        with open(os.path.join(folder, "recipe.yaml"), "w", encoding="utf-8") as file:
            file.write(kill.RECIPE % kill.MODELS[arguments.model])
        code, output = Launch(program, arguments.processes, "undisturbed", folder).finish()
        if code != kill.FINISHED:
            sys.exit(f"the undisturbed run ended with {code}:\n{output}")
        wanted = kill.weights_hash(os.path.join(folder, "runs", "undisturbed"))
        print(f"undisturbed: weights {wanted}", flush=True)

        costs = disturb(program, arguments.processes, folder, arguments.kills,
                        getattr(signal, "SIG" + arguments.signal), random.Random(arguments.seed))
        found = kill.weights_hash(os.path.join(folder, "runs", "disturbed"))
        print(f"disturbed:   {arguments.kills} times SIG{arguments.signal}, weights {found}")
        if costs:
            print(f"a step again after {statistics.median(costs):.2f} s in the median, {max(costs):.2f} s at most")
        if remains := left_behind(folder):
            sys.exit(f"processes were left behind: {remains}")
        if found != wanted:
            sys.exit("the weights differ")
        print("the weights are equal, bit for bit")


if __name__ == "__main__":
    main()
