#!/usr/bin/env python3
"""Measures the seconds from the start of the program to the end of its first training step.

    run.py PROGRAM [--runs 7] [--cold] RECIPE [OVERRIDE ...]

Every run is a new process that reads the recipe and the data, builds the model and runs one step. The first run, which
warms the disk cache, is reported separately. With --cold every run has an empty user cache, so that the generated
kernels of the step are compiled again. Prints JSON.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time


def first_step_seconds(program, arguments, folder, cold):
    if cold:
        with tempfile.TemporaryDirectory() as cache:
            return seconds_of_run(program, arguments, folder, os.environ | {"XDG_CACHE_HOME": cache})
    return seconds_of_run(program, arguments, folder, os.environ)


def seconds_of_run(program, arguments, folder, environment):
    begin = time.monotonic()
    process = subprocess.Popen([program, "train", *arguments, "--json", "--runs", folder],
                               stdout=subprocess.PIPE, text=True, env=environment)
    for line in process.stdout:
        if json.loads(line).get("event") == "step":
            seconds = time.monotonic() - begin
            process.kill()
            process.wait()
            return seconds
    raise SystemExit(f"the program ended with {process.wait()} before its first step")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("recipe", nargs="+")
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.program)
    with tempfile.TemporaryDirectory() as folder:
        times = [first_step_seconds(program, arguments.recipe, folder, arguments.cold)
                 for _ in range(arguments.runs + 1)]
    warm = times[1:]
    print(json.dumps({"recipe": arguments.recipe, "cold": arguments.cold, "first_run": round(times[0], 3),
                      "median": round(statistics.median(warm), 3), "min": round(min(warm), 3),
                      "max": round(max(warm), 3), "runs": len(warm)}))


if __name__ == "__main__":
    main()
