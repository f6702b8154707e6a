#include "gallop/compile/codegen/loop_order.h"

#include <algorithm>

#include "gallop/compile/codegen/loop_values.h"
#include "gallop/compile/codegen/op_traits.h"

namespace gallop::compile {

namespace {

/// One dimension, with each operand's stride: outputs first, as their order matters most.
struct Dimension {
  int64_t size = 1;
  std::vector<int64_t> strides;
  int32_t index = -1;  ///< Its number, if some expression uses the position in it.
};
using Dimensions = std::vector<Dimension>;

bool comes_after(const Dimension& a, const Dimension& b) {
  for (size_t i = 0; i < a.strides.size(); ++i) {
    if (a.strides[i] == 0 || b.strides[i] == 0 || a.strides[i] == b.strides[i]) continue;
    return a.strides[i] < b.strides[i];
  }
  return false;
}

// Insertion sort: the comparison is not transitive, as broadcast dimensions are incomparable.
void sort(Dimensions& list) {
  for (size_t i = 1; i < list.size(); ++i) {
    for (size_t at = i; at > 0 && comes_after(list[at - 1], list[at]); --at) {
      std::swap(list[at - 1], list[at]);
    }
  }
}

bool can_join(const Dimension& outer, const Dimension& inner) {
  if (outer.index >= 0 || inner.index >= 0) return false;
  for (size_t i = 0; i < outer.strides.size(); ++i) {
    if (outer.strides[i] != inner.strides[i] * inner.size) return false;
  }
  return true;
}

Dimensions joined(const Dimensions& list) {
  Dimensions result;
  for (const Dimension& dimension : list) {
    if (!result.empty() && can_join(result.back(), dimension)) {
      const int64_t size = result.back().size * dimension.size;
      result.back() = dimension;
      result.back().size = size;
    } else {
      result.push_back(dimension);
    }
  }
  return result;
}

// Whether rows have no meaning: no reduction of them, and no output that is stored once per row.
bool is_without_rows(const LoopProgram& program) {
  for (const Expression& e : program.expressions) {
    if (is_row_reduction(e.op) || is_column_reduction(e.op)) return false;
  }
  const auto values = analyze(program);
  for (const Output& output : program.outputs) {
    if (level_of(program, output, values) == Level::kTotal) continue;
    for (size_t i = 0; i < program.sizes.size(); ++i) {
      if (program.sizes[i] > 1 && output.operand.strides[i] == 0) return false;
    }
  }
  return true;
}

Dimensions dimensions_of(const LoopProgram& program, size_t begin, size_t end) {
  Dimensions list;
  for (size_t i = begin; i < end; ++i) {
    if (program.sizes[i] == 1) continue;
    Dimension dimension{.size = program.sizes[i]};
    for (const auto& output : program.outputs) {
      dimension.strides.push_back(output.operand.strides[i]);
    }
    for (const auto& input : program.inputs) dimension.strides.push_back(input.strides[i]);
    for (const Expression& e : program.expressions) {
      if (e.op == Op::kIndex && static_cast<size_t>(e.index) == i) {
        dimension.index = static_cast<int32_t>(i);
      }
    }
    list.push_back(std::move(dimension));
  }
  return list;
}

void set_dimensions(LoopProgram& program, const Dimensions& list) {
  const size_t old = program.sizes.size();
  std::vector<int32_t> moved(old, -1);
  program.sizes.clear();
  for (Output& output : program.outputs) output.operand.strides.clear();
  for (LoopOperand& input : program.inputs) input.strides.clear();
  for (const Dimension& dimension : list) {
    if (dimension.index >= 0) {
      moved[static_cast<size_t>(dimension.index)] = static_cast<int32_t>(program.sizes.size());
    }
    program.sizes.push_back(dimension.size);
    size_t at = 0;
    for (Output& output : program.outputs) {
      output.operand.strides.push_back(dimension.strides[at++]);
    }
    for (LoopOperand& input : program.inputs) input.strides.push_back(dimension.strides[at++]);
  }
  for (Expression& e : program.expressions) {
    if (e.op != Op::kIndex) continue;
    e.index = moved[static_cast<size_t>(e.index)];
    if (e.index < 0) e = {.op = Op::kConstant, .number = 0, .format = Format::kInt64};
  }
}

}  // namespace

LoopProgram in_memory_order(const LoopProgram& program) {
  const size_t dims = program.sizes.size(), row_dims = static_cast<size_t>(program.row_dims);
  const bool without_rows = is_without_rows(program);
  Dimensions rows = dimensions_of(program, 0, without_rows ? dims : dims - row_dims);
  Dimensions columns;
  sort(rows);
  rows = joined(rows);
  if (without_rows) {
    if (!rows.empty()) {
      columns.push_back(rows.back());
      rows.pop_back();
    }
  } else {
    columns = dimensions_of(program, dims - row_dims, dims);
    sort(columns);
    columns = joined(columns);
  }
  const Dimension single{
      .strides = std::vector<int64_t>(program.outputs.size() + program.inputs.size(), 0)};
  if (rows.empty()) rows.push_back(single);
  if (columns.empty()) columns.push_back(single);
  LoopProgram result = program;
  result.row_dims = static_cast<int32_t>(columns.size());
  rows.insert(rows.end(), columns.begin(), columns.end());
  set_dimensions(result, rows);
  return result;
}

}  // namespace gallop::compile
