#!/usr/bin/env python3
"""Asks a training to stop in each of its phases, which are held up for that, and goes on with it.

    stop.py PROGRAM --who rank-1,job

SIGCONT and SIGTERM go to one process, to one rank under 'gallop launch', to the launcher, or to all processes
of the job, as Slurm does it. The training must save, end with exit code 5 within the grace, and go on to the
weights of a run that nobody disturbed, bit for bit. Then the signals that Slurm sends after its grace, and a
training that is asked twice, which ends at once.
"""

import argparse
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kill  # noqa: E402
import runs  # noqa: E402

# Images are read anew in every epoch, so that there are data to wait for.
RECIPE = """\
data: {name: folder, path: pictures, batch: 10, threads: 2, normalize: none, in_memory: "no"}
model: {name: mlp, hidden: [32], dropout: 0.1}
optimizer: {name: adamw, lr: 0.003}
train: {epochs: 4, precision: fp32, channels_last: "false", checkpoint_every: 7 steps}
"""
HELD_SECONDS = 1.5
# What is held up: path, whether it is read, number of the call, rank.
PHASES = {
    "start": ("recipe.yaml", True, 1, 0),
    "data": ("pictures/train", True, 1, 1),
    "compile": ("/kernels/", False, 1, 1),
    "wait": ("pictures/train/class_", True, 80, 1),
    "evaluation": ("pictures/test/class_", True, 5, 1),
    "checkpoint": ("/checkpoints", False, 5, 0),
    "step": None,
}


def hold(there, phase, who, seconds=HELD_SECONDS):
    """The environment in which a phase takes longer, and the file that tells that it has come to it."""
    log = os.path.join(there.folder, f"{phase}.log")
    if os.path.exists(log):
        os.remove(log)
    # One of its own, as what is compiled is kept.
    cache = {"XDG_CACHE_HOME": os.path.join(there.folder, f"cache-{who}")} if phase == "compile" else {}
    if PHASES[phase] is None:
        return cache, log
    path, reads, number, rank = PHASES[phase]
    return cache | there.preload(
        "calls", FAULT_PATH=path, FAULT_READS="1" if reads else "", FAULT_LOG=log, FAULT_AT=number,
        FAULT_ACTION="wait", FAULT_SECONDS=seconds, FAULT_RANK="" if who == "process" else rank), log


def has_come(phase, training, log):
    if PHASES[phase] is None:
        return training.event("step") is not None
    if not os.path.exists(log):
        return False
    with open(log, encoding="utf-8") as file:
        return len(file.readlines()) >= PHASES[phase][2]


def receivers(training, who):
    """Those who get the signals; the processes are there by now."""
    if who in ("process", "launcher"):
        return [training.process.pid]
    if who == "job":
        return [training.process.pid, *training.children()]
    return [training.rank(int(who.split("-")[1]))]


def stop(there, phase, who, wanted):
    environment, log = hold(there, phase, who)
    name = f"{phase}-{who}"
    training = there.start(name, processes=0 if who == "process" else 2, environment=environment)
    training.wait_for(lambda: has_come(phase, training, log), f"phase {phase}")
    pids = receivers(training, who)
    asked = time.monotonic()
    runs.send(pids, signal.SIGCONT, signal.SIGTERM)
    code, output = training.finish(seconds=60)
    took = time.monotonic() - asked
    stopped = training.event("stopped")
    if code != kill.STOPPED or took > runs.GRACE_SECONDS or not stopped:
        sys.exit(f"{phase}, {who}: exit {code} after {took:.1f} s, and not stopped as it should be:\n{output[-4000:]}")
    print(f"{phase:10} {who:8} exit {code} after {took:4.1f} s, after step {stopped['step']}", flush=True)
    saved = int(re.search(r"step-(\d+)", there.checkpoint(name))[1])
    if saved != stopped["step"]:
        sys.exit(f"{phase}, {who}: stopped after step {stopped['step']}, but saved {saved}:\n{output[-4000:]}")
    there.finished(name, processes=0 if who == "process" else 2)
    there.require_weights(name, wanted[who == "process"], f"stopped at {phase} by {who}")


def end_at_once(there, who, signals, wanted):
    """The second request: what got it ends at once, others within the grace, and the last checkpoint stays."""
    phase, name = "wait", f"twice-{who}-{len(signals)}"
    environment, log = hold(there, phase, who, seconds=30)
    training = there.start(name, processes=0 if who == "process" else 2, environment=environment)
    training.wait_for(lambda: has_come(phase, training, log), f"phase {phase}")
    pids = receivers(training, who)
    all_of_it = [training.process.pid, *training.children()]
    runs.send(pids, signal.SIGCONT, signal.SIGTERM)
    time.sleep(2)
    asked = time.monotonic()
    runs.send(pids, *signals)
    code, output = training.finish(seconds=runs.GRACE_SECONDS + 8)
    took = time.monotonic() - asked
    names = " ".join(one.name for one in signals)
    print(f"{names} after the first, to the {who}: exit {code} after {took:.1f} s", flush=True)
    if code not in (kill.STOPPED, -signal.SIGKILL):
        sys.exit(f"the second request, {who}: exit {code}\n{output[-4000:]}")
    time.sleep(1)
    if left := [pid for pid in all_of_it if runs.is_there(pid)]:
        sys.exit(f"processes {left} were left behind")
    there.finished(name, processes=0 if who == "process" else 2)
    there.require_weights(name, wanted[who == "process"], f"asked twice by {who}")


def main():
    everybody = ["process", "rank-0", "rank-1", "launcher", "job"]
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--who", default=",".join(everybody))
    parser.add_argument("--phases", default=",".join(PHASES))
    arguments = parser.parse_args()
    who = arguments.who.split(",")
    if unknown := set(who) - set(everybody) or set(arguments.phases.split(",")) - set(PHASES):
        parser.error(f"there is no {', '.join(unknown)}")

    with runs.make(arguments.program, RECIPE, "folder pictures 60") as there:
        wanted = {}  # By whether one process trains alone.
        for alone in {one == "process" for one in who}:
            name = f"undisturbed-{alone}"
            there.finished(name, processes=0 if alone else 2)
            wanted[alone] = there.weights(name)
        for one in who:
            for phase in arguments.phases.split(","):
                stop(there, phase, one, wanted)
            end_at_once(there, one, [signal.SIGCONT, signal.SIGTERM], wanted)
            # SIGKILL of one rank alone is a failure, after which it starts again.
            if not one.startswith("rank"):
                end_at_once(there, one, [signal.SIGCONT, signal.SIGTERM, signal.SIGKILL], wanted)
        print("each time it stopped, saved and went on to the same weights, bit for bit")


if __name__ == "__main__":
    main()
