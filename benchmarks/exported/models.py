"""The models of `run`, with the sizes of their batches on a CPU and on a GPU.

`models()` has, for each name, a function of the device type that returns a Case.
"""

import dataclasses
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F


@dataclasses.dataclass
class Case:
    make: Callable  # of the model
    args: tuple  # a batch of inputs
    loss: str  # cross-entropy, of logits [N, C], [N, T, C] or [N, C, H, W]; or mse

    def is_of_images(self):
        return any(tensor.dim() == 4 for tensor in self.args)


class Logits(nn.Module):
    """A model of transformers with the logits as its only output."""

    def __init__(self, model, names, output="logits"):
        super().__init__()
        self.model, self.names, self.output = model, names, output

    def forward(self, *tensors):
        return getattr(self.model(**dict(zip(self.names, tensors))), self.output)

    def train(self, mode=True):
        super().train(mode)
        # In training, encoders with LayerDrop branch on a random number, which torch.export cannot trace, also if its
        # probability is 0.
        for module in self.modules():
            if getattr(module, "layerdrop", None) == 0:
                module.training = False
        return self


def images(count, side, channels=3):
    return (torch.randn(count, channels, side, side),)


def tokens(count, length, vocabulary):
    return torch.randint(vocabulary, (count, length))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class UNet(nn.Module):
    """Ronneberger et al., 2015, with batch norm."""

    def __init__(self, widths=(32, 64, 128, 256), classes=5):
        super().__init__()

        def stage(channels, width):
            layers = []
            for before in (channels, width):
                layers += [nn.Conv2d(before, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
            return nn.Sequential(*layers)

        self.down = nn.ModuleList(stage(a, b) for a, b in zip((3, *widths), widths))
        pairs = list(zip(widths[:0:-1], widths[-2::-1]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in pairs)
        self.merge = nn.ModuleList(stage(2 * b, b) for a, b in pairs)
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x):
        kept = []
        for stage in self.down[:-1]:
            kept.append(stage(x))
            x = F.max_pool2d(kept[-1], 2)
        x = self.down[-1](x)
        for up, merge in zip(self.up, self.merge):
            x = merge(torch.cat([kept.pop(), up(x)], 1))
        return self.head(x)


def embed_times(times, width):
    rates = torch.exp(torch.arange(width // 2, device=times.device) * (-9.21 / (width // 2)))
    angles = times[:, None] * rates
    return torch.cat([angles.cos(), angles.sin()], 1)


class DiffusionBlock(nn.Module):
    def __init__(self, channels, width, times):
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(8, channels), nn.SiLU(), nn.Conv2d(channels, width, 3, padding=1))
        self.time = nn.Sequential(nn.SiLU(), nn.Linear(times, width))
        self.second = nn.Sequential(nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1))
        self.skip = nn.Conv2d(channels, width, 1) if channels != width else nn.Identity()

    def forward(self, x, time):
        return self.skip(x) + self.second(self.first(x) + self.time(time)[:, :, None, None])


class DiffusionUNet(nn.Module):
    """The U-Net of Ho et al., 2020, with attention in the middle."""

    def __init__(self, width=64, steps=(1, 2, 4)):
        super().__init__()
        self.width, times = width, 4 * width
        self.time = nn.Sequential(nn.Linear(width, times), nn.SiLU(), nn.Linear(times, times))
        widths = [width * step for step in steps]
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList(DiffusionBlock(a, b, times) for a, b in zip((width, *widths), widths))
        self.pool = nn.ModuleList(nn.Conv2d(a, a, 3, 2, 1) for a in widths[:-1])
        self.norm, self.attention = nn.GroupNorm(8, widths[-1]), Attention(widths[-1], 4)
        self.middle = DiffusionBlock(widths[-1], widths[-1], times)
        self.up = nn.ModuleList(DiffusionBlock(a + b, b, times) for a, b in zip(widths[:0:-1], widths[-2::-1]))
        self.last = nn.Sequential(nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, 3, 3, padding=1))

    def forward(self, x, times):
        time = self.time(embed_times(times, self.width))
        x, kept = self.first(x), []
        for block, pool in zip(self.down, self.pool):
            kept.append(block(x, time))
            x = pool(kept[-1])
        x = self.down[-1](x, time)
        attended = self.attention(self.norm(x).flatten(2).transpose(1, 2)).transpose(1, 2)
        x = self.middle(x + attended.unflatten(2, x.shape[2:]), time)
        for block in self.up:
            x = block(torch.cat([F.interpolate(x, scale_factor=2.0), kept.pop()], 1), time)
        return self.last(x)


class DitBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width, elementwise_affine=False, eps=1e-6) for _ in range(2))
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))
        self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))

    def forward(self, x, condition):
        shift_a, scale_a, gate_a, shift_b, scale_b, gate_b = self.modulation(condition)[:, None].chunk(6, -1)
        x = x + gate_a * self.attention(self.norms[0](x) * (1 + scale_a) + shift_a)
        return x + gate_b * self.mlp(self.norms[1](x) * (1 + scale_b) + shift_b)


