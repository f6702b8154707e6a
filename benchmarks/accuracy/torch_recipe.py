#!/usr/bin/env python3
"""Trains a recipe with the model airbench in PyTorch, written as an experienced user would.

    torch_recipe.py PROGRAM [--seeds 3] [--form eager|compile] [--precision bf16|fp32] RECIPE [OVERRIDE ...]

For example: torch_recipe.py build/release/gallop --form compile cifar10-airbench data.path=/data/cifar10-jpeg Reads the
recipe by `PROGRAM train RECIPE --show-config`, and rejects options that this program does not support. Network,
whitening, augmentation, optimizer, schedule, loss and test views are those of the recipe. All images are decoded once
and kept in memory as bytes; each epoch is augmented as a whole by tensor operators, as in the speed records of
CIFAR-10. Autocast, channels_last and the fused optimizer are on. Needs the packages of requirements.txt.

Prints one JSON object per seed and one with the extremes, as run.py does. training_seconds are measured from the
decoded images to the last update, including whitening, without evaluation and without compilation, which is
compile_seconds.
"""

import argparse
import copy
import fnmatch
import gzip
import json
import math
import os
import subprocess
import time

import numpy
import torch
import torch.nn.functional as F
import yaml
from PIL import Image
from torch import nn

WHITENED_PATCHES = 1 << 20
# Options that do not affect the result, or are set on the command line of this program.
IGNORED = ("data.path data.threads data.prefetch data.in_memory data.eval_batch train.device train.compile train.precision "
           "train.channels_last train.threads train.seed train.evaluate_every train.checkpoint_every evaluate.tta_in_training").split()


class Recipe:
    def __init__(self, program, words):
        text = subprocess.run([program, "train", *words, "--show-config"], check=True, capture_output=True, text=True).stdout
        self.values, self.unread, parts = yaml.safe_load(text), set(), []
        for line in text.splitlines():
            key, _, rest = line.partition(":")
            indent = (len(key) - len(key.lstrip())) // 2
            parts = parts[:indent] + [key.strip()]
            if rest.strip() and not rest.rstrip().endswith("# default"):
                self.unread.add(".".join(parts))
        self.unread -= set(IGNORED)

    def __call__(self, name):
        self.unread.discard(name)
        value = self.values
        for part in name.split("."):
            value = value[part]
        return value

    def number(self, name):
        return float(self(name))  # YAML 1.1 parses 5e-4 as a string.

    def require(self, name, *values):
        if self(name) not in values:
            raise SystemExit(f"{name} is {self(name)}; this program knows {', '.join(map(str, values))}")


def read_idx(path):
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        data = file.read()
    sizes = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(data[3])]
    return torch.from_numpy(numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * len(sizes)).reshape(sizes).copy())


def read_part(name, path, part):
    """Images as bytes, [samples, channels, height, width], and their classes."""
    if name == "folder":
        folder = os.path.join(path, part)
        files = [(os.path.join(folder, kind, file), label) for label, kind in enumerate(sorted(os.listdir(folder)))
                 for file in sorted(os.listdir(os.path.join(folder, kind)))]
        images = numpy.stack([numpy.asarray(Image.open(file).convert("RGB")) for file, _ in files])
        return torch.from_numpy(images).permute(0, 3, 1, 2).contiguous(), torch.tensor([label for _, label in files])
    prefix = os.path.join(path or f"/usr/share/datasets/{name}", "train" if part == "train" else "t10k")

    def read(kind):
        return read_idx(next(file for file in (prefix + kind, prefix + kind + ".gz") if os.path.exists(file)))

    return read("-images-idx3-ubyte").unsqueeze(1), read("-labels-idx1-ubyte").long()


class Whitening(nn.Module):
    def __init__(self, channels, patch, eps):
        super().__init__()
        self.patch, self.eps = patch, eps
        directions = channels * patch * patch
        self.register_buffer("weight", torch.empty(2 * directions, channels, patch, patch))
        self.bias = nn.Parameter(torch.zeros(2 * directions))

    def initialize_from(self, images):
        patches = F.unfold(images, self.patch).transpose(0, 1).flatten(1).double()
        variances, directions = torch.linalg.eigh(patches @ patches.t() / patches.size(1))
        scaled = directions.t().flip(0) / (variances.flip(0).unsqueeze(1) + self.eps).sqrt()
        self.weight.copy_(torch.cat([scaled, -scaled]).view(self.weight.shape))

    def forward(self, x):
        return F.conv2d(x, self.weight, self.bias)


