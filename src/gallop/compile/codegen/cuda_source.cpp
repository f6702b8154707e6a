#include "gallop/compile/codegen/cuda_source.h"

#include <set>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/compile/codegen/cpu_expressions.h"
#include "gallop/compile/codegen/embedded_headers.h"
#include "gallop/compile/codegen/op_traits.h"

namespace gallop::compile {

namespace {

// In the text: in0 is the first element of input 0, row_in0 that of the row, at_in0 that of the
// group of kWidth neighbors, which are x_in0; n0 is the size of dimension 0, s_in0_1 input 0's
// stride in dimension 1; outputs have out for in. k0 is the position along a dimension of rows, j1
// along one within a row. v3 is the value of expression 3, c3 a thread's part of a reduction.

const char* type_of(Format format) {
  switch (format) {
    case Format::kBool: return "unsigned char";
    case Format::kInt32: return "int";
    case Format::kInt64: return "Int64";
    default: return pointee(format);
  }
}
const char* kind_type(Format kind) { return kind == Format::kBool ? "bool" : type_of(kind); }

struct Array {
  const LoopOperand* operand;
  std::string name;
  bool is_output;
  size_t index;
  int32_t value;  // Of outputs.
};

/// Writes the text of one plan.
class Writer {
 public:
  explicit Writer(const CudaPlan& plan)
      : plan_(plan), loop_(plan.loop), program_(plan.loop.program), slots_(plan) {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      arrays_.push_back({&program_.inputs[i], fmt::format("in{}", i), false, i, -1});
    }
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const Output& output = program_.outputs[i];
      arrays_.push_back({&output.operand, fmt::format("out{}", i), true, i, output.value});
    }
  }

  std::string text() {
    line("namespace gallop_cuda {{");
    line("namespace SYMBOL_space {{");
    line("struct Slots {{ unsigned long long slots[{}]; }};", slots_.count);
    line("using Index = {};", plan_.long_index ? "Int64" : "int");
    line("constexpr int kWidth = {};", plan_.width);
    write_body();
    if (!loop_.column_reductions.empty()) write_columns_body();
    if (!loop_.totals.empty()) write_totals_body();
    line("}}");
    const uint32_t threads = plan_.block[0] * plan_.block[1];
    write_kernel("SYMBOL", "body<false>", threads);
    if (plan_.width > 1) write_kernel("SYMBOL_aligned", "body<true>", threads);
    if (!loop_.column_reductions.empty()) {
      write_kernel("SYMBOL_columns", "columns_body", plan_.last_block[0] * plan_.last_block[1]);
    }
    if (!loop_.totals.empty()) write_kernel("SYMBOL_totals", "totals_body", plan_.total_block);
    line("}}");
    return std::move(text_);
  }

