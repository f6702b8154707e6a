#!/usr/bin/env python3
"""Measures the effect of each precision on speed and result, for each built-in model.

    run.py PROGRAM DATA... [--precisions fp32 bf16 ...] [--models NAME ...] [--seconds 3] [--seeds 2]
           [--json FILE] [--docs FILE]

DATA: fashion-mnist, or a folder or tar file of images in classes, for the image models, and a text file (*.txt) for the
GPT; each model uses the first that suits it, and models without data are left out. Each model is trained for as many
steps as fp32 does in --seconds, in each precision that this machine supports, with the same seeds and steps;
unsupported precisions are reported and left out. Prints a line of JSON for each model and precision, then a Markdown
table: samples per second (median over the seeds, of the second half of the steps), their ratio to fp32's of the same
seed (median, minimum and maximum), the loss and accuracy of the final evaluation (mean and standard deviation), and the
maximum number of skipped updates. --docs writes the table between the markers of that file. Without fp16, which is 20
times slower on a CPU, it takes about five minutes on two cores. Run it on an idle machine.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import docs_table
import training
from results_file import ResultsFile

PRECISIONS = ["fp32", "tf32", "bf16", "bf16-weights", "fp16", "fp8"]
TABLE = "precisions"
FEWEST_STEPS = 8
PROBE_SECONDS = 0.3  # Duration of the steps from which the number of steps is estimated.

SGD = "{name: sgd, lr: 0.1, momentum: 0.9, nesterov: true, weight_decay: 5.0e-4}"
ADAMW = "{name: adamw, lr: 1.0e-3, weight_decay: 0.05}"
# Model, optimizer, batch; all but the last take images.
MODELS = {
    "MLP": ("{name: mlp, hidden: [512, 256]}", ADAMW, 128),
    "ResNet-20": ("{name: resnet, depth: 20, stem: strided}", SGD, 128),
    "Wide ResNet-14-4": ("{name: resnet, depth: 14, width: 4, stem: strided}", SGD, 128),
    "airbench": ("{name: airbench, widths: [32, 64, 64]}", SGD, 128),
    "ViT": ("{name: vit, patch: 4, width: 128, depth: 4, heads: 4}", ADAMW, 128),
    "GPT": ("{name: gpt, layers: 4, width: 128, heads: 4}", ADAMW, 16),
}
TRAIN = """
schedule: {name: cosine, warmup: 0.1}
train: {evaluate_every: never, checkpoint_every: never, on_nonfinite: skip}
"""

# Error messages of a precision that the machine, the model or the program does not support.
NOT_HERE = "which requires an NVIDIA GPU", "has no linear layer for it", "train.precision: unknown value"


def steps_in(trainer, seconds):
    """The number of steps of fp32 in `seconds`, from two lengths, so that start-up costs cancel."""
    steps = FEWEST_STEPS
    while True:
        short, long = (trainer.train(*options_of("fp32", length, 1))[-1]["training_seconds"] for length in (steps, 3 * steps))
        if long - short > PROBE_SECONDS:
            return max(FEWEST_STEPS, round(seconds * 2 * steps / (long - short)))
        steps *= 4


def options_of(precision, steps, seed):
    return f"train.precision={precision}", f"train.steps={steps}", f"train.seed={seed}"


def rate_of(events):
    """Samples per second of the second half of the steps: the first ones are recorded and compiled."""
    rates = [event["samples_per_second"] for event in events if event["event"] == "step"]
    return statistics.median(rates[len(rates) // 2:])


def measure(trainer, name, precisions, seconds, seeds):
    """One result per precision; they alternate for each seed, so that the machine's state affects all alike."""
    steps = steps_in(trainer, seconds)
    results = {precision: {"model": name, "precision": precision, "steps": steps, "samples_per_second": [], "ratios": [],
                           "losses": [], "accuracies": [], "skipped_updates": []} for precision in precisions}
    for seed in range(1, seeds + 1):
        for precision in list(results):
            result = results[precision]
            try:
                events = trainer.train(*options_of(precision, steps, seed))
            except training.Failed as failure:
                if not any(words in failure.errors for words in NOT_HERE):
                    raise
                print(f"{name}: {failure.errors}", file=sys.stderr)
                del results[precision]
                continue
            result["samples_per_second"].append(rate_of(events))
            end = events[-1]
            result["losses"].append(end["last"]["loss"])
            result["accuracies"].append(end["last"].get("accuracy"))
            result["skipped_updates"].append(end["skipped_updates"])
        base = results["fp32"]["samples_per_second"][-1]
        for result in results.values():
            result["ratios"].append(result["samples_per_second"][-1] / base)
    return list(results.values())


def spread(values, factor, digits):
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{factor * statistics.mean(values):.{digits}f} ± {factor * deviation:.{digits}f}"


def table(results):
    yield "| model, steps | precision | samples/s | against fp32 | loss at the end | accuracy, % | skipped |"
    yield "|---|---|---|---|---|---|---|"
    for result in results:
        ratios = result["ratios"]
        is_base = result["precision"] == "fp32"
        ratio = "1" if is_base else f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        accuracy = "" if None in result["accuracies"] else spread(result["accuracies"], 100, 1)
        skipped = max(result["skipped_updates"])
        yield (f"| {result['model']}, {result['steps']} | {result['precision']} "
               f"| {statistics.median(result['samples_per_second']):,.0f} | {ratio} | {spread(result['losses'], 1, 3)} "
               f"| {accuracy} | {skipped or ''} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("data", nargs="+")
    parser.add_argument("--precisions", nargs="+", default=PRECISIONS, metavar="NAME", help="precisions to measure besides fp32")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS), metavar="NAME")
    parser.add_argument("--seconds", type=float, default=3, help="duration of a training in fp32, without evaluation")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--json", help="file for all results; models in an existing file are not measured again")
    parser.add_argument("--docs", help=f"a file with the lines <!-- {TABLE} --> and <!-- /{TABLE} -->")
    arguments = parser.parse_args()
    if arguments.seeds < 1 or arguments.seconds <= 0:
        parser.error("--seeds must be at least 1, and --seconds above 0")
    precisions = ["fp32", *(name for name in arguments.precisions if name != "fp32")]
    budget = {"seconds": arguments.seconds, "seeds": arguments.seeds}
    file = ResultsFile(arguments.json, budget, {"results": []})
    results = file.all["results"]
    for name in arguments.models:
        if any(result["model"] == name for result in results):
            continue
        source = training.source_for(name == "GPT", arguments.data, validation=0.05)
        if source is None:
            print(f"{name}: no data for it", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            trainer = training.Trainer(arguments.program, training.recipe_of(*MODELS[name], source, TRAIN), folder)
            for result in measure(trainer, name, precisions, arguments.seconds, arguments.seeds):
                results.append(result)
                print(json.dumps(result), flush=True)
        file.save()
    if not results:
        sys.exit("there is no data for any model")
    text = "\n".join(table(results))
    print(text)
    if arguments.docs:
        docs_table.put(arguments.docs, TABLE, text)


if __name__ == "__main__":
    main()
