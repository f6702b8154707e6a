"""The programs that make_exported.py exports: models, their inputs, and what is trained with them."""

import dataclasses
import typing

import diffusers
import timm
import torch
import transformers
from torch import nn
from torch.nn import functional as F
from torchvision.models import efficientnet, swin_transformer


@dataclasses.dataclass
class Input:
    """A tensor of `shape`, whose strings name dynamic sizes: uniform in [-1, 1), or integers below `modulo`."""
    shape: tuple
    modulo: int = 0


def real(*shape):
    return Input(shape)


def integers(modulo, *shape):
    return Input(shape, modulo)


@dataclasses.dataclass
class Loss:
    """`labels`: "hash", integers below `classes`, or "rows", the row's own number."""
    kind: str
    output: str
    classes: int = 0
    class_dim: int = -1
    labels: str = "hash"


def cross_entropy(classes, output="output", **options):
    return Loss("cross-entropy", output, classes, **options)


def mse(output="output"):
    return Loss("mse", output)


def inside(output="loss"):
    return Loss("inside", output)


BATCH = {"batch": (2, 4096)}
TEXT = {"batch": (2, 4096), "seq": (2, 32)}


@dataclasses.dataclass
class Case:
    """A model with the values of its parameters from the hash of their names."""
    name: str
    make: typing.Callable
    inputs: dict
    loss: Loss
    dims: dict = dataclasses.field(default_factory=lambda: BATCH)
    sizes: tuple = ({"batch": 4}, {"batch": 3})
    pack: typing.Callable = lambda inputs: (tuple(inputs.values()), {})
    strict: bool = False
    zero: tuple = ()  # Parameters whose gradient is zero at one of the sizes.
    both: bool = False  # Evaluation has a program of its own.
    differs: str = ""  # Why the program and eager Python are not equal.


def by_name(inputs):
    return (), dict(inputs)


TEXTS = ({"batch": 2, "seq": 12}, {"batch": 3, "seq": 9})


# Small models, one property each.


class Mlp(nn.Module):
    def __init__(self, dtype=None):
        super().__init__()
        self.hidden = nn.Linear(16, 32, dtype=dtype)
        self.head = nn.Linear(32, 10, dtype=dtype)

    def forward(self, x):
        return self.head(F.relu(self.hidden(x)))


class Bf16(Mlp):
    """Weights in bfloat16, a norm and the loss in float32."""

    def __init__(self):
        super().__init__(torch.bfloat16)
        self.norm = nn.LayerNorm(32)

    def forward(self, x):
        x = F.gelu(self.hidden(x.to(torch.bfloat16)))
        return self.head(self.norm(x.float()).to(torch.bfloat16)).float()


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(16, momentum=0.2)
        self.drop2d = nn.Dropout2d(0.1)
        self.drop = nn.Dropout(0.2)
        self.relu = nn.ReLU(inplace=True)
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        x = F.max_pool2d(self.relu(self.bn1(self.conv1(x))), 2)
        x = self.drop2d(self.relu(self.bn2(self.conv2(x))))
        return self.fc(self.drop(x.mean((2, 3))))


