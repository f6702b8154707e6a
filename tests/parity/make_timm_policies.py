#!/usr/bin/env python3
"""Creates tests/fixtures/timm_policies.json: the ranges, operations and policies of timm's automatic augmentations.

Needs: pip install torch==2.11.0 torchvision==0.26.0 timm==1.0.31

"arguments" has, for each operation, the argument at each of "levels", with the random sign positive and negative, as timm
computes it with its random numbers replaced. Translations are relative, by 0.45 and 0.3 of the side at level 10.
"blends" are results of AugMix's last two steps: the sum of chains, and the blend with the image.
"""
import json
import pathlib
import random

import numpy as np
from PIL import Image
from timm.data import auto_augment as timm

LEVELS = [i / 2 for i in range(21)] + [9.37, 12.5, 30.0]
RELATIVE = {"TranslateXRel", "TranslateYRel"}


def argument(function, level, sign, fraction):
    random.random = lambda: 0.9 if sign < 0 else 0.1
    result = function(level, {"translate_pct": fraction})
    return float(result[0] if isinstance(result, tuple) else result)


def arguments():
    listed = {}
    for name, function in timm.LEVEL_TO_ARG.items():
        if name in ("TranslateX", "TranslateY"):  # Absolute ones, which no policy has.
            continue
        if function is None:
            listed[name] = None
            continue
        for fraction in (0.45, 0.3) if name in RELATIVE else (0.45,):
            key = name if fraction == 0.45 else f"{name} by 0.3"
            listed[key] = [[argument(function, level, sign, fraction) for sign in (1, -1)] for level in LEVELS]
    return listed


def policies():
    return {name: [[[op.name, op.prob, op.magnitude] for op in group] for group in timm.auto_augment_policy(name)]
            for name in ("original", "originalr", "v0", "v0r", "3a")}


def choices():
    listed = {}
    for text in ("rand-m9", "rand-m9-inc1", "rand-tweights", "rand-t3a", "rand-t3aw"):
        made = timm.rand_augment_transform(text)
        weights = [1 / len(made.ops)] * len(made.ops) if made.choice_weights is None else list(made.choice_weights)
        listed[text] = [[op.name, weight] for op, weight in zip(made.ops, weights)]
    return listed


def blends():
    listed = []
    generator = np.random.RandomState(3)
    for width in (1, 3):
        image = generator.randint(0, 256, (4, 5, 3)).astype(np.uint8)
        chains = [generator.randint(0, 256, (4, 5, 3)).astype(np.uint8) for _ in range(width)]
        weights = np.float32(generator.dirichlet([1.0] * width))
        factor = np.float32(generator.beta(1, 1))
        mix = timm.AugMixAugment([lambda _, chain=chain: Image.fromarray(chain) for chain in chains], depth=1)
        drawn = iter(range(width))
        np.random.choice = lambda ops, depth, replace: [ops[next(drawn)]]
        result = mix._apply_basic(Image.fromarray(image), weights, factor)
        listed.append({"image": image.flatten().tolist(), "chains": [chain.flatten().tolist() for chain in chains],
                       "weights": [float(weight) for weight in weights], "factor": float(factor),
                       "result": np.array(result).flatten().tolist()})
    return listed


content = {"levels": LEVELS, "arguments": arguments(), "policies": policies(), "choices": choices(),
           "augmix": timm._AUGMIX_TRANSFORMS, "blends": blends(),
           "solarize_add": np.array(timm.solarize_add(Image.fromarray(np.arange(256, dtype=np.uint8)[None]), 60)).flatten().tolist()}
path = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "timm_policies.json"
path.write_text(json.dumps(content, separators=(",", ":")).replace('],"', '],\n"') + "\n")
print(path.name, path.stat().st_size, "bytes")