def convolution(channels, out):
    conv = nn.Conv2d(channels, out, 3, padding=1, bias=False)
    nn.init.uniform_(conv.weight, -(9 * channels) ** -0.5, (9 * channels) ** -0.5)
    nn.init.dirac_(conv.weight[:channels])
    return conv


class Stage(nn.Module):
    def __init__(self, channels, out, momentum):
        super().__init__()
        self.conv1, self.bn1 = convolution(channels, out), nn.BatchNorm2d(out, momentum=momentum)
        self.conv2, self.bn2 = convolution(out, out), nn.BatchNorm2d(out, momentum=momentum)
        self.bn1.weight.requires_grad_(False)
        self.bn2.weight.requires_grad_(False)

    def forward(self, x, activation):
        x = activation(self.bn1(F.max_pool2d(self.conv1(x), 2)))
        return activation(self.bn2(self.conv2(x)))


class Airbench(nn.Module):
    def __init__(self, recipe, channels, classes):
        super().__init__()
        recipe.require("model.name", "airbench")
        recipe.require("model.conv_init", "dirac")
        self.activation = {"gelu": F.gelu, "silu": F.silu, "relu": F.relu}[recipe("model.activation")]
        self.logit_scale, momentum = recipe.number("model.logit_scale"), recipe.number("model.batch_norm_momentum")
        self.whiten = Whitening(channels, recipe("model.patch"), recipe.number("model.whitening_eps"))
        channels = len(self.whiten.bias)
        self.stages = []
        for number, out in enumerate(recipe("model.widths"), 1):
            self.stages.append(Stage(channels, out, momentum))
            self.add_module(f"layer{number}", self.stages[-1])
            channels = out
        self.head = nn.Linear(channels, classes, bias=False)

    def forward(self, x):
        x = self.activation(self.whiten(x))
        for number in range(1, len(self.stages) + 1):
            x = getattr(self, f"layer{number}")(x, self.activation)
        # Not amax(), whose compiled backward pass in bf16 on a CPU is NaN (PyTorch 2.11).
        return self.head(F.adaptive_max_pool2d(x, 1).flatten(1)) * self.logit_scale


def name_and_options(entry):
    """Name and options of a list entry in a recipe: `flip`, or `{flip: {mode: random}}`."""
    (name, options), = entry.items() if isinstance(entry, dict) else [(entry, {})]
    return name, options


class Augmentation:
    """Augments a whole epoch of normalized images."""

    def __init__(self, recipe):
        self.padding, self.flips, self.coin = 0, None, None
        for entry in recipe("data.augment"):
            name, options = name_and_options(entry)
            if name == "flip":
                self.flips = options.get("mode", "random")
            elif name == "crop" and options.get("mode") == "reflect":
                self.padding = options.get("padding", 4)
            else:
                raise SystemExit(f"data.augment: this program does not know {entry}")

    def __call__(self, images, epoch):
        if self.flips:
            if self.coin is None or self.flips == "random":
                self.coin = torch.rand(len(images)) < 0.5
            flipped = self.coin if self.flips == "random" or epoch % 2 == 0 else ~self.coin
            images = torch.where(flipped.view(-1, 1, 1, 1), images.flip(3), images)
        if self.padding:
            height, width = images.shape[2:]
            padded = F.pad(images, [self.padding] * 4, "reflect")
            moves = torch.randint(0, 2 * self.padding + 1, (2, len(images)))
            out = torch.empty_like(images)
            for y in range(2 * self.padding + 1):
                for x in range(2 * self.padding + 1):
                    chosen = (moves[0] == y) & (moves[1] == x)
                    out[chosen] = padded[chosen, :, y:y + height, x:x + width]
            images = out
        return images


