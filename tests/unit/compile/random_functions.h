#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop::compile {

/// One line of a program: "v5 = narrow(v3, 17, 4)".
struct Instruction {
  int64_t result = -1;
  std::string name;
  std::vector<int64_t> arguments;  ///< Values.
  std::vector<int64_t> numbers;
};

/// A function of tensors as text. First come the tensors it works on: input, parameter (which
/// requires a gradient), buffer, each as NAME(format, memory order, sizes...), and tied(v, how),
/// another view of a state; "keep_gradients()" lets gradients be added to those that are there.
/// Then what it does, by the names of all_operations(), and backward(v), which adds the gradient of
/// v's sum, gradient(v), that of a parameter, and hook(v), which doubles v's gradient on its way.
/// Last return(v, ...).
using Program = std::vector<Instruction>;

std::string text_of(const Program& program);
/// Throws std::invalid_argument.
Program parse(const std::string& text);

/// Whether `op` names a tensor the function works on.
bool is_declaration(const Instruction& op);

/// A program that can be called, with state of its own. Equal programs have equal state.
class RandomFunction {
 public:
  /// `wide`: computes everything in fp64, for reference.
  explicit RandomFunction(const Program& program, bool wide = false);

  /// Throws Unfit or c10::Error where operations do not fit.
  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& inputs) const;

  /// The state that outlives a call, including kept gradients.
  const std::vector<at::Tensor>& state() const { return state_; }

  /// Tensors of the state by their value.
  const std::vector<std::pair<int64_t, at::Tensor>>& values() const { return values_; }

 private:
  Program program_;
  bool wide_;
  std::vector<std::pair<int64_t, at::Tensor>> values_;  // Values of state.
  std::vector<at::Tensor> parameters_, state_;
  bool keeps_gradients_ = false;
};

/// Arguments for call number `call`: each call has other numbers, and the third has its tensors
/// somewhere within larger memory.
std::vector<at::Tensor> arguments_of(const Program& program, int64_t call, bool wide = false);

/// Kinds of random programs.
enum class Flavor : uint8_t {
  kAny,
  kSmooth,    ///< Of operations only that are so.
  kReducing,  ///< Of smooth ones, reductions of larger tensors and what is broadcast to them.
};

/// A random program that runs.
Program random_program(uint64_t seed, Flavor flavor);

/// Calls the test with each of the first `count` programs of any flavor that run with these inputs.
void with_random_programs(
    uint64_t count, const std::function<void(const Program& program, const RandomFunction& function,
                                             const std::vector<at::Tensor>& inputs)>& test);

/// The program reduced to the lines needed for `fails` to hold.
Program shrunk(Program program, const std::function<bool(const Program&)>& fails);

}  // namespace gallop::compile
