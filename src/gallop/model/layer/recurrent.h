#pragma once

#include <memory>

#include "gallop/config/visitor.h"
#include "gallop/model/layer/layer.h"

namespace gallop::model {

/// A recurrent network over a sequence [T, C], as torch.nn.LSTM and GRU with batch_first. Returns
/// [T, H], or [T, 2 H] if bidirectional. Parameter names and gate order are PyTorch's.
struct RecurrentConfig {
  int64_t hidden = 0;
  int64_t layers = 1;
  bool bidirectional = false;
  double dropout = 0;  ///< Between layers: on the outputs of all but the last.
};

void visit(config::Visitor& visitor, RecurrentConfig& config);

/// Long short-term memory (Hochreiter and Schmidhuber 1997).
std::unique_ptr<Layer> make_lstm(const RecurrentConfig& config, LayerContext& context);
/// Gated recurrent units (Cho et al. 2014).
std::unique_ptr<Layer> make_gru(const RecurrentConfig& config, LayerContext& context);

}  // namespace gallop::model
