#!/usr/bin/env python3
"""Tests 'gallop launch' when the launcher itself is killed, and when a process cannot start.

    launcher.py PROGRAM

A launcher that is killed by SIGKILL, as one of several hosts, leaves no process behind. With --min-processes it
continues without processes that are killed whenever they start to read the data.
"""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kill  # noqa: E402
import runs  # noqa: E402


def leaves_nobody_behind(there, name, launch):
    training = there.start(name, "train.epochs=100000", processes=2, launch=launch)
    training.wait_for_event("step")
    processes = training.children()
    training.process.kill()
    moment = time.monotonic()
    if not runs.holds_within(runs.GONE_SECONDS, lambda: not any(map(runs.is_there, processes))):
        sys.exit(f"{name}: {processes} outlive their launcher")
    print(f"{name}: all {len(processes)} processes are gone {time.monotonic() - moment:.2f} s after their launcher")
    training.finish()


def goes_on_with_fewer(there):
    deadly = there.preload("calls", FAULT_PATH="data/train-", FAULT_READS=1, FAULT_AT=1, FAULT_ACTION="kill",
                           FAULT_RANK="2,3", FAULT_RESTARTS=1)
    deadly["GALLOP_SHARED_DATA"] = ""  # Each process reads the data itself.
    training = there.start("fewer", processes=4, launch=["--min-processes", "2", "--max-restarts", "10"],
                           environment=deadly)
    code, output = training.finish()
    started = [line.split()[2] for line in training.lines if line.startswith("gallop: restarting")]
    if code != kill.FINISHED or started != ["4", "3", "2"]:
        sys.exit(f"--min-processes: {code}, {started}\n{output}")
    print("--min-processes: continued with 4, 3 and 2 processes, and finished")


def main():
    with runs.make(sys.argv[1], kill.RECIPE % kill.MODELS["mlp"], "idx data 1000") as there:
        place = f"127.0.0.1:{runs.free_port()}"
        leaves_nobody_behind(there, "one-of-several-hosts", ["--nnodes", "1", "--rdzv", place])
        goes_on_with_fewer(there)


if __name__ == "__main__":
    main()
