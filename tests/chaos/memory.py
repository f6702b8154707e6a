#!/usr/bin/env python3
"""Trains in a memory cgroup that is too small for an evaluation, so that the kernel kills a process.

    memory.py PROGRAM

The launcher must report this with advice, the preceding checkpoint must be intact, and with more memory the training
must continue to weights bit-identical to those of an undisturbed run. Exits with 77 if cgroups cannot be created.
"""

import argparse
import contextlib
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs  # noqa: E402

# An evaluation takes all its images at once; the preceding checkpoint is written synchronously.
RECIPE = """\
data: {name: mnist, path: data, batch_size: 16, eval_batch: 1000, threads: 0}
model: {name: vit, patch: 2, width: 64, depth: 2, heads: 4}
optimizer: {name: adamw, lr: 0.001}
train: {steps: 14, precision: fp32, channels_last: "false", checkpoint_every: 7 steps, evaluate_every: 10 steps,
        checkpoint_in_background: false}
"""
LIMIT_BYTES = 500 << 20
DEVICE_TROUBLE = 4


def own_cgroup():
    """Folder of the memory cgroup of this process, and the name of its limit."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if "memory" in controllers.split(","):
                return "/sys/fs/cgroup/memory" + path, "memory.limit_in_bytes"
    return "/sys/fs/cgroup" + path, "memory.max"


@contextlib.contextmanager
def cgroup():
    """A child cgroup with the limit."""
    parent, limit = own_cgroup()
    folder = os.path.join(parent, f"gallop-chaos-{os.getpid()}")
    try:
        os.mkdir(folder)
    except OSError as error:
        runs.skip(f"no cgroup can be made: {error}")
    try:
        try:
            with open(os.path.join(folder, limit), "w", encoding="utf-8") as file:
                file.write(str(LIMIT_BYTES))
        except OSError as error:
            runs.skip(f"no memory limit can be set: {error}")
        yield folder
    finally:
        os.rmdir(folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    program = parser.parse_args().program

    with runs.make(program, RECIPE, "idx data 2000 size=28") as there, cgroup() as limited:
        there.finished("undisturbed", processes=2)
        command = [there.program, "launch", "-n", "2", "--max-restarts", "1", "train", "recipe.yaml", "--name", "limited"]
        within = subprocess.run(
            ["sh", "-c", f'echo $$ > {limited}/cgroup.procs && exec "$@"', "sh", *command], cwd=there.folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=runs.HANGS_SECONDS)
        for text in ("was killed by SIGKILL", "try a smaller data.batch_size or data.eval_batch", "started 2 times"):
            if within.returncode != DEVICE_TROUBLE or text not in within.stdout:
                sys.exit(f"exit {within.returncode}, '{text}' is not reported:\n{within.stdout[-4000:]}")
        print(f"{LIMIT_BYTES >> 20} MiB: exit {within.returncode}")
        for line in within.stdout.splitlines():
            if "killed" in line:
                print(f"  {line}")
        output = there.finished("limited", processes=2)
        if "resumed from step 7" not in output:
            sys.exit(f"it did not continue from the preceding checkpoint:\n{output[-3000:]}")
        there.require_weights("limited", there.weights("undisturbed"), "out of memory")
        print("with more memory it continued from step 7, to the same weights, bit for bit")


if __name__ == "__main__":
    main()
