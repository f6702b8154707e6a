#include "gallop/optim/gradients.h"

#include <algorithm>
#include <cmath>
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

// 64 KiB of floats: within the second-level cache, and enough work for one task.
constexpr int64_t kChunk = 16384;
constexpr int64_t kLanes = 32;
// Numbers that a fp32 lane sums before fp64 takes over; keeps the error near that of one rounding.
constexpr int64_t kBlock = 2048;

struct Chunk {
  float* data;
  int64_t size;
};

bool is_plain(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.layout() == c10::kStrided &&
         tensor.scalar_type() == c10::kFloat && tensor.is_non_overlapping_and_dense();
}

std::vector<Chunk> split(at::TensorList tensors) {
  std::vector<Chunk> chunks;
  for (const at::Tensor& tensor : tensors) {
    auto* data = static_cast<float*>(tensor.data_ptr());
    for (int64_t at = 0; at < tensor.numel(); at += kChunk) {
      chunks.push_back({data + at, std::min(kChunk, tensor.numel() - at)});
    }
  }
  return chunks;
}

double sum_of_squares_fp64(const Chunk& chunk) {
  double sum = 0;
  for (int64_t i = 0; i < chunk.size; ++i) {
    const double value = chunk.data[i];
    sum += value * value;
  }
  return sum;
}

double sum_of_squares(const Chunk& chunk) {
  double total = 0;
  int64_t i = 0;
  while (chunk.size - i >= kLanes) {
    float lanes[kLanes] = {};
    const int64_t end = i + std::min(kBlock, (chunk.size - i) / kLanes * kLanes);
    for (; i < end; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        lanes[lane] += chunk.data[i + lane] * chunk.data[i + lane];
      }
    }
    for (const float lane : lanes) total += lane;
  }
  total += sum_of_squares_fp64({chunk.data + i, chunk.size - i});
  // Squares of finite numbers can leave the range of fp32, but not that of fp64.
  return std::isfinite(total) ? total : sum_of_squares_fp64(chunk);
}

at::Tensor scalar(double value, at::Device device) {
  return at::scalar_tensor(value, at::TensorOptions(c10::kDouble).device(device));
}

double norm_on_cpu(at::TensorList gradients) {
  const std::vector<Chunk> chunks = split(gradients);
  std::vector<double> sums(chunks.size());
  at::parallel_for(0, static_cast<int64_t>(chunks.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sums[i] = sum_of_squares(chunks[i]);
  });
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
}

void scale_on_cpu(at::TensorList gradients, double factor) {
  const std::vector<Chunk> chunks = split(gradients);
  const auto by = static_cast<float>(factor);
  at::parallel_for(0, static_cast<int64_t>(chunks.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < chunks[i].size; ++j) chunks[i].data[j] *= by;
    }
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
