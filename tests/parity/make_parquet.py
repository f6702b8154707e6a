#!/usr/bin/env python3
"""Creates tests/fixtures/parquet: tables that pyarrow writes with every type, codec and encoding next to the CSV that
pandas writes of them, and images and texts that the library `datasets` writes.

    python3 -m venv /tmp/venv
    /tmp/venv/bin/pip install pyarrow==26.0.1 pandas datasets pillow
    /tmp/venv/bin/python tests/parity/make_parquet.py tests/fixtures/parquet
"""

import datetime
import decimal
import io
import json
import os
import shutil
import sys

import datasets
import numpy
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

ROWS = 40


def columns(rng):
    """Values of each type, with extremes, before some are made null."""
    days = [datetime.date(1969, 12, 31), datetime.date(2024, 2, 29), datetime.date(1583, 1, 1), datetime.date(9999, 12, 31)]
    moments = [datetime.datetime(1969, 12, 31, 23, 59, 59), datetime.datetime(2024, 2, 29, 12, 30, 15, 250000),
               datetime.datetime(1970, 1, 1), datetime.datetime(2100, 1, 1, 1, 1, 1, 1000)]
    times = [datetime.time(0, 0), datetime.time(23, 59, 59), datetime.time(12, 30, 15, 250000)]
    spans = [datetime.timedelta(seconds=-1), datetime.timedelta(days=3, seconds=5, milliseconds=1), datetime.timedelta(0)]
    seconds = [moment.replace(microsecond=0) for moment in moments]
    floats = [0.1, -2.5, 1e20, 1e-7, 3.0, 123456.789, -0.0, 1e16, 9999999999999998.0, 1e-4, 5e-324, 1.7976931348623157e308]
    words = ["a", "b c", 'quote " mark', "comma, here", "line\nend", "grün", "naïve; text"]
    ints = {f"int{bits}": [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 0, 7] for bits in (8, 16, 32)}
    unsigned = {f"uint{bits}": [2 ** bits - 1, 0, 9] for bits in (8, 16, 32)}
    result = {name: (values, getattr(pa, name)()) for name, values in (ints | unsigned).items()}
    result |= {
        "null": ([None], pa.null()),
        "bool": ([True, False, False], pa.bool_()),
        "int64": ([2 ** 53 - 1, -5, 0], pa.int64()),
        "ids": ([2 ** 63 - 1, 2 ** 53 + 1, 12], pa.int64()),
        "uint64": ([2 ** 64 - 1, 5], pa.uint64()),
        "half": (numpy.array([0.1, 2, -65504, 6e-8, 0.333], numpy.float16).tolist(), pa.float16()),
        "float": (numpy.array(floats[:6] + [3.4e38], numpy.float32).tolist(), pa.float32()),
        "double": (floats, pa.float64()),
        "decimal": ([decimal.Decimal("1.50"), decimal.Decimal("-99999.99"), decimal.Decimal("0.07")], pa.decimal128(9, 2)),
        "decimal256": ([decimal.Decimal("1.5000000001"), decimal.Decimal("-2.0000000000")], pa.decimal256(40, 10)),
        "string": (words, pa.string()),
        "large": (words[::-1], pa.large_string()),
        "view": (words[1:4], pa.string_view()),
        "code": (["007", "012", "99"], pa.string()),
        "dictionary": (["x", "y", "x", "z"], pa.dictionary(pa.int32(), pa.string())),
        "date32": (days, pa.date32()),
        "date64": (days, pa.date64()),
        "second": (seconds, pa.timestamp("s")),
        "milli": (moments, pa.timestamp("ms")),
        "micro": (moments, pa.timestamp("us")),
        "nano": (moments, pa.timestamp("ns")),
        "zone": (seconds, pa.timestamp("us", "UTC")),
        "time32": (times, pa.time32("ms")),
        "time64": (times, pa.time64("us")),
        "duration": (spans, pa.duration("us")),
    }
    arrays = {}
    for name, (values, kind) in result.items():
        picked = [values[i % len(values)] for i in range(ROWS)]
        picked = [None if rng.random() < 0.15 else value for value in picked]
        if name in ("half", "float", "double"):
            picked[5] = float("nan")
        arrays[name] = pa.array(picked, kind)
    return pa.table(arrays)


def encodings(table):
    """An encoding for each column, that is not the usual one."""
    chosen = {}
    for field in table.schema:
        kind = field.type
        if pa.types.is_floating(kind):
            chosen[field.name] = "BYTE_STREAM_SPLIT"
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
            chosen[field.name] = "DELTA_BYTE_ARRAY" if field.name == "string" else "DELTA_LENGTH_BYTE_ARRAY"
        elif pa.types.is_integer(kind) or pa.types.is_temporal(kind):
            chosen[field.name] = "DELTA_BINARY_PACKED"
        elif pa.types.is_boolean(kind):
            chosen[field.name] = "RLE"
    return chosen


