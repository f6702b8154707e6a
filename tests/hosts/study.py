#!/usr/bin/env python3
"""Queries a study on another host than that of the process that leads it.

    study.py PROGRAM

The other host is a namespace with its own host name, which needs root and unshare; without them it exits with 77 and a
message. The file of the study must not be opened there: the process that leads the study must answer.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile

SWEEP = """\
command: [sh, -c, "read line < go; echo {{\\\\\\"cost\\\\\\": {x}}}"]
metric: cost
parameters: {x: {min: 0, max: 1.0}}
sampler: random
trials: 2
heartbeat: 600
"""
ELSEWHERE = ["unshare", "--uts", "sh", "-c", 'hostname elsewhere && exec "$@"', "sh"]


def expect(condition, words):
    if not condition:
        sys.exit(words)


def main():
    program = os.path.abspath(sys.argv[1])
    if subprocess.run([*ELSEWHERE, "true"], capture_output=True, check=False).returncode != 0:
        print("skipped: a separate host name is not possible here (unshare --uts, hostname)")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        check(program, folder)


def check(program, folder):
    def tune(*words, prefix=()):
        return subprocess.run([*prefix, program, "tune", *words], cwd=folder, capture_output=True, text=True,
                              check=False, timeout=300)

    with open(os.path.join(folder, "sweep.yaml"), "w", encoding="utf-8") as file:
        file.write(SWEEP)
    os.mkfifo(os.path.join(folder, "go"))
    leader = subprocess.Popen([program, "tune", "sweep.yaml", "--json"], cwd=folder, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    try:
        with open(os.path.join(folder, "go"), "w", encoding="utf-8") as go:
            go.write("\n")  # The first trial ends, and then the second waits.
        for line in leader.stdout:
            if '"event":"trial"' in line.replace(" ", ""):
                break
        here = tune("status", "sweep", "--json")
        while len(json.loads(here.stdout)["trials"]) < 2:  # The second trial follows the event.
            here = tune("status", "sweep", "--json")
        there = tune("status", "sweep", "--json", prefix=ELSEWHERE)
        expect(there.returncode == 0, f"status elsewhere: {there.stderr}")
        here, there = (json.loads(one.stdout)["trials"] for one in (here, there))
        expect(len(there) == 2 and there[0] == here[0], f"{there} is not {here}")
        best = tune("best", "sweep", prefix=ELSEWHERE)
        expect(best.returncode == 0 and "trial 0" in best.stdout, f"best elsewhere: {best.stdout}{best.stderr}")
        export = tune("export", "sweep", "--csv", "trials.csv", prefix=ELSEWHERE)
        expect(export.returncode == 0, f"export elsewhere: {export.stderr}")

        leader.send_signal(signal.SIGSTOP)
        silent = tune("status", "sweep", prefix=ELSEWHERE)
        expect(silent.returncode == 4 and f"process {leader.pid} on " in silent.stderr and "--listen" in silent.stderr,
               f"a leader that stands still: {silent.returncode} {silent.stdout}{silent.stderr}")
        leader.send_signal(signal.SIGCONT)
    finally:
        leader.kill()
        leader.wait()
    # Without a leader.
    after = tune("status", "sweep", prefix=ELSEWHERE)
    expect(after.returncode == 0, f"status without a leader: {after.stderr}")


if __name__ == "__main__":
    main()
