#!/usr/bin/env python3
"""Runs one scenario: a text file of commands with their expected output and exit codes.

  tests/scenario/run.py [--long] [--times] PROGRAM FILE

    # comment
    data idx tiny 64            creates a small data set (see make_data.py) in the folder tiny
    fixture exported/nets/a.pt2 copies a file of tests/fixtures to the folder of the scenario
    file r.yaml                 writes the indented lines below to r.yaml
      data: {name: mnist}
    $ gallop train r.yaml       runs a command with bash, in the folder of the scenario
    exit: 0                     its exit code (default 0)
    out: text                   standard output contains this text
    err: text                   standard error contains this text
    out~ regex                  standard output matches
    err~ regex                  standard error matches
    no out: text                standard output does not contain it
    $(python3 $FREE_PORT)       in a command: a free port
    $KILL_LAST_RANK runs/r gallop launch ...
                                in a command: kills the last process once runs/r has a checkpoint
    $COMPARE_WEIGHTS one two 12
                                in a command: whether the weights and optimizer states of two runs are the same at a
                                step, but for rounding
    skip-without: NAME          skips the scenario if the environment variable is unset
    long                        the lines below it run with --long only, as in `make test-long`

--times prints the seconds and the line number of each command.
"""

import argparse

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import make_data  # noqa: E402
import shared_kernels  # noqa: E402

SKIPPED = 77
MOST_SECONDS = 900  # Longer than any command takes on a busy machine.


class Failure(Exception):
    pass


class Scenario:
    def __init__(self, path, program, folder, is_long, shows_times):
        self.path = path
        self.is_long = is_long
        self.shows_times = shows_times
        self.folder = folder
        self.environment = dict(
            os.environ,
            PATH=os.path.dirname(program) + os.pathsep + os.environ["PATH"],
            FREE_PORT=os.path.join(os.path.dirname(HERE), "free_port.py"),
            COMPARE_WEIGHTS=os.path.join(HERE, "compare_weights.py"),
            KILL_LAST_RANK=os.path.join(HERE, "kill_last_rank"),
            XDG_CACHE_HOME=os.path.join(folder, ".cache"),
            OMP_NUM_THREADS=os.environ.get("OMP_NUM_THREADS", "2"),
        )
        shared_kernels.share_kernels(self.environment["XDG_CACHE_HOME"])
        self.result = None
        self.exit_checked = True

    def fail(self, number, message):
        result = self.result
        output = ""
        if result is not None:
            output = f"\n--- exit {result.returncode}, stdout\n{result.stdout}\n--- stderr\n{result.stderr}"
        raise Failure(f"{self.path}:{number}: {message}{output}")

    def run_command(self, number, command):
        begun = time.monotonic()
        process = subprocess.Popen(
            ["bash", "-c", command], cwd=self.folder, env=self.environment, text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        timed_out = False
        try:
            out, err = process.communicate(timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired:
            timed_out = True
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
        self.result = subprocess.CompletedProcess(command, process.returncode, out, err)
        self.exit_checked = False
        if self.shows_times:
            print(f"{time.monotonic() - begun:6.1f} s  line {number}: {command[:100]}", flush=True)
        if timed_out:
            self.fail(number, f"not ended after {MOST_SECONDS} seconds")

    def end_command(self, number):
        if not self.exit_checked and self.result.returncode != 0:
            self.fail(number, f"the command before this line ended with {self.result.returncode}")
        self.exit_checked = True

    def check(self, number, line):
        kind, _, wanted = line.partition(" ")
        result = self.result
        if result is None:
            self.fail(number, "no command yet")
        if kind == "exit:":
            self.exit_checked = True
            if result.returncode != int(wanted):
                self.fail(number, f"exit code {result.returncode}, wanted {wanted}")
        elif kind in ("out:", "err:"):
            text = result.stdout if kind == "out:" else result.stderr
            if wanted not in text:
                self.fail(number, f"missing in {kind[:-1]}: {wanted}")
        elif kind in ("out~", "err~"):
            text = result.stdout if kind == "out~" else result.stderr
            if not re.search(wanted, text, re.MULTILINE):
                self.fail(number, f"no match in {kind[:-1]}: {wanted}")
        elif kind == "no":
            stream, _, unwanted = wanted.partition(": ")
            text = result.stdout if stream == "out" else result.stderr
            if unwanted in text:
                self.fail(number, f"unwanted in {stream}: {unwanted}")
        else:
            self.fail(number, f"unknown line: {line}")

    def run(self):
        with open(self.path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        i = 0
        while i < len(lines):
            line, number = lines[i], i + 1
            i += 1
            if not line.strip() or line.startswith("#"):
                continue
            if line.startswith("skip-without: "):
                name = line.split()[1]
                if not os.environ.get(name):
                    print(f"skipped: {name} is not set")
                    return SKIPPED
            elif line == "long":
                if not self.is_long:
                    break
            elif line.startswith("$ "):
                self.end_command(number)
                self.run_command(number, line[2:])
            elif line.startswith("data "):
                make_data.make(self.folder, line.split()[1:])
            elif line.startswith("fixture "):
                shutil.copy(os.path.join(os.path.dirname(HERE), "fixtures", line.split()[1]), self.folder)
            elif line.startswith("file "):
                text = []
                while i < len(lines) and (lines[i].startswith("  ") or not lines[i].strip()):
                    text.append(lines[i][2:])
                    i += 1
                target = os.path.join(self.folder, line[5:].strip())
                os.makedirs(os.path.dirname(target), exist_ok=True)
                with open(target, "w", encoding="utf-8") as file:
                    file.write("\n".join(text).rstrip("\n") + "\n")
            else:
                self.check(number, line)
        self.end_command(len(lines))
        return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gallop-scenario-") as folder:
        try:
            return Scenario(options.file, options.program, folder, options.long, options.times).run()
        except Failure as failure:
            print(failure)
            return 1


if __name__ == "__main__":
    sys.exit(main())
