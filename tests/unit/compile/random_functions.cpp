#include "unit/compile/random_functions.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "unit/compile/random_operators.h"

namespace gallop::compile {

namespace {

using Tensors = std::vector<at::Tensor>;
using Values = std::map<int64_t, at::Tensor>;

constexpr int64_t kMostElements = 4096;

const Operation* operation_named(std::string_view name) {
  for (const Operation& operation : all_operations()) {
    if (operation.name == name) return &operation;
  }
  return nullptr;
}

// Mostly small, sometimes an odd one.
double random_number(std::mt19937_64& random) {
  const uint64_t choice = random() % 64;
  if (choice == 0) return 0;
  if (choice == 1) return -0.0;
  return static_cast<double>(random() % 4096) / 512 - 4;
}

at::Tensor filled(at::ScalarType format, const std::vector<int64_t>& sizes, uint64_t seed) {
  std::mt19937_64 random(seed);
  const at::Tensor numbers = at::empty(sizes, at::kDouble);
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    numbers.mutable_data_ptr<double>()[i] = random_number(random);
  }
  return format == at::kBool ? numbers.gt(0) : numbers.to(format);
}

// The tensor with other strides: its dimensions from the last to the first, or every second
// element of a larger one.
at::Tensor in_memory_order(const at::Tensor& tensor, int64_t order) {
  if (order % 3 == 0 || tensor.dim() == 0) return tensor;
  auto sizes = tensor.sizes().vec();
  if (order % 3 == 1) {
    std::reverse(sizes.begin(), sizes.end());
    std::vector<int64_t> backward(sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i)
      backward[i] = static_cast<int64_t>(sizes.size() - i) - 1;
    return at::zeros(sizes, tensor.options()).permute(backward).copy_(tensor);
  }
  sizes.back() *= 2;
  return at::zeros(sizes, tensor.options()).slice(-1, 0, std::nullopt, 2).copy_(tensor);
}

at::ScalarType format_of(const Instruction& declaration, bool wide) {
  const auto format =
      all_formats()[static_cast<size_t>(declaration.numbers.at(0)) % all_formats().size()];
  return wide && c10::isFloatingType(format) ? at::kDouble : format;
}

at::Tensor declared(const Instruction& declaration, uint64_t seed, bool wide) {
  const auto& numbers = declaration.numbers;
  const std::vector<int64_t> sizes(numbers.begin() + 2, numbers.end());
  // Values that the narrow data type can represent.
  const at::Tensor tensor = filled(format_of(declaration, false), sizes, seed);
  return in_memory_order(tensor.to(format_of(declaration, wide)), numbers.at(1));
}

at::Tensor tied(const at::Tensor& state, int64_t how) {
  if (how % 3 == 0 || state.dim() == 0) return state;
  const at::Tensor all = state.detach();
  return how % 3 == 1 ? all.transpose(0, -1) : all.narrow(0, 0, (all.size(0) + 1) / 2);
}

bool is_state(const Instruction& op) {
  return op.name == "parameter" || op.name == "buffer" || op.name == "tied";
}

const at::Tensor& value_of(const Values& values, int64_t id) {
  const auto found = values.find(id);
  if (found == values.end() || !found->second.defined()) throw Unfit("a value that is not there");
  return found->second;
}

void backward(const at::Tensor& value) {
  if (!value.requires_grad()) throw Unfit("a value without a gradient");
  value.sum().backward({}, /*retain_graph=*/true);
}

at::Tensor gradient_of(const at::Tensor& parameter) {
  if (!parameter.is_leaf() || !parameter.grad().defined()) throw Unfit("no gradient");
  return parameter.grad();
}

at::Tensor hooked(const at::Tensor& value) {
  if (!value.requires_grad() || value.is_leaf()) throw Unfit("no gradient to come");
  value.register_hook([](const at::Tensor& grad) { return grad.mul(2); });
  return value;
}

// In fp64 no cast narrows.
at::Tensor apply_wide(const Instruction& op, const Arguments& arguments) {
  if (op.name == "to_float" || op.name == "to_bf16") return arguments[0].to(at::kDouble);
  return operation_named(op.name)->apply(arguments);
}

at::Tensor apply(const Instruction& op, const Values& values, bool wide) {
  Arguments arguments;
  for (const int64_t id : op.arguments) arguments.tensors.push_back(value_of(values, id));
  if (!op.numbers.empty()) arguments.p = op.numbers[0];
  if (op.numbers.size() > 1) arguments.q = op.numbers[1];
  if (op.name == "backward") return backward(arguments[0]), at::Tensor();
  if (op.name == "gradient") return gradient_of(arguments[0]);
  if (op.name == "hook") return hooked(arguments[0]);
  const Operation* operation = operation_named(op.name);
  if (operation == nullptr) throw std::invalid_argument("no operation '" + op.name + "'");
  if (static_cast<int>(op.arguments.size()) != operation->arity) throw Unfit("arguments");
  at::Tensor result = wide ? apply_wide(op, arguments) : operation->apply(arguments);
  if (result.numel() > kMostElements || result.dim() > 5) throw Unfit("too large");
  return result;
}

// Draws the lines of programs, trying each on tensors.
class Generator {
 public:
  Generator(uint64_t seed, Flavor flavor) : random_(seed), flavor_(flavor) {}

