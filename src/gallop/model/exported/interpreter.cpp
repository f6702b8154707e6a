#include "gallop/model/exported/interpreter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>
#include <c10/util/Half.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/model/exported/operand.h"
#include "gallop/model/exported/regions.h"
#include "gallop/model/exported/scalar_functions.h"
#include "gallop/model/functional/dropout.h"

namespace gallop::model::exported {

namespace {

constexpr size_t kNoSlot = std::numeric_limits<size_t>::max();

// Checks of the exporting process, which fail in other formats and on other devices.
bool is_dropped(const Node& node) { return node.function == "aten::_assert_tensor_metadata"; }

/// A node with everything resolved that does not change between runs.
struct Step {
  const Node* node = nullptr;
  std::optional<c10::OperatorHandle> op{};
  const ScalarFunction* scalar_function = nullptr;
  std::vector<std::unique_ptr<Interpreter>> subgraphs{};  // Of a region, in its order.
  std::vector<Operand> operands{};
  /// The slots of the results: those of a list are one after the other.
  std::vector<std::vector<size_t>> results{};
  std::vector<size_t> released{};  // Not used after this step.
};

// An argument without a schema: of a scalar function or a region.
void add_plain(const Argument& argument, const FindSlot& find_slot,
               std::vector<Operand>& operands) {
  const auto add_name = [&](const std::string& name) {
    operands.push_back({.kind = Operand::Kind::kValue, .slot = find_slot(name)});
  };
  if (std::holds_alternative<std::monostate>(argument)) {
    operands.emplace_back();
  } else if (const auto* const flag = std::get_if<bool>(&argument)) {
    operands.push_back({.constant = *flag});
  } else if (const auto* const integer = std::get_if<int64_t>(&argument)) {
    operands.push_back({.constant = *integer});
  } else if (const auto* const number = std::get_if<double>(&argument)) {
    operands.push_back({.constant = *number});
  } else if (const auto* const text = std::get_if<std::string>(&argument)) {
    operands.push_back({.constant = *text});
  } else if (const auto* const dtype = std::get_if<c10::ScalarType>(&argument)) {
    operands.push_back({.constant = static_cast<int64_t>(*dtype)});
  } else {
    visit_names(
        argument, [&](const TensorName& tensor) { add_name(tensor.name); },
        [&](const ScalarName& scalar) { add_name(scalar.name); });
  }
}

// Sets a constant beyond the range of a tensor's format to its limit, such as the lowest fp32
// number for a tensor of bf16 or fp16.
void clamp_to_format(const at::Tensor& tensor, c10::IValue& value) {
  const auto type = tensor.scalar_type();
  if (!value.isDouble() || (type != c10::kHalf && type != c10::kBFloat16)) return;
  const double limit = type == c10::kHalf
                           ? static_cast<double>(std::numeric_limits<c10::Half>::max())
                           : static_cast<double>(std::numeric_limits<c10::BFloat16>::max());
  const double number = value.toDouble();
  if (std::isfinite(number)) value = std::clamp(number, -limit, limit);
}

}  // namespace

struct Interpreter::Impl {
  Graph graph;
  InterpreterOptions options;
  std::string file;
  std::unordered_map<std::string, size_t> slots;
  std::vector<size_t> inputs;  // kNoSlot for constants.
  std::vector<Operand> outputs;
  std::vector<Step> steps;

  size_t add_slot(const std::string& name) {
    return slots.emplace(name, slots.size()).first->second;
  }

  [[noreturn]] void fail(const Node& node, const std::string& what) const {
    throw DataError(fmt::format("{}: {} {}", file, describe(node), what));
  }

