#include "gallop/compile/passes/fused_loop.h"

#include <algorithm>

#include "gallop/compile/codegen/loop_order.h"
#include "gallop/compile/codegen/op_traits.h"
#include "gallop/compile/passes/pointwise.h"

namespace gallop::compile::passes {

namespace {

// Rows and positions within them that a loop with reductions must have to be worth it: vectors are
// of 16 numbers, and rows are what threads share.
constexpr int64_t kLeastColumns = 16, kLeastRows = 16;

class LoopMaker {
 public:
  LoopMaker(const Graph& graph, const std::vector<Uses>& uses, const Group& group,
            const LoopSpace& space)
      : graph_(graph),
        uses_(uses),
        group_(group),
        space_(space),
        builder_(in_loop_order(space.sizes, 1),
                 static_cast<int32_t>(std::count(space.in_row.begin(), space.in_row.end(), true))) {
  }

  FusedLoop make() && {
    for (const int64_t node : group_) add(node);
    for (const int64_t node : group_) {
      if (is_needed_outside(node)) add_output(node);
    }
    loop_.program = std::move(builder_).finish();
    return std::move(loop_);
  }

 private:
  // Rows' dimensions last. A loop has at least one dimension, in which `alone` stands.
  std::vector<int64_t> in_loop_order(const std::vector<int64_t>& list, int64_t alone) const {
    std::vector<int64_t> ordered;
    for (const bool row : {false, true}) {
      for (size_t i = 0; i < list.size(); ++i) {
        if (space_.in_row[i] == row) ordered.push_back(list[i]);
      }
    }
    return ordered.empty() ? std::vector<int64_t>{alone} : ordered;
  }

  void add(int64_t at) {
    const Node& node = graph_.nodes[at];
    const auto reduction = reduction_of(graph_, node);
    const auto sizes = sizes_of(graph_, node);
    std::vector<Value> arguments;
    for (const Operand& operand : node.arguments) {
      if (operand.kind != Operand::Kind::kTensor) continue;
      const int64_t maker = maker_within(graph_, uses_, group_, operand.views[0]);
      arguments.push_back(maker != kNone ? values_.at(maker) : input(operand.views[0], sizes, at));
    }
    values_[at] = reduction ? lower_reduction(builder_, graph_, node, arguments, ops_at(at))
                            : lower(builder_, graph_, node, arguments);
  }

  const ReductionOps& ops_at(int64_t node) const {
    switch (space_.levels.at(node)) {
      case Level::kColumn: return kOfColumns;
      case Level::kTotal: return kOfAll;
      default: return kOfRows;
    }
  }

  Value input(ViewId id, const std::vector<int64_t>& sizes, int64_t node) {
    const View& view = graph_.views[id];
    const auto strides =
        in_loop_order(*space_.strides_of(view, sizes, level_read(graph_, space_, node)), 0);
    const auto [known, is_new] = inputs_.try_emplace({id, strides});
    if (is_new) {
      known->second = builder_.input(*format_of(view.dtype), strides);
      loop_.inputs.push_back(id);
    }
    return known->second;
  }

  bool is_needed_outside(int64_t node) const {
    const Uses& uses = uses_[graph_.views[result_of(node)].buffer];
    return uses.is_output || std::any_of(uses.readers.begin(), uses.readers.end(),
                                         [&](int64_t reader) { return !group_.contains(reader); });
  }

  void add_output(int64_t node) {
    const View& view = graph_.views[result_of(node)];
    const auto strides = space_.strides_of(view, view.sizes, space_.levels.at(node));
    builder_.output(values_.at(node), *format_of(view.dtype), in_loop_order(*strides, 1));
    loop_.results.push_back(result_of(node));
  }

  ViewId result_of(int64_t node) const { return graph_.nodes[node].results[0].views[0]; }

  const Graph& graph_;
  const std::vector<Uses>& uses_;
  const Group& group_;
  const LoopSpace& space_;
  LoopBuilder builder_;
  FusedLoop loop_;
  std::map<int64_t, Value> values_;  // By node.
  std::map<std::pair<ViewId, std::vector<int64_t>>, Value> inputs_;
};

// Whether the loop is at least as fast as LibTorch's operators, by the measurements of
// benchmarks/codegen. Chains without reductions always are.
bool is_worth_it(const LoopProgram& given) {
  bool rows = false, columns = false, totals = false;
  for (const Expression& e : given.expressions) {
    rows = rows || is_row_reduction(e.op);
    columns = columns || is_column_reduction(e.op);
    totals = totals || is_total(e.op);
  }
  if (!rows && !columns && !totals) return true;
  const LoopProgram program = in_memory_order(given);
  // Vectors are read and written as a whole.
  const auto is_dense = [](const LoopOperand& operand) { return operand.strides.back() <= 1; };
  const bool dense = std::all_of(program.inputs.begin(), program.inputs.end(), is_dense) &&
                     std::all_of(program.outputs.begin(), program.outputs.end(),
                                 [&](const Output& output) { return is_dense(output.operand); });
  if (!dense) return false;
  int64_t row_count = 1, column_count = 1;
  for (size_t i = 0; i < program.sizes.size(); ++i) {
    const bool in_row = i + static_cast<size_t>(program.row_dims) >= program.sizes.size();
    (in_row ? column_count : row_count) *= program.sizes[i];
  }
  if (rows && row_count < kLeastRows) return false;
  return column_count >= kLeastColumns && program.sizes.back() >= kLeastColumns;
}

}  // namespace

std::optional<FusedLoop> fused_loop(const Graph& graph, const std::vector<Uses>& uses,
                                    const Group& group) {
  for (const LoopSpace& space : spaces_of(graph, uses, group)) {
    FusedLoop loop = LoopMaker(graph, uses, group, space).make();
    if (is_worth_it(loop.program)) return loop;
  }
  return std::nullopt;
}

}  // namespace gallop::compile::passes
