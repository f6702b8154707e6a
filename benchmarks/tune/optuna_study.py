#!/usr/bin/env python3
"""Optuna's side of `run`: has the arguments of bench_tune and bench_tune_storage, and the output that `run` reads.

    optuna_study.py quality PROBLEM TRIALS WORKERS SEED... -- SAMPLER
    optuna_study.py fronts PROBLEM TRIALS EVERY SEED... -- SAMPLER
    optuna_study.py speed PROBLEM FINISHED ASKS -- SAMPLER
    optuna_study.py values
    optuna_study.py storage FILE TRIALS
"""

import heapq
import json
import math
import os
import random
import sys
import time
import warnings

import optuna
from fronts import missing_volumes
from problems import PROBLEMS

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
SAMPLERS = {
    "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
    "tpe": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "tpe-grouped": lambda seed: optuna.samplers.TPESampler(seed=seed, group=True),
    "tpe-independent": lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=False),
    "quasi-random": lambda seed: optuna.samplers.QMCSampler(seed=seed, qmc_type="sobol", scramble=True),
    "gp": lambda seed: optuna.samplers.GPSampler(seed=seed),
    "cma-es": lambda seed: optuna.samplers.CmaEsSampler(seed=seed),
    "nsga2": lambda seed: optuna.samplers.NSGAIISampler(seed=seed),
}


def regrets(problem, trials, workers, seed, sampler):
    """The regret after each trial, in the order in which trials ended."""
    value_of, smallest, noise = PROBLEMS[problem]
    study = optuna.create_study(sampler=SAMPLERS[sampler](seed))
    draw = random.Random(seed)
    ends, now, found, best = [], 0, [], math.inf
    for number in range(2 * trials):  # Each trial has a start and an end.
        if len(ends) < workers and len(found) + len(ends) < trials:
            trial = study.ask()
            heapq.heappush(ends, (now + math.exp(draw.gauss(0, 0.5)), number, trial, value_of(trial)))
            continue
        now, _, trial, value = heapq.heappop(ends)
        observed = value + (draw.gauss(0, noise) if noise else 0)
        found.append(value - smallest if observed < best else found[-1])
        best = min(best, observed)
        study.tell(trial, observed)
    return found


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def speed(problem, finished, asks, sampler):
    value_of = PROBLEMS[problem][0]
    study = optuna.create_study(sampler=SAMPLERS["random"](1))
    before = resident_bytes()
    for _ in range(finished):
        trial = study.ask()
        study.tell(trial, value_of(trial))
    study.sampler = SAMPLERS[sampler](1)
    milliseconds = []
    for _ in range(asks + 1):
        begin = time.monotonic()
        trial = study.ask()
        value = value_of(trial)  # An independent sampler draws a value when the objective suggests the parameter.
        milliseconds.append(1000 * (time.monotonic() - begin))
        study.tell(trial, value)
    print(json.dumps({"ask_ms": milliseconds[1:],
                      "bytes_per_trial": (resident_bytes() - before) / len(study.trials)}))


def storage(file, trials):
    study = optuna.create_study(storage=f"sqlite:///{file}", sampler=SAMPLERS["random"](1))
    begin = time.monotonic()
    for _ in range(trials):
        trial = study.ask()
        for i in range(10):
            trial.suggest_float(f"x{i}", 0, 1)
        trial.report(0.5, 1)
        study.tell(trial, 0.5)
    print(json.dumps({"ms_per_trial": 1000 * (time.monotonic() - begin) / trials}))


def values():
    for line in sys.stdin:
        case = json.loads(line)
        print(PROBLEMS[case["problem"]][0](optuna.trial.FixedTrial(case["point"])))


def main():
    mode, *words = sys.argv[1:]
    if mode == "values":
        return values()
    if mode == "storage":
        return storage(words[0], int(words[1]))
    *words, _, sampler = words
    if mode == "speed":
        return speed(words[0], int(words[1]), int(words[2]), sampler)
    problem, trials, workers, *seeds = words  # For fronts, `workers` is the interval between measurements, in trials.
    if mode == "fronts":
        for seed in map(int, seeds):
            missing = missing_volumes(problem, int(trials), int(workers), SAMPLERS[sampler](seed))
            print(json.dumps({"seed": seed, "missing": missing}), flush=True)
        return
    for seed in map(int, seeds):
        begin = time.monotonic()
        found = regrets(problem, int(trials), int(workers), seed, sampler)
        print(json.dumps({"seed": seed, "seconds": time.monotonic() - begin, "regrets": found}), flush=True)


main()
