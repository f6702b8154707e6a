"""Creates an archive that lists a tied weight once for each module that has it, as torch 2.9 alone does with strict=True.

Run with Python and torch==2.9.1: make_exported_tied.py tests/fixtures/exported/nets

- tied: images as digits; two residual blocks, in each of which two layers have the same weight.
"""

import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import gallop_export  # noqa: E402


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, width), nn.Linear(width, width)
        self.down.weight = self.up.weight

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(144, 12)
        self.blocks = nn.ModuleList([Block(12), Block(12)])
        self.head = nn.Linear(12, 10)

    def forward(self, images):
        x = self.stem(images.flatten(1))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def main():
    torch.manual_seed(1)
    gallop_export.save(Tied(), (torch.randn(4, 1, 12, 12),), f"{sys.argv[1]}/tied.pt2", strict=True)


if __name__ == "__main__":
    main()