class Dit(nn.Module):
    """Peebles and Xie, 2023."""

    def __init__(self, side=32, patch=2, channels=4, width=384, depth=12, heads=6, classes=1000):
        super().__init__()
        self.width, self.patch, self.channels = width, patch, channels
        self.patches = nn.Conv2d(channels, width, patch, patch)
        self.positions = nn.Parameter(torch.randn(1, (side // patch) ** 2, width) * 0.02)
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.labels = nn.Embedding(classes, width)
        self.blocks = nn.ModuleList(DitBlock(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.head = nn.Linear(width, patch * patch * channels)

    def forward(self, x, times, labels):
        rows, columns = x.shape[2] // self.patch, x.shape[3] // self.patch
        x = self.patches(x).flatten(2).transpose(1, 2) + self.positions
        condition = self.time(embed_times(times, self.width)) + self.labels(labels)
        for block in self.blocks:
            x = block(x, condition)
        x = self.head(self.norm(x)).unflatten(2, (self.patch, self.patch, self.channels)).unflatten(1, (rows, columns))
        return x.permute(0, 5, 1, 3, 2, 4).flatten(4).flatten(2, 3)


class Dlrm(nn.Module):
    """Naumov et al., 2019."""

    def __init__(self, numbers=13, tables=26, rows=10000, width=64):
        super().__init__()

        def mlp(*widths):
            layers = [layer for a, b in zip(widths, widths[1:]) for layer in (nn.Linear(a, b), nn.ReLU())]
            return nn.Sequential(*layers[:-1])

        self.bottom = nn.Sequential(mlp(numbers, 512, 256, width), nn.ReLU())
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
        self.top = mlp(width + tables * (tables + 1) // 2, 512, 256, 1)
        self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, -1), persistent=False)

    def forward(self, numbers, categories):
        dense = self.bottom(numbers)
        all = torch.stack([dense, *(table(categories[:, i]) for i, table in enumerate(self.tables))], 1)
        products = all @ all.transpose(1, 2)
        return self.top(torch.cat([dense, products[:, self.pairs[0], self.pairs[1]]], 1))


class Recurrent(nn.Module):
    def __init__(self, kind, width=256, vocabulary=1000):
        super().__init__()
        self.embedding, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.layers = kind(width, width, num_layers=2, batch_first=True)

    def forward(self, tokens):
        return self.head(self.layers(self.embedding(tokens))[0])


class WaveNet(nn.Module):
    """Van den Oord et al., 2016."""

    def __init__(self, width=64, layers=10, classes=256):
        super().__init__()
        self.first = nn.Conv1d(1, width, 1)
        self.layers = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=2**i) for i in range(layers))
        self.residual = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(layers))
        self.skip = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(layers))
        self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(width, width, 1), nn.ReLU(), nn.Conv1d(width, classes, 1))

    def forward(self, x):
        x, total = self.first(x), 0
        for i, (layer, residual, skip) in enumerate(zip(self.layers, self.residual, self.skip)):
            a, b = layer(F.pad(x, (2**i, 0))).chunk(2, 1)
            gated = torch.tanh(a) * torch.sigmoid(b)
            x, total = x + residual(gated), total + skip(gated)
        return self.last(total).transpose(1, 2)


class PointNet(nn.Module):
    """Qi et al., 2017, without its transforms."""

    def __init__(self, widths=(64, 64, 128, 1024), classes=40):
        super().__init__()
        layers = []
        for a, b in zip((3, *widths), widths):
            layers += [nn.Conv1d(a, b, 1, bias=False), nn.BatchNorm1d(b), nn.ReLU()]
        self.layers = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.Linear(widths[-1], 256), nn.ReLU(), nn.Dropout(0.3), nn.Linear(256, classes))

    def forward(self, points):
        return self.head(self.layers(points).amax(2))


class Gcn(nn.Module):
    """Kipf and Welling, 2017, on dense normalized adjacency matrices."""

    def __init__(self, features=64, width=128, layers=4, classes=10):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, width) for a in (features, *[width] * (layers - 1)))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.head = nn.Linear(width, classes)

    def forward(self, x, edges):
        edges = edges / edges.sum(-1, keepdim=True).clamp(min=1)
        for layer, norm in zip(self.layers, self.norms):
            x = F.relu(norm(edges @ layer(x)))
        return self.head(x.mean(1))


