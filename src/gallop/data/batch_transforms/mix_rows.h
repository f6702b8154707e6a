#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/data/image.h"

namespace gallop::data {

/// What becomes of a row of a batch: keep * row + (1 - keep) * partner, or with a box the row with
/// these pixels of the partner.
struct MixedRow {
  int64_t partner = 0;          ///< The row itself: it does not change.
  double keep = 1;              ///< Not used with a box.
  std::optional<Region> box{};  ///< Of images [C, H, W], or of masks [H, W].

  bool is_mixed(int64_t row) const { return partner != row && (box ? box->height > 0 : keep < 1); }
};

/// Changes the first plan.size() rows of `rows`, each with what its partner was before. Partners
/// may be among later rows, which do not change. On the CPU in place, in one pass over the memory;
/// on other devices the result may be a new tensor. Computed in fp32, so that devices give the same
/// bits, and rounded once.
void mix_rows(at::Tensor& rows, const std::vector<MixedRow>& plan);

/// mix_rows() by LibTorch's operators, on any device.
void mix_rows_by_operators(at::Tensor& rows, const std::vector<MixedRow>& plan);

}  // namespace gallop::data
