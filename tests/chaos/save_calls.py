#!/usr/bin/env python3
"""Injects a fault at each system call by which a training creates its run or saves, and resumes it.

    save_calls.py PROGRAM --faults kill,tear,28 --calls start,last-save
    save_calls.py PROGRAM --faults kill --processes 2 --rank 1

A fault is 'kill': SIGKILL before the call; 'tear': SIGKILL in the middle of a write; or the number of an error that the
call returns; 'full': this and all later calls fail for lack of space. After each fault the training must continue from
the newest checkpoint published before, and end with weights bit-identical to those of an undisturbed run. With
--processes the fault hits one of several processes, each of which writes a slice of each checkpoint, and the launcher
restarts them.
"""

import argparse
import collections
import errno
import itertools
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kill  # noqa: E402
import runs  # noqa: E402

DEVICE_TROUBLE = 4
Call = collections.namedtuple("Call", "number name path target")
# If these calls fail, old files remain, which must not stop a training.
OF_REMOVAL = ("unlink", "unlinkat", "rmdir", "remove")
# Threads that write at any time, and whose failure does not stop a run.
OF_OTHERS = "identity,system"
TAKES_ROOM = ("open", "write", "mkdir")


def fault_variables(there, part, rank, fault="count", at=0):
    """The environment for a fault at a call of this part."""
    is_error = fault.isdigit() or fault == "full"
    return there.preload(
        "calls", FAULT_PATH="runs/" if part == "start" else "/checkpoints", FAULT_WITHOUT=OF_OTHERS, FAULT_AT=at,
        FAULT_RANK=rank, FAULT_LOG=os.path.join(there.folder, part + ".log"),
        FAULT_ACTION="fail" if fault.isdigit() else fault,
        FAULT_ERROR=(errno.ENOSPC if fault == "full" else int(fault)) if is_error else 0)


def read_calls(there, part):
    calls = []
    with open(os.path.join(there.folder, part + ".log"), encoding="utf-8") as file:
        for line in file:
            number, name, path, target = line.rstrip("\n").split(" ")
            calls.append(Call(int(number), name, path, target))
    return calls


def removes(call):
    return call.name in OF_REMOVAL or os.path.basename(call.target).startswith(".tmp-old-")


def survives(fault, call, later):
    """Whether a training continues after an error; on a full disk it does not if it has more to write."""
    return removes(call) and not (fault == "full" and any(one.name in TAKES_ROOM for one in later))


def resumed_steps(calls, rank):
    """The steps from which a run may resume if it is interrupted in the last of these calls; None: from the start."""
    done = calls[:-1]
    published = pointed = None
    for call in done:
        target = os.path.basename(call.target)
        if call.name == "rename" and target.startswith("step-"):
            published = int(re.match(r"step-(\d+)", target)[1])
        if call.name == "rename" and target == "latest":
            pointed = published
    if rank in ("", "0"):
        return {pointed or published}
    # The rank publishes nothing itself: others publish the checkpoint once its slice is complete; until then the run
    # resumes from the preceding one.
    steps = [int(re.search(r"\.tmp-step-(\d+)", call.path)[1]) for call in calls]
    before = max((step for step in steps if step < steps[-1]), default=None)
    is_there = any(call.name == "rename" and step == steps[-1] for call, step in zip(done, steps))
    return {before, steps[-1]} if is_there else {before}


def is_of_save(call):
    return "/checkpoints" in call.path


def calls_of(there, part, rank, processes, options):
    """(all calls on this path, the calls to test)"""
    log = "saves" if part == "last-save" else part
    name = f"counted-{log}"
    if not os.path.exists(there.path(name)):
        there.finished(name, *options, processes=processes, environment=fault_variables(there, log, rank))
        there.require_weights(name, there.weights("undisturbed"), "calls are counted")
    calls = read_calls(there, log)
    if [call.number for call in calls] != list(range(1, len(calls) + 1)) or not calls:
        sys.exit(f"the numbers of calls are not consecutive: {calls}")
    if part == "start":
        return calls, list(itertools.takewhile(lambda call: not is_of_save(call), calls))
    if part == "saves":
        return calls, calls
    last = max(re.findall(r"\.tmp-step-\d+", " ".join(call.path for call in calls)))
    begin = next(i for i, call in enumerate(calls) if last in call.path)
    return calls, calls[begin:]


