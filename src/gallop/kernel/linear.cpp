// Sizes: m rows of x, k inputs, n outputs.
#include "gallop/kernel/linear.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <type_traits>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/linear.h"
#include "gallop/kernel/cpu_tensor.h"
#include "gallop/kernel/gemm.h"
#include "gallop/kernel/operator.h"
#include "gallop/kernel/operators.h"

namespace gallop::kernel {

namespace {

constexpr int64_t kBlock = 32;   // Inputs or outputs in one task.
constexpr int64_t kChunk = 128;  // Rows of x that are packed at a time.
// Products that are accumulated at a time: sums of partial sums are more accurate.
constexpr int64_t kSummed = 128;
// Multiply-adds that amortize the start of a thread.
constexpr int64_t kGrain = 200'000;

AnyMatrix matrix_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const auto [rows, columns] = rows_and_columns(tensor);
  return {tensor.data_ptr(), tensor.scalar_type() == at::kBFloat16, rows, columns, columns};
}

// GEMMs in one data type by one instruction set.
template <typename Number>
class Linear {
 public:
  explicit Linear(Isa isa) : isa_(isa) {}

  void forward(const AnyMatrix& x, const AnyMatrix& weight, const float* bias, bool relu,
               const AnyMatrix& y) const {
    const int64_t m = x.rows, k = x.columns, blocks = parts_of(weight.rows, kBlock);
    const int64_t tasks = parts_of(m, kChunk) * blocks;
    at::parallel_for(0, tasks, grain(std::min(m, kChunk) * k), [&](int64_t begin, int64_t end) {
      Forward work(isa_, padded<Number>(std::min(m, kChunk)), padded<Number>(k));
      int64_t laid_out = -1;
      for (int64_t task = begin; task < end; ++task) {
        const int64_t chunk = task / blocks, first = task % blocks * kBlock;
        const int64_t row = chunk * kChunk, rows = std::min(kChunk, m - row);
        const int64_t outputs = std::min(kBlock, weight.rows - first);
        if (std::exchange(laid_out, chunk) != chunk) lay_out(x.part(row, rows, 0, k), work);
        multiply(weight.part(first, outputs, 0, k), padded<Number>(rows), work);
        kernels_.finish(work.sums, padded<Number>(rows), bias == nullptr ? bias : bias + first,
                        relu, y.part(row, rows, first, outputs));
      }
    });
  }

  // dx and dweight have no data if not requested; dbias is null then.
  void backward(const AnyMatrix& dy, const AnyMatrix& y, const AnyMatrix& x,
                const AnyMatrix& weight, const AnyMatrix& dx, const AnyMatrix& dweight,
                float* dbias) const {
    const int64_t m = x.rows, k = x.columns, n = weight.rows;
    const int64_t blocks = parts_of(k, kBlock);
    // Each thread makes dz for itself: to wait for another's, and to fetch it, takes longer.
    at::parallel_for(0, blocks, grain(2 * m * n), [&](int64_t begin, int64_t end) {
      Backward work(isa_, m, n);
      const Gradient dz(padded<Number>(m), padded<Number>(n));
      kernels_.gradient(dy, y, dz.data, dz.rows, dz.columns, begin == 0 ? dbias : nullptr);
      if (kIsBf16 && dweight.data != nullptr) {
        layout_.transpose({dz.data, dz.rows, dz.columns, dz.columns}, dz.transposed);
      }
      for (int64_t block = begin; block < end; ++block) {
        const int64_t first = block * kBlock, inputs = std::min(kBlock, k - first);
        if (dx.data != nullptr) {
          of_inputs(dz, weight.part(0, n, first, inputs), dx.part(0, m, first, inputs), work);
        }
        if (dweight.data != nullptr) {
          of_weights(dz, x.part(0, m, first, inputs), dweight.part(0, n, first, inputs), work);
        }
      }
    });
  }

 private:
  static constexpr bool kIsBf16 = std::is_same_v<Number, Bf16>;

