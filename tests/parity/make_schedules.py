"""Creates tests/fixtures/schedules.json: the learning rates of PyTorch's schedules.

Run with Python and torch==2.11.0: make_schedules.py tests/fixtures

A case has the recipe that shall give the same values, "factor" for a base learning rate of 1 and, if it is cycled,
"momentum", at each of the STEPS before an update; "metric" is the result of the evaluation before each of them.
Progress is step / "last".
"""

import json
import math
import pathlib
import sys
import warnings

import torch
from torch.optim import lr_scheduler as lrs

STEPS = 40
EPOCH = 10  # Steps per epoch.
METRIC = [1 / (1 + 0.3 * min(step, 9)) + 0.02 * math.sin(5 * step) for step in range(STEPS)]


def one_cycle(optimizer, share, **options):
    """PyTorch's phases end one step before the given fraction of the run."""
    recipe = {"name": "one-cycle", "warmup": (share * STEPS - 1) / (STEPS - 1),
              "start": 1 / options.get("div_factor", 25.0)}
    recipe["final"] = recipe["start"] / options.get("final_div_factor", 1e4)
    recipe["shape"] = "linear" if options.get("anneal_strategy") == "linear" else "cosine"
    recipe["phases"] = 3 if options.get("three_phase") else 2
    recipe.update(base_momentum=0.85, max_momentum=0.95)
    return recipe, lrs.OneCycleLR(optimizer, max_lr=1.0, total_steps=STEPS, pct_start=share, **options)


def cyclic(optimizer, up, down, **options):
    mode = options.get("mode", "triangular")
    recipe = {"name": "cyclic", "mode": mode.replace("_", "-"), "period": f"{up + down} steps",
              "rise": up / (up + down), "low": 0.05, "base_momentum": 0.8, "max_momentum": 0.9}
    if "gamma" in options:
        recipe["gamma"] = options["gamma"] ** (up + down)
    return recipe, lrs.CyclicLR(optimizer, base_lr=0.05, max_lr=1.0, step_size_up=up, step_size_down=down, **options)


def chained(optimizer):
    recipe = {"name": "chained", "members": [
        {"warmup": {"length": "5 steps", "kind": "constant", "start": 0.25}},
        {"exponential": {"step_size": "1 step", "gamma": 0.93}}]}
    return recipe, lrs.ChainedScheduler([lrs.ConstantLR(optimizer, 0.25, 5), lrs.ExponentialLR(optimizer, 0.93)])


def sequence(optimizer):
    recipe = {"name": "sequence", "milestones": ["8 steps", "2 epochs"], "members": [
        {"linear": {"start": 0.1, "final": 1}},
        {"step": {"step_size": "4 steps", "gamma": 0.5}},
        {"cosine": {"final": 0.1}}]}
    members = [lrs.LinearLR(optimizer, 0.1, 1.0, 8), lrs.StepLR(optimizer, 4, 0.5),
               lrs.CosineAnnealingLR(optimizer, STEPS - 20, 0.1)]
    return recipe, lrs.SequentialLR(optimizer, members, [8, 20])


def plateau(optimizer, **options):
    recipe = {"name": "reduce-on-plateau", "metric": "accuracy" if options.get("mode") == "max" else "loss"}
    recipe.update({"min" if key == "min_lr" else key: value for key, value in options.items() if key != "mode"})
    return recipe, lrs.ReduceLROnPlateau(optimizer, **options)


def plain(name, make, *arguments, **options):
    return lambda optimizer: ({"name": name, **options}, make(optimizer, *arguments))