class AnySize(nn.Module):
    """Images whose height and width vary."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        return self.fc(x.mean((2, 3)))


class Unet(nn.Module):
    """Classes of pixels: [batch, classes, height, width]."""

    def __init__(self):
        super().__init__()
        self.down1 = self.block(1, 8)
        self.down2 = self.block(8, 16)
        self.middle = self.block(16, 16)
        self.up2 = nn.ConvTranspose2d(16, 16, 2, 2)
        self.join2 = self.block(32, 8)
        self.up1 = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.join1 = self.block(16, 8)
        self.head = nn.Conv2d(8, 3, 1)

    @staticmethod
    def block(channels, out):
        return nn.Sequential(nn.Conv2d(channels, out, 3, padding=1, bias=False), nn.BatchNorm2d(out),
                             nn.LeakyReLU(0.1))

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        x = self.middle(F.avg_pool2d(b, 2))
        x = self.join2(torch.cat([self.up2(x), b], 1))
        x = self.join1(torch.cat([self.up1(x), a], 1))
        return self.head(x)


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.rnn = kind(8, 12, batch_first=True, **options)
        self.head = nn.Linear(12 * (2 if options.get("bidirectional") else 1), 5)

    def forward(self, tokens):
        x, _ = self.rnn(self.embed(tokens))
        return self.head(x.mean(1))


class Bags(nn.Module):
    """Sparse features of two kinds, one of them weighted, beside dense ones; returns one logit a row."""

    def __init__(self):
        super().__init__()
        self.genres = nn.EmbeddingBag(30, 8, mode="mean", padding_idx=0)
        self.history = nn.EmbeddingBag(40, 8, mode="sum")
        self.head = nn.Sequential(nn.Linear(20, 16), nn.SiLU(), nn.Linear(16, 1))

    def forward(self, genres, history, weights, dense):
        x = torch.cat([self.genres(genres), self.history(history, per_sample_weights=weights), dense], 1)
        return self.head(x).squeeze(1)


class Vae(nn.Module):
    """Draws in training, takes the mean in evaluation. The loss is inside."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(16, 24), nn.Tanh(), nn.Linear(24, 8))
        self.decoder = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 16))

    def forward(self, x):
        mean, log_var = self.encoder(x).chunk(2, 1)
        z = mean
        if self.training:
            z = mean + torch.randn_like(mean) * torch.exp(0.5 * log_var)
        y = self.decoder(z)
        divergence = -0.5 * (1 + log_var - mean.square() - log_var.exp()).sum(1).mean()
        return {"loss": F.mse_loss(y, x) + 0.1 * divergence, "reconstruction": y, "mean": mean}


class Gcn(nn.Module):
    """Kipf and Welling 2017: sums over edges by index_add, scaled by degrees. A row is a node."""

    def __init__(self):
        super().__init__()
        self.layer1 = nn.Linear(6, 16)
        self.layer2 = nn.Linear(16, 4)

    @staticmethod
    def spread(x, source, target):
        degree = torch.ones(x.size(0)).index_add(0, target, torch.ones(target.size(0)))
        scale = degree.rsqrt()
        message = x[source] * (scale[source] * scale[target]).unsqueeze(1)
        return torch.zeros_like(x).index_add(0, target, message) + x / degree.unsqueeze(1)

    def forward(self, x, edges):
        source, target = edges.unbind(0)
        x = F.relu(self.spread(self.layer1(x), source, target))
        return self.spread(self.layer2(x), source, target)


class TiedHead(nn.Module):
    """A language model whose head is its embedding, with the loss inside; outputs are a dictionary."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(24, 16)
        self.mix = nn.Linear(16, 16)
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 24, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens, labels):
        x = self.embed(tokens)
        x = self.norm(x + F.gelu(self.mix(x.cumsum(1))))
        logits = self.head(x)
        return {"loss": F.cross_entropy(logits.flatten(0, 1), labels.flatten()), "logits": logits}


class DictInOut(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Conv2d(1, 4, 3)
        self.text = nn.Embedding(12, 8)
        self.head = nn.Linear(4 + 8, 3)

    def forward(self, batch):
        image = F.relu(self.image(batch["image"])).amax((2, 3))
        features = torch.cat([image, self.text(batch["text"]).mean(1)], 1)
        logits = self.head(features)
        return {"logits": logits, "aux": (features, logits.argmax(1))}


class SetItem(nn.Module):
    """Writes to its input, to a view of an activation, and by an index."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(4, 8)
        self.token = nn.Parameter(torch.zeros(8))
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x[:, 0] = 1.0
        x[:, :, 1].mul_(0.5)
        h = self.embed(x)
        h[:, 0] = self.token
        h[:, 1:3] += 0.25 * h[:, 3:5].tanh()
        h[torch.arange(x.size(0)), 4] = 2.0 * self.token
        return self.head(h.relu_().mean(1))


class RunningScale(nn.Module):
    """Writes buffers by hand in training: a mean that follows the data, and a counter."""

    def __init__(self):
        super().__init__()
        self.head = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("steps", torch.tensor(0))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.mean.lerp_(x.mean(0), 0.1)
                self.steps += 1
        return self.head(x - self.mean)


