"""Creates tests/fixtures/surface.json: interpolation of scattered points by SciPy.

    PYTHON tests/parity/make_surface.py tests/fixtures

PYTHON needs SciPy, whose version is recorded in the file. Values are those of scipy.interpolate.LinearNDInterpolator at
the centers of cells, row by row; null outside of the triangles.
"""

import json
import pathlib
import sys

import numpy as np
import scipy
from scipy.interpolate import LinearNDInterpolator

COLUMNS, ROWS = 16, 10


def main():
    # Nodes of a fine grid, so that both programs use the same triangles.
    points = np.random.default_rng(3).integers(0, 2**14, (40, 2)) / 2**14
    values = np.sin(5 * points[:, 0]) + points[:, 1] ** 2
    x, y = np.meshgrid((np.arange(COLUMNS) + 0.5) / COLUMNS, (np.arange(ROWS) + 0.5) / ROWS)
    sampled = LinearNDInterpolator(points, values)(x, y).ravel()
    stored = {"made_by": f"SciPy {scipy.__version__}", "columns": COLUMNS, "rows": ROWS, "x": points[:, 0].tolist(),
              "y": points[:, 1].tolist(), "values": values.tolist(),
              "sampled": [None if np.isnan(value) else value for value in sampled.tolist()]}
    (pathlib.Path(sys.argv[1]) / "surface.json").write_text(json.dumps(stored) + "\n")


main()
