#!/usr/bin/env python3
"""Measures memory and start-up of trainings on one machine with and without shared decoded data.

    shared.py build/release/gallop FOLDER [--rounds 3] [--processes 1 2 4]

FOLDER contains train/CLASS/NAME.jpg and test/CLASS/NAME.jpg: CIFAR-10 as JPEG files. Both modes are measured
alternately, several times; prints medians, minima and maxima.

memory: of several trainings at once, and of several processes of one training ('gallop launch'), after the first epoch.
The sum over the processes of their proportional set size, in which a page shared by n of them counts 1/n for each (PSS
of /proc/PID/smaps_rollup).
start: wall and CPU seconds from the start of a training until its first epoch is logged, of the first training and of a
second one beside it.
"""

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

RECIPE = """\
data: {{name: folder, path: {data}, batch_size: 250, threads: {threads}}}
model: {{name: mlp, hidden: [16]}}
optimizer: {{name: sgd, lr: 0.01}}
train: {{epochs: 100000, precision: fp32, compile: "false", threads: 1, checkpoint_every: never, evaluate_every: 1 epoch}}
"""


class Trainings:
    """Running trainings in a folder of their own."""

    def __init__(self, arguments, shared):
        self.program, self.arguments = arguments.program, arguments
        self.folder = tempfile.mkdtemp(prefix="gallop-shared-")
        self.environment = dict(os.environ, XDG_CACHE_HOME=os.path.join(arguments.cache))
        self.environment["GALLOP_SHARED_DATA"] = ""
        if shared:
            self.store = tempfile.mkdtemp(prefix="gallop-bench-", dir="/dev/shm")
            self.environment["GALLOP_SHARED_DATA"] = self.store
        else:
            self.store = None
        self.started = []
        with open(os.path.join(self.folder, "r.yaml"), "w") as file:
            file.write(RECIPE.format(data=os.path.abspath(arguments.data), threads=arguments.threads))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(self.folder)
        if self.store:
            shutil.rmtree(self.store)

    def start(self, *words):
        command = [self.program, *words, "train", "r.yaml", "--json", "--name", f"run{len(self.started)}"]
        process = subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True)
        process.began = time.monotonic()
        self.started.append(process)
        return process

    def until_evaluated(self, process):
        """Seconds from the start until the first evaluation, after the first epoch."""
        for line in process.stdout:
            if '"evaluation"' in line or '"event":"eval' in line:
                return time.monotonic() - process.began
        sys.exit(f"a training ended early: {process.stderr.read()[-1000:]}")


def trainings_of(process):
    """The processes that train: the process itself, or the children of 'gallop launch'."""
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        children = [int(word) for word in file.read().split()]
    return children or [process.pid]


def proportional_mib(pid):
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return int(re.search(r"^Pss: +(\d+)", file.read(), re.MULTILINE)[1]) / 1024


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(arguments, shared, processes, launched):
    with Trainings(arguments, shared) as trainings:
        if launched:
            trainings.until_evaluated(trainings.start("launch", "-n", str(processes)))
        else:
            for process in [trainings.start() for _ in range(processes)]:
                trainings.until_evaluated(process)
        pids = [pid for process in trainings.started for pid in trainings_of(process)]
        if len(pids) != processes:
            sys.exit(f"{len(pids)} processes instead of {processes}")
        return sum(map(proportional_mib, pids))


def start(arguments, shared):
    with Trainings(arguments, shared) as trainings:
        first = trainings.start()
        seconds = {"first": (trainings.until_evaluated(first), processor_seconds(first.pid))}
        # While stopped it keeps its data, and takes no CPU time from the second.
        os.killpg(first.pid, signal.SIGSTOP)
        second = trainings.start()
        seconds["second"] = (trainings.until_evaluated(second), processor_seconds(second.pid))
        return seconds


def summary(values):
    return {"median": round(statistics.median(values), 3), "lowest": round(min(values), 3),
            "highest": round(max(values), 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("data")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processes", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--threads", type=int, default=2, help="loader threads of a training")
    parser.add_argument("--json", help="file for all figures")
    arguments = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as arguments.cache:
        start(arguments, False)  # From here on means and deviations are cached, and the files are in memory.
        for number in range(arguments.rounds):
            print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
            for shared in (False, True):
                word = "shared" if shared else "own"
                for name, (seconds, processor) in start(arguments, shared).items():
                    found.setdefault(f"seconds of the first epoch, {name} training, {word}", []).append(seconds)
                    found.setdefault(f"processor seconds of it, {name} training, {word}", []).append(processor)
                for processes in arguments.processes:
                    for launched in (False, True):
                        what = "launched processes" if launched else "trainings"
                        key = f"MiB, {processes} {what}, {word}"
                        found.setdefault(key, []).append(memory(arguments, shared, processes, launched))
    for name in sorted(found):
        figures = summary(found[name])
        print(f"{name:70}{figures['median']:10.1f}{figures['lowest']:10.1f}{figures['highest']:10.1f}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"rounds": arguments.rounds, "figures": {name: summary(found[name]) for name in found}}, file, indent=1)


if __name__ == "__main__":
    main()
