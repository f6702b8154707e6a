#include "unit/compile/random_programs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "gallop/compile/codegen/loop_values.h"
#include "gallop/compile/codegen/op_traits.h"

namespace gallop::compile {

namespace {

using enum Op;

/// A value as the generator knows it.
struct Known {
  Format kind;
  bool column = false;  // Whether it is that of a column reduction.
  bool total = false;   // Whether it is that of a total.
  bool by_row = false;  // Changes from row to row.
};

// Strides of an array whose dimensions lie in memory in this order, outermost first.
std::vector<int64_t> strides_in(const std::vector<size_t>& order, const std::vector<int64_t>& sizes,
                                const std::vector<bool>& broadcast) {
  std::vector<int64_t> strides(sizes.size(), 0);
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    if (broadcast[order[i]]) continue;
    strides[order[i]] = stride;
    stride *= sizes[order[i]];
  }
  return strides;
}

/// A program under construction.
class Maker {
 public:
  Maker(RandomPrograms& random, int64_t dims) : random_(random) {
    for (int64_t i = 0; i < dims; ++i) program_.sizes.push_back(size(i == dims - 1));
    program_.row_dims = static_cast<int32_t>(random_.below(dims + 1));
    reduces_rows_ = program_.row_dims > 0 && random_.chance(40);
    reduces_columns_ = random_.chance(30);
    reduces_all_ = random_.chance(30);
    usual_order_ = order(random_.chance(70));
  }

  LoopProgram make() {
    const int64_t inputs = 1 + random_.below(4);
    for (int64_t i = 0; i < inputs; ++i) add_input(i == 0);
    if (random_.chance(10)) {
      add({.op = kIndex, .index = static_cast<int32_t>(random_.below(dims()))},
          {.kind = Format::kInt64, .by_row = true});
    }
    const int64_t operations = 2 + random_.below(10);
    for (int64_t i = 0; i < operations; ++i) add_operation();
    const int64_t outputs = 1 + random_.below(3);
    for (int64_t i = 0; i < outputs; ++i) add_output(i == 0 ? last() : pick());
    return std::move(program_);
  }

 private:
  int64_t dims() const { return static_cast<int64_t>(program_.sizes.size()); }
  int32_t last() const { return static_cast<int32_t>(known_.size()) - 1; }
  int32_t pick() const {
    // Prefers later values.
    const int64_t size = static_cast<int64_t>(known_.size());
    return static_cast<int32_t>(std::max(random_.below(size), random_.below(size)));
  }
  int64_t size(bool innermost) const {
    if (random_.chance(10)) return 1;
    if (innermost && random_.chance(15)) return 500 + random_.below(700);
    return 1 + random_.below(innermost ? 70 : 12);
  }
  std::vector<size_t> order(bool plain) const {
    std::vector<size_t> order(static_cast<size_t>(dims()));
    std::iota(order.begin(), order.end(), size_t{0});
    for (size_t i = order.size(); !plain && i > 1; --i) {
      std::swap(order[i - 1], order[static_cast<size_t>(random_.below(static_cast<int64_t>(i)))]);
    }
    return order;
  }
  bool is_outer(size_t dim) const {
    return dim + static_cast<size_t>(program_.row_dims) < program_.sizes.size();
  }

  int32_t add(Expression expression, Known known) {
    program_.expressions.push_back(expression);
    known_.push_back(known);
    return last();
  }

  void add_input(bool first) {
    constexpr Format kFormats[] = {Format::kFp32,  Format::kFp32, Format::kFp32, Format::kBf16,
                                   Format::kBf16,  Format::kBool, Format::kFp64, Format::kInt32,
                                   Format::kInt64, Format::kBf16, Format::kFp32};
    Format format = first ? (random_.chance(60) ? Format::kFp32 : Format::kBf16)
                          : kFormats[random_.below(std::size(kFormats))];
    if (format == Format::kBf16) format = random_.narrow();
    std::vector<bool> broadcast(program_.sizes.size());
    const bool all = !first && random_.chance(8);
    bool by_row = false;
    for (size_t i = 0; i < broadcast.size(); ++i) {
      broadcast[i] = all || (!first && random_.chance(30));
      by_row = by_row || (is_outer(i) && !broadcast[i]);
    }
    program_.inputs.push_back(
        {.format = format,
         .strides = strides_in(random_.chance(75) ? usual_order_ : order(false), program_.sizes,
                               broadcast)});
    add({.op = kInput, .index = static_cast<int32_t>(program_.inputs.size() - 1)},
        {.kind = kind_of(format), .by_row = by_row});
  }

  // A value like `like` in kind that may meet it, made by a cast where need be.
  int32_t partner(int32_t like) {
    const Known a = known_[static_cast<size_t>(like)];
    if (random_.chance(25)) return constant(a.kind);
    const int32_t other = pick();
    const Known b = known_[static_cast<size_t>(other)];
    if (are_apart(a, b)) return constant(a.kind);
    return in_kind(other, a.kind);
  }
  int32_t constant(Format kind) {
    return add({.op = kConstant, .number = random_.number(kind), .format = kind}, {.kind = kind});
  }
  int32_t in_kind(int32_t at, Format kind) {
    Known known = known_[static_cast<size_t>(at)];
    if (known.kind == kind) return at;
    // Fractions and limits of fp32 are not integers.
    if (kind == Format::kInt64 && known.kind != Format::kBool) return constant(kind);
    known.kind = kind;
    return add({.op = kCast, .arguments = {at, -1, -1}, .format = kind}, known);
  }

