"""Run folders in the format of trainings, created without the program: recipe.yaml, run.json, origins.yaml, metrics.log."""

import ctypes
import ctypes.util
import json
import math
import os
import random
import struct
import zlib

BEGIN = 1.75e9  # Seconds since 1970, of the first run.
MARKUP = "<img src=x onerror=alert(1)>"
QUOTED = "a \"quoted\" & rather long name, so long that no table has room for it"
TRAINING_LENGTH = 2000  # Steps of each run.


class NoHash(Exception):
    """libxxhash is missing, which computes the checksums of log lines."""


def xxh3(text):
    name = ctypes.util.find_library("xxhash")
    if name is None:
        raise NoHash
    function = ctypes.CDLL(name).XXH3_64bits
    function.restype = ctypes.c_uint64
    function.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    return function(text, len(text))


def line(step, time, kind, values=None, texts=None, session=1):
    record = {"session": session, "step": step, "time": time, "kind": kind}
    if values:
        record["values"] = {name: value if math.isfinite(value) else str(value) for name, value in values.items()}
    if texts:
        record["texts"] = texts
    text = json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()
    return text + b"\t%016x\n" % xxh3(text)


def loss(run, step):
    """Losses with a spike in each run, and a gap in every fifth."""
    if run % 5 == 0 and step in (1000, 1050):
        return math.nan if step == 1000 else math.inf
    noise = random.Random(run * 1000003 + step).random()
    return 2.2 * math.exp(-step / (300 + 40 * (run % 7))) + 0.2 + 0.1 * noise + (9 if step == 700 + 50 * (run % 4) else 0)


def accuracy(run, step):
    return (0.75 + 0.002 * (run % 97)) * (1 - math.exp(-step / 400))


def write_run(folder, run, name, ends=True, extra=0):
    """A run with many more metrics."""
    path = os.path.join(folder, name)
    os.makedirs(os.path.join(path, "checkpoints"))
    started = BEGIN + 1000 * run
    learning_rate = [0.001, 0.01, 0.1][run % 3]
    with open(os.path.join(path, "recipe.yaml"), "w", encoding="utf-8") as file:
        file.write(f"data: {{name: fashion-mnist, batch_size: {64 << (run % 3)}}}\n"
                   f"model: {{name: {['mlp', 'resnet', 'airbench', 'vit'][run % 4]}, depth: {8 + run % 5}}}\n"
                   f"optimizer: {{name: sgd, lr: {learning_rate}}}\ntrain: {{epochs: 5, gradient_accumulation: 1, seed: {run}}}\n")
    with open(os.path.join(path, "run.json"), "w", encoding="utf-8") as file:
        json.dump({"version": "1.2.3", "commit": "abc", "started": "2026-01-01T00:00:00Z", "command_line": ["gallop", "train", "<b>x</b>"],
                   "processes": 1, "hardware": {"host": f"host-{run % 2}", "cpu_model": "a processor", "cores": 2, "memory_bytes": 8 << 30,
                                                "instruction_sets": "avx2"}, "data_files": []}, file)
    with open(os.path.join(path, "identity.json"), "w", encoding="utf-8") as file:
        json.dump([{"step": 0, "version": "1.2.3", "program": "aa", "data": [],
                    "models": [{"path": "nets/net.pt2", "files": 1, "bytes": 2000, "xxh3_128": "bb"}]}], file)
    log = [line(0, started, "session", texts={"version": "1.2.3"})]
    for step in range(50, TRAINING_LENGTH + 1, 50):
        time = started + step * 0.3
        log.append(line(step, time, "step", {"loss": loss(run, step), "lr": learning_rate, "epoch": step / 400}))
        if step % 200 == 0:
            values = {"accuracy": accuracy(run, step), "loss": loss(run + 1000, step)}
            values.update({f"extra_{i}": math.sin(step / 100 + i) + run for i in range(extra)})
            log.append(line(step, time, "evaluation", values, {"part": "test"}))
        if step % 1000 == 0:
            log.append(line(step, time, "system", {"busy_cores": 1.5, "joules": 240}, {"energy": "estimated"}))
    if ends:
        log.append(line(TRAINING_LENGTH, started + TRAINING_LENGTH * 0.3, "end", {"seconds": 600}, {"how": "finished"}))
    with open(os.path.join(path, "metrics.log"), "wb") as file:
        file.writelines(log)
    return path


