#include "gallop/model/exported/interpreter.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <variant>

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/source_context.h"
#include "gallop/base/trace.h"
#include "gallop/model/exported/aliases.h"
#include "gallop/model/exported/autocast_arguments.h"
#include "gallop/model/exported/blocks.h"
#include "gallop/model/exported/find_operator.h"
#include "gallop/model/exported/fixed_masks.h"
#include "gallop/model/exported/missing_operators.h"
#include "gallop/model/exported/operand.h"
#include "gallop/model/exported/random_operators.h"
#include "gallop/model/exported/regions.h"
#include "gallop/model/exported/scalar_functions.h"
#include "gallop/model/exported/transitions.h"
#include "gallop/model/functional/group_norm.h"
#include "gallop/model/functional/recompute.h"
#include "gallop/model/functional/shared_batch_norm.h"

namespace gallop::model::exported {

namespace {

constexpr size_t kNoSlot = std::numeric_limits<size_t>::max();

/// A node with everything resolved that does not change between runs.
struct Step {
  const Node* node = nullptr;
  std::optional<c10::OperatorHandle> op{};
  bool is_batch_norm = false, is_instance_norm = false, is_group_norm = false;
  const RandomOperator* random = nullptr;
  std::unique_ptr<FixedMask> mask{};
  std::optional<AutocastRule> autocast{};
  const ScalarFunction* scalar_function = nullptr;
  std::vector<std::unique_ptr<Interpreter>> subgraphs{};  // Subgraphs of a region, in its order.
  std::vector<Operand> operands{};
  /// The slots of the results: those of a list are one after the other.
  std::vector<std::vector<size_t>> results{};
  std::vector<size_t> released{};  // Not used after this step.
  bool only_writes = false;        // Writes state in a block, and its results are not read.
};

/// A block of steps with the slots that cross its borders.
struct StepBlock {
  size_t begin = 0, end = 0;
  std::vector<size_t> inputs, outputs, captured;
  bool is_recomputed = false;
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

}  // namespace

struct Interpreter::Impl {
  Graph graph;
  InterpreterOptions options;
  std::string file;
  std::unordered_map<std::string, size_t> slots;
  std::vector<size_t> inputs;  // kNoSlot for constants.
  std::vector<Operand> outputs;
  std::vector<Step> steps;
  std::vector<StepBlock> blocks;
  BlockHooks* hooks = nullptr;

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
    std::vector<size_t> first_steps;  // The first step of each node.
    for (const Node& node : graph.nodes) {
      first_steps.push_back(steps.size());
      if (is_dropped(node)) continue;
      Step step{.node = &node};
      switch (node.kind) {
        case Node::Kind::kOperator: prepare_operator(node, find_slot, step); break;
        case Node::Kind::kScalarFunction: prepare_scalar_function(node, find_slot, step); break;
        case Node::Kind::kRegion: prepare_region(node, find_slot, step); break;
        case Node::Kind::kTransition: prepare_transition(node, find_slot, step); break;
      }
      for (const Argument& output : node.outputs) {
        std::vector<size_t>& result = step.results.emplace_back();
        const auto add = [&](const auto& value) { result.push_back(add_slot(value.name)); };
        visit_names(output, add, add);
      }
      steps.push_back(std::move(step));
    }
    for (const Argument& output : graph.outputs) {
      const size_t before = outputs.size();
      add_plain(output, find_slot, outputs);
      if (outputs.size() != before + 1) {
        throw DataError(fmt::format("{}: output {} of the graph is not one value", file, before));
      }
    }
    first_steps.push_back(steps.size());
    find_last_uses();
    // On a CPU results are those of Python, bit for bit.
    if (options.device.is_cuda() || options.simplifies_masks) find_fixed_masks();
    for (const Block& block : find_blocks(graph, options.user_inputs)) {
      add_block(block, first_steps[block.begin], first_steps[block.end]);
    }
  }

  void add_block(const Block& block, size_t begin, size_t end) {
    const auto slots_of = [this](const std::vector<std::string>& names) {
      std::vector<size_t> all;
      for (const std::string& name : names) all.push_back(slots.at(name));
      return all;
    };
    Aliases state(Names(block.captured.begin(), block.captured.end()));
    for (size_t i = begin; i < end; ++i) steps[i].only_writes = state.add(*steps[i].node);
    blocks.push_back({.begin = begin,
                      .end = end,
                      .inputs = slots_of(block.inputs),
                      .outputs = slots_of(block.outputs),
                      .captured = slots_of(block.captured)});
  }

