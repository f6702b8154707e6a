#include "gallop/compile/codegen/loop_values.h"

#include <algorithm>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <fmt/format.h>

#include "gallop/base/checked.h"
#include "gallop/base/error.h"
#include "gallop/compile/codegen/op_traits.h"

namespace gallop::compile {

namespace {

template <typename... Arguments>
[[noreturn]] void fail(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  throw InternalError("loop program: " + fmt::format(text, std::forward<Arguments>(arguments)...));
}

size_t outer_dims(const LoopProgram& program) {
  return program.sizes.size() - static_cast<size_t>(program.row_dims);
}

// Whether an operand has several elements along one of the dimensions [begin, end).
bool varies(const LoopProgram& program, const LoopOperand& operand, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    if (program.sizes[i] > 1 && operand.strides[i] != 0) return true;
  }
  return false;
}

bool varies_by_row(const LoopProgram& program, const LoopOperand& operand) {
  return varies(program, operand, 0, outer_dims(program));
}
bool varies_in_row(const LoopProgram& program, const LoopOperand& operand) {
  return varies(program, operand, outer_dims(program), program.sizes.size());
}

ValueTraits leaf(const LoopProgram& program, const Expression& e, size_t at) {
  if (e.op == Op::kConstant) return {.kind = kind_of(e.format)};
  const bool index = e.op == Op::kIndex;
  const size_t count = index ? program.sizes.size() : program.inputs.size();
  if (e.index < 0 || static_cast<size_t>(e.index) >= count) {
    fail("expression {} is of {} {}, but there are {}", at, index ? "dimension" : "input", e.index,
         count);
  }
  if (index) {
    if (program.sizes[static_cast<size_t>(e.index)] == 1) return {.kind = Format::kInt64};
    const bool outer = static_cast<size_t>(e.index) < outer_dims(program);
    return {.kind = Format::kInt64,
            .level = outer ? Level::kRow : Level::kElement,
            .same_for_rows = !outer};
  }
  const LoopOperand& operand = program.inputs[static_cast<size_t>(e.index)];
  const bool rows = varies_by_row(program, operand), elements = varies_in_row(program, operand);
  return {.kind = kind_of(operand.format),
          .level = elements ? Level::kElement : (rows ? Level::kRow : Level::kAll),
          .same_for_rows = !rows};
}

bool takes(Domain domain, Format kind) {
  const bool floating = kind == Format::kFp32 || kind == Format::kFp64;
  switch (domain) {
    case Domain::kFloating: return floating;
    case Domain::kNumber:
    case Domain::kOrder: return kind != Format::kBool;
    case Domain::kLogic: return kind == Format::kBool;
    case Domain::kOwn:
    case Domain::kCompare: return true;
  }
  return false;
}

Format result_kind(const Expression& e, const std::vector<Format>& kinds, size_t at) {
  const OpTraits& traits = traits_of(e.op);
  if (e.op == Op::kCast) return kind_of(e.format);
  const bool select = e.op == Op::kSelect;
  if (select && kinds[0] != Format::kBool) {
    fail("expression {} (select) has a condition of {}", at, name_of(kinds[0]));
  }
  if (kinds.size() > 1 && kinds.back() != kinds[kinds.size() - 2] &&
      !(select && kinds.size() < 3)) {
    fail("expression {} ({}) is of {} and {}; cast one of them", at, traits.name,
         name_of(kinds[kinds.size() - 2]), name_of(kinds.back()));
  }
  if (!takes(traits.domain, kinds[0])) {
    fail("expression {} ({}) does not take {}", at, traits.name, name_of(kinds[0]));
  }
  if (traits.domain == Domain::kCompare || traits.domain == Domain::kOrder) return Format::kBool;
  return kinds.back();
}

// The level of an expression whose operands have these levels.
Level join(Level a, Level b) { return std::max(a, b); }

ValueTraits combined(const LoopProgram& program, const Expression& e, size_t at,
                     const std::vector<ValueTraits>& values) {
  std::vector<Format> kinds;
  ValueTraits result;
  bool of_total = false, of_other = false;
  for (int i = 0; i < traits_of(e.op).arity; ++i) {
    const int32_t argument = e.arguments[static_cast<size_t>(i)];
    if (argument < 0 || static_cast<size_t>(argument) >= at) {
      fail("expression {} ({}) has argument {}, which is not an earlier one", at,
           traits_of(e.op).name, argument);
    }
    const ValueTraits& value = values[static_cast<size_t>(argument)];
    kinds.push_back(value.kind);
    result.level = join(result.level, value.level);
    of_total = of_total || value.level == Level::kTotal;
    of_other = of_other || (value.level != Level::kTotal && value.level != Level::kAll);
    result.depth = std::max(result.depth, value.depth);
    result.same_for_rows = result.same_for_rows && value.same_for_rows;
  }
  result.kind = result_kind(e, kinds, at);
  const bool reduces = is_reduction(e.op);
  if (of_total && (reduces || of_other)) {
    fail("expression {} ({}) is of a total and of what changes within the loop", at,
         traits_of(e.op).name);
  }
  if (result.level == Level::kColumn && (reduces || !result.same_for_rows)) {
    fail("expression {} ({}) is of a column reduction and of what changes from row to row", at,
         traits_of(e.op).name);
  }
  if (is_row_reduction(e.op)) {
    if (program.row_dims == 0) fail("expression {} reduces rows, but row_dims is 0", at);
    result.level = Level::kRow;
    result.same_for_rows = false;
    ++result.depth;
  } else if (is_column_reduction(e.op)) {
    result = {.kind = result.kind, .level = Level::kColumn};
  } else if (is_total(e.op)) {
    result = {.kind = result.kind, .level = Level::kTotal};
  }
  return result;
}

void check_operand(const LoopProgram& program, const LoopOperand& operand, const char* what,
                   size_t at) {
  if (operand.strides.size() != program.sizes.size()) {
    fail("{} {} has {} strides, but there are {} dimensions", what, at, operand.strides.size(),
         program.sizes.size());
  }
  for (const int64_t stride : operand.strides) {
    if (stride < 0) fail("{} {} has stride {}", what, at, stride);
  }
}

void check_output(const LoopProgram& program, const Output& output, size_t at,
                  const std::vector<ValueTraits>& values) {
  check_operand(program, output.operand, "output", at);
  if (output.value < 0 || static_cast<size_t>(output.value) >= values.size()) {
    fail("output {} is of expression {}, but there are {}", at, output.value, values.size());
  }
  const ValueTraits& value = values[static_cast<size_t>(output.value)];
  if (kind_of(output.operand.format) != value.kind) {
    fail("output {} is of {}, its value of {}; cast it", at, name_of(output.operand.format),
         name_of(value.kind));
  }
  // Each element must be stored only once.
  for (size_t i = 0; i < program.sizes.size(); ++i) {
    if (program.sizes[i] == 1 || output.operand.strides[i] != 0) continue;
    const bool outer = i < outer_dims(program);
    const bool reduced = value.level == Level::kTotal ||
                         (outer ? value.level == Level::kColumn : value.level == Level::kRow);
    if (!reduced)
      fail("output {} has stride 0 in dimension {} of size {}", at, i, program.sizes[i]);
  }
  if (value.level == Level::kColumn && varies_by_row(program, output.operand)) {
    fail("output {} is of a column reduction, but differs from row to row", at);
  }
  if (value.level == Level::kTotal && varies(program, output.operand, 0, program.sizes.size())) {
    fail("output {} is of a total, but differs within the loop", at);
  }
}

bool represents(Format format, double number) {
  const auto wide = static_cast<float>(number);
  const float narrow = format == Format::kBf16 ? static_cast<float>(c10::BFloat16(wide))
                                               : static_cast<float>(c10::Half(wide));
  return narrow == wide;
}

}  // namespace

