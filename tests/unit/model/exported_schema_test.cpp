#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/model/exported/schema.h"
#include "gallop/model/exported/schema_reader.h"
#include "gallop/tensor/zip_archive.h"
#include "unit/fixtures.h"

namespace gallop::model::exported {
namespace {

// The program of tests/fixtures/archives/net.pt2, which torch 2.11 wrote.
std::string net_json() {
  ZipArchive zip(fixtures() / "archives/net.pt2");
  return std::string(zip.bytes(*zip.find("net/models/model.json")));
}

// y = x.add(w, alpha=ALPHA) of a parameter w.
Json small_program() {
  const Json meta = Json::parse(R"({"dtype": 7, "sizes": [{"as_int": 2}], "requires_grad": false,
      "device": {"type": "cpu", "index": null}, "strides": [{"as_int": 1}],
      "storage_offset": {"as_int": 0}, "layout": 7})");
  Json program = Json::parse(R"({
    "graph_module": {
      "graph": {
        "inputs": [{"as_tensor": {"name": "w"}}, {"as_tensor": {"name": "x"}}],
        "outputs": [{"as_tensor": {"name": "y"}}],
        "nodes": [{"target": "torch.ops.aten.add.Tensor", "name": "add",
          "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "x"}}, "kind": 1},
                     {"name": "other", "arg": {"as_tensor": {"name": "w"}}, "kind": 1},
                     {"name": "alpha", "arg": {"as_int": 2}, "kind": 2}],
          "outputs": [{"as_tensor": {"name": "y"}}],
          "metadata": {"stack_trace": "  File \"/home/me/net.py\", line 7, in forward\n    y = x + w"}}],
        "tensor_values": {}, "sym_int_values": {}, "sym_bool_values": {},
        "is_single_tensor_return": false, "custom_obj_values": {}, "sym_float_values": {}},
      "signature": {
        "input_specs": [{"parameter": {"arg": {"name": "w"}, "parameter_name": "fc.w"}},
                        {"user_input": {"arg": {"as_tensor": {"name": "x"}}}}],
        "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "y"}}}}]},
      "module_call_graph": [{"fqn": "", "signature": {"inputs": [], "outputs": [],
        "in_spec": "[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": null, \"context\": null, \"children_spec\": []}]}, {\"type\": \"builtins.dict\", \"context\": \"[]\", \"children_spec\": []}]}]",
        "out_spec": "[1, {\"type\": null, \"context\": null, \"children_spec\": []}]",
        "forward_arg_names": ["x"]}}]},
    "opset_version": {"aten": 10}, "range_constraints": {},
    "schema_version": {"major": 8, "minor": 17}, "verifiers": ["TRAINING"],
    "torch_version": "2.11.0", "guards_code": []})");
  for (const char* name : {"w", "x", "y"}) {
    program["graph_module"]["graph"]["tensor_values"][name] = meta;
  }
  return program;
}

