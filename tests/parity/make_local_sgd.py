#!/usr/bin/env python3
"""Creates tests/fixtures/local_sgd.safetensors: local SGD by PyTorch, and DiLoCo after the paper.

Needs: pip install torch==2.11.0 safetensors

Local SGD is torch.distributed.algorithms' PostLocalSGDOptimizer and PeriodicModelAverager, with the gradients of warm-up
steps averaged as DistributedDataParallel's post-local SGD hook does. DiLoCo is algorithm 1 of Douillard et al. (2023):
AdamW inside, torch.optim.SGD with Nesterov momentum outside. All in fp64, over Gloo.

Names: input, target ([step, row]: a process has an equal part of the rows), initial.PARAMETER, and
CASE.PROCESSES.RANK.STEP.PARAMETER for the parameters after steps 4 and 8, counted from 1.
"""
import pathlib
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from safetensors.torch import load_file, save_file
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import PostLocalSGDOptimizer

STEPS, ROWS, SYNC_EVERY, WARMUP_STEPS, LR = 8, 12, 3, 2, 0.0625
KEPT = (4, 8)
SIZES = [(192, 6), (6, 5)]


def make_data():
    torch.manual_seed(3)
    tensors = {"input": torch.randn(STEPS, ROWS, 3, 8, 8, dtype=torch.float64),
               "target": torch.randint(0, 5, (STEPS, ROWS))}
    for i, (inputs, outputs) in enumerate(SIZES):
        tensors[f"initial.layers.{i}.weight"] = torch.randn(outputs, inputs, dtype=torch.float64) / inputs**0.5
        tensors[f"initial.layers.{i}.bias"] = torch.randn(outputs, dtype=torch.float64) / 10
    return tensors


def make_model(data):
    layers = []
    for i, (inputs, outputs) in enumerate(SIZES):
        layers.append(torch.nn.Linear(inputs, outputs, dtype=torch.float64))
        for name in ("weight", "bias"):
            getattr(layers[-1], name).data.copy_(data[f"initial.layers.{i}.{name}"])
    return torch.nn.Sequential(torch.nn.Flatten(), layers[0], torch.nn.ReLU(), layers[1])


def named(model):
    for i, layer in enumerate([model[1], model[3]]):
        yield f"layers.{i}.weight", layer.weight
        yield f"layers.{i}.bias", layer.bias


def gradients(model, data, step, rank, size):
    part = slice(ROWS * rank // size, ROWS * (rank + 1) // size)
    model.zero_grad()
    torch.nn.functional.cross_entropy(model(data["input"][step][part]), data["target"][step][part]).backward()


def mean(tensor, size):
    dist.all_reduce(tensor)
    tensor.div_(size)


def post_local_sgd(data, rank, size):
    model = make_model(data)
    # PyTorch counts from 0 and averages after step `warmup_steps`: here a full period has passed then.
    averager = PeriodicModelAverager(period=SYNC_EVERY, warmup_steps=WARMUP_STEPS + SYNC_EVERY - 1)
    optimizer = PostLocalSGDOptimizer(torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9), averager)
    for step in range(STEPS):
        gradients(model, data, step, rank, size)
        if step < WARMUP_STEPS:
            for parameter in model.parameters():
                mean(parameter.grad, size)
        optimizer.step()
        yield model


def diloco(data, rank, size):
    model = make_model(data)
    inner = torch.optim.AdamW(model.parameters(), lr=LR / 16, betas=(0.875, 0.96875), weight_decay=0.125)
    start = [parameter.detach().clone().requires_grad_() for parameter in model.parameters()]
    outer = torch.optim.SGD(start, lr=0.7, momentum=0.9, nesterov=True)
    for step in range(STEPS):
        gradients(model, data, step, rank, size)
        inner.step()
        if (step + 1) % SYNC_EVERY == 0:
            for at_start, parameter in zip(start, model.parameters()):
                at_start.grad = at_start.detach() - parameter.detach()
                mean(at_start.grad, size)
            outer.step()
            for at_start, parameter in zip(start, model.parameters()):
                parameter.data.copy_(at_start.detach())
        yield model


def run(rank, size, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store-{size}", rank=rank, world_size=size)
    data, found = make_data(), {}
    for case, steps in (("local-sgd", post_local_sgd), ("diloco", diloco)):
        for step, model in enumerate(steps(data, rank, size), 1):
            for name, parameter in named(model) if step in KEPT else ():
                found[f"{case}.{size}.{rank}.{step}.{name}"] = parameter.detach().clone()
    save_file(found, f"{folder}/{size}-{rank}.safetensors")
    dist.destroy_process_group()


def main():
    tensors = make_data()
    with tempfile.TemporaryDirectory() as folder:
        for size in (2, 3):
            mp.spawn(run, args=(size, folder), nprocs=size)
            for rank in range(size):
                tensors.update(load_file(f"{folder}/{size}-{rank}.safetensors"))
    save_file(tensors, pathlib.Path(__file__).parent.parent / "fixtures" / "local_sgd.safetensors")


if __name__ == "__main__":
    main()
