#!/usr/bin/env python3
"""Trains while the system clock jumps by hours, repeatedly, in every process of the training.

    clock.py PROGRAM

Nothing may time out or restart, the log must have its steps in order, and the final weights must be bit-identical to
those of an undisturbed run.
"""

import argparse
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs  # noqa: E402

STEP_SECONDS = "parallel.step_seconds=600"  # Shorter than the jumps, longer than a busy machine may need.


def records(there, name):
    with open(there.path(name, "metrics.log"), encoding="utf-8") as file:
        return [json.loads(line.split("\t")[0]) for line in file]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--epochs", default="1000,100", help="of one process and of two")
    parser.add_argument("--save-seconds", type=float, default=0.4)
    arguments = parser.parse_args()

    with runs.make(arguments.program) as there:
        jumping = there.preload("clock")
        for processes, epochs in zip((0, 2), arguments.epochs.split(",")):
            options = [STEP_SECONDS] if processes else []
            # Also by time, which must not become due by a jump of an hour.
            options += [f"train.epochs={epochs}", f"train.checkpoint_every={arguments.save_seconds} s",
                        "train.evaluate_every=never"]
            calm, stormy = f"calm-{processes}", f"stormy-{processes}"
            there.finished(calm, *options, processes=processes)
            output = there.finished(stormy, *options, processes=processes, environment=jumping)
            if "gallop: restarting" in output:
                sys.exit(f"it was restarted:\n{output[-3000:]}")
            there.require_weights(stormy, there.weights(calm), "a clock that jumps")
            log = records(there, stormy)
            steps = [record["step"] for record in log if record["kind"] == "step"]
            times = [record["time"] for record in log]
            if steps != sorted(set(steps)):
                sys.exit(f"steps are out of order: {steps}")
            back = sum(later < earlier for earlier, later in zip(times, times[1:]))
            if back == 0 or max(times) - min(times) < 3600:
                sys.exit("the clock has not jumped")
            saves = [sum(record["kind"] == "checkpoint" for record in records(there, name)) for name in (calm, stormy)]
            print(f"{processes or 1} processes: the clock went back {back} times, {len(steps)} steps are in order, "
                  f"{saves[1]} checkpoints where a calm clock has {saves[0]}, the weights are equal, bit for bit")


if __name__ == "__main__":
    main()
