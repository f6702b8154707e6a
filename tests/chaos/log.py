#!/usr/bin/env python3
"""Kills a process by SIGKILL, repeatedly, while it writes a run's log as fast as it can.

    log.py LOG_PROGRAM [--kills 100] [--seed 1]

Every record that it reported before it was killed must be present, in order, and none may be damaged.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading

KILLS_OF_A_LOG = 5  # Then a new log is started, as each process first reads the whole log.


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
            # The time runs from the first record.
            reported = int(writer.stdout.readline())
            timer = threading.Timer(rng.uniform(0, 0.05), writer.kill)
            timer.start()
            for line in writer.stdout:
                reported = int(line) if line.endswith("\n") else reported
            writer.wait()
            timer.join()
            check = subprocess.run([arguments.program, "check", log], text=True, capture_output=True, check=False)
            if check.returncode != 0:
                sys.exit(f"kill {kill + 1}: {check.stdout}")
            records, damaged = map(int, check.stdout.split())
            if records < reported or damaged > 0:
                sys.exit(f"kill {kill + 1}: {records} records of {reported} reported ones, {damaged} damaged lines")
        print(f"{arguments.kills} times SIGKILL: {all_records + records} records, all reported ones, none damaged")


if __name__ == "__main__":
    main()
