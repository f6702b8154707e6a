"""Makes tests/fixtures/optimizers.safetensors: 50 steps of PyTorch's optimizers for many options.

Run with Python, torch==2.11.0 and safetensors==0.8.0: make_optimizers.py tests/fixtures

START/NAME is the initial value, GRADIENT/NAME [50, ...] the gradient of each step, LR [50] the
learning rate of each step, and OPTIONS/STEPS/NAME the value after that many steps.
"""

import itertools
import pathlib
import sys

import torch
from safetensors.torch import save_file

STEPS = 50
SHAPES = {"weight": (7, 5), "bias": (37,), "conv": (3, 2, 3, 3)}


def sgd_cases():
    for momentum, dampening, nesterov, decay, decay_1d in itertools.product(
            (0.0, 0.9), (0.0, 0.25), (False, True), (0.0, 0.1), (True, False)):
        if momentum == 0 and (dampening != 0 or nesterov) or nesterov and dampening != 0:
            continue
        if decay == 0 and not decay_1d:
            continue
        options = {"momentum": momentum, "dampening": dampening, "nesterov": nesterov,
                   "weight_decay": decay}
        yield "sgd", options, decay_1d


def adamw_cases():
    for betas, eps, decay, decay_1d in itertools.product(
            ((0.9, 0.999), (0.8, 0.95)), (1e-8, 1e-3), (0.0, 0.1), (True, False)):
        if decay == 0 and not decay_1d:
            continue
        yield "adamw", {"betas": betas, "eps": eps, "weight_decay": decay}, decay_1d


def name_of(kind, options, decay_1d):
    flat = {}
    for key, value in options.items():
        if key == "betas":
            flat["beta1"], flat["beta2"] = value
        else:
            flat[key] = value
    flat["decay_1d"] = decay_1d
    text = " ".join(f"{key}={str(value).lower()}" for key, value in flat.items())
    return f"{kind} {text}"


def run(kind, options, decay_1d, start, gradients, lr):
    parameters = {name: torch.nn.Parameter(value.clone()) for name, value in start.items()}
    matrices = [p for p in parameters.values() if p.dim() > 1 or decay_1d]
    others = [p for p in parameters.values() if p.dim() <= 1 and not decay_1d]
    groups = [{"params": matrices}]
    if others:
        groups.append({"params": others, "weight_decay": 0.0})
    make = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[kind]
    optimizer = make(groups, lr=1.0, foreach=False, fused=False, **options)
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = lr[step].item()
        for name, parameter in parameters.items():
            parameter.grad = gradients[name][step].clone()
        optimizer.step()
        if step + 1 in (1, 2, STEPS):
            for name, parameter in parameters.items():
                yield f"{name_of(kind, options, decay_1d)}/{step + 1}/{name}", parameter.data.clone()


generator = torch.Generator().manual_seed(1)
start = {name: torch.randn(shape, generator=generator) for name, shape in SHAPES.items()}
gradients = {name: torch.randn((STEPS, *shape), generator=generator)
             for name, shape in SHAPES.items()}
lr = 0.05 * torch.rand(STEPS, generator=generator) + 0.001
stored = {"LR": lr}
stored.update({f"START/{name}": value for name, value in start.items()})
stored.update({f"GRADIENT/{name}": value for name, value in gradients.items()})
for case in itertools.chain(sgd_cases(), adamw_cases()):
    stored.update(run(*case, start, gradients, lr))
path = pathlib.Path(sys.argv[1]) / "optimizers.safetensors"
save_file(stored, path, {"torch": torch.__version__.split("+")[0]})
path.chmod(0o644)
