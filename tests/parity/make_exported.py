"""Creates programs of torch.export as fixtures, each NAME.pt2 with its truth NAME.json, and archives to reject.

Run with Python, torch==2.11.0, torchvision==0.26.0, timm==1.0.31, transformers==5.23.0 and diffusers==0.42.1:
make_exported.py tests/fixtures/exported [NAME...]

exported_cases.py has the models, exported_rejects.py the archives to reject, which go to rejected/ with the reason in
their JSON. Archives are as torch.export.save or package_pt2 write them, but for the metadata of nodes: of stack traces
the last frame alone, with the file's base name; no `from_node` and `source_fn_stack`. A second run writes the same
bytes. Weights are in the archives; inputs, labels and targets are derived from hashes that deterministic_weights.h
also computes, so the JSON has results alone:

- `programs`: {mode: name in the archive}. Where evaluation needs a program of its own, there are `train` and `eval`,
  which share weights by name: those of `eval` have 0 bytes. Otherwise `train` is in `model`, and evaluation rewrites
  its flags. `nodes`: how many operators are called by training.
- `inputs`, in order: `name` (whose hash gives values), `argument` (place in the arguments), `value` (name in the
  graph), `dtype`, `shape` with names of dynamic sizes, `values`: "uniform" in [-1, 1), or "modulo": hashes modulo N.
- `outputs`, in order: `name`, `value`, `dtype`, `shape` at the first sizes. A tensor that is the only output is
  "output".
- `loss`: kind "inside": the output of that name is the loss. "mse": mean square of output - target, which is uniform
  by the name "target". "cross-entropy": of logits whose classes are in dimension `class_dim`; labels are int64 of the
  shape without that dimension, hashes of the name "labels" modulo `classes`, or the numbers of the rows.
- `dynamic`: the range of each dynamic size.
- `parameters`, in order: `shape`, `dtype`, and `frozen` or `tied` (to another name, which gets the gradient of both;
  strict exports have the weight by both names and an input for the other one alone). `buffers` that the program has:
  `shape`, `dtype`, `persistent`.
- `draws`: training (`train`) or evaluation (`eval`) draws random numbers. torch.manual_seed(`seed`) is called before
  every forward, so that a caller of the same operators in the same order draws the same numbers.
- `runs`, one for each of two sets of `sizes`. `train`: `loss`, `outputs`, `gradients` (null if there is none; zeros
  for the branch that `cond` does not take), and after a step of SGD with `learning_rate` all `buffers`, and
  `step_loss`, the loss of a second forward. `eval`: `loss` and `outputs` with the initial weights, and if training
  draws, `gradients`: a comparison that needs no seed.
- `differs`: what is not equal, bit for bit, in the program and in eager Python, with the largest error relative to
  the largest element, and `why`. All else is: the loss, outputs, gradients, step, buffers, and evaluation with the
  rewritten flags. Truth is of the program.

Tensors are digests: norm, products with PROBES vectors of random signs (the hash of "probeI/NAME") and the first FIRST
elements, of values in float32 (or the tensor's type), summed in float64. Results are of one thread and 64-byte aligned
tensors; other processors and numbers of threads may round differently.
"""

import copy
import json
import math
import pathlib
import re
import sys
import warnings

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import Dim, export
from torch.export.pt2_archive._package import load_pt2, package_pt2
from torch.nn import functional as F
from torch.utils import _pytree as pytree

import exported_cases
import exported_rejects
from make_models import hashes, number, summary, uniform, weight

SEED = 7
LEARNING_RATE = 0.05


def draw(name, shape, modulo=0):
    """A copy in memory of torch: other alignments may round differently."""
    count = math.prod(shape)
    if modulo:
        return torch.from_numpy((hashes(name, count) % np.uint64(modulo)).astype(np.int64)).view(shape).clone()
    return torch.from_numpy(uniform(name, count).astype(np.float32)).view(shape).clone()


def digest(name, tensor):
    return summary(name, tensor.detach().double())


def dtype_name(tensor):
    return str(tensor.dtype).removeprefix("torch.")


def initialize(model):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weight(name, tuple(parameter.shape)))
        for name, buffer in model.named_buffers():
            if name.endswith(("running_mean", "running_var")):
                buffer.copy_(weight(name, tuple(buffer.shape)))


