#pragma once

// What the steps share: a small network, the comparison with one process at their end, the stage of
// a pipeline (steps 5, 6 and 11), and the two operators of tensor parallelism (steps 8, 9 and 11).

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gallop/base/error.h"
#include "gallop/parallel/process_group.h"

using gallop::ProcessGroup;
using gallop::Work;
using Tensors = std::vector<at::Tensor>;

/// Random numbers in fp64, which depend on the seed alone: every process draws the same.
inline at::Tensor random(at::IntArrayRef shape, uint64_t seed) {
  return at::randn(shape, at::detail::createCPUGenerator(seed), at::kDouble);
}

/// Weights that are trained: those of one process before it is divided.
inline at::Tensor weights(at::IntArrayRef shape, uint64_t seed) {
  return (0.5 * random(shape, seed)).requires_grad_();
}

/// A part of a weight, trained by itself: part `rank` of `size` along a dimension.
inline at::Tensor part_of(const at::Tensor& whole, int64_t dim, const ProcessGroup& group) {
  return whole.detach().chunk(group.size(), dim)[group.rank()].clone(at::MemoryFormat::Contiguous);
}

/// w -= lr * gradient, after which there is no gradient.
inline void sgd(const Tensors& weights, double lr) {
  for (const at::Tensor& weight : weights) {
    weight.detach().sub_(weight.grad(), lr);
    weight.mutable_grad().reset();
  }
}

/// Compares what the processes have with what one process computes, by name. All of them add the
/// same names.
class Comparison {
 public:
  /// `tolerance`: the largest difference allowed; 0 wants the same bits.
  void add(const std::string& name, const at::Tensor& own, const at::Tensor& one_process,
           double tolerance) {
    const double difference = (own.detach() - one_process.detach()).abs().max().item<double>();
    Row& row = rows_.try_emplace(name, Row{0, tolerance}).first->second;
    if (!(difference <= row.largest)) row.largest = difference;  // Also if it is not a number.
  }

  /// Prints the largest differences in any process, and returns the exit code: 1 if one is larger
  /// than its tolerance.
  int finish(const ProcessGroup& group) const {
    int code = 0;
    for (const auto& [name, row] : rows_) {
      const at::Tensor all = at::empty({group.size()}, at::kDouble);
      group.all_gather(all, at::full({1}, row.largest, at::kDouble));
      const double largest = all.max().item<double>();
      const bool is_good = largest <= row.tolerance;
      if (!is_good) code = 1;
      if (group.rank() != 0) continue;
      fmt::print("{:<22} largest difference {:.2g}, allowed {:.2g}{}\n", name, largest,
                 row.tolerance, is_good ? "" : ": TOO LARGE");
    }
    return code;
  }

 private:
  struct Row {
    double largest, tolerance;
  };
  std::map<std::string, Row> rows_;
};

/// Runs a step in the processes that have been started, if their number is one of `sizes`.
inline int run_step(const char* program, const std::vector<int>& sizes,
                    const std::function<int(const ProcessGroup&)>& step) {
  try {
    const ProcessGroup group = gallop::init_process_group(/*timeout=*/60);
    if (std::find(sizes.begin(), sizes.end(), group.size()) == sizes.end()) {
      throw gallop::UsageError(fmt::format("start {} processes: gallop launch -n {} {}",
                                           fmt::join(sizes, " or "), sizes.front(), program));
    }
    return step(group);
  } catch (const gallop::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.code());
  }
}

/// A stage of a pipeline: the layers of this process, and the micro-batches under way in them.
class Stage {
 public:
  using Function = std::function<at::Tensor(const at::Tensor&)>;

  /// `layers`: from the stage's input to its output, of the same shape as `inputs`, the
  /// micro-batches of the first stage; `loss` follows on the last one. A forward pass takes at
  /// least `seconds`, as in a large stage, and a backward pass twice as long.
  Stage(const ProcessGroup& pipeline, Tensors inputs, Function layers, Function loss,
        double seconds = 0)
      : pipeline_(pipeline),
        inputs_(std::move(inputs)),
        layers_(std::move(layers)),
        loss_(std::move(loss)),
        seconds_(seconds) {}