 private:
  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_.append(indent_, ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<Arguments>(arguments)...);
    text_ += '\n';
  }
  template <typename... Arguments>
  void open(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    line(format, std::forward<Arguments>(arguments)...);
    indent_ += 2;
  }
  void close() {
    indent_ -= 2;
    line("}}");
  }

  size_t dims() const { return program_.sizes.size(); }
  size_t outer_dims() const { return dims() - static_cast<size_t>(program_.row_dims); }
  const Expression& expression(int32_t at) const {
    return program_.expressions[static_cast<size_t>(at)];
  }
  const ValueTraits& value(int32_t at) const { return loop_.values[static_cast<size_t>(at)]; }
  const char* kind_of_value(int32_t at) const { return kind_type(value(at).kind); }
  const char* reduction(int32_t at) const { return kind_of_reduction(expression(at).op); }
  // Of a block's part of a total.
  const char* part_type(int32_t at) const {
    const bool fp64 = expression(at).op == Op::kTotalSum && value(at).kind == Format::kFp32;
    return fp64 ? "double" : kind_of_value(at);
  }
  int32_t expressions() const { return static_cast<int32_t>(program_.expressions.size()); }

  void write_kernel(const char* name, const char* body, uint32_t threads) {
    open("extern \"C\" __global__ void __launch_bounds__({}) {}(", threads, name);
    line("  const __grid_constant__ SYMBOL_space::Slots a) {{");
    line("SYMBOL_space::{}(a);", body);
    close();
  }

  void declare_arguments() {
    for (size_t i = 0; i < dims(); ++i) {
      line("const Index n{} = static_cast<Index>(a.slots[{}]);", i, slots_.sizes + i);
    }
    size_t stride = slots_.strides;
    for (const Array& array : arrays_) {
      const char* constant = array.is_output ? "" : "const ";
      line("{0}{1}* const {2} = address<{0}{1}>(a, {3});", constant, type_of(array.operand->format),
           array.name, (array.is_output ? slots_.outputs : slots_.inputs) + array.index);
      for (size_t dim = 0; dim < dims(); ++dim) {
        line("const Index s_{}_{} = static_cast<Index>(a.slots[{}]);", array.name, dim, stride++);
      }
    }
    for (size_t c = 0; c < loop_.column_reductions.size(); ++c) {
      const int32_t at = loop_.column_reductions[c];
      line("{0}* const total{1} = address<{0}>(a, {2});", kind_of_value(at), at,
           slots_.columns_of + c);
    }
    for (size_t t = 0; t < loop_.totals.size(); ++t) {
      line("{0}* const total{1} = address<{0}>(a, {2});", part_type(loop_.totals[t]),
           loop_.totals[t], slots_.totals_of + t);
    }
    const auto declare = [&](const char* name, size_t slot) {
      line("const Index {} = static_cast<Index>(a.slots[{}]);", name, slot);
    };
    declare("rows", slots_.rows);
    declare("columns", slots_.columns);
    declare("block_rows", slots_.block_rows);
    declare("blocks", slots_.blocks);
    declare("parts", slots_.parts);
    line("const Index groups = columns / kWidth;");
  }

  // The right side of any value; `access` makes that of an input's element.
  template <typename Access>
  std::string value_text(int32_t at, const Access& access) const {
    const Expression& e = expression(at);
    const auto argument = [&](size_t i) { return fmt::format("v{}", e.arguments[i]); };
    switch (e.op) {
      case Op::kInput: return access(arrays_[static_cast<size_t>(e.index)]);
      case Op::kConstant: {
        size_t slot = slots_.numbers;
        for (int32_t i = 0; i < at; ++i) slot += expression(i).op == Op::kConstant ? 1 : 0;
        return fmt::format("cast_{}(number(a, {}))", name_of(e.format), slot);
      }
      case Op::kIndex: {
        const auto dim = static_cast<size_t>(e.index);
        if (dim < outer_dims()) return fmt::format("static_cast<Int64>(k{})", dim);
        return fmt::format("static_cast<Int64>(j{}{})", dim, dim + 1 == dims() ? " + u" : "");
      }
      case Op::kCast: return fmt::format("cast_{}({})", name_of(e.format), argument(0));
      case Op::kSelect: return fmt::format("{} ? {} : {}", argument(0), argument(1), argument(2));
      default:
        return traits_of(e.op).arity == 2
                   ? fmt::format("op_{}({}, {})", traits_of(e.op).name, argument(0), argument(1))
                   : fmt::format("op_{}({})", traits_of(e.op).name, argument(0));
    }
  }
  template <typename Access>
  void write_value(int32_t at, const Access& access) {
    line("const {} v{} = {};", kind_of_value(at), at, value_text(at, access));
  }

  void write_values_for_all(const std::vector<bool>& needed) {
    for (int32_t at = 0; at < expressions(); ++at) {
      if (!needed[static_cast<size_t>(at)] || value(at).level != Level::kAll) continue;
      write_value(at, [](const Array& array) { return fmt::format("read(*{})", array.name); });
    }
  }

  // Numbers of the row among `needed`, with what they are made of, that are not there yet.
  void write_row_numbers(const std::vector<bool>& needed) {
    for (int32_t at = 0; at < expressions(); ++at) {
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
    write_value(at, [](const Array& array) { return fmt::format("read(*row_{})", array.name); });
  }

  // Where row `row` begins.
  void write_row_start() {
    if (outer_dims() > 1) line("Index rest_k = row;");
    for (size_t dim = outer_dims() - 1; dim > 0; --dim) {
      line("const Index k{0} = rest_k % n{0};", dim);
      line("rest_k /= n{};", dim);
    }
    line("const Index k0 = {};", outer_dims() > 1 ? "rest_k" : "row");
    for (const Array& array : arrays_) {
      std::string offset;
      for (size_t dim = 0; dim < outer_dims(); ++dim) {
        offset += fmt::format(" + k{} * s_{}_{}", dim, array.name, dim);
      }
      line("auto* const row_{0} = {0}{1};", array.name, offset);
    }
  }

  // Positions in the row from the number of a group of `width` neighbors.
  void write_positions(const char* group, const char* width) {
    const size_t first = outer_dims(), last = dims() - 1;
    if (first == last) {
      line("const Index j{} = {} * {};", last, group, width);
      return;
    }
    line("Index rest_j = {};", group);
    line("const Index j{0} = rest_j % (n{0} / {1}) * {1};", last, width);
    line("rest_j /= n{} / {};", last, width);
    for (size_t dim = last - 1; dim > first; --dim) {
      line("const Index j{0} = rest_j % n{0};", dim);
      line("rest_j /= n{};", dim);
    }
    line("const Index j{} = rest_j;", first);
  }
  std::string offset_in_row(const Array& array) const {
    std::string offset;
    for (size_t dim = outer_dims(); dim < dims(); ++dim) {
      offset += fmt::format(" + j{} * s_{}_{}", dim, array.name, dim);
    }
    return offset;
  }

  std::string element_access(const Array& array) const {
    switch (last_stride(*array.operand)) {
      case 0: return "x_" + array.name;
      case 1: return fmt::format("read(x_{}.v[u])", array.name);
      default: return fmt::format("read(at_{0}[u * s_{0}_{1}])", array.name, dims() - 1);
    }
  }

  // What comes before the elements of a group: reading.
  void write_group_start(const std::vector<bool>& slice) {
    write_positions("group", "kWidth");
    for (int32_t at = 0; at < expressions(); ++at) {
      const Expression& e = expression(at);
      const bool read = slice[static_cast<size_t>(at)] && e.op == Op::kInput &&
                        value(at).level == Level::kElement;
      if (!read) continue;
      const Array& array = arrays_[static_cast<size_t>(e.index)];
      if (!read_.insert(array.name).second) continue;
      line("auto* const at_{0} = row_{0}{1};", array.name, offset_in_row(array));
      if (last_stride(*array.operand) == 1) {
        line("const auto x_{0} = fetch<kAligned, kWidth>(at_{0});", array.name);
      } else if (last_stride(*array.operand) == 0) {
        line("const {0} x_{1} = read(*at_{1});", kind_of_value(at), array.name);
      }
    }
  }

  // The elements of a group, which `reduce` adds up, and their stores where they are known.
  template <typename Reduce>
  void write_group(int sweep, const Reduce& reduce) {
    const std::vector<bool> slice = slice_of(loop_, sweep);
    const bool stores = sweep == loop_.sweeps - 1;
    read_.clear();
    write_group_start(slice);
    std::vector<const Array*> stored;
    for (const Array& array : arrays_) {
      if (stores && array.is_output && loop_.stores[array.index] == Level::kElement) {
        stored.push_back(&array);
      }
    }
    for (const Array* array : stored) {
      line("auto* const at_{0} = row_{0}{1};", array->name, offset_in_row(*array));
      if (last_stride(*array->operand) != 1) continue;
      line("Pack<{}, kWidth> x_{};", type_of(array->operand->format), array->name);
    }
    line("#pragma unroll");
    open("for (int u = 0; u < kWidth; ++u) {{");
    for (int32_t at = 0; at < expressions(); ++at) {
      if (!slice[static_cast<size_t>(at)] || value(at).level != Level::kElement) continue;
      write_value(at, [this](const Array& array) { return element_access(array); });
    }
    reduce();
    bool totals = false;
    for (const int32_t at : loop_.totals) {
      const int32_t argument = expression(at).arguments[0];
      if (value(argument).depth != sweep) continue;
      line("t{}.add(v{});", at, argument);
      totals = true;
    }
    for (const Array* array : stored) {
      if (last_stride(*array->operand) == 1) {
        line("write(x_{}.v[u], v{});", array->name, array->value);
      } else {
        line("write(at_{0}[u * s_{0}_{1}], v{2});", array->name, dims() - 1, array->value);
      }
    }
    close();
    for (const Array* array : stored) {
      if (last_stride(*array->operand) != 1) continue;
      line("deposit<kAligned, kWidth>(at_{0}, x_{0});", array->name);
    }
    if (!totals) return;
    open("if (++total_turn % (32 / kWidth) == 0) {{");
    for (const int32_t at : loop_.totals) line("t{}.close_part();", at);
    close();
  }

  void write_body() {
    written_.assign(loop_.values.size(), false);
    line("template <bool kAligned>");
    open("__device__ __forceinline__ void body(const Slots& a) {{");
    declare_arguments();
    std::vector<bool> needed(loop_.values.size());
    for (size_t i = 0; i < needed.size(); ++i) needed[i] = loop_.values[i].level == Level::kAll;
    write_values_for_all(needed);
    for (const int32_t at : loop_.totals) {
      line("Total<{}, {}> t{};", reduction(at), kind_of_value(at), at);
    }
    if (!loop_.totals.empty()) line("int total_turn = 0;");
    switch (plan_.form) {
      case CudaPlan::Form::kPointwise: write_pointwise(); break;
      case CudaPlan::Form::kRows: write_rows(); break;
      case CudaPlan::Form::kColumns: write_columns(); break;
      case CudaPlan::Form::kBoth: write_both(); break;
    }
    write_block_totals();
    close();
  }

  void write_block_totals() {
    if (loop_.totals.empty()) return;
    line("__shared__ double total_shared[{}];", plan_.block[0] * plan_.block[1]);
    for (const int32_t at : loop_.totals) {
      line("const {0} all{1} = join_block<{2}>(t{1}.total(), total_shared);", part_type(at), at,
           reduction(at));
    }
    open("if (threadIdx.x == 0 && threadIdx.y == 0) {{");
    for (const int32_t at : loop_.totals) {
      line("total{0}[blockIdx.y * gridDim.x + blockIdx.x] = all{0};", at);
    }
    close();
  }

  void write_pointwise() {
    const bool one_row = loop_.rows == 1;
    line("const Index step = static_cast<Index>(gridDim.x) * blockDim.x;");
    open(
        "for (Index at = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; at < rows * "
        "groups; at += step) {{");
    line("const Index row = {};", one_row ? "0" : "at / groups");
    line("const Index group = {};", one_row ? "at" : "at - row * groups");
    write_row_start();
    write_row_numbers(slice_of(loop_, 0));
    write_group(0, [] {});
    close();
  }

  // A sweep of all that work on the row.
  void write_sweep(int sweep) {
    write_row_numbers(slice_of(loop_, sweep));
    std::vector<int32_t> rows, columns;
    for (const int32_t at : loop_.row_reductions) {
      if (value(expression(at).arguments[0]).depth == sweep) rows.push_back(at);
    }
    for (const int32_t at : loop_.column_reductions) {
      if (value(expression(at).arguments[0]).depth == sweep) columns.push_back(at);
    }
    for (const int32_t at : rows) {
      line("Total<{}, {}> c{};", reduction(at), kind_of_value(at), at);
    }
    if (!rows.empty()) line("int turn{} = 0;", sweep);
    open("for (Index group = threadIdx.x; group < groups; group += blockDim.x) {{");
    write_group(sweep, [&] {
      for (const int32_t at : rows) line("c{}.add(v{});", at, expression(at).arguments[0]);
      for (const int32_t at : columns) {
        line("part{0}[{1}] = {2}::join(part{0}[{1}], v{3});", at, place(), reduction(at),
             expression(at).arguments[0]);
      }
    });
    if (!rows.empty()) {
      open("if (++turn{} % (32 / kWidth) == 0) {{", sweep);
      for (const int32_t at : rows) line("c{}.close_part();", at);
      close();
    }
    close();
    for (const int32_t at : rows) {
      line("const {0} v{1} = join_row<{2}>(c{1}.result(), row_shared);", kind_of_value(at), at,
           reduction(at));
      written_[static_cast<size_t>(at)] = true;
    }
  }

  // Everything about `row`.
  void write_row() {
    write_row_start();
    for (int sweep = 0; sweep < loop_.sweeps; ++sweep) write_sweep(sweep);
    bool stores = false;
    for (size_t i = 0; i < loop_.stores.size(); ++i) {
      if (loop_.stores[i] != Level::kRow) continue;
      write_row_number(program_.outputs[i].value);
      stores = true;
    }
    if (!stores) return;
    // The memory may be that of what the others have yet to read.
    line("wait_for_row();");
    open("if (threadIdx.x == 0) {{");
    for (const Array& array : arrays_) {
      if (!array.is_output || loop_.stores[array.index] != Level::kRow) continue;
      line("write(*row_{}, v{});", array.name, array.value);
    }
    close();
  }

  void write_rows() {
    line("__shared__ double row_shared[32];");
    open(
        "for (Index row = static_cast<Index>(blockIdx.x) * blockDim.y + threadIdx.y; row < rows; "
        "row += static_cast<Index>(gridDim.x) * blockDim.y) {{");
    write_row();
    close();
  }

  void write_columns() {
    line("__shared__ double column_shared[{}];", plan_.block[0] * plan_.block[1]);
    open(
        "for (Index tile = blockIdx.x; tile * static_cast<Index>(blockDim.x) < groups; tile += "
        "gridDim.x) {{");
    line("const Index group = tile * static_cast<Index>(blockDim.x) + threadIdx.x;");
    for (const int32_t at : loop_.column_reductions) {
      line("Total<{}, {}> c{}[kWidth];", reduction(at), kind_of_value(at), at);
    }
    line("const Index first = static_cast<Index>(blockIdx.y) * block_rows;");
    line("const Index row_end = rows - first < block_rows ? rows : first + block_rows;");
    line("int turn = 0;");
    open(
        "for (Index row = group < groups ? first + static_cast<Index>(threadIdx.y) : row_end; row "
        "< row_end; row += blockDim.y) {{");
    write_row_start();
    write_row_numbers(slice_of(loop_, 0));
    write_group(0, [&] {
      for (const int32_t at : loop_.column_reductions) {
        line("c{}[u].add(v{});", at, expression(at).arguments[0]);
      }
    });
    open("if (++turn % 32 == 0) {{");
    for (const int32_t at : loop_.column_reductions) {
      line("for (int u = 0; u < kWidth; ++u) c{}[u].close_part();", at);
    }
    close();
    close();
    for (const int32_t at : loop_.column_reductions) {
      line("#pragma unroll");
      open("for (int u = 0; u < kWidth; ++u) {{");
      line("const {0} all = join_column<{1}>(c{2}[u].result(), column_shared);", kind_of_value(at),
           reduction(at), at);
      open("if (threadIdx.y == 0 && group < groups) {{");
      line("total{}[blockIdx.y * columns + group * kWidth + u] = all;", at);
      close();
      close();
    }
    close();
  }

  // Where a column's sum lies: neighbors apart in a block's own memory, for threads beside each
  // other to go to different banks.
  const char* place() const {
    return plan_.shared_columns > 0 ? "u * groups + group" : "group * kWidth + u";
  }

  void write_both() {
    line("__shared__ double row_shared[32];");
    for (const int32_t at : loop_.column_reductions) {
      if (plan_.shared_columns == 0) continue;
      line("__shared__ {} part{}[{}];", kind_of_value(at), at, plan_.shared_columns);
    }
    open("for (Index block = blockIdx.x; block < blocks; block += gridDim.x) {{");
    for (const int32_t at : loop_.column_reductions) {
      line("{0}* const block_total{1} = total{1} + block * columns;", kind_of_value(at), at);
      if (plan_.shared_columns == 0) line("auto* const part{0} = block_total{0};", at);
    }
    write_own_columns("{1}::start(part{0}[{2}]);");
    line("const Index first = block * block_rows;");
    line("const Index row_end = rows - first < block_rows ? rows : first + block_rows;");
    open("for (Index row = first; row < row_end; ++row) {{");
    write_row();
    close();
    if (plan_.shared_columns > 0) {
      write_own_columns("block_total{0}[group * kWidth + u] = part{0}[{2}];");
    }
    close();
  }

  // A line for each reduction and column that the thread has.
  void write_own_columns(const char* format) {
    open("for (Index group = threadIdx.x; group < groups; group += blockDim.x) {{");
    open("for (int u = 0; u < kWidth; ++u) {{");
    for (const int32_t at : loop_.column_reductions) {
      line("{}", fmt::format(fmt::runtime(format), at, reduction(at), place()));
    }
    close();
    close();
  }

  // What a store is made of that comes when all rows are done.
  void mark_late(int32_t at, std::vector<bool>& needed) const {
    if (needed[static_cast<size_t>(at)]) return;
    needed[static_cast<size_t>(at)] = true;
    const Expression& e = expression(at);
    if (is_reduction(e.op)) return;
    for (int i = 0; i < traits_of(e.op).arity; ++i) {
      mark_late(e.arguments[static_cast<size_t>(i)], needed);
    }
  }

  std::vector<bool> needed_for(Level level) const {
    std::vector<bool> needed(loop_.values.size());
    for (size_t i = 0; i < loop_.stores.size(); ++i) {
      if (loop_.stores[i] == level) mark_late(program_.outputs[i].value, needed);
    }
    return needed;
  }

  // A row of threads for 32 columns, each row with its share of the blocks.
  void write_columns_body() {
    const std::vector<bool> needed = needed_for(Level::kColumn);
    open("__device__ __forceinline__ void columns_body(const Slots& a) {{");
    declare_arguments();
    write_values_for_all(needed);
    line("__shared__ double column_shared[{}];", plan_.last_block[0] * plan_.last_block[1]);
    open(
        "for (Index tile = blockIdx.x; tile * static_cast<Index>(blockDim.x) < columns; tile += "
        "gridDim.x) {{");
    line("const Index column = tile * static_cast<Index>(blockDim.x) + threadIdx.x;");
    for (const int32_t at : loop_.column_reductions) {
      if (needed[static_cast<size_t>(at)]) write_blocks(at);
    }
    open("if (threadIdx.y == 0 && column < columns) {{");
    write_positions("column", "1");
    line("constexpr int u = 0;");
    for (int32_t at = 0; at < expressions(); ++at) {
      if (!needed[static_cast<size_t>(at)] || is_column_reduction(expression(at).op)) continue;
      if (value(at).level == Level::kAll) continue;
      write_value(at, [this](const Array& array) {
        return fmt::format("read(*({}{}))", array.name, offset_in_row(array));
      });
    }
    for (const Array& array : arrays_) {
      if (!array.is_output || loop_.stores[array.index] != Level::kColumn) continue;
      line("write(*({}{}), v{});", array.name, offset_in_row(array), array.value);
    }
    close();
    close();
    close();
  }

  void write_blocks(int32_t at) {
    line("Total<{}, {}> c{};", reduction(at), kind_of_value(at), at);
    line("int turn{} = 0;", at);
    open(
        "for (Index block = column < columns ? static_cast<Index>(threadIdx.y) : blocks; block < "
        "blocks; block += blockDim.y) {{");
    line("c{0}.add(total{0}[block * columns + column]);", at);
    line("if (++turn{0} % 32 == 0) c{0}.close_part();", at);
    close();
    line("const {0} v{1} = join_column<{2}>(c{1}.result(), column_shared);", kind_of_value(at), at,
         reduction(at));
  }

  // One block for the parts of all.
  void write_totals_body() {
    const std::vector<bool> needed = needed_for(Level::kTotal);
    open("__device__ __forceinline__ void totals_body(const Slots& a) {{");
    declare_arguments();
    write_values_for_all(needed);
    line("__shared__ double total_shared[{}];", plan_.total_block);
    for (const int32_t at : loop_.totals) {
      if (!needed[static_cast<size_t>(at)]) continue;
      line("Total<{}, {}> t{};", reduction(at), part_type(at), at);
      line(
          "for (Index part = threadIdx.x; part < parts; part += blockDim.x) "
          "t{0}.add(total{0}[part]);",
          at);
      line("const {0} v{1} = static_cast<{0}>(join_block<{2}>(t{1}.total(), total_shared));",
           kind_of_value(at), at, reduction(at));
    }
    open("if (threadIdx.x == 0) {{");
    for (int32_t at = 0; at < expressions(); ++at) {
      const bool made = needed[static_cast<size_t>(at)] && value(at).level == Level::kTotal;
      if (!made || is_total(expression(at).op)) continue;
      write_value(at, [](const Array& array) { return fmt::format("read(*{})", array.name); });
    }
    for (const Array& array : arrays_) {
      if (!array.is_output || loop_.stores[array.index] != Level::kTotal) continue;
      line("write(*{}, v{});", array.name, array.value);
    }
    close();
    close();
  }

  const CudaPlan& plan_;
  const LoopPlan& loop_;
  const LoopProgram& program_;
  CudaSlots slots_;
  std::vector<Array> arrays_;  // Inputs, then outputs.
  std::string text_;
  size_t indent_ = 0;
  std::vector<bool> written_;   // Numbers of a row that are there.
  std::set<std::string> read_;  // Arrays of the group that are there.
};

}  // namespace

KernelSource cuda_source(const CudaPlan& plan) {
  std::string text = Writer(plan).text();
  const std::string symbol = "gallop_" + xxh3_128(text);
  for (size_t at = 0; (at = text.find("SYMBOL", at)) != std::string::npos;) {
    text.replace(at, 6, symbol);
  }
  return {.symbol = symbol, .text = std::move(text)};
}

const std::string& cuda_prefix() {
  static const std::string kPrefix = [] {
    constexpr std::string_view kOnce = "#pragma once\n";
    for (const EmbeddedHeader& header : embedded_headers()) {
      std::string text = header.text;
      if (std::string_view(header.path) != "gallop/compile/codegen/loop_cuda.h") continue;
      return text.replace(text.find(kOnce), kOnce.size(), "");
    }
    throw InternalError("gallop/compile/codegen/loop_cuda.h is not built into the program");
  }();
  return kPrefix;
}

}  // namespace gallop::compile
