#include "gallop/model/exported/schema.h"

#include <algorithm>
#include <unordered_map>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/text.h"
#include "gallop/model/exported/schema_reader.h"

namespace gallop::model::exported {

namespace {

constexpr int64_t kSchemaMajor = 8;

void read_version(const Json& json, Program& program, const Place& file) {
  if (const Json* version = optional_member(json, "torch_version", file)) {
    program.torch_version = printable(to_text(*version, "'torch_version'", file));
  }
  const Json& schema = object_member(json, "schema_version", file);
  program.schema_major = integer_member(schema, "major", file);
  program.schema_minor = integer_member(schema, "minor", file);
  if (program.schema_major != kSchemaMajor) {
    file.fail(fmt::format("has schema {}.{} (torch {}), and only schema {} is supported",
                          program.schema_major, program.schema_minor, program.torch_version,
                          kSchemaMajor));
  }
}

[[noreturn]] void fail_lowered(const std::string& found, const Place& file) {
  file.fail(
      fmt::format("was decomposed or lowered ({}), so it cannot be trained; save what "
                  "torch.export.export() returns and do not call run_decompositions()",
                  found));
}

// Programs in the training IR alone have the operators that autograd differentiates as eager code.
void check_dialect(const Json& json, const Place& file) {
  for (const Json& verifier : list_member(json, "verifiers", file)) {
    const std::string dialect = to_text(verifier, "a verifier", file);
    if (dialect != "TRAINING") fail_lowered("dialect " + printable(dialect), file);
  }
}

Argument read_constant(const Json& json, const Place& place) {
  Argument value = read_argument(json, place, place, 0);
  if (std::holds_alternative<std::monostate>(value) || std::holds_alternative<bool>(value) ||
      std::holds_alternative<int64_t>(value) || std::holds_alternative<double>(value) ||
      std::holds_alternative<std::string>(value)) {
    return value;
  }
  place.fail("a constant input is neither None, a boolean, a number nor a text");
}

InputSpec read_input_spec(const Json& json, const Place& place) {
  using Kind = InputSpec::Kind;
  const auto [kind, spec] = to_union(json, "an input", place);
  const auto tensor = [&, &value = spec]() -> Argument {
    return TensorName{text_member(object_member(value, "arg", place), "name", place)};
  };
  if (kind == "parameter") {
    return {.kind = Kind::kParameter,
            .name = text_member(spec, "parameter_name", place),
            .value = tensor()};
  }
  if (kind == "buffer") {
    return {.kind = Kind::kBuffer,
            .name = text_member(spec, "buffer_name", place),
            .value = tensor(),
            .is_persistent = boolean_member(spec, "persistent", place)};
  }
  if (kind == "tensor_constant") {
    return {.kind = Kind::kTensorConstant,
            .name = text_member(spec, "tensor_constant_name", place),
            .value = tensor()};
  }
  if (kind == "user_input") {
    return {.kind = Kind::kUserInput,
            .name = "",
            .value = read_argument(member(spec, "arg", place), place, place, 0)};
  }
  if (kind == "constant_input") {
    return {.kind = Kind::kUserConstant,
            .name = "",
            .value = read_constant(member(spec, "value", place), place)};
  }
  if (kind == "custom_obj") {
    place.fail("an object (of a class of Python or TorchScript) is not supported");
  }
  if (kind == "token") place.fail("a token (an operator with side effects) is not supported");
  place.fail(fmt::format("inputs of kind '{}' are not supported", printable(kind)));
}

bool is_users(const InputSpec& input) {
  return input.kind == InputSpec::Kind::kUserInput || input.kind == InputSpec::Kind::kUserConstant;
}

void read_inputs(const Json& signature, Program& program, const Place& file) {
  const Place place = file.within("the inputs of the signature");
  const Json& specs = list_member(signature, "input_specs", place);
  const std::vector<Argument>& graph_inputs = program.graph.inputs;
  std::unordered_map<std::string, InputSpec::Kind> kinds;
  for (const Json& spec : specs) {
    InputSpec input = read_input_spec(spec, place);
    const size_t index = program.inputs.size();
    if (index >= graph_inputs.size() || input.value != graph_inputs[index]) {
      place.fail(fmt::format("input {} is not that of the graph", index));
    }
    if (!is_users(input)) {
      const auto [first, is_new] = kinds.emplace(input.name, input.kind);
      // With strict=True, torch 2.9 lists a tied parameter once for each module that has it, always
      // by the same name.
      const bool is_tied = input.kind == InputSpec::Kind::kParameter && first->second == input.kind;
      if (!is_new && !is_tied) {
        place.fail(fmt::format("'{}' is given twice", printable(input.name)));
      }
    }
    program.inputs.push_back(std::move(input));
  }
  if (program.inputs.size() != graph_inputs.size()) {
    place.fail(
        fmt::format("{} for {} inputs of the graph", program.inputs.size(), graph_inputs.size()));
  }
}

void read_outputs(const Json& signature, Program& program, const Place& file) {
  const Place place = file.within("the outputs of the signature");
  const Json& specs = list_member(signature, "output_specs", place);
  for (const Json& json : specs) {
    const auto [kind, spec] = to_union(json, "an output", place);
    if (kind == "token") place.fail("a token (an operator with side effects) is not supported");
    if (kind != "user_output") fail_lowered(fmt::format("it has a {}", printable(kind)), file);
    program.outputs.push_back(
        {.name = "", .value = read_argument(member(spec, "arg", place), place, place, 0)});
  }
  const auto& outputs = program.graph.outputs;
  if (!std::equal(outputs.begin(), outputs.end(), program.outputs.begin(), program.outputs.end(),
                  [](const Argument& a, const OutputSpec& b) { return a == b.value; })) {
    place.fail("they are not those of the graph");
  }
}

// The entry of the whole model in the module call graph.
const Json& root_signature(const Json& module, const Place& place) {
  for (const Json& entry : list_member(module, "module_call_graph", place)) {
    if (text_member(entry, "fqn", place).empty()) return object_member(entry, "signature", place);
  }
  place.fail("the signature of the whole model is missing");
}

void read_names(const Json& module, Program& program, const Place& file) {
  const Place place = file.within("the module call graph");
  const Json& signature = root_signature(module, place);
  std::vector<std::string> positional;
  if (const Json* names = optional_member(signature, "forward_arg_names", place)) {
    for (const Json& name : to_list(*names, "'forward_arg_names'", place)) {
      positional.push_back(to_text(name, "a name", place));
    }
  }
  const auto names = read_input_names(text_member(signature, "in_spec", place), positional, place);
  size_t next = 0;
  for (InputSpec& input : program.inputs) {
    if (is_users(input) && next++ < names.size()) input.name = names[next - 1];
  }
  const auto outputs = read_output_names(text_member(signature, "out_spec", place), place);
  if (next != names.size() || outputs.size() != program.outputs.size()) {
    place.fail(fmt::format("names {} inputs and {} outputs, but the signature has {} and {}",
                           names.size(), outputs.size(), next, program.outputs.size()));
  }
  for (size_t i = 0; i < outputs.size(); ++i) program.outputs[i].name = outputs[i];
}

std::optional<int64_t> read_bound(const Json& json, const char* key, const Place& place) {
  const Json* bound = optional_member(json, key, place);
  // Infinity, of either sign, is no bound.
  if (bound == nullptr || !bound->is_number_integer()) return std::nullopt;
  return to_integer(*bound, key, place);
}

void read_ranges(const Json& json, Program& program, const Place& file) {
  const Json* ranges = optional_member(json, "range_constraints", file);
  if (ranges == nullptr) return;
  for (const auto& item : to_object(*ranges, "'range_constraints'", file).items()) {
    const Place place = file.within(fmt::format("the range of '{}'", printable(item.key())));
    program.ranges[item.key()] = {.min = read_bound(item.value(), "min_val", place),
                                  .max = read_bound(item.value(), "max_val", place)};
  }
}

}  // namespace

const TensorMeta* meta_of(const Graph& graph, const Argument& value) {
  const auto* const name = std::get_if<TensorName>(&value);
  if (name == nullptr) return nullptr;
  const auto found = graph.tensors.find(name->name);
  return found == graph.tensors.end() ? nullptr : &found->second;
}

Program parse_program(std::string_view json, const std::string& file) {
  const Place place(printable(file));
  const Json root = parse_json(json, place);
  Program program;
  read_version(root, program, place);
  check_dialect(root, place);
  const Json& module = object_member(root, "graph_module", place);
  program.graph = read_graph(object_member(module, "graph", place), place, 0);
  const Json& signature = object_member(module, "signature", place);
  read_inputs(signature, program, place);
  read_outputs(signature, program, place);
  read_names(module, program, place);
  read_ranges(root, program, place);
  return program;
}

}  // namespace gallop::model::exported
