#!/usr/bin/env python3
"""Tests that HolisticTraceAnalysis reads the traces of a run's profile, and finds the times that the profile has.

    hta.py PROGRAM [--python PYTHON]

PYTHON is a Python with HolisticTraceAnalysis (default: GALLOP_TEST_PYTHON); without it the test is skipped.
"""

import gzip
import json
import os
import sys
import tempfile

from checks import ROOT, expect, program_and_python, run

sys.path.insert(0, os.path.join(ROOT, "scenario"))
import make_data  # noqa: E402

RECIPE = """
data: {name: mnist, path: tiny, batch_size: 16, threads: 1}
model: {name: mlp, hidden: [32]}
optimizer: {name: adamw, lr: 0.01}
train: {precision: fp32, channels_last: false, compile: true, steps: 20}
profile: {every: 20 steps, steps: 5}
"""
PROCESSES = 2

# Durations in microseconds, by rank: of each step, and of all operators by name.
ANALYZE = """
import json, logging, sys
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
trace = TraceAnalysis(trace_dir=sys.argv[1], include_last_profiler_step=True).t
names = trace.symbol_table.get_sym_table()
found = {}
for rank in trace.get_all_traces():
    events = trace.get_trace(rank)
    events = events.assign(text=events["name"].map(lambda name: names[name]), kind=events["cat"].map(lambda name: names[name]))
    steps = events[events["text"].str.startswith("ProfilerStep#")]
    operators = events[events["kind"] == "cpu_op"]
    found[int(rank)] = {"steps": dict(zip(steps["text"], map(float, steps["dur"]))),
                        "operators": {name: float(time) for name, time in operators.groupby("text")["dur"].sum().items()}}
print("RESULT" + json.dumps(found))
"""


def near(what, found, wanted, tolerance):
    if abs(found - wanted) > tolerance:
        sys.exit(f"{what}: {found} us, expected {wanted:.3f} us, within {tolerance}")


def main():
    program, python = program_and_python(__doc__, "import hta", "HolisticTraceAnalysis")
    with tempfile.TemporaryDirectory(prefix="gallop-hta-") as folder:
        os.makedirs(os.path.join(folder, "tiny"))
        make_data.make_idx(os.path.join(folder, "tiny"), 320)
        with open(os.path.join(folder, "r.yaml"), "w", encoding="utf-8") as file:
            file.write(RECIPE)
        run([program, "launch", "-n", str(PROCESSES), "train", "r.yaml", "--name", "two", "--quiet"], folder)
        profiles = os.path.join(folder, "runs", "two", "profiles")
        with open(os.path.join(profiles, "step-20.json"), encoding="utf-8") as file:
            profile = json.load(file)
        with gzip.open(os.path.join(profiles, "step-20", "rank-0.json.gz"), "rt", encoding="utf-8") as file:
            counters = {name for event in json.load(file)["traceEvents"] if event["ph"] == "C" for name in event["args"]}
        output = run([python, "-c", ANALYZE, os.path.join(profiles, "step-20")], folder)
        found = json.loads(output.split("RESULT")[1])
    expect("counters of the memory", sorted(counters), ["activations", "gradients", "optimizer", "parameters", "temporaries"])
    expect("ranks", sorted(found), [str(rank) for rank in range(PROCESSES)])
    for rank in profile["ranks"]:
        steps = found[str(rank["rank"])]["steps"]
        expect("steps", sorted(steps), [f"ProfilerStep#{step}" for step in range(16, 21)])
        # The analysis rounds to microseconds.
        near(f"steps of rank {rank['rank']}", sum(steps.values()) / len(steps), 1000 * rank["step_ms"], 2)
    calls, times = {}, {}
    for one in profile["operators"]:
        name = one["operator"].split(".")[0]  # Without the overload.
        calls[name] = calls.get(name, 0) + round(profile["steps"] * one["calls"])
        times[name] = times.get(name, 0) + 1000 * profile["steps"] * one["ms"]
    compared = 0
    for name, time in times.items():
        if "tensor" in name or "all_reduce" in name:  # They contain the wait, which is a phase of its own.
            continue
        near(name, found["0"]["operators"].get(name, 0), time, 2 * calls[name] + 1)
        compared += 1
    if compared < 5:
        sys.exit(f"only {compared} operators were compared: {sorted(times)}")


if __name__ == "__main__":
    main()
