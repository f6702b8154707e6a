#!/usr/bin/env python3
"""Creates tests/fixtures/pixels.json: results of torchvision's transforms.v2.functional on uint8 tensors.

Needs: pip install torch==2.11.0 torchvision==0.26.0 (on a CPU with AVX-512, whose sums the blur has). The images are not stored: their values come
from an integer hash, here and in the test. Of the results there are CRC-32 sums of all bytes, in the order height,
width, channels, and some small images in full, as hexadecimal digits, so that a difference can be understood.

The coordinates of affine warps are a product of matrices, for which MKL uses other instructions on other CPUs; with
MKL_CBWR=COMPATIBLE it multiplies and adds in separate steps, as Gallop does on all of them.
"""
import json
import math
import os
import pathlib
import zlib

os.environ["MKL_CBWR"] = "COMPATIBLE"

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torchvision.transforms import v2  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402

SIZES = [(1, 1, 3), (1, 7, 3), (2, 2, 1), (3, 3, 3), (2, 9, 3), (5, 4, 1), (8, 8, 3), (13, 17, 3), (16, 16, 1),
         (21, 64, 3), (28, 28, 1), (31, 33, 3), (32, 32, 3), (48, 65, 3), (64, 64, 3), (75, 100, 1), (96, 96, 3),
         (130, 97, 3), (160, 213, 3), (224, 224, 3)]
SHOWN = (3, 5)  # The sizes that are stored in full.
NEAREST, BILINEAR = v2.InterpolationMode.NEAREST, v2.InterpolationMode.BILINEAR


def make_image(number, height, width, channels):
    """Noise, a gradient with some noise, or noise of little contrast, by the image's number."""
    at = np.arange(height * width * channels, dtype=np.uint64) + np.uint64(1 + 1_000_003 * number)
    at = (at * np.uint64(0x9E3779B1)) & np.uint64(0xFFFFFFFF)
    at ^= at >> np.uint64(15)
    at = (at * np.uint64(0x85EBCA77)) & np.uint64(0xFFFFFFFF)
    noise = ((at ^ (at >> np.uint64(13))) & np.uint64(255)).astype(np.int64).reshape(height, width, channels)
    y, x, c = np.ogrid[:height, :width, :channels]
    values = [noise, (3 * y + 2 * x + 40 * c + (noise & 15)) & 255, 60 + 20 * c + (noise & 63)][number % 3]
    return torch.from_numpy(values.astype(np.uint8)).permute(2, 0, 1).contiguous()


def shear(axis):
    def apply(image, magnitude, interpolation, fill):
        angles = [0.0, 0.0]
        angles[axis] = math.degrees(math.atan(magnitude))
        return F.affine(image, angle=0.0, translate=[0, 0], scale=1.0, shear=angles, interpolation=interpolation,
                        fill=fill, center=[0, 0])
    return apply


def translate(axis):
    def apply(image, pixels, interpolation, fill):
        shift = [0, 0]
        shift[axis] = int(pixels)
        return F.affine(image, angle=0.0, translate=shift, scale=1.0, shear=[0.0, 0.0], interpolation=interpolation,
                        fill=fill)
    return apply


def affine(image, angle, x, y, scale, shear_x, shear_y, interpolation, fill):
    return F.affine(image, angle=angle, translate=[x, y], scale=scale, shear=[shear_x, shear_y],
                    interpolation=interpolation, fill=fill)


def rotate(image, angle, interpolation, fill):
    return F.rotate(image, angle=angle, interpolation=interpolation, fill=fill)


