#!/usr/bin/env python3
"""Searches in two processes started by a real launcher, and compares the study with that of one process.

    search.py PROGRAM torchrun|mpirun|srun

Exits with 77 and a message if the launcher is not installed. srun has its own Slurm, on loopback, which needs root.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import start  # noqa: E402
from start import kill, runs  # noqa: E402

# Prints the launcher's variables that it sees, slowly enough that both processes run some trials.
TRIAL = """\
import json, os, sys, time
print(sorted(name for name in os.environ if name.startswith(("OMPI_", "PMI", "SLURM_", "TORCHELASTIC"))
             and name != "SLURM_CONF" or name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")))
time.sleep(0.3)
print(json.dumps({"cost": float(sys.argv[1]) ** 2}))
"""
COMMAND = """\
command: [python3, trial.py, "{x}"]
metric: cost
parameters: {x: {min: -1, max: 1.0}}
sampler: random
trials: 16
"""
# Its trials would train together if they mistook themselves for processes of the launcher.
TRAINING = """\
recipe: recipe.yaml
metric: accuracy
parameters: {optimizer.lr: {min: 1.0e-3, max: 0.1, scale: log}}
sampler: random
trials: 2
"""


class Folder:
    def __init__(self, path, program, environment):
        self.path, self.program, self.environment = path, program, environment

    def write(self, name, text):
        with open(os.path.join(self.path, name), "w", encoding="utf-8") as file:
            file.write(text)

    def run(self, *command):
        result = subprocess.run(command, cwd=self.path, env=self.environment, stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=runs.HANGS_SECONDS)
        if result.returncode != 0:
            sys.exit(f"{' '.join(command)} ended with {result.returncode}:\n{result.stdout}{result.stderr}")
        return result.stdout

    def trials(self, study):
        self.run(self.program, "tune", "export", study, "--json", "trials.json")
        with open(os.path.join(self.path, "trials.json"), encoding="utf-8") as file:
            return json.load(file)["trials"]

    def printed(self, study, trial):
        with open(os.path.join(self.path, "studies", study, "output", f"{trial:04}.log"), encoding="utf-8") as file:
            return file.read()


def check_command(folder, command):
    output = folder.run(*command, "tune", "command.yaml")
    trials = folder.trials("command")
    if [trial["state"] for trial in trials] != 16 * ["complete"]:
        sys.exit(f"not all trials are complete:\n{output}")
    processes = {trial["worker"].rsplit("/", 1)[0] for trial in trials}
    if len(processes) != 2:
        sys.exit(f"the trials were run by {processes}:\n{output}")
    if output.count("to run it again") != 1 or output.count("joined") != 1:
        sys.exit(f"there was not exactly one leader:\n{output}")
    seen = {folder.printed("command", trial["trial"]).splitlines()[0] for trial in trials}
    if seen != {"[]"}:
        sys.exit(f"trials see variables of the launcher: {seen}")
    folder.run(*command, "tune", "command.yaml", "--name", "kept", "--keep-variables")
    if folder.printed("kept", 0).startswith("[]"):
        sys.exit("trials do not see the variables of the launcher, although they should")


def check_training(folder, command):
    folder.run(*command, "tune", "training.yaml")
    for number in range(2):
        again = folder.run(folder.program, "tune", "best", "training", "--trial", str(number), "--command").split()
        folder.run(folder.program, *again[1:], "--name", f"again-{number}")
        weights = [kill.weights_hash(os.path.join(folder.path, path))
                   for path in (f"studies/training/runs/{number:04}", f"runs/again-{number}")]
        if weights[0] != weights[1]:
            sys.exit(f"trial {number} did not train as a single process")


def main():
    program, starter = os.path.abspath(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory(prefix="gallop-tune-") as path, contextlib.ExitStack() as stack:
        environment, command = start.processes(starter, path, stack)
        os.makedirs(os.path.join(path, "data"))
        kill.make_data.make_idx(os.path.join(path, "data"), 500)
        folder = Folder(path, program, environment)
        for name, text in (("trial.py", TRIAL), ("command.yaml", COMMAND), ("training.yaml", TRAINING),
                           ("recipe.yaml", start.RECIPE)):
            folder.write(name, text)
        check_command(folder, [*command, program])
        check_training(folder, [*command, program])
        print(f"{starter}: two processes shared the trials, each of which was one process")


if __name__ == "__main__":
    main()