class TabM(nn.Module):
    """Gorishniy et al., 2024: an ensemble of MLPs that share their weights up to scales."""

    def __init__(self, features=100, members=32, width=256, layers=3, classes=10):
        super().__init__()
        widths = [features, *[width] * layers]
        self.linears = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in zip(widths, widths[1:]))
        self.scales = nn.ParameterList(torch.ones(members, a) for a in widths[:-1])
        self.outer = nn.ParameterList(torch.ones(members, b) for b in widths[1:])
        self.biases = nn.ParameterList(torch.zeros(members, b) for b in widths[1:])
        self.dropout = nn.Dropout(0.1)
        self.head, self.head_bias = nn.Parameter(torch.randn(members, width, classes) * 0.05), nn.Parameter(torch.zeros(members, classes))

    def forward(self, x):
        x = x[:, None].expand(-1, self.scales[0].shape[0], -1)
        for linear, scale, outer, bias in zip(self.linears, self.scales, self.outer, self.biases):
            x = self.dropout(F.relu(linear(x * scale) * outer + bias))
        return torch.einsum("nmi,mic->nmc", x, self.head) + self.head_bias


class Vae(nn.Module):
    def __init__(self, width=64, latent=64):
        super().__init__()
        self.encode = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1), nn.BatchNorm2d(width), nn.SiLU(),
            nn.Conv2d(width, 2 * width, 3, 2, 1), nn.BatchNorm2d(2 * width), nn.SiLU(), nn.Flatten(), nn.LazyLinear(2 * latent))
        self.decode = nn.Sequential(
            nn.Linear(latent, 2 * width * 64), nn.Unflatten(1, (2 * width, 8, 8)),
            nn.ConvTranspose2d(2 * width, width, 4, 2, 1), nn.BatchNorm2d(width), nn.SiLU(), nn.ConvTranspose2d(width, 3, 4, 2, 1))
        self.encode(torch.zeros(2, 3, 32, 32))

    def forward(self, x):
        mean, deviation = self.encode(x).chunk(2, 1)
        return self.decode(mean + torch.randn_like(mean) * (0.5 * deviation).exp())


class Segmenter(nn.Module):
    """DeepLabV3 of torchvision with its main output."""

    def __init__(self):
        super().__init__()
        import torchvision.models.segmentation as zoo
        self.model = zoo.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=21)

    def forward(self, x):
        return self.model(x)["out"]


def of_torchvision(name, **options):
    import torchvision.models as zoo
    return getattr(zoo, name)(**{"num_classes": 100} | options)


def of_timm(name, **options):
    import timm
    return timm.create_model(name, **{"num_classes": 100} | options)


def of_transformers(config, model, names, output="logits", **options):
    import transformers as hf
    config = getattr(hf, config)(**options)
    config.use_cache = False
    return Logits(getattr(hf, model)(config), names, output)


LLAMA = {"vocab_size": 8192, "hidden_size": 640, "intermediate_size": 1712, "num_hidden_layers": 12, "num_attention_heads": 10,
         "num_key_value_heads": 5, "max_position_embeddings": 1024, "tie_word_embeddings": True}
MASKED = ("input_ids", "attention_mask")
PAIR = ("input_ids", "decoder_input_ids")


