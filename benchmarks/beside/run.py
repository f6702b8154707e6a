#!/usr/bin/env python3
"""Measures the milliseconds of a training step alone, and beside a second program on the same cores.

    run.py [--rounds 5] [--steps 10] NAME=COMMAND ... [--neighbor COMMAND | --busy CORES]

Each COMMAND runs steps on request, as bench_step and benchmarks/step/torch_step.py do. By default the neighbor of a
command is a second process of itself; two programs that share the cores evenly each take twice as long. With --busy the
neighbor is that number of endless loops. Prints JSON.

    run.py "gallop=build/release/bench_step resnet20 bf16 compiled" \\
           "pytorch=python3 benchmarks/step/torch_step.py resnet20 bf16 eager,channels_last wall"
"""

import argparse
import json
import shlex
import statistics
import subprocess
import sys
import threading


class Steps:
    def __init__(self, command):
        self.process = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, steps):
        self.process.stdin.write(f"run {steps}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["ms"]

    def end(self):
        self.process.kill()
        self.process.wait()


class Busy:
    """Takes steps without end in a process of its own."""

    def __init__(self, command):
        self.steps = Steps(command)
        self.wanted = True
        self.steps.run(2)
        self.thread = threading.Thread(target=self.go)
        self.thread.start()

    def go(self):
        while self.wanted:
            self.steps.run(1)

    def end(self):
        self.wanted = False
        self.thread.join()
        self.steps.end()


class BusyLoops:
    def __init__(self, cores):
        self.processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(cores)]

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


def median_ms(command, steps):
    program = Steps(command)
    try:
        program.run(3)
        return statistics.median(program.run(steps))
    finally:
        program.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10)
    neighbors = parser.add_mutually_exclusive_group()
    neighbors.add_argument("--neighbor", help="command of the neighbor of all")
    neighbors.add_argument("--busy", type=int, metavar="CORES")
    parser.add_argument("programs", nargs="+", metavar="NAME=COMMAND")
    arguments = parser.parse_args()
    programs = [program.split("=", 1) for program in arguments.programs]
    times = {name: {"alone": [], "beside": []} for name, _ in programs}
    for _ in range(arguments.rounds):
        for name, command in programs:
            times[name]["alone"].append(median_ms(command, arguments.steps))
            neighbor = BusyLoops(arguments.busy) if arguments.busy else Busy(arguments.neighbor or command)
            try:
                times[name]["beside"].append(median_ms(command, arguments.steps))
            finally:
                neighbor.end()
    results = {}
    for name, found in times.items():
        ratios = [beside / alone for alone, beside in zip(found["alone"], found["beside"])]
        results[name] = {"alone_ms": round(statistics.median(found["alone"]), 2),
                         "beside_ms": round(statistics.median(found["beside"]), 2),
                         "ratio": [round(q, 2) for q in statistics.quantiles(ratios, n=4)]}
    print(json.dumps(results))


if __name__ == "__main__":
    main()
