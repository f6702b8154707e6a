"""Creates tests/fixtures/importance.json: parameter importances of some studies by Optuna.

    PYTHON tests/parity/make_importance.py tests/fixtures

PYTHON needs optuna (its version is recorded in the file), NumPy and scikit-learn. A study has its space in Gallop's
format, points (numbers, indices of choices, null if a parameter has no value) and losses. "fanova" are means and
deviations over 10 seeds, of studies with only unconditional numerical parameters on a linear scale, as Optuna treats
others differently.
"""

import json
import math
import pathlib
import sys
import warnings

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.importance import FanovaImportanceEvaluator, PedAnovaImportanceEvaluator, get_param_importances

warnings.simplefilter("ignore")  # Optuna's warnings about experimental features.
optuna.logging.set_verbosity(optuna.logging.ERROR)
PED_ANOVA = [{}, {"target": 0.25, "region": 0.7}, {"local": False}]


def number(low, high, scale="linear", **more):
    return {"low": low, "high": high, "scale": scale, **more}


LINEAR = {"a": number(-1, 1), "b": number(0, 10), "c": number(-5, 5), "d": number(0, 1)}
ALL_KINDS = {
    "kind": {"choices": ["mlp", "conv", "linear"]},
    "lr": number(1e-5, 1, "log"),
    "width": number(16, 1024, "log", step=1, integer=True),
    "depth": number(1, 8, step=1, integer=True, parent=0, **{"if": [0]}),
    "kernel": number(1, 7, step=2, integer=True, parent=0, **{"if": [1]}),
    "dropout": number(0, 0.6, step=0.05),
    "bias": {"choices": [False, True], "parent": 0, "if": [0, 1]},
    "gain": number(-2, 2, parent=6, **{"if": [1]}),
    "fixed": {"choices": [3]},
}


def distribution(parameter):
    if "choices" in parameter:
        return CategoricalDistribution(parameter["choices"])
    make = IntDistribution if parameter.get("integer") else FloatDistribution
    is_log = parameter["scale"] == "log"
    step = None if is_log else parameter.get("step")
    options = {} if step is None else {"step": step}
    return make(parameter["low"], parameter["high"], log=is_log, **options)


def draw(space, random):
    values = {}
    for name, parameter in space.items():
        if "parent" in parameter:
            parent = list(space)[parameter["parent"]]
            if parent not in values:
                continue
            if space[parent]["choices"].index(values[parent]) not in parameter["if"]:
                continue
        if "choices" in parameter:
            values[name] = parameter["choices"][random.integers(len(parameter["choices"]))]
        elif "step" in parameter and parameter["scale"] == "linear":
            count = round((parameter["high"] - parameter["low"]) / parameter["step"])
            values[name] = round(parameter["low"] + int(random.integers(count + 1)) * parameter["step"], 9)
        else:
            ends = [parameter["low"], parameter["high"]]
            if parameter["scale"] == "log":
                value = math.exp(random.uniform(*np.log(ends)))
            else:
                value = random.uniform(*ends)
            values[name] = round(value) if parameter.get("integer") else value
    return values


def additive(x):
    return [4 * x["a"] ** 2 + x["b"] / 10 + 0.02 * x["c"]]


def product(x):
    return [x["a"] * x["b"] + 0.5 * np.sin(x["c"])]


def training(x):
    loss = 0.3 * (math.log10(x["lr"]) + 3) ** 2 + 0.1 * (math.log2(x["width"]) - 7) ** 2 + 2 * (x["dropout"] - 0.2) ** 2
    loss += {"mlp": 0.2, "conv": 0, "linear": 1}[x["kind"]]
    return [loss + 0.1 * (x.get("depth", 4) - 4) ** 2 + abs(x.get("kernel", 3) - 3) + x.get("gain", 0) ** 2]


def two(x):
    return [training(x)[0], x["dropout"] + math.log2(x["width"]) / 10]


def stored(case):
    name, space, losses, count, seed = case
    random = np.random.default_rng(seed)
    directions = ["minimize"] * (2 if losses is two else 1)
    study = optuna.create_study(directions=directions)
    points, found = [], []
    for _ in range(count):
        values = draw(space, random)
        values_of_trial = losses(values)
        distributions = {key: distribution(space[key]) for key in values}
        study.add_trial(optuna.trial.create_trial(params=values, distributions=distributions, values=values_of_trial))
        found.append(values_of_trial)
        points.append([space[key]["choices"].index(values[key]) if "choices" in space[key] and key in values
                       else values.get(key) for key in space])
    result = {
        "name": name,
        "space": {"parameters": [{"name": key, **parameter} for key, parameter in space.items()], "constraints": []},
        "points": points,
        "losses": found,
        "ped_anova": [],
    }
    for options in PED_ANOVA:
        evaluator = PedAnovaImportanceEvaluator(target_quantile=options.get("target", 0.1),
                                                region_quantile=options.get("region", 1.0),
                                                evaluate_on_local=options.get("local", True))
        shares = get_param_importances(study, evaluator=evaluator)
        result["ped_anova"].append({**options, "shares": [shares[key] for key in space]})
    if space is LINEAR:
        runs = [get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=seed)) for seed in range(10)]
        shares = np.array([[run[key] for key in space] for run in runs])
        result["fanova"] = {"means": shares.mean(axis=0).tolist(), "deviations": shares.std(axis=0).tolist()}
    return result


CASES = [
    ("additive", LINEAR, additive, 100, 1),
    ("product", LINEAR, product, 150, 2),
    ("few", LINEAR, product, 12, 3),
    ("training", ALL_KINDS, training, 120, 4),
    ("two", ALL_KINDS, two, 120, 5),
]
lines = [json.dumps(stored(case), default=float) for case in CASES]
text = f'{{"optuna": "{optuna.__version__}", "studies": [\n' + ",\n".join(lines) + "\n]}\n"
pathlib.Path(sys.argv[1], "importance.json").write_text(text)