  static int64_t grain(int64_t products) {
    return std::max<int64_t>(kGrain / std::max<int64_t>(products * kBlock, 1), 1);
  }

  // y's blocks are computed transposed, W x^T, so that only x is transposed, once for all blocks.
  struct Forward {
    Forward(Isa isa, int64_t rows, int64_t padded_inner)
        : products(isa),
          inner(padded_inner),
          scratch(2 * Scratch::bytes_of<Number>(rows * inner) +
                  Scratch::bytes_of<Number>(kBlock * inner) +
                  Scratch::bytes_of<float>(kBlock * rows)),
          copied(scratch.take<Number>(rows * inner)),
          transposed(scratch.take<Number>(rows * inner)),
          weights(scratch.take<Number>(kBlock * inner)),
          sums(scratch.take<float>(kBlock * rows)) {}
    Gemm<Number> products;
    int64_t inner;
    Scratch scratch;
    Number *copied, *transposed, *weights;
    float* sums;
  };

  // Whether GEMMs can take it in place: padded and in their data type.
  static bool fits(const AnyMatrix& matrix, int64_t rows, int64_t columns) {
    return matrix.bf16 == kIsBf16 && matrix.rows == rows && matrix.columns == columns &&
           matrix.stride == columns;
  }

  void lay_out(const AnyMatrix& x, Forward& work) const {
    const int64_t rows = padded<Number>(x.rows);
    const auto* from = static_cast<const Number*>(x.data);
    if (!fits(x, rows, work.inner)) {
      layout_.copy(x, work.copied, rows, work.inner);
      from = work.copied;
    }
    layout_.transpose_and_pair({from, rows, work.inner, work.inner}, work.transposed);
  }

  void multiply(const AnyMatrix& weight, int64_t rows, Forward& work) const {
    const int64_t outputs = padded<Number>(weight.rows);
    const auto* from = static_cast<const Number*>(weight.data);
    if (!fits(weight, outputs, work.inner)) {
      layout_.copy(weight, work.weights, outputs, work.inner);
      from = work.weights;
    }
    for (int64_t at = 0; at < work.inner; at += kSummed) {
      work.products.multiply(outputs, rows, std::min(kSummed, work.inner - at), from + at,
                             work.inner, work.transposed + at * rows, rows, work.sums, rows,
                             at > 0);
    }
  }

  // The gradient of what ReLU was applied to, padded, and for bf16 its transposed.
  struct Gradient {
    Gradient(int64_t padded_rows, int64_t padded_columns)
        : rows(padded_rows),
          columns(padded_columns),
          scratch((kIsBf16 ? 2 : 1) * Scratch::bytes_of<Number>(rows * columns)),
          data(scratch.take<Number>(rows * columns)),
          transposed(kIsBf16 ? scratch.take<Number>(rows * columns) : nullptr) {}
    int64_t rows, columns;
    Scratch scratch;
    Number *data, *transposed;
  };

  struct Backward {
    Backward(Isa isa, int64_t rows, int64_t columns)
        : products(isa),
          chunk(padded<Number>(std::min(rows, kChunk))),
          outputs(padded<Number>(columns)),
          scratch(Scratch::bytes_of<Number>(kBlock * outputs) +
                  Scratch::bytes_of<Number>(kBlock * chunk) +
                  Scratch::bytes_of<float>(kBlock * std::max(chunk, outputs))),
          weights(scratch.take<Number>(kBlock * outputs)),
          inputs(scratch.take<Number>(kBlock * chunk)),
          sums(scratch.take<float>(kBlock * std::max(chunk, outputs))) {}
    Gemm<Number> products;
    int64_t chunk, outputs;
    Scratch scratch;
    Number *weights, *inputs;
    float* sums;
  };