def write_tables(folder, rng):
    table = columns(rng)
    view = table.schema.get_field_index("view")  # pandas cannot write it.
    plain = table.set_column(view, "view", table["view"].cast(pa.string()))
    frame = plain.to_pandas(types_mapper=pandas.ArrowDtype)
    frame.to_csv(f"{folder}/types.csv", index=False)
    kinds = {"none": {"compression": "none", "use_dictionary": False}, "snappy": {"compression": "snappy"},
             "gzip": {"compression": "gzip", "data_page_version": "2.0"}, "zstd": {"compression": "zstd"},
             "brotli": {"compression": "brotli", "data_page_version": "2.0"}, "lz4": {"compression": "lz4"},
             "encodings": {"compression": "none", "use_dictionary": False, "data_page_version": "2.0",
                           "column_encoding": encodings(table)}}
    for name, options in kinds.items():
        pq.write_table(table, f"{folder}/types-{name}.parquet", row_group_size=17, write_statistics=False, **options)
    # Row groups without rows, and with one; a struct, and columns that a table cannot have.
    with pq.ParquetWriter(f"{folder}/groups.parquet", nested().schema) as writer:
        rows = nested()
        for begin, end in ((0, 0), (0, 1), (1, 1), (1, 4), (4, 4)):
            writer.write_table(rows.slice(begin, end - begin))


def nested():
    return pa.table({"x": [1, 2, None, 4], "place": pa.array([{"city": "A", "zip": "01"}, None, {"city": None, "zip": "02"}, {"city": "B", "zip": None}]),
                     "list": [[1, 2], [], None, [3]], "deep": [[[1]], [], None, [[2], [3]]],
                     "map": pa.array([[("k", 1)], [], None, []], pa.map_(pa.string(), pa.int64())),
                     "bytes": [b"\x00\xff", b"", None, b"a"]})


def png(value):
    stream = io.BytesIO()
    Image.fromarray(numpy.full((4, 5, 3), value, numpy.uint8)).save(stream, "PNG")
    return stream.getvalue()


def write_images(folder):
    names = ["zebra", "ape", "never", "bee"]  # Not sorted, and one that does not occur.
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=names),
                                  "tags": datasets.Sequence(datasets.ClassLabel(names=["old", "wet"])), "size": datasets.Value("float32")})
    labels = [0, 1, 3, 0, 1, 3, 0, 1]
    data = datasets.Dataset.from_dict(
        {"image": [{"bytes": png(30 * i), "path": f"{i}.png"} for i in range(8)], "label": labels,
         "tags": [[], [0], [1], [1, 0], [], [0], [1], []], "size": [0.5 * i for i in range(8)]}, features=features)
    os.mkdir(f"{folder}/images")
    os.mkdir(f"{folder}/images/data")
    parts = {"train-00000-of-00002": range(0, 3), "train-00001-of-00002": range(3, 6), "test-00000-of-00001": range(6, 8)}
    for name, rows in parts.items():
        data.select(rows).to_parquet(f"{folder}/images/data/{name}.parquet", batch_size=2)
    # Without bytes, as for files beside the table.
    paths = pa.table({"image": pa.array([{"bytes": None, "path": "beside.png"}],
                                        pa.struct({"bytes": pa.binary(), "path": pa.string()})), "label": ["a"]})
    os.mkdir(f"{folder}/paths")
    pq.write_table(paths, f"{folder}/paths/train.parquet")
    with open(f"{folder}/paths/beside.png", "wb") as file:
        file.write(png(90))


def write_texts(folder):
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])})
    data = datasets.Dataset.from_dict({"text": [" good film ", "bad, \"bad\"\nfilm", "naïve"], "label": [1, 0, 1]}, features=features)
    os.mkdir(f"{folder}/texts")
    data.to_parquet(f"{folder}/texts/train.parquet")
    data.to_json(f"{folder}/texts.jsonl")


def main():
    folder = sys.argv[1]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    write_tables(folder, numpy.random.default_rng(7))
    write_images(folder)
    write_texts(folder)
    with open(f"{folder}/versions.json", "w", encoding="utf-8") as file:
        json.dump({"pyarrow": pa.__version__, "pandas": pandas.__version__, "datasets": datasets.__version__}, file)
        file.write("\n")


if __name__ == "__main__":
    main()