std::string problem_of(const std::string& json) {
  try {
    parse_program(json, "net.pt2");
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

// The error of the small program after a JSON patch has set or removed something.
std::string problem_with(const std::string& path, const Json& value) {
  Json program = small_program();
  const Json::json_pointer pointer(path);
  if (value.is_discarded()) {
    program = program.patch(Json::array({{{"op", "remove"}, {"path", path}}}));
  } else {
    program[pointer] = value;
  }
  return problem_of(program.dump());
}

void expect_error(const std::string& actual, const std::string& expected) {
  EXPECT_TRUE(actual.starts_with("net.pt2: ")) << actual;
  EXPECT_NE(actual.find(expected), std::string::npos)
      << "expected: " << expected << "\nactual: " << actual;
}

const Json kRemoved = Json(Json::value_t::discarded);
const std::string kGraph = "/graph_module/graph";
const std::string kNode = kGraph + "/nodes/0";
const std::string kSignature = "/graph_module/signature";

const Node& find_node(const Graph& graph, const std::string& function) {
  const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                  [&](const Node& node) { return node.function == function; });
  if (found == graph.nodes.end()) throw std::out_of_range(function);
  return *found;
}

TEST(ExportedSchema, ReadsSignatureAndNames) {
  const Program program = parse_program(net_json(), "net.pt2");
  EXPECT_EQ(program.schema_major, 8);
  EXPECT_EQ(program.schema_minor, 17);
  EXPECT_TRUE(program.torch_version.starts_with("2.11.0"));
  ASSERT_EQ(program.ranges.size(), 1u);
  EXPECT_EQ(program.ranges.begin()->second.min, 2);
  EXPECT_EQ(program.ranges.begin()->second.max, 64);

  using Kind = InputSpec::Kind;
  std::string names;
  for (const InputSpec& input : program.inputs) {
    names += fmt::format("{}:{}{} ", static_cast<int>(input.kind), input.name,
                         input.is_persistent ? "" : "?");
  }
  EXPECT_EQ(names,
            "0:v 0:w 0:a.weight 0:a.bias 0:norm.weight 0:norm.bias 0:c.weight 0:c.bias 0:d.weight "
            "1:e 1:t? 1:norm.running_mean 1:norm.running_var 1:norm.num_batches_tracked "
            "2:lifted_tensor_0 2:lifted_tensor_1 3:batch.x 4:k ");
  EXPECT_EQ(program.inputs.back().kind, Kind::kUserConstant);
  EXPECT_EQ(program.inputs.back().value, Argument(int64_t{3}));
  EXPECT_EQ(program.inputs[0].value, Argument(TensorName{"p_v"}));

  std::string outputs;
  for (const OutputSpec& output : program.outputs) outputs += output.name + " ";
  EXPECT_EQ(outputs, "logits more.0 more.1 more.2 more.3 ");
  EXPECT_EQ(program.outputs[3].value, Argument(int64_t{3}));
}

TEST(ExportedSchema, ReadsNodesAndTheirArguments) {
  const Program program = parse_program(net_json(), "net.pt2");
  const Graph& graph = program.graph;

  const Node& linear = find_node(graph, "aten::linear");
  EXPECT_EQ(linear.kind, Node::Kind::kOperator);
  EXPECT_EQ(linear.overload, "");
  ASSERT_EQ(linear.inputs.size(), 3u);
  EXPECT_EQ(linear.inputs[1].name, "weight");
  EXPECT_EQ(linear.inputs[1].value, Argument(TensorName{"p_a_weight"}));
  EXPECT_EQ(linear.source.text(), "net.py:17, in forward");
  EXPECT_EQ(linear.source.code, "x = self.norm(self.a(batch[\"x\"]))");
  ASSERT_EQ(linear.modules.size(), 2u);
  EXPECT_EQ(linear.modules[0].fqn, "");
  EXPECT_EQ(linear.modules[1].fqn, "a");
  EXPECT_EQ(linear.modules[1].type, "torch.nn.modules.linear.Linear");

  const Node& full = find_node(graph, "aten::full");
  EXPECT_EQ(full.inputs[0].value, Argument(std::vector<int64_t>{1}));
  EXPECT_EQ(full.inputs[1].value, Argument(-std::numeric_limits<double>::infinity()));
  EXPECT_EQ(full.inputs[2].name, "device");
  EXPECT_EQ(full.inputs[2].value, Argument(DeviceName{.type = "cpu"}));
  EXPECT_TRUE(full.inputs[2].is_keyword);

  const Node& split = find_node(graph, "aten::split");
  EXPECT_EQ(split.overload, "Tensor");
  ASSERT_EQ(split.outputs.size(), 1u);
  EXPECT_EQ(std::get<std::vector<TensorName>>(split.outputs[0]).size(), 3u);

  const Node& mul = find_node(graph, "mul");
  EXPECT_EQ(mul.kind, Node::Kind::kScalarFunction);
  EXPECT_EQ(mul.inputs[1].value, Argument(int64_t{2}));
  const auto& product = std::get<ScalarName>(mul.outputs[0]);
  const Size& size = graph.integers.at(product.name);
  EXPECT_EQ(size.hint, 10);
  EXPECT_EQ(size.expression, "2*" + program.ranges.begin()->first);
  EXPECT_EQ(size.symbol, "");

  const auto& index = std::get<OptionalTensors>(find_node(graph, "aten::index").inputs[1].value);
  ASSERT_EQ(index.size(), 2u);
  EXPECT_FALSE(index[0]);
  EXPECT_TRUE(index[1]);

  const Node& reshape = find_node(graph, "aten::reshape");
  const auto& shape = std::get<Scalars<int64_t>>(reshape.inputs[1].value);
  ASSERT_EQ(shape.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<ScalarName>(shape[0]));
  EXPECT_EQ(std::get<int64_t>(shape[1]), -1);

  const TensorMeta& x = graph.tensors.at("batch_x");
  EXPECT_EQ(x.dtype, c10::kFloat);
  ASSERT_EQ(x.sizes.size(), 2u);
  EXPECT_EQ(x.sizes[0].hint, 5);
  EXPECT_EQ(x.sizes[0].symbol, program.ranges.begin()->first);
  EXPECT_TRUE(x.sizes[1].is_constant());
}

TEST(ExportedSchema, ReadsRegions) {
  const Program program = parse_program(net_json(), "net.pt2");
  const Node& no_grad = find_node(program.graph, "wrap_with_set_grad_enabled");
  EXPECT_EQ(no_grad.kind, Node::Kind::kRegion);
  EXPECT_EQ(no_grad.inputs[0].value, Argument(false));
  const Graph& graph = *std::get<Subgraph>(no_grad.inputs[1].value).graph;
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(graph.nodes[0].function, "aten::mean");
  EXPECT_EQ(graph.inputs.size(), 1u);

  const Node& cond = find_node(program.graph, "cond");
  ASSERT_EQ(cond.inputs.size(), 4u);
  EXPECT_EQ(std::get<Subgraph>(cond.inputs[1].value).graph->nodes[0].function, "aten::sin");
  EXPECT_EQ(std::get<Subgraph>(cond.inputs[2].value).graph->nodes[0].function, "aten::cos");
  EXPECT_TRUE(std::holds_alternative<std::vector<TensorName>>(cond.inputs[3].value));
}

TEST(ExportedSchema, NamesASingleInputAndOutput) {
  const Program program = parse_program(small_program().dump(), "net.pt2");
  EXPECT_EQ(program.inputs[1].name, "x");
  ASSERT_EQ(program.outputs.size(), 1u);
  EXPECT_EQ(program.outputs[0].name, "output");
}

TEST(ExportedSchema, ReadsEveryKindOfArgument) {
  const auto read = [](const char* json) {
    const Place place("p");
    return read_argument(Json::parse(json), place, place, 0);
  };
  using Tensors = std::vector<TensorName>;
  EXPECT_EQ(read(R"({"as_none": true})"), Argument());
  EXPECT_EQ(read(R"({"as_bool": true})"), Argument(true));
  EXPECT_EQ(read(R"({"as_int": -3})"), Argument(int64_t{-3}));
  EXPECT_EQ(read(R"({"as_float": 0.5})"), Argument(0.5));
  EXPECT_TRUE(std::isnan(std::get<double>(read(R"({"as_float": "NaN"})"))));
  EXPECT_EQ(read(R"({"as_complex": {"real": 1.0, "imag": -2.0}})"),
            Argument(std::complex<double>(1, -2)));
  EXPECT_EQ(read(R"({"as_string": "mean"})"), Argument(std::string("mean")));
  EXPECT_EQ(read(R"({"as_scalar_type": 13})"), Argument(c10::kBFloat16));
  EXPECT_EQ(read(R"({"as_memory_format": 2})"), Argument(c10::MemoryFormat::ChannelsLast));
  EXPECT_EQ(read(R"({"as_layout": 7})"), Argument(c10::Layout::Strided));
  EXPECT_EQ(read(R"({"as_device": {"type": "cuda", "index": 1}})"),
            Argument(DeviceName{.type = "cuda", .index = 1}));
  EXPECT_EQ(read(R"({"as_tensor": {"name": "a"}})"), Argument(TensorName{"a"}));
  EXPECT_EQ(read(R"({"as_optional_tensor": {"as_tensor": {"name": "a"}}})"),
            Argument(TensorName{"a"}));
  EXPECT_EQ(read(R"({"as_optional_tensor": {"as_none": true}})"), Argument());
  EXPECT_EQ(read(R"({"as_tensors": [{"name": "a"}, {"name": "b"}]})"),
            Argument(Tensors{{"a"}, {"b"}}));
  EXPECT_EQ(read(R"({"as_optional_tensors": [{"as_none": true}, {"as_tensor": {"name": "b"}}]})"),
            Argument(OptionalTensors{std::nullopt, TensorName{"b"}}));
  EXPECT_EQ(read(R"({"as_nested_tensors": [[{"name": "a"}], []]})"),
            Argument(std::vector<Tensors>{{{"a"}}, {}}));
  EXPECT_EQ(read(R"({"as_ints": [1, 2]})"), Argument(std::vector<int64_t>{1, 2}));
  EXPECT_EQ(read(R"({"as_int_lists": [[1], [2, 3]]})"),
            Argument(std::vector<std::vector<int64_t>>{{1}, {2, 3}}));
  EXPECT_EQ(read(R"({"as_floats": [1.5, "Infinity"]})"),
            Argument(std::vector<double>{1.5, std::numeric_limits<double>::infinity()}));
  EXPECT_EQ(read(R"({"as_float_lists": [[1.5]]})"),
            Argument(std::vector<std::vector<double>>{{1.5}}));
  EXPECT_EQ(read(R"({"as_bools": [true, false]})"), Argument(std::vector<bool>{true, false}));
  EXPECT_EQ(read(R"({"as_strings": ["a"]})"), Argument(std::vector<std::string>{"a"}));
  EXPECT_EQ(read(R"({"as_sym_int": {"as_name": "s"}})"), Argument(ScalarName{"s"}));
  EXPECT_EQ(read(R"({"as_sym_int": {"as_int": 4}})"), Argument(int64_t{4}));
  EXPECT_EQ(read(R"({"as_sym_float": {"as_float": 4.5}})"), Argument(4.5));
  EXPECT_EQ(read(R"({"as_sym_bool": {"as_name": "s"}})"), Argument(ScalarName{"s"}));
  EXPECT_EQ(read(R"({"as_sym_ints": [{"as_int": 4}, {"as_name": "s"}]})"),
            Argument(Scalars<int64_t>{int64_t{4}, ScalarName{"s"}}));
  EXPECT_EQ(read(R"({"as_sym_ints": [{"as_int": 4}]})"), Argument(std::vector<int64_t>{4}));
  EXPECT_EQ(read(R"({"as_sym_floats": [{"as_name": "s"}]})"),
            Argument(Scalars<double>{ScalarName{"s"}}));
  EXPECT_EQ(read(R"({"as_sym_bools": [{"as_bool": true}]})"), Argument(std::vector<bool>{true}));
}

TEST(ExportedSchema, RejectsUnsupportedArgumentsByName) {
  const auto with = [](const char* argument) {
    return problem_with(kNode + "/inputs/2/arg", Json::parse(argument));
  };
  const std::string node =
      "node 'add' (aten::add.Tensor at net.py:7, in forward): argument "
      "'alpha': ";
  expect_error(with(R"({"as_custom_obj": {"name": "o", "class_fqn": "c"}})"),
               node + "an object (of a class of Python or TorchScript) is not supported");
  expect_error(with(R"({"as_operator": "aten.add"})"), node + "an operator as an argument");
  expect_error(with(R"({"as_string_to_argument": {}})"), node + "a dict as an argument");
  expect_error(with(R"({"as_new": 1})"), node + "arguments of kind 'as_new' are not supported");
  expect_error(with(R"({"as_int": 1, "as_float": 1.0})"), "an object with one key");
  expect_error(with(R"({"as_int": 1.5})"), "an integer must be an integer, not number");
  expect_error(with(R"({"as_int": 18446744073709551615})"), "is too large");
  expect_error(with(R"({"as_float": "inf"})"), "a number must be a number, not string");
  expect_error(with(R"({"as_scalar_type": 0})"), "dtype 0 is not supported");
  expect_error(with(R"({"as_layout": 2})"), "layout 2 (sparse or of a library)");
  expect_error(with(R"({"as_memory_format": 9})"), "unknown memory format 9");
  expect_error(with(R"({"as_sym_int": {"as_float": 1.0}})"), "unknown scalar 'as_float'");
  expect_error(with(R"({"as_tensors": {"name": "x"}})"), "must be a list");
  expect_error(with(R"({"as_graph": {"name": "g", "graph": {"inputs": [], "outputs": [],
                        "nodes": [], "tensor_values": {}}}})"),
               "argument 'alpha' is a graph");
}

