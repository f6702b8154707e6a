"""Exports the model of a workload of torch_step.py: export.py WORKLOAD FILE.pt2"""

import pathlib
import sys

import torch
import torch_step

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import exporting  # noqa: E402


def export(workload, file, seed=1):
    """Writes the archive, with the initial weights of a seed."""
    torch.manual_seed(seed)
    model, _, inputs, _ = torch_step.make_workload(workload, by_bmm=False)
    exporting.save(model, (inputs[0],), file)


if __name__ == "__main__":
    export(*sys.argv[1:])
