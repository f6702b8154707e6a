#!/usr/bin/env python3
"""Lets a training die, or find no room, at each call by which it makes its run or saves, and goes on with it.

    save_calls.py PROGRAM --faults kill,tear,28 --calls start,last-save

A fault is 'kill': SIGKILL before the call; 'tear': SIGKILL in the middle of a write; or the number of an
error that the call returns, 'full' where no later call finds room either. After each the training must go on
from the newest checkpoint that was published before, and end with the weights of a run that nobody disturbed,
bit for bit. With --processes the first of several is hit, and the launcher starts them again.
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
# Their failure leaves old files where they are, which is no reason to stop.
OF_REMOVAL = ("unlink", "unlinkat", "rmdir", "remove")


def fault_variables(there, fault="count", at=0, rank=""):
    is_error = fault.isdigit() or fault == "full"
    variables = there.preload(
        "calls", FAULT_PATH="runs/", FAULT_LOG=os.path.join(there.folder, "calls.log"), FAULT_AT=at,
        FAULT_ACTION="fail" if fault.isdigit() else fault, FAULT_RANK=rank)
    if is_error:
        variables["FAULT_ERROR"] = str(errno.ENOSPC if fault == "full" else int(fault))
    return variables


def read_calls(there):
    calls = []
    with open(os.path.join(there.folder, "calls.log"), encoding="utf-8") as file:
        for line in file:
            number, name, path, target = line.rstrip("\n").split(" ")
            calls.append(Call(int(number), name, path, target))
    return calls


def removes(call):
    return call.name in OF_REMOVAL or os.path.basename(call.target).startswith(".tmp-old-")


def resumed_step(calls):
    """The step from which a run goes on after these calls; None where it begins again."""
    published = pointed = None
    for call in calls:
        target = os.path.basename(call.target)
        if call.name == "rename" and target.startswith("step-"):
            published = int(re.match(r"step-(\d+)", target)[1])
        if call.name == "rename" and target == "latest":
            pointed = published
    return pointed or published


def is_of_save(call):
    return "/checkpoints" in call.path


def calls_of(part, calls):
    """Those of the log are the same all along, so that those before the first save are enough."""
    if part == "start":
        return list(itertools.takewhile(lambda call: not is_of_save(call), calls))
    saves = [call for call in calls if is_of_save(call)]
    if part == "saves":
        return saves
    begin = max(i for i, call in enumerate(saves) if call.name == "mkdir")
    return saves[begin:]


def check_first_end(fault, call, code, output, processes):
    """How the training ended, or under a launcher which end made it start again."""
    if fault in ("kill", "tear"):
        if code != (kill.FINISHED if processes else -signal.SIGKILL):
            return f"ended with {code}"
        if processes and "was killed by SIGKILL" not in output:
            return "the launcher does not tell what happened"
        return None
    if removes(call):
        return None if code == kill.FINISHED else f"ended with {code}"
    if code != (kill.FINISHED if processes else DEVICE_TROUBLE):
        return f"ended with {code}"
    texts = ["runs/disturbed", os.strerror(int(fault) if fault.isdigit() else errno.ENOSPC)]
    for text in texts + (["checkpoints", "a checkpoint needs"] if is_of_save(call) else []):
        if text not in output:
            return f"'{text}' is not told"
    return None


def try_fault(there, fault, call, earlier, wanted, processes):
    """What is wrong; None where nothing is."""
    there.remove("disturbed")
    code, output = there.run("disturbed", processes=processes,
                             environment=fault_variables(there, fault, call.number, "0" if processes else ""))
    if wrong := check_first_end(fault, call, code, output, processes):
        return wrong + "\n" + output[-2000:]
    if code != kill.FINISHED:
        output = there.finished("disturbed")
    goes_on = fault in ("kill", "tear") or not removes(call)
    found = re.search(r"resumed from step (\d+)", output)
    step = int(found[1]) if found else None
    if goes_on and step != resumed_step(earlier):
        return f"resumed from step {step} instead of {resumed_step(earlier)}"
    there.require_weights("disturbed", wanted, f"{fault} at call {call}")
    # The next save removes what is left over; the last has none.
    is_at_end = goes_on and step is not None and there.checkpoint("disturbed").endswith(f"{step:08}")
    left = [name for name in os.listdir(there.path("disturbed", "checkpoints")) if ".tmp-" in name]
    if left and goes_on and not is_at_end:
        return f"{left} stayed"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--processes", type=int, default=0)
    parser.add_argument("--calls", default="last-save", help="start, last-save, saves")
    parser.add_argument("--faults", default="kill,tear,28")
    parser.add_argument("--every", type=int, default=1, help="only each so many of the calls")
    arguments = parser.parse_args()
    processes = arguments.processes

    with runs.make(arguments.program) as there:
        there.finished("undisturbed", processes=processes)
        wanted = there.weights("undisturbed")
        there.finished("counted", processes=processes,
                       environment=fault_variables(there, rank="0" if processes else ""))
        there.require_weights("counted", wanted, "calls are counted")
        calls = read_calls(there)
        if [call.number for call in calls] != list(range(1, len(calls) + 1)) or not calls:
            sys.exit(f"calls were not counted one by one: {calls}")
        for part, fault in itertools.product(arguments.calls.split(","), arguments.faults.split(",")):
            begin, count, wrong = time.monotonic(), 0, []
            for call in calls_of(part, calls)[::arguments.every]:
                if fault == "tear" and call.name != "write":
                    continue
                count += 1
                if problem := try_fault(there, fault, call, calls[:call.number - 1], wanted, processes):
                    wrong.append(f"{fault} at {call}: {problem}")
            print(f"{part}, {fault}: {count} calls, {len(wrong)} of them wrong ({time.monotonic() - begin:.0f} s)",
                  flush=True)
            if wrong:
                sys.exit("\n".join(wrong))
        print("each time it went on from the newest checkpoint, to the same weights, bit for bit")


if __name__ == "__main__":
    main()