TEST(ExportedSchema, RejectsUnsupportedTargetsByName) {
  const auto with = [](const char* target) { return problem_with(kNode + "/target", target); };
  expect_error(with("torch.ops.higher_order.scan"),
               "node 'add' calls the higher-order operator scan (net.py:7, in forward); supported "
               "are cond, wrap_with_autocast, wrap_with_set_grad_enabled");
  expect_error(with("torch.ops.aten.add"), "node 'add' calls 'torch.ops.aten.add'");
  expect_error(with("torch.ops.aten.a.b.c"), "operators are NAMESPACE.NAME.OVERLOAD");
  expect_error(with("torch.ops.aten..default"), "operators are NAMESPACE.NAME.OVERLOAD");
  expect_error(with("os.system"), "neither an operator of LibTorch nor a function of scalars");
  expect_error(with("#ext:op"), "neither an operator of LibTorch nor a function of scalars");
  expect_error(with("torch.ops.higher_order.cond"), "no graph is given");
  for (const char* target : {"torch._functorch.predispatch._add_batch_dim", "torch.vmap",
                             "torch._C._functorch._add_batch_dim", "torch.func.grad"}) {
    expect_error(with(target),
                 fmt::format("node 'add' calls '{}' (net.py:7, in forward): torch.export does not "
                             "turn torch.vmap, the transforms of torch.func and flex_attention "
                             "into operators; write the model with a batch dimension instead",
                             target));
  }
  EXPECT_EQ(with("torch.ops.mine.op.default"), "");
}