class Constants(nn.Module):
    """A buffer that is not persistent, a constant of the code, a frozen layer, a parameter without gradient."""

    def __init__(self):
        super().__init__()
        self.frozen = nn.Linear(8, 8)
        self.frozen.requires_grad_(False)
        self.unused = nn.Parameter(torch.zeros(3))
        self.head = nn.Linear(8, 4)
        self.register_buffer("scale", torch.linspace(0.5, 1.5, 8), persistent=False)
        self.register_buffer("shift", torch.linspace(-0.5, 0.5, 8))

    def forward(self, x):
        x = torch.tanh(self.frozen(x * self.scale + self.shift)) * torch.tensor([0.5, 2.0]).repeat(4)
        return self.head(x)


class Centered(nn.Module):
    """Reads a buffer, and then writes it."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.register_buffer("mean", torch.linspace(-0.2, 0.2, 8))

    def forward(self, x):
        y = self.layer(x - self.mean)
        if self.training:
            self.mean.copy_(0.9 * self.mean + 0.1 * x.detach().mean(0))
        return torch.tanh(y)


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.norm = nn.InstanceNorm1d(2, affine=True, track_running_stats=True)

    def forward(self, x):
        return torch.tanh(self.norm(self.layer(x).view(-1, 2, 4)).flatten(1))


class Viewed(nn.Module):
    """Returns a view."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return self.layer(x).view(-1, 2, 4).flatten(1)


class Shifted(nn.Module):
    """Writes its input, which a dropout of nothing returns."""

    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.0)
        self.shift = nn.Parameter(torch.empty(8))
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        x = self.dropout(x)
        x += self.shift
        return torch.tanh(self.layer(x))


class Modes(nn.Module):
    """Other constants in each mode, which have the same names, and blocks of which one can be computed again."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.blocks = nn.ModuleList([Centered(), Normed(), Viewed(), Shifted()])
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        scale = torch.tensor([0.5, 2.0] if self.training else [2.0, 0.25]).repeat(4)
        x = self.first(x * scale)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Slices(nn.Module):
    """Parameters that are parts of one storage, with offsets and strides; filters in channels-last order."""

    def __init__(self):
        super().__init__()
        storage = torch.zeros(6, 16)
        self.first = nn.Parameter(storage[:, :8])
        self.second = nn.Parameter(storage[:4, 8:14])
        self.transposed = nn.Parameter(torch.empty(6, 4).t())
        self.conv = nn.Conv2d(2, 8, 3, padding=1).to(memory_format=torch.channels_last)

    def forward(self, x):
        x = F.relu(self.conv(x)).mean((2, 3))
        return x @ self.first.t() @ self.second.t() @ self.transposed


class NoGradRegion(nn.Module):
    """A target network without gradients, as in BYOL, and a second region with two results."""

    def __init__(self):
        super().__init__()
        self.online = nn.Linear(8, 8)
        self.target = nn.Linear(8, 8)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        y = self.online(x)
        with torch.no_grad():
            goal = F.normalize(self.target(x), dim=1)
        h = self.head(y * goal)
        with torch.no_grad():
            spread, mean = torch.std_mean(h, 1, keepdim=True)
        return (h - mean) / spread


class AutocastRegion(nn.Module):
    """The body in bfloat16 by autocast, with a part in float32 inside."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 16)
        self.middle = nn.Linear(16, 16)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            x = F.relu(self.body(x))
            with torch.autocast("cpu", enabled=False):
                x = x.float().square()
            x = self.middle(x)
        return self.head(x.float())


class Cond(nn.Module):
    def __init__(self):
        super().__init__()
        self.small = nn.Linear(8, 4)
        self.large = nn.Linear(8, 4)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: self.large(x).tanh(), lambda x: self.small(x) * 2, (x,))


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.group = nn.GroupNorm(2, 8)
        self.instance = nn.InstanceNorm2d(8, affine=True, track_running_stats=True)
        self.plain = nn.InstanceNorm2d(8)
        self.layer = nn.LayerNorm([6, 6])
        self.batch = nn.BatchNorm1d(8)
        self.rms = nn.RMSNorm(8)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        x = self.instance(self.group(self.conv(x)))
        x = self.layer(self.plain(x.sin())) + F.local_response_norm(x, 3)
        return self.head(self.rms(self.batch(x.amax((2, 3)))))


