"""Run folders in the format of trainings, created without the program: recipe.yaml, run.json, origins.yaml, metrics.log."""

import ctypes
import ctypes.util
import gzip
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


def append(folder, name, step, values, kind="evaluation", records=1):
    """Appends to a run, as a training does while it is viewed."""
    with open(os.path.join(folder, name, "metrics.log"), "ab") as file:
        file.write(b"".join(line(step + i, BEGIN + 9e6 + step + i, kind, values, {"part": "test"}) for i in range(records)))


def png(side):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(range(0, 16 * side, 16)) for _ in range(side))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def write_report(folder, name, cats=90, others=0):
    """A report of one mistake and two figures, as written by 'gallop evaluate --report'. Of two classes, and `others` without samples."""
    path = os.path.join(folder, name, "report")
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "00.png"), "wb") as file:
        file.write(png(4))
    figures = [{"name": "confusion-matrix", "title": "Confusion matrix"}, {"name": "roc-curve", "title": "ROC curve"}]
    for figure in figures:
        with open(os.path.join(path, f"{figure['name']}.svg"), "w", encoding="utf-8") as file:
            file.write('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="6"/>')
    counts = [[cats, 10] + others * [0], [0, 40] + others * [0], *(others * [(2 + others) * [0]])]
    report = {"step": TRAINING_LENGTH, "part": "test", "figures": figures,
              "classes": ["cat", MARKUP, *(f"other {i}" for i in range(others))], "counts": counts,
              "mistakes": [{"image": "00.png", "width": 4, "height": 4, "channels": 1, "truth": 0, "guess": 1, "probability": 0.9}]}
    with open(os.path.join(path, "report.json.part"), "w", encoding="utf-8") as file:
        json.dump(report, file)
    os.replace(os.path.join(path, "report.json.part"), os.path.join(path, "report.json"))


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


def trace_of(rank):
    """Two steps of 10 ms: a forward node of 4 ms and a backward node of 5 ms in each, and a loader's thread."""
    def span(tid, name, category, ts, dur, **args):
        return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid, "ts": 1000 * ts, "dur": 1000 * dur, "args": args}
    events = [{"ph": "M", "name": "thread_name", "pid": 1, "tid": tid, "args": {"name": f"thread {tid} ({name})"}} for tid, name in ((2, "loader"), (1, "main"))]
    for step in range(2):
        begin = 10 * step
        events += [span(1, f"ProfilerStep#{19 + step}", "user_annotation", begin, 10),
                   span(1, "aten::mm", "cpu_op", begin, 4, phase="forward", layer="layer1.conv1", flops=4e9, bytes=2e6, call="aten::mm bf16 8x8"),
                   span(1, "aten::mm_backward", "cpu_op", begin + 4, 5, phase="backward", layer=MARKUP, flops=8e9, bytes=4e6, call="aten::mm_backward")]
    events.append(span(2, "decode", "data", 1, 2))
    return {"distributedInfo": {"rank": rank}, "traceEvents": events}


def profile_of(step, ranks=1):
    """A profile of two steps."""
    layers = [{"name": layer, "ms": ms, "fraction": ms / 10, "forward_ms": forward, "backward_ms": backward, "other_ms": 0, "flops": 4e9,
               "bytes": 2e6, "limit_ms": 2, "limit_by_flops_ms": 2}
              for layer, ms, forward, backward in (("layer1.conv1", 4, 4, 0), (MARKUP, 5, 0, 5))]
    operators = [{"operator": "aten::mm", "call": "aten::mm bf16 8x8", "layer": layer["name"], "format": "bf16", "calls": 1, "ms": layer["ms"],
                  "fraction": layer["fraction"], "flops": 4e9, "bytes": 2e6, "limit_ms": 2} for layer in layers]
    uses = [(3e6, 0, 1e6), (3e6, 2e6, 1e6), (0, 2e6, 0)]
    nodes = [{"operator": "aten::mm", "layer": "layer1.conv1", "phase": phase, "ms": 3, "activations": a, "gradients": g, "temporaries": t}
             for phase, (a, g, t) in zip(("forward", "backward", "optimizer"), uses)]
    profile = {
        "training": "sgd, bf16 on CPU, compiled", "items": "images", "first_step": step - 1, "steps": 2, "samples": 128, "step_ms": 10, "median_ms": 10,
        "p95_ms": 10, "slowest_ms": 11, "slowest_step": step, "compilation_ms": 0, "limit_ms": 4, "flops": 8e9, "flops_utilization": 0.4,
        "phases": [{"name": phase, "ms": ms, "fraction": ms / 10} for phase, ms in (("data wait", 0.5), ("forward", 4), ("backward", 5), ("host", 0.5))],
        "layers": layers, "operators": operators,
        "memory": {"process_bytes": 5e8, "parameters": 1e6, "buffers": 0, "optimizer_state": 2e6, "planned": 7e6,
                   "peak": {"activations": 3e6, "gradients": 2e6, "temporaries": 1e6}, "peak_phase": "backward", "peak_layer": "layer1.conv1",
                   "peak_call": "aten::mm", "layers": [{"layer": "layer1.conv1", "activations": 3e6, "gradients": 0, "temporaries": 0}], "nodes": nodes},
        "loader": {"threads": 1, "busy_fraction": 0.2, "parts": [{"name": "decode", "ms": 1, "fraction": 0.1}]},
        "counters": {"page_faults": 12, "major_page_faults": 0, "context_switches": 31, "involuntary_context_switches": 3, "cpu_migrations": 0.5,
                     "cycles": 3e7, "instructions": 4.5e7, "llc_misses": 1e6, "stalled_cycles_backend": 6e6,
                     "instructions_per_cycle": 1.5, "stalled_backend_fraction": 0.2, "llc_bytes_per_second": 6.4e9},
        "peaks": {"flops_per_second": {"fp32": 1e12, "bf16": 2e12}, "bytes_per_second": [[64e3, 2e11], [256e6, 2e10]]},
        "advice": [{"rule": "data-wait", "finding": f"5.0 % of the step is spent waiting for {MARKUP}", "remedy": "Set data.threads to 2",
                    "options": ["data.threads=2"], "gain": {"low": 1.01, "high": 1.05, "basis": "computed"}}]}
    if ranks > 1:
        profile["rank_skew"] = 0.25
        profile["ranks"] = [{"rank": rank, "host": f"host-{rank}", "step_ms": 10, "compute_ms": 8 + rank, "data_wait_ms": 0, "exposed_communication_ms": 1,
                             "overlapped_communication_ms": 2, "last_into_collectives": rank, "trace_offset_ms": 0.1 * rank} for rank in range(ranks)]
    return profile


def write_profile(folder, name, step, ranks=1):
    """A profile of two steps, as a training stores it."""
    path = os.path.join(folder, name, "profiles")
    os.makedirs(os.path.join(path, f"step-{step}"), exist_ok=True)
    for rank in range(ranks):
        with gzip.open(os.path.join(path, f"step-{step}", f"rank-{rank}.json.gz"), "wt", encoding="utf-8") as file:
            json.dump(trace_of(rank), file)
    with open(os.path.join(path, f"step-{step}.json"), "w", encoding="utf-8") as file:
        json.dump(profile_of(step, ranks), file)


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
