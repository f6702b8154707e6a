#!/usr/bin/env python3
"""Step time and peak memory of the parallel strategies, next to those of PyTorch and DeepSpeed.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install -r benchmarks/parallel/requirements.txt
    DS_BUILD_OPS=0 DS_ACCELERATOR=cpu /tmp/venv/bin/pip install --no-build-isolation --no-deps deepspeed==0.19.8
    /tmp/venv/bin/python benchmarks/parallel/run.py PROGRAM TEXT [--only FORM,...] [--rounds N] [--json FILE]

A GPT with AdamW in fp32 in two processes of one thread each, over Gloo: `gallop` with each strategy, eager and compiled,
and with the peers' model as an exported program; the peers of torch_parallel.py, eager. All forms take turns. TEXT is the text to train on; the peers get random tokens of
the same sizes. Pipelines have four micro-batches. DeepSpeed, which needs the second installation above, is left out
where it is missing.

Printed for each form: the median time of a step after the first ones, over all rounds, and the peak resident memory of
the larger process, with everything that it does (loading, recording and compiling). Needs an idle machine.
"""

import argparse
import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

from os.path import abspath, dirname, join

sys.path.append(join(dirname(__file__), ".."))
from results_file import ResultsFile  # noqa: E402

STRATEGIES = ("ddp", "zero-1", "zero-2", "zero-3", "tensor", "tensor exported", "context", "context ring", "pipeline")
FORMS = [f"gallop {name}{form}" for name in STRATEGIES for form in ("", " eager")]
FORMS += [f"torch {name}" for name in ("ddp", "zero-1", "fsdp", "tensor", "pipeline")]
FORMS += [f"deepspeed zero-{stage}" for stage in (1, 2, 3)]
RECIPE = """
data: {{name: text, path: {text}, batch_size: {batch}, context: {context}, validation: 0.1, threads: 0}}
model: {model}
optimizer: {{name: adamw, lr: 1.0e-3, weight_decay: 0.1}}
train: {{steps: {steps}, precision: fp32, evaluate_every: never, checkpoint_every: never}}
"""
WARM_UP = 4


def run_child(command, environment, cwd):
    """(output, peak bytes of the largest process). In a process of its own, whose children alone count."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        done = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        with os.fdopen(write, "w") as pipe:
            json.dump([done.returncode, done.stdout, done.stderr, peak], pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        code, output, errors, peak = json.load(pipe)
    os.waitpid(child, 0)
    if code != 0:
        sys.exit(f"{' '.join(command)}: {errors}")
    return output, peak


def export(args, file):
    import exporting
    import torch
    from parallel.torch_parallel import VOCABULARY, Gpt

    torch.manual_seed(1)
    model = Gpt(False, args.layers, args.width, args.width // 64, args.context, VOCABULARY)
    exporting.save(model, (torch.zeros(2, args.context, dtype=torch.long),), file)


def run_gallop(program, form, args, folder):
    words = form.split()
    recipe = join(folder, "recipe.yaml")
    model = f"{{name: gpt, layers: {args.layers}, width: {args.width}, heads: {args.width // 64}}}"
    if "exported" in words:
        export(args, join(folder, "gpt.pt2"))
        model = "{name: exported, file: gpt.pt2}"
    with open(recipe, "w") as file:
        file.write(RECIPE.format(text=json.dumps(abspath(args.text)), batch=2 * args.rows, context=args.context,
                                 model=model, steps=args.steps))
    command = [program, "launch", "-n", "2", "train", recipe, "--json", "--runs", join(folder, "runs"),
               f"parallel.name={words[1]}", f"train.compile={'false' if 'eager' in words else 'true'}"]
    if words[1] == "pipeline":
        command.append("train.gradient_accumulation=4")
    if words[1] == "context":
        command.append(f"parallel.context_parallel_method={'ring' if 'ring' in words else 'ulysses'}")
    output, peak = run_child(command, {**os.environ, "OMP_NUM_THREADS": "1"}, folder)
    events = [json.loads(line) for line in output.splitlines()]
    steps = [event for event in events if event["event"] == "step"]
    # A rate is that of the last two seconds.
    rates = [step["samples_per_second"] for step in steps[len(steps) // 2:]]
    return [2 * args.rows / rate for rate in rates], peak


def run_torch(form, args, folder):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
               abspath(join(dirname(__file__), "torch_parallel.py")), form.replace(" ", "-"),
               *map(str, (args.layers, args.width, args.context, args.rows, args.steps))]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "DS_ACCELERATOR": "cpu"}
    output, peak = run_child(command, environment, folder)
    return json.loads(output.splitlines()[-1])[WARM_UP:], peak


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("text")
    parser.add_argument("--only", help="forms, separated by commas: " + ", ".join(FORMS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--context", type=int, default=128)
    parser.add_argument("--rows", type=int, default=4, help="of each process")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--json", help="where to store the results")
    args = parser.parse_args()
    forms = args.only.split(",") if args.only else FORMS
    if not args.only and importlib.util.find_spec("deepspeed") is None:
        forms = [form for form in forms if not form.startswith("deepspeed")]
        print("without DeepSpeed, which is not installed", file=sys.stderr)
    seconds, peaks = {form: [] for form in forms}, {form: 0 for form in forms}
    for _ in range(args.rounds):
        for form in forms:
            with tempfile.TemporaryDirectory() as folder:
                run = run_gallop(abspath(args.program), form, args, folder) if form.startswith("gallop") else \
                    run_torch(form, args, folder)
            seconds[form].append(statistics.median(run[0]))
            peaks[form] = max(peaks[form], run[1])
            print(f"{form:24} {1e3 * seconds[form][-1]:8.1f} ms", file=sys.stderr, flush=True)
    results = ResultsFile(args.json)
    results.all = {"layers": args.layers, "width": args.width, "context": args.context, "rows": args.rows, "forms": {}}
    print(f"{'':24} {'step':>11} {'peak memory':>14}")
    for form in forms:
        step, peak = statistics.median(seconds[form]), peaks[form]
        results.all["forms"][form] = {"step_ms": round(1e3 * step, 1), "peak_mib": round(peak / 2**20)}
        print(f"{form:24} {1e3 * step:8.1f} ms {peak / 2**20:10.0f} MiB")
    results.save()


if __name__ == "__main__":
    main()
