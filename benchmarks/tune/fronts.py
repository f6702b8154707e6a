"""The problems of fronts.cpp, and the hypervolume that one of Optuna's samplers finds."""

import math

import numpy as np
import optuna
from optuna._hypervolume import compute_hypervolume


def zdt_distance(x):
    return 1 + 9 * sum(x[1:]) / (len(x) - 1)


def zdt1(x):
    g = zdt_distance(x)
    return x[0], g * (1 - math.sqrt(x[0] / g))


def zdt2(x):
    g = zdt_distance(x)
    return x[0], g * (1 - (x[0] / g)**2)


def dtlz2(x):
    radius = 1 + sum((at - 0.5)**2 for at in x[2:])
    a, b = x[0] * math.pi / 2, x[1] * math.pi / 2
    return radius * math.cos(a) * math.cos(b), radius * math.cos(a) * math.sin(b), radius * math.sin(a)


# For each problem: its function, number of parameters, reference point, and the hypervolume of its Pareto front.
FRONTS = {
    "zdt1": (zdt1, 10, (1, 10), 10 - 1 / 3),
    "zdt2": (zdt2, 10, (1, 10), 10 - 2 / 3),
    "dtlz2": (dtlz2, 7, (2.25, 2.25, 2.25), 2.25**3 - math.pi / 6),
}


def missing_volumes(problem, trials, every, sampler):
    values_of, parameters, reference, volume = FRONTS[problem]
    study = optuna.create_study(directions=["minimize"] * len(reference), sampler=sampler)
    losses, missing = [], []
    for number in range(trials):
        trial = study.ask()
        losses.append(values_of([trial.suggest_float(f"x{i}", 0, 1) for i in range(parameters)]))
        study.tell(trial, losses[-1])
        if (number + 1) % every == 0:
            inside = [row for row in losses if all(a <= b for a, b in zip(row, reference))]
            missing.append(volume - compute_hypervolume(np.array(inside), np.array(reference)))
    return missing