  Program make() {
    shape_ = below(3);
    declare();
    const RandomFunction function(program_);
    start(function);
    const int64_t lines = 3 + below(16);
    for (int64_t tries = 0; tries < 8 * lines && added_ < lines; ++tries) try_line();
    add_return();
    return program_;
  }

 private:
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }
  bool chance(int64_t percent) { return below(100) < percent; }

  // Those of rows and columns that loops are worth for, whole or with 1 in places.
  std::vector<int64_t> larger_sizes() {
    static constexpr int64_t kSizes[][3] = {{1, 64, 20}, {1, 20, 64}, {4, 16, 24}};
    const auto& shape = kSizes[shape_];
    std::vector<int64_t> sizes(std::begin(shape) + below(2), std::end(shape));
    for (int64_t& size : sizes) size = chance(12) ? 1 : size;
    if (chance(15)) sizes.erase(sizes.begin());
    return sizes;
  }

  // Sizes that fit together often.
  std::vector<int64_t> sizes() {
    if (flavor_ == Flavor::kReducing) return larger_sizes();
    static constexpr int64_t kSizes[] = {3, 4, 6};
    std::vector<int64_t> sizes(static_cast<size_t>(below(10) < 8 ? 1 + below(3) : below(5)));
    for (int64_t& size : sizes) size = chance(15) ? 1 : chance(4) ? 0 : kSizes[below(3)];
    return sizes;
  }

  void declare(const char* name, int64_t format) {
    Instruction op{.result = next_++, .name = name, .arguments = {}, .numbers = {format, below(3)}};
    const auto chosen = sizes();
    op.numbers.insert(op.numbers.end(), chosen.begin(), chosen.end());
    program_.push_back(op);
  }

  // fp32 more often than others.
  int64_t format(int64_t count) {
    if (flavor_ == Flavor::kReducing) return chance(70) ? 0 : 1;
    return chance(50) || flavor_ == Flavor::kSmooth ? 0 : below(count);
  }

  void declare() {
    for (int64_t i = below(3) + (chance(90) ? 1 : 0); i > 0; --i) declare("input", format(5));
    for (int64_t i = below(3); i > 0; --i) declare("parameter", format(3));
    for (int64_t i = below(3); i > 0; --i) declare("buffer", format(5));
    const size_t tensors = program_.size();
    for (size_t i = 0; i < tensors; ++i) {
      if (program_[i].name == "input" || !chance(20)) continue;
      program_.push_back({next_++, "tied", {program_[i].result}, {below(3)}});
    }
    if (chance(20)) program_.push_back({-1, "keep_gradients", {}, {}});
  }

  void start(const RandomFunction& function) {
    const Tensors inputs = arguments_of(program_, 0);
    size_t input = 0;
    for (const Instruction& op : program_) {
      if (op.name == "input") values_[op.result] = inputs[input++];
    }
    for (const auto& [id, tensor] : function.values()) values_[id] = tensor;
  }