def models():
    """By name, a function of the device type ("cpu" or "cuda") that returns the Case."""
    def vision(make, cpu, gpu, loss="cross-entropy", **more):
        return lambda device: Case(make, images(*(gpu if device == "cuda" else cpu)), loss, **more)

    def masked(config, model, cpu, gpu, **options):
        def case(device):
            rows, columns = gpu if device == "cuda" else cpu
            return Case(lambda: of_transformers(config, model, MASKED, **options),
                        (tokens(rows, columns, 30000), torch.ones(rows, columns, dtype=torch.long)), "cross-entropy")
        return case

    def decoder(config, model, vocabulary, cpu, gpu, **options):
        return lambda device: Case(lambda: of_transformers(config, model, ("input_ids",), vocab_size=vocabulary, **options),
                                   (tokens(*(gpu if device == "cuda" else cpu), vocabulary),), "cross-entropy")

    def own(make, cpu, gpu, args, loss="cross-entropy", **more):
        return lambda device: Case(make, args(*(gpu if device == "cuda" else cpu)), loss, **more)

    llama = {k: v for k, v in LLAMA.items() if k != "vocab_size"}
    return {
        "resnet50": vision(lambda: of_torchvision("resnet50"), (8, 128), (64, 224)),
        "convnext_tiny": vision(lambda: of_torchvision("convnext_tiny"), (8, 96), (32, 224)),
        "efficientnet_b0": vision(lambda: of_torchvision("efficientnet_b0"), (16, 96), (64, 224)),
        "mobilenet_v3": vision(lambda: of_torchvision("mobilenet_v3_large"), (16, 128), (128, 224)),
        "regnet_y_1_6gf": vision(lambda: of_torchvision("regnet_y_1_6gf"), (8, 128), (64, 224)),
        "densenet121": vision(lambda: of_torchvision("densenet121"), (8, 96), (32, 224)),
        "swin_t": vision(lambda: of_torchvision("swin_t"), (4, 128), (32, 224)),
        "vit_small": vision(lambda: of_timm("vit_small_patch16_224", img_size=128), (8, 128), (128, 128)),
        "mobilevit": vision(lambda: of_timm("mobilevit_s"), (8, 128), (32, 256)),
        "deeplabv3": vision(Segmenter, (4, 128), (16, 256)),
        "unet": vision(UNet, (4, 96), (16, 256)),
        "diffusion_unet": own(DiffusionUNet, (8, 32), (32, 64), lambda n, side: (*images(n, side), torch.rand(n) * 1000), "mse"),
        "dit": own(lambda: Dit(side=16), (8, 16), (64, 16),
                   lambda n, side: (*images(n, side, 4), torch.rand(n) * 1000, torch.randint(1000, (n,))), "mse"),
        "vae": vision(Vae, (64, 32), (256, 32), "mse"),
        "bert": masked("BertConfig", "BertForSequenceClassification", (4, 128), (32, 128)),
        "distilbert": masked("DistilBertConfig", "DistilBertForSequenceClassification", (4, 128), (32, 128)),
        "deberta": masked("DebertaV2Config", "DebertaV2ForSequenceClassification", (2, 128), (16, 128), vocab_size=30522, hidden_size=384,
                          num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536, relative_attention=True,
                          pos_att_type=["c2p", "p2c"], position_buckets=64, max_relative_positions=64),
        "gpt2": decoder("GPT2Config", "GPT2LMHeadModel", 8192, (2, 256), (4, 1024)),
        "llama": decoder("LlamaConfig", "LlamaForCausalLM", 8192, (2, 256), (4, 1024), **llama),
        "qwen3": decoder("Qwen3Config", "Qwen3ForCausalLM", 8192, (2, 256), (4, 1024), head_dim=64, **llama),
        "t5_small": own(lambda: of_transformers("T5Config", "T5ForConditionalGeneration", PAIR, vocab_size=8192, d_model=512,
                                                d_ff=2048, num_layers=6, num_heads=8, decoder_start_token_id=0),
                        (2, 128), (8, 512), lambda n, t: (tokens(n, t, 8192), tokens(n, t, 8192))),
        "whisper_tiny": own(lambda: of_transformers(
            "WhisperConfig", "WhisperForConditionalGeneration", ("input_features", "decoder_input_ids"), d_model=384,
            encoder_layers=4, decoder_layers=4, encoder_attention_heads=6, decoder_attention_heads=6, encoder_ffn_dim=1536,
            decoder_ffn_dim=1536, vocab_size=8192, max_source_positions=250, pad_token_id=0, bos_token_id=1, eos_token_id=2,
            decoder_start_token_id=1), (2, 64), (16, 128), lambda n, t: (torch.randn(n, 80, 500), tokens(n, t, 8192))),
        "lstm": own(lambda: Recurrent(nn.LSTM), (16, 64), (128, 128), lambda n, t: (tokens(n, t, 1000),)),
        "gru": own(lambda: Recurrent(nn.GRU), (16, 64), (128, 128), lambda n, t: (tokens(n, t, 1000),)),
        "transformer": own(lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True, norm_first=True),
                                                         6, enable_nested_tensor=False),
                           (4, 128), (64, 256), lambda n, t: (torch.randn(n, t, 256),), "mse"),
        "wavenet": own(WaveNet, (4, 1024), (16, 8192), lambda n, t: (torch.randn(n, 1, t),)),
        "pointnet": own(PointNet, (16, 256), (128, 1024), lambda n, t: (torch.randn(n, 3, t),)),
        "gcn": own(Gcn, (32, 64), (256, 128), lambda n, t: (torch.randn(n, t, 64), (torch.rand(n, t, t) < 0.1).float())),
        "tabm": own(TabM, (256, 0), (4096, 0), lambda n, _: (torch.randn(n, 100),)),
        "dlrm": own(Dlrm, (512, 0), (8192, 0), lambda n, _: (torch.randn(n, 13), torch.randint(10000, (n, 26))), "mse"),
    }