class Lookahead:
    """Lookahead: resets the fast weights to the slow ones every k updates. No effect if the recipe has no wrapper."""

    def __init__(self, recipe, model, steps):
        self.k, self.updates, self.steps = 0, 0, steps
        for entry in recipe("optimizer.wrappers"):
            name, options = name_and_options(entry)
            if name != "lookahead" or self.k:
                raise SystemExit(f"optimizer.wrappers: this program does not know {entry}")
            unknown = set(options) - {"k", "alpha", "power"}
            if unknown:
                raise SystemExit(f"optimizer.wrappers: this program does not know {', '.join(sorted(unknown))}")
            self.k, self.alpha, self.power = options.get("k", 5), float(options.get("alpha", 0.5)), float(options.get("power", 0))
        self.fast = [parameter.detach() for parameter in model.parameters() if parameter.requires_grad]
        self.slow = [tensor.clone() for tensor in self.fast] if self.k else []

    def step(self):
        self.updates += 1
        if self.k and self.updates % self.k == 0:
            share = 1 - (1 - self.alpha) * (self.updates / self.steps) ** self.power
            torch._foreach_lerp_(self.slow, self.fast, share)
            torch._foreach_copy_(self.fast, self.slow)

    def end(self):
        if self.k:
            torch._foreach_copy_(self.fast, self.slow)


def make_optimizer(recipe, model):
    recipe.require("optimizer.name", "sgd")
    lr, decay = recipe.number("optimizer.lr"), recipe.number("optimizer.weight_decay")
    groups = []
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        group = {"params": [parameter], "lr": lr, "weight_decay": decay}
        for rule in recipe("optimizer.groups"):
            if fnmatch.fnmatchcase(name, rule["match"]):
                group["lr"] = lr * float(rule.get("lr_factor", 1))
                group["weight_decay"] = float(rule.get("weight_decay", decay))
        groups.append(group)
    return torch.optim.SGD(groups, momentum=recipe.number("optimizer.momentum"), nesterov=recipe("optimizer.nesterov"), fused=True)


def make_schedule(recipe, optimizer, samples, steps_an_epoch):
    recipe.require("schedule.name", "one-cycle")
    recipe.require("schedule.shape", "linear")
    recipe.require("schedule.phases", 2)
    warmup, start, final = recipe.number("schedule.warmup"), recipe.number("schedule.start"), recipe.number("schedule.final")

    batch, total = recipe("data.batch_size"), samples * recipe.number("train.epochs")

    def factor(step):
        epoch, steps = divmod(step, steps_an_epoch)
        progress = min(1, (epoch * samples + steps * batch) / total)
        if progress < warmup:
            return start + (1 - start) * progress / warmup
        return 1 + (final - 1) * (progress - warmup) / (1 - warmup)

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def views(images, names, pixels):
    """Views of the images for test-time augmentation, with weights that sum to 1."""
    moved = [(1.0, images)]
    if "translate" in names:
        height, width = images.shape[2:]
        padded = F.pad(images, [pixels] * 4, "reflect")
        ends = [padded[:, :, move:move + height, move:move + width] for move in (0, 2 * pixels)]
        moved = [(0.5, images), (0.25, ends[0]), (0.25, ends[1])]
    if "flip" in names:
        moved = [(weight / 2, view) for weight, image in moved for view in (image, image.flip(3))]
    return moved


