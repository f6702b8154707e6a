"""Runs training steps of PyTorch on request, for `run`: torch_step.py WORKLOAD fp32|bf16 FORM CLOCK

The models, optimizers, commands and answers are those of main.cpp, written as an experienced user would: fused
optimizer, gradients set to none. FORM is a list of words joined by commas: eager, compile or max-autotune (of
torch.compile, forward with the loss, which compiles backward too); channels_last for images, otherwise NCHW; bmm for
attention by GEMMs, otherwise scaled_dot_product_attention. CLOCK is wall or cpu.
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


class Resnet(nn.Module):
    def __init__(self, blocks_a_stage, widths, imagenet_stem=False):
        super().__init__()
        channels = widths[0]
        stem = nn.Conv2d(3, channels, 7, 2, 3, bias=False) if imagenet_stem else nn.Conv2d(3, channels, 3, 1, 1, bias=False)
        self.stem = nn.Sequential(stem, nn.BatchNorm2d(channels), nn.ReLU(inplace=True))
        if imagenet_stem:
            self.stem.append(nn.MaxPool2d(3, 2, 1))
        blocks = []
        for stage, out in enumerate(widths):
            for i in range(blocks_a_stage):
                blocks.append(Block(channels, out, 2 if stage and i == 0 else 1))
                channels = out
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, 10)

    def forward(self, x):
        return self.fc(torch.flatten(self.pool(self.blocks(self.stem(x))), 1))


class Attention(nn.Module):
    def __init__(self, width, heads, context, by_bmm, causal):
        super().__init__()
        self.heads, self.by_bmm, self.causal = heads, by_bmm, causal
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        mask = torch.full((context, context), -math.inf).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        batch, tokens, width = x.shape
        head = width // self.heads
        q, k, v = self.c_attn(x).view(batch, tokens, 3, self.heads, head).permute(2, 0, 3, 1, 4).unbind(0)
        if not self.by_bmm:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        else:
            q, k, v = q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)
            scores = torch.bmm(q * head**-0.5, k.transpose(1, 2))
            if self.causal:
                scores += self.mask.to(scores.dtype)
            y = torch.bmm(scores.softmax(-1), v).view(batch, self.heads, tokens, head)
        return self.c_proj(y.transpose(1, 2).reshape(batch, tokens, width))


class Layer(nn.Module):
    def __init__(self, width, heads, context, by_bmm, causal=True, gelu="tanh", eps=1e-5):
        super().__init__()
        self.gelu = gelu
        self.ln_1 = nn.LayerNorm(width, eps)
        self.attn = Attention(width, heads, context, by_bmm, causal)
        self.ln_2 = nn.LayerNorm(width, eps)
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_proj = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.c_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate=self.gelu))


class Gpt(nn.Module):
    def __init__(self, by_bmm, layers, width, heads, context, vocabulary):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(context, width)
        self.layers = nn.ModuleList(Layer(width, heads, context, by_bmm) for _ in range(layers))
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


class Vit(nn.Module):
    def __init__(self, by_bmm, side=32, patch=4, width=192, depth=12, heads=3):
        super().__init__()
        tokens = (side // patch) ** 2 + 1
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, tokens, width) * 0.02)
        self.layers = nn.ModuleList(Layer(width, heads, tokens, by_bmm, causal=False, gelu="none", eps=1e-6)
                                    for _ in range(depth))
        self.norm = nn.LayerNorm(width, 1e-6)
        self.head = nn.Linear(width, 10)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls.expand(x.shape[0], -1, -1), x), 1) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)[:, 0])


def make_mlp(hidden):
    layers, channels = [nn.Flatten()], 784
    for out in hidden:
        layers += [nn.Linear(channels, out), nn.ReLU()]
        channels = out
    return nn.Sequential(*layers, nn.Linear(channels, 10))


WORKLOADS = {  # name: model, batches
    "resnet20": (lambda bmm: Resnet(3, (16, 32, 64)), (128, 3, 32, 32)),
    "wide-resnet": (lambda bmm: Resnet(2, (64, 128, 256)), (128, 3, 32, 32)),
    "resnet18": (lambda bmm: Resnet(2, (64, 128, 256, 512), imagenet_stem=True), (128, 3, 64, 64)),
    "vit": (Vit, (128, 3, 32, 32)),
    "gpt": (lambda bmm: Gpt(bmm, 6, 256, 8, 128, 65), (16, 128)),
    "gpt2": (lambda bmm: Gpt(bmm, 12, 768, 12, 1024, 50257), (1, 1024)),
    "mlp": (lambda bmm: make_mlp((256, 128)), (64, 1, 28, 28)),
    "mlp20": (lambda bmm: make_mlp((256,) * 19), (64, 1, 28, 28)),
}


def make_workload(name, by_bmm):
    generator = torch.Generator().manual_seed(1)
    make_model, sizes = WORKLOADS[name]
    model = make_model(by_bmm)
    if len(sizes) == 4:
        classes = 10
        inputs = [torch.randn(sizes, generator=generator) for _ in range(4)]
        targets = [torch.randint(classes, sizes[:1], generator=generator) for _ in range(4)]
    else:
        classes = model.wte.num_embeddings
        inputs, targets = ([torch.randint(classes, sizes, generator=generator) for _ in range(4)] for _ in range(2))
    if "resnet" in name:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, fused=True)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
    return model, optimizer, inputs, targets


def main():
    name, precision, form, clock_name = sys.argv[1:]
    form = form.split(",")
    clock = time.process_time if clock_name == "cpu" else time.perf_counter
    start_bytes = peak_bytes()
    torch.manual_seed(1)
    model, optimizer, inputs, targets = make_workload(name, "bmm" in form)
    layout = torch.channels_last if "channels_last" in form else torch.contiguous_format
    model.to(memory_format=layout)
    if "ddp" in form:
        torch.distributed.init_process_group("gloo")
        rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
        inputs, targets = ([tensor.chunk(size)[rank] for tensor in all] for all in (inputs, targets))
    step = 0

    def loss_of(x, target):
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            return F.cross_entropy(model(x).flatten(0, -2), target.flatten())

    if "compile" in form:
        loss_of = torch.compile(loss_of)
    elif "max-autotune" in form:
        loss_of = torch.compile(loss_of, mode="max-autotune")

    def take_step(x, target):
        optimizer.zero_grad(set_to_none=True)
        if x.dim() == 4:
            x = x.contiguous(memory_format=layout)
        loss = loss_of(x, target)
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


if __name__ == "__main__":
    main()