// torch 2.10 and older store no names of nodes.
TEST(ExportedSchema, NamesNodesByTheirFirstResult) {
  const auto described = [](const char* outputs) {
    Json program = small_program();
    Json& node = program[Json::json_pointer(kNode)];
    node.erase("name");
    node["outputs"] = Json::parse(outputs);
    node["target"] = "torch.ops.higher_order.scan";
    return problem_of(program.dump());
  };
  expect_error(described(R"([{"as_tensor": {"name": "y"}}])"), "node 'y' calls the higher-order");
  expect_error(described(R"([{"as_tensors": [{"name": "y"}, {"name": "z"}]}])"), "node 'y' calls");
  expect_error(described(R"([{"as_sym_int": {"as_name": "s"}}])"), "node 's' calls");
  expect_error(described(R"([{"as_none": true}, {"as_tensor": {"name": "y"}}])"), "node 'y' calls");
  expect_error(described("[]"), "node 'torch.ops.higher_order.scan' calls");
  expect_error(described("{}"), "node 'torch.ops.higher_order.scan' calls");

  Json program = small_program();
  program[Json::json_pointer(kNode)].erase("name");
  const Program named = parse_program(program.dump(), "net.pt2");
  EXPECT_EQ(describe(named.graph.nodes.front()),
            "node 'y' (aten::add.Tensor at net.py:7, in forward)");
}

