#!/usr/bin/env python3
"""Requests a training to stop in each of its phases, which is delayed until the signal was handled, and resumes it.

    stop.py PROGRAM --who rank-1,job

SIGCONT and SIGTERM are sent to one process, to one rank under 'gallop launch', to the launcher, or to all processes of
the job, as Slurm does. During start-up, which is then delayed forever, it must exit with code 5; afterwards it must
save first. Then it must continue to weights bit-identical to those of an undisturbed run. Further tests: the signals
that Slurm sends after its grace period; a second request, which must end the training at once; and SIGSTOP to one rank
in an evaluation or a checkpoint, which the others must detect, however long these may take, and which the launcher must
name.
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

# Images are read again in every epoch, so that a wait for data is possible.
RECIPE = """\
data: {name: folder, path: pictures, batch_size: 10, threads: 2, normalize: none, in_memory: "no"}
model: {name: mlp, hidden: [32], dropout: 0.1}
optimizer: {name: adamw, lr: 0.003}
train: {epochs: 4, precision: fp32, channels_last: "false", checkpoint_every: 7 steps}
"""
# The grace period of a launcher, which must suffice on any machine.
LONG_GRACE_SECONDS = 300
STILL_SECONDS = 5  # More than a busy machine takes for a step.
# The launcher's message about a rank that is stopped in this phase.
PLACES = {"evaluation": "is stopped at .* waited for it at evaluation after step",
          "checkpoint": "is stopped at checkpoint of step"}
# The delayed call of each phase: path, whether it is a read, number of the call, rank ("": any).
PHASES = {
    "start": ("recipe.yaml", True, 1, 0),
    "data": ("pictures/train", True, 1, 1),
    "images": ("pictures/train/class_", True, 10, 0),
    "folder": ("runs/", False, 1, 0),
    "compile": ("/kernels/", False, 1, ""),
    "wait": ("pictures/train/class_", True, 100, 1),
    "evaluation": ("pictures/test/class_", True, 36, 1),  # After the headers of all 30 images.
    "checkpoint": ("/checkpoints", False, 5, 0),
    "step": ("/metrics.log", False, 8, 0),
}


START_UP = {"start", "data", "images", "folder", "compile"}


def hold(there, phase, who):
    path, reads, number, rank = PHASES[phase]
    if phase == "wait" and who == "process":
        number += 120  # Behind the headers, which ranks do not all read, and the first samples with what is prefetched.
    return there.hold(path, number, reads, rank="" if who == "process" else rank)


def environment_of(there, held, phase, who):
    """Compiled kernels are cached, so each has its own cache folder."""
    cache = {"XDG_CACHE_HOME": os.path.join(there.folder, f"cache-{who}")} if phase == "compile" else {}
    return held.environment | cache


def receivers(training, who):
    """The processes to signal, and the number of those that then print a line; all have installed their handlers."""
    ranks = [] if who == "process" else [training.rank(number) for number in (0, 1)]
    launcher = [training.process.pid]
    pids = {"process": launcher, "launcher": launcher, "job": launcher + ranks,
            "rank-0": ranks[:1], "rank-1": ranks[1:]}[who]
    speakers = {"process": 1, "rank-0": 1, "rank-1": 1}.get(who, len(ranks))
    for pid in launcher + ranks:
        training.wait_for(lambda: runs.handles(pid, signal.SIGTERM), f"process {pid} that handles signals")
    return pids, speakers


def wait_for_phase(training, held, phase):
    training.wait_for(held.has_come, f"phase {phase}")
    if phase == "wait":  # Data are prefetched; once one rank has done the second step, all have done the first.
        training.wait_for(lambda: (training.event("step") or {"step": 0})["step"] >= 2, "second step")


def ask(training, who):
    """Sends the signals. Returns the receivers, once they have handled them."""
    pids, speakers = receivers(training, who)
    runs.send(pids, signal.SIGCONT, signal.SIGTERM)
    training.wait_for(lambda: training.output().count("stopping after this step") >= speakers, "word of the request")
    return pids


def stop(there, phase, who, wanted):
    held = hold(there, phase, who)
    name = f"{phase}-{who}"
    training = there.start(name, processes=0 if who == "process" else 2, grace=LONG_GRACE_SECONDS,
                           environment=environment_of(there, held, phase, who))
    wait_for_phase(training, held, phase)
    asked = time.monotonic()
    if phase in START_UP:
        pids, _ = receivers(training, who)
        runs.send(pids, signal.SIGCONT, signal.SIGTERM)
    else:
        ask(training, who)
        held.let_go()
    code, output = training.finish()
    took = time.monotonic() - asked
    stopped = training.event("stopped")
    if code != kill.STOPPED:
        sys.exit(f"{phase}, {who}: exit {code} after {took:.1f} s:\n{output[-4000:]}")
    if phase in START_UP:
        print(f"{phase:10} {who:8} exit {code} after {took:4.1f} s, during start-up", flush=True)
    else:
        if not stopped:
            sys.exit(f"{phase}, {who}: exit {code} and not stopped as it should be:\n{output[-4000:]}")
        print(f"{phase:10} {who:8} exit {code} after {took:4.1f} s, after step {stopped['step']}", flush=True)
        saved = there.step(name)
        if saved != stopped["step"]:
            sys.exit(f"{phase}, {who}: stopped after step {stopped['step']}, but saved {saved}:\n{output[-4000:]}")
    there.finished(name, processes=0 if who == "process" else 2)
    there.require_weights(name, wanted[who == "process"], f"stopped at {phase} by {who}")


def end_at_once(there, who, signals, wanted):
    """A second request: its receiver ends at once, others within the grace period, the last checkpoint remains."""
    name = f"twice-{who}-{len(signals)}"
    held = hold(there, "wait", who)
    training = there.start(name, processes=0 if who == "process" else 2, environment=held.environment)
    wait_for_phase(training, held, "wait")
    pids = ask(training, who)
    all_of_it = [training.process.pid, *training.children()]
    # Signals within a second are one request.
    time.sleep(2)
    asked = time.monotonic()
    runs.send(pids, *signals)
    code, output = training.finish()  # The delayed call is never released.
    took = time.monotonic() - asked
    names = " ".join(one.name for one in signals)
    print(f"{names} after the first, to the {who}: exit {code} after {took:.1f} s", flush=True)
    if code not in (kill.STOPPED, -signal.SIGKILL):
        sys.exit(f"the second request, {who}: exit {code}\n{output[-4000:]}")
    if not runs.holds_within(runs.GONE_SECONDS, lambda: not any(map(runs.is_there, all_of_it))):
        sys.exit(f"processes of {all_of_it} were left behind")
    there.finished(name, processes=0 if who == "process" else 2)
    there.require_weights(name, wanted[who == "process"], f"asked twice by {who}")


def stand_still(there, phase, wanted):
    """A rank that is stopped permanently between collectives: it must be named, and all must restart."""
    held = hold(there, phase, "job")
    rank = PHASES[phase][3]
    name = f"still-{phase}"
    training = there.start(name, f"parallel.step_seconds={STILL_SECONDS}", "train.checkpoint_in_background=false",
                           processes=2, grace=STILL_SECONDS, environment=held.environment)
    training.wait_for(held.has_come, f"phase {phase}")
    stopped = time.monotonic()
    runs.send([training.rank(rank)], signal.SIGSTOP)
    held.let_go()
    name_of_it = f"rank {rank} of 2 on [^ ]+ .*{PLACES[phase]}"
    training.wait_for(lambda: re.search(name_of_it, training.output()), "name of the rank that stands still")
    took = time.monotonic() - stopped
    code, output = training.finish()
    if code != kill.FINISHED:
        sys.exit(f"{phase}: exit {code}:\n{output[-4000:]}")
    there.require_weights(name, wanted[False], f"rank {rank} stood still at {phase}")
    print(f"{phase:10} rank {rank} is stopped: detected after {took:.1f} s", flush=True)


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
            # SIGKILL of one rank is a failure, after which all restart.
            if not one.startswith("rank"):
                end_at_once(there, one, [signal.SIGCONT, signal.SIGTERM, signal.SIGKILL], wanted)
        if False in wanted:
            for phase in sorted(set(arguments.phases.split(",")) & set(PLACES)):
                stand_still(there, phase, wanted)
        print("each time it stopped, saved and continued to the same weights, bit for bit")


if __name__ == "__main__":
    main()
