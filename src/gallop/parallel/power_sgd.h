#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/tensor/named_tensor.h"

namespace gallop::parallel {

/// Sums gradients over processes by factors of low rank, with what they leave out added the next
/// time (Vogels, Karimireddy and Jaggi, NeurIPS 2019, algorithms 1 and 2). Gradients that are no
/// matrices of at least twice as many numbers as their factors are summed as they are.
class PowerSgd {
 public:
  /// `gradients` are replaced by their sums. The factors of the i-th begin with random numbers by
  /// `seed` + i, the same in all processes.
  PowerSgd(const std::vector<at::Tensor>& gradients, int64_t rank, int processes, uint64_t seed);

  void start();
  void finish();
  /// Adds what start() and finish() sum, in their order.
  void add_first_sums(std::vector<at::Tensor>& all) const;
  void add_second_sums(std::vector<at::Tensor>& all) const;
  /// Drops what was left out, and begins with the first factors again.
  void forget();
  NamedTensors state() const;
  /// See Strategy::rank_state(): what was left out, and factors to begin with.
  NamedTensors rank_state() const;
  /// Adds `share` of what was left out somewhere, and begins with the factors from there.
  void add_rank_state(const NamedTensors& saved, double share);

 private:
  struct Matrix {
    at::Tensor gradient;     ///< [n, m], a view of the gradient's memory.
    at::Tensor error;        ///< [n, m]: what this process has left out.
    at::Tensor left, right;  ///< [n, rank] and [m, rank], views of `lefts_` and `rights_`.
    uint64_t seed = 0;       ///< Of the numbers that `right` begins with; differs among gradients.
  };

  std::vector<Matrix> matrices_;
  std::vector<at::Tensor> others_, places_;  ///< Gradients without factors, and places in `rest_`.
  at::Tensor lefts_, rights_, rest_;
  int processes_;
};

}  // namespace gallop::parallel