class Fno(nn.Module):
    """Li et al. 2021 in two dimensions: products with complex filters of the lowest frequencies."""

    def __init__(self, width=6, modes=3):
        super().__init__()
        self.modes = modes
        self.lift = nn.Conv2d(1, width, 1)
        self.filters = nn.ParameterList(nn.Parameter(torch.empty(width, width, modes, modes, 2))
                                        for _ in range(2))
        self.skips = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(2))
        self.project = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        x = self.lift(x)
        for weight, skip in zip(self.filters, self.skips):
            spectrum = torch.fft.rfft2(x)
            low = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :self.modes, :self.modes],
                               torch.view_as_complex(weight))
            out = torch.zeros_like(spectrum)
            out[:, :, :self.modes, :self.modes] = low
            x = F.gelu(torch.fft.irfft2(out, s=x.shape[-2:]) + skip(x))
        return self.project(x)


class Spectral(nn.Module):
    """Spectral norm: iterates on buffers in training."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.utils.parametrizations.spectral_norm(nn.Linear(8, 12))
        self.head = nn.utils.parametrizations.weight_norm(nn.Linear(12, 4))

    def forward(self, x):
        return self.head(F.relu(self.hidden(x)))


class Encoder(nn.Module):
    """PyTorch's own attention with dropout, and a mask of padding."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(16, 4)

    def forward(self, tokens):
        x = self.layers(self.embed(tokens), src_key_padding_mask=tokens == 0)
        return self.head(x[:, 0])