def perspective(image, *arguments, interpolation, fill):
    """Moves each corner inwards by fractions of half the width and height."""
    height, width = image.shape[-2:]
    if min(height, width) == 1:
        return None
    corners = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
    moved = []
    for i, (x, y) in enumerate(corners):
        by_x, by_y = int(arguments[2 * i] * (width // 2)), int(arguments[2 * i + 1] * (height // 2))
        moved.append([x - by_x if i in (1, 2) else x + by_x, y - by_y if i >= 2 else y + by_y])
    return F.perspective(image, corners, moved, interpolation=interpolation, fill=fill)


def gaussian_blur(image, parameters):
    width, height, sigma_x, sigma_y = parameters
    if width // 2 >= image.shape[-1] or height // 2 >= image.shape[-2]:
        return None
    return F.gaussian_blur(image, [width, height], [sigma_x, sigma_y])


BLURS = [[3, 3, 0.1, 0.1], [3, 3, 2.0, 2.0], [5, 5, 0.73, 0.73], [7, 3, 1.31, 0.4], [1, 9, 1.0, 1.7], [15, 15, 1.9, 1.9],
         [17, 17, 2.7, 2.7], [23, 23, 0.9, 0.9], [33, 33, 5.1, 5.1]]
COLORS = {
    "brightness": (F.adjust_brightness, [0.1, 0.73, 1.9]),
    "saturation": (F.adjust_saturation, [0.0, 0.37, 1.81]),
    "contrast": (F.adjust_contrast, [0.0, 0.27, 1.9]),
    "sharpness": (F.adjust_sharpness, [0.0, 0.46, 1.99]),
    "hue": (F.adjust_hue, [-0.5, 0.037, 0.21]),
    "posterize": (F.posterize, [2, 4, 8]),
    "solarize": (F.solarize, [0.0, 110.5, 255.0]),
}
PLAIN = {"invert": F.invert, "autocontrast": F.autocontrast, "equalize": F.equalize}
WARPS = {
    "shear-x": (shear(0), [[-0.3], [0.09], [0.99]]),
    "shear-y": (shear(1), [[-0.3], [0.09], [0.99]]),
    "translate-x": (translate(0), [[-3.9], [1], [14.5]]),
    "translate-y": (translate(1), [[-3.9], [1], [14.5]]),
    "rotate": (rotate, [[-30.0], [9.0], [135.0], [90.0], [180.0], [-90.0], [360.0]]),
    "perspective": (perspective, [[0.5] * 8, [0, 0.1, 0.7, 0.2, 0.3, 0.4, 0.05, 0.6],
                                  [0.9, 0.8, 0.1, 0, 0.5, 0.2, 0.4, 0.3]]),
    "affine": (affine, [[10.0, 2, -1, 0.9, 5.0, -3.0], [-71.5, 0, 3, 1.7, 0.0, 12.0]]),
}


def cases():
    """Yields (the case's description, the function of an image)."""
    for name, (function, values) in COLORS.items():
        for value in values:
            yield {"name": name, "parameters": [value]}, lambda image, f=function, v=value: f(image, v)
    for name, function in PLAIN.items():
        yield {"name": name, "parameters": []}, function
    yield {"name": "grayscale", "parameters": []}, lambda image: F.rgb_to_grayscale(image, image.shape[0])
    for parameters in BLURS:
        yield {"name": "gaussian-blur", "parameters": parameters}, lambda image, p=parameters: gaussian_blur(image, p)
    for name, (function, lists) in WARPS.items():
        for parameters in lists:
            for mode in (NEAREST, BILINEAR):
                for fill in (None, 0, 127.5):
                    yield ({"name": name, "parameters": parameters, "interpolation": mode.value,
                            "fill": [] if fill is None else [fill]},
                           lambda image, f=function, p=parameters, m=mode, i=fill: f(image, *p, interpolation=m, fill=i))


def magnitudes():
    """The values of each bin in torchvision's policies, for images of 150 x 200 pixels."""
    spaces = {"rand-augment": (v2.RandAugment, 31), "trivial-augment-wide": (v2.TrivialAugmentWide, 31),
              "auto-augment": (v2.AutoAugment, 10), "aug-mix": (v2.AugMix, 10)}
    return {name: {operation: None if (values := magnitudes(bins, 150, 200)) is None else
                   [float(value) for value in values]
                   for operation, (magnitudes, _) in policy._AUGMENTATION_SPACE.items()}
            for name, (policy, bins) in spaces.items()}


def main():
    torch.set_num_threads(1)
    images = [make_image(number, *size) for number, size in enumerate(SIZES)]
    listed = []
    for case, function in cases():
        results = [function(image) for image in images]  # None: not for images of this size.
        results = [None if result is None else result.permute(1, 2, 0).contiguous().numpy().tobytes() for result in results]
        case["crc32"] = [None if result is None else zlib.crc32(result) for result in results]
        case["shown"] = [None if results[i] is None else results[i].hex() for i in SHOWN]
        listed.append(case)
    policies = {name: v2.AutoAugment(policy)._policies
                for name, policy in (("imagenet", v2.AutoAugmentPolicy.IMAGENET),
                                     ("cifar10", v2.AutoAugmentPolicy.CIFAR10),
                                     ("svhn", v2.AutoAugmentPolicy.SVHN))}
    content = {"sizes": SIZES, "shown": SHOWN, "cases": listed, "magnitudes": magnitudes(), "policies": policies}
    path = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "pixels.json"
    path.write_text(json.dumps(content, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n")
    print(f"{path.name}: {len(listed)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
