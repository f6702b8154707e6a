#!/usr/bin/env python3
"""Tests that TensorBoard's package reads the output of 'gallop runs export', and 'gallop runs import' its own.

    tensorboard.py PROGRAM [--python PYTHON]

PYTHON is a Python with the package tensorboard (default: GALLOP_TEST_PYTHON); without it the test is skipped.
"""

import csv
import io
import json
import os
import struct
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "scenario"))
import make_data  # noqa: E402
from checks import expect, program_and_python, run  # noqa: E402

RECIPE = """\
data: {name: mnist, path: tiny, batch_size: 20}
model: {name: mlp, hidden: [32]}
optimizer: {name: adamw, lr: 0.01}
train: {epochs: 3, precision: fp32, compile: false}
track: {histograms: true}
"""

READ = """
import base64, json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.util.tensor_util import make_ndarray
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "tensors": 0, "images": 0})
events.Reload()
content = lambda tag: plugin_data_pb2.HParamsPluginData.FromString(
    events.SummaryMetadata("_hparams_/" + tag).plugin_data.content)
options = content("session_start_info").session_start_info.hparams
print(json.dumps({
    "scalars": {tag: [(one.step, one.wall_time, one.value) for one in events.Scalars(tag)]
                for tag in events.Tags()["scalars"]},
    "histograms": {tag: [(one.step, events.SummaryMetadata(tag).plugin_data.plugin_name,
                          make_ndarray(one.tensor_proto).tolist()) for one in events.Tensors(tag)]
                   for tag in events.Tags()["tensors"] if tag.startswith("weights/")},
    "images": {tag: [(one.step, one.width, one.height, base64.b64encode(one.encoded_image_string).decode())
                     for one in events.Images(tag)] for tag in events.Tags()["images"]},
    "options": {name: getattr(value, value.WhichOneof("kind")) for name, value in options.items()},
    "status": content("session_end_info").session_end_info.status}))
"""

WRITE = """
import os, sys
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams import summary_v2
from tensorboard.plugins.histogram import metadata as histograms
from tensorboard.plugins.scalar import metadata as scalars
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tensorboard.util.tensor_util import make_tensor_proto
writer = EventFileWriter(sys.argv[1])
def add(step, value):
    writer.add_event(Event(wall_time=1000.5 + step, step=step, summary=Summary(value=[value])))
for step in range(4):
    add(step, Summary.Value(tag="train/loss", simple_value=1 / (step + 1)))
    add(step, Summary.Value(tag="val_acc", simple_value=step / 8))
    add(step, Summary.Value(tag="Loss/test", tensor=make_tensor_proto(step / 4, dtype="float32"),
                            metadata=scalars.create_summary_metadata("", "")))
add(4, Summary.Value(tag="train/loss", simple_value=float("nan")))
add(4, Summary.Value(tag="weights", tensor=make_tensor_proto([[0.0, 1.0, 2.0]], dtype="float64"),
                     metadata=histograms.create_summary_metadata("", "")))
writer.add_event(Event(wall_time=1000, summary=summary_v2.hparams_pb(
    {"lr": 0.125, "optimizer": "sgd", "nesterov": True})))
writer.close()
"""


def as_float(value):
    return struct.unpack("f", struct.pack("f", float(value)))[0]


def tag_of(metric):
    group, dot, name = metric.partition(".")
    return f"{group}/{name}" if dot else f"evaluation/{metric}"


def check_histograms(histograms):
    sizes = {"weights/layers.0.weight": 32 * 144, "weights/layers.0.bias": 32, "weights/layers.1.weight": 320, "weights/layers.1.bias": 10}
    expect("the numbers of each tensor", {tag: int(sum(part[2] for part in steps[0][2])) for tag, steps in histograms.items()}, sizes)
    for tag, steps in histograms.items():
        expect(f"the steps of {tag}", [step for step, _, _ in steps], [10, 20, 30])
        for _, plugin, parts in steps:
            expect(f"the plugin of {tag}", plugin, "histograms")
            expect(f"the parts of {tag}", len(parts), 30)
            expect(f"the edges of {tag}", [part[1] for part in parts[:-1]], [part[0] for part in parts[1:]])