  // Whether they may not meet. What a total meets is a total or a constant.
  static bool are_apart(const Known& a, const Known& b) {
    return a.total != b.total || (a.column && b.by_row) || (b.column && a.by_row);
  }

  Known joined(std::initializer_list<int32_t> list) const {
    Known result{.kind = known_[static_cast<size_t>(*list.begin())].kind};
    for (const int32_t at : list) {
      const Known& known = known_[static_cast<size_t>(at)];
      result.column = result.column || known.column;
      result.total = result.total || known.total;
      result.by_row = result.by_row || known.by_row;
    }
    return result;
  }

  void add_operation() {
    const int32_t a = pick();
    const Known known = known_[static_cast<size_t>(a)];
    if (known.kind != Format::kBool && add_reduction(a, known)) return;
    if (reduces_rows_ && known.kind == Format::kFp32 && !known.column && !known.total &&
        random_.chance(20)) {
      return add_two_sweeps(a);
    }
    const int64_t which = random_.below(100);
    if (which < 8) return add_cast(a, known);
    if (which < 18) return add_select(a);
    if (known.kind == Format::kBool) return add_logic(a, known);
    if (which < 55 || known.kind == Format::kInt64) return add_binary(a, known);
    add_unary(a, known);
  }

  bool add_reduction(int32_t a, const Known& known) {
    if (known.column || known.total) return false;
    constexpr Op kRows[] = {kRowSum, kRowSum, kRowMax, kRowMin};
    constexpr Op kColumns[] = {kColumnSum, kColumnSum, kColumnMax, kColumnMin};
    if (reduces_rows_ && random_.chance(25)) {
      add({.op = kRows[random_.below(4)], .arguments = {a, -1, -1}},
          {.kind = known.kind, .by_row = true});
      return true;
    }
    if (reduces_all_ && random_.chance(20)) {
      constexpr Op kTotals[] = {kTotalSum, kTotalSum, kTotalMax, kTotalMin};
      add({.op = kTotals[random_.below(4)], .arguments = {a, -1, -1}},
          {.kind = known.kind, .total = true});
      return true;
    }
    if (!reduces_columns_ || !random_.chance(20)) return false;
    add({.op = kColumns[random_.below(4)], .arguments = {a, -1, -1}},
        {.kind = known.kind, .column = true});
    return true;
  }

  // As softmax: a costly function of what one sweep finds, whose sum a further sweep needs.
  void add_two_sweeps(int32_t a) {
    constexpr Op kCostly[] = {kExp, kTanh, kSigmoid, kErf, kSqrt, kExpm1};
    const Known row{.kind = Format::kFp32, .by_row = true};
    const int32_t most = add({.op = kRowMax, .arguments = {a, -1, -1}}, row);
    const int32_t off = add({.op = kSubtract, .arguments = {a, most, -1}}, row);
    const int32_t costly =
        add({.op = kCostly[random_.below(std::size(kCostly))], .arguments = {off, -1, -1}}, row);
    const int32_t sum = add({.op = kRowSum, .arguments = {costly, -1, -1}}, row);
    add({.op = random_.chance(50) ? kDivide : kAdd, .arguments = {costly, sum, -1}}, row);
  }

  void add_cast(int32_t a, Known known) {
    Format to = random_.chance(60) ? random_.narrow() : Format::kFp32;
    if (random_.chance(15)) to = Format::kFp64;
    if (random_.chance(10)) to = Format::kBool;
    if (known.kind == Format::kBool && random_.chance(30)) to = Format::kInt64;
    known.kind = kind_of(to);
    add({.op = kCast, .arguments = {a, -1, -1}, .format = to}, known);
  }

  void add_select(int32_t a) {
    const int32_t b = partner(a);
    const Known both = joined({a, b});
    int32_t condition = -1;
    for (int32_t i = 0; i <= last(); ++i) {
      const Known& known = known_[static_cast<size_t>(i)];
      if (known.kind == Format::kBool && !are_apart(known, both)) condition = i;
    }
    if (condition < 0) return;
    Known result = joined({a, b, condition});
    add({.op = kSelect, .arguments = {condition, a, b}}, result);
  }

  void add_logic(int32_t a, Known known) {
    if (random_.chance(20)) {
      add({.op = kNot, .arguments = {a, -1, -1}}, known);
      return;
    }
    constexpr Op kOps[] = {kAnd, kOr, kXor, kEqual, kNotEqual};
    const int32_t b = partner(a);
    add({.op = kOps[random_.below(std::size(kOps))], .arguments = {a, b, -1}}, joined({a, b}));
  }

