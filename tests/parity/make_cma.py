"""Creates tests/fixtures/cma.json: distributions of the package cmaes after several generations.

    PYTHON tests/parity/make_cma.py tests/fixtures

PYTHON needs cmaes (its version is recorded in the file) and NumPy. Each case has the points of a generation with their
losses, the best first, and the resulting distribution. With "step" the even dimensions have only the values 0, step, 2
step and so on up to 1.
"""

import importlib.metadata
import json
import pathlib
import sys

import cmaes
import numpy as np

GENERATIONS = 8


def loss(point):
    return float(np.sum(10.0 ** np.arange(len(point)) * (point - 0.3) ** 2) + 0.1 * point[0] * point[-1])


def run(dimensions, seed, step=0.0, **options):
    start = {"mean": np.linspace(0.2, 0.8, dimensions), "sigma": 0.3, "seed": seed, **options}
    if step:
        steps = np.where(np.arange(dimensions) % 2 == 0, step, 0.0)
        search = cmaes.CMAwM(bounds=np.tile([0.0, 1.0], (dimensions, 1)), steps=steps, **start)
        inner = search._cma
    else:
        search = inner = cmaes.CMA(**start)
    generations = []
    for _ in range(GENERATIONS):
        drawn = [search.ask() for _ in range(search.population_size)]
        told = [(ask[1], loss(ask[0])) if step else (ask, loss(ask)) for ask in drawn]
        told.sort(key=lambda solution: solution[1])
        points = [[*point.tolist(), value] for point, value in told]
        search.tell(told)
        generations.append({"told": points, "mean": inner._mean.tolist(), "sigma": inner._sigma,
                            "covariance": inner._C.ravel().tolist()})
        if step:
            generations[-1]["factors"] = search._A.tolist()
    return {"population": search.population_size, "step": step, "adapt_rates": inner._lr_adapt,
            "mean": start["mean"].tolist(), "sigma": start["sigma"], "generations": generations}


cases = [
    run(1, 1),
    run(2, 2),
    run(5, 3),
    run(3, 4, population_size=12),
    run(4, 5, lr_adapt=True),
    run(2, 6, step=0.25),
    run(3, 7, step=1.0),
    run(4, 8, step=0.05),
]
text = json.dumps({"cmaes": importlib.metadata.version("cmaes"), "cases": cases}) + "\n"
pathlib.Path(sys.argv[1], "cma.json").write_text(text)
