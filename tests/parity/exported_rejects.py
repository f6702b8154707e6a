"""Files that are no programs to train: as users may have them, or damaged."""

import collections
import json
import zipfile

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import Dim, export
from torch.export.experimental import _export_forward_backward
from torch.export.pt2_archive._package import package_pt2
from torchvision.ops import StochasticDepth


def stacked(*layers):
    return nn.Sequential(nn.Linear(4, 8), *layers, nn.Linear(8, 3))


def program(model, x=None, dynamic=True):
    shapes = ({0: Dim("batch", min=2, max=4096)},) if dynamic else None
    return export(model, (torch.zeros(4, 4) if x is None else x,), dynamic_shapes=shapes)


@torch.library.custom_op("fixture::scale", mutates_args=())
def scale(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


scale.register_fake(torch.empty_like)
scale.register_autograd(lambda ctx, gradient: 2 * gradient)


class Scale(nn.Module):
    def forward(self, x):
        return scale(x)


class Rows(nn.Module):
    def forward(self, x):
        return x.reshape(x.size(0), 2, 4).flip(1).flatten(1)


class Loop(nn.Module):
    def forward(self, x):
        step = lambda i, x: (i + 1, x.tanh())
        return torch._higher_order_ops.while_loop(lambda i, x: i < 3, step, (torch.tensor(0), x))[1]


class Pair(nn.Module):
    Result = collections.namedtuple("Result", "a b")

    def forward(self, x):
        return self.Result(x, 2 * x)


class Label(nn.Module):
    def forward(self, x):
        return x.argmax(1)


class WithLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = stacked()

    def forward(self, x):
        return self.layers(x).square().mean()


def entries(path):
    with zipfile.ZipFile(path) as archive:
        return {name.split("/", 1)[1]: archive.read(name) for name in archive.namelist()}


def write(path, contents):
    """As torch.export does it; torch itself adds `version` and `serialization_id`."""
    writer = torch._C.PyTorchFileWriter(str(path))
    for name, data in contents.items():
        if name != ".data/serialization_id" and name != ".data/version" and name != "byteorder":
            writer.write_record(name, data, len(data))
    writer.write_end_of_file()


def edit(path, name, change):
    contents = entries(path)
    value = json.loads(contents[name])
    change(value)
    contents[name] = json.dumps(value).encode()
    write(path, contents)


MODEL = "models/model.json"
WEIGHTS = "data/weights/model_weights_config.json"


def make_all(folder, strip):
    def path(name):
        return folder / "rejected" / f"{name}.pt2"

    def save(name, ep):
        strip(ep)
        package_pt2(str(path(name)), exported_programs=ep)
        return path(name)

    torch.manual_seed(0)
    yield save("custom-operator", program(stacked(Scale()))), (
        "calls fixture::scale, an operator of torch.library that exists in Python only")
    decomposed = program(stacked(nn.BatchNorm1d(8))).run_decompositions()
    yield save("decomposed", decomposed), "run_decompositions was called: outputs have buffer_mutation"
    yield save("joint", _export_forward_backward(program(WithLoss()))), (
        "a joint program: outputs have gradient_to_parameter and loss_output")
    yield save("static-batch", program(stacked(Rows()), dynamic=False)), "exported for a batch of 4 only"
    with FakeTensorMode():
        fake = program(stacked(), torch.zeros(4, 4))
    yield save("no-weights", fake), "weights of 0 bytes: exported under FakeTensorMode"
    with torch.device("meta"):
        meta = program(stacked(), torch.zeros(4, 4))
    yield save("meta-weights", meta), "weights of 0 bytes: exported on the device meta"
    yield save("training-alone", program(stacked(StochasticDepth(0.3, "row")))), (
        "draws random numbers (bernoulli_) whose use in evaluation is not known, and has no program of evaluation")
    yield save("loop", program(stacked(Loop()))), "the higher-order operator while_loop"
    yield save("no-gradient", program(nn.Sequential(stacked(), Label()))), "no floating-point output with a gradient"
    frozen = stacked()
    yield save("frozen", program(frozen.requires_grad_(False))), "no parameter requires a gradient"

    try:
        save("failed-save", program(nn.Sequential(stacked(), Pair())))
        raise AssertionError("namedtuples are saved now")
    except Exception as error:
        assert "Result" in str(error), error
    yield path("failed-save"), "torch.export.save failed (namedtuple output): no models/"
    with zipfile.ZipFile(path("plain-zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("notes/readme.txt", (1980, 1, 1, 0, 0, 0)), "No program.\n")
    yield path("plain-zip"), "a zip without models/"
    torch.save(stacked().state_dict(), path("state-dict"))
    yield path("state-dict"), "a file of torch.save: weights without a program"

    good = entries(save("torch-2.8", program(stacked())))
    model = json.loads(good[MODEL])
    old = {n: d for n, d in good.items() if not n.startswith(("data/weights", "data/constants"))}
    torch.save(stacked().state_dict(), path("weights"))
    pickled = path("weights").read_bytes()
    path("weights").unlink()
    old |= {"data/weights/model.pt": pickled, "data/constants/model.pt": pickled}
    model["schema_version"], model["torch_version"] = {"major": 8, "minor": 8}, "2.8.0"
    old[MODEL] = json.dumps(model).encode()
    write(path("torch-2.8"), old)
    yield path("torch-2.8"), "the layout of torch 2.8: pickled weights (entries renamed)"
    model["schema_version"], model["torch_version"] = {"major": 8, "minor": 2}, "2.6.0"
    with zipfile.ZipFile(path("torch-2.6"), "w") as archive:
        for name, data in (("version", "8.2"), ("serialized_exported_program.json", json.dumps(model)),
                           ("serialized_state_dict.pt", pickled), ("serialized_constants.pt", pickled),
                           ("serialized_example_inputs.pt", good["data/sample_inputs/model.pt"])):
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    yield path("torch-2.6"), "the layout of torch 2.6 and 2.7: flat, pickled weights (entries renamed)"

    def edited(name, file, change):
        write(path(name), good)
        edit(path(name), file, change)
        return path(name)

    def node(graph):
        return graph["graph_module"]["graph"]["nodes"][0]

    def weight(config):
        return config["config"]["0.weight"]

    yield edited("pickled-weight", WEIGHTS, lambda c: weight(c).update(use_pickle=True)), (
        "weight 0.weight is pickled (a subclass of Tensor)")
    yield edited("custom-object", MODEL, lambda m: m["graph_module"]["signature"]["input_specs"].insert(
        0, {"custom_obj": {"arg": {"name": "obj", "class_fqn": "fixture::Object"}, "custom_obj_name": "obj"}})), (
        "a custom object among the inputs")
    yield edited("newer-schema", MODEL, lambda m: m["schema_version"].update(major=9)), "schema 9"
    yield edited("unknown-argument", MODEL, lambda m: node(m)["inputs"][0].update(arg={"as_future": 1})), (
        "an argument of the unknown kind as_future")
    yield edited("unknown-operator", MODEL, lambda m: node(m).update(target="torch.ops.aten.future.default")), (
        "the unknown operator aten::future")
    yield edited("unknown-dtype", WEIGHTS, lambda c: weight(c)["tensor_meta"].update(dtype=99)), "dtype 99"
    yield edited("sparse-layout", WEIGHTS, lambda c: weight(c)["tensor_meta"].update(layout=1)), "layout 1 of 0.weight"
    yield edited("short-weight", WEIGHTS, lambda c: weight(c)["tensor_meta"].update(
        sizes=[{"as_int": 1 << 40}, {"as_int": 1 << 30}])), "0.weight has more elements than its entry, 2**70"
    yield edited("offset", WEIGHTS, lambda c: weight(c)["tensor_meta"].update(
        storage_offset={"as_int": 1})), "0.weight ends after its entry: storage_offset 1"
    yield edited("missing-weight", WEIGHTS, lambda c: weight(c).update(path_name="weight_99")), (
        "0.weight is in weight_99, which is missing")
    yield edited("unordered", MODEL, lambda m: m["graph_module"]["graph"]["nodes"].reverse()), (
        "a value is used before it is made")
    yield edited("named-twice", MODEL, lambda m: m["graph_module"]["graph"]["nodes"].append(node(m))), (
        "a value is made twice")

    write(path("damaged-weight"), good)
    data = bytearray(path("damaged-weight").read_bytes())
    data[data.index(good["data/weights/weight_0"]) + 5] ^= 0x10
    path("damaged-weight").write_bytes(data)
    yield path("damaged-weight"), "a flipped bit in weight_0: wrong CRC-32"
    path("truncated").write_bytes(bytes(data[:len(data) // 2]))
    yield path("truncated"), "ends in the middle: no central directory"
    with zipfile.ZipFile(path("deflated"), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, entry in good.items():
            archive.writestr(zipfile.ZipInfo(f"net/{name}", (1980, 1, 1, 0, 0, 0)), entry,
                             compress_type=zipfile.ZIP_DEFLATED)
    yield path("deflated"), "entries are compressed: the archive was unpacked and packed again"
