"""Makes small data sets with plain Python, so that scenarios need neither downloads nor packages.

Images of class k are noise around a bright bar at row k, so that a model can learn them.
"""

import os
import random
import struct
import tarfile
import io
import zlib


def pixels(rng, label, size, channels):
    rows = []
    for y in range(size):
        base = 200 if y == label % size else 40
        rows.append(bytes(min(255, max(0, base + rng.randrange(-30, 31))) for _ in range(size * channels)))
    return rows


def png(rows, size, channels):
    def chunk(kind, body):
        return (struct.pack(">I", len(body)) + kind + body +
                struct.pack(">I", zlib.crc32(kind + body)))
    color = 2 if channels == 3 else 0
    header = struct.pack(">IIBBBBB", size, size, 8, color, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + row for row in rows))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) +
            chunk(b"IEND", b""))


def make_idx(folder, count, size=12, classes=10):
    """The four files of MNIST, with `count` training and `count // 2` test images."""
    rng = random.Random(1)
    for part, images in (("train", count), ("t10k", count // 2)):
        labels = bytes(i % classes for i in range(images))
        with open(os.path.join(folder, f"{part}-labels-idx1-ubyte"), "wb") as file:
            file.write(struct.pack(">II", 0x801, images) + labels)
        with open(os.path.join(folder, f"{part}-images-idx3-ubyte"), "wb") as file:
            file.write(struct.pack(">IIII", 0x803, images, size, size))
            for label in labels:
                file.write(b"".join(pixels(rng, label, size, 1)))


def make_folder(folder, count, size=12, classes=4):
    """PARTS/class_K/N.png for training and test."""
    rng = random.Random(2)
    for part, images in (("train", count), ("test", count // 2)):
        for i in range(images):
            target = os.path.join(folder, part, f"class_{i % classes}")
            os.makedirs(target, exist_ok=True)
            with open(os.path.join(target, f"{i:05}.png"), "wb") as file:
                file.write(png(pixels(rng, i % classes, size, 3), size, 3))


def make_tar(folder, count, size=12, classes=4):
    """WebDataset shards train-0000.tar, train-0001.tar and test-0000.tar with .png and .cls."""
    rng = random.Random(3)
    for name, images in (("train-0000", count // 2), ("train-0001", count // 2), ("test-0000", count // 2)):
        with tarfile.open(os.path.join(folder, name + ".tar"), "w") as tar:
            for i in range(images):
                members = ((".png", png(pixels(rng, i % classes, size, 3), size, 3)),
                           (".cls", str(i % classes).encode()))
                for ending, body in members:
                    info = tarfile.TarInfo(f"{name}/{i:05}{ending}")
                    info.size = len(body)
                    tar.addfile(info, io.BytesIO(body))


def make_text(folder, count):
    """`count` lines of a small grammar in one file, text.txt."""
    rng = random.Random(4)
    with open(os.path.join(folder, "text.txt"), "w", encoding="utf-8") as file:
        for _ in range(count):
            file.write(f"{rng.choice(['the', 'a'])} {rng.choice(['horse', 'mare', 'foal'])} "
                       f"{rng.choice(['runs', 'gallops', 'rests'])}.\n")


MAKERS = {"idx": make_idx, "folder": make_folder, "tar": make_tar, "text": make_text}


def make(parent, words):
    """`words`: kind, folder, count, then optional name=number settings."""
    kind, name, count = words[:3]
    folder = os.path.join(parent, name)
    os.makedirs(folder, exist_ok=True)
    settings = {key: int(value) for key, value in (word.split("=") for word in words[3:])}
    MAKERS[kind](folder, int(count), **settings)