  void prepare_operator(const Node& node, const FindSlot& find_slot, Step& step) const {
    step.op = find_operator(node);
    if (!step.op) fail(node, missing_text(node));
    step.is_batch_norm = node.function == "aten::batch_norm";
    step.is_instance_norm = node.function == "aten::instance_norm";
    step.is_group_norm = node.function == "aten::group_norm";
    if (options.has_own_dropout) step.random = find_random_operator(node, options.device);
    step.autocast = find_autocast_rule(node);
    size_t used = 0;
    for (const c10::Argument& argument : step.op->schema().arguments()) {
      const Argument* const given = find_argument(node, argument.name());
      if (given == nullptr) {
        if (!argument.default_value()) {
          fail(node, fmt::format("lacks the argument '{}'", argument.name()));
        }
        step.operands.push_back({.constant = *argument.default_value()});
        continue;
      }
      used += 1;
      try {
        step.operands.push_back(
            make_operand(*given, argument.type(), argument.N(), options.device, find_slot));
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
    if (step.scalar_function == nullptr) fail(node, "is not a supported function of scalars");
    for (const NamedArgument& input : node.inputs) add_plain(input.value, find_slot, step.operands);
    if (step.operands.size() != step.scalar_function->arguments) {
      fail(node, fmt::format("has {} arguments, but takes {}", step.operands.size(),
                             step.scalar_function->arguments));
    }
  }

  void prepare_transition(const Node& node, const FindSlot& find_slot, Step& step) const {
    if (options.group == nullptr) throw InternalError("a divided program without processes");
    for (const NamedArgument& input : node.inputs) add_plain(input.value, find_slot, step.operands);
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

  // Finds attention whose mask is made from sizes alone: by operators without random numbers, and
  // not changed by anything else.
  void find_fixed_masks() {
    std::vector<bool> is_fixed(slots.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] != kNoSlot && std::holds_alternative<ScalarName>(graph.inputs[i])) {
        is_fixed[inputs[i]] = true;
      }
    }
    for (Step& step : steps) {
      bool of_fixed = step.op || step.scalar_function != nullptr, writes_fixed = false;
      for (const Operand& operand : step.operands) {
        visit_slots(operand, [&](size_t slot) {
          of_fixed = of_fixed && is_fixed[slot];
          writes_fixed = writes_fixed || is_fixed[slot];
        });
      }
      if (step.op && step.op->hasTag(at::Tag::nondeterministic_seeded)) of_fixed = false;
      const bool writes =
          step.op ? step.op->schema().is_mutable()
                  : step.node->kind == Node::Kind::kRegion && writes_arguments(*step.node);
      if (writes && !of_fixed && writes_fixed) return;
      if (step.node->function.starts_with("aten::sym_")) of_fixed = true;
      for (const auto& result : step.results) {
        for (const size_t slot : result) is_fixed[slot] = of_fixed;
      }
    }
    constexpr size_t kMask = 3;
    for (Step& step : steps) {
      if (step.node->function != "aten::scaled_dot_product_attention") continue;
      const Operand& mask = step.operands[kMask];
      if (mask.kind == Operand::Kind::kValue && is_fixed[mask.slot]) {
        step.mask = std::make_unique<FixedMask>();
      }
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

  // Batch norm over a batch that processes share. False in evaluation.
  static bool run_shared_batch_norm(torch::jit::Stack& stack) {
    enum Place : size_t { kInput, kWeight, kBias, kMean, kVariance, kTraining, kMomentum, kEps };
    if (!stack[kTraining].toBool()) return false;
    for (const Place place : {kWeight, kBias, kMean, kVariance}) {
      if (stack[place].isTensor() && stack[place].toTensor().defined()) continue;
      throw UsageError(
          "batch norm without weight, bias or running statistics cannot share its statistics "
          "between processes; use parallel.batch_norm=averaged");
    }
    at::Tensor y = functional::shared_batch_norm(stack[kInput].toTensor(),
                                                 {.weight = stack[kWeight].toTensor(),
                                                  .bias = stack[kBias].toTensor(),
                                                  .running_mean = stack[kMean].toTensor(),
                                                  .running_var = stack[kVariance].toTensor(),
                                                  .momentum = stack[kMomentum].toDouble(),
                                                  .eps = stack[kEps].toDouble()});
    stack = {std::move(y)};
    return true;
  }

  // False where LibTorch's operator preserves the memory format.
  static bool run_group_norm(torch::jit::Stack& stack) {
    enum Place : size_t { kInput, kGroups, kWeight, kBias, kEps };
    for (const Place place : {kWeight, kBias}) {
      if (!stack[place].isTensor()) return false;
    }
    const at::Tensor &x = stack[kInput].toTensor(), &weight = stack[kWeight].toTensor(),
                     &bias = stack[kBias].toTensor();
    if (!functional::takes_channels_last_group_norm(x, weight, bias)) return false;
    stack = {functional::channels_last_group_norm(x, stack[kGroups].toInt(), weight, bias,
                                                  stack[kEps].toDouble())};
    return true;
  }

  // Replaces the arguments on the stack by the results. Returns whether it has.
  bool run_instead(const Step& step, torch::jit::Stack& stack) const {
    if ((step.is_batch_norm || step.is_instance_norm) && functional::is_recomputing()) {
      // Statistics of a training step are written once.
      constexpr size_t kMean = 3, kVariance = 4, kOfBatch = 5;
      if (stack[kOfBatch].toBool()) stack[kMean] = stack[kVariance] = c10::IValue();
      return false;
    }
    if (step.is_batch_norm && functional::SharedBatchNormScope::is_there()) {
      return run_shared_batch_norm(stack);
    }
    if (step.is_group_norm) return run_group_norm(stack);
    if (step.mask) step.mask->simplify(stack);
    if (step.random == nullptr) return false;
    return run_with_own_numbers(*step.random, stack, {options.group, step.node->shard});
  }

  void call(const Step& step, const std::vector<c10::IValue>& values,
            torch::jit::Stack& stack) const {
    stack.clear();
    for (const Operand& operand : step.operands) stack.push_back(value_of(operand, values));
    if (step.scalar_function != nullptr) {
      stack = {step.scalar_function->call(stack)};
    } else if (step.node->kind == Node::Kind::kTransition) {
      run_transition(step.node->function, stack, *options.group);
    } else if (!step.op) {
      stack = run_region(step.node->function, std::move(stack), step.subgraphs);
    } else if (!run_instead(step, stack)) {
      if (step.autocast) adjust_to_autocast(*step.autocast, stack);
      step.op->callBoxed(stack);
    }
  }

  // Whether a step belongs to a part; without one, all do.
  bool is_in(const std::vector<bool>* nodes, size_t step) const {
    return nodes == nullptr || (*nodes)[static_cast<size_t>(steps[step].node - graph.nodes.data())];
  }

  bool are_in(const std::vector<bool>* nodes, size_t begin, size_t end) const {
    while (begin < end && is_in(nodes, begin)) ++begin;
    return begin == end;
  }

  void run_steps(size_t begin, size_t end, std::vector<c10::IValue>& values,
                 const std::vector<bool>* nodes = nullptr) const {
    torch::jit::Stack stack;
    for (size_t i = begin; i < end; ++i) {
      if (!is_in(nodes, i)) continue;
      const Step& step = steps[i];
      if (step.only_writes && functional::is_recomputing()) continue;
      const SourceContext context(
          step.node, [](const void* node) { return describe(*static_cast<const Node*>(node)); });
      const auto& modules = step.node->modules;
      const TraceSpan span(SpanKind::kLayer,
                           modules.empty() ? std::string_view() : modules.back().fqn);
      try {
        call(step, values, stack);
      } catch (c10::Error& error) {
        error.add_context(fmt::format("{}: {}", file, describe(*step.node)));
        throw;
      }
      take_results(step, stack, values);
      for (const size_t slot : step.released) values[slot] = {};
    }
  }

  static std::vector<at::Tensor> tensors_in(const std::vector<c10::IValue>& values,
                                            const std::vector<size_t>& places) {
    std::vector<at::Tensor> tensors;
    for (const size_t slot : places) tensors.push_back(values[slot].toTensor());
    return tensors;
  }

  // Runs a block of which only the inputs are kept for the backward pass.
  void run_recomputed(const StepBlock& block, std::vector<c10::IValue>& values) const {
    std::vector<c10::IValue> captured;
    std::vector<at::Tensor> parameters;
    for (const size_t slot : block.captured) {
      captured.push_back(values[slot]);
      if (!values[slot].isTensor() || !values[slot].toTensor().requires_grad()) continue;
      parameters.push_back(values[slot].toTensor());
    }
    const auto part = [this, &block,
                       captured = std::move(captured)](const std::vector<at::Tensor>& given) {
      std::vector<c10::IValue> local(slots.size());
      for (size_t i = 0; i < captured.size(); ++i) local[block.captured[i]] = captured[i];
      for (size_t i = 0; i < given.size(); ++i) local[block.inputs[i]] = given[i];
      run_steps(block.begin, block.end, local);
      return tensors_in(local, block.outputs);
    };
    const std::vector<at::Tensor> results =
        functional::recompute(part, tensors_in(values, block.inputs), parameters);
    for (size_t i = 0; i < results.size(); ++i) values[block.outputs[i]] = results[i];
    for (size_t i = block.begin; i < block.end; ++i) {
      for (const size_t slot : steps[i].released) values[slot] = {};
    }
  }

  // Without `nodes`, all of them. Of a block of another part, a part may run single steps.
  void run_all(std::vector<c10::IValue>& values, const std::vector<bool>* nodes = nullptr) const {
    size_t next = 0;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const StepBlock& block = blocks[i];
      if (hooks == nullptr && !block.is_recomputed) continue;
      if (!are_in(nodes, block.begin, block.end)) continue;
      run_steps(next, block.begin, values, nodes);
      if (hooks != nullptr) {
        hooks->before_forward(
            i, block.inputs.empty() ? at::Tensor() : values[block.inputs[0]].toTensor());
      }
      if (block.is_recomputed) {
        run_recomputed(block, values);
      } else {
        run_steps(block.begin, block.end, values);
      }
      if (hooks != nullptr) hooks->after_forward(i, tensors_in(values, block.outputs));
      next = block.end;
    }
    run_steps(next, steps.size(), values, nodes);
  }

  std::vector<c10::IValue> values_of_inputs(std::vector<c10::IValue> given) const {
    if (given.size() != inputs.size()) {
      throw InternalError(fmt::format("an exported program takes {} inputs, and is given {}",
                                      inputs.size(), given.size()));
    }
    std::vector<c10::IValue> values(slots.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] != kNoSlot) values[inputs[i]] = std::move(given[i]);
    }
    return values;
  }

