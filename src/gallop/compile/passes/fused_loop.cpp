#include "gallop/compile/passes/fused_loop.h"

#include <algorithm>
#include <string>

#include "gallop/compile/codegen/loop_order.h"
#include "gallop/compile/codegen/op_traits.h"
#include "gallop/compile/passes/pointwise.h"

namespace gallop::compile::passes {

namespace {

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
  // The list with the dimensions of rows last, or `alone` if it is empty: a loop has at least one.
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
    for (const ViewId tensor : tensors_of(node)) {
      const int64_t maker = maker_within(graph_, uses_, group_, tensor);
      arguments.push_back(maker != kNone ? values_.at(maker) : input(tensor, sizes, at));
    }
    if (is_join(graph_, node)) {
      parts_[at] = std::move(arguments);
      return;
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
    const auto parts = parts_.find(node);
    const auto values = parts == parts_.end() ? std::vector{values_.at(node)} : parts->second;
    for (size_t i = 0; i < values.size(); ++i) {
      const View view = part_of_result(graph_, graph_.nodes[node], i);
      const auto strides = space_.strides_of(view, view.sizes, space_.levels.at(node));
      builder_.output(values[i], *format_of(view.dtype), in_loop_order(*strides, 1));
      loop_.outputs.push_back({.result = loop_.results.size(), .view = view});
    }
    loop_.results.push_back(result_of(node));
  }

  ViewId result_of(int64_t node) const { return graph_.nodes[node].results[0].views[0]; }

  const Graph& graph_;
  const std::vector<Uses>& uses_;
  const Group& group_;
  const LoopSpace& space_;
  LoopBuilder builder_;
  FusedLoop loop_;
  std::map<int64_t, Value> values_;              // By node.
  std::map<int64_t, std::vector<Value>> parts_;  // Parts of joins.
  std::map<std::pair<ViewId, std::vector<int64_t>>, Value> inputs_;
};

/// Properties of a loop with reductions that determine its speed.
struct Form {
  bool on_gpu = false;
  bool of_rows = false, of_columns = false, of_all = false;
  bool has_erf = false, is_dense = false, stores_dense = false;
  int64_t rows = 1, columns = 1, last_size = 1;
  int32_t row_dims = 1;
  int64_t elements() const { return rows * columns; }
  bool reduces() const { return of_rows || of_columns || of_all; }
};

Form form_of(const LoopProgram& given, bool on_gpu) {
  Form form{.on_gpu = on_gpu};
  for (const Expression& e : given.expressions) {
    form.of_rows = form.of_rows || is_row_reduction(e.op);
    form.of_columns = form.of_columns || is_column_reduction(e.op);
    form.of_all = form.of_all || is_total(e.op);
    form.has_erf = form.has_erf || e.op == Op::kErf;
  }
  const LoopProgram program = in_memory_order(given);
  const auto is_dense = [](const LoopOperand& operand) { return operand.strides.back() <= 1; };
  form.stores_dense = std::all_of(program.outputs.begin(), program.outputs.end(),
                                  [&](const Output& output) { return is_dense(output.operand); });
  form.is_dense =
      form.stores_dense && std::all_of(program.inputs.begin(), program.inputs.end(), is_dense);
  for (size_t i = 0; i < program.sizes.size(); ++i) {
    const bool in_row = i + static_cast<size_t>(program.row_dims) >= program.sizes.size();
    (in_row ? form.columns : form.rows) *= program.sizes[i];
  }
  form.last_size = program.sizes.back();
  form.row_dims = program.row_dims;
  return form;
}

// The number of elements from which several threads pay off.
constexpr int64_t kMany = 65536;

// Whether a loop of several operators with reductions is at least as fast as separate operators;
// the rules are from measurements of bench_fusion.
bool is_worth_it(const Form& form) {
  // Vectors that are not contiguous in memory are gathered element by element.
  if (!form.is_dense) return false;
  // Vectors have 16 elements, and each row has a fixed cost. On a GPU a launch costs more than few
  // rows.
  if (form.last_size < 8 && !(form.on_gpu && form.elements() < kMany)) return false;
  // A row of columns that is not contiguous is read from many places at once; threads of a GPU do
  // that anyway, but need rows to share.
  if (form.of_columns && form.row_dims > 1 && !(form.on_gpu && form.rows >= 64)) return false;
  // Threads split the loop by rows; LibTorch's also split a row.
  if (form.of_rows && form.rows < 16 && form.elements() >= kMany) return false;
  // On a CPU LibTorch's erf is faster than ours, and takes longer than a reduction.
  return form.on_gpu || !form.has_erf || form.elements() < kMany;
}

// Whether the group has a copy that transposes memory, which LibTorch's own kernel may do better.
bool copies_sparsely(const Graph& graph, const Group& group, const Form& form) {
  return !form.is_dense && std::any_of(group.begin(), group.end(), [&](int64_t node) {
    return name_of(graph.nodes[node].op) == "aten::clone";
  });
}

// The same for a single operator without a reduction. LibTorch's kernels for GPUs access single
// elements where operands do not all have one layout, and all of a join where some have not.
bool is_worth_it_alone(const Graph& graph, const Node& node, const Form& form) {
  const bool dense = is_join(graph, node) ? form.stores_dense : form.is_dense;
  return form.on_gpu && dense && form.rows > 1 && form.last_size >= 8;
}

// The same for a single reduction. Only those listed here gain.
bool is_worth_reducing_alone(const Graph& graph, const Node& node, const Form& form) {
  const std::string op = name_of(node.op);
  const at::ScalarType type = graph.views[node.arguments[0].views[0]].dtype;
  const bool narrow = c10::elementSize(type) == 2;
  if (!is_worth_it(form) || (type != c10::kFloat && !narrow)) return false;
  if (op == "aten::mse_loss") return true;
  if (op == "aten::_softmax_backward_data") return false;
  if (reduction_of(graph, node)->is_spread) {
    return form.columns >= 512 && form.elements() >= kMany;
  }
  const bool is_sum = op.starts_with("aten::sum") || op.starts_with("aten::mean");
  if (form.of_columns) return form.rows >= 64 && form.columns >= 16;
  if (form.of_all) return is_sum;
  return !is_sum || narrow;
}

}  // namespace

bool may_be_in_loop(const Graph& graph, const Node& node) {
  return is_pointwise(graph, node) || is_join(graph, node) || reduction_of(graph, node).has_value();
}

std::optional<FusedLoop> fused_loop(const Graph& graph, const std::vector<Uses>& uses,
                                    const Group& group) {
  for (const LoopSpace& space : spaces_of(graph, uses, group)) {
    FusedLoop loop = LoopMaker(graph, uses, group, space).make();
    const Node& first = graph.nodes[*group.begin()];
    const View& result = graph.views[first.results[0].views[0]];
    const Form form = form_of(loop.program, graph.buffers[result.buffer].device.is_cuda());
    const bool alone = group.size() == 1;
    const bool wanted =
        form.reduces() ? (alone ? is_worth_reducing_alone(graph, first, form) : is_worth_it(form))
                       : (alone ? is_worth_it_alone(graph, first, form)
                                : !copies_sparsely(graph, group, form));
    if (wanted) return loop;
  }
  return std::nullopt;
}

}  // namespace gallop::compile::passes
