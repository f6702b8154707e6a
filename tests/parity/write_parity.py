#!/usr/bin/env python3
"""Writes docs/parity.md: the largest difference of each optimizer and schedule from PyTorch's.

    write_parity.py FOLDER_OF_TESTS FILE

Runs the tests of parity, whose fixtures PyTorch made (make_optimizers.py, make_schedules.py), and takes the
differences that they report.
"""

import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

INTRODUCTION = """# Parity

The largest difference of each optimizer and schedule from PyTorch 2.11's, as `make parity` finds it: the tests of parity
take what PyTorch stored (`tests/parity/`) and report how far they are from it. This page is written by that command.
"""

OPTIMIZERS = """
## Optimizers

Fifty steps on a matrix, a vector and filters, with a learning rate of its own each, for every combination of options. The difference is
that of weights after the last step, relative to the largest weight. fp32 holds 6e-8 of a number. Muon multiplies in bf16, in PyTorch too.
Optimizers that are not here have no form in PyTorch; the tests hold them against their paper's formula in fp64
([optimizers.md](optimizers.md)).

| optimizer | combinations | largest difference |
|---|---|---|
"""

SCHEDULES = """
## Schedules

Factors, and momentum where the schedule has one, at forty steps of every case, in fp64.

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