def strip(program):
    """Keeps the last frame of each stack trace, and no folder; drops what differs from run to run."""
    numbers = {}
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            node.meta.pop("from_node", None)
            node.meta.pop("source_fn_stack", None)
            if stack := node.meta.get("nn_module_stack"):  # Keys are addresses if the export is strict.
                node.meta["nn_module_stack"] = {
                    f"module{numbers.setdefault(k, len(numbers))}" if str(k).isdigit() else k: v
                    for k, v in stack.items()}
            if trace := node.meta.get("stack_trace"):
                frame = trace[trace.rindex('File "'):].rstrip()
                frame = re.sub(r"<eval_with_key>\.\d+", "<eval_with_key>", frame)
                node.meta["stack_trace"] = re.sub(r'File "[^"]*/', 'File "', frame)


def inputs_of(case, sizes):
    return {name: draw(name, tuple(sizes.get(n, n) for n in spec.shape), spec.modulo)
            for name, spec in case.inputs.items()}


def export_case(case, model, sizes):
    args, kwargs = case.pack(inputs_of(case, sizes))
    dims = {name: Dim(name, min=low, max=high) for name, (low, high) in case.dims.items()}
    shapes = {name: {i: dims[n] for i, n in enumerate(spec.shape) if n in dims} for name, spec in case.inputs.items()}
    shapes = case.pack(shapes)
    program = export(model, args, kwargs, dynamic_shapes=shapes[0] or shapes[1], strict=case.strict)
    strip(program)
    return program


def save(path, programs):
    """Weights of `eval` are left to be taken by name from `train`. Torch gives all of them one entry of 0 bytes and
    makes zeros for the first of them, so the largest comes first."""
    own = programs["eval"]._state_dict if "eval" in programs else None
    if own:
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            largest_first = sorted(own.items(), key=lambda item: -item[1].numel())
            programs["eval"]._state_dict = {name: mode.from_tensor(t) for name, t in largest_first}
    package_pt2(str(path), exported_programs=programs)
    if own:
        programs["eval"]._state_dict = own
    text = path.read_bytes()
    for word in (b"site-packages", b'File \\"/', bytes(pathlib.Path.home()), bytes(pathlib.Path.cwd())):
        assert word not in text, (path, word)


# What evaluation rewrites.
FLAGS = {"train": ("dropout", "dropout_", "feature_dropout", "feature_dropout_", "alpha_dropout", "alpha_dropout_",
                   "feature_alpha_dropout", "feature_alpha_dropout_", "native_dropout", "lstm", "gru", "rnn_tanh",
                   "rnn_relu"),
         "training": ("batch_norm", "rrelu", "rrelu_"), "use_input_stats": ("instance_norm",),
         "dropout_p": ("scaled_dot_product_attention",)}


def rewrite_for_evaluation(module):
    for part in module.modules():
        if not isinstance(part, torch.fx.GraphModule):
            continue
        for node in list(part.graph.nodes):
            if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
                continue
            operator = node.target._schema.name.removeprefix("aten::")
            names = [a.name for a in node.target._schema.arguments]
            if "running_mean" in names and node.args[names.index("running_mean")] is None:
                continue
            for flag, operators in FLAGS.items():
                if operator in operators:
                    i = names.index(flag)
                    if i < len(node.args):
                        node.update_arg(i, 0.0 if flag == "dropout_p" else False)
                    elif flag in node.kwargs:
                        node.update_kwarg(flag, 0.0 if flag == "dropout_p" else False)
            if operator == "add_" and str(getattr(node.args[0], "target", "")).endswith("num_batches_tracked"):
                part.graph.erase_node(node)
        part.recompile()
    return module


class State:
    """Parameters and buffers at the start; programs and their model share them."""

    def __init__(self, *modules):
        self.tensors = {id(t): (t, t.detach().clone()) for m in modules
                        for t in [*m.parameters(), *m.buffers()]}

    def restore(self):
        with torch.no_grad():
            for tensor, value in self.tensors.values():
                tensor.copy_(value)
                tensor.grad = None


def outputs_of(result):
    """{name: tensor} of a tensor, or of dictionaries and tuples of tensors."""
    if isinstance(result, torch.Tensor):
        return {"output": result}
    pairs = result.items() if hasattr(result, "items") else ((str(i), r) for i, r in enumerate(result))
    flat = {}
    for name, value in pairs:
        if isinstance(value, torch.Tensor):
            flat[name] = value
        elif value is not None:
            flat |= {f"{name}.{n}": v for n, v in outputs_of(value).items()}
    return flat


def loss_of(loss, outputs):
    output = outputs[loss.output]
    if loss.kind == "inside":
        return output
    if loss.kind == "mse":
        return F.mse_loss(output, draw("target", tuple(output.shape)))
    shape = list(output.shape)
    del shape[loss.class_dim]
    labels = torch.arange(shape[0]) if loss.labels == "rows" else draw("labels", tuple(shape), loss.classes)
    if loss.class_dim == 1:
        return F.cross_entropy(output, labels)
    return F.cross_entropy(output.flatten(0, -2), labels.flatten())


