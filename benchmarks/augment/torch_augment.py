"""Measures torchvision's transforms.v2 on uint8 tensors, and augmentations of timm on images of Pillow, in one thread;
prints one line of JSON.

Usage: torch_augment.py SIZE SECONDS NAME...     NAME as for bench_augment: the microseconds of CPU time for each image
"""
import json
import sys
import time

import torch
from PIL import Image
from timm.data import auto_augment
from torchvision.transforms import v2
from torchvision.transforms.functional import to_pil_image
from torchvision.transforms.v2 import functional as F

OPERATIONS = {
    "brightness": lambda image: F.adjust_brightness(image, 1.3),
    "saturation": lambda image: F.adjust_saturation(image, 1.3),
    "contrast": lambda image: F.adjust_contrast(image, 1.3),
    "sharpness": lambda image: F.adjust_sharpness(image, 1.3),
    "hue": lambda image: F.adjust_hue(image, 0.1),
    "posterize": lambda image: F.posterize(image, 4),
    "solarize": lambda image: F.solarize(image, 128),
    "autocontrast": F.autocontrast,
    "equalize": F.equalize,
    "rotate": lambda image: F.rotate(image, 9.0),
    "rotate-bilinear": lambda image: F.rotate(image, 9.0, interpolation=v2.InterpolationMode.BILINEAR),
}
CLASSES = {"rand-augment": v2.RandAugment, "trivial-augment-wide": v2.TrivialAugmentWide,
           "auto-augment": v2.AutoAugment, "aug-mix": v2.AugMix, "color-jitter": v2.ColorJitter,
           "gaussian-blur": v2.GaussianBlur, "random-perspective": v2.RandomPerspective}
TIMM = {"rand": auto_augment.rand_augment_transform, "augmix": auto_augment.augment_and_mix_transform}


def mixing_of(name, size):
    """A function that mixes a batch of 64 images, as bench_augment does."""
    batch = torch.randn(64, 3, size, size)
    if name.endswith("-bf16"):
        batch = batch.to(torch.bfloat16, memory_format=torch.channels_last)
    labels = torch.arange(64) % 10
    mixing = (v2.MixUp if name.startswith("mixup") else v2.CutMix)(num_classes=10)
    return lambda: mixing(batch, labels)


def transform_of(name):
    if name in OPERATIONS:
        return OPERATIONS[name]
    kind, *options = name.split()
    values = dict(option.split("=") for option in options)
    if "policy" in values:
        make = TIMM.get(values["policy"].split("-")[0], auto_augment.auto_augment_transform)
        return make(values["policy"], {"img_mean": (128, 128, 128), "interpolation": Image.BILINEAR})
    return CLASSES[kind](**{key: int(value) if value.isdigit() else float(value) for key, value in values.items()})


def make_images(size):
    """Gradients with noise, as bench_augment makes them."""
    generator = torch.Generator().manual_seed(1)
    at = torch.arange(size)
    images = []
    for _ in range(16):
        slope_x, slope_y = torch.randint(3, (2,), generator=generator).tolist()
        ramp = (slope_x * at[None, :] + slope_y * at[:, None]) * 100 // size
        base = torch.stack([40 + 20 * c + ramp for c in range(3)])
        images.append((base + torch.randint(16, base.shape, generator=generator)).to(torch.uint8))
    return images


def main():
    size, seconds, *names = sys.argv[1:]
    torch.set_num_threads(1)
    images = make_images(int(size))
    result = {}
    for name in names:
        if name.startswith(("mixup", "cutmix")):
            mix = mixing_of(name, int(size))
            count, begin = 0, time.thread_time()
            while time.thread_time() < begin + float(seconds):
                mix()
                count += 64
            result[name] = (time.thread_time() - begin) * 1e6 / count
            continue
        transform = transform_of(name)
        inputs = [to_pil_image(image) for image in images] if "policy" in name else images
        count, begin = 0, time.thread_time()
        while time.thread_time() < begin + float(seconds):
            for image in inputs:
                transform(image)
            count += len(inputs)
        result[name] = (time.thread_time() - begin) * 1e6 / count
    print(json.dumps(result))


if __name__ == "__main__":
    main()
