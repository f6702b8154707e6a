"""Results of a benchmark in a file, also one from which a later call continues an interrupted one."""

import json
import os
import sys


def write_results(path, results):
    """Replaces the file atomically; does nothing without a path."""
    if not path:
        return
    with open(f"{path}.new", "w") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    os.replace(f"{path}.new", path)


class ResultsFile:
    """The results so far, as `all`. The file is replaced atomically."""

    def __init__(self, path, budget=None, empty=None):
        """
        path: the file; None or empty if results are not stored
        budget: settings that all results of a file must share; exits if those of the file differ
        empty: further entries of a new file
        """
        budget = budget or {}
        self.path, self.all = path, {**budget, **(empty or {})}
        if path and os.path.exists(path):
            with open(path) as file:
                self.all = json.load(file)
        for name, value in budget.items():
            if self.all[name] != value:
                sys.exit(f"{path} was measured with {name} = {self.all[name]}, not {value}")

    def save(self):
        write_results(self.path, self.all)