def check_images(images, folder):
    with open(os.path.join(folder, "report.json"), encoding="utf-8") as file:
        mistakes = json.load(file)["mistakes"]
    expect("the images", len(images), len(mistakes))
    for (_, found), mistake in zip(sorted(images.items()), mistakes):
        with open(os.path.join(folder, mistake["image"]), "rb") as file:
            content = base64.b64encode(file.read()).decode()
        expect("an image", found, [[30, 12, 12, content]])


def check_export(program, python, folder):
    make_data.make(folder, "idx tiny 200".split())
    with open(os.path.join(folder, "r.yaml"), "w", encoding="utf-8") as file:
        file.write(RECIPE)
    run([program, "train", "r.yaml", "--quiet", "--name", "a"], folder)
    run([program, "evaluate", "a", "--report"], folder)
    run([program, "runs", "export", "a", "--format", "tensorboard", "--to", "logdir"], folder)
    # Exported again, replacing the first export.
    run([program, "runs", "export", "a", "--format", "tensorboard", "--to", "logdir"], folder)
    found = json.loads(run([python, "-c", READ, "logdir/a"], folder))
    wanted = {}
    for row in csv.DictReader(io.StringIO(run([program, "runs", "export", "a"], folder))):
        wanted.setdefault(tag_of(row["metric"]), []).append(
            [int(row["step"]), float(row["time"]), as_float(row["value"])])
    expect("scalars", found["scalars"], wanted)
    expect("a learning rate", found["options"]["optimizer.lr"], 0.01)
    expect("an option that is true or false", found["options"]["train.compile"], False)
    expect("a text", found["options"]["model.name"], "mlp")
    expect("the status", found["status"], 1)
    check_histograms(found["histograms"])
    check_images(found["images"], os.path.join(folder, "runs", "a", "report"))
    print(f"TensorBoard reads {sum(map(len, wanted.values()))} values of {len(wanted)} tags unchanged")


def check_import(program, python, folder):
    os.makedirs(os.path.join(folder, "theirs", "x", "y"))
    run([python, "-c", WRITE, "theirs/x/y"], folder)
    output = run([program, "runs", "import", "theirs", "--prefix", "t-"], folder)
    expect("the output of the import", output, "t-x-y: 13 points; 1 non-scalar values were skipped\n")
    rows = list(csv.DictReader(io.StringIO(run([program, "runs", "export", "t-x-y"], folder))))
    expect("the last loss", rows[-1] if rows[-1]["metric"] == "train.loss" else rows[-2],
           {"run": "t-x-y", "metric": "train.loss", "step": "4", "time": "1004.5", "value": "nan"})
    for step in range(4):
        values = {row["metric"]: float(row["value"]) for row in rows if row["step"] == str(step)}
        expect(f"step {step}", values,
               {"train.loss": as_float(1 / (step + 1)), "val_acc": step / 8, "Loss.test": step / 4})
    table = json.loads(run([program, "runs", "list", "--filter", "tags.imported = 'tensorboard'", "--format", "json",
                            "--columns", "params.lr,params.optimizer,params.nesterov"], folder))
    expect("its options", {name: table[0][f"params.{name}"] for name in ("lr", "optimizer", "nesterov")},
           {"lr": 0.125, "optimizer": "sgd", "nesterov": "true"})
    print("what TensorBoard's package writes is imported")


def main():
    program, python = program_and_python(__doc__, "import tensorboard", "package tensorboard")
    with tempfile.TemporaryDirectory(prefix="gallop-tensorboard-") as folder:
        check_export(program, python, folder)
        check_import(program, python, folder)


if __name__ == "__main__":
    main()