CASES = [
    plain("constant", lrs.LambdaLR, lambda step: 1.0),
    plain("warmup", lrs.ConstantLR, 1 / 3, 7, length="7 steps", kind="constant", start=1 / 3),
    plain("warmup", lrs.LinearLR, 1 / 3, 1.0, 13, length="13 steps", kind="linear", start=1 / 3),
    plain("step", lrs.StepLR, 7, 0.3, step_size="7 steps", gamma=0.3),
    plain("step", lrs.StepLR, EPOCH, 0.1, step_size="1 epoch", gamma=0.1),
    plain("multi-step", lrs.MultiStepLR, [3, 20, 37], 0.2, milestones=["3 steps", "2 epochs", "37 steps"], gamma=0.2),
    plain("exponential", lrs.ExponentialLR, 0.9, step_size="1 step", gamma=0.9),
    plain("exponential", lrs.ExponentialLR, 0.5 ** (1 / EPOCH), step_size="1 epoch", gamma=0.5),
    plain("polynomial", lrs.PolynomialLR, STEPS, 1.0),
    plain("polynomial", lrs.PolynomialLR, STEPS, 0.9, power=0.9),
    plain("polynomial", lrs.PolynomialLR, STEPS, 2.5, power=2.5),
    plain("linear", lrs.LinearLR, 1.0, 0.1, STEPS, start=1, final=0.1),
    plain("linear", lrs.LinearLR, 0.9, 0.2, 23, start=0.9, final=0.2, length="23 steps"),
    plain("cosine", lrs.CosineAnnealingLR, STEPS),
    plain("cosine", lrs.CosineAnnealingLR, STEPS, 0.05, final=0.05),
    plain("cosine-restarts", lrs.CosineAnnealingWarmRestarts, 7, period="7 steps"),
    plain("cosine-restarts", lrs.CosineAnnealingWarmRestarts, 3, 2, 0.01, period="3 steps", multiplier=2, final=0.01),
    plain("cosine-restarts", lrs.CosineAnnealingWarmRestarts, 1, 3, period="1 step", multiplier=3),
    lambda o: cyclic(o, 6, 6),
    lambda o: cyclic(o, 4, 7, mode="triangular2"),
    lambda o: cyclic(o, 5, 5, mode="exp_range", gamma=0.97),
    lambda o: one_cycle(o, 0.3),
    lambda o: one_cycle(o, 0.2, anneal_strategy="linear", div_factor=10.0),
    lambda o: one_cycle(o, 0.3, three_phase=True),
    lambda o: one_cycle(o, 0.4, three_phase=True, anneal_strategy="linear", final_div_factor=100.0),
    lambda o: plateau(o, factor=0.5, patience=2),
    lambda o: plateau(o, factor=0.1, patience=0, cooldown=3, threshold=0.01, threshold_mode="abs", min_lr=0.003),
    lambda o: plateau(o, mode="max", factor=0.3, patience=5, threshold=0.05),
    lambda o: plateau(o, mode="max", factor=0.3, patience=1, threshold=0.05, threshold_mode="abs"),
    chained,
    sequence,
]


def run(make):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0, momentum=0.9)
    recipe, schedule = make(optimizer)
    group = optimizer.param_groups[0]
    case = {"recipe": recipe, "last": STEPS - 1 if recipe["name"] == "one-cycle" else STEPS, "factor": []}
    follows = recipe["name"] == "reduce-on-plateau"
    if follows:
        case["metric"] = METRIC
    if "base_momentum" in recipe:
        case["momentum"] = []
    for step in range(STEPS):
        if follows:
            schedule.step(METRIC[step])
        case["factor"].append(group["lr"])
        if "momentum" in case:
            case["momentum"].append(group["momentum"])
        optimizer.step()
        if not follows and step + 1 < STEPS:
            schedule.step()
    return case


warnings.simplefilter("ignore")  # Torch's warnings about its own SequentialLR.
stored = {"torch": torch.__version__.split("+")[0], "steps": STEPS, "steps_per_epoch": EPOCH}
lines = [json.dumps(run(make)) for make in CASES]
text = json.dumps(stored)[:-1] + ', "cases": [\n' + ",\n".join(lines) + "\n]}\n"
(pathlib.Path(sys.argv[1]) / "schedules.json").write_text(text)
