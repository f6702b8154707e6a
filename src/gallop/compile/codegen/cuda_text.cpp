#include "gallop/compile/codegen/cuda_text.h"

#include <algorithm>

#include "gallop/compile/codegen/cpu_expressions.h"
#include "gallop/compile/codegen/op_traits.h"

namespace gallop::compile {

namespace {

const char* type_of(Format format) {
  switch (format) {
    case Format::kBool: return "unsigned char";
    case Format::kInt32: return "int";
    case Format::kInt64: return "Int64";
    default: return pointee(format);
  }
}
const char* kind_type(Format kind) { return kind == Format::kBool ? "bool" : type_of(kind); }

}  // namespace

CudaText::CudaText(const CudaPlan& plan)
    : plan_(plan),
      loop_(plan.loop),
      program_(plan.loop.program),
      slots_(plan),
      exact_in_bf16_(Format::kBf16) {
  for (size_t i = 0; i < program_.inputs.size(); ++i) {
    arrays_.push_back({&program_.inputs[i], fmt::format("in{}", i), false, i, -1});
  }
  for (size_t i = 0; i < program_.outputs.size(); ++i) {
    const Output& output = program_.outputs[i];
    arrays_.push_back({&output.operand, fmt::format("out{}", i), true, i, output.value});
  }
}

size_t CudaText::dims() const { return program_.sizes.size(); }

size_t CudaText::outer_dims() const { return dims() - static_cast<size_t>(program_.row_dims); }

const Expression& CudaText::expression(int32_t at) const {
  return program_.expressions[static_cast<size_t>(at)];
}

const ValueTraits& CudaText::value(int32_t at) const {
  return loop_.values[static_cast<size_t>(at)];
}

const char* CudaText::kind_of_value(int32_t at) const { return kind_type(value(at).kind); }

const char* CudaText::reduction(int32_t at) const { return kind_of_reduction(expression(at).op); }

const char* CudaText::part_type(int32_t at) const {
  const bool fp64 = expression(at).op == Op::kTotalSum && value(at).kind == Format::kFp32;
  return fp64 ? "double" : kind_of_value(at);
}

int32_t CudaText::expressions() const { return static_cast<int32_t>(program_.expressions.size()); }

void CudaText::write_kernel(const char* name, const char* body, const std::string& bounds) {
  open("extern \"C\" __global__ void __launch_bounds__({}) {}(", bounds, name);
  line("  const __grid_constant__ SYMBOL_space::Slots a) {{");
  line("SYMBOL_space::{}(a);", body);
  close();
}

void CudaText::declare_arguments() {
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
    line("{0}* const total{1} = address<{0}>(a, {2});", part_type(loop_.totals[t]), loop_.totals[t],
         slots_.totals_of + t);
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
  line("const Divisor<Index> by_groups(groups, a.slots[{}]);", slots_.divisors);
  for (size_t i = 0; i < dims(); ++i) {
    line("const Divisor<Index> by_n{0}(n{0}, a.slots[{1}]);", i, slots_.divisors + 1 + i);
  }
  line("const Divisor<Index> by_last(n{} / kWidth, a.slots[{}]);", dims() - 1,
       slots_.divisors + 1 + dims());
}

std::string CudaText::value_text(int32_t at, const Access& access) const {
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

void CudaText::write_value(int32_t at, const Access& access) {
  line("const {} v{} = {};", kind_of_value(at), at, value_text(at, access));
}

void CudaText::write_values_for_all(const std::vector<bool>& needed) {
  for (int32_t at = 0; at < expressions(); ++at) {
    if (!needed[static_cast<size_t>(at)] || value(at).level != Level::kAll) continue;
    write_value(at, [](const Array& array) { return fmt::format("read(*{})", array.name); });
  }
}

void CudaText::write_row_numbers(const std::vector<bool>& needed) {
  for (int32_t at = 0; at < expressions(); ++at) {
    if (needed[static_cast<size_t>(at)]) write_row_number(at);
  }
}

void CudaText::write_row_number(int32_t at) {
  if (value(at).level != Level::kRow || written_[static_cast<size_t>(at)]) return;
  written_[static_cast<size_t>(at)] = true;
  const Expression& e = expression(at);
  for (int i = 0; i < traits_of(e.op).arity; ++i) {
    write_row_number(e.arguments[static_cast<size_t>(i)]);
  }
  write_value(at, [this](const Array& array) {
    return ahead_.contains(array.name) ? fmt::format("ahead_{}[turn]", array.name)
                                       : fmt::format("read(*row_{})", array.name);
  });
}

bool CudaText::varies_by_row(const Array& array) const {
  for (size_t dim = 0; dim < outer_dims(); ++dim) {
    if (program_.sizes[dim] > 1 && array.operand->strides[dim] != 0) return true;
  }
  return false;
}

void CudaText::write_row_start() {
  std::string rest = "row";
  for (size_t dim = outer_dims() - 1; dim > 0; --dim) rest = write_position("k", dim, rest);
  line("const Index k0 = {};", rest);
  for (const Array& array : arrays_) {
    std::string offset;
    for (size_t dim = 0; varies_by_row(array) && dim < outer_dims(); ++dim) {
      offset += fmt::format(" + k{} * s_{}_{}", dim, array.name, dim);
    }
    line("auto* const row_{0} = {0}{1};", array.name, offset);
  }
}

std::string CudaText::write_position(const char* name, size_t dim, const std::string& of) {
  std::string rest = fmt::format("rest_{}{}", name, dim);
  line("const Index {} = {} / by_n{};", rest, of, dim);
  line("const Index {0}{1} = {2} - {3} * n{1};", name, dim, of, rest);
  return rest;
}

void CudaText::write_positions(const char* place, bool is_group) {
  const size_t first = outer_dims(), last = dims() - 1;
  const char* width = is_group ? " * kWidth" : "";
  if (first == last) {
    line("const Index j{} = {}{};", last, place, width);
    return;
  }
  std::string rest;
  if (is_group) {
    rest = "rest_last";
    line("const Index {} = {} / by_last;", rest, place);
    line("const Index j{0} = ({1} - {2} * (n{0} / kWidth)) * kWidth;", last, place, rest);
  } else {
    rest = write_position("j", last, place);
  }
  for (size_t dim = last - 1; dim > first; --dim) rest = write_position("j", dim, rest);
  line("const Index j{} = {};", first, rest);
}

std::string CudaText::offset_in_row(const Array& array) const {
  std::string offset;
  for (size_t dim = outer_dims(); dim < dims(); ++dim) {
    const bool is_adjacent = dim + 1 == dims() && last_stride(*array.operand) == 1;
    offset += is_adjacent ? fmt::format(" + j{}", dim)
                          : fmt::format(" + j{} * s_{}_{}", dim, array.name, dim);
  }
  return offset;
}

const char* CudaText::writer_of(const Array& array) {
  const bool is_bf16 = array.operand->format == Format::kBf16;
  return is_bf16 && exact_in_bf16_.contains(program_, array.value) ? "write_exact" : "write";
}

std::string CudaText::element_access(const Array& array) const {
  switch (last_stride(*array.operand)) {
    case 0: return "x_" + array.name;
    case 1: return fmt::format("read(x_{}.v[u])", array.name);
    default: return fmt::format("read(at_{0}[u * s_{0}_{1}])", array.name, dims() - 1);
  }
}

std::vector<const CudaText::Array*> CudaText::inputs_of(const std::vector<bool>& slice,
                                                        Level level) const {
  std::vector<const Array*> inputs;
  for (int32_t at = 0; at < expressions(); ++at) {
    const Expression& e = expression(at);
    if (!slice[static_cast<size_t>(at)] || e.op != Op::kInput || value(at).level != level) continue;
    const Array* array = &arrays_[static_cast<size_t>(e.index)];
    if (std::find(inputs.begin(), inputs.end(), array) == inputs.end()) inputs.push_back(array);
  }
  return inputs;
}

std::string CudaText::group_type(const Array& array) const {
  const Format format = array.operand->format;
  return last_stride(*array.operand) == 1 ? fmt::format("Pack<{}, kWidth>", type_of(format))
                                          : kind_type(kind_of(format));
}

std::string CudaText::group_load(const Array& array) const {
  switch (last_stride(*array.operand)) {
    case 0: return fmt::format("read(*at_{})", array.name);
    case 1: return fmt::format("fetch<kAligned, kWidth>(at_{})", array.name);
    default: return "";
  }
}

void CudaText::write_group_start(const std::vector<bool>& slice) {
  for (const Array* array : inputs_of(slice, Level::kElement)) {
    if (shared_.contains(array->name)) continue;
    if (ahead_.contains(array->name)) {
      line("const auto& x_{0} = ahead_{0}[turn];", array->name);
      continue;
    }
    line("auto* const at_{0} = row_{0}{1};", array->name, offset_in_row(*array));
    const std::string load = group_load(*array);
    if (!load.empty()) line("const {} x_{} = {};", group_type(*array), array->name, load);
  }
}

void CudaText::write_shared_loads() {
  for (const Array* array : inputs_of(slice_of(loop_, 0), Level::kElement)) {
    const std::string load = group_load(*array);
    if (varies_by_row(*array) || load.empty()) continue;
    shared_.insert(array->name);
    line("auto* const at_{0} = {0}{1};", array->name, offset_in_row(*array));
    line("const {} x_{} = {};", group_type(*array), array->name, load);
  }
}

void CudaText::write_turns(const std::function<void()>& start,
                           const std::function<void()>& reduce) {
  const std::vector<bool> slice = slice_of(loop_, 0);
  std::vector<const Array*> elements;
  for (const Array* array : inputs_of(slice, Level::kElement)) {
    if (!shared_.contains(array->name) && !group_load(*array).empty()) elements.push_back(array);
  }
  const std::vector<const Array*> rows = inputs_of(slice, Level::kRow);
  for (const Array* array : elements) {
    line("{} ahead_{}[kTurns];", group_type(*array), array->name);
    ahead_.insert(array->name);
  }
  for (const Array* array : rows) {
    line("{} ahead_{}[kTurns];", kind_type(kind_of(array->operand->format)), array->name);
    ahead_.insert(array->name);
  }
  const auto open_turn = [&] {
    line("#pragma unroll");
    open("for (int turn = 0; turn < kTurns; ++turn) {{");
    start();
    write_row_start();
  };
  open_turn();
  for (const Array* array : elements) {
    line("auto* const at_{0} = row_{0}{1};", array->name, offset_in_row(*array));
    line("ahead_{}[turn] = {};", array->name, group_load(*array));
  }
  for (const Array* array : rows) line("ahead_{0}[turn] = read(*row_{0});", array->name);
  close();
  open_turn();
  write_row_numbers(slice);
  write_group(0, reduce);
  close();
}

void CudaText::write_group(int sweep, const std::function<void()>& reduce) {
  const std::vector<bool> slice = slice_of(loop_, sweep);
  const bool stores = sweep == loop_.sweeps - 1;
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
    const char* write = writer_of(*array);
    if (last_stride(*array->operand) == 1) {
      line("{}(x_{}.v[u], v{});", write, array->name, array->value);
    } else {
      line("{0}(at_{1}[u * s_{1}_{2}], v{3});", write, array->name, dims() - 1, array->value);
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

}  // namespace gallop::compile
