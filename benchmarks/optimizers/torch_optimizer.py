"""torch_optimizer.py OPTIMIZER[+ema] TENSORS FORM: bench_optimizers in PyTorch, in its fused, foreach or compiled form."""

import sys
import time

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

ROWS, COLUMNS = 40_000, 1000
MAKE = {
    "sgd": lambda p, **form: torch.optim.SGD(p, lr=0.1, momentum=0.9, **form),
    "adagrad": lambda p, **form: torch.optim.Adagrad(p, **form),
    "adadelta": lambda p, **form: torch.optim.Adadelta(p, **form),
    "rmsprop": lambda p, **form: torch.optim.RMSprop(p, **form),
    "adam": lambda p, **form: torch.optim.Adam(p, **form),
    "adamw": lambda p, **form: torch.optim.AdamW(p, **form),
    "nadam": lambda p, **form: torch.optim.NAdam(p, **form),
    "radam": lambda p, **form: torch.optim.RAdam(p, **form),
    "adamax": lambda p, **form: torch.optim.Adamax(p, **form),
    "adafactor": lambda p, **form: torch.optim.Adafactor(p, **form),
    "muon": lambda p, **form: torch.optim.Muon(p, lr=0.02),
}


def main():
    name, count, form = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    parameters = [torch.nn.Parameter(torch.randn(ROWS // count, COLUMNS)) for _ in range(count)]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    gradients = [parameter.grad.clone() for parameter in parameters]
    name, *wrappers = name.split("+")
    chosen = {"foreach": True} if form == "compiled" else {form: True}
    optimizer = MAKE[name](parameters, **chosen)
    step = torch.compile(optimizer.step) if form == "compiled" else optimizer.step
    average = None
    if wrappers == ["ema"]:
        model = torch.nn.ParameterList(parameters)
        average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
    for line in sys.stdin:
        seconds = []
        for _ in range(int(line)):
            begin = time.perf_counter()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
            step()
            if average is not None:
                average.update_parameters(model)
            seconds.append(time.perf_counter() - begin)
            # Clipping changes the gradients: restore them for the next step.
            for parameter, gradient in zip(parameters, gradients):
                parameter.grad.copy_(gradient)
        print(*seconds, flush=True)


main()
