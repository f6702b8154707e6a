#include "gallop/compile/codegen/cpu_source.h"

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/compile/codegen/cpu_expressions.h"
#include "gallop/compile/codegen/op_traits.h"
#include "gallop/compile/codegen/source_text.h"

namespace gallop::compile {

namespace {

// In the text: in0 is the first element of input 0, p0 that of the row, q0 that of the run of
// elements along the last dimension; n0 is the size of dimension 0, s0_1 input 0's stride in
// dimension 1; outputs have o for in, and p, q and s with o behind. v3 is the value of expression 3
// for all or a row, e3 that of 16 elements.

/// Writes the text of one plan.
class Writer : SourceText {
 public:
  explicit Writer(const LoopPlan& plan) : plan_(plan), program_(plan.program) {}

  std::string text() {
    line("namespace gallop::kernel {{");
    line("using gallop::compile::LoopArguments;");
    write_block();
    if (!plan_.column_reductions.empty()) write_columns();
    if (!plan_.totals.empty()) write_totals();
    line("}}");
    return std::move(text_);
  }

 private:
  size_t dims() const { return program_.sizes.size(); }
  size_t outer_dims() const { return dims() - static_cast<size_t>(program_.row_dims); }
  const Expression& expression(int32_t at) const {
    return program_.expressions[static_cast<size_t>(at)];
  }
  const ValueTraits& value(int32_t at) const { return plan_.values[static_cast<size_t>(at)]; }

  struct Array {
    const LoopOperand* operand;
    std::string name;  // "0" for input 0, "0o" for output 0.
    bool is_output;
    size_t index;
    int32_t value;  // The expression that an output stores.
  };
  std::vector<Array> arrays() const {
    std::vector<Array> list;
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      list.push_back({&program_.inputs[i], fmt::format("{}", i), false, i, -1});
    }
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const Output& output = program_.outputs[i];
      list.push_back({&output.operand, fmt::format("{}o", i), true, i, output.value});
    }
    return list;
  }
  void declare_arguments() {
    for (size_t i = 0; i < dims(); ++i) line("const int64_t n{} = arguments->sizes[{}];", i, i);
    size_t at = 0;
    for (const Array& array : arrays()) {
      const char* type = pointee(array.operand->format);
      const char* constant = array.is_output ? "" : "const ";
      line("{}{}* in{} = static_cast<{}{}*>(arguments->{}s[{}]);", constant, type, array.name,
           constant, type, array.is_output ? "output" : "input", array.index);
      for (size_t dim = 0; dim < dims(); ++dim) {
        line("const int64_t s{}_{} = arguments->strides[{}];", array.name, dim, at++);
      }
    }
  }

  // Writes the values for the whole loop.
  void write_values_for_all(const std::vector<bool>& needed) {
    for (int32_t at = 0; at < static_cast<int32_t>(needed.size()); ++at) {
      if (needed[static_cast<size_t>(at)] && value(at).level == Level::kAll) write_number(at, "in");
    }
  }

  void write_number(int32_t at, const char* base) {
    line("const {} v{} = {};", number_type(value(at).kind), at, number_text(plan_, at, base));
  }

  void write_element(int32_t at, int sweep) {
    for (size_t slot = 0; slot < plan_.kept.size(); ++slot) {
      const auto& kept = plan_.kept[slot];
      if (kept.value != at || kept.sweep > sweep) continue;
      if (kept.sweep < sweep) {
        line("const F32 e{} = get(lanes, kept{} + at + i);", at, slot);
        return;
      }
      line("const F32 e{} = {};", at, element_text(plan_, at));
      line("put(lanes, kept{} + at + i, e{});", slot, at);
      return;
    }
    line("const {} e{} = {};", vector_type(value(at).kind), at, element_text(plan_, at));
  }

  void write_store(const Array& array) {
    const std::string a = element_name(plan_, array.value);
    if (last_stride(*array.operand) == 1) {
      line("put(lanes, q{} + i, {});", array.name, a);
    } else {
      line("put(lanes, q{0} + i * s{0}_{1}, s{0}_{1}, {2});", array.name, dims() - 1, a);
    }
  }

