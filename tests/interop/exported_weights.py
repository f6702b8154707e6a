#!/usr/bin/env python3
"""Tests that Python takes back the weights of an exported model that was trained.

    exported_weights.py PROGRAM [--python PYTHON]

Exports a model, trains it by 'gallop train', and loads the weights of the best checkpoint into the model by
load_weights(), and into a copy of the archive by write_weights(): the model, torch.export.load() and 'gallop evaluate'
must then give the same loss. PYTHON is a Python with the package torch (default: GALLOP_TEST_PYTHON); without it the test
is skipped.
"""

import json
import os
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "scenario"))
import make_data  # noqa: E402
from checks import expect, program_and_python, run  # noqa: E402

RECIPE = """\
data: {name: mnist, path: tiny, batch_size: 16, normalize: none}
model: {name: exported, file: net.pt2}
optimizer: {name: adamw, lr: 0.01}
train: {epochs: 2, precision: fp32}
"""

MODEL = """
import sys
sys.path[:0] = sys.argv[1:3]
import torch
import gallop_export
from make_exported_nets import Digits
torch.manual_seed(3)
model = Digits()
"""

EXPORT = MODEL + """
gallop_export.save(model, (torch.randn(4, 1, 12, 12),), "net.pt2")
"""

LOAD = MODEL + """
import json, struct
def read(path, header):
    data = open(path, "rb").read()
    return torch.frombuffer(bytearray(data[header:]), dtype=torch.uint8)
images = read("tiny/t10k-images-idx3-ubyte", 16).reshape(-1, 1, 12, 12).float() / 255
labels = read("tiny/t10k-labels-idx1-ubyte", 8).long()
loss = lambda logits: torch.nn.functional.cross_entropy(logits, labels).item()
before = loss(model.eval()(images))
gallop_export.load_weights("runs/net-1", model)
gallop_export.write_weights("runs/net-1", "net.pt2", "trained.pt2")
from torch.export.pt2_archive._package import load_pt2
state = load_pt2("trained.pt2").exported_programs["train"].state_dict
equal = all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
print(json.dumps({"before": before, "loaded": loss(model.eval()(images)), "equal": equal}))
"""


def main():
    program, python = program_and_python(__doc__, "import torch", "torch")
    folders = [os.path.join(os.path.dirname(ROOT), "tools"), os.path.join(ROOT, "parity")]
    with tempfile.TemporaryDirectory(prefix="gallop-weights-") as folder:
        make_data.make(folder, ["idx", "tiny", "160"])
        with open(os.path.join(folder, "net.yaml"), "w") as file:
            file.write(RECIPE)
        run([python, "-c", EXPORT, *folders], folder)
        run([program, "train", "net.yaml", "--quiet"], folder)
        wanted = json.loads(run([program, "evaluate", "net-1", "--split", "test", "--checkpoint", "best", "--json"], folder))["loss"]
        found = json.loads(run([python, "-c", LOAD, *folders], folder))
        expect("the archive has the model's weights", found["equal"], True)
        if abs(found["loaded"] - wanted) > 1e-6 or abs(found["before"] - wanted) < 0.1:
            sys.exit(f"the loss is {found['loaded']}, and was {found['before']} before; expected {wanted}")
        # The results that the archive had are those of other weights.
        described = json.loads(run([program, "model", "trained.pt2", "--json"], folder))
        expect("comparisons with Python", [one["mode"] for one in described["sample"] if "error" in one], [])
        expect("modes that run", [one["mode"] for one in described["sample"]], ["train", "eval"])


if __name__ == "__main__":
    main()
