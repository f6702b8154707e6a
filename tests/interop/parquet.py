#!/usr/bin/env python3
"""Tests that trainings on Parquet and JSON Lines as pyarrow, pandas and the library `datasets` write them have the weights
of those on CSV and on image files, bit for bit.

    parquet.py PROGRAM [--python PYTHON]

PYTHON is a Python with pyarrow, pandas, datasets and Pillow (default: GALLOP_TEST_PYTHON); without it the test is
skipped.
"""

import glob
import os
import tempfile

from checks import expect, program_and_python, run

TABLES = """
import numpy, pandas, pyarrow as pa, pyarrow.parquet as pq
rng = numpy.random.default_rng(3)
rows = 400
size = rng.uniform(20, 200, rows)
frame = pandas.DataFrame({
    "size": size, "rooms": pandas.array(rng.integers(1, 8, rows), "Int64"), "half": rng.normal(size=rows).astype("float32"),
    "kind": pandas.Categorical(rng.choice(["flat", "house", "castle"], rows)), "garden": rng.random(rows) < 0.5,
    "built": pandas.Timestamp("2020-01-31") + pandas.to_timedelta(rng.integers(0, 900, rows), "D"),
    "zip": [f"0{i % 7}100" for i in range(rows)], "price": 1000 * size + rng.normal(0, 10, rows)})
for name in ("size", "rooms", "kind"):
    frame.loc[rng.random(rows) < 0.1, name] = None
table = pa.Table.from_pandas(frame, preserve_index=False)
table.to_pandas(types_mapper=pandas.ArrowDtype).to_csv("a.csv", index=False)
frame.assign(half=frame["half"].astype("float64")).to_json("a.jsonl", orient="records", lines=True, date_format="iso", double_precision=15)
for codec in ("none", "snappy", "gzip", "zstd", "brotli", "lz4"):
    for version in ("1.0", "2.0"):
        pq.write_table(table, f"{codec}-{version[0]}.parquet", compression=codec, data_page_version=version, row_group_size=90)
"""

IMAGES = """
import os
import numpy, datasets
from PIL import Image
rng = numpy.random.default_rng(4)
for label in ("ape", "bee", "cow"):
    os.makedirs(f"pictures/train/{label}")
    for i in range(20):
        pixels = rng.integers(0, 256, (8, 8, 3), numpy.uint8)
        Image.fromarray(pixels).save(f"pictures/train/{label}/{i:02}.png")
data = datasets.load_dataset("imagefolder", data_dir="pictures", split="train", cache_dir="cache")
os.makedirs("hub/data")
for shard in range(3):
    data.shard(3, shard, contiguous=True).to_parquet(f"hub/data/train-0000{shard}-of-00003.parquet", batch_size=7)
"""


def weights(folder, name):
    with open(os.path.join(folder, "runs", name, "checkpoints", "latest"), encoding="utf-8") as file:
        latest = file.read().strip()
    with open(os.path.join(folder, "runs", name, "checkpoints", latest, "model.safetensors"), "rb") as file:
        return file.read()


def compare(program, folder, commands):
    """Trains by each command, [name, *words], and compares the weights with those of the first."""
    for name, *words in commands:
        run([program, "train", *words, "--name", name, "--quiet", "train.precision=fp32"], folder)
        expect(f"the weights of {name}", weights(folder, name) == weights(folder, commands[0][0]), True)


def main():
    program, python = program_and_python(__doc__, "import datasets, pandas, PIL, pyarrow", "pyarrow, pandas and datasets")
    with tempfile.TemporaryDirectory() as folder:
        run([python, "-c", TABLES], folder)
        files = ["a.csv", "a.jsonl"] + sorted(os.path.basename(name) for name in glob.glob(f"{folder}/*.parquet"))
        expect("the number of tables", len(files), 14)
        compare(program, folder, [[name.replace(".", "-"), name, "--target", "price", "train.epochs=3"] for name in files])
        run([python, "-c", IMAGES], folder)
        recipe = "data: {name: %s, path: %s, batch_size: 16, augment: [random-horizontal-flip]}\nmodel: {name: mlp}\ntrain: {epochs: 2}\n"
        for name, data in (("folder", "pictures"), ("image-table", "hub")):
            with open(os.path.join(folder, f"{name}.yaml"), "w", encoding="utf-8") as file:
                file.write(recipe % (name, data))
        compare(program, folder, [["of-files", "folder.yaml"], ["of-parquet", "image-table.yaml"]])


if __name__ == "__main__":
    main()