  void forward(size_t i) {
    at::Tensor input = inputs_[i];
    if (!is_first()) {
      input = at::empty_like(input);
      pipeline_.recv(input, pipeline_.rank() - 1);
      input.requires_grad_();
    }
    at::Tensor& output = (under_way_[i] = {input, {}}).output;
    compute(seconds_, [&] { output = is_last() ? loss_(layers_(input)) : layers_(input); });
    if (!is_last()) send(output, pipeline_.rank() + 1);
    most_under_way = std::max(most_under_way, under_way_.size());
  }

  void backward(size_t i) {
    const Pass pass = under_way_.extract(i).mapped();
    at::Tensor gradient;
    if (!is_last()) {
      gradient = at::empty_like(pass.output);
      pipeline_.recv(gradient, pipeline_.rank() + 1);
    }
    compute(2 * seconds_, [&] { pass.output.backward(gradient); });
    if (!is_first()) send(pass.input.grad(), pipeline_.rank() - 1);
  }

  /// Waits until everything has been received.
  void finish() {
    for (Work& send : sends_) send.wait();
    sends_.clear();
  }

  size_t most_under_way = 0;  ///< Micro-batches whose activations were held at once.
  double computing = 0;       ///< Seconds.

 private:
  struct Pass {
    at::Tensor input, output;
  };

  bool is_first() const { return pipeline_.rank() == 0; }
  bool is_last() const { return pipeline_.rank() == pipeline_.size() - 1; }

  // Started alone: a neighbor that sends to this stage at the same time would wait forever.
  void send(const at::Tensor& tensor, int rank) {
    sends_.push_back(pipeline_.send_async(tensor.contiguous(), rank));
  }

  template <typename Function>
  void compute(double seconds, const Function& function) {
    const auto begin = std::chrono::steady_clock::now();
    function();
    std::this_thread::sleep_until(begin + std::chrono::duration<double>(seconds));
    computing += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  const ProcessGroup& pipeline_;
  Tensors inputs_;
  Function layers_, loss_;
  double seconds_;
  std::map<size_t, Pass> under_way_;
  std::vector<Work> sends_;
};

/// An operator for autograd that communicates: `forward_` of its input, and `backward_` of the
/// gradient.
using Collective = at::Tensor (*)(const at::Tensor&, const ProcessGroup&);

template <Collective forward_, Collective backward_>
struct Region : torch::autograd::Function<Region<forward_, backward_>> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& input,
                            const ProcessGroup* group) {
    context->saved_data["group"] = reinterpret_cast<int64_t>(group);
    return forward_(input.contiguous(), *group);
  }
  static Tensors backward(torch::autograd::AutogradContext* context, const Tensors& gradients) {
    const auto* group = reinterpret_cast<const ProcessGroup*>(context->saved_data["group"].toInt());
    return {backward_(gradients[0].contiguous(), *group), {}};
  }
};

inline at::Tensor identity(const at::Tensor& tensor, const ProcessGroup&) { return tensor.clone(); }

inline at::Tensor all_reduce(const at::Tensor& tensor, const ProcessGroup& group) {
  const at::Tensor sum = tensor.clone();
  group.all_reduce(sum);
  return sum;
}

/// f of Megatron-LM: every process has the whole input, and a part of the sum that is its gradient.
inline at::Tensor copy_to_region(const at::Tensor& x, const ProcessGroup& group) {
  return Region<identity, all_reduce>::apply(x, &group);
}

/// g of Megatron-LM: every process has a part of a sum, and the whole gradient of the sum.
inline at::Tensor reduce_from_region(const at::Tensor& x, const ProcessGroup& group) {
  return Region<all_reduce, identity>::apply(x, &group);
}