  // dx = dz W, of some columns.
  void of_inputs(const Gradient& dz, const AnyMatrix& weight, const AnyMatrix& dx,
                 Backward& work) const {
    layout_.copy_and_pair(weight, work.weights, work.outputs, kBlock);
    for (int64_t row = 0; row < dx.rows; row += kChunk) {
      const int64_t rows = std::min(kChunk, dx.rows - row);
      for (int64_t at = 0; at < work.outputs; at += kSummed) {
        work.products.multiply(padded<Number>(rows), kBlock, std::min(kSummed, work.outputs - at),
                               dz.data + row * dz.columns + at, dz.columns,
                               work.weights + at * kBlock, kBlock, work.sums, kBlock, at > 0);
      }
      kernels_.write(work.sums, kBlock, dx.part(row, rows, 0, dx.columns));
    }
  }

  // dW = dz^T x, of some columns.
  void of_weights(const Gradient& dz, const AnyMatrix& x, const AnyMatrix& dweight,
                  Backward& work) const {
    // Straight to where it belongs, if it has the sizes of products.
    const bool direct = !dweight.bf16 && dweight.rows == work.outputs && dweight.columns == kBlock;
    float* sums = direct ? static_cast<float*>(dweight.data) : work.sums;
    const int64_t stride = direct ? dweight.stride : kBlock;
    for (int64_t row = 0; row < x.rows; row += kChunk) {
      const int64_t count = std::min(kChunk, x.rows - row), rows = padded<Number>(count);
      layout_.copy_and_pair(x.part(row, count, 0, x.columns), work.inputs, rows, kBlock);
      if constexpr (kIsBf16) {
        work.products.multiply(work.outputs, kBlock, rows, dz.transposed + row, dz.rows,
                               work.inputs, kBlock, sums, stride, row > 0);
      } else {
        columns_.multiply(work.outputs, kBlock, rows, dz.data + row * dz.columns, dz.columns,
                          work.inputs, kBlock, sums, stride, row > 0);
      }
    }
    if (!direct) kernels_.write(sums, stride, dweight);
  }

  Isa isa_;
  LinearKernels<Number> kernels_ = kernels_for<LinearKernels<Number>>(isa_);
  LayoutKernels<Number> layout_ = kernels_for<LayoutKernels<Number>>(isa_);
  ColumnProductKernels columns_ = kernels_for<ColumnProductKernels>(isa_);
};

bool is_fp32(const at::Tensor& tensor) {
  return is_plain(tensor) && tensor.scalar_type() == at::kFloat;
}

// Checks sizes and data types, not speed.
bool fits(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
          at::ScalarType output) {
  const bool is_bf16 = weight.scalar_type() == at::kBFloat16 && output == at::kBFloat16;
  return is_plain(x) && x.dim() > 0 && is_plain(weight) && weight.dim() == 2 &&
         (is_bf16 || is_fp32(weight)) && weight.size(1) == x.size(-1) &&
         (!bias.defined() ||
          (is_fp32(bias) && bias.dim() == 1 && bias.size(0) == weight.size(0))) &&
         (output == at::kBFloat16 || (output == at::kFloat && x.scalar_type() == at::kFloat));
}

at::Tensor forward_on_cpu(const at::Tensor& x, const at::Tensor& weight,
                          const std::optional<at::Tensor>& bias, bool relu, at::ScalarType output) {
  return linear_by(best_isa(), x, weight, bias.value_or(at::Tensor()), relu, output);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> backward_on_cpu(
    const at::Tensor& dy, const std::optional<at::Tensor>& y, const at::Tensor& x,
    const at::Tensor& weight, bool wants_x, bool wants_weight, bool wants_bias) {
  auto result = linear_backward_by(best_isa(), dy, y.value_or(at::Tensor()), x, weight,
                                   {.x = wants_x, .weight = wants_weight, .bias = wants_bias});
  return {result.x, result.weight, result.bias};
}

const auto& forward_operator() {
  static const Operator kForward(
      "linear(Tensor x, Tensor weight, Tensor? bias, bool relu, ScalarType output) -> Tensor",
      forward_on_cpu);
  return kForward;
}

const auto& backward_operator() {
  static const Operator kBackward(
      "linear_backward(Tensor dy, Tensor? y, Tensor x, Tensor weight, bool wants_x, bool "
      "wants_weight, bool wants_bias) -> (Tensor x, Tensor weight, Tensor bias)",
      backward_on_cpu);
  return kBackward;
}

}  // namespace

bool takes_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  at::ScalarType output) {
  if (!fits(x, weight, bias, output)) return false;
  const auto [rows, inputs] = rows_and_columns(x);
  const bool bf16 = output == at::kBFloat16;
  if (best_isa() < (bf16 ? Isa::kAvx512Bf16 : Isa::kAvx512)) return false;
  // Forward and backward against LibTorch's, docs/kernels.md: in fp32 64 x 256 x 256 is 1.2 times
  // as fast and 256 x 256 x 256 equal, in bf16 that is 1.6 times and 512 x 512 x 512 behind.
  constexpr int64_t kRows = 256;
  const int64_t most = bf16 ? int64_t{1} << 25 : int64_t{1} << 24;
  return rows <= kRows && inputs <= most / rows / weight.size(0);
}

