#!/usr/bin/env python3
"""Creates tests/fixtures/packing.json: how full the rows are into which TRL packs sequences by `bfd`.

    python3 -m venv /tmp/venv
    /tmp/venv/bin/pip install trl
    /tmp/venv/bin/python tests/parity/make_packing.py tests/fixtures/packing.json
"""

import json
import random
import sys

import trl
from datasets import Dataset
from trl import pack_dataset


def case(rng, count, capacity, longest):
    lengths = [min(capacity, 1 + int(rng.expovariate(3 / longest))) for _ in range(count)]
    packed = pack_dataset(Dataset.from_dict({"input_ids": [[0] * length for length in lengths]}), capacity, "bfd")
    return {"capacity": capacity, "lengths": lengths, "tokens": sorted(len(row) for row in packed["input_ids"])}


def main():
    rng = random.Random(1)
    cases = [case(rng, count, capacity, longest)
             for count, capacity, longest in [(1, 8, 8), (40, 16, 16), (128, 64, 40), (200, 128, 300), (300, 100, 60)]]
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump({"made by": f"trl {trl.__version__}", "cases": cases}, file)
        file.write("\n")


main()
