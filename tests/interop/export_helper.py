#!/usr/bin/env python3
"""Tests tools/gallop_export.py with models on which it, or a version of torch, is special.

    export_helper.py PROGRAM [--python PYTHON]

Each model is exported, and 'gallop model' compares the archive with Python. PYTHON is a Python with the package torch 2.9
or newer (default: GALLOP_TEST_PYTHON); without it the test is skipped.
"""

import json
import os
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
from checks import expect, program_and_python, run  # noqa: E402

MODELS = """
import json, struct, sys
sys.path.insert(0, sys.argv[1])
import torch
from torch import nn
import gallop_export


class Positional(nn.Module):
    # torch 2.9 writes guards of *args with names that do not exist.
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 3)

    def forward(self, *tensors):
        return self.a(tensors[0]) + self.a(tensors[1])


class Tied(nn.Module):
    # With strict=True, torch 2.9 lists the weight twice.
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.b(self.a(x).relu())


class Expanded(nn.Module):
    # Elements of the buffers share memory; a parameter has none.
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 3)
        self.empty = nn.Parameter(torch.zeros(0))
        self.register_buffer("row", torch.randn(1, 3).expand(2, 3))
        self.register_buffer("all", torch.randn(1).expand(2, 3))

    def forward(self, x):
        return self.a(x) + self.row.sum(0) * self.all[0] + self.empty.sum()


class Mapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 3)

    def forward(self, x):
        return torch.vmap(lambda row: row.sin() + row.sum())(self.a(x))


def equal(one, other):
    return all(torch.equal(value, other[name]) for name, value in one.items())


torch.manual_seed(1)
x = torch.randn(5, 4)
dynamic = {0: torch.export.Dim("batch", min=2, max=64)}
gallop_export.save(Positional(), (x, x + 1), "positional.pt2", dynamic_shapes={"tensors": (dynamic, dynamic)})
gallop_export.save(Tied(), (x,), "tied.pt2", strict=True)
model = Expanded()
state = {name: value.clone() for name, value in model.state_dict().items()}
gallop_export.save(model, (x,), "expanded.pt2")
assert equal(state, model.state_dict())

# Weights as of a run.
trained = {name: torch.randn(1).expand(value.shape) for name, value in state.items()}
header, data = {}, b""
for name, value in trained.items():
    content = value.contiguous().numpy().tobytes()
    header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(content)]}
    data += content
text = json.dumps(header).encode()
with open("model.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + data)
gallop_export.load_weights(".", model)
assert equal(trained, model.state_dict())
gallop_export.write_weights(".", "expanded.pt2", "trained.pt2")
from torch.export.pt2_archive._package import load_pt2
assert equal(trained, load_pt2("trained.pt2").exported_programs["train"].state_dict)

for strict in (False, True, None):
    try:
        gallop_export.save(Mapped(), (x,), "mapped.pt2", strict=strict)
        sys.exit("torch.vmap is not rejected")
    except gallop_export.ExportError as error:
        assert "the model uses torch.vmap" in str(error) and "\\n" not in str(error), error

# A gradient that is 0 but for rounding is compared on the scale of the largest one.
expected = torch.tensor(1.0), {"weight": torch.ones(2, 2), "bias": torch.tensor([1e-8, -2e-8]), "none": torch.zeros(0)}
rounded = torch.tensor(1.0), {**expected[1], "bias": torch.tensor([-2e-8, 1e-8])}
assert 0 < gallop_export._require_equal("train", 0, expected, rounded) < 1e-4
wrong = torch.tensor(1.0), {**expected[1], "bias": torch.tensor([1e-5, 0])}
try:
    gallop_export._require_equal("train", 0, expected, wrong)
    sys.exit("a wrong gradient is not found")
except gallop_export.ExportError as error:
    assert "1 of 3 parameters (first: bias)" in str(error), error
"""


def main():
    program, python = program_and_python(__doc__, "import torch", "torch")
    with tempfile.TemporaryDirectory(prefix="gallop-helper-") as folder:
        run([python, "-c", MODELS, os.path.join(os.path.dirname(ROOT), "tools")], folder)
        for name in ("positional", "tied", "expanded"):
            described = json.loads(run([program, "model", f"{name}.pt2", "--json"], folder))
            expect(f"errors of {name}", described["errors"], [])
            # Kernels of other versions of torch may round differently.
            expect(f"runs of {name} like Python's", [one.get("error", 1) < 1e-5 for one in described["sample"]], [True] * 2)


if __name__ == "__main__":
    main()
