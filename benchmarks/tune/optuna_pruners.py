#!/usr/bin/env python3
"""Optuna's side of `run_pruners`: has the arguments and the output of bench_tune_pruners.

    optuna_pruners.py quality STEPS WORKERS SEED... -- SAMPLER PRUNER
"""

import json
import random
import sys

import optuna

optuna.logging.set_verbosity(optuna.logging.ERROR)
WHOLE, NOISE = 81, 0.02
SAMPLERS = {"random": optuna.samplers.RandomSampler, "tpe": optuna.samplers.TPESampler}
PRUNERS = {
    "none": optuna.pruners.NopPruner,
    "median": optuna.pruners.MedianPruner,
    "halving": lambda: optuna.pruners.SuccessiveHalvingPruner(1, 3),
    "hyperband": lambda: optuna.pruners.HyperbandPruner(1, WHOLE, 3),
}


def curve(point, step):
    end = sum((value - 0.3 - 0.1 * i) ** 2 for i, value in enumerate(point))
    return end + (1 + point[1]) * step ** (-0.2 - 0.8 * point[0])


class Held:
    def __init__(self, study):
        self.trial, self.step, self.loss = study.ask(), 0, None
        self.point = [self.trial.suggest_float(name, 0, 1) for name in "abcd"]


def search(steps, workers, seed, sampler, pruner):
    study = optuna.create_study(study_name=f"benchmark {seed}", sampler=SAMPLERS[sampler](seed=seed), pruner=PRUNERS[pruner]())
    draw, held, points, least = random.Random(seed), [None] * workers, {}, (2, 0, None)
    for i in range(steps):
        one = held[i % workers] = held[i % workers] or Held(study)
        one.step += 1
        one.loss = curve(one.point, one.step) + draw.gauss(0, NOISE)
        one.trial.report(one.loss, one.step)
        is_pruned = one.trial.should_prune()
        if one.step == WHOLE:
            study.tell(one.trial, one.loss)
        elif is_pruned:
            study.tell(one.trial, state=optuna.trial.TrialState.PRUNED)
        points[one.trial.number] = one
        if one.step == WHOLE or is_pruned:
            held[i % workers] = None
    for one in points.values():  # Complete trials precede all others.
        least = min(least, (one.step < WHOLE, one.loss, one.point))
    return {"seed": seed, "loss": curve(least[2], WHOLE), "trials": len(points)}


def main():
    words, (sampler, pruner) = sys.argv[1:-3], sys.argv[-2:]
    _, steps, workers, *seeds = words
    for seed in map(int, seeds):
        print(json.dumps(search(int(steps), int(workers), seed, sampler, pruner)), flush=True)


main()
