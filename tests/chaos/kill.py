#!/usr/bin/env python3
"""Kills a training at random moments, resumes it each time, and compares the final weights with an undisturbed run.

    kill.py PROGRAM --kills 20 --signal KILL --seed 1

Moments are drawn over the whole life of a process: start-up, reading, training, evaluation, saving. Prints one line per
kill; exits with 1 if the weights are not bit-identical or a process hangs.
"""

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenario"))
import make_data  # noqa: E402

RECIPE = """\
data: {name: mnist, path: data, batch_size: 32, threads: 2, augment: [{random-horizontal-flip: {}}, {random-crop: {padding: 1}}]}
model: {name: %s}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9, nesterov: true, weight_decay: 5.0e-4}
schedule: {name: one-cycle}
train: {epochs: 12, precision: bf16, channels_last: "true", checkpoint_every: 7 steps}
"""
FIXTURES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fixtures")
MODELS = {
    "exported": f"exported, file: {FIXTURES}/exported/nets/digits.pt2",  # With dropout and stochastic depth.
    "resnet": "resnet, depth: 8, width: 0.5",
    "mlp": "mlp, hidden: [256, 256], dropout: 0.2",
}
FINISHED, STOPPED = 0, 5


def weights_hash(folder):
    with open(os.path.join(folder, "checkpoints", "latest"), encoding="utf-8") as file:
        name = file.read().strip()
    checkpoint = os.path.join(folder, "checkpoints", name)
    weights = hashlib.sha256()
    # More than one file if several processes have each written a slice.
    for file_name in sorted(name for name in os.listdir(checkpoint) if name.startswith("model")):
        with open(os.path.join(checkpoint, file_name), "rb") as file:
            weights.update(file.read())
    return weights.hexdigest()


def start(program, name, folder, epochs):
    options = [f"train.epochs={epochs}"] if epochs else []
    return subprocess.Popen(
        [program, "train", "recipe.yaml", "--name", name, "--continue", "--quiet", *options], cwd=folder,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process):
    output, _ = process.communicate(timeout=600)
    return process.returncode, output


def disturbed(program, folder, epochs, kills, signal_number, seconds, rng):
    """Runs to the end through `kills` signals. Returns how many were sent."""
    sent = 0
    while True:
        process = start(program, "disturbed", folder, epochs)
        if sent < kills:
            # Early moments are drawn often enough that finishing takes several processes.
            delay = rng.uniform(0, 0.35 * seconds)
            try:
                process.wait(timeout=delay)
            except subprocess.TimeoutExpired:
                process.send_signal(signal_number)
                sent += 1
                asked = time.monotonic()
                code, output = finish(process)
                print(f"kill {sent}: after {delay:.2f} s, exit {code}, "
                      f"gone {time.monotonic() - asked:.2f} s later", flush=True)
                if code not in (-signal.SIGKILL, -signal_number, STOPPED, FINISHED):
                    sys.exit(f"unexpected exit code {code}:\n{output}")
                continue
        code, output = finish(process)
        if code != FINISHED:
            sys.exit(f"the last process ended with {code}:\n{output}")
        if sent >= kills:
            return sent
        # It finished before every kill was sent: start over, and keep the count of kills.
        subprocess.run(["rm", "-rf", os.path.join(folder, "runs", "disturbed")], check=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=0)
    parser.add_argument("--signal", choices=["KILL", "TERM", "INT", "USR1"], default="KILL")
    parser.add_argument("--model", choices=sorted(MODELS), default="resnet")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.program)
    rng = random.Random(arguments.seed)

    with tempfile.TemporaryDirectory(prefix="gallop-chaos-") as folder:
        os.makedirs(os.path.join(folder, "data"))
        make_data.make_idx(os.path.join(folder, "data"), 1000)
        with open(os.path.join(folder, "recipe.yaml"), "w", encoding="utf-8") as file:
            file.write(RECIPE % MODELS[arguments.model])
        begin = time.monotonic()
        code, output = finish(start(program, "undisturbed", folder, arguments.epochs))
        seconds = time.monotonic() - begin
        if code != FINISHED:
            sys.exit(f"the undisturbed run ended with {code}:\n{output}")
        wanted = weights_hash(os.path.join(folder, "runs", "undisturbed"))
        print(f"undisturbed: {seconds:.1f} s, weights {wanted}", flush=True)

        sent = disturbed(program, folder, arguments.epochs, arguments.kills,
                         getattr(signal, "SIG" + arguments.signal), seconds, rng)
        found = weights_hash(os.path.join(folder, "runs", "disturbed"))
        print(f"disturbed:   {sent} times SIG{arguments.signal}, weights {found}")
        if found != wanted:
            sys.exit("the weights differ")
        print("the weights are equal, bit for bit")


if __name__ == "__main__":
    main()
