#include "gallop/model/exported/description.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <variant>

#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/model/exported/archive.h"
#include "gallop/model/exported/missing_operators.h"
#include "gallop/model/exported/sharding.h"
#include "gallop/model/exported/tensor_parallel_plan.h"

namespace gallop::model::exported {

namespace {

constexpr size_t kMostOperators = 12;

// Symbols get names of their own: torch's, such as "s34", mean nothing to a reader.
class SymbolNames {
 public:
  void add(const std::string& symbol, bool is_first) {
    if (symbol.empty() || names_.contains(symbol)) return;
    const bool is_batch = is_first && !has_batch_;
    has_batch_ |= is_batch;
    names_[symbol] = is_batch ? "batch" : fmt::format("n{}", ++others_);
  }
  std::string text(const Size& size) const {
    if (size.is_constant()) return size.hint ? std::to_string(*size.hint) : "?";
    std::string text;
    for (size_t i = 0; i < size.expression.size();) {
      const size_t end = end_of_word(size.expression, i);
      const std::string word = size.expression.substr(i, std::max<size_t>(end - i, 1));
      const auto found = names_.find(word);
      text += found == names_.end() ? word : found->second;
      i += word.size();
    }
    return text;
  }
  const std::map<std::string, std::string>& names() const { return names_; }

 private:
  static size_t end_of_word(const std::string& text, size_t at) {
    const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
    while (at < text.size() && is_word(static_cast<unsigned char>(text[at]))) at += 1;
    return at;
  }

  std::map<std::string, std::string> names_;
  bool has_batch_ = false;
  int others_ = 0;
};

Description::Value value_of(const Program& program, const std::string& name, const Argument& value,
                            const SymbolNames& symbols) {
  const TensorMeta* const meta = meta_of(program.graph, value);
  if (meta == nullptr) return {.name = name, .dtype = "number", .sizes = ""};
  std::vector<std::string> sizes;
  for (const Size& size : meta->sizes) sizes.push_back(symbols.text(size));
  return {.name = name,
          .dtype = c10::getDtypeNames(meta->dtype).first,
          .sizes = fmt::format("[{}]", fmt::join(sizes, ", "))};
}

void describe_values(const Program& program, Description& description) {
  SymbolNames symbols;
  for (const InputSpec& input : program.inputs) {
    if (input.kind != InputSpec::Kind::kUserInput) continue;
    const TensorMeta* const meta = meta_of(program.graph, input.value);
    if (meta == nullptr) continue;
    for (size_t i = 0; i < meta->sizes.size(); ++i) symbols.add(meta->sizes[i].symbol, i == 0);
  }
  for (const InputSpec& input : program.inputs) {
    if (input.kind != InputSpec::Kind::kUserInput) continue;
    description.inputs.push_back(value_of(program, input.name, input.value, symbols));
  }
  for (const OutputSpec& output : program.outputs) {
    description.outputs.push_back(value_of(program, output.name, output.value, symbols));
  }
  for (const auto& [symbol, name] : symbols.names()) {
    const auto range = program.ranges.find(symbol);
    description.dimensions.push_back(
        {.name = name, .range = range == program.ranges.end() ? Range() : range->second});
  }
  std::sort(description.dimensions.begin(), description.dimensions.end(),
            [](const auto& one, const auto& other) { return one.name < other.name; });
}

void describe_weights(Archive& archive, const std::string& model, Description& description) {
  for (const ArchivedTensor& stored : archive.weights(model)) {
    const int64_t elements = stored.tensor.numel();
    description.bytes += static_cast<int64_t>(stored.tensor.nbytes());
    (stored.is_parameter ? description.parameters : description.buffers) += elements;
    (stored.is_parameter ? description.parameter_tensors : description.buffer_tensors) += 1;
    if (stored.is_parameter && !stored.requires_grad) description.frozen += elements;
  }
}

void count_operators(const Graph& graph, std::map<std::string, int64_t>& counts) {
  for (const Node& node : graph.nodes) {
    counts[node.function] += 1;
    for (const NamedArgument& input : node.inputs) {
      const auto* const subgraph = std::get_if<Subgraph>(&input.value);
      if (subgraph != nullptr) count_operators(*subgraph->graph, counts);
    }
  }
}

void describe_operators(const Program& program, Description& description) {
  std::map<std::string, int64_t> counts;
  count_operators(program.graph, counts);
  for (const auto& [name, count] : counts) {
    description.operators.push_back({name, count});
    description.nodes += count;
  }
  std::stable_sort(description.operators.begin(), description.operators.end(),
                   [](const auto& one, const auto& other) { return one.count > other.count; });
}

void describe_layers(const Program& program, Description& description) {
  std::map<std::string, std::string> names;
  for (const InputSpec& input : program.inputs) names[tensor_name_of(input.value)] = input.name;
  TensorParallelPlan plan;
  try {
    plan = plan_tensor_parallel(program, {.processes = 2, .file = description.file});
  } catch (const UsageError&) {
    // Nothing can be divided.
  }
  for (const Node& node : program.graph.nodes) {
    const auto call = find_linear_call(program.graph, node);
    if (!call || !names.contains(call->weight)) continue;
    description.linear_layers += 1;
    description.divided_layers += plan.contains(names.at(call->weight)) ? 1 : 0;
  }
}

void find_evaluation(const Program& program, Description& description) {
  if (description.has_evaluation) return;
  EvaluationProgram evaluation = switch_to_evaluation(program);
  description.switched = std::move(evaluation.switched);
  if (!evaluation.unknown.empty()) description.problems.push_back(evaluation.problem());
}

void add_sample(Archive& archive, Description& description) {
  try {
    description.sample = run_sample(archive);
  } catch (const UsageError& error) {
    description.problems.emplace_back(error.what());
    return;
  } catch (const DataError& error) {
    description.warnings.emplace_back(error.what());  // The rest of the archive has been read.
    return;
  }
  if (description.sample.empty()) return;
  const auto& without = description.sample.front().without_gradient;
  if (without.empty()) return;
  description.warnings.push_back(
      fmt::format("{} of {} parameters get no gradient from the sample (first: {}): unused, or "
                  "behind a custom autograd.Function, whose backward torch.export drops",
                  without.size(), description.parameter_tensors, printable(without.front())));
}

std::string range_text(const Range& range) {
  const auto least = range.min.value_or(0);
  return range.max ? fmt::format("{} to {}", format_count(least), format_count(*range.max))
                   : fmt::format("{} or more", format_count(least));
}

std::string list_text(const std::vector<Description::Operator>& operators) {
  std::string text;
  for (size_t i = 0; i < operators.size() && i < kMostOperators; ++i) {
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", printable(operators[i].name),
                        format_count(operators[i].count));
  }
  if (operators.size() > kMostOperators) {
    text += fmt::format(" and {} others", operators.size() - kMostOperators);
  }
  return text;
}

std::string evaluation_text(const Description& description) {
  if (description.has_evaluation) return "a program of its own";
  if (description.switched.empty()) return "the same as training";
  std::string text;
  for (const SwitchedOperator& one : description.switched) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", printable(one.name),
                        format_count(one.count));
  }
  return "training switched: " + text;
}