class Heads(nn.Module):
    """Attention and gates in several notations, each of which processes can divide by heads or channels."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.fused = nn.Linear(16, 48)
        self.query, self.key, self.value = (nn.Linear(16, 16, bias=False) for _ in range(3))
        self.key_norm, self.mix = nn.LayerNorm(4), nn.Linear(4, 4)
        self.drop = nn.Dropout(0.2)
        self.shift = nn.Parameter(torch.tensor([[[0.5]]]))
        self.grouped, self.pairs = nn.Linear(16, 16), nn.Linear(16, 16)
        self.temperature = nn.Parameter(torch.tensor([0.5, 1, 1.5, 2]).view(4, 1, 1))
        self.gate, self.halves, self.up = nn.Linear(16, 64), nn.Linear(16, 64), nn.Linear(16, 32)
        self.outs = nn.ModuleList(nn.Linear(width, 16) for width in (16, 16, 16, 32, 32, 32))
        self.head = nn.Linear(16, 4)

    def by_einsum(self, x):
        qkv = self.fused(x)
        q, k, v = (qkv[..., 16 * i:16 * (i + 1)].unflatten(-1, (4, 4)) for i in range(3))
        weights = torch.einsum("bqhd,bkhd->bhqk", q, k).div(2).softmax(-1)
        return torch.einsum("bhqk, bkhd -> bqhd", weights, v).flatten(-2)

    def by_bmm(self, x):
        batch, tokens, _ = x.shape
        q, k, v = (self.drop(layer(x).view(batch, tokens, 4, 4).transpose(1, 2)).reshape(batch * 4, tokens, 4)
                   for layer in (self.query, self.key, self.value))
        scores = torch.baddbmm(self.shift, q, self.key_norm(k).transpose(1, 2), alpha=0.5)
        y = torch.bmm((scores - scores.amax(-1, keepdim=True)).softmax(-1), self.mix(v))
        return y.view(batch, 4, tokens, 4).permute(0, 2, 1, 3).reshape(batch, tokens, 16)

    def by_matmul(self, x):
        batch, tokens, _ = x.shape
        q = self.grouped(x).unflatten(-1, (4, 4)).transpose(1, 2)
        q = torch.stack((q, torch.cat((-q[..., 2:], q[..., :2]), -1))).mean(0)
        k, v = (half.unflatten(-1, (2, 4)).transpose(1, 2).repeat_interleave(2, 1)
                for half in self.pairs(x).chunk(2, -1))
        scores = q @ k.transpose(-2, -1) * self.temperature
        backward = torch.arange(tokens).flip(0).expand(batch, 4, tokens, tokens)
        weights = (scores + scores.gather(-1, backward)).softmax(-1)
        return (weights @ v).swapaxes(1, 2).reshape(batch, tokens, -1)

    def forward(self, tokens):
        x = self.embed(tokens)
        gate, value = self.halves(x).split(32, -1)
        parts = (self.by_einsum(x), self.by_bmm(x), self.by_matmul(x), F.glu(self.gate(x), -1), F.silu(gate) * value,
                 self.up(x).unsqueeze(1).repeat(1, 1, 1, 1).squeeze(1).clamp(min=0))
        for part, out in zip(parts, self.outs, strict=True):
            x = x + out(part)
        return self.head(x.mean(1))


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class CustomFunction(nn.Module):
    """torch.export drops the backward of an autograd.Function: `before` gets no gradient from the program."""

    def __init__(self):
        super().__init__()
        self.before = nn.Linear(8, 8)
        self.after = nn.Linear(8, 4)

    def forward(self, x):
        return self.after(Straight.apply(4 * self.before(x)))


class DitBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width, elementwise_affine=False)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width, elementwise_affine=False)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(approximate="tanh"),
                                 nn.Linear(2 * width, width))
        self.modulation = nn.Linear(width, 6 * width)

    def forward(self, x, c):
        shift1, scale1, gate1, shift2, scale2, gate2 = self.modulation(F.silu(c)).unsqueeze(1).chunk(6, 2)
        y = self.norm1(x) * (1 + scale1) + shift1
        q, k, v = self.qkv(y).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + gate1 * self.out(y)
        return x + gate2 * self.mlp(self.norm2(x) * (1 + scale2) + shift2)


class Dit(nn.Module):
    """Peebles and Xie 2023. Labels are dropped by chance in training."""

    def __init__(self, width=24, heads=2, classes=5):
        super().__init__()
        self.classes = classes
        self.patch = nn.Conv2d(2, width, 2, 2)
        self.register_buffer("position", torch.linspace(-1, 1, 16 * width).view(1, 16, width),
                             persistent=False)
        self.time = nn.Sequential(nn.Linear(8, width), nn.SiLU(), nn.Linear(width, width))
        self.label = nn.Embedding(classes + 1, width)
        self.blocks = nn.ModuleList(DitBlock(width, heads) for _ in range(1))
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.head = nn.Linear(width, 8)

    def forward(self, x, time, label):
        if self.training:
            label = torch.where(torch.rand(label.shape[0]) < 0.3, self.classes, label)
        phase = time[:, None].float() * torch.exp(-torch.arange(4) * 2.0)
        c = self.time(torch.cat([phase.cos(), phase.sin()], 1)) + self.label(label)
        x = self.patch(x).flatten(2).transpose(1, 2) + self.position
        for block in self.blocks:
            x = block(x, c)
        x = self.head(self.norm(x)).view(-1, 4, 4, 2, 2, 2)
        return torch.einsum("bhwpqc->bchpwq", x).reshape(-1, 2, 8, 8)


def own_cases():
    yield Case("mlp", Mlp, {"x": real("batch", 16)}, cross_entropy(10), sizes=({"batch": 8}, {"batch": 5}))
    yield Case("cnn", Cnn, {"x": real("batch", 3, 8, 8)}, cross_entropy(10))
    yield Case("any-size", AnySize, {"x": real("batch", 3, "height", "width")}, cross_entropy(10),
               {"batch": (2, 4096), "height": (4, 64), "width": (4, 64)},
               ({"batch": 4, "height": 8, "width": 12}, {"batch": 3, "height": 10, "width": 6}))
    yield Case("unet", Unet, {"x": real("batch", 1, 16, 16)}, cross_entropy(3, class_dim=1))
    yield Case("lstm", lambda: Recurrent(nn.LSTM, num_layers=2, dropout=0.2, bidirectional=True),
               {"tokens": integers(20, "batch", 7)}, cross_entropy(5))
    yield Case("gru", lambda: Recurrent(nn.GRU), {"tokens": integers(20, "batch", 7)}, cross_entropy(5))
    yield Case("embedding-bag", Bags, {"genres": integers(30, "batch", 3), "history": integers(40, "batch", 5),
                                       "weights": real("batch", 5), "dense": real("batch", 4)}, mse())
    yield Case("vae", Vae, {"x": real("batch", 16)}, inside(), both=True)
    yield Case("gcn", Gcn, {"x": real("nodes", 6), "edges": integers(7, 2, "edges")}, cross_entropy(4),
               {"nodes": (2, 4096), "edges": (2, 65536)}, ({"nodes": 9, "edges": 20}, {"nodes": 7, "edges": 11}))
    yield Case("tied-head", TiedHead, {"tokens": integers(24, "batch", "seq"),
                                       "labels": integers(24, "batch", "seq")}, inside(), TEXT, TEXTS)
    yield Case("dict-in-out", DictInOut, {"image": real("batch", 1, 6, 6), "text": integers(12, "batch", 5)},
               cross_entropy(3, "logits"), pack=lambda inputs: ((dict(inputs),), {}))
    yield Case("set-item", SetItem, {"x": real("batch", 6, 4)}, cross_entropy(5))
    yield Case("buffer-mutation", RunningScale, {"x": real("batch", 8)}, cross_entropy(4), both=True)
    yield Case("constants", Constants, {"x": real("batch", 8)}, cross_entropy(4))
    yield Case("modes", Modes, {"x": real("batch", 8)}, cross_entropy(4), both=True)
    yield Case("slices", Slices, {"x": real("batch", 2, 5, 5)}, cross_entropy(4))
    yield Case("bf16", Bf16, {"x": real("batch", 16)}, cross_entropy(10))
    yield Case("no-grad", NoGradRegion, {"x": real("batch", 8)}, cross_entropy(4))
    yield Case("autocast", AutocastRegion, {"x": real("batch", 8)}, cross_entropy(4))
    yield Case("cond", Cond, {"x": real("batch", 8)}, cross_entropy(4), sizes=({"batch": 4}, {"batch": 9}),
               zero=("small.", "large."))
    yield Case("norms", Norms, {"x": real("batch", 3, 8, 8)}, cross_entropy(4))
    yield Case("fno", Fno, {"x": real("batch", 1, 8, 8)}, mse())
    yield Case("spectral-norm", Spectral, {"x": real("batch", 8)}, cross_entropy(4), both=True)
    yield Case("encoder", Encoder, {"tokens": integers(20, "batch", "seq")}, cross_entropy(4), TEXT, TEXTS, strict=True)
    yield Case("heads", Heads, {"tokens": integers(20, "batch", 9)}, cross_entropy(4))
    yield Case("custom-function", CustomFunction, {"x": real("batch", 8)}, cross_entropy(4), zero=("before.",),
               differs="gradients of before.*: torch.export drops the backward of an autograd.Function")
    yield Case("dit", Dit, {"x": real("batch", 2, 8, 8), "time": integers(1000, "batch"),
                            "label": integers(5, "batch")}, mse(), both=True)


# Models of libraries.


def resnet():
    """Two stages."""
    model = timm.models.ResNet(timm.models.resnet.BasicBlock, (1, 1, 1, 1), num_classes=10, channels=(8, 16, 16, 16))
    model.layer3 = model.layer4 = nn.Identity()
    return model


def convnext():
    """Two stages."""
    model = timm.models.ConvNeXt(depths=(1, 1, 1, 1), dims=(8, 12, 12, 12), drop_path_rate=0.6, num_classes=10)
    model.stages = model.stages[:2]
    return model


def efficient_net():
    block = efficientnet.MBConvConfig
    return efficientnet.EfficientNet([block(2, 3, 2, 8, 8, 1, 2, 1)], dropout=0.2, stochastic_depth_prob=0.6,
                                     num_classes=10, last_channel=32)


def vit():
    return timm.models.VisionTransformer(img_size=16, patch_size=4, embed_dim=24, depth=2, num_heads=2, mlp_ratio=2,
                                         num_classes=10, drop_rate=0.1, pos_drop_rate=0.1)


def swin():
    return swin_transformer.SwinTransformer([4, 4], 16, [2], [2], [2, 2], 2.0, stochastic_depth_prob=0.0,
                                            num_classes=10)


def gpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=48, n_positions=32, n_embd=16, n_layer=1, n_head=2, use_cache=False))


SMALL = {"vocab_size": 48, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1,
         "num_attention_heads": 4, "max_position_embeddings": 64, "use_cache": False}


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL, num_key_value_heads=4))


def qwen3():
    return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(
        **SMALL, num_key_value_heads=2, head_dim=8, tie_word_embeddings=True))


def mixtral():
    model = transformers.MixtralForCausalLM(transformers.MixtralConfig(
        **SMALL, num_key_value_heads=2, num_local_experts=3, num_experts_per_tok=2))
    model.set_experts_implementation("batched_mm")
    return model


def bert():
    return transformers.BertForSequenceClassification(transformers.BertConfig(
        **(SMALL | {"max_position_embeddings": 32}), num_labels=3))


def t5():
    return transformers.T5ForConditionalGeneration(transformers.T5Config(
        vocab_size=48, d_model=16, d_kv=8, d_ff=24, num_layers=1, num_heads=2, use_cache=False, pad_token_id=0,
        decoder_start_token_id=0))


def whisper():
    return transformers.WhisperForConditionalGeneration(transformers.WhisperConfig(
        vocab_size=48, num_mel_bins=8, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_source_positions=10,
        max_target_positions=32, use_cache=False, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=1, dropout=0.1))


def clip():
    """Without its loss inside, whose labels are as many as there were rows at export."""
    return transformers.CLIPModel(transformers.CLIPConfig(
        text_config={"vocab_size": 48, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
                     "num_attention_heads": 2, "max_position_embeddings": 16, "eos_token_id": 2},
        vision_config={"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
                       "image_size": 8, "patch_size": 4},
        projection_dim=12))


def diffusion_unet():
    return diffusers.UNet2DModel(
        sample_size=8, in_channels=1, out_channels=1, layers_per_block=1, block_out_channels=(8,), norm_num_groups=4,
        attention_head_dim=4, down_block_types=("AttnDownBlock2D",), mid_block_type=None,
        up_block_types=("UpBlock2D",))


def library_cases():
    few = ({"batch": 2}, {"batch": 3})
    tokens = {"input_ids": integers(48, "batch", "seq")}
    text = {"loss": cross_entropy(48, "logits"), "dims": TEXT, "sizes": TEXTS, "pack": by_name}
    yield Case("resnet", resnet, {"x": real("batch", 3, 16, 16)}, cross_entropy(10), sizes=few)
    yield Case("convnext", convnext, {"x": real("batch", 3, 16, 16)}, cross_entropy(10), both=True, sizes=few)
    yield Case("efficientnet", efficient_net, {"x": real("batch", 3, 16, 16)}, cross_entropy(10), both=True, sizes=few)
    yield Case("vit", vit, {"x": real("batch", 3, 16, 16)}, cross_entropy(10), sizes=few)
    yield Case("swin", swin, {"x": real("batch", 3, 16, 16)}, cross_entropy(10), sizes=few)
    yield Case("gpt2", gpt2, tokens, **text)
    yield Case("llama", llama, tokens, **text, strict=True)
    grouped = ("rounding: with a mask, which programs always make, transformers repeats keys and values where it else "
               "leaves that to attention (enable_gqa)")
    yield Case("qwen3", qwen3, tokens, **text, strict=True, differs=grouped)
    yield Case("mixtral", mixtral, {"input_ids": integers(48, "batch", 7)}, cross_entropy(48, "logits"), sizes=few,
               pack=by_name, strict=True, differs=grouped)
    yield Case("bert", bert, tokens | {"attention_mask": integers(2, "batch", "seq")}, cross_entropy(3, "logits"),
               TEXT, TEXTS, by_name)
    yield Case("t5", t5, {"input_ids": integers(48, "batch", 9), "labels": integers(48, "batch", 6)}, inside(),
               sizes=few, pack=by_name)
    yield Case("whisper", whisper,
               {"input_features": real("batch", 8, 20), "decoder_input_ids": integers(48, "batch", 7)},
               cross_entropy(48, "logits"), sizes=few, pack=by_name)
    yield Case("clip", clip, {"input_ids": integers(48, "batch", 10), "pixel_values": real("batch", 3, 8, 8)},
               cross_entropy(0, "logits_per_image", labels="rows"), pack=by_name)
    yield Case("diffusion-unet", diffusion_unet,
               {"sample": real("batch", 1, 8, 8), "timestep": integers(1000, "batch")},
               mse("sample"), {"batch": (2, 63)}, pack=by_name,
               differs="rounding: eager Python differs from itself, with the addresses of its memory")
