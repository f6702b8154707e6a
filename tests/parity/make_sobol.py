"""Creates tests/fixtures/sobol.json: points of SciPy's Sobol sequence in 128 dimensions, in units of 2^-32.

Run with Python and scipy==1.17: make_sobol.py tests/fixtures
"""

import json
import pathlib
import sys

from scipy.stats import qmc

DIMENSIONS = 128
FIRST = (0, 1000, 123_456)  # The first index of four points each.

points = {}
for first in FIRST:
    sequence = qmc.Sobol(DIMENSIONS, scramble=False, bits=32)
    if first:
        sequence.fast_forward(first)
    for i in range(4):
        points[first + i] = [int(number * 2**32) for number in sequence.random(1)[0]]
path = pathlib.Path(sys.argv[1]) / "sobol.json"
path.write_text(json.dumps(points) + "\n")
