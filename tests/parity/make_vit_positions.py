#!/usr/bin/env python3
"""Creates tests/fixtures/vit_positions.json: position embeddings of a ViT at other sizes, as timm resamples them.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install timm torch torchvision
    /tmp/venv/bin/python tests/parity/make_vit_positions.py tests/fixtures/vit_positions.json
"""

import json
import sys

import timm
import torch
from timm.layers import resample_abs_pos_embed


def main(file):
    torch.manual_seed(1)
    cases = []
    for tokens in (1, 0):
        positions = torch.randn(1, 4 * 4 + tokens, 4)
        for height, width in [(6, 6), (2, 2), (3, 5)]:
            resampled = resample_abs_pos_embed(positions, [height, width], num_prefix_tokens=tokens)
            cases.append({"class tokens": tokens, "height": height, "width": width,
                          "positions": positions.flatten().tolist(), "resampled": resampled.flatten().tolist()})
    with open(file, "w", encoding="utf-8") as out:
        json.dump({"made by": f"timm {timm.__version__}, torch {torch.__version__}", "cases": cases}, out)
        out.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
