"""Creates tests/fixtures/models.json: outputs and gradients of models from their Python implementations.

Run with Python, torch==2.11.0, torchvision==0.26.0, timm==1.0.31 and transformers==5.23.0: make_models.py
tests/fixtures

Weights, inputs and labels are derived from a hash of names and positions that deterministic_weights.h also computes, so
only results are stored, computed in float64. Of each gradient and buffer: its norm, its products with PROBES vectors of
random signs and its first FIRST elements. If two tensors differ by e, the mean square of the differences of such
products is an unbiased estimate of |e|^2.
"""

import json
import math
import pathlib
import sys

import numpy as np
import timm
import torch
import transformers
from torch import nn
from torchvision import models as vision
from torchvision.models.resnet import BasicBlock

PROBES = 4
FIRST = 3
MASK = (1 << 64) - 1


def name_hash(name):
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def hashes(name, count):
    """SplitMix64 of the name's hash plus the position."""
    with np.errstate(over="ignore"):
        z = np.uint64(name_hash(name)) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(
            0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def uniform(name, count):
    """Values in [-1, 1), with 24 bits."""
    return (hashes(name, count) >> np.uint64(40)).astype(np.float64) * 2.0**-23 - 1


def signs(name, count):
    return np.where(hashes(name, count) >> np.uint64(63), -1.0, 1.0)


def weight(name, shape):
    """Matrices and filters: variance 1 / fan_in. Others: near the values with which their layer is an identity."""
    u = uniform(name, math.prod(shape))
    if len(shape) in (2, 4):
        u = u * math.sqrt(3.0 / (math.prod(shape) // shape[0]))
    elif name.endswith("running_var") or (name.endswith(".weight") and len(shape) == 1):
        u = 1 + 0.2 * u
    else:
        u = 0.2 * u
    return torch.from_numpy(u.astype(np.float32).astype(np.float64).reshape(shape))


class Case:
    """A model, and the names and layouts of its tensors in Gallop."""

    def __init__(self, name, kind, options, task, module, rename=lambda n: n, layout=None):
        self.name, self.kind, self.options, self.task = name, kind, options, task
        self.module = module.double()
        self.rename = rename
        self.layout = layout or (lambda n, t: t)  # Its own inverse on gradients is `unlayout`.
        self.unlayout = self.layout

    def further_loss(self):
        """What the last forward pass adds to the loss."""
        return 0

    def named(self, tensors):
        return {self.rename(n): t for n, t in tensors}

    def load(self):
        with torch.no_grad():
            for name, tensor in self.module.named_parameters():
                ours = self.rename(name)
                shape = self.layout(ours, tensor).shape
                tensor.copy_(self.unlayout(ours, weight(ours, tuple(shape))))
            for name, tensor in self.module.named_buffers():
                if tensor.is_floating_point() and "running" in name:
                    tensor.copy_(weight(self.rename(name), tuple(tensor.shape)))

    def run(self, training):
        self.load()
        self.module.train(training)
        self.module.zero_grad(set_to_none=True)
        batch, classes = self.task["batch"], self.task["classes"]
        if self.task["kind"] == "text":
            count = batch * self.task["context"]
            draw = lambda n: torch.from_numpy((hashes(n, count) % np.uint64(classes)).astype(np.int64))
            logits = self.module(draw("input").view(batch, -1))
            logits = getattr(logits, "logits", logits).flatten(0, 1)
            labels = draw("labels")
        else:
            shape = [batch] + [self.task[k] for k in ("channels", "height", "width")]
            logits = self.module(torch.from_numpy(uniform("input", math.prod(shape)).reshape(shape)))
            labels = torch.from_numpy((hashes("labels", batch) % np.uint64(classes)).astype(np.int64))
        loss = nn.functional.cross_entropy(logits, labels) + self.further_loss()
        loss.backward()
        gradients = {self.rename(n): self.layout(self.rename(n), p.grad)
                     for n, p in self.module.named_parameters() if p.requires_grad}
        result = {"loss": number(loss.item()), "logits": summary("logits", logits.detach()),
                  "gradients": {n: summary(n, g) for n, g in gradients.items()}}
        if training:
            result["buffers"] = {self.rename(n): summary(self.rename(n), b.double())
                                 for n, b in self.module.named_buffers()
                                 if "running" in n or "num_batches" in n}
            result["buffers"] |= {self.rename(n): summary(self.rename(n), p.detach())
                                  for n, p in self.module.named_parameters() if not p.requires_grad}
        return result

    def fixture(self):
        return {"name": self.name, "model": self.kind, "options": self.options, "task": self.task,
                "train": self.run(True), "eval": self.run(False)}


def number(value):
    return float(f"{value:.13g}")


def summary(name, tensor):
    flat = tensor.contiguous().flatten().numpy()
    probes = [number(float(flat @ signs(f"probe{i}/{name}", flat.size))) for i in range(PROBES)]
    return [number(float(np.linalg.norm(flat)))] + probes + [number(v) for v in flat[:FIRST]]


def images(batch, height, width=None, channels=3, classes=10):
    return {"kind": "images", "batch": batch, "channels": channels, "height": height,
            "width": width or height, "classes": classes}


def text(batch, context, classes):
    return {"kind": "text", "batch": batch, "context": context, "classes": classes}


class PadShortcut(nn.Module):
    """Option A of He et al. 2016: every second pixel, zeros for the missing channels."""

    def __init__(self, missing):
        super().__init__()
        self.missing = missing

    def forward(self, x):
        return nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 0, self.missing))


class PlainBlock(BasicBlock):
    def forward(self, x):
        return self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))))