  // Writes loops over the row's dimensions around body(), which may use `i`, `lanes` and the q.
  template <typename Body>
  void write_row_loops(const char* base, bool in_parts, const Body& body) {
    const size_t first = outer_dims(), last = dims() - 1;
    for (size_t dim = first; dim < last; ++dim) {
      open("for (int64_t j{0} = 0; j{0} < n{0}; ++j{0}) {{", dim);
    }
    std::string at = "0";
    for (size_t dim = first; dim < last; ++dim)
      at = fmt::format("({} + j{}) * n{}", at, dim, dim + 1);
    // A one-dimensional row may be split, and its scratch arrays begin with the part.
    line("const int64_t at = {};", first == last ? "-column" : at);
    for (const Array& array : arrays()) {
      std::string offset;
      for (size_t dim = first; dim < last; ++dim) {
        offset += fmt::format(" + j{} * s{}_{}", dim, array.name, dim);
      }
      line("auto* const q{0} = {1}{0}{2};", array.name, base, offset);
    }
    const std::string begin = first == last ? "column" : "0";
    const std::string end = first == last ? "column_end" : fmt::format("n{}", last);
    if (in_parts) {
      open("for (int64_t part = {0}; part < {1}; part += 512) {{", begin, end);
      line("const int64_t part_end = part + 512 < {0} ? part + 512 : {0};", end);
      open("over_slots(part, part_end, [&](int64_t i, auto lanes, auto slot) {{");
    } else {
      open("over_lanes({}, {}, [&](int64_t i, auto lanes) {{", begin, end);
    }
    body();
    close("});");
    if (in_parts) {
      for (const int32_t sum : parts_) line("r{}.close_part();", sum);
      close();
    }
    for (size_t dim = first; dim < last; ++dim) close();
  }

  void write_sweep(int sweep) {
    const std::vector<bool> slice = slice_of(plan_, sweep);
    write_row_numbers(slice);
    parts_.clear();
    for (const int32_t at : plan_.row_reductions) {
      const Expression& e = expression(at);
      if (value(e.arguments[0]).depth != sweep) continue;
      line("Reduction<{}, {}> r{};", kind_of_reduction(e.op), vector_type(value(at).kind), at);
      parts_.push_back(at);
    }
    const size_t of_row = parts_.size();
    for (const int32_t at : plan_.totals) {
      if (value(expression(at).arguments[0]).depth == sweep) parts_.push_back(at);
    }
    open("{{");
    write_row_loops("p", !parts_.empty(), [&] { write_sweep_body(sweep, slice); });
    close();
    parts_.resize(of_row);
    for (const int32_t at : parts_) {
      line("const {} v{} = r{}.result();", number_type(value(at).kind), at, at);
      written_[static_cast<size_t>(at)] = true;
    }
  }

  void write_sweep_body(int sweep, const std::vector<bool>& slice) {
    for (int32_t at = 0; at < static_cast<int32_t>(slice.size()); ++at) {
      if (slice[static_cast<size_t>(at)] && value(at).level == Level::kElement) {
        write_element(at, sweep);
      }
    }
    for (const int32_t at : parts_) {
      line("r{}.add(lanes, slot, {});", at, element_name(plan_, expression(at).arguments[0]));
    }
    for (size_t c = 0; c < plan_.column_reductions.size(); ++c) {
      const Expression& e = expression(plan_.column_reductions[c]);
      if (value(e.arguments[0]).depth != sweep) continue;
      line("join_column<{}>(lanes, column_part{} + at + i, {});", kind_of_reduction(e.op), c,
           element_name(plan_, e.arguments[0]));
    }
    if (sweep != plan_.sweeps - 1) return;
    for (const Array& array : arrays()) {
      if (array.is_output && plan_.stores[array.index] == Level::kElement) write_store(array);
    }
  }

  // Writes those scalars of the row that are `needed` but not written yet, with their operands.
  void write_row_numbers(const std::vector<bool>& needed) {
    for (int32_t at = 0; at < static_cast<int32_t>(needed.size()); ++at) {
      if (needed[static_cast<size_t>(at)]) write_row_number(at);
    }
  }
  void write_row_number(int32_t at) {
    if (value(at).level != Level::kRow || written_[static_cast<size_t>(at)]) return;
    written_[static_cast<size_t>(at)] = true;
    const Expression& e = expression(at);
    for (int i = 0; i < traits_of(e.op).arity; ++i) {
      write_row_number(e.arguments[static_cast<size_t>(i)]);
    }
    write_number(at, "p");
  }

