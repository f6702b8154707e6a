"""Exports one of models.py: export.py NAME cpu|cuda FILE.pt2"""

import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import exporting  # noqa: E402
from models import models  # noqa: E402

name, device, file = sys.argv[1:]
torch.manual_seed(1)
case = models()[name](device)
exporting.save(case.make(), case.args, file, check=False)