class CifarResnet(nn.Module):
    """Section 4.2 of He et al. 2016 from torchvision's blocks."""

    def __init__(self, blocks, shortcut):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        block = PlainBlock if shortcut == "none" else BasicBlock
        channels = 16
        for stage, out in enumerate((16, 32, 64)):
            layers = []
            for i in range(blocks):
                stride = 2 if stage > 0 and i == 0 else 1
                downsample = None
                if channels != out and shortcut == "projection":
                    downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False),
                                               nn.BatchNorm2d(out))
                elif channels != out and shortcut == "pad":
                    downsample = PadShortcut(out - channels)
                layers.append(block(channels, out, stride, downsample))
                channels = out
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.mean((2, 3)))


def mlp_cases():
    for name, activation in (("relu", nn.ReLU), ("gelu", nn.GELU)):
        module = nn.Sequential(nn.Flatten(), nn.Linear(192, 32), activation(), nn.Linear(32, 16),
                               activation(), nn.Linear(16, 10))
        place = {"1": "0", "3": "1", "5": "2"}
        yield Case(f"mlp-{name}", "mlp", f"{{hidden: [32, 16], activation: {name}}}", images(8, 8),
                   module, lambda n: "layers." + place[n.split(".")[0]] + "." + n.split(".")[1])


def resnet_cases():
    for depth, blocks, shortcut in ((20, 3, "projection"), (20, 3, "pad"), (14, 2, "none")):
        yield Case(f"resnet{depth}-{shortcut}", "resnet", f"{{depth: {depth}, shortcut: {shortcut}}}",
                   images(4, 16, 12), CifarResnet(blocks, shortcut))
    for depth in (18, 34, 50):
        module = getattr(vision, f"resnet{depth}")(num_classes=10)
        yield Case(f"resnet{depth}", "resnet", f"{{depth: {depth}}}", images(4, 64), module)


class AirbenchStage(nn.Module):
    def __init__(self, channels, out):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, padding="same", bias=False)
        self.bn1 = nn.BatchNorm2d(out, momentum=0.4)
        self.conv2 = nn.Conv2d(out, out, 3, padding="same", bias=False)
        self.bn2 = nn.BatchNorm2d(out, momentum=0.4)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.conv1(x), 2)
        x = nn.functional.gelu(self.bn1(x))
        return nn.functional.gelu(self.bn2(self.conv2(x)))


class Airbench(nn.Module):
    """Jordan 2024, figure 1, with given values instead of whitened patches."""

    def __init__(self, widths):
        super().__init__()
        self.whiten = nn.Conv2d(3, 24, 2)
        channels = 24
        for i, width in enumerate(widths):
            setattr(self, f"layer{i + 1}", AirbenchStage(channels, width))
            channels = width
        self.stages = len(widths)
        self.head = nn.Linear(channels, 10, bias=False)
        for name, parameter in self.named_parameters():
            parameter.requires_grad = name != "whiten.weight" and not (
                "bn" in name and name.endswith("weight"))

    def forward(self, x):
        x = nn.functional.gelu(self.whiten(x))
        for i in range(self.stages):
            x = getattr(self, f"layer{i + 1}")(x)
        return self.head(nn.functional.adaptive_max_pool2d(x, 1).flatten(1)) / 9