// As torch 2.9 does with strict=True.
TEST(ExportedSchema, ReadsATiedParameterThatIsListedTwice) {
  const auto with = [](const char* second) {
    Json program = small_program();
    Json& graph = program[Json::json_pointer(kGraph)];
    graph["inputs"].insert(graph["inputs"].begin() + 1,
                           Json::parse(R"({"as_tensor": {"name": "v"}})"));
    graph["tensor_values"]["v"] = graph["tensor_values"]["w"];
    Json& specs = program[Json::json_pointer(kSignature + "/input_specs")];
    specs.insert(specs.begin() + 1, Json::parse(second));
    return program.dump();
  };
  const char* const tied = R"({"parameter": {"arg": {"name": "v"}, "parameter_name": "fc.w"}})";
  const Program program = parse_program(with(tied), "net.pt2");
  ASSERT_EQ(program.inputs.size(), 3u);
  EXPECT_EQ(program.inputs[0].name, "fc.w");
  EXPECT_EQ(program.inputs[1].name, "fc.w");
  EXPECT_EQ(program.inputs[1].value, Argument(TensorName{"v"}));
  EXPECT_EQ(program.inputs[2].name, "x");
  expect_error(problem_of(with(R"({"buffer": {"arg": {"name": "v"}, "buffer_name": "fc.w",
                                               "persistent": true}})")),
               "'fc.w' is given twice");
}

