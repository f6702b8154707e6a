"""Creates tests/fixtures/experts.json: a GPT-2 whose feed-forward layers are mixtures of experts.

Run with the packages of make_models.py: make_experts.py tests/fixtures

The case "mixtral" has the block and the auxiliary loss of transformers' Mixtral, which computes the router in float32.
The others have the loops below, in float64: each token and each of its experts, one after the other. For the options
of "mixtral" both give the same output, which this program checks. As in make_models.py, only digests of results are
stored.
"""

import json
import math
import pathlib
import sys

import torch
import transformers
from torch import nn
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock, load_balancing_loss_func

from make_models import Case, number, text

WIDTH, INNER, LAYERS, BATCH, CONTEXT = 48, 128, 2, 4, 24


class Experts(nn.Module):
    def __init__(self, num_experts, top_k=2, capacity_factor=0, load_balancing="none", aux_loss_coef=0.01,
                 z_loss_coef=0, bias_update_rate=0.001, activation="swiglu"):
        super().__init__()
        self.gate = nn.Module()
        self.gate.weight = nn.Parameter(torch.empty(num_experts, WIDTH))
        self.experts = nn.Module()
        inner, outer = (2 * INNER, INNER) if activation == "swiglu" else (4 * WIDTH, 4 * WIDTH)
        self.experts.gate_up_proj = nn.Parameter(torch.empty(num_experts, inner, WIDTH))
        self.experts.down_proj = nn.Parameter(torch.empty(num_experts, WIDTH, outer))
        self.num_experts, self.top_k, self.capacity_factor = num_experts, top_k, capacity_factor
        self.load_balancing, self.aux_loss_coef, self.z_loss_coef = load_balancing, aux_loss_coef, z_loss_coef
        self.bias_update_rate, self.activation = bias_update_rate, activation
        self.bias = torch.linspace(-0.05, 0.05, num_experts, dtype=torch.float64)

    def expert(self, number, x):
        inner = self.experts.gate_up_proj[number] @ x
        if self.activation == "swiglu":
            gate, up = inner.chunk(2)
            inner = nn.functional.silu(gate) * up
        else:
            inner = nn.functional.gelu(inner, approximate="tanh")
        return self.experts.down_proj[number] @ inner

    def balance(self, probabilities, chosen):
        """Equation (4) of Fedus et al., 2022, for tokens that are in one group."""
        sent = torch.zeros(self.num_experts, dtype=torch.float64)
        for experts in chosen:
            for expert in experts:
                sent[expert] += 1
        return self.num_experts * (sent / len(chosen) * probabilities.mean(0)).sum()

    def forward(self, x):
        rows = x.shape[0]
        tokens = x.reshape(-1, WIDTH)
        logits = tokens @ self.gate.weight.t()
        probabilities = logits.exp() / logits.exp().sum(1, keepdim=True)
        scores = probabilities.detach() + (self.bias if self.load_balancing == "bias" else 0)
        chosen = [sorted(range(self.num_experts), key=lambda e: -row[e])[:self.top_k] for row in scores.tolist()]
        capacity = math.inf
        if self.capacity_factor > 0 and self.training:
            capacity = math.ceil(len(tokens) * self.top_k / self.num_experts * self.capacity_factor)
        self.sent, dropped, outputs = [0] * self.num_experts, 0, []
        for token, experts in enumerate(chosen):
            weights = probabilities[token, experts]
            if self.top_k > 1:
                weights = weights / weights.sum()
            output = torch.zeros(WIDTH, dtype=torch.float64)
            for weight, expert in zip(weights, experts):
                if self.sent[expert] < capacity:
                    output = output + weight * self.expert(expert, tokens[token])
                else:
                    dropped += 1
                self.sent[expert] += 1
            outputs.append(output)
        self.statistics = self.sent + [dropped]
        loss = 0
        if self.load_balancing == "aux-loss":
            loss = self.aux_loss_coef * self.balance(probabilities, chosen)
        elif self.load_balancing == "seq-aux-loss":
            length = len(tokens) // rows
            of_rows = [self.balance(probabilities[i:i + length], chosen[i:i + length])
                       for i in range(0, len(tokens), length)]
            loss = self.aux_loss_coef * sum(of_rows) / rows
        self.loss = loss + self.z_loss_coef * logits.exp().sum(1).log().square().mean()
        return torch.stack(outputs).view(x.shape)


def mixtral_block():
    return MixtralSparseMoeBlock(transformers.MixtralConfig(
        hidden_size=WIDTH, intermediate_size=INNER, num_local_experts=8, num_experts_per_tok=2, hidden_act="silu",
        router_jitter_noise=0.0))


