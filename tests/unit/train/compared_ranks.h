#pragma once

#include <functional>

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "gallop/tensor/named_tensor.h"
#include "gallop/train/shared_state.h"
#include "unit/parallel/ranks_together.h"

namespace gallop::train {

/// As parallel::run_ranks_together(), with one thread for the operators of each rank.
inline void run_on_one_core_each(int size,
                                 const std::function<void(parallel::Collectives&)>& function) {
  struct RestoreThreads {
    int threads = at::get_num_threads();
    ~RestoreThreads() { at::set_num_threads(threads); }
  } restore;
  at::set_num_threads(1);
  parallel::run_ranks_together(size, [&](parallel::Collectives& collectives) {
    at::set_num_threads(1);
    function(collectives);
  });
}

inline NamedTensors copies_of(const NamedTensors& tensors) {
  NamedTensors copies;
  for (const auto& [name, tensor] : tensors) copies.push_back({name, tensor.detach().clone()});
  return copies;
}

/// Whole tensors, in the first `ranks` processes; nothing in others.
inline NamedTensors gathered(parallel::Collectives& collectives,
                             const std::vector<LogicalTensor>& tensors, size_t ranks = 1) {
  NamedTensors all;
  const std::vector<std::vector<LogicalTensor>> lists(ranks, tensors);
  gather_in_turn(collectives, lists, [&](const at::Tensor& whole) {
    all.push_back({tensors[all.size()].name, whole.detach().clone()});
  });
  return all;
}

/// Expects the same names, strides and bits.
inline void expect_equal(const NamedTensors& got, const NamedTensors& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(got[i].name, wanted[i].name);
    EXPECT_EQ(got[i].tensor.strides(), wanted[i].tensor.strides()) << wanted[i].name;
    EXPECT_TRUE(at::equal(got[i].tensor, wanted[i].tensor)) << wanted[i].name;
  }
}

}  // namespace gallop::train