  void add_binary(int32_t a, const Known& known) {
    constexpr Op kOps[] = {kAdd,      kSubtract, kMultiply,  kAdd,      kMultiply,
                           kMaximum,  kMinimum,  kClampMin,  kClampMax, kEqual,
                           kNotEqual, kLess,     kLessEqual, kGreater,  kGreaterEqual,
                           kDivide,   kDivide,   kPower,     kAtan2};
    const bool whole = known.kind == Format::kInt64;
    const Op op = kOps[random_.below(static_cast<int64_t>(std::size(kOps)) - (whole ? 4 : 0))];
    const int32_t b = partner(a);
    Known result = joined({a, b});
    const Domain domain = traits_of(op).domain;
    if (domain == Domain::kCompare || domain == Domain::kOrder) result.kind = Format::kBool;
    add({.op = op, .arguments = {a, b, -1}}, result);
  }

  void add_unary(int32_t a, const Known& known) {
    // Functions of the C library less often.
    const int first = static_cast<int>(kNegate);
    const int end = static_cast<int>(random_.chance(15) ? kNot : kExp2);
    const auto op = static_cast<Op>(first + random_.below(end - first));
    add({.op = op, .arguments = {a, -1, -1}}, known);
  }

  void add_output(int32_t value) {
    const Known known = known_[static_cast<size_t>(value)];
    Format format = known.kind;
    if (format == Format::kFp32 && random_.chance(50)) format = random_.narrow();
    if (format == Format::kInt64 && random_.chance(30)) format = Format::kInt32;
    std::vector<bool> broadcast(program_.sizes.size());
    const bool once_a_row = reduced_level(value) && random_.chance(80);
    for (size_t i = 0; i < broadcast.size(); ++i) {
      broadcast[i] = known.total || (is_outer(i) ? known.column : once_a_row);
    }
    program_.outputs.push_back(
        {.operand = {.format = format,
                     .strides = strides_in(random_.chance(75) ? usual_order_ : order(false),
                                           program_.sizes, broadcast)},
         .value = value});
  }

  // Whether it is one value per row.
  bool reduced_level(int32_t value) const {
    LoopProgram trial = program_;
    trial.outputs = {{.operand = {.format = known_[static_cast<size_t>(value)].kind,
                                  .strides = std::vector<int64_t>(program_.sizes.size(), 1)},
                      .value = value}};
    if (known_[static_cast<size_t>(value)].column) return false;
    if (known_[static_cast<size_t>(value)].total) return false;
    return analyze(trial)[static_cast<size_t>(value)].level == Level::kRow && trial.row_dims > 0;
  }

  RandomPrograms& random_;
  LoopProgram program_;
  std::vector<Known> known_;
  bool reduces_rows_ = false, reduces_columns_ = false, reduces_all_ = false;
  std::vector<size_t> usual_order_;
};

std::vector<int64_t> resize(const std::vector<int64_t>& strides, const std::vector<int64_t>& old,
                            const std::vector<int64_t>& sizes) {
  std::vector<size_t> order(strides.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return strides[a] != strides[b] ? strides[a] > strides[b] : old[a] > old[b];
  });
  std::vector<bool> broadcast(strides.size());
  for (size_t i = 0; i < strides.size(); ++i) broadcast[i] = strides[i] == 0;
  return strides_in(order, sizes, broadcast);
}

}  // namespace

LoopProgram RandomPrograms::make() { return Maker(*this, 1 + below(4)).make(); }

LoopProgram RandomPrograms::resized(const LoopProgram& program, int64_t unit) {
  LoopProgram result = program;
  for (int64_t& size : result.sizes) {
    if (size > 1) size = 2 + below(size > 70 ? 900 : 40);
  }
  int64_t elements = 1;
  for (int64_t& size : result.sizes) {
    if (elements * size > 20000) size = 2;
    if (size > 1) size = (size + unit - 1) / unit * unit;
    elements *= size;
  }
  for (LoopOperand& input : result.inputs) {
    input.strides = resize(input.strides, program.sizes, result.sizes);
  }
  for (Output& output : result.outputs) {
    output.operand.strides = resize(output.operand.strides, program.sizes, result.sizes);
  }
  return result;
}

double RandomPrograms::number(Format format) {
  if (format == Format::kBool) return static_cast<double>(below(2));
  if (kind_of(format) == Format::kInt64) return static_cast<double>(below(41) - 20);
  const bool narrow = format == Format::kBf16;
  if (chance(1)) {
    const double ends[] = {0.0,
                           -0.0,
                           std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity(),
                           1,
                           -1,
                           format == Format::kFp16 ? 0x1p-24 : (narrow ? 0x1p-126 : 0x1p-140),
                           format == Format::kFp16 ? 65504 : 0x1.fep127,
                           -100};
    return ends[below(std::size(ends))];
  }
  const double share = static_cast<double>(below(1 << 20)) / (1 << 19) - 1;
  const double scaled = chance(90) ? share * 4 : share * 60;
  return chance(10) ? std::round(scaled) : static_cast<double>(static_cast<float>(scaled));
}

}  // namespace gallop::compile
