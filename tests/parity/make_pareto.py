"""Creates tests/fixtures/pareto.json: ranks, crowding distances and hypervolumes by Optuna.

    PYTHON tests/parity/make_pareto.py tests/fixtures

PYTHON needs optuna (its version is recorded in the file) and NumPy. An infinite distance is null.
"""

import json
import pathlib
import sys

import numpy as np
import optuna
from optuna._hypervolume import _solve_hssp, compute_hypervolume
from optuna.samplers._tpe.sampler import _get_reference_point
from optuna.samplers.nsgaii._elite_population_selection_strategy import _calc_crowding_distance
from optuna.study._multi_objective import _fast_non_domination_rank


def crowding(losses):
    trials = [optuna.trial.create_trial(values=row) for row in losses.tolist()]
    for number, trial in enumerate(trials):
        trial.number = number
    distances = _calc_crowding_distance(list(trials))
    return [distances[i] if np.isfinite(distances[i]) else None for i in range(len(trials))]


def case(losses, random):
    violations = np.where(random.random(len(losses)) < 0.5, 0.0, random.integers(0, 4, len(losses)))
    ranks = _fast_non_domination_rank(losses)
    front = losses[ranks == 0]
    reference = _get_reference_point(losses)
    unique = np.unique(front, axis=0)
    volume = compute_hypervolume(losses, reference)
    count = (len(front) + 2) // 3
    return {
        "losses": losses.tolist(),
        "violations": violations.tolist(),
        "ranks": ranks.tolist(),
        "constrained_ranks": _fast_non_domination_rank(losses, penalty=violations).tolist(),
        "front": front.tolist(),
        "crowding": crowding(unique),
        "reference": reference.tolist(),
        "hypervolume": volume,
        "contributions": [
            volume - compute_hypervolume(np.delete(losses, i, axis=0), reference)
            for i in range(len(losses))
        ],
        "count": count,
        "selected": sorted(_solve_hssp(front, np.arange(len(front)), count, reference).tolist()),
    }


def rows(objectives, count, kind, random):
    if kind == "grid":  # With equal losses and equal rows.
        return random.integers(-3, 4, (count, objectives)).astype(float)
    losses = random.normal(size=(count, objectives))
    if kind == "sphere":  # Most rows have the same rank.
        losses = np.abs(losses / np.linalg.norm(losses, axis=1, keepdims=True))
        losses[count // 2 :] *= 1.2
    return losses


random = np.random.default_rng(7)
cases = [
    case(rows(objectives, count, kind, random), random)
    for objectives, count in [(1, 8), (2, 5), (2, 40), (3, 30), (4, 20), (5, 12)]
    for kind in ["normal", "sphere", "grid"]
]
text = json.dumps({"optuna": optuna.__version__, "cases": cases}, default=float) + "\n"
pathlib.Path(sys.argv[1], "pareto.json").write_text(text)