at::Tensor linear_by(Isa isa, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     bool relu, at::ScalarType output) {
  if (!fits(x, weight, bias, output)) throw InternalError("linear: unsupported tensors");
  auto sizes = x.sizes().vec();
  sizes.back() = weight.size(0);
  at::Tensor y = at::empty(sizes, x.options().dtype(output));
  const auto run = [&](const auto& kernel) {
    kernel.forward(matrix_of(x), matrix_of(weight), data_of<const float>(bias), relu, matrix_of(y));
  };
  output == at::kBFloat16 ? run(Linear<Bf16>(isa)) : run(Linear<float>(isa));
  return y;
}

LinearGradients linear_backward_by(Isa isa, const at::Tensor& dy, const at::Tensor& y,
                                   const at::Tensor& x, const at::Tensor& weight,
                                   const LinearWishes& wanted) {
  if (!is_plain(dy) || !fits(x, weight, {}, dy.scalar_type()) ||
      dy.numel() / weight.size(0) != x.numel() / x.size(-1) || dy.size(-1) != weight.size(0) ||
      (y.defined() &&
       (!is_plain(y) || y.sizes() != dy.sizes() || y.scalar_type() != dy.scalar_type()))) {
    throw InternalError("linear_backward: unsupported tensors");
  }
  LinearGradients gradients;
  if (wanted.x) gradients.x = at::empty(x.sizes(), x.options());
  if (wanted.weight) gradients.weight = at::empty(weight.sizes(), weight.options());
  if (wanted.bias) {
    gradients.bias = at::empty({weight.size(0)}, weight.options().dtype(at::kFloat));
  }
  const auto run = [&](const auto& kernel) {
    kernel.backward(matrix_of(dy), matrix_of(y), matrix_of(x), matrix_of(weight),
                    matrix_of(gradients.x), matrix_of(gradients.weight),
                    data_of<float>(gradients.bias));
  };
  dy.scalar_type() == at::kBFloat16 ? run(Linear<Bf16>(isa)) : run(Linear<float>(isa));
  return gradients;
}

c10::OperatorHandle linear_operator() { return forward_operator().handle(); }
c10::OperatorHandle linear_backward_operator() { return backward_operator().handle(); }

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool relu,
                  at::ScalarType output) {
  return forward_operator()(x, weight, bias, relu, output);
}

LinearGradients linear_backward(const at::Tensor& dy, const at::Tensor& y, const at::Tensor& x,
                                const at::Tensor& weight, const LinearWishes& wanted) {
  auto [dx, dweight, dbias] =
      backward_operator()(dy, y, x, weight, wanted.x, wanted.weight, wanted.bias);
  return {.x = dx, .weight = dweight, .bias = dbias};
}

}  // namespace gallop::kernel