  std::vector<bool> everything_in_rows() const {
    std::vector<bool> needed(plan_.values.size());
    for (size_t i = 0; i < needed.size(); ++i) needed[i] = plan_.values[i].level < Level::kColumn;
    return needed;
  }

  void write_scratch() {
    size_t slot = 0;
    for (size_t i = 0; i < plan_.kept.size(); ++i) {
      line(
          "float* const kept{} = reinterpret_cast<float*>(static_cast<double*>(scratch) + {} * "
          "(column_end - column));",
          i, slot++);
    }
    for (size_t c = 0; c < plan_.column_reductions.size(); ++c) {
      const int32_t at = plan_.column_reductions[c];
      const char* type = pointee(value(at).kind);
      const char* kind = kind_of_reduction(expression(at).op);
      line(
          "{0}* const column_part{1} = reinterpret_cast<{0}*>(static_cast<double*>(scratch) + "
          "{2} * (column_end - column));",
          type, c, slot++);
      line(
          "{0}* const total{1} = static_cast<{0}*>(arguments->totals[{1}]) + block * "
          "arguments->columns + column;",
          type, c);
      line("start_columns<{}>(column_part{}, column_end - column);", kind, c);
      line("start_columns<{}>(total{}, column_end - column);", kind, c);
    }
  }

  void write_row_start() {
    for (const Array& array : arrays()) {
      std::string offset;
      for (size_t dim = 0; dim < outer_dims(); ++dim) {
        offset += fmt::format(" + k{} * s{}_{}", dim, array.name, dim);
      }
      line("auto* const p{0} = in{0}{1};", array.name, offset);
    }
  }

  void write_row_end() {
    for (const Array& array : arrays()) {
      if (!array.is_output || plan_.stores[array.index] != Level::kRow) continue;
      if (value(array.value).level == Level::kRow) write_row_number(array.value);
      line("write(p{}, v{});", array.name, array.value);
    }
    if (!plan_.column_reductions.empty()) {
      // Partial sums of 32 rows are more accurate than a single sum.
      open("if ((k - row) % 32 == 31 || k + 1 == row_end) {{");
      for (size_t c = 0; c < plan_.column_reductions.size(); ++c) {
        const Op op = expression(plan_.column_reductions[c]).op;
        line("close_columns<{}>(column_part{}, total{}, column_end - column);",
             kind_of_reduction(op), c, c);
      }
      close();
    }
    for (size_t dim = outer_dims() - 1; dim > 0; --dim) {
      open("if (++k{} == n{}) {{", dim, dim);
      line("k{} = 0;", dim);
    }
    line("++k0;");
    for (size_t dim = outer_dims() - 1; dim > 0; --dim) close();
  }

  void write_block() {
    written_.assign(plan_.values.size(), false);
    line("extern \"C\" __attribute__((visibility(\"default\"))) void SYMBOL(");
    line("    const LoopArguments* arguments, int64_t block, int64_t row, int64_t row_end,");
    open("    int64_t column, int64_t column_end, void* scratch) {{");
    declare_arguments();
    write_scratch();
    write_values_for_all(everything_in_rows());
    for (const int32_t at : plan_.totals) {
      line("Reduction<{}, {}> r{};", kind_of_reduction(expression(at).op),
           vector_type(value(at).kind), at);
    }
    line("int64_t rest = row;");
    for (size_t dim = outer_dims() - 1; dim > 0; --dim) {
      line("int64_t k{0} = rest % n{0};", dim);
      line("rest /= n{};", dim);
    }
    line("int64_t k0 = rest;");
    open("for (int64_t k = row; k < row_end; ++k) {{");
    write_row_start();
    for (int sweep = 0; sweep < plan_.sweeps; ++sweep) write_sweep(sweep);
    write_row_end();
    close();
    for (size_t t = 0; t < plan_.totals.size(); ++t) {
      const int32_t at = plan_.totals[t];
      line(
          "static_cast<{}*>(arguments->totals[{}])[block * arguments->parts + column / "
          "arguments->part_columns] = r{}.total();",
          total_type(expression(at).op, value(at).kind), plan_.column_reductions.size() + t, at);
    }
    close();
  }

