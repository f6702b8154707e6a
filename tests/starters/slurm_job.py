#!/usr/bin/env python3
"""Submits trainings by 'gallop launch --slurm' to a real Slurm of one node, and makes it end them in every way.

    slurm_job.py PROGRAM

One training is signaled before its time limit, then preempted, then canceled: it must continue each time, and its
weights must be bit-identical to those of an undisturbed run. Others finish, fail and are rejected. Exits with 77 and a
message if Slurm is not installed; it needs root.
"""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import start  # noqa: E402
from start import kill  # noqa: E402

# Endless, so that Slurm interrupts it on any machine.
RECIPE = """\
data: {name: mnist, path: data, batch_size: 32, threads: 1, augment: [{random-horizontal-flip: {}}, {random-crop: {padding: 1}}]}
model: {name: resnet, depth: 8, width: 0.5}
optimizer: {name: sgd, lr: 0.01, momentum: 0.9}
schedule: {name: constant}
train: {epochs: 1000000, precision: fp32, evaluate_every: never, checkpoint_every: 50 steps}
"""
HANGS_SECONDS = 600
PROCESSES = ["-n", "2"]


class Cluster:
    def __init__(self, program, folder, environment):
        self.program, self.folder, self.environment = program, folder, environment

    def run(self, *command):
        result = subprocess.run(command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=HANGS_SECONDS)
        return result.returncode, result.stdout, result.stderr

    def ask(self, *command):
        code, output, errors = self.run(*command)
        if code != 0:
            sys.exit(f"{' '.join(command)} ended with {code}:\n{output}{errors}")
        return output

    def submit(self, *arguments):
        return Job(self, self.ask(self.program, "launch", "--slurm", *arguments))


class Job:
    """A submitted job, from the output of its submission."""

    def __init__(self, cluster, printed):
        found = re.fullmatch(r"job +(\d+)\nrun +(.+)\noutput +(\S+)\n", printed)
        if not found:
            sys.exit(f"this was printed at submission:\n{printed}")
        self.cluster = cluster
        self.number, run, self.output = found.groups()
        self.run = os.path.join(cluster.folder, run)

    def fail(self, message):
        sys.exit(f"{message}\n{self.cluster.ask('scontrol', 'show', 'job', self.number)}{self.text()}")

    def text(self):
        try:
            with open(self.output, encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def told(self, name):
        return re.search(rf"\b{name}=(\S+)", self.cluster.ask("scontrol", "show", "job", self.number))[1]

    def wait(self, what, is_so):
        begin = time.monotonic()
        while not is_so():
            if time.monotonic() - begin > HANGS_SECONDS:
                self.fail(f"not {what} after {HANGS_SECONDS} s")
            time.sleep(0.2)

    def wait_for_text(self, text):
        self.wait(f"'{text}' in its output", lambda: text in self.text())

    def wait_until_it_goes_on(self, step):
        self.wait_for_text(f"resumed from step {step}")
        self.wait(f"saved after step {step}", lambda: self.step() > step)

    def wait_for_state(self, state):
        self.wait(state, lambda: self.told("JobState") == state)

    def start_again(self, restarts):
        """Starts the job once it is requeued: by itself, Slurm waits two minutes until the node has cleaned up."""
        self.wait("queued again", lambda: self.told("Restarts") == str(restarts) and self.told("JobState") == "PENDING")
        self.cluster.ask("scontrol", "update", f"JobId={self.number}", "StartTime=now", "TimeLimit=1-00:00:00")

    def step(self):
        with open(os.path.join(self.run, "checkpoints", "latest"), encoding="utf-8") as file:
            return int(file.read().strip().removeprefix("step-"))


def disturb(cluster):
    """A job that is ended by its time limit, by another job and by scancel. Returns it with the steps of its saves."""
    # Slurm checks limits every 30 seconds, and the signal is due five seconds after the start.
    job = cluster.submit(*PROCESSES, "--time", "00:10:00", "--signal-seconds", "595", "train", "recipe.yaml")
    job.start_again(1)
    steps = [job.step()]
    job.wait_until_it_goes_on(steps[-1])
    print(f"before its time limit: saved at step {steps[-1]}, requeued, continued", flush=True)

    cluster.ask("sbatch", "--partition=urgent", "--wrap=true", "--output=/dev/null")
    job.start_again(2)
    steps.append(job.step())
    job.wait_until_it_goes_on(steps[-1])
    print(f"preempted: saved at step {steps[-1]}, requeued, continued", flush=True)

    cluster.ask("scancel", job.number)
    job.wait_for_state("CANCELLED")
    steps.append(job.step())
    print(f"canceled: saved at step {steps[-1]}", flush=True)
    if not steps[0] < steps[1] < steps[2]:
        job.fail(f"it was saved at steps {steps}")
    if job.told("Restarts") != "2":
        job.fail("it was requeued after it was canceled")
    return job, steps


def check_ends(cluster):
    """Jobs that end by themselves are not requeued."""
    name = "it's $HOME"
    done = cluster.submit(*PROCESSES, "--job-name", "done", "train", "recipe.yaml", "--name", name, "train.steps=3")
    done.wait_for_state("COMPLETED")
    if done.step() != 3:
        done.fail("it was not done")
    wrong = cluster.submit("train", "recipe.yaml", "data.path=nowhere")
    wrong.wait_for_state("FAILED")
    if wrong.told("ExitCode") != "3:0" or "nowhere" not in wrong.text() or wrong.told("Restarts") != "0":
        wrong.fail("it did not fail as expected")
    code, _, errors = cluster.run(cluster.program, "launch", "--slurm", "--partition", "none", "train", "recipe.yaml")
    if code != 4 or not re.fullmatch(r"gallop: sbatch ended with exit code 1: .*invalid partition.*\n", errors):
        sys.exit(f"a nonexistent partition ended with {code}:\n{errors}")
    print("finished, failed and rejected: not requeued")


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="gallop-slurm-") as folder, contextlib.ExitStack() as stack:
        os.makedirs(os.path.join(folder, "data"))
        kill.make_data.make_idx(os.path.join(folder, "data"), 500)
        with open(os.path.join(folder, "recipe.yaml"), "w", encoding="utf-8") as file:
            file.write(RECIPE)
        cluster = Cluster(program, folder, stack.enter_context(start.slurm(folder)))
        job, steps = disturb(cluster)
        cluster.ask(program, "launch", *PROCESSES, "train", "recipe.yaml", "--name", "calm", f"train.steps={steps[-1]}")
        if kill.weights_hash(os.path.join(folder, "runs", "calm")) != kill.weights_hash(job.run):
            sys.exit("the weights differ")
        print("the weights are those of an undisturbed run, bit for bit", flush=True)
        check_ends(cluster)


if __name__ == "__main__":
    main()
