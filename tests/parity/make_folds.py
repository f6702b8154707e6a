#!/usr/bin/env python3
"""Creates tests/fixtures/folds.json: the folds to which scikit-learn assigns groups.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install scikit-learn
    /tmp/venv/bin/python tests/parity/make_folds.py tests/fixtures/folds.json
"""

import json
import sys

import numpy
import sklearn
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold


def assigned(counts, folds):
    """The fold of each group, which has these counts of samples of each class."""
    groups = numpy.repeat(numpy.arange(len(counts)), counts.sum(1))
    labels = numpy.concatenate([numpy.repeat(numpy.arange(len(row)), row) for row in counts])
    splitter = GroupKFold(folds) if counts.shape[1] == 1 else StratifiedGroupKFold(folds)
    fold_of = numpy.full(len(counts), -1)
    for fold, (_, taken) in enumerate(splitter.split(labels, labels, groups)):
        fold_of[numpy.unique(groups[taken])] = fold
    return fold_of.tolist()


def main(file):
    rng = numpy.random.default_rng(3)
    cases = []
    for groups, classes, folds, sparse in [(12, 2, 3, False), (40, 3, 5, False), (40, 5, 4, True), (25, 7, 5, True),
                                           (9, 2, 9, False), (60, 4, 2, True), (30, 1, 4, False), (7, 1, 3, False)]:
        counts = rng.integers(1, 30, (groups, classes))
        if classes == 1:
            # GroupKFold sorts groups of equal size in no defined order.
            counts = rng.permutation(numpy.arange(1, groups + 1))[:, None]
        if sparse:
            # Groups of one or two classes, as patients with one diagnosis.
            counts[rng.random(counts.shape) < 0.7] = 0
            counts[:, 0] += 1
        cases.append({"folds": folds, "counts": counts.tolist(), "fold of group": assigned(counts, folds)})
    with open(file, "w") as out:
        json.dump({"made by": f"scikit-learn {sklearn.__version__}", "cases": cases}, out)
        out.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
