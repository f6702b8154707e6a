"""Prints what the reference implementation reads from a file: NAME DTYPE SHAPE HEX, sorted by name."""

import sys

from safetensors import deserialize

with open(sys.argv[1], "rb") as file:
    for name, info in sorted(deserialize(file.read())):
        shape = ",".join(str(size) for size in info["shape"])
        print(f"{name} {info['dtype']} [{shape}] {bytes(info['data']).hex()}")
