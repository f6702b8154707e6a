"""Creates tests/fixtures/python.safetensors with the reference implementation.

Run with Python, torch==2.11.0 and safetensors==0.8.0: make_safetensors.py tests/fixtures
"""

import pathlib
import sys

import torch
from safetensors.torch import save_file

DTYPES = {
    "bool": torch.bool, "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "u16": torch.uint16,
    "f16": torch.float16, "bf16": torch.bfloat16, "i32": torch.int32, "u32": torch.uint32,
    "f32": torch.float32, "f64": torch.float64, "i64": torch.int64, "u64": torch.uint64,
    "c64": torch.complex64, "f8_e4m3": torch.float8_e4m3fn, "f8_e5m2": torch.float8_e5m2,
}

# 0, 1, 0, 1, 0, 1 in the shape [2, 3], which every type represents exactly.
tensors = {name: torch.tensor([[0, 1, 0], [1, 0, 1]], dtype=torch.float32).to(dtype)
           for name, dtype in DTYPES.items()}
tensors["scalar"] = torch.tensor(2.5)
tensors["empty"] = torch.zeros(3, 0)
tensors["name with \u00fcmlaut/and.dots"] = torch.tensor([-7], dtype=torch.int64)
save_file(tensors, pathlib.Path(sys.argv[1]) / "python.safetensors", {"format": "pt", "note": "\u00e4"})
