#pragma once

// What the steps share: a small network, the comparison with one process at their end, the stage of
// a pipeline (steps 5, 6 and 11), and operators that communicate (steps 8 to 11).

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "gallop/parallel/process_group.h"

using gallop::ProcessGroup;
using gallop::Work;
using Tensors = std::vector<at::Tensor>;

/// Random numbers in fp64, which depend on the seed alone: every process draws the same.
at::Tensor random(at::IntArrayRef shape, uint64_t seed);

/// Weights that are trained: those of one process before it is divided.
at::Tensor weights(at::IntArrayRef shape, uint64_t seed);

/// A part of a weight: part `rank` of `size` along a dimension.
at::Tensor part_of(const at::Tensor& whole, int64_t dim, const ProcessGroup& group);

/// w -= lr * gradient, after which there is no gradient.
void sgd(const Tensors& weights, double lr);

/// Compares what the processes have with what one process computes, by name. All of them add the
/// same names.
class Comparison {
 public:
  /// `tolerance`: the largest difference allowed; 0 wants the same bits.
  void add(const std::string& name, const at::Tensor& own, const at::Tensor& one_process,
           double tolerance);
  /// Prints the largest differences in any process, and returns the exit code: 1 if one is larger
  /// than its tolerance.
  int finish(const ProcessGroup& group) const;

 private:
  struct Row {
    double largest, tolerance;
  };
  std::map<std::string, Row> rows_;
};

/// Runs a step in the processes that have been started, if their number is one of `sizes`.
int run_step(const char* program, const std::vector<int>& sizes,
             const std::function<int(const ProcessGroup&)>& step);

/// A stage of a pipeline: the layers of this process, and the micro-batches under way in them.
class Stage {
 public:
  using Function = std::function<at::Tensor(const at::Tensor&)>;

  /// `inputs`: the micro-batches of the first stage; `layers`: from a stage's input to its output,
  /// of the same shape; `loss` follows on the last one. A forward pass takes at least `seconds`, as
  /// in a large stage, and a backward pass twice as long.
  Stage(const ProcessGroup& pipeline, Tensors inputs, Function layers, Function loss,
        double seconds = 0);

  /// Receives the input, unless it is the first stage, computes, and sends the output.
  void forward(size_t micro_batch);
  /// Receives the gradient of the output, unless it is the last stage, computes, and sends that of
  /// the input.
  void backward(size_t micro_batch);
  /// Waits until everything has been received.
  void finish();

  size_t most_under_way = 0;  ///< Micro-batches whose activations were held at once.
  double computing = 0;       ///< Seconds.

 private:
  struct Pass {
    at::Tensor input, output;
  };

  bool is_first() const { return pipeline_.rank() == 0; }
  bool is_last() const { return pipeline_.rank() == pipeline_.size() - 1; }
  void send(const at::Tensor& tensor, int rank);
  void compute(double seconds, const std::function<void()>& function);

  const ProcessGroup& pipeline_;
  Tensors inputs_;
  Function layers_, loss_;
  double seconds_;
  std::map<size_t, Pass> under_way_;
  std::vector<Work> sends_;
};

/// An operator for autograd that communicates: `forward` of the input, and `backward` of the
/// gradient of the output. The group must live until the backward pass is done.
using Collective = at::Tensor (*)(const at::Tensor&, const ProcessGroup&);
at::Tensor region(const at::Tensor& input, const ProcessGroup& group, Collective forward,
                  Collective backward);

/// f of Megatron-LM: every process has the whole input, and a part of the sum that is its gradient.
/// Copies forward, all-reduces backward.
at::Tensor copy_to_region(const at::Tensor& input, const ProcessGroup& group);
/// g of Megatron-LM: every process has a part of a sum, and the whole gradient of the sum.
/// All-reduces forward, copies backward.
at::Tensor reduce_from_region(const at::Tensor& input, const ProcessGroup& group);
