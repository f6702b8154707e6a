#!/usr/bin/env python3
"""Creates tests/fixtures/arrays: .npz and .npy files as NumPy writes them, of all dtypes, and arrays that are refused.

    python3 -m venv /tmp/venv
    /tmp/venv/bin/pip install numpy
    /tmp/venv/bin/python tests/parity/make_arrays.py tests/fixtures/arrays
"""

import json
import os
import shutil
import sys

import numpy


def main():
    folder = sys.argv[1]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(f"{folder}/refused")
    values = {}
    arrays = {}
    for name in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool"):
        kind = numpy.dtype(name)
        if kind.kind == "f":
            array = numpy.array([[0.1, -2.5, 6e-5], [3, 0.333, 65504]]).astype(kind)
        elif kind.kind == "b":
            array = numpy.array([[True, False, True], [False, False, True]])
        else:
            limits = numpy.iinfo(kind)
            array = numpy.array([[limits.min, limits.max, 1], [2, 3, 4]], kind)
        arrays[name] = array
        values[name] = array.astype(numpy.float32 if kind.kind == "f" else numpy.int64).tolist()
    numpy.savez(f"{folder}/types.npz", y=numpy.array([1, 0]), **arrays)
    numpy.savez_compressed(f"{folder}/compressed.npz", y=numpy.array([1, 0]), x=arrays["float32"])
    x = numpy.arange(24, dtype=numpy.float32).reshape(4, 2, 3)
    refused = {"big-endian": x.astype(">f4"), "fortran": numpy.asfortranarray(x), "complex": x.astype(numpy.complex64),
               "records": numpy.zeros(4, [("a", "f4"), ("b", "i4")]), "objects": numpy.array([1, "a", None, 2], object),
               "texts": numpy.array(["a", "b"]), "scalar": numpy.float32(3), "empty": numpy.zeros((0, 3), numpy.float32)}
    for name, array in refused.items():
        numpy.save(f"{folder}/refused/{name}.npy", array)
    with open(f"{folder}/version2.npy", "wb") as file:
        numpy.lib.format.write_array(file, x, version=(2, 0))
    with open(f"{folder}/values.json", "w", encoding="utf-8") as file:
        json.dump(values, file)
        file.write("\n")


if __name__ == "__main__":
    main()
