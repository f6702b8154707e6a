#include "gallop/kernel/update.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <ATen/Parallel.h>

#include "gallop/kernel/cpu/update.h"
#include "gallop/kernel/flush_tiny.h"

namespace gallop::kernel {

namespace {

int64_t chunks_of(int64_t size) { return (size + kUpdateChunk - 1) / kUpdateChunk; }

// What both optimizers have.
template <typename Tensor>
void cut(Tensor& tensor, int64_t offset, int64_t size) {
  tensor.parameter += offset;
  if (tensor.bf16_gradient != nullptr) {
    tensor.bf16_gradient += offset;
  } else {
    tensor.gradient += offset;
  }
  if (tensor.shadow != nullptr) tensor.shadow += offset;
  tensor.size = size;
}

AdamwTensor part(AdamwTensor tensor, int64_t offset, int64_t size) {
  cut(tensor, offset, size);
  tensor.exp_avg += offset;
  tensor.exp_avg_sq += offset;
  return tensor;
}

SgdTensor part(SgdTensor tensor, int64_t offset, int64_t size) {
  cut(tensor, offset, size);
  if (tensor.momentum_buffer != nullptr) tensor.momentum_buffer += offset;
  return tensor;
}

ConstArray part(const ConstArray& array, int64_t offset, int64_t size) {
  if (array.bf16_data != nullptr) return {.size = size, .bf16_data = array.bf16_data + offset};
  return {.data = array.data + offset, .size = size};
}

// The root of the sum of what `body` returns for every chunk. Each thread takes the same part of
// each tensor at every call, and finds its state in its core's cache.
template <typename Tensor, typename Body>
double over_chunks(std::span<const Tensor> tensors, const Body& body) {
  std::vector<int64_t> first;  // Chunk of each tensor among all.
  int64_t chunks = 0;
  first.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    first.push_back(chunks);
    chunks += chunks_of(tensor.size);
  }
  std::vector<double> sums(static_cast<size_t>(chunks));
  const int64_t threads = chunks > 1 ? at::get_num_threads() : 1;
  at::parallel_for(0, threads, 1, [&](int64_t thread, int64_t end_thread) {
    // Where a gradient stays 0, as behind a ReLU that is never positive, the moments fade to that.
    const FlushTiny flush_tiny;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const Tensor& tensor = tensors[i];
      const int64_t count = chunks_of(tensor.size);
      const auto begin_of = [&](int64_t t) { return (count * t + threads - 1) / threads; };
      for (int64_t chunk = begin_of(thread); chunk < begin_of(end_thread); ++chunk) {
        const int64_t offset = chunk * kUpdateChunk;
        sums[static_cast<size_t>(first[i] + chunk)] =
            body(part(tensor, offset, std::min(kUpdateChunk, tensor.size - offset)));
      }
    }
  });
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
}

}  // namespace

double update(std::span<const AdamwTensor> tensors) {
  return over_chunks(tensors, best_bodies<UpdateBodies>().adamw);
}

double update(std::span<const SgdTensor> tensors) {
  return over_chunks(tensors, best_bodies<UpdateBodies>().sgd);
}

double norm(std::span<const ConstArray> arrays) {
  return over_chunks(arrays, best_bodies<UpdateBodies>().sum_of_squares);
}

}  // namespace gallop::kernel
