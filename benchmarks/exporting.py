"""Archives of models for benchmarks, by tools/gallop_export.py."""

import contextlib
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import gallop_export  # noqa: E402


def save(model, inputs, file, **options):
    """As gallop_export.save(), without warnings, and with its output as messages."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
        warnings.simplefilter("ignore")
        gallop_export.save(model, inputs, str(file), **options)