  std::vector<std::vector<size_t>> inputs_of_blocks() const {
    // How often each slot is read, counting a block once.
    std::vector<std::set<size_t>> readers(slots.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      const auto block = std::find_if(blocks.begin(), blocks.end(), [&](const StepBlock& one) {
        return one.begin <= i && i < one.end;
      });
      const size_t reader = block != blocks.end() ? block->begin : steps.size() + i;
      for (const Operand& operand : steps[i].operands) {
        visit_slots(operand, [&](size_t slot) { readers[slot].insert(reader); });
      }
    }
    for (const Operand& output : outputs) {
      visit_slots(output, [&](size_t slot) { readers[slot].insert(kNoSlot); });
    }
    std::vector<std::vector<size_t>> all;
    for (const StepBlock& block : blocks) {
      auto& of_block = all.emplace_back();
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] == kNoSlot || readers[inputs[i]] != std::set<size_t>{block.begin}) continue;
        of_block.push_back(i);
      }
    }
    return all;
  }

  static void take_results(const Step& step, torch::jit::Stack& stack,
                           std::vector<c10::IValue>& values) {
    if (step.results.size() > stack.size()) {
      throw UsageError(fmt::format("{} returns {} values, and {} when it was exported",
                                   describe(*step.node), stack.size(), step.results.size()));
    }
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
  std::vector<c10::IValue> values = impl_->values_of_inputs(std::move(inputs));
  impl_->run_all(values);
  std::vector<c10::IValue> results;
  results.reserve(impl_->outputs.size());
  for (const Operand& output : impl_->outputs) results.push_back(value_of(output, values));
  return results;
}