class Trainer:
    def __init__(self, recipe, form, precision):
        recipe.require("data.normalize", "data")
        recipe.require("data.name", "folder", "fashion-mnist", "mnist")
        self.recipe, self.compiles, self.precision = recipe, form == "compile", precision
        self.views = recipe("evaluate.tta"), recipe("evaluate.tta_pixels")
        source = recipe("data.name"), recipe("data.path")
        begin = time.monotonic()
        self.train_images, self.train_labels = read_part(*source, "train")
        self.test_images, self.test_labels = read_part(*source, "test")
        self.reading_seconds = time.monotonic() - begin

    def normalized(self, images):
        return ((images.float() / 255 - self.mean) / self.std).to(memory_format=torch.channels_last)

    def autocast(self):
        return torch.autocast("cpu", torch.bfloat16, enabled=self.precision == "bf16")

    def logits(self, model, images):
        with self.autocast():
            return model(images)

    def compile(self, model, loss_of, sizes):
        """Compiles for each batch size, without changing weights and statistics."""
        before = copy.deepcopy(model.state_dict())
        channels, height, width = self.train_images.shape[1:]
        for size in sizes:
            images = torch.randn(size, channels, height, width).to(memory_format=torch.channels_last)
            loss_of(images, torch.zeros(size, dtype=torch.long)).backward()
        model.zero_grad(set_to_none=True)
        model.load_state_dict(before)

    def accuracy(self, model):
        model.eval()
        right = {"views": 0, "one view": 0}
        with torch.no_grad():
            for images, labels in zip(self.test_images.split(1000), self.test_labels.split(1000)):
                looks = [(weight, self.logits(model, view.contiguous(memory_format=torch.channels_last)).float())
                         for weight, view in views(self.normalized(images), *self.views)]
                right["views"] += (sum(weight * logits for weight, logits in looks).argmax(1) == labels).sum().item()
                right["one view"] += (looks[0][1].argmax(1) == labels).sum().item()
        return {name: count / len(self.test_labels) for name, count in right.items()}

    def train(self, seed):
        recipe = self.recipe
        torch.manual_seed(seed)
        batch, smoothing = recipe("data.batch_size"), recipe.number("train.label_smoothing")
        samples, channels = self.train_images.shape[:2]
        steps_an_epoch = -(-samples // batch)
        steps = math.ceil(recipe.number("train.epochs") * steps_an_epoch - 1e-9)
        begin = time.monotonic()
        scaled = self.train_images.float() / 255
        self.mean, self.std = (moment((0, 2, 3), keepdim=True) for moment in (scaled.mean, scaled.std))
        images = self.normalized(self.train_images)
        model = Airbench(recipe, channels, int(self.train_labels.max()) + 1)
        model.whiten.initialize_from(images[:WHITENED_PATCHES // (images.shape[2] * images.shape[3])])
        model.to(memory_format=torch.channels_last)
        optimizer = make_optimizer(recipe, model)
        schedule, augment = make_schedule(recipe, optimizer, samples, steps_an_epoch), Augmentation(recipe)
        lookahead = Lookahead(recipe, model, steps)
        if recipe.unread:
            raise SystemExit(f"this program does not know {', '.join(sorted(recipe.unread))}")

        def loss_of(images, labels):
            return F.cross_entropy(self.logits(model, images).float(), labels, label_smoothing=smoothing)

        compile_begin = time.monotonic()
        if self.compiles:
            loss_of = torch.compile(loss_of, dynamic=False)
            self.compile(model, loss_of, {batch, samples % batch or batch})
        compile_seconds = time.monotonic() - compile_begin
        step = 0
        while step < steps:
            seen = augment(images, step // steps_an_epoch)
            for chosen in torch.randperm(samples).split(batch)[:steps - step]:
                loss = loss_of(seen[chosen].contiguous(memory_format=torch.channels_last), self.train_labels[chosen])
                loss.backward()
                optimizer.step()
                lookahead.step()
                optimizer.zero_grad(set_to_none=True)
                schedule.step()
                step += 1
        lookahead.end()
        training_seconds = time.monotonic() - begin - compile_seconds
        accuracy = self.accuracy(model)
        return {"seed": seed, "accuracy": accuracy["views"], "accuracy_of_one_view": accuracy["one view"],
                "training_seconds": round(training_seconds, 1), "compile_seconds": round(compile_seconds, 1),
                "reading_seconds": round(self.reading_seconds, 1), "steps": steps}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--form", choices=["eager", "compile"], default="eager")
    parser.add_argument("--precision", choices=["bf16", "fp32"], default="bf16")
    parser.add_argument("recipe", nargs="+")
    arguments = parser.parse_args()
    trainer = Trainer(Recipe(arguments.program, arguments.recipe), arguments.form, arguments.precision)
    results = []
    for seed in range(1, arguments.seeds + 1):
        results.append(trainer.train(seed))
        print(json.dumps(results[-1]), flush=True)
    accuracies = [result["accuracy"] for result in results]
    print(json.dumps({"recipe": arguments.recipe, "form": arguments.form, "precision": arguments.precision,
                      "lowest_accuracy": min(accuracies), "mean_accuracy": sum(accuracies) / len(accuracies),
                      "longest_training_seconds": max(result["training_seconds"] for result in results)}))


if __name__ == "__main__":
    main()
