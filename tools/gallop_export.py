"""Exports PyTorch models for Gallop, and takes the weights that Gallop trained back. Needs torch 2.9 or newer alone.

    import gallop_export
    gallop_export.save(model, (images,), "net.pt2")          # then: gallop train net.yaml
    gallop_export.load_weights("runs/net-1", model)          # after training
    gallop_export.write_weights("runs/net-1", "net.pt2", "trained.pt2")

save() exports the model in training and in evaluation mode, and compares what it exports with the model itself: loss,
all gradients and buffers, at the size of the sample and at another batch size. torch.export drops some things without a
word, such as the backward of a custom autograd.Function or a size that Python code reads; save() names them.
"""

import copy
import inspect
import json
import logging
import math
import pathlib
import re
import struct
import sys
import tempfile
import warnings

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export.pt2_archive._package import package_pt2
from torch.utils import _pytree as pytree

__all__ = ["ExportError", "save", "load_weights", "write_weights"]

REFERENCE_VERSION = 1
SEED = 0
TOLERANCE = 1e-4
# A gradient's largest element counts as at least this fraction of that of all gradients: an error of one epsilon of fp32
# there is the tolerance here.
LEAST_GRADIENT = 1e-3


class ExportError(Exception):
    """The model cannot be exported so that it trains as in Python; the message names what to change."""


def save(model, args, file, *, kwargs=None, dynamic_shapes=None, strict=None, check=True):
    """Exports `model` to `file`, a .pt2 that `gallop train` trains.

    args, kwargs: a sample of its inputs, of two samples or more (positional arguments as a tuple).
    dynamic_shapes: as for torch.export.export; by default dimension 0 of every tensor is the batch, and all other sizes
        are those of the sample.
    strict: as for torch.export.export; by default False, and True where that fails.
    check: compare the exported programs with the model, and raise ExportError where gradients differ.

    The model's weights, buffers, mode and gradients are left as they were.
    """
    args, kwargs = tuple(args) if isinstance(args, (tuple, list)) else (args,), dict(kwargs or {})
    leaves = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    if not leaves:
        raise ExportError("the sample has no tensor: pass the model's inputs, such as (torch.randn(2, 3, 224, 224),)")
    largest = None if dynamic_shapes is not None else 1 << 20
    modes = {module: module.training for module in model.modules()}
    state = _State(model)
    problems = {}
    try:
        for choice in (False, True) if strict is None else (strict,):
            try:
                if largest:
                    programs, largest = _export_any_batch(model, args, kwargs, leaves, largest, choice)
                else:
                    programs = _export(model, args, kwargs, dynamic_shapes, choice)
                references = _compare(model, programs, args, kwargs, state) if check else None
                break
            except ExportError as error:
                problems[str(error)] = choice
            except Exception as error:
                problems[f"torch.export cannot export this model: {_first_lines(error)}"] = choice
        else:
            if len(problems) == 1:
                raise ExportError(next(iter(problems)))
            raise ExportError("\n".join(f"with strict={choice}: {what}" for what, choice in problems.items()))
        state.restore()
        try:
            _write(pathlib.Path(file), programs, references)
        except (OSError, MemoryError):
            raise
        except Exception as error:
            raise ExportError(f"torch.export.save cannot store this model: {_first_lines(error)}") from error
    finally:
        state.restore()
        for module, training in modes.items():
            module.training = training
    _report(file, programs, references, largest)


def load_weights(run, model, checkpoint="best"):
    """Loads the weights of a run, or of a checkpoint's folder, into `model`. checkpoint: "best", "latest" or a step."""
    weights = _read_safetensors(_checkpoint(run, checkpoint) / "model.safetensors")
    own = dict(model.named_parameters(remove_duplicate=False)) | dict(model.named_buffers(remove_duplicate=False))
    unknown = sorted(weights.keys() - own.keys())
    if unknown:
        raise KeyError(f"the model has no tensor '{unknown[0]}' ({len(unknown)} of {len(weights)} are unknown)")
    with torch.no_grad():
        for name, tensor in weights.items():
            if own[name].shape != tensor.shape:
                raise ValueError(f"'{name}' has shape {list(own[name].shape)}, and in the run {list(tensor.shape)}")
            _copy(own[name], tensor)
    return model


