#include "gallop/optim/gradients.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

namespace gallop::optim {

namespace {

// 16 KiB of floats, summed by one thread.
constexpr int64_t kChunk = 4096;
// Numbers that a fp32 lane sums before fp64 takes over; keeps the error near that of one rounding.
constexpr int64_t kLaneSum = 64;

// Four registers of AVX-512, so that an addition need not wait for the one before it. Machines with
// shorter registers add in the same order.
using Lanes [[gnu::vector_size(64)]] = float;
constexpr int64_t kLanes = 16;
constexpr int64_t kRegisters = 4;
constexpr int64_t kStride = kLanes * kRegisters;

struct Chunk {
  float* data;
  int64_t size;
};

bool is_plain(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.layout() == c10::kStrided &&
         tensor.scalar_type() == c10::kFloat && tensor.is_non_overlapping_and_dense();
}

struct ChunkedTensor {
  float* data;
  int64_t size;
  int64_t chunks;
  int64_t first_chunk;  // Its number among those of all tensors.

  Chunk chunk(int64_t index) const {
    return {data + index * kChunk, std::min(kChunk, size - index * kChunk)};
  }
};

std::vector<ChunkedTensor> cut(at::TensorList tensors) {
  std::vector<ChunkedTensor> result;
  result.reserve(tensors.size());
  int64_t first_chunk = 0;
  for (const at::Tensor& tensor : tensors) {
    const int64_t size = tensor.numel(), chunks = (size + kChunk - 1) / kChunk;
    result.push_back({static_cast<float*>(tensor.data_ptr()), size, chunks, first_chunk});
    first_chunk += chunks;
  }
  return result;
}

double sum_of_squares_fp64(const Chunk& chunk) {
  double sum = 0;
  for (int64_t i = 0; i < chunk.size; ++i) {
    const double value = chunk.data[i];
    sum += value * value;
  }
  return sum;
}

// Of the first numbers, as many as fill whole strides.
[[gnu::always_inline]] inline double sum_in_lanes(const float* data, int64_t strides) {
  double total = 0;
  while (strides > 0) {
    Lanes sums[kRegisters] = {};
    const int64_t now = std::min(strides, kLaneSum);
    for (int64_t stride = 0; stride < now; ++stride, data += kStride) {
      for (int64_t i = 0; i < kRegisters; ++i) {
        Lanes values;
        std::memcpy(&values, data + i * kLanes, sizeof values);
        sums[i] += values * values;
      }
    }
    strides -= now;
    const Lanes sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (int64_t lane = 0; lane < kLanes; ++lane) total += static_cast<double>(sum[lane]);
  }
  return total;
}

double sum_plain(const float* data, int64_t strides) { return sum_in_lanes(data, strides); }

#if defined(__x86_64__)
[[gnu::target("avx2")]] double sum_avx2(const float* data, int64_t strides) {
  return sum_in_lanes(data, strides);
}

[[gnu::target("avx512f")]] double sum_avx512(const float* data, int64_t strides) {
  return sum_in_lanes(data, strides);
}
#endif

using Sum = double (*)(const float*, int64_t);

Sum best_sum() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return sum_avx512;
  if (__builtin_cpu_supports("avx2")) return sum_avx2;
#endif
  return sum_plain;
}

double sum_of_squares(const Chunk& chunk) {
  static const Sum kSum = best_sum();
  const int64_t strides = chunk.size / kStride;
  const int64_t summed = strides * kStride;
  const double total =
      kSum(chunk.data, strides) + sum_of_squares_fp64({chunk.data + summed, chunk.size - summed});
  // Squares of finite numbers can leave the range of fp32, but not that of fp64.
  return std::isfinite(total) ? total : sum_of_squares_fp64(chunk);
}

at::Tensor scalar(double value, at::Device device) {
  return at::scalar_tensor(value, at::TensorOptions(c10::kDouble).device(device));
}

// Calls visit(chunk number, chunk) for every chunk, by all threads. Each takes the part of a tensor
// that it takes in the optimizer's fused kernels, which then find it in their core's cache.
template <typename Visit>
void visit_chunks(const std::vector<ChunkedTensor>& tensors, const Visit& visit) {
  const int64_t threads = at::get_num_threads();
  const auto first_of = [&](int64_t thread, int64_t chunks) {
    return (chunks * thread + threads - 1) / threads;
  };
  at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (const ChunkedTensor& tensor : tensors) {
      for (int64_t i = first_of(begin, tensor.chunks); i < first_of(end, tensor.chunks); ++i) {
        visit(tensor.first_chunk + i, tensor.chunk(i));
      }
    }
  });
}

double norm_on_cpu(at::TensorList gradients) {
  const std::vector<ChunkedTensor> tensors = cut(gradients);
  std::vector<double> sums(static_cast<size_t>(tensors.back().first_chunk + tensors.back().chunks));
  visit_chunks(tensors, [&](int64_t number, const Chunk& chunk) {
    sums[static_cast<size_t>(number)] = sum_of_squares(chunk);
  });
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
}

void scale_on_cpu(at::TensorList gradients, double factor) {
  const auto by = static_cast<float>(factor);
  visit_chunks(cut(gradients), [by](int64_t, const Chunk& chunk) {
    for (int64_t i = 0; i < chunk.size; ++i) chunk.data[i] *= by;
  });
}

}  // namespace

std::vector<at::Tensor> gradients_of(const NamedTensors& parameters) {
  std::vector<at::Tensor> gradients;
  gradients.reserve(parameters.size());
  for (const NamedTensor& parameter : parameters) {
    if (const at::Tensor& gradient = parameter.tensor.grad(); gradient.defined()) {
      gradients.push_back(gradient);
    }
  }
  return gradients;
}

at::Tensor gradient_norm(at::TensorList gradients) {
  const at::NoGradGuard no_grad;
  if (gradients.empty()) return scalar(0, at::kCPU);
  if (std::all_of(gradients.begin(), gradients.end(), is_plain)) {
    return scalar(norm_on_cpu(gradients), at::kCPU);
  }
  const std::vector<at::Tensor> norms = at::_foreach_norm(gradients, 2, c10::kDouble);
  return at::linalg_vector_norm(at::stack(norms));
}

void clip_gradients(at::TensorList gradients, const at::Tensor& norm, double max_norm) {
  const at::NoGradGuard no_grad;
  if (gradients.empty()) return;
  if (norm.device().is_cpu()) {
    const double value = norm.item<double>();
    if (!std::isfinite(value) || value <= max_norm) return;
    if (std::all_of(gradients.begin(), gradients.end(), is_plain)) {
      scale_on_cpu(gradients, max_norm / value);
    } else {
      at::_foreach_mul_(gradients, max_norm / value);
    }
    return;
  }
  // The host never learns the norm, so a step on a GPU does not wait and can be captured.
  const at::Tensor one = scalar(1, norm.device());
  const at::Tensor factor = norm.reciprocal().mul(max_norm).clamp_max(1);
  at::_foreach_mul_(gradients,
                    at::where(at::isfinite(norm), factor, one).to(gradients.front().scalar_type()));
}

std::string first_non_finite_gradient(const NamedTensors& parameters) {
  for (const auto& [name, tensor] : parameters) {
    const at::Tensor& gradient = tensor.grad();
    if (gradient.defined() && !at::isfinite(gradient).all().item<bool>()) return name;
  }
  return {};
}

}  // namespace gallop::optim