std::vector<c10::IValue> Interpreter::run_part(std::vector<c10::IValue> inputs, const Part& part,
                                               const std::vector<at::Tensor>& given) const {
  if (given.size() != part.given.size()) {
    throw InternalError("interpreter: a part gets another number of tensors than it needs");
  }
  std::vector<c10::IValue> values = impl_->values_of_inputs(std::move(inputs));
  for (size_t i = 0; i < given.size(); ++i) values[impl_->slots.at(part.given[i])] = given[i];
  impl_->run_all(values, &part.nodes);
  std::vector<c10::IValue> results;
  for (const std::string& name : part.results) results.push_back(values[impl_->slots.at(name)]);
  if (!results.empty()) return results;
  for (const size_t output : part.outputs) {
    results.push_back(value_of(impl_->outputs[output], values));
  }
  return results;
}

size_t Interpreter::blocks() const { return impl_->blocks.size(); }

void Interpreter::recompute(const std::vector<bool>& blocks) {
  if (blocks.size() != impl_->blocks.size()) {
    throw InternalError("recompute: another number of flags than of blocks");
  }
  for (size_t i = 0; i < blocks.size(); ++i) impl_->blocks[i].is_recomputed = blocks[i];
}

std::vector<std::vector<size_t>> Interpreter::inputs_of_blocks() const {
  return impl_->inputs_of_blocks();
}

void Interpreter::set_block_hooks(BlockHooks* hooks) { impl_->hooks = hooks; }

}  // namespace gallop::model::exported