def write_weights(run, file, to, checkpoint="best"):
    """Copies the archive `file`, from which `run` was trained, to `to` with the run's weights."""
    weights = _read_safetensors(_checkpoint(run, checkpoint) / "model.safetensors")
    reader = torch._C.PyTorchFileReader(str(file))
    records = {name: reader.get_record(name) for name in reader.get_all_records() if not name.startswith(".")}
    records.pop("extra/gallop.json", None)  # Results with the weights of the export.
    done = set()
    for name in [name for name in records if re.fullmatch(r"data/(weights|constants)/.*_config\.json", name)]:
        folder = name[:name.rindex("/") + 1]
        for tensor_name, config in json.loads(records[name])["config"].items():
            place = folder + config["path_name"]
            if tensor_name not in weights:
                continue
            tensor = weights[tensor_name]
            if records.get(place):  # One of the two programs has no data.
                records[place] = _with_tensor(records[place], config["tensor_meta"], tensor)
                done.add(tensor_name)
            elif tensor.numel() == 0:
                done.add(tensor_name)
    if missing := sorted(weights.keys() - done):
        raise KeyError(f"{file} has no tensor '{missing[0]}': the run was trained from another archive")
    writer = torch._C.PyTorchFileWriter(str(to))
    for name, content in records.items():
        writer.write_record(name, content, len(content))
    writer.write_end_of_file()


def _copy(to, values):
    """copy_(), also to expanded tensors, of which copy_() rejects the elements that share memory."""
    for dimension, (size, stride) in enumerate(zip(to.shape, to.stride())):
        if size > 1 and stride == 0:
            to, values = to.narrow(dimension, 0, 1), values.narrow(dimension, 0, 1)
    to.copy_(values)


class _State:
    """The values of parameters and buffers, and the gradients, before the comparisons."""

    def __init__(self, model):
        tensors = {id(t): t for t in [*model.parameters(), *model.buffers()]}
        self.tensors = [(t, None if t.is_meta else t.detach().clone(), t.grad) for t in tensors.values()]

    def restore(self):
        with torch.no_grad():
            for tensor, value, gradient in self.tensors:
                if value is not None:
                    _copy(tensor, value)
                tensor.grad = gradient


def _export_any_batch(model, args, kwargs, leaves, largest, strict):
    """Exports for any batch, or for those below a size at which Python code of the model does something else."""
    while True:
        try:
            return _export(model, args, kwargs, _batch_dimension(model, args, kwargs, leaves, largest), strict), largest
        except Exception as error:
            limits = [int(limit) for limit in re.findall(r"size\(\)\[0\] <= (\d+)", str(error))]
            if not limits or not 2 <= min(limits) < largest:
                raise
            largest = min(limits)


def _batch_dimension(model, args, kwargs, leaves, largest):
    rows = {leaf.shape[0] for leaf in leaves if leaf.dim() > 0}
    if rows == {1}:
        raise ExportError("the sample has a batch of 1, which torch.export makes a constant: pass two samples or more")
    if len(rows) > 1:
        raise ExportError(f"the inputs have batches of {sorted(rows)}: pass dynamic_shapes, as for torch.export.export")
    batch = torch.export.Dim("batch", min=2, max=largest)
    bound = inspect.signature(model.forward).bind(*args, **kwargs)
    names = dict(bound.arguments)
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            names |= names.pop(name, {})
    return pytree.tree_map(
        lambda leaf: {0: batch} if isinstance(leaf, torch.Tensor) and leaf.dim() > 0 else None, names)


def _export(model, args, kwargs, dynamic_shapes, strict):
    programs = {}
    for mode in ("train", "eval"):
        model.train(mode == "train")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            logging.disable(logging.CRITICAL)  # What torch logs is in the exception, too.
            try:
                programs[mode] = torch.export.export(
                    model, args, kwargs, dynamic_shapes=dynamic_shapes, strict=strict)
            finally:
                logging.disable(logging.NOTSET)
        _reject_transforms(programs[mode])
        _strip(programs[mode])
    return programs


def _reject_transforms(program):
    """torch.vmap stays calls of Python functions. Of torch 2.15, torch.export.save() stores them."""
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            place = getattr(node.target, "__module__", None) or ""
            if node.op == "call_function" and place.startswith("torch._functorch"):
                raise ExportError("the model uses torch.vmap, a transform of torch.func or flex_attention, which "
                                  f"torch.export does not turn into operators ({node.target.__name__}): write it with "
                                  "a batch dimension instead, and attention by scaled_dot_product_attention")


def _strip(program):
    """Of stack traces the last frame alone, without the folders of this machine."""
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            node.meta.pop("from_node", None)
            node.meta.pop("source_fn_stack", None)
            if trace := node.meta.get("stack_trace"):
                frame = trace[trace.rindex('File "'):].rstrip() if 'File "' in trace else ""
                node.meta["stack_trace"] = re.sub(r'File "[^"]*/', 'File "', frame)


