"""Training steps of PyTorch eager on demand, for run: torch_step.py WORKLOAD fp32|bf16 ATTENTION CLOCK

The same models, optimizers, commands and answers as main.cpp, written as a careful user would:
fused optimizer, channels_last for images, gradients set to none. ATTENTION is sdpa or bmm, CLOCK wall or cpu.
"""

import json
import math
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


def peak_bytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


class Block(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False),
                                            nn.BatchNorm2d(out))

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += shortcut
        return self.relu(y)


class Resnet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16),
                                  nn.ReLU(inplace=True))
        blocks, channels = [], 16
        for stage, out in enumerate((16, 32, 64)):
            for i in range(3):
                blocks.append(Block(channels, out, 2 if stage and i == 0 else 1))
                channels = out
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        return self.fc(torch.flatten(self.pool(self.blocks(self.stem(x))), 1))


class Attention(nn.Module):
    def __init__(self, width, heads, context, form):
        super().__init__()
        self.heads, self.form = heads, form
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        mask = torch.full((context, context), -math.inf).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        batch, tokens, width = x.shape
        head = width // self.heads
        q, k, v = self.c_attn(x).view(batch, tokens, 3, self.heads, head).permute(2, 0, 3, 1, 4).unbind(0)
        if self.form == "sdpa":
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            q, k, v = q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)
            scores = torch.bmm(q * head**-0.5, k.transpose(1, 2))
            scores += self.mask.to(scores.dtype)
            y = torch.bmm(scores.softmax(-1), v).view(batch, self.heads, tokens, head)
        return self.c_proj(y.transpose(1, 2).reshape(batch, tokens, width))


class Layer(nn.Module):
    def __init__(self, width, heads, context, form):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads, context, form)
        self.ln_2 = nn.LayerNorm(width)
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_proj = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.c_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, form, layers=6, width=256, heads=8, context=128, vocabulary=65):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(context, width)
        self.layers = nn.ModuleList(Layer(width, heads, context, form) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)
        self.lm_head.weight = self.wte.weight

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight[:tokens.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.ln_f(x))


def make_workload(name, form):
    generator = torch.Generator().manual_seed(1)
    if name == "resnet20":
        model = Resnet20().to(memory_format=torch.channels_last)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, fused=True)
        inputs = [torch.randn(128, 3, 32, 32, generator=generator) for _ in range(4)]
        targets = [torch.randint(10, (128,), generator=generator) for _ in range(4)]
        return model, optimizer, inputs, targets, torch.channels_last
    if name == "gpt":
        model = Gpt(form)
        inputs = [torch.randint(65, (16, 128), generator=generator) for _ in range(4)]
        targets = [torch.randint(65, (16, 128), generator=generator) for _ in range(4)]
    elif name == "mlp":
        model = nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128),
                              nn.ReLU(), nn.Linear(128, 10))
        inputs = [torch.randn(64, 1, 28, 28, generator=generator) for _ in range(4)]
        targets = [torch.randint(10, (64,), generator=generator) for _ in range(4)]
    else:
        sys.exit(f"no workload named '{name}'; it is resnet20, gpt or mlp")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
    return model, optimizer, inputs, targets, torch.contiguous_format


def main():
    name, precision, form, clock_name = sys.argv[1:]
    clock = time.process_time if clock_name == "cpu" else time.perf_counter
    start_bytes = peak_bytes()
    torch.manual_seed(1)
    model, optimizer, inputs, targets, layout = make_workload(name, form)
    step = 0

    def take_step(x, target):
        optimizer.zero_grad(set_to_none=True)
        if x.dim() == 4:
            x = x.contiguous(memory_format=layout)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = F.cross_entropy(model(x).flatten(0, -2), target.flatten())
        loss.backward()
        optimizer.step()
        return loss.item()

    for line in sys.stdin:
        command, *rest = line.split()
        if command == "memory":
            answer = {"peak_bytes": peak_bytes(), "start_bytes": start_bytes}
        else:
            milliseconds, loss = [], 0.0
            for _ in range(int(rest[0])):
                begin = clock()
                loss = take_step(inputs[step % 4], targets[step % 4])
                milliseconds.append(1000 * (clock() - begin))
                step += 1
            answer = {"ms": milliseconds, "loss": loss}
        print(json.dumps(answer), flush=True)


main()
