"""Creates archives that recipes in tests train, with tools/gallop_export.py.

Run with Python and torch==2.11.0: make_exported_nets.py tests/fixtures/exported/nets

- pictures: images [3, 32, 32] in 6 classes.
- digits: images [1, 12, 12] in 10 classes; batch norm, dropout and stochastic depth.
- normed: as digits, with batch norm alone.
- letters: a causal language model of 32 tokens or fewer, of a vocabulary of 24. judged: it also computes its loss.
- reviews: padded texts in 2 classes, with an attention mask.
- flat, contiguous: images as digits; exported for batches of 16 alone, and with a view that needs contiguous memory.
- noisy: images as digits, with noise in training.
- siamese: pairs of rows of 16 numbers, [N, 2, 16], to an embedding of each, [N, 2, 8].
- random: as digits, but in training mode alone, so that evaluation is unknown.
"""

import pathlib
import sys
import warnings

import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import gallop_export  # noqa: E402


class Residual(nn.Module):
    """Skips its layers for some of the samples."""

    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = self.norm(self.conv(x))
        if self.training:
            kept = torch.empty(x.shape[0], 1, 1, 1, device=x.device).bernoulli_(0.8)
            y = y * kept / 0.8
        return F.relu(x + y)


class Digits(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.blocks = nn.Sequential(Residual(8), Residual(8))
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d((12, 1)), nn.Flatten(), nn.Dropout(0.1), nn.Linear(96, 10))

    def forward(self, images):
        return self.head(self.blocks(self.stem(images)))


class Flat(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(144, 10)

    def forward(self, images):
        return self.linear(images.reshape(16, 144))


class Contiguous(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.linear = nn.Linear(8 * 144, 10)

    def forward(self, images):
        return self.linear(F.relu(self.conv(images)).view(images.shape[0], -1))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x, mask):
        b, t, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind()
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        return x + self.proj(y.transpose(1, 2).reshape(b, t, width))


class Letters(nn.Module):
    def __init__(self, vocabulary=24, context=32, width=32):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.attention = Attention(width, heads=2)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, input_ids):
        x = self.tokens(input_ids) + self.positions(torch.arange(input_ids.shape[1], device=input_ids.device))
        return self.head(self.attention(x, None))


class Reviews(nn.Module):
    def __init__(self, vocabulary=64, width=16):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.attention = Attention(width, heads=2)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(width, 2)

    def forward(self, input_ids, attention_mask):
        x = self.attention(self.tokens(input_ids), attention_mask[:, None, None, :].bool())
        weights = attention_mask.to(x.dtype).unsqueeze(-1)
        return self.head(self.dropout((x * weights).sum(1) / weights.sum(1)))


class Judged(nn.Module):
    """Returns its loss and logits, as models of transformers do; the labels are the tokens."""

    def __init__(self):
        super().__init__()
        self.letters = Letters()

    def forward(self, input_ids, labels):
        logits = self.letters(input_ids)
        return {"loss": F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()), "logits": logits}


class Noise(nn.Module):
    def forward(self, x):
        return x + 0.1 * torch.randn_like(x) if self.training else x


def main(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    batch = Dim("batch", min=2, max=4096)
    images = torch.randn(16, 1, 12, 12, generator=torch.Generator().manual_seed(1))

    torch.manual_seed(1)
    pictures = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(),
                             nn.Linear(128, 6))
    gallop_export.save(pictures, (torch.randn(2, 3, 32, 32),), folder / "pictures.pt2")
    gallop_export.save(Digits(), (images,), folder / "digits.pt2")
    normed = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(),
                           nn.Linear(8 * 144, 10))
    gallop_export.save(normed, (images,), folder / "normed.pt2")
    gallop_export.save(Contiguous(), (images,), folder / "contiguous.pt2")
    tokens = torch.arange(64).reshape(4, 16) % 24
    gallop_export.save(Letters(), (tokens,), folder / "letters.pt2",
                       dynamic_shapes=({0: batch, 1: Dim("time", min=2, max=32)},))
    mask = (torch.arange(16) < torch.tensor([[16], [9], [3], [12]])).long()
    time = Dim("time", min=2, max=512)
    gallop_export.save(Reviews(), (tokens, mask), folder / "reviews.pt2",
                       dynamic_shapes=({0: batch, 1: time}, {0: batch, 1: time}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model, shapes in (("flat", Flat(), None), ("random", Digits(), ({0: batch},))):
            program = torch.export.export(model.train(), (images,), dynamic_shapes=shapes)
            gallop_export._strip(program)
            torch.export.save(program, folder / f"{name}.pt2")
    time = Dim("time", min=3, max=32)
    gallop_export.save(Judged(), (tokens, tokens), folder / "judged.pt2",
                       dynamic_shapes=({0: batch, 1: time}, {0: batch, 1: time}))
    noisy = nn.Sequential(Noise(), nn.Flatten(), nn.Linear(144, 10))
    gallop_export.save(noisy, (images,), folder / "noisy.pt2")
    torch.manual_seed(2)
    siamese = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
    gallop_export.save(siamese, (torch.randn(16, 2, 16),), folder / "siamese.pt2")


if __name__ == "__main__":
    main(*sys.argv[1:])