def _objective(result):
    """A scalar on which all floating-point outputs have an effect: their means, weighted by cosines."""
    total = 0
    for leaf in pytree.tree_leaves(result):
        if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() and leaf.numel() > 0:
            values = leaf.flatten().float()
            total = total + (values * torch.cos(torch.arange(values.numel(), device=leaf.device))).mean()
    return total


def _run(model, parameters, args, kwargs, trains):
    """The objective, its gradients by name and the buffers of one call."""
    torch.manual_seed(SEED)
    for parameter in parameters.values():
        parameter.grad = None
    with torch.set_grad_enabled(trains):
        objective = _objective(model(*args, **kwargs))
    if not isinstance(objective, torch.Tensor):
        raise ExportError("the model has no floating-point output")
    gradients = {}
    if trains:
        if not objective.requires_grad:
            raise ExportError("no parameter gets a gradient from the outputs")
        objective.backward()
        gradients = {name: p.grad.detach().clone() for name, p in parameters.items() if p.grad is not None}
    return objective.detach(), gradients


def _compare(model, programs, args, kwargs, state):
    """Runs the model and its programs on the sample and on one sample more. Returns the reference values."""
    if any(value is None for _, value, _ in state.tensors):
        return None  # Sizes only.
    samples = [(args, kwargs)]
    if (more := _one_sample_more(programs["train"], args, kwargs)) is not None:
        samples.append(more)
    references = {"version": REFERENCE_VERSION, "seed": SEED, "torch": torch.__version__}
    for mode in ("train", "eval"):
        model.train(mode == "train")
        # The guards of torch 2.9 read *args by names that do not exist. The comparison finds what they would.
        module = programs[mode].module(check_guards=not torch.__version__.startswith("2.9."))
        own = dict(model.named_parameters())
        exported = {name: p for name, p in module.named_parameters(remove_duplicate=False) if name in own}
        for number, (some_args, some_kwargs) in enumerate(samples):
            results = []
            for each, parameters in ((model, own), (module, exported)):
                state.restore()
                _restore_module(each, model)
                results.append(_run(each, parameters, copy.deepcopy(some_args), copy.deepcopy(some_kwargs),
                                    trains=mode == "train"))
            error = _require_equal(mode, number, *results)
            if number == 0:
                # Results of the program, which torch.export may have written with other operators than the model has.
                objective, gradients = results[1]
                references[mode] = {"objective": objective.item(), "export_error": error}
                if mode == "train":
                    references[mode]["gradient_norms"] = {n: g.double().norm().item() for n, g in gradients.items()}
    return references


def _restore_module(module, model):
    """The exported module may have copies of the buffers."""
    if module is model:
        return
    values = dict(model.named_buffers(remove_duplicate=False))
    with torch.no_grad():
        for name, buffer in module.named_buffers(remove_duplicate=False):
            if name in values and buffer.data_ptr() != values[name].data_ptr():
                _copy(buffer, values[name])