Format kind_of(Format format) {
  if (format == Format::kBf16 || format == Format::kFp16) return Format::kFp32;
  if (format == Format::kInt32) return Format::kInt64;
  return format;
}

bool ExactValues::contains(const LoopProgram& program, int32_t at) {
  for (size_t i = known_.size(); i <= static_cast<size_t>(at); ++i) {
    known_.push_back(is_exact(program, program.expressions[i]));
  }
  return known_[static_cast<size_t>(at)];
}

bool ExactValues::is_exact(const LoopProgram& program, const Expression& e) const {
  const auto argument = [&](size_t i) -> bool {
    return known_[static_cast<size_t>(e.arguments[i])];
  };
  switch (e.op) {
    case Op::kInput: return program.inputs[static_cast<size_t>(e.index)].format == format_;
    case Op::kConstant: return e.format == format_ || represents(format_, e.number);
    case Op::kCast: return e.format == format_;
    case Op::kSign: return true;
    case Op::kNegate:
    case Op::kAbs:
    case Op::kRelu:
    case Op::kRowMax:
    case Op::kRowMin:
    case Op::kColumnMax:
    case Op::kColumnMin:
    case Op::kTotalMax:
    case Op::kTotalMin: return argument(0);
    case Op::kMaximum:
    case Op::kMinimum:
    case Op::kClampMin:
    case Op::kClampMax: return argument(0) && argument(1);
    case Op::kSelect: return argument(1) && argument(2);
    default: return false;
  }
}

std::vector<ValueTraits> analyze(const LoopProgram& program) {
  for (const int64_t size : program.sizes) {
    if (size < 1) fail("a size is {}", size);
  }
  if (!checked_product(program.sizes)) fail("too many elements");
  if (program.row_dims < 0 || static_cast<size_t>(program.row_dims) > program.sizes.size()) {
    fail("row_dims is {}, but there are {} dimensions", program.row_dims, program.sizes.size());
  }
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    check_operand(program, program.inputs[i], "input", i);
  }
  std::vector<ValueTraits> values;
  for (const Expression& e : program.expressions) {
    const size_t at = values.size();
    values.push_back(traits_of(e.op).arity == 0 ? leaf(program, e, at)
                                                : combined(program, e, at, values));
  }
  if (program.outputs.empty()) fail("no output");
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    check_output(program, program.outputs[i], i, values);
  }
  return values;
}

Level level_of(const LoopProgram& program, const Output& output,
               const std::vector<ValueTraits>& values) {
  const Level level = values[static_cast<size_t>(output.value)].level;
  if (level >= Level::kColumn) return level;
  const bool constant = level <= Level::kRow;
  return constant && !varies_in_row(program, output.operand) ? Level::kRow : Level::kElement;
}

}  // namespace gallop::compile
