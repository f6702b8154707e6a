#!/usr/bin/env python3
"""Writes docs/parity.md: the largest difference of each optimizer and schedule from PyTorch.

    write_parity.py FOLDER_OF_TESTS FILE

Runs the parity tests, whose fixtures were created by PyTorch (make_optimizers.py, make_schedules.py), and collects the
differences that they report.
"""

import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

INTRODUCTION = """# Parity

The largest difference of each optimizer and schedule from PyTorch 2.11. `make parity` writes this page: it runs the
parity tests, which compare with results stored by PyTorch (`tests/parity/`) and report the differences.
"""

OPTIMIZERS = """
## Optimizers

Fifty steps, each with another learning rate, on a matrix, a vector and filters, for every combination of options. The
difference is that of the weights after the last step, relative to the largest weight. The relative rounding error of
fp32 is 6e-8. Muon's GEMMs are in bf16, as in PyTorch. PyTorch does not have the other optimizers; the tests compare
these with their paper's formula in fp64 ([optimizers.md](optimizers.md)).

| optimizer | combinations | largest difference |
|---|---|---|
"""

SCHEDULES = """
## Schedules

Factors, and momentum if the schedule has one, at forty steps of every case, in fp64.

| schedule | largest difference |
|---|---|
"""


def properties_of(program):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "result.xml")
        subprocess.run([program, "--gtest_filter=Parity*", f"--gtest_output=xml:{file}"], check=True,
                       stdout=subprocess.DEVNULL)
        found = ElementTree.parse(file).iter("property")
        return {each.get("name"): each.get("value") for each in found}


def rows(*columns):
    return "".join(f"| {' | '.join(row)} |\n" for row in zip(*columns))


def main():
    folder, target = sys.argv[1:]
    optimizers = properties_of(os.path.join(folder, "test_optim"))
    schedules = properties_of(os.path.join(folder, "test_schedule"))
    counts = {name.removesuffix(".cases"): count for name, count in optimizers.items() if name.endswith(".cases")}
    names = sorted(counts)
    text = INTRODUCTION + OPTIMIZERS
    text += rows([f"`{name}`" for name in names], [counts[name] for name in names],
                 [optimizers[name] for name in names])
    text += SCHEDULES + rows([f"`{name}`" for name in sorted(schedules)],
                             [schedules[name] for name in sorted(schedules)])
    with open(target, "w") as file:
        file.write(text)


if __name__ == "__main__":
    main()
