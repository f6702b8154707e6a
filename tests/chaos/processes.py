#!/usr/bin/env python3
"""Kills the launcher of a training in several processes and resumes with another number of them.

    processes.py PROGRAM --counts 4,3,12,1

The final weights must be bit-identical to those of one undisturbed process.
"""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs  # noqa: E402

# With all the state that a resume restores: order, augmentation, optimizer, schedule, batch statistics.
SAVE_STEPS = 3
RECIPE = """\
data: {name: mnist, path: data, batch_size: 24, threads: 1, augment: [{random-horizontal-flip: {}}, {random-crop: {padding: 1}}]}
model: {name: resnet, depth: 8, width: 0.25}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 5.0e-4}
schedule: {name: one-cycle}
train: {epochs: 4, precision: bf16, channels_last: "true", checkpoint_every: %d steps, evaluate_every: 2 epochs}
parallel: {name: deterministic}
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--counts", default="4,3,12,1", help="successive numbers of processes")
    arguments = parser.parse_args()
    counts = [int(count) for count in arguments.counts.split(",")]

    with runs.make(arguments.program, RECIPE % SAVE_STEPS) as there:
        there.finished("undisturbed")
        wanted = there.weights("undisturbed")
        step = 0
        for count in counts[:-1]:
            # At the second save the first checkpoint is published.
            second = there.hold(f"/.tmp-step-{step + 2 * SAVE_STEPS:08}", rank=0)
            training = there.start("changed", processes=count, environment=second.environment)
            training.wait_for(second.has_come, "second save")
            training.kill()
            step = there.step("changed")
            print(f"{count} processes: killed after the checkpoint of step {step}", flush=True)
        output = there.finished("changed", processes=counts[-1] if counts[-1] > 1 else 0)
        if "resumed from step" not in output:
            sys.exit(f"the last one did not continue:\n{output[-3000:]}")
        there.require_weights("changed", wanted, "another number of processes")
        print(f"{counts[-1]} to the end: the weights are those of one process, bit for bit")


if __name__ == "__main__":
    main()