  void write_columns() {
    const std::vector<bool> needed = made_late(plan_, Level::kColumn);
    line("extern \"C\" __attribute__((visibility(\"default\"))) void SYMBOL_columns(");
    open("    const LoopArguments* arguments, int64_t column, int64_t column_end) {{");
    declare_arguments();
    write_values_for_all(needed);
    write_row_loops("in", false, [&] { write_columns_body(needed); });
    close();
  }

  void write_columns_body(const std::vector<bool>& needed) {
    // The name of the first position: of a cut row it is `column`, which `at` takes away.
    const char* position = outer_dims() == dims() - 1 ? "i" : "at + i";
    for (size_t c = 0; c < plan_.column_reductions.size(); ++c) {
      const int32_t at = plan_.column_reductions[c];
      if (!needed[static_cast<size_t>(at)]) continue;
      line(
          "const {} e{} = join_blocks<{}>(lanes, static_cast<const {}*>(arguments->totals[{}]) + "
          "{}, arguments->blocks, arguments->columns);",
          vector_type(value(at).kind), at, kind_of_reduction(expression(at).op),
          pointee(value(at).kind), c, position);
    }
    for (int32_t at = 0; at < static_cast<int32_t>(needed.size()); ++at) {
      if (!needed[static_cast<size_t>(at)] || is_column_reduction(expression(at).op)) continue;
      if (value(at).level != Level::kAll) {
        line("const {} e{} = {};", vector_type(value(at).kind), at, element_text(plan_, at));
      }
    }
    for (const Array& array : arrays()) {
      if (array.is_output && plan_.stores[array.index] == Level::kColumn) write_store(array);
    }
  }

  void write_totals() {
    const std::vector<bool> needed = made_late(plan_, Level::kTotal);
    line("extern \"C\" __attribute__((visibility(\"default\"))) void SYMBOL_totals(");
    open("    const LoopArguments* arguments) {{");
    declare_arguments();
    write_values_for_all(needed);
    for (size_t t = 0; t < plan_.totals.size(); ++t) {
      const int32_t at = plan_.totals[t];
      const Op op = expression(at).op;
      if (!needed[static_cast<size_t>(at)]) continue;
      line(
          "const {0} v{1} = static_cast<{0}>(join_totals<{2}>(static_cast<const {3}*>("
          "arguments->totals[{4}]), arguments->blocks * arguments->parts));",
          number_type(value(at).kind), at, kind_of_reduction(op), total_type(op, value(at).kind),
          plan_.column_reductions.size() + t);
    }
    for (int32_t at = 0; at < static_cast<int32_t>(needed.size()); ++at) {
      const bool made = needed[static_cast<size_t>(at)] && value(at).level == Level::kTotal;
      if (made && !is_total(expression(at).op)) write_number(at, "in");
    }
    for (const Array& array : arrays()) {
      if (!array.is_output || plan_.stores[array.index] != Level::kTotal) continue;
      line("write(in{}, v{});", array.name, array.value);
    }
    close();
  }

  const LoopPlan& plan_;
  const LoopProgram& program_;
  std::vector<int32_t> parts_;  // Reductions of the current sweep, except those of columns.
  std::vector<bool> written_;   // By expression: whether the row's scalar is written.
};

void refuse_fp16(Format format) {
  if (format == Format::kFp16) throw InternalError("loop program: fp16 on the CPU");
}

}  // namespace

KernelSource cpu_source(const LoopPlan& plan) {
  for (const Expression& e : plan.program.expressions) refuse_fp16(e.format);
  for (const LoopOperand& input : plan.program.inputs) refuse_fp16(input.format);
  for (const Output& output : plan.program.outputs) refuse_fp16(output.operand.format);
  std::string text = Writer(plan).text();
  const std::string symbol = "gallop_" + xxh3_128(text);
  for (size_t at = 0; (at = text.find("SYMBOL", at)) != std::string::npos;) {
    text.replace(at, 6, symbol);
  }
  return {.symbol = symbol, .text = std::move(text)};
}

}  // namespace gallop::compile
