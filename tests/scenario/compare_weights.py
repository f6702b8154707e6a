#!/usr/bin/env python3
"""Whether two runs have the same weights and optimizer states but for rounding, at a step.

    compare_weights.py RUN RUN STEP     runs in runs/ of the current folder
"""
import json
import math
import struct
import sys


def tensors(run, step, kind):
    with open(f"runs/{run}/checkpoints/step-{step:08}/{kind}.safetensors", "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    values = {}
    for name, entry in header.items():
        begin, end = entry.get("data_offsets", (0, 0))
        if entry.get("dtype") == "F32":
            values[name] = (entry["shape"], struct.unpack(f"<{(end - begin) // 4}f", data[begin:end]))
    return values


one, two, step = sys.argv[1], sys.argv[2], int(sys.argv[3])
for kind in ("model", "state"):
    a, b = tensors(one, step, kind), tensors(two, step, kind)
    if not a or {name: shape for name, (shape, _) in a.items()} != {name: shape for name, (shape, _) in b.items()}:
        sys.exit(f"{kind}: other tensors")
    apart = math.sqrt(sum((x - y) ** 2 for name in a for x, y in zip(a[name][1], b[name][1])))
    size = math.sqrt(sum(x * x for _, values in a.values() for x in values))
    if apart > 1e-5 * size:
        sys.exit(f"{kind}: {apart} apart, of {size}")