class Run:
    """One forward, backward, step and forward again of a module."""

    def __init__(self, case, module, sizes, names, step):
        def forward():
            args, kwargs = case.pack(inputs_of(case, sizes))
            torch.manual_seed(SEED)
            self.result = module(*args, **kwargs)
            outputs = outputs_of(self.result)
            return outputs, loss_of(case.loss, outputs)

        def gradients():
            return {names[id(p)]: p.grad for p in module.parameters() if p.requires_grad}

        before = torch.manual_seed(SEED).get_state()
        outputs, loss = forward()
        self.draws = not torch.equal(before, torch.get_rng_state())
        if loss.requires_grad:
            loss.backward()
        self.outputs = {n: t.detach().clone() for n, t in outputs.items()}
        self.loss = loss.detach().clone()
        self.gradients = {n: None if g is None else g.clone() for n, g in gradients().items()}
        if step:
            torch.optim.SGD(module.parameters(), LEARNING_RATE, foreach=False).step()
            self.buffers = {n: b.clone() for n, b in module.named_buffers()}
            self.step_loss = forward()[1].detach()

    def record(self, gradients, step):
        out = {"loss": number(self.loss.item()), "outputs": {n: digest(n, t) for n, t in self.outputs.items()}}
        if gradients:
            out["gradients"] = {n: None if g is None else digest(n, g) for n, g in self.gradients.items()}
        if step:
            out["buffers"] = {n: digest(n, b) for n, b in self.buffers.items()}
            out["step_loss"] = number(self.step_loss.item())
        return out

    def differences(self, other, gradients=True):
        """What is not equal bit for bit, with the largest error relative to the largest element; buffers that only the
        program has are constants."""
        for kind in ("loss", "step_loss", "outputs", "gradients", "buffers"):
            if not hasattr(self, kind) or (kind == "gradients" and not gradients):
                continue
            mine, theirs = getattr(self, kind), getattr(other, kind)
            if kind.endswith("loss"):
                mine, theirs = {kind: mine}, {kind: theirs}
            if kind != "buffers" and mine.keys() != theirs.keys():
                yield f"names of {kind}: {sorted(mine.keys() ^ theirs.keys())}", 1.0
            for name in mine.keys() & theirs.keys():
                a, b = mine[name], theirs[name]
                if a is None or b is None:
                    if a is not b:
                        yield f"{kind} {name}", 1.0
                elif a.dtype != b.dtype or not torch.equal(a, b):
                    yield f"{kind} {name}", ((a - b).abs().max() / b.abs().max()).item()


def describe(case, model, program, run):
    state = model.state_dict(keep_vars=True)
    names, first = {}, {}
    for name, p in model.named_parameters(remove_duplicate=False):
        first.setdefault(id(p), name)
        names[name] = {"shape": list(p.shape), "dtype": dtype_name(p)}
        if not p.requires_grad:
            names[name]["frozen"] = True
        if first[id(p)] != name:
            names[name]["tied"] = first[id(p)]
    example = inputs_of(case, case.sizes[0])
    places = {id(t): path for path, t in pytree.tree_flatten_with_path(case.pack(example))[0]}
    order = {name: i for i, (_, t) in enumerate(pytree.tree_flatten_with_path(case.pack(example))[0])
             for name in example if example[name] is t}
    users = program.graph_signature.user_inputs
    assert len(users) == len(example), users
    inputs = []
    for name in sorted(example, key=order.get):
        kind, path = places[id(example[name])][0], places[id(example[name])][1:]
        spec = case.inputs[name]
        inputs.append({"name": name, "argument": ("args", "kwargs")[kind.idx] + pytree.keystr(path),
                       "value": users[order[name]], "dtype": dtype_name(example[name]), "shape": list(spec.shape)})
        inputs[-1] |= {"modulo": spec.modulo} if spec.modulo else {"values": "uniform"}
    loss = {"kind": case.loss.kind, "output": case.loss.output}
    if case.loss.kind == "cross-entropy":
        loss |= {"class_dim": case.loss.class_dim, "labels": case.loss.labels}
        loss |= {"classes": case.loss.classes} if case.loss.classes else {}
    values = list(program.graph_signature.user_outputs)
    assert len(values) == len(run.outputs), (values, run.outputs.keys())
    outputs = [{"name": n, "value": v, "dtype": dtype_name(t), "shape": list(t.shape)}
               for (n, t), v in zip(run.outputs.items(), values)]
    return {"inputs": inputs, "outputs": outputs, "loss": loss, "dynamic": case.dims, "parameters": names,
            "buffers": {n: {"shape": list(b.shape), "dtype": dtype_name(b), "persistent": n in state}
                        for n, b in model.named_buffers() if n in run.buffers}}