std::string sample_text(const SampleRun& run) {
  const std::string mode = run.mode == Archive::kTrain ? "training" : "evaluation";
  if (!run.has_reference) return fmt::format("{} runs; no values of Python to compare with", mode);
  const std::string what = run.gradient_norms.empty()
                               ? "output"
                               : fmt::format("outputs and {} gradients", run.gradient_norms.size());
  std::string text = run.error == 0
                         ? fmt::format("{}: {} equal to Python's, bit for bit", mode, what)
                         : fmt::format("{}: {} within {:.1e} of Python's (largest: {})", mode, what,
                                       run.error, printable(run.worst));
  if (run.export_error > 0) {
    text += fmt::format("; torch.export's program is within {:.1e} of the model", run.export_error);
  }
  return text;
}

std::string parameters_text(const Description& description) {
  std::string text = fmt::format("{} in {} tensors", format_count(description.parameters),
                                 format_count(description.parameter_tensors));
  if (description.frozen > 0) text += fmt::format(", {} frozen", format_count(description.frozen));
  if (description.buffers > 0) {
    text += fmt::format("; {} more in {} buffers", format_count(description.buffers),
                        format_count(description.buffer_tensors));
  }
  return fmt::format("{}; {}", text, format_bytes(description.bytes));
}

nlohmann::ordered_json json_of(const std::vector<Description::Value>& values) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& value : values) {
    list.push_back({{"name", value.name}, {"dtype", value.dtype}, {"sizes", value.sizes}});
  }
  return list;
}