  void prepare() {
    const FindSlot find_slot = [this](const std::string& name) { return slots.at(name); };
    for (const Argument& input : graph.inputs) {
      size_t slot = kNoSlot;
      visit_names(
          input, [&](const TensorName& tensor) { slot = add_slot(tensor.name); },
          [&](const ScalarName& scalar) { slot = add_slot(scalar.name); });
      inputs.push_back(slot);
    }
    for (const Node& node : graph.nodes) {
      if (is_dropped(node)) continue;
      Step step{.node = &node};
      switch (node.kind) {
        case Node::Kind::kOperator: prepare_operator(node, find_slot, step); break;
        case Node::Kind::kScalarFunction: prepare_scalar_function(node, find_slot, step); break;
        case Node::Kind::kRegion: prepare_region(node, find_slot, step); break;
      }
      for (const Argument& output : node.outputs) {
        std::vector<size_t>& result = step.results.emplace_back();
        const auto add = [&](const auto& value) { result.push_back(add_slot(value.name)); };
        visit_names(output, add, add);
      }
      steps.push_back(std::move(step));
    }
    for (const Argument& output : graph.outputs) add_plain(output, find_slot, outputs);
    find_last_uses();
  }

  void prepare_operator(const Node& node, const FindSlot& find_slot, Step& step) const {
    step.op = c10::Dispatcher::singleton().findSchema({node.function, node.overload});
    if (!step.op) {
      fail(node,
           "calls an operator that LibTorch does not have: operators of Python packages cannot be "
           "trained; export the model without it");
    }
    size_t used = 0;
    for (const c10::Argument& argument : step.op->schema().arguments()) {
      const auto given =
          std::find_if(node.inputs.begin(), node.inputs.end(),
                       [&](const NamedArgument& input) { return input.name == argument.name(); });
      if (given == node.inputs.end()) {
        if (!argument.default_value()) {
          fail(node, fmt::format("lacks the argument '{}'", argument.name()));
        }
        step.operands.push_back({.constant = *argument.default_value()});
        continue;
      }
      used += 1;
      try {
        step.operands.push_back(
            make_operand(given->value, argument.type(), argument.N(), options.device, find_slot));
      } catch (const UsageError& error) {
        fail(node, fmt::format("has an argument '{}' that {}", argument.name(), error.what()));
      }
      if (argument.name() == "cudnn_enabled") {
        step.operands.back() = {.constant = options.device.is_cuda()};
      }
    }
    if (used != node.inputs.size()) {
      fail(node, "has arguments that this version of the operator does not have");
    }
    if (step.op->schema().returns().size() < node.outputs.size()) {
      fail(node, "has more results than this version of the operator");
    }
  }

  void prepare_scalar_function(const Node& node, const FindSlot& find_slot, Step& step) const {
    step.scalar_function = find_scalar_function(node.function);
    if (step.scalar_function == nullptr) fail(node, "is no function of scalars that is known");
    for (const NamedArgument& input : node.inputs) add_plain(input.value, find_slot, step.operands);
    if (step.operands.size() != step.scalar_function->arguments) {
      fail(node, fmt::format("has {} arguments, but takes {}", step.operands.size(),
                             step.scalar_function->arguments));
    }
  }

  void prepare_region(const Node& node, const FindSlot& find_slot, Step& step) const {
    for (const NamedArgument& input : node.inputs) {
      if (const auto* const subgraph = std::get_if<Subgraph>(&input.value)) {
        step.subgraphs.push_back(std::make_unique<Interpreter>(*subgraph->graph, options, file));
      } else {
        add_plain(input.value, find_slot, step.operands);
      }
    }
    if (const std::string wrong = check_region(node.function, step.operands, step.subgraphs);
        !wrong.empty()) {
      fail(node, wrong);
    }
  }

