#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop::compile {

/// An operation does not fit its arguments.
struct Unfit : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The arguments of an operation: tensors, and two numbers at least 0 of which it makes what it
/// needs.
struct Arguments {
  std::vector<at::Tensor> tensors;
  int64_t p = 0, q = 0;

  const at::Tensor& operator[](size_t i) const { return tensors[i]; }
};

/// An operation of a random function.
struct Operation {
  std::string_view name;
  int arity;
  bool smooth;  ///< A small change of its arguments changes its result a little; draws nothing.
  at::Tensor (*apply)(const Arguments&);
};

/// All operations but those that take part in the program's autograd. Throw Unfit, or LibTorch's
/// own error, where they do not fit.
std::span<const Operation> all_operations();

/// The formats of random tensors.
std::span<const at::ScalarType> all_formats();

}  // namespace gallop::compile
