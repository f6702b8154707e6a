"""PyTorch's side of `run`: torch_step.py MODEL fp32|bf16 cpu|cuda FORM runs training steps on request.

FORM: eager, compile or reduce-overhead, also with ",channels_last". Commands and answers are those of bench_exported.
"""

import json
import os
import resource
import sys
import time

import torch
from torch.nn import functional as F

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
from models import models

LEARNING_RATE = 1e-4


def peak_bytes(device):
    return torch.cuda.max_memory_allocated() if device == "cuda" else 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def target_of(model, args, loss):
    with torch.no_grad():
        output = model.eval()(*args)
    model.train()
    if loss == "mse":
        return torch.randn(output.shape, device=output.device)
    dim = 1 if output.dim() == 4 else -1
    return torch.randint(output.shape[dim], output.select(dim, 0).shape, device=output.device)


def main():
    name, precision, device, form = sys.argv[1:]
    kind, *options = form.split(",")
    start_bytes = peak_bytes(device)
    torch.manual_seed(1)
    case = models()[name](device)
    model = case.make().to(device)
    args = [tensor.to(device) for tensor in case.args]
    target = target_of(model, args, case.loss)
    layout = torch.channels_last if "channels_last" in options else torch.contiguous_format
    model = model.to(memory_format=layout)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, fused=True)

    def rolled(tensor, i):
        tensor = tensor.roll(i, 0)
        return tensor.contiguous(memory_format=layout) if tensor.dim() == 4 else tensor.contiguous()

    batches = [([rolled(tensor, i) for tensor in args], target.roll(i, 0)) for i in range(4)]

    def loss_of(inputs, target):
        with torch.autocast(device, torch.bfloat16, enabled=precision == "bf16"):
            output = model(*inputs)
            if case.loss == "mse":
                return F.mse_loss(output, target)
            return F.cross_entropy(output if output.dim() == 4 else output.flatten(0, -2), target if output.dim() == 4 else target.flatten())

    if kind != "eager":
        loss_of = torch.compile(loss_of, mode={"compile": "default"}.get(kind, kind))
    number = 0

    def take_steps(count):
        nonlocal number
        for _ in range(count):
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(*batches[number % 4])
            loss.backward()
            optimizer.step()
            number += 1
            if device == "cpu":
                loss.item()
        return loss.item()

    for line in sys.stdin:
        command, *rest = line.split()
        if command == "report":
            answer = {"peak_bytes": peak_bytes(device), "start_bytes": start_bytes}
        else:
            begin = time.perf_counter()
            loss = take_steps(int(rest[0]))
            answer = {"seconds": time.perf_counter() - begin, "loss": loss}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
