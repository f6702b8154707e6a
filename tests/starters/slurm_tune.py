#!/usr/bin/env python3
"""Submits searches by 'gallop tune --slurm' to a real Slurm of one node: a job array, and one job of two processes.

    slurm_tune.py PROGRAM

The job that leads is ended and requeued; another one must take over, and no trial may be lost. Exits with 77 and a
message if Slurm is not installed; it needs root.
"""

import contextlib
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import start  # noqa: E402
from start import runs  # noqa: E402
from search import Folder  # noqa: E402

# Trials from the sixth on wait until they are released, so that the study is not done before the checks.
TRIAL = """\
import json, os, sys, time
while int(os.environ["GALLOP_TRIAL_NUMBER"]) >= 6 and not os.path.exists("let-go"):
    time.sleep(0.05)
print(json.dumps({"cost": float(sys.argv[1]) ** 2}), flush=True)
"""
SWEEP = """\
command: [python3, trial.py, "{x}"]
metric: cost
parameters: {x: {min: -1, max: 1.0}}
sampler: random
trials: 20
"""


class Study:
    def __init__(self, folder, name, *arguments):
        self.folder, self.name = folder, name
        printed = folder.run(folder.program, "tune", "sweep.yaml", "--name", name, "--slurm", *arguments)
        found = re.fullmatch(r"job +(\d+)\nstudy +studies/(\S+)\noutput +(\S+)\n", printed)
        if not found or found[2] != name:
            sys.exit(f"this was printed at submission:\n{printed}")
        self.job, self.output = found[1], os.path.basename(found[3])

    def elements(self):
        """{job number: state} of the jobs that Slurm lists."""
        text = self.folder.run("scontrol", "show", "job", self.job)
        return {record["JobId"]: record for record in
                (dict(re.findall(r"(\w+)=(\S+)", part)) for part in text.split("\n\n")) if "JobId" in record}

    def text(self, element=""):
        name = self.output.replace("*", element)
        try:
            with open(os.path.join(self.folder.path, name), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def wait(self, what, is_so):
        if runs.holds_within(runs.HANGS_SECONDS, is_so):
            return
        texts = [self.text(element) for element in ("1", "2")]
        sys.exit(f"{self.name}: not {what}: {self.elements()}\n" + "\n".join(texts))

    def wait_until_done(self):
        self.wait("completed", lambda: all(one["JobState"] == "COMPLETED" for one in self.elements().values()))
        trials = self.folder.trials(self.name)
        if [trial["state"] for trial in trials] != 20 * ["complete"]:
            sys.exit(f"{self.name}: not all trials are complete")
        return trials


def processes_of(trials):
    return {trial["worker"].rsplit("/", 1)[0] for trial in trials}


def check_array(folder):
    study = Study(folder, "array", "--array", "2", "--time", "00:30:00")

    def leader():
        return next((element for element in ("1", "2") if "study  " in study.text(element)), None)

    study.wait("led", leader)
    led = leader()
    other = {"1": "2", "2": "1"}[led]
    study.wait("helped", lambda: "joined" in study.text(other))
    # A new leader reports that it continues only if the study has a finished trial.
    study.wait("at work", lambda: "complete" in study.text(led))

    def told(name):
        return next(one[name] for one in study.elements().values() if one.get("ArrayTaskId") == led)

    # By this name, as the job number of the last element is that of the whole array.
    number = f"{study.job}_{led}"
    folder.run("scancel", "--signal=USR1", number)
    study.wait("queued again", lambda: told("Restarts") == "1" and told("JobState") == "PENDING")
    study.wait("led by the other", lambda: "resumed" in study.text(other))
    folder.write("let-go", "")
    folder.run("scontrol", "update", f"JobId={number}", "StartTime=now")
    study.wait_until_done()
    print("an array: its leader was requeued, another took over, and no trial was lost", flush=True)


def check_job(folder):
    study = Study(folder, "job", "-n", "2", "--sbatch=--overcommit")
    trials = study.wait_until_done()
    if len(processes_of(trials)) != 2:
        sys.exit(f"the trials were run by {processes_of(trials)}")
    print("a job of two processes: both ran trials")


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="gallop-slurm-") as path, contextlib.ExitStack() as stack:
        folder = Folder(path, program, stack.enter_context(start.slurm(path)))
        folder.write("trial.py", TRIAL)
        folder.write("sweep.yaml", SWEEP)
        check_array(folder)
        check_job(folder)


if __name__ == "__main__":
    main()
