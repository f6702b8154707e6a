"""PyTorch side of `run`: torch_steps.py WORKLOAD [FORM] reads numbers of steps, runs them and prints the seconds.

FORM: empty, deterministic or compile. The models are those of benchmarks/step/torch_step.py.
"""

import os
import sys
import time

import torch
import torch.nn.functional as F

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "step"))
from torch_step import Gpt, Resnet

WARM_UP_STEPS = 20


def gpt2():
    model = Gpt(False, 12, 768, 12, 1024, 65).cuda()
    inputs, targets = ([torch.randint(65, (16, 1024), device="cuda") for _ in range(4)] for _ in range(2))
    return model, torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, fused=True), inputs, targets


def resnet20():
    model = Resnet(3, (16, 32, 64))
    model.stem[0] = torch.nn.Conv2d(1, 16, 3, padding=1, bias=False)
    model = model.cuda().to(memory_format=torch.channels_last)
    inputs = [torch.randn(512, 1, 28, 28, device="cuda").to(memory_format=torch.channels_last) for _ in range(4)]
    targets = [torch.randint(10, (512,), device="cuda") for _ in range(4)]
    return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True), inputs, targets


def main():
    workload, form = sys.argv[1], (sys.argv[2:] or [""])[0]
    torch.manual_seed(1)
    if form == "deterministic":
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
        torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = False
    model, optimizer, inputs, targets = {"gpt2": gpt2, "resnet20": resnet20}[workload]()

    def loss_of(x, target):
        with torch.autocast("cuda", torch.bfloat16):
            return F.cross_entropy(model(x).flatten(0, -2), target.flatten())

    loss_of = torch.compile(loss_of) if form == "compile" else loss_of

    def take_steps(count):
        for step in range(count):
            loss_of(inputs[step % 4], targets[step % 4]).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()

    take_steps(WARM_UP_STEPS)
    for line in sys.stdin:
        begin = time.perf_counter()
        take_steps(int(line))
        print(time.perf_counter() - begin, flush=True)


main()