def write_run_of_nan(folder, run, name):
    """A finished run with only NaN evaluations."""
    path = write_run(folder, run, name)
    started = BEGIN + 1000 * run
    with open(os.path.join(path, "metrics.log"), "wb") as file:
        file.write(line(0, started, "session", texts={"version": "1.2.3"}))
        for step in (TRAINING_LENGTH // 2, TRAINING_LENGTH):
            file.write(line(step, started + step * 0.3, "evaluation", {"accuracy": math.nan}, {"part": "test"}))
        file.write(line(TRAINING_LENGTH, started + TRAINING_LENGTH * 0.3, "end", {"seconds": 600}, {"how": "finished"}))


def write_runs(folder, count, extra):
    """Creates a number of runs; the newest have unusual names, one has a damaged log, one has not ended."""
    for run in range(count - 4):
        write_run(folder, run, f"run-{run}", extra=extra if run >= count - 12 else 0)
    write_run(folder, count - 4, MARKUP)
    write_run(folder, count - 3, QUOTED)
    damaged = write_run(folder, count - 2, "damaged")
    with open(os.path.join(damaged, "metrics.log"), "r+b") as file:
        content = file.read()
        file.seek(len(content) // 2)
        file.write(b"###")
    write_run(folder, count - 1, "unfinished", ends=False)


def append(folder, name, step, values):
    """Appends to a run, as a training does while it is viewed."""
    with open(os.path.join(folder, name, "metrics.log"), "ab") as file:
        file.write(line(step, BEGIN + 9e6 + step, "evaluation", values, {"part": "test"}))


def png(side):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(range(0, 16 * side, 16)) for _ in range(side))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def write_report(folder, name):
    """A report of two classes, one mistake and one figure, as written by 'gallop evaluate --report'."""
    path = os.path.join(folder, name, "report")
    os.makedirs(path)
    with open(os.path.join(path, "00.png"), "wb") as file:
        file.write(png(4))
    with open(os.path.join(path, "roc-curve.svg"), "w", encoding="utf-8") as file:
        file.write('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="6"/>')
    report = {"step": TRAINING_LENGTH, "part": "test", "figures": [{"name": "roc-curve", "title": "ROC curve"}],
              "classes": ["cat", MARKUP], "counts": [[90, 10], [0, 40]],
              "mistakes": [{"image": "00.png", "width": 4, "height": 4, "channels": 1, "truth": 0, "guess": 1, "probability": 0.9}]}
    with open(os.path.join(path, "report.json"), "w", encoding="utf-8") as file:
        json.dump(report, file)


def write_overlays(folder, name):
    """A report of two classes for each pixel, with one image that is both the first and the one with the lowest IoU."""
    path = os.path.join(folder, name, "report")
    os.makedirs(path)
    kinds = ("image", "truth", "prediction", "differences")
    overlays = []
    for group in ("first", "lowest-iou"):
        files = {kind: f"{4 * len(overlays) + i:02}.png" for i, kind in enumerate(kinds)}
        for file_name in files.values():
            with open(os.path.join(path, file_name), "wb") as file:
                file.write(png(4))
        overlays.append({"group": group, "sample": 7, "iou": 0.25 if group == "first" else None, **files})
    report = {"step": TRAINING_LENGTH, "part": "validation", "figures": [], "classes": ["ground", MARKUP], "counts": [[90, 10], [0, 40]],
              "mistakes": [], "overlays": overlays, "colors": ["#999999", "#e69f00"]}
    with open(os.path.join(path, "report.json"), "w", encoding="utf-8") as file:
        json.dump(report, file)


def write_schedule(folder, name):
    """A half-finished run with a momentum that follows evaluations."""
    at = [1, 1000, 2000, 3000, 4000]
    schedule = {"steps": 2 * TRAINING_LENGTH, "steps_per_epoch": 400, "at": at, "lines": [
        {"metric": "train.lr", "schedule": "linear", "follows_evaluations": False, "values": [0.1 * (1 - step / 4000) for step in at]},
        {"metric": "train.momentum", "schedule": "reduce-on-plateau", "follows_evaluations": True, "values": [0.9] * 5}]}
    with open(os.path.join(folder, name, "schedule.json"), "w", encoding="utf-8") as file:
        json.dump(schedule, file)
    return schedule


def write_samples(folder, name, samples, augmented_by=()):
    """Images 00.png and 01.png, and the file that lists them."""
    path = os.path.join(folder, name, "samples")
    os.makedirs(path, exist_ok=True)
    for image, side in (("00.png", 6), ("01.png", 4)):
        with open(os.path.join(path, image), "wb") as file:
            file.write(png(side))
    empty = {"label": "", "image": "", "before": "", "text": ""}
    with open(os.path.join(path, "samples.json"), "w", encoding="utf-8") as file:
        json.dump({"augmented_by": list(augmented_by), "samples": [{**empty, **one} for one in samples]}, file)
