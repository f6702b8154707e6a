#!/usr/bin/env python3
"""Creates tests/fixtures/class_weights.json: class weights of scikit-learn and of the class-balanced loss, and PyTorch's
cross-entropy with them and with logit adjustment.

Needs: pip install torch==2.11.0 scikit-learn==1.9.1
"""
import json
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.utils.class_weight import compute_class_weight

COUNTS = [[900, 90, 10], [1, 1], [5000, 500, 50, 5, 1], [3, 0, 7]]
BETAS = [0.0, 0.9, 0.999, 0.9999]


def effective_number(counts, beta):
    """As in github.com/richardaecn/class-balanced-loss, with the mean 1 over the classes that have samples."""
    counts = np.array(counts, dtype=np.float64)
    weights = np.zeros(len(counts))
    some = counts > 0
    weights[some] = (1 - beta) / (1 - np.power(beta, counts[some]))
    return weights / weights.sum() * some.sum()


def balanced(counts):
    labels = np.repeat(np.arange(len(counts)), counts)
    weights = np.zeros(len(counts))
    classes = np.unique(labels)
    weights[classes] = compute_class_weight("balanced", classes=classes, y=labels)
    return weights


generator = torch.Generator().manual_seed(1)
cases = []
for counts in COUNTS:
    logits = torch.randn(6, len(counts), dtype=torch.float64, generator=generator)
    labels = torch.multinomial(torch.tensor(counts, dtype=torch.float64).clamp_min(1e-9), 6, replacement=True,
                               generator=generator)

    def loss(weights=None, added=0.0):
        weights = None if weights is None else torch.from_numpy(weights)
        return F.cross_entropy(logits + added, labels, weights).item()

    case = {"counts": counts, "logits": logits.tolist(), "labels": labels.tolist(),
            "balanced": balanced(counts).tolist(), "balanced_loss": loss(balanced(counts)), "effective": []}
    for beta in BETAS:
        weights = effective_number(counts, beta)
        case["effective"].append({"beta": beta, "weights": weights.tolist(), "loss": loss(weights)})
    prior = torch.tensor(counts, dtype=torch.float64).clamp_min(1) / sum(counts)
    case["adjusted_loss"] = {str(tau): loss(added=tau * prior.log()) for tau in (0.5, 1.0)}
    cases.append(case)

path = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "class_weights.json"
path.write_text(json.dumps(cases, indent=1) + "\n")
