"""Results of a benchmark, in a file from which a call that was stopped goes on."""

import json
import os
import sys


class ResultsFile:
    """What was measured so far, as `all`. The file is replaced in one step, so that it is always whole."""

    def __init__(self, path, budget=None, empty=None):
        """
        path: of the file; None or empty where results are not kept
        budget: what all results of a file were measured with; a file of another one ends the program
        empty: what a new file has besides
        """
        budget = budget or {}
        self.path, self.all = path, {**budget, **(empty or {})}
        if path and os.path.exists(path):
            with open(path) as file:
                self.all = json.load(file)
        for name, value in budget.items():
            if self.all[name] != value:
                sys.exit(f"{path} is of {self.all[name]} {name}, not of {value}")

    def save(self):
        if not self.path:
            return
        with open(self.path + ".new", "w") as file:
            json.dump(self.all, file, indent=1)
        os.replace(self.path + ".new", self.path)