nlohmann::ordered_json json_of(const SampleRun& run) {
  nlohmann::ordered_json json{{"mode", run.mode}, {"objective", run.objective}};
  if (!run.gradient_norms.empty()) json["gradient_norms"] = run.gradient_norms;
  if (!run.without_gradient.empty()) json["without_gradient"] = run.without_gradient;
  if (run.has_reference) {
    json["expected_objective"] = run.expected_objective;
    json["error"] = run.error;
    json["export_error"] = run.export_error;
    if (!run.worst.empty()) json["worst"] = run.worst;
  }
  return json;
}

}  // namespace

Description describe_archive(const std::string& file, bool runs_sample) {
  Archive archive(file);
  const std::string& main = archive.training_program();
  const Program program = archive.program(main);
  Description description{.file = file,
                          .torch_version = program.torch_version,
                          .programs = archive.models(),
                          .inputs = {},
                          .outputs = {},
                          .dimensions = {},
                          .operators = {},
                          .has_evaluation = archive.models().size() > 1,
                          .switched = {},
                          .problems = {},
                          .warnings = {},
                          .sample = {}};
  describe_values(program, description);
  describe_weights(archive, main, description);
  describe_operators(program, description);
  describe_layers(program, description);
  find_evaluation(program, description);
  for (const std::string& one : missing_operators(program.graph)) {
    description.problems.push_back(one);
  }
  if (description.parameters == description.frozen) {
    description.problems.emplace_back("has no parameter that requires a gradient");
  }
  if (runs_sample && description.problems.empty()) add_sample(archive, description);
  return description;
}

std::string to_text(const Description& description) {
  std::string text = fmt::format("{}: exported by torch {}\n", printable(description.file),
                                 printable(description.torch_version));
  const auto add = [&](std::string_view label, const std::string& line) {
    text += fmt::format("{:<12} {}\n", label, line);
  };
  const auto add_values = [&](const char* label, const std::vector<Description::Value>& values) {
    size_t width = 0;
    for (const auto& value : values) width = std::max(width, value.name.size());
    for (const auto& value : values) {
      add(&value == &values.front() ? label : "",
          fmt::format("{:<{}}  {} {}", printable(value.name), width, value.dtype,
                      printable(value.sizes)));
    }
  };
  add_values("inputs", description.inputs);
  add_values("outputs", description.outputs);
  for (const auto& dimension : description.dimensions) {
    add(&dimension == &description.dimensions.front() ? "dimensions" : "",
        fmt::format("{}: {}", dimension.name, range_text(dimension.range)));
  }
  add("parameters", parameters_text(description));
  add("operators",
      fmt::format("{}: {}", format_count(description.nodes), list_text(description.operators)));
  if (description.divided_layers > 0) {
    add("parallel", fmt::format("tensor: 2 processes divide {} of {} linear layers",
                                description.divided_layers, description.linear_layers));
  }
  add("evaluation", evaluation_text(description));
  for (const SampleRun& run : description.sample) {
    add(&run == &description.sample.front() ? "sample" : "", sample_text(run));
  }
  for (const std::string& one : description.warnings) add("warning", one);
  for (const std::string& one : description.problems) add("error", one);
  return text;
}

std::string to_json(const Description& description) {
  nlohmann::ordered_json json{{"file", description.file},
                              {"torch_version", description.torch_version},
                              {"programs", description.programs},
                              {"inputs", json_of(description.inputs)},
                              {"outputs", json_of(description.outputs)}};
  json["dimensions"] = nlohmann::ordered_json::object();
  for (const auto& [name, range] : description.dimensions) {
    auto& dimension = json["dimensions"][name] = nlohmann::ordered_json::object();
    if (range.min) dimension["min"] = *range.min;
    if (range.max) dimension["max"] = *range.max;
  }
  json["parameters"] = description.parameters;
  json["frozen"] = description.frozen;
  json["buffers"] = description.buffers;
  json["bytes"] = description.bytes;
  json["operators"] = nlohmann::ordered_json::object();
  for (const auto& [name, count] : description.operators) json["operators"][name] = count;
  json["linear_layers"] = description.linear_layers;
  json["divided_layers"] = description.divided_layers;
  json["evaluation"] = description.has_evaluation ? "program" : "switched";
  json["switched"] = nlohmann::ordered_json::object();
  for (const auto& [name, count] : description.switched) json["switched"][name] = count;
  json["sample"] = nlohmann::ordered_json::array();
  for (const SampleRun& run : description.sample) json["sample"].push_back(json_of(run));
  json["warnings"] = description.warnings;
  json["errors"] = description.problems;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace gallop::model::exported