  // Prefers late values.
  int64_t some_value() {
    const int64_t count = static_cast<int64_t>(values_.size());
    int64_t place = chance(50) ? std::max(below(count), below(count)) : below(count);
    if (flavor_ == Flavor::kReducing && chance(60))
      place = count - 1 - below(std::min(count, int64_t{3}));
    return std::next(values_.begin(), place)->first;
  }

  Instruction some_line() {
    if (chance(8)) return {-1, "backward", {some_value()}, {}};
    if (chance(6)) return {next_, "gradient", {some_value()}, {}};
    if (chance(2)) return {next_, "hook", {some_value()}, {}};
    const auto operations = all_operations();
    const Operation& operation = operations[static_cast<size_t>(below(std::ssize(operations)))];
    Instruction op{next_, std::string(operation.name), {}, {below(60), below(60)}};
    for (int i = 0; i < operation.arity; ++i) op.arguments.push_back(some_value());
    if (flavor_ != Flavor::kAny && !operation.smooth) op.name.clear();
    if (flavor_ == Flavor::kReducing) prefer_reductions(op);
    return op;
  }

  void prefer_reductions(Instruction& op) {
    static constexpr const char* kReductions[] = {
        "sum_dim", "mean_dim", "amax", "amin", "softmax", "log_softmax", "sum", "mean", "sum_dims"};
    static constexpr const char* kMeetings[] = {"add", "sub", "mul", "div", "maximum"};
    const bool reduces = chance(25), meets = !reduces && chance(50);
    if (reduces) op.name = kReductions[below(std::ssize(kReductions))];
    if (meets) op.name = kMeetings[below(std::ssize(kMeetings))];
    if (!reduces && !meets) return;
    op.arguments = {some_value()};
    if (meets) op.arguments.push_back(some_value());
  }

  void try_line() {
    if (values_.empty() && !chance(10)) return;
    Instruction op = values_.empty() ? Instruction{next_, "ones", {}, {1, 2}} : some_line();
    if (op.name.empty()) return;
    try {
      const at::Tensor result = apply(op, values_, false);
      if (op.result >= 0) values_[next_++] = result;
      program_.push_back(op);
      added_ += 1;
    } catch (const std::exception&) {  // Unfit, or LibTorch's or oneDNN's own.
    }
  }

  void add_return() {
    Instruction op{.result = -1, .name = "return", .arguments = {}, .numbers = {}};
    for (int64_t i = values_.empty() ? 0 : 1 + below(4); i > 0; --i) {
      op.arguments.push_back(some_value());
    }
    program_.push_back(op);
  }

  std::mt19937_64 random_;
  Flavor flavor_;
  Program program_;
  Values values_;
  int64_t next_ = 0, added_ = 0;
  int64_t shape_ = 0;  // Shape of a reducing program's tensors.
};

}  // namespace

bool is_declaration(const Instruction& op) {
  return op.name == "input" || op.name == "keep_gradients" || is_state(op);
}

std::string text_of(const Program& program) {
  std::string text;
  for (const Instruction& op : program) {
    std::vector<std::string> parts;
    for (const int64_t id : op.arguments) parts.push_back(fmt::format("v{}", id));
    for (const int64_t number : op.numbers) parts.push_back(fmt::format("{}", number));
    if (op.result >= 0) text += fmt::format("v{} = ", op.result);
    text += fmt::format("{}({})\n", op.name, fmt::join(parts, ", "));
  }
  return text;
}

Program parse(const std::string& text) {
  Program program;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::replace_if(
        line.begin(), line.end(),
        [](char c) { return std::string_view("=(),").find(c) != std::string_view::npos; }, ' ');
    std::istringstream words(line);
    Instruction op;
    for (std::string word; words >> word;) {
      const bool is_value = word[0] == 'v' && word.size() > 1 && std::isdigit(word[1]) != 0;
      if (is_value && op.name.empty()) {
        op.result = std::stoll(word.substr(1));
      } else if (op.name.empty()) {
        op.name = word;
      } else if (is_value) {
        op.arguments.push_back(std::stoll(word.substr(1)));
      } else {
        op.numbers.push_back(std::stoll(word));
      }
    }
    if (!op.name.empty()) program.push_back(op);
  }
  return program;
}