def make(case, folder):
    torch.manual_seed(SEED)
    model = case.make()
    initialize(model)
    model.train()
    programs = {"train" if case.both else "model": export_case(case, model, case.sizes[0])}
    if case.both:
        model.eval()
        programs["eval"] = export_case(case, model, case.sizes[0])
    path = folder / f"{case.name}.pt2"
    save(path, programs)
    trained = next(iter(programs.values()))
    module = trained.module()
    evaluated = programs["eval"].module() if case.both else rewrite_for_evaluation(copy.deepcopy(module))
    loaded = next(p for n, p in load_pt2(str(path)).exported_programs.items() if n != "eval").module()
    state = State(model, module, evaluated, loaded)
    canonical = {id(p): n for n, p in model.named_parameters()}

    def run(which, sizes, step):
        names = canonical
        if which is not model:
            known = dict(model.named_parameters(remove_duplicate=False))
            names = {id(p): canonical[id(known[n])] for n, p in which.named_parameters(remove_duplicate=False)}
        state.restore()
        return Run(case, which, sizes, names, step)

    runs, differs, draws = [], {}, {}
    for sizes in case.sizes:
        train, evaluation = run(module, sizes, True), run(evaluated, sizes, False)
        for mode, mine, theirs, gradients in (
                ("training", train, run(model.train(), sizes, True), True),
                ("evaluation", evaluation, run(model.eval(), sizes, False), train.draws)):
            for what, error in mine.differences(theirs, gradients):
                name = f"{what} in {mode}"
                differs[name] = max(error, differs.get(name, 0))
        again = run(loaded, sizes, False)
        assert train.outputs.keys() == again.outputs.keys(), case.name
        equal = torch.allclose if case.differs.startswith("rounding") else torch.equal
        assert all(equal(t, again.outputs[n]) for n, t in train.outputs.items()), case.name
        assert math.isfinite(train.loss.item()) and not torch.equal(train.loss, train.step_loss), case.name
        weak = [n for n, g in train.gradients.items() if g is not None and not 0 < g.double().norm() < math.inf]
        assert all(n.startswith(case.zero) for n in weak), (case.name, weak)
        draws = {"train": train.draws, "eval": evaluation.draws}
        runs.append({"sizes": sizes, "train": train.record(True, True), "eval": evaluation.record(train.draws, False)})
        first = train if len(runs) == 1 else first
    truth = {"archive": path.name, "programs": {("train" if n == "model" else n): n for n in programs},
             "nodes": sum(n.op == "call_function" for n in trained.graph.nodes), "seed": SEED, "draws": draws,
             "learning_rate": LEARNING_RATE, **describe(case, model, trained, first),
             "differs": {n: float(f"{e:.1g}") for n, e in sorted(differs.items())}, "why": case.differs, "runs": runs}
    if not case.differs:
        del truth["why"]
    write_json(path.with_suffix(".json"), truth)
    print(f"{path.name}: {path.stat().st_size} bytes, json {path.with_suffix('.json').stat().st_size}, "
          f"{truth['nodes']} nodes, draws {draws}, differs {truth['differs']}", flush=True)
    limit = 1e-5 if case.differs.startswith("rounding") else math.inf if case.differs else 0
    assert all(e < limit for e in differs.values()), case.name


def write_json(path, value):
    """A line for each key, and for each run."""
    compact = lambda v: json.dumps(v, separators=(",", ":"))
    lines = [f"{json.dumps(k)}: " + ("[\n" + ",\n".join(map(compact, v)) + "\n]" if k == "runs" else compact(v))
             for k, v in value.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main():
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    folder, chosen = pathlib.Path(sys.argv[1]), sys.argv[2:]
    (folder / "rejected").mkdir(parents=True, exist_ok=True)
    for case in [*exported_cases.own_cases(), *exported_cases.library_cases()]:
        if not chosen or case.name in chosen:
            make(case, folder)
    if not chosen or "rejected" in chosen:
        for path, reason in exported_rejects.make_all(folder, strip):
            write_json(path.with_suffix(".json"), {"archive": path.name, "reason": reason})
            print(f"rejected/{path.name}: {path.stat().st_size} bytes, {reason}", flush=True)
    sizes = [p.stat().st_size for p in folder.rglob("*.pt2")]
    print(f"{len(sizes)} archives, {sum(sizes)} bytes, largest {max(sizes)}")


if __name__ == "__main__":
    main()