def rename(name):
    for theirs, ours in (("mlp.gate.", "mlp.router."), ("gate_up_proj", "c_fc.weight"),
                         ("down_proj", "c_proj.weight")):
        name = name.replace(theirs, ours)
    return name


def transposed(name, tensor):
    return tensor.t() if "h." in name and tensor.dim() == 2 and "router" not in name else tensor


class ExpertsCase(Case):
    def __init__(self, name, make_block, **options):
        config = transformers.GPT2Config(
            vocab_size=65, n_positions=CONTEXT, n_embd=WIDTH, n_layer=LAYERS, n_head=4, resid_pdrop=0, embd_pdrop=0,
            attn_pdrop=0, tie_word_embeddings=True)
        module = transformers.GPT2LMHeadModel(config)
        self.blocks = []
        for layer in module.transformer.h:
            layer.mlp = make_block()
            self.blocks.append(layer.mlp)
        ours = {"layers": LAYERS, "width": WIDTH, "heads": 4, "activation": "swiglu"} | options
        super().__init__(name, "gpt", json.dumps(ours), text(BATCH, CONTEXT, 65), module, rename, transposed)

    def further_loss(self):
        if not self.module.training:
            return 0
        self.statistics = [block.statistics for block in self.blocks]
        return sum(block.loss for block in self.blocks) / LAYERS

    def fixture(self):
        result = super().fixture()
        result["statistics"] = self.statistics
        if self.blocks[0].load_balancing == "bias":
            result["bias"] = [[number(value) for value in block.bias.tolist()] for block in self.blocks]
            result["bias_after"] = [
                [number(value + block.bias_update_rate * ((mean > sent) - (mean < sent)))
                 for value, sent in zip(block.bias.tolist(), block.sent)]
                for block in self.blocks for mean in [sum(block.sent) / block.num_experts]]
        return result


class MixtralCase(ExpertsCase):
    """The loss of each layer by transformers, and the mean of layers."""

    def __init__(self, coefficient):
        super().__init__("mixtral", mixtral_block, num_experts=8, top_k=2, load_balancing="aux-loss",
                         aux_loss_coef=coefficient)
        self.coefficient = coefficient
        for block in self.blocks:
            block.load_balancing = "aux-loss"
            block.gate.register_forward_hook(self.keep)

    def keep(self, gate, inputs, outputs):
        logits, _, chosen = outputs
        gate.last = logits
        gate.sent = torch.bincount(chosen.flatten(), minlength=8).tolist()

    def further_loss(self):
        if not self.module.training:
            return 0
        self.statistics = [block.gate.sent + [0] for block in self.blocks]
        losses = [load_balancing_loss_func((block.gate.last,), 8, 2) for block in self.blocks]
        return self.coefficient * sum(losses) / LAYERS


def cases():
    yield MixtralCase(0.1)
    for name, options in {
        "seq-aux-loss": dict(num_experts=8, load_balancing="seq-aux-loss", aux_loss_coef=0.1),
        "aux-loss": dict(num_experts=8, load_balancing="aux-loss", aux_loss_coef=0.1),
        "none": dict(num_experts=4, top_k=3, load_balancing="none"),
        "bias": dict(num_experts=8, load_balancing="bias", bias_update_rate=0.01),
        "z-loss": dict(num_experts=8, load_balancing="none", z_loss_coef=0.01),
        "switch": dict(num_experts=4, top_k=1, load_balancing="aux-loss", aux_loss_coef=0.1, capacity_factor=1.0),
        "capacity": dict(num_experts=8, load_balancing="seq-aux-loss", aux_loss_coef=0.1, capacity_factor=1.25),
        "gelu": dict(num_experts=4, load_balancing="none", activation="gelu-tanh"),
    }.items():
        yield ExpertsCase(name, lambda: Experts(**options), **options)


def check_loops():
    ours = Experts(num_experts=8).double()
    theirs = mixtral_block().double()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.uniform_(-0.3, 0.3)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, CONTEXT, WIDTH, dtype=torch.float64)
    difference = (ours(x) - theirs(x)).abs().max().item()
    assert difference < 1e-6, difference


def main():
    torch.manual_seed(0)
    check_loops()
    folder = pathlib.Path(sys.argv[1])
    fixtures = [case.fixture() for case in cases()]
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in fixtures)
    path = folder / "experts.json"
    path.write_text(f"[\n{lines}\n]\n")
    print(f"{path}: {len(fixtures)} models, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
