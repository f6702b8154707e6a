#!/usr/bin/env python3
"""Tests 'gallop tune' with an empty database and several processes on one host, two of one folder and one of another.

    tune_database.py GALLOP

Each trial must be run exactly once. While the database is down a search must end when requested, and continue later.
Wrong addresses and names must leave nothing behind. Exits with 77 if PostgreSQL is not installed.
"""

import collections
import glob
import os
import signal
import subprocess
import sys
import tempfile
import time

import runs
import tune

SWEEP = """
command: [python3, -c, 'import time; time.sleep(0.3); print("{{\\"cost\\": {x}}}")']
metric: cost
parameters: {x: {min: 0.5, max: 1.0}}
sampler: random
trials: 8
"""
LONG = SWEEP.replace("time.sleep(0.3)", 'print("begins", flush=True); time.sleep(600)').replace("trials: 8", "trials: 2")
USAGE, DEVICE, STOPPED = 2, 4, 5
HANGS_SECONDS = 240  # Includes the wait for a database.


class Place:
    """A folder in which a search runs."""

    def __init__(self, program, folder, where):
        self.program, self.folder, self.where = program, folder, where
        os.makedirs(folder)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def search(self, text, name, where=None, workers=1):
        with open(self.path(f"{name}.yaml"), "w", encoding="utf-8") as file:
            file.write(text)
        return subprocess.Popen([self.program, "tune", f"{name}.yaml", "--store", where or self.where,
                                 "--workers", str(workers)],
                                cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def outputs(self, name):
        """The output lines of each trial, by file name."""
        lines = {}
        for log in glob.glob(self.path("studies", name, "output", "*.log")):
            with open(log, encoding="utf-8") as file:
                lines[os.path.basename(log)] = len(file.readlines())
        return lines


def expect(code, what, process):
    output, errors = process.communicate(timeout=HANGS_SECONDS)
    if process.returncode != code or what not in output + errors:
        sys.exit(f"ended with {process.returncode} and not {code}, or without '{what}': {output}{errors}")


def wait_for(what, is_so):
    if not runs.holds_within(HANGS_SECONDS, is_so):
        sys.exit(f"not within {HANGS_SECONDS} s: {what}")


def refuses_what_is_wrong(place):
    nowhere = place.where.replace("/postgres?", "/nowhere?")
    expect(DEVICE, "cannot be reached", place.search(SWEEP, "nowhere", where=nowhere))
    expect(USAGE, "study 'sweep' in the database already exists and differs in parameters",
           place.search(SWEEP.replace("0.5", "0.6"), "sweep"))
    for name in "nowhere", "sweep":
        if os.path.exists(place.path("studies", name, "store")):
            sys.exit(f"{name}: a study was left behind that cannot be used")


def runs_each_trial_once(places):
    processes = [place.search(SWEEP, "sweep") for place in places]
    for process in processes:
        expect(0, "8 of 8 trials finished", process)
    times = collections.Counter()
    for place in set(places):
        times.update(place.outputs("sweep"))
    if times != {f"{trial:04}.log": 1 for trial in range(8)}:
        sys.exit(f"not each trial was run once: {times}")


def ends_while_the_database_is_away(place, database):
    process = place.search(LONG, "long", workers=2)
    wait_for("both trials begin", lambda: list(place.outputs("long").values()) == [1, 1])
    database.stop()
    time.sleep(4)  # Heartbeats, one every 3.3 s, fail.
    process.send_signal(signal.SIGTERM)
    expect(STOPPED, "running trials resume with the study", process)
    database.start()
    # The same worker, which need not wait until its heartbeat expires.
    process = place.search(LONG, "long", workers=2)
    wait_for("both begin again", lambda: list(place.outputs("long").values()) == [2, 2])
    process.send_signal(signal.SIGTERM)
    expect(STOPPED, "stopped; to resume", process)


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="gallop-tune-") as folder:
        database = tune.Postgresql(folder)
        here, there = (Place(program, os.path.join(folder, name), database.where) for name in ("here", "there"))
        try:
            runs_each_trial_once([here, here, there])
            refuses_what_is_wrong(Place(program, os.path.join(folder, "wrong"), database.where))
            ends_while_the_database_is_away(here, database)
        finally:
            database.stop()
    print("8 trials, each run once; a search ends without its database")


if __name__ == "__main__":
    main()
