"""Results of a benchmark in a file, from which a later call continues an interrupted one."""

import json
import os
import sys


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
        if not self.path:
            return
        with open(self.path + ".new", "w") as file:
            json.dump(self.all, file, indent=1)
        os.replace(self.path + ".new", self.path)
