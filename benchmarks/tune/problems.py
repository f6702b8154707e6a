"""The functions of problems.cpp for Optuna: each suggests its parameters to a trial and returns the noiseless value."""

import math

HARTMANN_SMALLEST = -3.3223680114155147
HEIGHTS = (1, 1.2, 3, 3.2)
SCALES = ((10, 3, 17, 3.5, 1.7, 8), (0.05, 10, 17, 0.1, 8, 14), (3, 3.5, 1.7, 10, 17, 8), (17, 8, 0.05, 10, 0.1, 14))
CENTERS = ((0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886), (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
           (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650), (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381))


def box(trial, size, low, high):
    return [trial.suggest_float(f"x{i}", low, high) for i in range(size)]


def branin(trial):
    x, y = trial.suggest_float("x0", -5, 10), trial.suggest_float("x1", 0, 15)
    return ((y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6)**2
            + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10)


def hartmann6(trial):
    x = box(trial, 6, 0, 1)
    return -sum(height * math.exp(-sum(s * (at - c)**2 for s, at, c in zip(scales, x, centers)))
                for height, scales, centers in zip(HEIGHTS, SCALES, CENTERS))


def ackley10(trial):
    x = box(trial, 10, -32.768, 32.768)
    return (-20 * math.exp(-0.2 * math.sqrt(sum(at**2 for at in x) / 10))
            - math.exp(sum(math.cos(2 * math.pi * at) for at in x) / 10) + 20 + math.e)


def rosenbrock4(trial):
    x = box(trial, 4, -5, 10)
    return sum(100 * (b - a**2)**2 + (1 - a)**2 for a, b in zip(x, x[1:]))


def mixed(trial):
    model = trial.suggest_categorical("model", ["linear", "mlp", "conv"])
    optimizer = trial.suggest_categorical("optimizer", ["sgd", "adam"])
    rate = trial.suggest_float("lr", 1e-5, 1, log=True)
    best_rate = -1 if optimizer == "sgd" else -3
    value = 0
    if optimizer == "sgd":
        value += 0.1 + (trial.suggest_float("momentum", 0, 0.99) - 0.9)**2
    else:
        value += 0.2 * (math.log10(trial.suggest_float("gap", 1e-4, 0.5, log=True)) + 2)**2
    if model == "linear":
        value += 1
    if model == "mlp":
        depth = trial.suggest_int("depth", 1, 8)
        best_rate -= 0.2 * (depth - 4)
        value += 0.05 * (depth - 4)**2 + 0.1 * (math.log2(trial.suggest_int("width", 16, 1024, log=True)) - 8)**2
    if model == "conv":
        value += 0.2 + 0.1 * (math.log2(trial.suggest_int("width", 16, 1024, log=True)) - 6)**2
        value += 0.1 * ((trial.suggest_int("kernel", 1, 7, step=2) - 3) / 2)**2
    value += 2 * (trial.suggest_float("dropout", 0, 0.6, step=0.05) - 0.2)**2
    if model == "mlp":
        value += {"relu": 0.05, "gelu": 0, "tanh": 0.15}[trial.suggest_categorical("activation", ["relu", "gelu", "tanh"])]
    return value + 0.3 * (math.log10(rate) - best_rate)**2


# For each problem: its function, its minimum, and the standard deviation of the noise of an observation.
PROBLEMS = {
    "branin": (branin, 0.39788735772973816, 0),
    "hartmann6": (hartmann6, HARTMANN_SMALLEST, 0),
    "ackley10": (ackley10, 0, 0),
    "rosenbrock4": (rosenbrock4, 0, 0),
    "mixed": (mixed, 0, 0),
    "noisy-hartmann6": (hartmann6, HARTMANN_SMALLEST, 0.1),
}
