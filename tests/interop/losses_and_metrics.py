#!/usr/bin/env python3
"""Compares all losses with PyTorch and all metrics with scikit-learn and RapidFuzz, on newly drawn numbers.

    losses_and_metrics.py TEST_TRAIN [--python PYTHON]

TEST_TRAIN is the unit-test program; its tests of the stored results run on results that PYTHON computes now. PYTHON is
a Python with torch, safetensors, scikit-learn and RapidFuzz (default: GALLOP_TEST_PYTHON); without them the test is skipped.
"""

import os
import sys
import tempfile

from checks import ROOT, program_and_python, run

SEEDS = range(100, 105)
TESTS = "Losses.HaveThePyTorch*:Losses.AreTheSameForAnyPartition*:Metrics.EqualScikitLearn:Metrics.AnyPartition*:" \
        "Figures.EqualScikitLearn:Figures.AnyPartition*:MetricSums.*:Evaluate.HasTheMetricsOfASet*"


def main():
    program, python = program_and_python(__doc__, "import rapidfuzz, safetensors, sklearn, torch",
                                         "torch, safetensors, scikit-learn or RapidFuzz")
    fixtures = os.path.join(ROOT, "fixtures")
    with tempfile.TemporaryDirectory() as folder:
        for name in os.listdir(fixtures):
            os.symlink(os.path.join(fixtures, name), os.path.join(folder, name))
        for seed in SEEDS:
            for script, name, output in (("make_losses.py", "losses.safetensors", folder),
                                         ("make_metrics.py", "metrics.json", os.path.join(folder, "metrics.json"))):
                os.unlink(os.path.join(folder, name))
                run([python, os.path.join(ROOT, "parity", script), output, str(seed)], folder)
            run([program, f"--gtest_filter={TESTS}"], folder, environment={"GALLOP_TEST_FIXTURES": folder})
            print(f"seed {seed}: losses equal PyTorch's, metrics equal scikit-learn's", flush=True)


if __name__ == "__main__":
    sys.exit(main())
