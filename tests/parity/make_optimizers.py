"""Creates tests/fixtures/optimizers.safetensors: 50 steps of PyTorch's optimizers for many options.

Run with Python, torch==2.11.0 and safetensors==0.8.0: make_optimizers.py tests/fixtures

START/NAME is the initial value, GRADIENT/NAME [50, ...] the gradient of each step, LR [50] the learning rate of each
step, and OPTIONS the values of all parameters after the last step, in order.
"""

import itertools
import pathlib
import sys

import torch
from safetensors.torch import save_file

STEPS = 50
SHAPES = {"weight": (7, 5), "bias": (5,), "conv": (3, 2, 2, 2)}


# Options of each optimizer; every combination is a case, except for contradicting ones.
DECAYS = {"weight_decay": (0.0, 0.1)}
ADAM = {"betas": ((0.9, 0.999), (0.8, 0.95)), "eps": (1e-8, 1e-3)}
OPTIONS = {
    "sgd": {"momentum": (0.0, 0.9), "dampening": (0.0, 0.25), "nesterov": (False, True)} | DECAYS,
    "adamw": ADAM | {"amsgrad": (False, True)} | DECAYS,
    "adam": ADAM | {"amsgrad": (False, True)} | DECAYS,
    "nadam": ADAM | {"momentum_decay": (4e-3, 0.1), "decoupled_weight_decay": (False, True)} | DECAYS,
    "radam": ADAM | {"decoupled_weight_decay": (False, True)} | DECAYS,
    "adamax": ADAM | DECAYS,
    "adagrad": {"lr_decay": (0.0, 0.1), "eps": (1e-10, 1e-3),
                "initial_accumulator_value": (0.0, 0.5)} | DECAYS,
    "adadelta": {"rho": (0.9, 0.5), "eps": (1e-6, 1e-3)} | DECAYS,
    "rmsprop": {"alpha": (0.99, 0.8), "eps": (1e-8, 1e-3), "momentum": (0.0, 0.9),
                "centered": (False, True)} | DECAYS,
    "adafactor": {"beta2_decay": (-0.8, -0.5), "eps": ((None, 1e-3), (1e-2, 1e-1)),
                  "d": (1.0, 2.0)} | DECAYS,
    "muon": {"momentum": (0.95, 0.8), "nesterov": (True, False), "ns_steps": (5, 3),
             "adjust_lr_fn": ("original", "match_rms_adamw")} | DECAYS,
}
CLASSES = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW, "adam": torch.optim.Adam,
           "nadam": torch.optim.NAdam, "radam": torch.optim.RAdam, "adamax": torch.optim.Adamax,
           "adagrad": torch.optim.Adagrad, "adadelta": torch.optim.Adadelta,
           "rmsprop": torch.optim.RMSprop, "adafactor": torch.optim.Adafactor}


def cases():
    for kind, options in OPTIONS.items():
        for values in itertools.product(*options.values(), (True, False)):
            chosen, decay_1d = dict(zip(options, values)), values[-1]
            if kind == "sgd" and (chosen["momentum"] == 0
                                  and (chosen["dampening"] != 0 or chosen["nesterov"])
                                  or chosen["nesterov"] and chosen["dampening"] != 0):
                continue
            if chosen["weight_decay"] == 0 and not decay_1d:
                continue
            # Muon's parameters are all matrices.
            if kind == "muon" and not decay_1d:
                continue
            # Without weight decay only one form of it.
            if chosen["weight_decay"] == 0 and chosen.get("decoupled_weight_decay"):
                continue
            yield kind, chosen, decay_1d


def name_of(kind, options, decay_1d):
    flat = {}
    for key, value in options.items():
        if key == "betas":
            flat["beta1"], flat["beta2"] = value
        elif kind == "adafactor" and key == "eps":
            flat["eps1"], flat["eps2"] = value[0] or 0, value[1]
        else:
            flat[key] = value
    if kind != "muon":
        flat["decay_1d"] = decay_1d
    text = " ".join(f"{key}={str(value).lower()}" for key, value in flat.items())
    return f"{kind} {text}"


def run_muon(options, parameters, gradients, lr):
    """Filters as matrices, and the bias by AdamW with 0.015 of the learning rate."""
    matrices = {name: torch.nn.Parameter(value.data.flatten(1))
                for name, value in parameters.items() if value.dim() > 1}
    muon = torch.optim.Muon(matrices.values(), lr=1.0, **options)
    adamw = torch.optim.AdamW([parameters["bias"]], lr=1.0, betas=(0.9, 0.95), weight_decay=0.0,
                              foreach=False)
    for step in range(STEPS):
        muon.param_groups[0]["lr"] = lr[step].item()
        adamw.param_groups[0]["lr"] = lr[step].item() * 0.015
        for name, matrix in matrices.items():
            matrix.grad = gradients[name][step].flatten(1).clone()
        parameters["bias"].grad = gradients["bias"][step].clone()
        muon.step()
        adamw.step()
    return torch.cat([matrices.get(name, value).data.flatten()
                      for name, value in parameters.items()])


def run(kind, options, decay_1d, start, gradients, lr):
    parameters = {name: torch.nn.Parameter(value.clone()) for name, value in start.items()}
    matrices = [p for p in parameters.values() if p.dim() > 1 or decay_1d]
    others = [p for p in parameters.values() if p.dim() <= 1 and not decay_1d]
    groups = [{"params": matrices}]
    if others:
        groups.append({"params": others, "weight_decay": 0.0})
    if kind == "muon":
        return run_muon(options, parameters, gradients, lr)
    apart = {} if kind == "adagrad" else {"foreach": False}
    optimizer = CLASSES[kind](groups, lr=1.0, **apart, **options)
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = lr[step].item()
        for name, parameter in parameters.items():
            parameter.grad = gradients[name][step].clone()
        optimizer.step()
    return torch.cat([parameter.data.flatten() for parameter in parameters.values()])


generator = torch.Generator().manual_seed(1)
start = {name: torch.randn(shape, generator=generator) for name, shape in SHAPES.items()}
gradients = {name: torch.randn((STEPS, *shape), generator=generator)
             for name, shape in SHAPES.items()}
lr = 0.05 * torch.rand(STEPS, generator=generator) + 0.001
stored = {"LR": lr}
stored.update({f"START/{name}": value for name, value in start.items()})
stored.update({f"GRADIENT/{name}": value for name, value in gradients.items()})
for case in cases():
    stored[name_of(*case)] = run(*case, start, gradients, lr)
path = pathlib.Path(sys.argv[1]) / "optimizers.safetensors"
save_file(stored, path, {"torch": torch.__version__.split("+")[0]})
path.chmod(0o644)
