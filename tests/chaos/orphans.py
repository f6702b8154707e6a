#!/usr/bin/env python3
"""Kills the launcher at random moments: no process may be left behind.

    orphans.py PROGRAM --kills 20 --processes 4 --seed 1
"""

import argparse
import os
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kill_rank  # noqa: E402
import runs  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)

    with runs.make(arguments.program) as there:
        longest = started = 0
        for number in range(arguments.kills):
            # The first half is killed while it searches for a batch size, for which rank 0 has child processes.
            options = ["data.batch_size=auto"] if number < arguments.kills // 2 else []
            training = there.start(f"run-{number}", *options, "train.epochs=100000", processes=arguments.processes)
            # Every other one is killed only once all its processes run.
            if number % 2 == 0:
                training.rank(arguments.processes - 1)
            time.sleep(rng.uniform(0, 1.5))
            found = len(kill_rank.left_behind(there.folder)) - 1
            started += found
            training.process.kill()
            begin = time.monotonic()
            if not runs.holds_within(runs.GONE_SECONDS, lambda: not kill_rank.left_behind(there.folder)):
                sys.exit(f"kill {number + 1}: processes {kill_rank.left_behind(there.folder)} were left behind")
            longest = max(longest, time.monotonic() - begin)
            training.finish()
        print(f"{arguments.kills} launchers killed, with {started} processes below them: "
              f"all were gone {longest:.2f} s later at most")


if __name__ == "__main__":
    main()
