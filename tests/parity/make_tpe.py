"""Creates tests/fixtures/tpe.json: the densities of Optuna's TPE sampler, and its division of trials.

Run with Python and optuna==5.0.0: make_tpe.py tests/fixtures

Spaces and points are in Gallop's format: a number, or the index of a choice. An estimator is built from the points in
their order; the file has the weights of its kernels, the parameters of each kernel for each parameter (center and
deviation, or the probability of each choice), the prior last, and the log densities at queries. A division has trials
and the good ones among them.
"""

import json
import math
import pathlib
import random
import sys
import warnings

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers._tpe import parzen_estimator, sampler
from optuna.trial import TrialState, create_trial

warnings.simplefilter("ignore")
RATE = {"name": "rate", "low": 1e-5, "high": 1, "scale": "log"}
SHARE = {"name": "share", "low": -1, "high": 3, "scale": "linear"}
WIDTH = {"name": "width", "low": 16, "high": 1024, "scale": "log", "step": 1, "integer": True}
DEPTH = {"name": "depth", "low": 1, "high": 9, "scale": "linear", "step": 2, "integer": True}
DROPOUT = {"name": "dropout", "low": 0, "high": 0.5, "scale": "linear", "step": 0.125}
KIND = {"name": "kind", "choices": ["relu", "gelu", "tanh"]}
SPACES = [[SHARE], [RATE], [WIDTH], [DEPTH], [DROPOUT], [KIND], [RATE, SHARE, WIDTH, DEPTH, DROPOUT, KIND]]
SIZES = [0, 1, 2, 5, 24, 27, 97, 98, 99, 200]
draw = random.Random(1)
optuna.logging.set_verbosity(optuna.logging.ERROR)

# Optuna does not define the order of equal values; Gallop shuffles that of the trials.
any_argsort = np.argsort


def scrambled_argsort(numbers):
    turns = np.arange(1, len(numbers) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return np.lexsort((turns, numbers))


np.argsort = lambda numbers, kind=None: any_argsort(numbers, kind="stable") if kind else scrambled_argsort(numbers)


def distribution_of(parameter):
    if "choices" in parameter:
        return CategoricalDistribution(parameter["choices"])
    step, log = parameter.get("step"), parameter["scale"] == "log"
    if parameter.get("integer"):
        return IntDistribution(parameter["low"], parameter["high"], step=step, log=log)
    return FloatDistribution(parameter["low"], parameter["high"], step=step, log=log)


def value_of(parameter):
    if "choices" in parameter:
        return draw.randrange(len(parameter["choices"]))
    low, high, step = parameter["low"], parameter["high"], parameter.get("step", 0)
    value = math.exp(draw.uniform(math.log(low), math.log(high))) if parameter["scale"] == "log" else draw.uniform(low, high)
    return low + step * round((value - low) / step) if step else float(f"{value:.3g}")


def points_in(space, count):
    return [[value_of(parameter) for parameter in space] for _ in range(count)]


def columns_of(points, space):
    return {parameter["name"]: np.array([point[i] for point in points], dtype=float) for i, parameter in enumerate(space)}


def rounded(numbers):
    """Values rounded to the 12 digits that tests compare, as lists."""
    if isinstance(numbers, np.ndarray):
        return [rounded(item) for item in numbers]
    return float(f"{numbers:.12g}")


def kernels_of(distribution):
    if hasattr(distribution, "weights"):
        return rounded(distribution.weights)
    return rounded(np.stack([distribution.mu, distribution.sigma], axis=1))


def estimator(space, size, equal_weights=False):
    points, queries = points_in(space, size), points_in(space, 5)
    options = parzen_estimator._ParzenEstimatorParameters(1.0, True, False, sampler.default_weights, True)
    made = parzen_estimator._ParzenEstimator(
        columns_of(points, space), {parameter["name"]: distribution_of(parameter) for parameter in space}, options,
        np.ones(size) if equal_weights else None)
    mixture = made._mixture_distribution
    result = {"space": {"parameters": space, "constraints": []}, "equal_weights": equal_weights, "points": points,
              "queries": queries, "log_densities": made.log_pdf(columns_of(queries, space)).tolist()}
    if size < 30:  # More kernels would make the file large; their density is compared instead.
        result |= {"weights": rounded(mixture.weights), "kernels": [kernels_of(d) for d in mixture.distributions]}
    return result


def trial_of(number, state, losses, reports, violation):
    trial = create_trial(state=state, values=losses if state == TrialState.COMPLETE else None,
                         intermediate_values=reports, constraints={"limit": violation} if violation is not None else {})
    trial.number = number
    return trial


def division(size, objectives, states, violated):
    """A division of `size` trials; losses have two digits, so that some are equal."""
    study = optuna.create_study(directions=["minimize"] * objectives)
    trials, described = [], []
    for number in range(size):
        state = getattr(TrialState, draw.choice(states).upper())
        losses = [round(draw.gauss(0, 1), 4 if objectives > 1 else 1) for _ in range(objectives)]
        reports = {step: round(draw.gauss(0, 1), 1) for step in range(draw.randrange(4))} if state == TrialState.PRUNED else {}
        violation = round(draw.gauss(-0.5, 1), 1) if violated and state != TrialState.RUNNING else None
        trials.append(trial_of(number, state, losses, reports, violation))
        described.append({"state": state.name.lower(), "losses": losses, "reports": list(reports.items()),
                          "violations": [violation] if violation is not None else []})
    finished = sum(trial.state != TrialState.RUNNING for trial in trials)
    gamma = sampler.default_gamma if objectives == 1 else sampler.default_gamma_multiobjective
    good, rest = sampler._split_trials(study, trials, gamma(finished))
    return {"objectives": objectives, "limits": int(violated), "trials": described, "good": [trial.number for trial in good],
            "rest": [trial.number for trial in rest]}


def main():
    estimators = [estimator(space, size) for space in SPACES for size in SIZES if size < 100 or len(space) > 1]
    estimators.append(estimator(SPACES[-1], 30, equal_weights=True))
    divisions = [division(size, 1, states, violated) for size in (1, 11, 40, 300)
                 for states in (["complete"], ["complete", "pruned", "running"], ["pruned"]) for violated in (False, True)]
    divisions += [division(size, objectives, ["complete", "running"], violated) for size in (1, 12, 60, 200)
                  for objectives in (2, 3) for violated in (False, True)]
    path = pathlib.Path(sys.argv[1]) / "tpe.json"
    path.write_text(json.dumps({"estimators": estimators, "divisions": divisions}) + "\n")


main()
