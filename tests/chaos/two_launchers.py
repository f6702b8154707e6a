#!/usr/bin/env python3
"""Starts a second launcher in the folder of a run, then kills the first.

    two_launchers.py PROGRAM

The second must be rejected with process and host of the first, whose lock must be released at once when it is killed.
"""

import argparse
import os
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs  # noqa: E402

WRONG_USE = 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    program = parser.parse_args().program

    with runs.make(program) as there:
        options = ["train.epochs=40", "train.checkpoint_every=100 steps", "train.evaluate_every=never"]
        there.finished("calm", *options, processes=2)
        # The first process of a resume has the lock from the start.
        second_save = there.hold("/.tmp-step-00000200", rank=0)
        first = there.start("run", *options, processes=2, environment=second_save.environment)
        first.wait_for(second_save.has_come, "second save")
        first.kill()
        # It is delayed until the second launcher has ended.
        third_save = there.hold("/.tmp-step-00000300", rank=0)
        first = there.start("run", *options, processes=2, environment=third_save.environment)
        first.wait_for(third_save.has_come, "third save")
        owner = f"process {first.rank(0)} on {socket.gethostname()}"
        code, output = there.run("run", *options, processes=2)
        refusal = [line for line in output.splitlines() if f"{owner} is training this run" in line]
        if code != WRONG_USE or not refusal or "gallop: restarting" in output:
            sys.exit(f"the second ended with {code}, and was not rejected because of {owner}:\n{output}")
        print(f"the second: exit {code}\n  {refusal[0]}")
        third_save.let_go()
        code, output = first.finish()
        if code != 0 or "gallop: restarting" in output:
            sys.exit(f"the first ended with {code}:\n{output[-3000:]}")
        there.require_weights("run", there.weights("calm"), "after a second launcher")
        print("the first continued, and its weights are those of an undisturbed run, bit for bit")


if __name__ == "__main__":
    main()