RandomFunction::RandomFunction(const Program& program, bool wide) : program_(program), wide_(wide) {
  Values values;
  for (const Instruction& op : program) {
    if (op.name == "keep_gradients") keeps_gradients_ = true;
    if (!is_state(op)) continue;
    at::Tensor& value = values[op.result];
    value = op.name == "tied" ? tied(value_of(values, op.arguments.at(0)), op.numbers.at(0))
                              : declared(op, static_cast<uint64_t>(op.result), wide);
    values_.emplace_back(op.result, value);
    if (op.name == "parameter") parameters_.push_back(value.requires_grad_());
    state_.push_back(value);
  }
  if (!keeps_gradients_) return;
  for (const at::Tensor& parameter : parameters_) {
    parameter.mutable_grad() = at::zeros_like(parameter);
    state_.push_back(parameter.grad());
  }
}

Tensors RandomFunction::operator()(const Tensors& inputs) const {
  if (!keeps_gradients_) {
    for (const at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
  }
  Values values(values_.begin(), values_.end());
  size_t input = 0;
  Tensors results;
  for (const Instruction& op : program_) {
    if (op.name == "input") {
      values[op.result] = inputs.at(input++);
    } else if (op.name == "return") {
      for (const int64_t id : op.arguments) results.push_back(value_of(values, id));
    } else if (!is_declaration(op)) {
      values[op.result] = apply(op, values, wide_);
    }
  }
  return results;
}

Tensors arguments_of(const Program& program, int64_t call, bool wide) {
  Tensors inputs;
  for (const Instruction& op : program) {
    if (op.name != "input") continue;
    at::Tensor input = declared(op, static_cast<uint64_t>(1000 * (call + 1) + op.result), wide);
    if (call == 2) {
      const auto elements = static_cast<int64_t>(input.storage().nbytes() / input.element_size());
      const at::Tensor room = at::zeros({8 + elements}, input.options());
      input = room.as_strided(input.sizes(), input.strides(), 8).copy_(input);
    }
    inputs.push_back(input);
  }
  return inputs;
}

Program random_program(uint64_t seed, Flavor flavor) { return Generator(seed, flavor).make(); }

Program shrunk(Program program, const std::function<bool(const Program&)>& fails) {
  const auto try_smaller = [&](Program smaller) {
    if (!fails(smaller)) return false;
    program = std::move(smaller);
    return true;
  };
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (size_t i = program.size(); i-- > 0;) {
      Program less = program;
      const Instruction dropped = less[i];
      if (dropped.name == "return") {
        for (size_t r = dropped.arguments.size(); r-- > 0;) {
          less = program;
          less[i].arguments.erase(less[i].arguments.begin() + static_cast<int64_t>(r));
          smaller = try_smaller(less) || smaller;
        }
        continue;
      }
      less.erase(less.begin() + static_cast<int64_t>(i));
      if (!dropped.arguments.empty()) {
        for (Instruction& op : less) {
          std::replace(op.arguments.begin(), op.arguments.end(), dropped.result,
                       dropped.arguments[0]);
        }
      }
      smaller = try_smaller(less) || smaller;
    }
  }
  return program;
}

void with_random_programs(
    uint64_t count, const std::function<void(const Program& program, const RandomFunction& function,
                                             const std::vector<at::Tensor>& inputs)>& test) {
  for (uint64_t number = 1; number <= count; ++number) {
    const Program program = random_program(number, Flavor::kAny);
    const RandomFunction function(program);
    const std::vector<at::Tensor> inputs = arguments_of(program, 0);
    try {
      function(inputs);
    } catch (const std::exception&) {
      continue;
    }
    test(program, function, inputs);
  }
}

}  // namespace gallop::compile
