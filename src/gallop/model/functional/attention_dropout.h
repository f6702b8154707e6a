#pragma once

#include <functional>
#include <optional>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/dropout.h"

namespace gallop::model::functional {

struct AttentionDropout {
  std::optional<at::Tensor> mask{};  ///< Added to scores, or bool: false where not attended to.
  double p = 0;
  bool is_causal = false;
  std::optional<double> scale{};  ///< Of scores; default: 1 / sqrt(D).
  /// If heads are divided: the part of all weights that these are; see functional::dropout().
  std::function<kernel::DropoutPart(const at::Tensor& weights)> part{};
};

/// torch.nn.functional.scaled_dot_product_attention() whose weights pass through dropout() of this
/// folder, so that its random numbers are those of the step. Query [.., H, T, D], key [.., H, S, D]
/// and value [.., H, S, E], with fewer heads if those of the query are a multiple; returns
/// [.., H, T, E]. The weights [.., H, T, S] are stored.
at::Tensor attention_with_dropout(const at::Tensor& query, const at::Tensor& key,
                                  const at::Tensor& value, const AttentionDropout& options);

}  // namespace gallop::model::functional
