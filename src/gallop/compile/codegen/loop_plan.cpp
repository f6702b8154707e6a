#include "gallop/compile/codegen/loop_plan.h"

#include <algorithm>

#include "gallop/compile/codegen/loop_order.h"
#include "gallop/compile/codegen/op_traits.h"

namespace gallop::compile {

namespace {

// The default number of elements that one call computes.
constexpr int64_t kCallElements = 8192;
// Limits of row blocks, whose sums are added up: they must not depend on the machine.
constexpr int64_t kBlocks = 64;  // At most.
constexpr int64_t kBlockRows = 16;
constexpr int64_t kColumnPart = 1024;
// The cycles from which an element is kept for later sweeps rather than recomputed.
constexpr int kWorthKeeping = 12;

const Expression& expression(const LoopPlan& plan, int32_t at) {
  return plan.program.expressions[static_cast<size_t>(at)];
}

int depth_of(const LoopPlan& plan, int32_t at) {
  return plan.values[static_cast<size_t>(at)].depth;
}

void collect(LoopPlan& plan) {
  const auto count = static_cast<int32_t>(plan.program.expressions.size());
  for (int32_t at = 0; at < count; ++at) {
    const Expression& e = expression(plan, at);
    const bool row = is_row_reduction(e.op), column = is_column_reduction(e.op);
    if (row) plan.row_reductions.push_back(at);
    if (column) plan.column_reductions.push_back(at);
    if (is_total(e.op)) plan.totals.push_back(at);
    if (is_reduction(e.op)) {
      plan.sweeps = std::max(plan.sweeps, depth_of(plan, e.arguments[0]) + 1);
    }
  }
  for (const Output& output : plan.program.outputs) {
    plan.stores.push_back(level_of(plan.program, output, plan.values));
    if (plan.stores.back() == Level::kElement) {
      plan.sweeps = std::max(plan.sweeps, depth_of(plan, output.value) + 1);
    }
  }
}

// Marks the operands of `at`, except behind reductions and values kept by an earlier sweep.
void mark(const LoopPlan& plan, int32_t at, int sweep, std::vector<bool>& slice) {
  if (slice[static_cast<size_t>(at)]) return;
  slice[static_cast<size_t>(at)] = true;
  const Expression& e = expression(plan, at);
  if (is_reduction(e.op)) return;
  for (const auto& kept : plan.kept) {
    if (kept.value == at && kept.sweep < sweep) return;
  }
  for (int i = 0; i < traits_of(e.op).arity; ++i) {
    mark(plan, e.arguments[static_cast<size_t>(i)], sweep, slice);
  }
}

// Iterates from the last expression: operands that only a kept value needs are not kept.
void choose_kept(LoopPlan& plan) {
  for (auto at = static_cast<int32_t>(plan.values.size()) - 1; at >= 0; --at) {
    const Expression& e = expression(plan, at);
    const ValueTraits& value = plan.values[static_cast<size_t>(at)];
    if (value.level != Level::kElement || value.kind != Format::kFp32 ||
        traits_of(e.op).cycles < kWorthKeeping) {
      continue;
    }
    int first = -1;
    bool again = false;
    for (int sweep = 0; sweep < plan.sweeps; ++sweep) {
      if (!slice_of(plan, sweep)[static_cast<size_t>(at)]) continue;
      again = again || first >= 0;
      if (first < 0) first = sweep;
    }
    if (again) plan.kept.push_back({.value = at, .sweep = first});
  }
}

int64_t round_up(int64_t number, int64_t unit) { return (number + unit - 1) / unit * unit; }

void cut(LoopPlan& plan) {
  const auto& sizes = plan.program.sizes;
  const auto row_dims = static_cast<size_t>(plan.program.row_dims);
  for (size_t i = 0; i < sizes.size(); ++i) {
    (i + row_dims < sizes.size() ? plan.rows : plan.columns) *= sizes[i];
  }
  plan.part_columns = plan.columns;
  plan.block_rows = std::max<int64_t>(kCallElements / plan.columns, 1);
  const bool whole_rows = !plan.row_reductions.empty() || row_dims > 1;
  if (plan.column_reductions.empty()) {
    if (!whole_rows) plan.part_columns = std::min(plan.columns, kCallElements);
  } else {
    plan.block_rows =
        round_up(std::max((plan.rows + kBlocks - 1) / kBlocks, kBlockRows), kBlockRows);
    const bool few = plan.rows < kBlocks / 4 * plan.block_rows;
    if (!whole_rows && few) plan.part_columns = std::min(plan.columns, kColumnPart);
  }
  plan.block_rows = std::min(plan.block_rows, plan.rows);
  plan.blocks = (plan.rows + plan.block_rows - 1) / plan.block_rows;
  plan.parts = (plan.columns + plan.part_columns - 1) / plan.part_columns;
}

void estimate(LoopPlan& plan) {
  constexpr double kGigahertz = 2.5, kBytesPerNanosecond = 15, kLanes = 16;
  double cycles = 0, bytes = 0;
  for (int sweep = 0; sweep < plan.sweeps; ++sweep) {
    const std::vector<bool> slice = slice_of(plan, sweep);
    for (size_t i = 0; i < slice.size(); ++i) {
      if (!slice[i] || plan.values[i].level != Level::kElement) continue;
      const OpTraits& traits = traits_of(plan.program.expressions[i].op);
      const bool wide = plan.values[i].kind == Format::kFp64;
      cycles += traits.cycles * (wide ? 4 : 1);
    }
  }
  const auto add = [&](const LoopOperand& operand) {
    if (operand.strides.back() != 0) bytes += static_cast<double>(bytes_of(operand.format));
  };
  for (const LoopOperand& input : plan.program.inputs) add(input);
  for (const Output& output : plan.program.outputs) add(output.operand);
  const auto elements = static_cast<double>(plan.block_rows * plan.part_columns);
  plan.nanoseconds =
      elements * std::max(cycles / kLanes / kGigahertz, bytes / kBytesPerNanosecond) +
      static_cast<double>(plan.block_rows) * 4;
}

}  // namespace

std::vector<int32_t> roots_of(const LoopPlan& plan, int sweep) {
  std::vector<int32_t> roots;
  for (const auto* list : {&plan.row_reductions, &plan.column_reductions, &plan.totals}) {
    for (const int32_t at : *list) {
      const int32_t argument = expression(plan, at).arguments[0];
      if (depth_of(plan, argument) == sweep) roots.push_back(argument);
    }
  }
  // Outputs are stored last, as they may share memory with an input.
  if (sweep == plan.sweeps - 1) {
    for (size_t i = 0; i < plan.stores.size(); ++i) {
      if (plan.stores[i] == Level::kElement) roots.push_back(plan.program.outputs[i].value);
    }
  }
  return roots;
}

std::vector<bool> slice_of(const LoopPlan& plan, int sweep) {
  std::vector<bool> slice(plan.values.size());
  for (const int32_t root : roots_of(plan, sweep)) mark(plan, root, sweep, slice);
  return slice;
}

std::vector<bool> made_late(const LoopPlan& plan, Level level) {
  std::vector<bool> needed(plan.values.size());
  for (size_t i = 0; i < plan.stores.size(); ++i) {
    if (plan.stores[i] == level) mark(plan, plan.program.outputs[i].value, /*sweep=*/0, needed);
  }
  return needed;
}

LoopPlan plan(const LoopProgram& program) {
  check(program);
  LoopPlan result{.program = in_memory_order(program)};
  result.values = analyze(result.program);
  collect(result);
  choose_kept(result);
  cut(result);
  estimate(result);
  return result;
}

}  // namespace gallop::compile