def check_first_end(fault, call, later, code, output, processes):
    """Checks the exit of the training, or under a launcher the failure that made it restart."""
    if fault in ("kill", "tear"):
        if code != (kill.FINISHED if processes else -signal.SIGKILL):
            return f"ended with {code}"
        if processes and "was killed by SIGKILL" not in output:
            return "the launcher does not report the failure"
        return None
    if survives(fault, call, later):
        return None if code == kill.FINISHED else f"ended with {code}"
    if code != (kill.FINISHED if processes else DEVICE_TROUBLE):
        return f"ended with {code}"
    texts = ["disturbed", os.strerror(int(fault) if fault.isdigit() else errno.ENOSPC)]
    # Errors of the small files by which processes coordinate their slices do not report the bytes needed.
    for text in texts + (["checkpoints"] if is_of_save(call) else []) + (
            ["a checkpoint needs"] if is_of_save(call) and not processes else []):
        if text not in output:
            return f"'{text}' is not reported"
    return None


def try_fault(there, part, rank, fault, call, calls, processes, options):
    """Returns an error, or None. `calls` has all calls, including this one."""
    until, later = calls[:call.number], calls[call.number:]
    there.remove("disturbed")
    environment = fault_variables(there, part, rank, fault, call.number) | {"FAULT_LOG": "/dev/null"}
    code, output = there.run("disturbed", *options, processes=processes, environment=environment)
    if wrong := check_first_end(fault, call, later, code, output, processes):
        return wrong + "\n" + output[-2000:]
    if code != kill.FINISHED:
        output = there.finished("disturbed", *options)
    goes_on = fault in ("kill", "tear") or not survives(fault, call, later)
    found = re.search(r"resumed from step (\d+)", output)
    step = int(found[1]) if found else None
    if goes_on and step not in resumed_steps(until, rank):
        return f"resumed from step {step} instead of {resumed_steps(until, rank)}\n{output[-2000:]}"
    there.require_weights("disturbed", there.weights("undisturbed"), f"{fault} at call {call}")
    # The next save removes remaining files; after the last save there is none.
    is_at_end = goes_on and step is not None and there.checkpoint("disturbed").endswith(f"{step:08}")
    left = [name for name in os.listdir(there.path("disturbed", "checkpoints")) if ".tmp-" in name]
    if left and goes_on and not is_at_end:
        return f"{left} remained"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--processes", type=int, default=0)
    parser.add_argument("--rank", default="", help="rank of the process with the fault (default 0)")
    parser.add_argument("--calls", default="last-save", help="start, last-save, saves")
    parser.add_argument("--faults", default="kill,tear,28")
    parser.add_argument("--every", type=int, default=1, help="test only every Nth call")
    arguments = parser.parse_args()
    processes = arguments.processes
    rank = (arguments.rank or "0") if processes else ""
    options = ["train.checkpoint_slice=1 KiB"] if processes else []

    with runs.make(arguments.program) as there:
        there.finished("undisturbed", *options, processes=processes)
        for part, fault in itertools.product(arguments.calls.split(","), arguments.faults.split(",")):
            begin, count, wrong = time.monotonic(), 0, []
            calls, tried = calls_of(there, part, rank, processes, options)
            for call in tried[::arguments.every]:
                if fault == "tear" and call.name != "write":
                    continue
                count += 1
                if problem := try_fault(there, part, rank, fault, call, calls, processes, options):
                    wrong.append(f"{fault} at {call}: {problem}")
            print(f"{part}, {fault}: {count} of {len(calls)} calls, {len(wrong)} of them wrong "
                  f"({time.monotonic() - begin:.0f} s)", flush=True)
            if wrong:
                sys.exit("\n".join(wrong))
        print("each time it continued from the newest checkpoint, to the same weights, bit for bit")


if __name__ == "__main__":
    main()