def airbench_cases():
    yield Case("airbench", "airbench", "{widths: [16, 24]}", images(4, 16), Airbench([16, 24]))


def vit_cases():
    for pool in ("token", "mean"):
        module = timm.models.VisionTransformer(
            img_size=(16, 24), patch_size=4, embed_dim=48, depth=2, num_heads=3, num_classes=10,
            mlp_ratio=3, class_token=pool == "token", global_pool=pool if pool == "token" else "avg")
        yield Case(f"vit-{pool}", "vit",
                   f"{{patch: 4, width: 48, depth: 2, heads: 3, mlp_ratio: 3, pool: {pool}}}",
                   images(4, 16, 24), module)


def mixer_cases():
    module = timm.models.MlpMixer(img_size=(16, 24), patch_size=4, embed_dim=48, num_blocks=2, num_classes=10)
    yield Case("mlp-mixer", "mlp-mixer", "{patch: 4, width: 48, depth: 2}", images(4, 16, 24), module)


def gpt2_cases():
    def transposed(name, tensor):
        return tensor.t() if "h." in name and tensor.dim() == 2 else tensor

    for tied in (True, False):
        config = transformers.GPT2Config(
            vocab_size=65, n_positions=24, n_embd=48, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0,
            attn_pdrop=0, tie_word_embeddings=tied)
        yield Case(f"gpt2-{'tied' if tied else 'untied'}", "gpt",
                   f"{{layers: 2, width: 48, heads: 4, tied: {str(tied).lower()}}}", text(4, 24, 65),
                   transformers.GPT2LMHeadModel(config), layout=transposed)


def rotary_cases():
    """GPT-NeoX with sequential residuals is Gallop's GPT with rotary positions; it interleaves q, k, v by head."""
    heads, width = 4, 48
    names = (("gpt_neox.embed_in.", "transformer.wte."), ("gpt_neox.layers.", "transformer.h."),
             ("gpt_neox.final_layer_norm.", "transformer.ln_f."), ("embed_out.", "lm_head."),
             ("input_layernorm.", "ln_1."), ("post_attention_layernorm.", "ln_2."),
             ("attention.query_key_value.", "attn.c_attn."), ("attention.dense.", "attn.c_proj."),
             ("dense_h_to_4h.", "c_fc."), ("dense_4h_to_h.", "c_proj."))

    def rename(name):
        for theirs, ours in names:
            name = name.replace(theirs, ours)
        return name

    def by_part(name, tensor):  # [heads, 3, ...] of GPT-NeoX to [3, heads, ...] of Gallop
        if "c_attn" not in name:
            return tensor
        rest = tensor.shape[1:]
        return tensor.view(heads, 3, width // heads, *rest).transpose(0, 1).reshape(tensor.shape)

    def by_head(name, tensor):
        if "c_attn" not in name:
            return tensor
        rest = tensor.shape[1:]
        return tensor.view(3, heads, width // heads, *rest).transpose(0, 1).reshape(tensor.shape)

    for norm in ("layer", "rms"):
        config = transformers.GPTNeoXConfig(
            vocab_size=65, hidden_size=width, num_hidden_layers=2, num_attention_heads=heads,
            intermediate_size=4 * width, hidden_act="gelu", max_position_embeddings=24,
            use_parallel_residual=False, tie_word_embeddings=False,
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0,
                             "partial_rotary_factor": 1.0})
        module = transformers.GPTNeoXForCausalLM(config)
        if norm == "rms":
            for parent in list(module.modules()):
                for child_name, child in list(parent.named_children()):
                    if isinstance(child, nn.LayerNorm):
                        setattr(parent, child_name, nn.RMSNorm(width, eps=1e-5))
        case = Case(f"gpt-rotary-{norm}", "gpt",
                    f"{{layers: 2, width: 48, heads: 4, tied: false, positions: rotary, norm: {norm}, "
                    "activation: gelu}", text(4, 24, 65), module, rename, by_part)
        case.unlayout = by_head
        yield case


def main():
    torch.manual_seed(0)
    folder = pathlib.Path(sys.argv[1])
    cases = [*mlp_cases(), *resnet_cases(), *airbench_cases(), *vit_cases(), *mixer_cases(), *gpt2_cases(), *rotary_cases()]
    lines = ",\n".join(json.dumps(case.fixture(), separators=(",", ":")) for case in cases)
    path = folder / "models.json"
    path.write_text(f"[\n{lines}\n]\n")
    print(f"{path}: {len(cases)} models, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
