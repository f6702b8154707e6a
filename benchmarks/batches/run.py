#!/usr/bin/env python3
"""Times epochs of a language model on separate texts: padded, grouped by length, packed, and with a bounded number of
tokens per batch.

    run.py build/release/gallop TEXT.txt [--rounds 3] [--json build/batches.json] [OPTION=VALUE ...]

The paragraphs of a text, between empty lines, are the documents, and their characters are the tokens. Each round trains
each mode once, one after the other, so that other load affects all of them; times are those after the first epoch, in
which steps are compiled. Prints medians, and how many times as many texts per second as with padding; CPU seconds say
more than wall seconds on a machine that does other work. All but max_tokens have the same texts in every step, and
--json has the losses of all steps to show that they are equal (for group_by_length, whose order differs, those of other
texts).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from results_file import ResultsFile  # noqa: E402

RECIPE = """\
data: {name: documents, path: documents.jsonl, context: %(context)d, batch_size: %(batch)d}
model: {name: gpt, layers: 4, width: 192, heads: 6}
optimizer: {name: adamw, lr: 0.001}
train: {epochs: %(epochs)d, checkpoint_every: never, evaluate_every: never, compile: "true"}
"""


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def train(command, folder):
    """Losses, and wall and CPU seconds of an epoch after the first one."""
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    began, ended, losses = None, None, []
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] != "step":
            continue
        losses.append(event["loss"])
        now = (event["epoch"], time.monotonic(), cpu_seconds(process.pid))
        if event["epoch"] >= 1 and began is None:
            began = now
        ended = now
    if process.wait() != 0:
        sys.exit(f"{' '.join(command)}: {process.stderr.read()}")
    epochs = ended[0] - began[0]
    return {"losses": losses, "wall": (ended[1] - began[1]) / epochs, "cpu": (ended[2] - began[2]) / epochs}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("text")
    parser.add_argument("options", nargs="*", help="options of every training")
    parser.add_argument("--context", type=int, default=256)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--max-tokens", type=int, default=8192)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", help="file of the raw results, which a later call continues")
    arguments = parser.parse_intermixed_args()
    modes = {"padded": [], "group_by_length": ["data.group_by_length=true"], "packing": ["data.packing=true"],
             "max_tokens": [f"data.max_tokens={arguments.max_tokens}"]}
    settings = {name: getattr(arguments, name) for name in ("context", "batch", "max_tokens", "epochs", "options")}
    results = ResultsFile(arguments.json, settings, {"modes": {mode: [] for mode in modes}})
    with tempfile.TemporaryDirectory() as folder:
        with open(arguments.text, encoding="utf-8") as file:
            documents = [part.strip("\n") for part in file.read().split("\n\n") if part.strip()]
        with open(os.path.join(folder, "documents.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(json.dumps({"text": document}) + "\n" for document in documents)
        with open(os.path.join(folder, "r.yaml"), "w") as file:
            file.write(RECIPE % vars(arguments))
        command = [os.path.abspath(arguments.program), "train", "r.yaml", "--json", *arguments.options]
        while min(map(len, results.all["modes"].values())) < arguments.rounds:
            for mode, options in modes.items():
                done = results.all["modes"][mode]
                done.append(train([*command, "--name", f"{mode}-{len(done)}", *options], folder))
                results.save()
    cpu = {mode: statistics.median(one["cpu"] for one in done) for mode, done in results.all["modes"].items()}
    wall = {mode: statistics.median(one["wall"] for one in done) for mode, done in results.all["modes"].items()}
    print(f"{len(documents):,} documents; seconds of an epoch, and speed-up over padded batches")
    for mode in modes:
        print(f"  {mode:16} CPU {cpu[mode]:7.2f} {cpu['padded'] / cpu[mode]:5.2f}x"
              f"   wall {wall[mode]:7.2f} {wall['padded'] / wall[mode]:5.2f}x")
    one, other = (results.all["modes"][mode][0]["losses"] for mode in ("padded", "packing"))
    print(f"  losses, packed and padded: the first step differs by {abs(one[0] / other[0] - 1):.1e}, later ones by up to "
          f"{max(abs(a / b - 1) for a, b in zip(one, other, strict=True)):.1e}")


if __name__ == "__main__":
    main()
