#!/usr/bin/env python3
"""Creates tests/fixtures/mixing.safetensors: MixUp and CutMix by torchvision and timm.

Needs: pip install torch==2.11.0 torchvision==0.26.0 timm==1.0.31 safetensors

Each case has its input and labels, the lambdas and centers of boxes that the library drew (which this script records or
replaces), and the library's images and targets. Names: LIBRARY.TRANSFORM.CASE.{images,labels,lambda,center,mixed,target}.
"""
import pathlib

import numpy as np
import torch
from safetensors.torch import save_file
from timm.data.mixup import Mixup
from torchvision.transforms import v2

CLASSES = 7
tensors = {}


def make_batch(rows, height, width, seed):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(rows, 3, height, width, generator=generator),
            torch.randint(0, CLASSES, (rows,), generator=generator))


def keep(name, **values):
    for key, value in values.items():
        tensors[f"{name}.{key}"] = torch.as_tensor(value).clone().contiguous()


def torchvision_cases():
    for number, (rows, height, width, lam, center) in enumerate(
            [(4, 9, 12, 0.3, (4, 5)), (5, 8, 8, 0.71, (0, 7)), (1, 6, 7, 0.2, (3, 3)), (6, 16, 5, 0.05, (15, 0))]):
        images, labels = make_batch(rows, height, width, number)
        mixup = v2.MixUp(alpha=1.0, num_classes=CLASSES)
        mixup._dist = type("Fixed", (), {"sample": lambda self, shape, lam=lam: torch.tensor([lam], dtype=torch.float64)})()
        mixed, target = mixup(images.clone(), labels)
        keep(f"torchvision.mixup.{number}", images=images, labels=labels, mixed=mixed, target=target,
             **{"lambda": np.array([lam]), "center": np.array([[0, 0]])})

        cutmix = v2.CutMix(alpha=1.0, num_classes=CLASSES)
        cutmix._dist = mixup._dist
        drawn = iter([center[1], center[0]])  # torchvision draws x first.
        randint = torch.randint
        torch.randint = lambda *arguments, **options: torch.tensor([next(drawn)])
        try:
            mixed, target = cutmix(images.clone(), labels)
        finally:
            torch.randint = randint
        keep(f"torchvision.cutmix.{number}", images=images, labels=labels, mixed=mixed, target=target,
             **{"lambda": np.array([lam]), "center": np.array([center])})


class Recorder:
    """Stands in for numpy.random in timm, and records what is drawn."""

    def __init__(self, seed):
        self.random, self.lambdas, self.centers = np.random.RandomState(seed), [], []

    def rand(self, *shape):
        return self.random.rand(*shape)

    def beta(self, a, b, size=None):
        drawn = self.random.beta(a, b, size=size)
        self.lambdas.append(np.atleast_1d(drawn))
        return drawn

    def randint(self, low, high, size=None):
        drawn = self.random.randint(low, high, size=size)
        self.centers.append(int(drawn))
        return drawn


def timm_cases():
    number = 0
    for mode in ("batch", "pair", "elem"):
        for rows, height, width in ((4, 9, 12), (6, 7, 16)):
            for transform in ("mixup", "cutmix"):
                images, labels = make_batch(rows, height, width, 100 + number)
                recorder = Recorder(number)
                mixup = Mixup(mixup_alpha=0.8 if transform == "mixup" else 0.0,
                              cutmix_alpha=1.0 if transform == "cutmix" else 0.0, mode=mode, label_smoothing=0.0,
                              num_classes=CLASSES)
                real, np.random = np.random, recorder
                try:
                    mixed, target = mixup(images.clone(), labels)
                finally:
                    np.random = real
                lambdas = np.concatenate(recorder.lambdas)
                if mode != "batch":
                    lambdas = lambdas.astype(np.float32).astype(np.float64)
                centers = recorder.centers or [0, 0] * len(lambdas)  # y, then x.
                keep(f"timm-{mode}.{transform}.{number}", images=images, labels=labels, mixed=mixed, target=target,
                     **{"lambda": lambdas, "center": np.array(centers).reshape(-1, 2)})
                number += 1


torchvision_cases()
timm_cases()
folder = pathlib.Path(__file__).resolve().parent.parent / "fixtures"
save_file(tensors, folder / "mixing.safetensors")
print(len(tensors), "tensors")
