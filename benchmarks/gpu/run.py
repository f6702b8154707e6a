#!/usr/bin/env python3
"""Compares trainings of Gallop and of PyTorch on a GPU, alternately in one call.

    run.py PROGRAM [--only gpt2,resnet20] [--rounds 3] [--steps 240] [--json FILE]

Needs a GPU and a Python with PyTorch (this one or --python). All trainings are in bf16. Gallop: 'gallop train',
compiled and eager, with loader, checks and logging; its steps are deterministic. PyTorch: bare steps over four batches
on the GPU, with a fused optimizer, fused attention and channels_last; eager, deterministic as Gallop's, and by
torch.compile. A round runs each once. Reports the median, minimum and maximum of samples per second, and the median of
the ratios to Gallop's compiled step within a round.
"""

import argparse
import json
import os
import platform
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(HERE))
from results_file import ResultsFile

BATCHES = {"gpt2": 16, "resnet20": 512}
RECIPES = {
    "gpt2": """data: {name: text, path: FOLDER/text.txt, batch_size: 16, context: 1024}
model: {name: gpt, layers: 12, width: 768, heads: 12}
optimizer: {name: adamw, lr: 3.0e-4, weight_decay: 0.1}
""",
    "resnet20": """data: {name: mnist, path: FOLDER, batch_size: 512}
model: {name: resnet, depth: 20, stem: cifar}
optimizer: {name: sgd, lr: 0.01, momentum: 0.9}
""",
}
TRAIN = "train: {device: cuda, precision: bf16, channels_last: IMAGES, evaluate_every: never, checkpoint_every: never}\n"
FORMS = ("gallop", "gallop plain", "torch", "torch deterministic", "torch compile")


def make_data(folder):
    draw = random.Random(1)
    letters = "".join(chr(33 + i) for i in range(65))
    with open(os.path.join(folder, "text.txt"), "w") as file:
        file.write("".join(draw.choices(letters, k=2_000_000)))
    for part, count in (("train", 20_000), ("t10k", 512)):
        with open(os.path.join(folder, f"{part}-images-idx3-ubyte"), "wb") as file:
            file.write(struct.pack(">IIII", 0x803, count, 28, 28) + draw.randbytes(count * 784))
        with open(os.path.join(folder, f"{part}-labels-idx1-ubyte"), "wb") as file:
            file.write(struct.pack(">II", 0x801, count) + bytes(i % 10 for i in range(count)))


class Gallop:
    """Starts a new training in each round."""

    def __init__(self, program, workload, compiled, folder, steps):
        recipe = os.path.join(folder, f"{workload}.yaml")
        with open(recipe, "w") as file:
            file.write(RECIPES[workload].replace("FOLDER", folder) + TRAIN.replace("IMAGES", "true" if workload == "resnet20" else "auto"))
        self.command = [os.path.abspath(program), "train", recipe, "--json", "--runs", folder, f"--train.steps={steps}",
                        f"--train.compile={'true' if compiled else 'false'}"]
        self.batch, self.steps = BATCHES[workload], steps

    def rate(self):
        """Samples per second over the last two thirds of the steps."""
        begin = end = None
        first = self.steps // 3
        with subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                event = json.loads(line)
                if event["event"] != "step":
                    continue
                end = time.perf_counter()
                begin = end if event["step"] == first else begin
        if process.returncode != 0:
            sys.exit(f"{' '.join(self.command)} ended with {process.returncode}")
        return self.batch * (self.steps - first) / (end - begin)


class Torch:
    """A process that runs steps on request."""

    def __init__(self, python, workload, form, steps):
        self.process = subprocess.Popen([python, os.path.join(HERE, "torch_steps.py"), workload, form], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.batch, self.steps = BATCHES[workload], steps

    def rate(self):
        print(self.steps, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"PyTorch's process ended with {self.process.wait()}")
        return self.batch * self.steps / float(line)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", default=",".join(RECIPES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True, check=True).stdout.strip()
    results = ResultsFile(arguments.json, {"gpu": gpu, "cores": os.cpu_count(), "system": platform.release(), "steps": arguments.steps}, {"workloads": {}})
    with tempfile.TemporaryDirectory(prefix="gallop-gpu-") as folder:
        make_data(folder)
        for workload in arguments.only.split(","):
            peers = {form: Gallop(arguments.program, workload, form == "gallop", folder, arguments.steps) if form.startswith("gallop")
                     else Torch(arguments.python, workload, form.partition(" ")[2], arguments.steps) for form in FORMS}
            rates = results.all["workloads"].setdefault(workload, {form: [] for form in FORMS})
            for _ in range(arguments.rounds):
                for form, peer in peers.items():
                    rates[form].append(peer.rate())
                results.save()
            for peer in peers.values():
                if isinstance(peer, Torch):
                    peer.end()
            print(f"{workload}, samples per second on {gpu}")
            for form, found in rates.items():
                ratio = statistics.median(a / b for a, b in zip(rates["gallop"], found))
                print(f"  {form:<20} {statistics.median(found):10.1f}  ({min(found):.1f} to {max(found):.1f})  gallop is {ratio:.2f} times as fast", flush=True)


if __name__ == "__main__":
    main()