def _one_sample_more(program, args, kwargs):
    """The sample with its first row once more, or None if a batch dimension is static."""
    nodes = {node.name: node for node in program.graph.nodes}
    leaves, spec = pytree.tree_flatten((args, kwargs))
    names = [s.arg.name for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    if len(names) != len(leaves):
        return None
    longer = []
    for name, leaf in zip(names, leaves):
        if isinstance(leaf, torch.Tensor) and leaf.dim() > 0:
            if isinstance(nodes[name].meta["val"].shape[0], int):
                return None
            leaf = torch.cat([leaf, leaf[:1]])
        longer.append(leaf)
    return pytree.tree_unflatten(longer, spec)


def _require_equal(mode, number, expected, actual):
    """Returns the largest difference, relative to the largest element of its tensor."""
    what = f"the exported program in {'training' if mode == 'train' else 'evaluation'} mode"
    at = "" if number == 0 else " at another batch size"
    error = largest = _error(expected[0], actual[0])
    if not error <= TOLERANCE:
        raise ExportError(f"{what} gives {actual[0].item():.6g} instead of {expected[0].item():.6g}{at}: Python code of "
                          "the model depends on values or sizes that torch.export has made constants")
    wrong = []
    # Gradients that are 0 but for rounding have other digits in each order of operations.
    sizes = [gradient.abs().max().item() for gradient in expected[1].values() if gradient.numel() > 0]
    least = LEAST_GRADIENT * max(filter(math.isfinite, sizes), default=0)
    for name in expected[1].keys() | actual[1].keys():
        if name not in actual[1] or name not in expected[1]:
            wrong.append(name)
            continue
        error = _error(expected[1][name], actual[1][name], least)
        largest = max(largest, error)
        if not error <= TOLERANCE:
            wrong.append(name)
    if wrong:
        raise ExportError(f"{what} has other gradients than the model{at}, of {len(wrong)} of {len(expected[1])} "
                          f"parameters (first: {min(wrong)}): torch.export drops the backward of a custom "
                          "autograd.Function and hooks; write the function with differentiable operators, for example "
                          "x + (quantized(x) - x).detach()")
    return largest


def _error(expected, actual, least=0.0):
    """The largest difference, relative to the largest element, and to `least` at least."""
    if expected.shape != actual.shape:
        return math.inf
    if expected.numel() == 0:
        return 0.0
    expected, actual = expected.double(), actual.double()
    scale = max(expected.abs().max().item(), least)
    difference = (expected - actual).abs().max().item()
    if math.isnan(difference):
        return 0.0 if torch.equal(expected.isnan(), actual.isnan()) else math.inf
    return difference / scale if scale > 0 else difference


def _write(path, programs, references):
    """Both programs with one copy of the weights: those of "eval" are taken by name from "train"."""
    own = programs["eval"]._state_dict
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        # torch makes zeros for the first of the fake tensors, so the largest comes first.
        largest_first = sorted(own.items(), key=lambda item: -item[1].numel())
        programs["eval"]._state_dict = {name: mode.from_tensor(t) if not t.is_meta else t for name, t in largest_first}
    extra = {"gallop.json": json.dumps(references)} if references else {}
    try:
        # The name of the file is the first folder of the archive.
        with tempfile.TemporaryDirectory(dir=path.absolute().parent) as folder:
            temporary = pathlib.Path(folder) / path.name
            package_pt2(str(temporary), exported_programs=programs, extra_files=extra)
            temporary.replace(path)
    finally:
        programs["eval"]._state_dict = own


def _report(file, programs, references, largest):
    shapes = []
    nodes = {node.name: node for node in programs["train"].graph.nodes}
    for spec in programs["train"].graph_signature.input_specs:
        if spec.kind.name == "USER_INPUT" and getattr(spec.arg, "name", None) in nodes:
            value = nodes[spec.arg.name].meta.get("val")
            if isinstance(value, torch.Tensor):
                sizes = ["any" if not isinstance(size, int) else str(size) for size in value.shape]
                shapes.append(f"{spec.arg.name} {str(value.dtype).removeprefix('torch.')} [{', '.join(sizes)}]")
    count = sum(p.numel() for p in {id(t): t for t in programs["train"].parameters()}.values())
    print(f"{file}: {count:,} parameters; inputs {', '.join(shapes)}")
    if largest and largest < 1 << 20:
        print(f"  batches of up to {largest} alone: beyond it, Python code of the model does something else")
    if references:
        error = max(references[mode]["export_error"] for mode in ("train", "eval"))
        print("  the programs for training and evaluation agree with the model, "
              + ("bit for bit" if error == 0 else f"within {error:.1e}"))
    print(f"  next: gallop model {file}")


def _first_lines(error, most=3):
    lines = [line for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:most]) or type(error).__name__


_TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
          "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
          "BOOL": torch.bool}


def _checkpoint(run, checkpoint):
    run = pathlib.Path(run)
    if (run / "model.safetensors").exists():
        return run
    folder = run / "checkpoints"
    if checkpoint in ("best", "latest"):
        pointer = folder / checkpoint
        if not pointer.exists():
            pointer = folder / "latest"
        if not pointer.exists():
            raise FileNotFoundError(f"{run} has no checkpoint")
        return folder / pointer.read_text().strip()
    return folder / f"step-{int(checkpoint):08d}"


def _read_safetensors(path):
    data = bytearray(path.read_bytes())
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + at for at in entry["data_offsets"])
        flat = torch.frombuffer(data[begin:end], dtype=_TYPES[entry["dtype"]]) if end > begin else \
            torch.empty(0, dtype=_TYPES[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


# Numbers of torch._export.serde.schema.ScalarType.
_SCHEMA_TYPES = {1: torch.uint8, 2: torch.int8, 3: torch.int16, 4: torch.int32, 5: torch.int64, 6: torch.float16,
                 7: torch.float32, 8: torch.float64, 12: torch.bool, 13: torch.bfloat16}


def _with_tensor(storage, meta, tensor):
    """The bytes of a storage with one of its tensors replaced."""
    data = bytearray(storage)
    whole = torch.frombuffer(data, dtype=_SCHEMA_TYPES[meta["dtype"]])
    numbers = lambda key: [size["as_int"] for size in meta[key]]
    _copy(whole.as_strided(numbers("sizes"), numbers("strides"), meta["storage_offset"]["as_int"]), tensor)
    return bytes(data)


if __name__ == "__main__":
    sys.exit(__doc__)
