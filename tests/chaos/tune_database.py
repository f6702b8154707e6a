#!/usr/bin/env python3
"""Searches with the program itself in a database that has held no study, by two processes of one host at once: each
trial is run once, by one of them. An address that was wrong leaves nothing behind.

    tune_database.py GALLOP

Ends with 77 where PostgreSQL is not installed.
"""

import glob
import os
import subprocess
import sys
import tempfile

import tune

SWEEP = """
command: [python3, -c, 'import time; time.sleep(0.3); print("{{\\"cost\\": {x}}}")']
metric: cost
parameters: {x: {min: 0.5, max: 1.0}}
sampler: random
trials: 8
"""


def search(program, folder, where):
    return subprocess.Popen([program, "tune", "sweep.yaml", "--store", where], cwd=folder, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="gallop-tune-") as folder:
        with open(os.path.join(folder, "sweep.yaml"), "w", encoding="utf-8") as file:
            file.write(SWEEP)
        database = tune.Postgresql(folder)
        try:
            wrong = search(program, folder, database.where.replace("/postgres?", "/nowhere?"))
            _, errors = wrong.communicate()
            if wrong.returncode != 4 or "cannot be reached" not in errors:
                sys.exit(f"a wrong address ended with {wrong.returncode}: {errors}")
            processes = [search(program, folder, database.where) for _ in range(2)]
            for process in processes:
                output, errors = process.communicate()
                if process.returncode != 0 or "8 of 8 trials finished" not in output:
                    sys.exit(f"ended with {process.returncode}: {output}{errors}")
        finally:
            database.stop()
        for path in sorted(glob.glob(os.path.join(folder, "studies", "sweep", "output", "*.log"))):
            with open(path, encoding="utf-8") as file:
                lines = file.read().splitlines()
            if len(lines) != 1:
                sys.exit(f"{path}: the trial was run {len(lines)} times")
    print("8 trials, each run once")


if __name__ == "__main__":
    main()
