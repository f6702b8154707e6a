"""Trainings for benchmarks: a recipe, and the events that the program prints."""

import json
import os
import subprocess


class Failed(SystemExit):
    """A training that ended with an error; ends the benchmark if it is not caught. `errors` is the error output of the
    program."""

    def __init__(self, command, errors):
        super().__init__(f"{' '.join(command)}: {errors}")
        self.errors = errors


class Trainer:
    """Trains a model in a folder."""

    def __init__(self, program, recipe, folder):
        self.program, self.folder = os.path.abspath(program), folder
        self.recipe = os.path.join(folder, "recipe.yaml")
        with open(self.recipe, "w") as file:
            file.write(recipe)

    def train(self, *options):
        """All events of --json; the last one is the end of the training."""
        command = [self.program, "train", self.recipe, *options, "--json", "--runs", self.folder]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(command, done.stderr.strip())
        return [json.loads(line) for line in done.stdout.splitlines()]


def recipe_of(model, optimizer, batch, source, rest):
    return f"data: {{{source}, batch_size: {batch}}}\nmodel: {model}\noptimizer: {optimizer}\n{rest}"


def source_for(takes_text, data, validation):
    """The first data source that suits a model, in the syntax of a recipe; None if there is none.

    data: fashion-mnist, text files (*.txt), and folders or tar files of classes with images
    validation: fraction of a text for the validation split
    """
    for source in data:
        is_text = source.endswith(".txt")
        if is_text != takes_text:
            continue
        path = json.dumps(os.path.abspath(source))
        if is_text:
            return f"name: text, path: {path}, context: 128, validation: {validation}"
        if source == "fashion-mnist":
            return "name: fashion-mnist"
        return f"name: {'folder' if os.path.isdir(source) else 'tar'}, path: {path}, validation: 0.1"
    return None