TEST(ExportedSchema, RejectsValuesOutOfOrder) {
  expect_error(problem_with(kNode + "/inputs/0/arg/as_tensor/name", "y"),
               "node 'add' (aten::add.Tensor at net.py:7, in forward): value 'y' is used before it "
               "is defined");
  expect_error(problem_with(kNode + "/outputs/0/as_tensor/name", "x"), "'x' is defined twice");
  expect_error(problem_with(kNode + "/outputs/0", Json::parse(R"({"as_int": 1})")),
               "a result is neither a tensor");
  expect_error(
      problem_with(kNode + "/inputs/0/arg", Json::parse(R"({"as_sym_int": {"as_name": "x"}})")),
      "value 'x' is not a scalar");
  expect_error(problem_with(kNode + "/inputs/0/name", "other"), "'other' is given twice");
  expect_error(problem_with(kGraph + "/tensor_values/y", kRemoved),
               "value 'y' is in no table of the graph's values");
  expect_error(problem_with(kGraph + "/outputs/0/as_tensor/name", "z"),
               "value 'z' is used before it is defined");
  expect_error(problem_with(kGraph + "/inputs/0/as_tensor/name", "x"), "'x' is defined twice");
}

TEST(ExportedSchema, RejectsOtherPrograms) {
  const std::string decomposed = "do not call run_decompositions()";
  expect_error(problem_with("/schema_version/major", 9), "has schema 9.17 (torch 2.11.0)");
  expect_error(problem_with("/verifiers/0", "ATEN"), decomposed);
  for (const char* kind : {"buffer_mutation", "loss_output", "gradient_to_parameter"}) {
    expect_error(problem_with(kSignature + "/output_specs/0",
                              Json{{kind, {{"arg", {{"name", "y"}}}, {"buffer_name", "b"}}}}),
                 decomposed);
  }
  expect_error(problem_with(kSignature + "/input_specs/0", Json::parse(R"({"custom_obj": {}})")),
               "an object (of a class of Python or TorchScript) is not supported");
  expect_error(problem_with(kSignature + "/input_specs/0", Json::parse(R"({"token": {}})")),
               "a token (an operator with side effects)");
  expect_error(problem_with(kSignature + "/input_specs/0", Json::parse(R"({"new": {}})")),
               "inputs of kind 'new' are not supported");
  expect_error(problem_with(kGraph + "/custom_obj_values/o", 1),
               "calls operators with an object of the class 'unknown'");
  expect_error(problem_with(kGraph + "/custom_obj_values/o",
                            Json::parse(R"({"name": "o", "class_fqn": "nets.Box"})")),
               "calls operators with an object of the class 'nets.Box', which is not supported; "
               "give them tensors and numbers alone");
  expect_error(problem_with(kGraph + "/tensor_values/y/layout", 1), "sparse or quantized tensor");
  expect_error(problem_with(kGraph + "/tensor_values/y/dtype", 0), "tensor 'y': dtype 0");
  expect_error(problem_with(kSignature + "/input_specs/0/parameter/arg/name", "x"),
               "input 0 is not that of the graph");
  expect_error(problem_with(kSignature + "/input_specs/1", kRemoved), "1 for 2 inputs");
  expect_error(problem_with(kSignature + "/output_specs/0", kRemoved), "not those of the graph");
  expect_error(problem_with("/graph_module/module_call_graph/0/fqn", "a"), "is missing");
  expect_error(problem_with("/graph_module/module_call_graph/0/signature/out_spec",
                            R"([1, {"type": "builtins.list", "context": "null",
                                    "children_spec": []}])"),
               "names 1 inputs and 0 outputs, but the signature has 1 and 1");
  expect_error(problem_with("/graph_module", kRemoved), "'graph_module' is missing");
}

