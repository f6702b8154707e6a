#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gallop/compile/codegen/loop_program.h"
#include "gallop/compile/codegen/loop_values.h"

namespace gallop::compile {

/// An expression of the program under construction.
struct Value {
  int32_t position = -1;
};

/// Builds a LoopProgram step by step:
///
///   LoopBuilder b({rows, columns});
///   const Value x = b.input(Format::kBf16, {columns, 1});
///   b.output(b.apply(Op::kRelu, x), Format::kBf16, {columns, 1});
///   LoopProgram program = std::move(b).finish();
///
/// Equal expressions are created only once. Inputs are numbered in the order of the calls, so
/// call input() in separate statements: C++ does not specify the evaluation order of arguments.
class LoopBuilder {
 public:
  explicit LoopBuilder(std::vector<int64_t> sizes, int32_t row_dims = 0);

  /// A new input; its index among the program's inputs is the number of previous ones.
  Value input(Format format, std::vector<int64_t> strides);
  Value constant(double number, Format format = Format::kFp32);
  Value index(int32_t dimension);
  Value cast(Value value, Format format);
  Value apply(Op op, Value a);
  Value apply(Op op, Value a, Value b);
  /// With a constant of the data type of `a`.
  Value apply(Op op, Value a, double b);
  Value select(Value condition, Value yes, Value no);

  /// A new output; its index is the number of previous ones.
  void output(Value value, Format format, std::vector<int64_t> strides);

  /// The data type of a value within the program: fp32, fp64, int64 or bool.
  Format kind(Value value) const;

  /// Returns the program after checking it; see check(LoopProgram).
  LoopProgram finish() &&;

 private:
  Value add(Expression expression);

  LoopProgram program_;
  ExactValues exact_in_bf16_{Format::kBf16}, exact_in_fp16_{Format::kFp16};
};

// LibTorch's activations in the expressions above, of x in fp32 or fp64. Gradients take the
// output's gradient first. Scalars are as in the operator's schema.
Value silu(LoopBuilder& b, Value x);
Value silu_gradient(LoopBuilder& b, Value dy, Value x);
/// The exact form, with erf.
Value gelu(LoopBuilder& b, Value x);
Value gelu_gradient(LoopBuilder& b, Value dy, Value x);
Value gelu_tanh(LoopBuilder& b, Value x);
Value gelu_tanh_gradient(LoopBuilder& b, Value dy, Value x);
Value threshold(LoopBuilder& b, Value x, double threshold, double value);
/// dy if x is above the threshold, else 0.
Value threshold_gradient(LoopBuilder& b, Value dy, Value x, double threshold);
Value clamp(LoopBuilder& b, Value x, double low, double high);
/// dy if x lies within [low, high], else 0.
Value clamp_gradient(LoopBuilder& b, Value dy, Value x, double low, double high);
Value leaky_relu(LoopBuilder& b, Value x, double slope);
Value leaky_relu_gradient(LoopBuilder& b, Value dy, Value x, double slope);
Value elu(LoopBuilder& b, Value x, double alpha, double scale, double input_scale);
Value elu_gradient(LoopBuilder& b, Value dy, Value x, double alpha, double scale,
                   double input_scale);
Value softplus(LoopBuilder& b, Value x, double beta, double threshold);
Value softplus_gradient(LoopBuilder& b, Value dy, Value x, double beta, double threshold);
Value hardsigmoid(LoopBuilder& b, Value x);
Value hardsigmoid_gradient(LoopBuilder& b, Value dy, Value x);
Value hardswish(LoopBuilder& b, Value x);
Value hardswish_gradient(LoopBuilder& b, Value dy, Value x);
Value mish(LoopBuilder& b, Value x);

}  // namespace gallop::compile
