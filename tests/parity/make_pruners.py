"""Creates tests/fixtures/pruners.json: decisions of Optuna's pruners after each report of random studies.

    PYTHON tests/parity/make_pruners.py tests/fixtures

PYTHON needs optuna (its version is recorded in the file) and scipy. A study has its events in order: [trial, "begin"],
[trial, step, metric] for a report (null: NaN), and [trial, state, metric] for an end. Trials continue regardless of the
pruner. A case has a pruner, the study, for Hyperband the bracket of each trial, and a decision for each report, "1" to
prune the trial. For pruners with rungs, no report passes two of them. "signed_rank" has differences and SciPy's
p-values.
"""

import json
import math
import pathlib
import random
import sys
import warnings

import optuna
from optuna.pruners import (HyperbandPruner, MedianPruner, PatientPruner, PercentilePruner, SuccessiveHalvingPruner,
                            ThresholdPruner, WilcoxonPruner)
from optuna.trial import TrialState
from scipy.stats import wilcoxon

STATES = {"complete": TrialState.COMPLETE, "pruned": TrialState.PRUNED, "failed": TrialState.FAIL}


def curve(draw, study):
    """Reports of one trial."""
    floor, height, power = draw.random(), 3 * draw.random(), draw.uniform(0.1, 1)
    last = study["steps"] if draw.random() < 0.8 else draw.randint(1, study["steps"])
    step, reports = 0, []
    while True:
        step += draw.randint(1, study["gap"])
        if step > last:
            return reports
        value = round(floor + height * step**-power + draw.gauss(0, study["noise"]), study["digits"])
        is_nan = draw.random() < study["nan"]
        reports.append([step, None if is_nan else -value if study["maximize"] else value])
        if is_nan and study["nan_ends"]:
            return reports


def make_study(seed, trials, **options):
    study = {"maximize": False, "steps": 27, "gap": 1, "noise": 0.1, "digits": 3, "nan": 0.1, "nan_ends": False, **options}
    draw, events, running, begun = random.Random(seed), [], {}, 0
    while begun < trials or running:
        if begun < trials and len(running) < draw.randint(1, 4):
            running[begun] = curve(draw, study)
            events.append([begun, "begin"])
            begun += 1
            continue
        trial = draw.choice(list(running))
        if running[trial] and draw.random() < 0.99:
            events.append([trial, *running[trial].pop(0)])
            continue
        last = next((event[2] for event in reversed(events) if event[0] == trial and event[1] != "begin"), None)
        state = "failed" if last is None or draw.random() < 0.1 else "pruned" if running[trial] else "complete"
        events.append([trial, state, last])
        del running[trial]
    return {"maximize": study["maximize"], "events": events}


def run(pruner, study):
    trials, answers, brackets = {}, "", []
    ours = optuna.create_study(study_name="study", pruner=pruner, direction="maximize" if study["maximize"] else "minimize")
    for number, what, *metric in study["events"]:
        if what == "begin":
            trials[number] = ours.ask()
            if isinstance(pruner, HyperbandPruner):
                pruner._pruners or pruner._try_initialization(ours)
                brackets.append(pruner._get_bracket_id(ours, trials[number]))
        elif isinstance(what, int):
            trials[number].report(math.nan if metric[0] is None else metric[0], what)
            answers += "1" if trials[number].should_prune() else "0"
        else:
            ours.tell(trials[number], metric[0] if what == "complete" else None, state=STATES[what])
    return {"brackets": brackets, "answers": answers} if brackets else {"answers": answers}


STUDIES = [
    make_study(1, 24, nan=0.02, nan_ends=True),
    make_study(2, 24, nan=0.02, nan_ends=True, maximize=True, digits=1),
    make_study(3, 30, gap=3, noise=0.3),
    make_study(4, 16, maximize=True, gap=2, digits=1, nan=0.2),
    make_study(5, 10, nan=0, steps=12, digits=1),
    make_study(6, 8, nan=0, steps=40, digits=6, gap=2),
    make_study(7, 8, nan=0, steps=70, digits=1, maximize=True),
]
DENSE = (0, 1)
CASES = [
    ({"name": "median"}, lambda: MedianPruner(), range(5)),
    ({"name": "median", "startup_trials": 0, "warmup_steps": 4, "interval_steps": 3, "min_trials": 4},
     lambda: MedianPruner(0, 4, 3, n_min_trials=4), range(4)),
    ({"name": "percentile", "percentile": 25}, lambda: PercentilePruner(25.0), range(5)),
    ({"name": "percentile", "percentile": 85, "startup_trials": 2, "interval_steps": 2},
     lambda: PercentilePruner(85.0, 2, 0, 2), range(4)),
    ({"name": "patience", "patience": 0}, lambda: PatientPruner(None, 0), range(4)),
    ({"name": "patience", "patience": 2, "min_delta": 0.05}, lambda: PatientPruner(None, 2, 0.05), range(4)),
    ({"name": "patience", "patience": 1, "then": "median", "startup_trials": 2},
     lambda: PatientPruner(MedianPruner(2), 1), range(4)),
    ({"name": "threshold", "upper": 2.5, "lower": -2}, lambda: ThresholdPruner(-2, 2.5), range(4)),
    ({"name": "threshold", "lower": 0.2, "warmup_steps": 3, "interval_steps": 5},
     lambda: ThresholdPruner(0.2, None, 3, 5), range(4)),
    ({"name": "successive-halving", "min_resource": 1, "reduction_factor": 2},
     lambda: SuccessiveHalvingPruner(1, 2), DENSE),
    ({"name": "successive-halving", "min_resource": 3}, lambda: SuccessiveHalvingPruner(3), DENSE),
    ({"name": "successive-halving", "min_resource": 2, "reduction_factor": 3, "min_early_stopping_rate": 1,
      "bootstrap_count": 3}, lambda: SuccessiveHalvingPruner(2, 3, 1, 3), (0, 1, 2)),
    ({"name": "hyperband", "max_resource": 27}, lambda: HyperbandPruner(1, 27), DENSE),
    ({"name": "hyperband", "min_resource": 2, "max_resource": 20, "reduction_factor": 2, "bootstrap_count": 2},
     lambda: HyperbandPruner(2, 20, 2, 2), DENSE),
    ({"name": "wilcoxon"}, lambda: WilcoxonPruner(), range(7)),
    ({"name": "wilcoxon", "p_threshold": 0.3, "startup_steps": 5},
     lambda: WilcoxonPruner(p_threshold=0.3, n_startup_steps=5), range(7)),
]


def differences(draw):
    digits = draw.choice((0, 1, 9))
    return [round(draw.gauss(0.3, 2), digits) + 0.0 for _ in range(draw.choice((2, 3, 5, 9, 13, 14, 20, 30, 50, 51, 80)))]


warnings.simplefilter("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)
draws = random.Random(1)
stored = {
    "optuna": optuna.__version__,
    "studies": STUDIES,
    "cases": [{"pruner": options, "study": study, **run(make(), STUDIES[study])}
              for options, make, studies in CASES for study in studies],
    "signed_rank": [{"differences": row, "p": float(wilcoxon(row, alternative="greater", zero_method="zsplit").pvalue)}
                    for row in (differences(draws) for _ in range(40))],
}
lines = ['"optuna": ' + json.dumps(stored.pop("optuna"))]
for key, rows in stored.items():
    lines.append(json.dumps(key) + ": [\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "]")
(pathlib.Path(sys.argv[1]) / "pruners.json").write_text("{" + ",\n".join(lines) + "}\n")
