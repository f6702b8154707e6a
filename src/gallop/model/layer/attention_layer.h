#pragma once

#include <memory>
#include <string>

#include "gallop/config/visitor.h"
#include "gallop/model/layer/layer.h"

namespace gallop::model {

/// Multi-head self-attention of a sequence (Vaswani et al. 2017), as torch.nn.MultiheadAttention
/// with query, key and value equal.
struct AttentionConfig {
  int64_t heads = 8;
  std::string causal = "auto";  ///< auto: causal for text.
  bool rotary = false;
  bool bias = true;
  double dropout = 0;
};

void visit(config::Visitor& visitor, AttentionConfig& config);

std::unique_ptr<Layer> make_attention(const AttentionConfig& config, LayerContext& context);

}  // namespace gallop::model
