#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/tensor/named_tensor.h"

namespace gallop::parallel {

/// All-reduces gradients by low-rank factors with error feedback (Vogels, Karimireddy and Jaggi,
/// NeurIPS 2019, algorithms 1 and 2). Gradients other than matrices of at least twice as many
/// elements as their factors are summed uncompressed.
class PowerSgd {
 public:
  /// `gradients` are replaced by their sums. The factors of the i-th gradient are initialized with
  /// random numbers from `seed` + i, the same in all processes.
  PowerSgd(const std::vector<at::Tensor>& gradients, int64_t rank, int processes, uint64_t seed);

  void start();
  void finish();
  /// Appends the tensors that start() and finish() all-reduce, in their order.
  void add_first_sums(std::vector<at::Tensor>& all) const;
  void add_second_sums(std::vector<at::Tensor>& all) const;
  /// Resets the errors to zero and the factors to their initial values.
  void forget();
  NamedTensors state() const;
  /// See Strategy::rank_state(): errors and factors.
  NamedTensors rank_state() const;
  /// Adds the fraction `share` of the saved errors of a process, and takes over its factors.
  void add_rank_state(const NamedTensors& saved, double share);

 private:
  struct Matrix {
    at::Tensor gradient;     ///< [n, m], a view of the gradient's memory.
    at::Tensor error;        ///< [n, m]: the error of this process.
    at::Tensor left, right;  ///< [n, rank] and [m, rank], views of `lefts_` and `rights_`.
    at::Tensor first_right;  ///< [m, rank]: the initial elements of `right`.
    uint64_t seed = 0;       ///< Seed of the initial elements of `right`; one per gradient.
  };

  std::vector<Matrix> matrices_;
  std::vector<at::Tensor> others_, places_;  ///< Gradients without factors; places in `rest_`.
  at::Tensor lefts_, rights_, rest_;
  int processes_;
};

}  // namespace gallop::parallel