  // The results of the graph are kept; inputs belong to the caller.
  void find_last_uses() {
    std::vector<size_t> last(slots.size(), kNoSlot);
    for (size_t i = 0; i < steps.size(); ++i) {
      for (const auto& result : steps[i].results) {
        for (const size_t slot : result) last[slot] = i;
      }
      for (const Operand& operand : steps[i].operands) {
        visit_slots(operand, [&](size_t slot) { last[slot] = i; });
      }
    }
    for (const Operand& output : outputs) {
      visit_slots(output, [&](size_t slot) { last[slot] = kNoSlot; });
    }
    for (size_t slot = 0; slot < last.size(); ++slot) {
      if (last[slot] != kNoSlot) steps[last[slot]].released.push_back(slot);
    }
  }

  // Replaces the arguments on the stack by the results. Returns whether it has.
  bool run_instead(const Step& step, torch::jit::Stack& stack) const {
    const std::string& name = step.node->function;
    const bool is_in_place = name == "aten::dropout_";
    if (!options.has_own_dropout || (name != "aten::dropout" && !is_in_place)) return false;
    const at::Tensor input = stack[0].toTensor();
    at::Tensor result = functional::dropout(input, stack[1].toDouble(), stack[2].toBool());
    if (is_in_place && !result.is_same(input)) result = input.copy_(result);
    stack = {std::move(result)};
    return true;
  }

  void call(const Step& step, const std::vector<c10::IValue>& values,
            torch::jit::Stack& stack) const {
    stack.clear();
    for (const Operand& operand : step.operands) stack.push_back(value_of(operand, values));
    if (step.scalar_function != nullptr) {
      stack = {step.scalar_function->call(stack)};
    } else if (!step.op) {
      stack = run_region(step.node->function, std::move(stack), step.subgraphs);
    } else if (!run_instead(step, stack)) {
      const std::string& name = step.node->function;
      if (name == "aten::masked_fill" || name == "aten::masked_fill_") {
        clamp_to_format(stack[0].toTensor(), stack[2]);
      }
      step.op->callBoxed(stack);
    }
  }

  static void take_results(const Step& step, torch::jit::Stack& stack,
                           std::vector<c10::IValue>& values) {
    for (size_t i = 0; i < step.results.size(); ++i) {
      const std::vector<size_t>& result = step.results[i];
      if (result.empty()) continue;
      if (!stack[i].isList()) {
        values[result.front()] = std::move(stack[i]);
        continue;
      }
      const auto list = stack[i].toListRef();
      if (list.size() != result.size()) {
        throw UsageError(fmt::format("{} returns {} tensors, and {} when it was exported",
                                     describe(*step.node), list.size(), result.size()));
      }
      for (size_t j = 0; j < result.size(); ++j) values[result[j]] = list[j];
    }
  }
};

Interpreter::Interpreter(const Graph& graph, const InterpreterOptions& options,
                         const std::string& file)
    : impl_(std::make_unique<Impl>(Impl{.graph = graph, .options = options, .file = file})) {
  impl_->prepare();
}

Interpreter::~Interpreter() = default;

size_t Interpreter::inputs() const { return impl_->inputs.size(); }

std::vector<c10::IValue> Interpreter::run(std::vector<c10::IValue> inputs) const {
  const Impl& impl = *impl_;
  if (inputs.size() != impl.inputs.size()) {
    throw InternalError(fmt::format("an exported program takes {} inputs, and is given {}",
                                    impl.inputs.size(), inputs.size()));
  }
  std::vector<c10::IValue> values(impl.slots.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (impl.inputs[i] != kNoSlot) values[impl.inputs[i]] = std::move(inputs[i]);
  }
  torch::jit::Stack stack;
  for (const Step& step : impl.steps) {
    try {
      impl.call(step, values, stack);
    } catch (c10::Error& error) {
      error.add_context(fmt::format("{}: {}", impl.file, describe(*step.node)));
      throw;
    }
    Impl::take_results(step, stack, values);
    for (const size_t slot : step.released) values[slot] = {};
  }
  std::vector<c10::IValue> results;
  results.reserve(impl.outputs.size());
  for (const Operand& output : impl.outputs) results.push_back(value_of(output, values));
  return results;
}

}  // namespace gallop::model::exported
