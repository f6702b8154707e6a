#!/usr/bin/env python3
"""A process that writes a run's log as fast as it can is killed by SIGKILL again and again.

    log.py LOG_PROGRAM [--kills 100] [--seed 1]

Every record that it had told of before it was killed is there afterwards, in order, and none is damaged.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading

KILLS_OF_A_LOG = 5  # Then another is begun, as each process reads all of it first.


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="gallop-chaos-") as folder:
        log = os.path.join(folder, "metrics.log")
        all_records = 0
        for kill in range(arguments.kills):
            if kill % KILLS_OF_A_LOG == 0 and os.path.exists(log):
                all_records += records
                os.remove(log)
            writer = subprocess.Popen([arguments.program, "write", log], stdout=subprocess.PIPE, text=True)
            # It has begun to write before the time runs.
            told = int(writer.stdout.readline())
            timer = threading.Timer(rng.uniform(0, 0.05), writer.kill)
            timer.start()
            for line in writer.stdout:
                told = int(line) if line.endswith("\n") else told
            writer.wait()
            timer.join()
            check = subprocess.run([arguments.program, "check", log], text=True, capture_output=True, check=False)
            if check.returncode != 0:
                sys.exit(f"kill {kill + 1}: {check.stdout}")
            records, damaged = map(int, check.stdout.split())
            if records < told or damaged > 0:
                sys.exit(f"kill {kill + 1}: {records} records of {told} that were told of, {damaged} damaged lines")
        print(f"{arguments.kills} times SIGKILL: {all_records + records} records, all that were told of, none damaged")


if __name__ == "__main__":
    main()