TEST(ExportedSchema, RejectsExcessiveJson) {
  expect_error(problem_of(""), "not valid JSON");
  expect_error(problem_of("{"), "not valid JSON");
  expect_error(problem_of(std::string(100'000, '[')), "JSON of over 256 levels");
  expect_error(problem_of(R"({"a": 1, "b": {"a": 1, "a": 2}})"), "'a' is given twice");
  expect_error(problem_of(std::string(100'000'001, ' ')), "JSON of 100000001 bytes");
  Json program = small_program();
  Json& sizes = program[Json::json_pointer(kGraph + "/tensor_values/y/sizes")];
  for (int i = 0; i < 64; ++i) sizes.push_back({{"as_int", 1}});
  expect_error(problem_of(program.dump()), "65 dimensions");

  Json graph = Json::parse(R"({"inputs": [], "outputs": [], "nodes": [], "tensor_values": {}})");
  const auto nest = [&graph](int times) {
    Json nested = graph;
    for (int i = 0; i < times; ++i) {
      Json outer = graph;
      outer["nodes"].push_back(
          {{"target", "torch.ops.higher_order.cond"},
           {"inputs",
            {{{"name", ""}, {"arg", {{"as_graph", {{"name", "g"}, {"graph", nested}}}}}}}},
           {"outputs", Json::array()}});
      nested = outer;
    }
    const Place file("net.pt2");
    try {
      read_graph(nested, file, 0);
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(nest(16), "");
  expect_error(nest(17), "over 16 graphs in one another");
}

// Whatever a changed byte does, it ends in a program or in a DataError.
TEST(ExportedSchema, SurvivesEveryChangedByte) {
  const std::string json = small_program().dump();
  for (size_t i = 0; i < json.size(); ++i) {
    for (const char byte : {'0', '"', '}', 'x', '\0'}) {
      std::string changed = json;
      changed[i] = byte;
      problem_of(changed);
    }
    problem_of(json.substr(0, i));
  }
}

TEST(ExportedSchema, FindsTheUsersLine) {
  const auto line = [](const char* trace) { return read_source_line(trace).text(); };
  EXPECT_EQ(line("  File \"/a/b/net.py\", line 3, in f\n    x\n"
                 "  File \"/v/site-packages/torch/nn/modules/linear.py\", line 134, in forward\n"),
            "net.py:3, in f");
  EXPECT_EQ(line("File \"/v/site-packages/torch/nn/linear.py\", line 134, in forward"),
            "linear.py:134, in forward");
  EXPECT_EQ(line("File \"net.py\", line 3\nFile \"<eval_with_key>.5\", line 9, in f"), "net.py:3");
  EXPECT_EQ(line("File \"<eval_with_key>.5\", line 9, in f"), "");
  EXPECT_EQ(line("File \"net.py\", line"), "");
  EXPECT_EQ(line("File \""), "");
  EXPECT_EQ(line(""), "");
}

TEST(ExportedSchema, ReadsModuleStacks) {
  const auto frames = read_module_stack(
      "L__self__,,net.Net;L__self___h_0@1,h.0@1,net.Block;_empty_nn_module_stack,a,b;bad;;");
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].type, "net.Net");
  EXPECT_EQ(frames[1].fqn, "h.0");
  EXPECT_EQ(frames[1].type, "net.Block");
}

TEST(ExportedSchema, WritesSymbolicSizesAsFormulas) {
  EXPECT_EQ(sympy_formula("Symbol('s39', positive=True, integer=True)"), "s39");
  EXPECT_EQ(sympy_formula("Mul(Integer(4), Symbol('s39', positive=True, integer=True))"), "4*s39");
  EXPECT_EQ(sympy_formula("Mul(Integer(2), Add(Symbol('a', integer=True), Integer(-1)))"),
            "2*(a + -1)");
  EXPECT_EQ(sympy_formula("Pow(Add(Symbol('a'), Symbol('b')), Integer(2))"), "(a + b)**2");
  EXPECT_EQ(sympy_formula("FloorDiv(Symbol('a'), Integer(2))"), "FloorDiv(a, 2)");
  for (const char* text :
       {"", "Mul(", "Mul(Integer(4)", "Symbol('a", "a)", "(((((", "Mul(=True)"}) {
    EXPECT_EQ(sympy_formula(text), text);
  }
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += "Abs(";
  EXPECT_EQ(sympy_formula(deep), deep);
}

TEST(ExportedSchema, NamesLeavesOfTrees) {
  const Place place("p");
  const std::string leaf = R"({"type": null, "context": null, "children_spec": []})";
  const auto tree = [&](const char* type, const std::string& context, int leaves) {
    std::string children = leaves > 0 ? leaf : "";
    for (int i = 1; i < leaves; ++i) children += ", " + leaf;
    return Json{1,
                {{"type", type},
                 {"context", context},
                 {"children_spec", Json::parse("[" + children + "]")}}}
        .dump();
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(read_output_names(tree("builtins.tuple", "null", 2), place), (Names{"0", "1"}));
  EXPECT_EQ(read_output_names(tree("d", R"(["a", "b"])", 2), place), (Names{"a", "b"}));
  EXPECT_EQ(read_output_names(tree("D", R"([["loss", "logits"], ["cache"]])", 2), place),
            (Names{"loss", "logits"}));
  EXPECT_EQ(read_output_names(tree("dd", R"({"module": "m", "dict_context": ["a"]})", 1), place),
            Names{"a"});
  EXPECT_EQ(read_output_names(tree("d", R"(["a"])", 2), place), (Names{"0", "1"}));
  EXPECT_THROW(read_output_names("[2, {}]", place), DataError);
  EXPECT_THROW(read_output_names("[1, 3]", place), DataError);
  EXPECT_THROW(read_output_names(tree("d", "[", 1), place), DataError);
  EXPECT_THROW(read_input_names(tree("builtins.tuple", "null", 1), {}, place), DataError);
}

}  // namespace
}  // namespace gallop::model::exported
