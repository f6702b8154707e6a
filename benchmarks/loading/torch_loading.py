"""Measures torch.utils.data.DataLoader with torchvision on a folder of classes; prints one line of JSON.

Usage: torch_loading.py FOLDER crop|resized-crop WORKERS BATCH SECONDS
"""
import json
import sys
import time

import torch
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


def pipeline(kind):
    normalize = [transforms.ToTensor(), transforms.Normalize((0.4914, 0.4822, 0.4465), (0.247, 0.243, 0.262))]
    if kind == "crop":
        return transforms.Compose([transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(), *normalize])
    return transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), *normalize])


def batches(loader):
    while True:
        yield from loader


def main():
    folder, kind, workers, batch, seconds = sys.argv[1:]
    torch.set_num_threads(1)
    images = datasets.ImageFolder(folder, pipeline(kind))
    loader = DataLoader(images, batch_size=int(batch), shuffle=True, num_workers=int(workers),
                        persistent_workers=int(workers) > 0)
    stream = batches(loader)
    for _ in range(6):
        next(stream)
    begin = time.monotonic()
    count = 0
    while time.monotonic() < begin + float(seconds):
        count += len(next(stream)[0])
    took = time.monotonic() - begin
    print(json.dumps({"samples_per_second": count / took, "samples": count}))


if __name__ == "__main__":
    main()
