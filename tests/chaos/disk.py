#!/usr/bin/env python3
"""Trains on a disk that is full, has no inodes left, or becomes read-only: a tmpfs in its own mount namespace.

    disk.py PROGRAM

Each time the training must exit with code 4 and report path, reason and bytes, and the older checkpoint must remain.
With free space it must continue to weights bit-identical to those of an undisturbed run. Exits with 77 if nothing can
be mounted.
"""

import argparse
import contextlib
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs  # noqa: E402

INSIDE = "GALLOP_CHAOS_MOUNTS"
# A checkpoint has 390 KiB, and there are five of them. No samples are logged, since the test limits inodes.
RECIPE = """\
data: {name: mnist, path: data, batch_size: 20, threads: 2}
model: {name: mlp, hidden: [192], dropout: 0.1}
optimizer: {name: adamw, lr: 0.003}
train: {epochs: 3, precision: fp32, channels_last: "false", checkpoint_every: 7 steps, evaluate_every: never,
        keep_checkpoints: 10}
track: {log_samples: 0}
"""
DEVICE_TROUBLE = 4


def mount(path, options):
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", path], check=True)


def remount(path, options):
    subprocess.run(["mount", "-o", f"remount,{options}", path], check=True)


def require(condition, what, output):
    if not condition:
        sys.exit(f"{what}:\n{output[-4000:]}")


def check_end(what, code, output, texts):
    """Checks the last line of output, which is the error."""
    line = next(line for line in reversed(output.splitlines()) if line.startswith("gallop: "))
    print(f"{what}: exit {code}\n  {line}", flush=True)
    require(code == DEVICE_TROUBLE, f"{what}: exit {code}", output)
    for text in texts:
        require(text in line, f"{what}: '{text}' is not told", output)


def go_on(there, name, what, wanted, options=(), processes=0):
    output = there.finished(name, *options, processes=processes)
    step = re.search(r"resumed from step (\d+)", output)
    require(step is not None, f"{what}: no checkpoint was left", output)
    there.require_weights(name, wanted, what)
    print(f"  continued from step {step[1]}, to the same weights")


def on_small_disk(there, what, options, room, texts, wanted):
    """Trains until the disk with these mount options is full, then frees space."""
    name = what.replace(" ", "-")
    os.makedirs(there.path(name))
    mount(there.path(name), options)
    code, output = there.run(name)
    check_end(what, code, output, texts)
    remount(there.path(name), room)
    go_on(there, name, what, wanted)


def full_for_two(there, wanted):
    """The launcher restarts it, and finally gives up."""
    name, what = "full-for-two", "a full disk, two processes"
    os.makedirs(there.path(name))
    mount(there.path(name), "size=1240k")
    code, output = there.run(name, processes=2)
    check_end(what, code, output, ["started 4 times"])
    require(output.count("older checkpoints are untouched") == 4, f"{what}: not told each time", output)
    remount(there.path(name), "size=8m")
    go_on(there, name, what, wanted, processes=2)


def filled_by_others(there):
    """After the first of two saves no byte is left, while eighty lines are to be logged."""
    name, what = "filled", "a disk that others fill"
    options = ["train.epochs=20", "train.checkpoint_every=100 steps", "train.checkpoint_in_background=false"]
    there.finished("undisturbed-long", *options)
    os.makedirs(there.path(name))
    mount(there.path(name), "size=2m")
    line = there.hold("/metrics.log", 120)
    training = there.start(name, *options, environment=line.environment)
    training.wait_for(line.has_come, "line 120 of the log")
    with open(there.path(name, "other"), "wb", buffering=0) as other, contextlib.suppress(OSError):
        while other.write(bytes(4096)):
            pass
    line.let_go()
    code, output = training.finish()
    check_end(what, code, output, ["runs/filled", "No space left on device"])
    os.remove(there.path(name, "other"))
    go_on(there, name, what, there.weights("undisturbed-long"), options)


def read_only(there, wanted):
    """Remounts at the first call of the second save, when none of its files is open."""
    name, what = "read-only", "a disk that becomes read-only"
    checkpoints = there.path(name, "checkpoints")
    os.makedirs(checkpoints)
    mount(checkpoints, "size=8m")
    second = there.hold("/.tmp-step-00000014")
    training = there.start(name, environment=second.environment)
    training.wait_for(second.has_come, "second save")
    remount(checkpoints, "ro")
    second.let_go()
    code, output = training.finish()
    check_end(what, code, output, ["runs/read-only/checkpoints", "Read-only file system", "a checkpoint needs"])
    remount(checkpoints, "rw")
    go_on(there, name, what, wanted)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    program = parser.parse_args().program
    if INSIDE not in os.environ:
        os.environ[INSIDE] = "yes"
        alone = ["unshare", "--mount", "--propagation", "private"]
        if subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
            runs.skip("no mount namespaces here")
        os.execvp(alone[0], [*alone, sys.executable, *sys.argv])

    with runs.make(program, RECIPE) as there:
        there.finished("undisturbed")
        wanted = there.weights("undisturbed")
        there.finished("undisturbed-two", processes=2)
        wanted_of_two = there.weights("undisturbed-two")
        full = ["checkpoints", "only ", "are free", "a checkpoint needs", "older checkpoints are untouched"]
        try:
            on_small_disk(there, "a full disk", "size=1200k", "size=8m", full, wanted)
            full_for_two(there, wanted_of_two)
            on_small_disk(there, "no inodes", "size=8m,nr_inodes=24", "size=8m,nr_inodes=1000",
                          ["checkpoints", "No space left on device", "a checkpoint needs"], wanted)
            filled_by_others(there)
            read_only(there, wanted)
        finally:
            # Mounts end with the namespace, which is after the folder is removed: unmount them before.
            for name in os.listdir(os.path.join(there.folder, "runs")):
                for path in (there.path(name, "checkpoints"), there.path(name)):
                    if os.path.ismount(path):
                        subprocess.run(["umount", "--lazy", path], check=True)


if __name__ == "__main__":
    main()
