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

UpdateTensor part(UpdateTensor tensor, int64_t offset, int64_t size) {
  if (tensor.bf16_parameter != nullptr) {
    tensor.bf16_parameter += offset;
  } else {
    tensor.parameter += offset;
  }
  if (tensor.compensation != nullptr) tensor.compensation += offset;
  tensor.first += offset;
  static_assert(kUpdateChunk % kRoundingGroup == 0);
  if (tensor.bf16_gradient != nullptr) {
    tensor.bf16_gradient += offset;
  } else {
    tensor.gradient += offset;
  }
  for (float*& state : tensor.states) {
    if (state != nullptr) state += offset;
  }
  static_assert(kUpdateChunk % kStateBlock == 0);
  for (uint8_t*& codes : tensor.codes) {
    if (codes != nullptr) codes += offset;
  }
  for (float*& scales : tensor.scales) {
    if (scales != nullptr) scales += offset / kStateBlock;
  }
  if (tensor.bf16_copy != nullptr) tensor.bf16_copy += offset;
  tensor.size = size;
  return tensor;
}

ConstArray part(const ConstArray& array, int64_t offset, int64_t size) {
  if (array.bf16_data != nullptr) return {.size = size, .bf16_data = array.bf16_data + offset};
  return {.data = array.data + offset, .size = size};
}

// The chunks of tensors, in their order.
template <typename Tensor>
class Chunks {
 public:
  explicit Chunks(std::span<const Tensor> tensors) : tensors_(tensors) {
    first_.reserve(tensors.size() + 1);
    first_.push_back(0);
    for (const Tensor& tensor : tensors) first_.push_back(first_.back() + chunks_of(tensor.size));
  }

  /// The results of `body` for every chunk. Each thread processes the same part of each tensor at
  /// every call, so that its state stays in the core's cache.
  template <typename Result, typename Body>
  std::vector<Result> over(const Body& body) const {
    std::vector<Result> results(static_cast<size_t>(first_.back()));
    const int64_t threads = first_.back() > 1 ? at::get_num_threads() : 1;
    at::parallel_for(0, threads, 1, [&](int64_t thread, int64_t end_thread) {
      // If a gradient stays 0, as of a ReLU that is never positive, moments decay to denormals.
      const FlushTiny flush_tiny;
      for (size_t i = 0; i < tensors_.size(); ++i) {
        const Tensor& tensor = tensors_[i];
        const int64_t count = chunks_of(tensor.size);
        const auto begin_of = [&](int64_t t) { return (count * t + threads - 1) / threads; };
        for (int64_t chunk = begin_of(thread); chunk < begin_of(end_thread); ++chunk) {
          const int64_t offset = chunk * kUpdateChunk;
          results[static_cast<size_t>(first_[i] + chunk)] =
              body(part(tensor, offset, std::min(kUpdateChunk, tensor.size - offset)));
        }
      }
    });
    return results;
  }

  /// The results for the chunks of a tensor.
  template <typename Result>
  std::span<const Result> of(size_t tensor, const std::vector<Result>& results) const {
    const auto begin = static_cast<size_t>(first_[tensor]);
    return std::span(results).subspan(begin, static_cast<size_t>(first_[tensor + 1]) - begin);
  }

 private:
  std::span<const Tensor> tensors_;
  std::vector<int64_t> first_;  // First chunk of each tensor, then the number of chunks.
};

double root_of_sum(std::span<const double> sums) {
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
}

// The tensors with the trust ratio after the rule's factors.
std::vector<UpdateTensor> with_ratios(const UpdateRule& rule, const UpdateKernelFunction& body,
                                      std::span<const UpdateTensor> tensors) {
  const Chunks chunks(tensors);
  const auto sums = chunks.over<MeasuredSums>(body.measure);
  std::vector<UpdateTensor> result(tensors.begin(), tensors.end());
  for (size_t i = 0; i < tensors.size(); ++i) {
    MeasuredSums all;
    for (const MeasuredSums& part : chunks.of(i, sums)) {
      all.parameter += part.parameter;
      all.measured += part.measured;
    }
    result[i].factors[rule.factors] = static_cast<float>(
        rule.ratio(tensors[i].moment, std::sqrt(all.parameter), std::sqrt(all.measured)));
  }
  return result;
}

}  // namespace

double update(const UpdateRule& rule, std::span<const UpdateTensor> tensors) {
  const UpdateKernelFunction& body = best_kernels<UpdateKernels>().rules[rule.number];
  std::vector<UpdateTensor> measured;
  if (rule.measures != Measures::kNothing) tensors = measured = with_ratios(rule, body, tensors);
  return root_of_sum(Chunks(tensors).over<double>([&](const UpdateTensor& chunk) {
    return chunk.codes[0] != nullptr ? body.update_8_bits(chunk) : body.update(chunk);
  }));
}

double norm(std::span<const ConstArray> arrays) { return root_of_sum(sums_of_squares(arrays)); }

std::vector<double> sums_of_squares(std::span<const ConstArray> arrays) {
  static_assert(kNormChunk == kUpdateChunk);
  return Chunks(arrays).over<double>(best_kernels<UpdateKernels>().sum_of_squares);
}

double norm_of_sums(std::span<const double> sums) { return root_of_sum(sums); }

}  // namespace gallop::kernel
