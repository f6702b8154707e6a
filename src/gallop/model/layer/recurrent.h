#pragma once

#include <memory>

#include "gallop/config/visitor.h"
#include "gallop/model/layer/layer.h"

namespace gallop::model {

/// A recurrent network over a sequence [T, C], as torch.nn.LSTM and GRU with batch_first: [T, H],
/// or [T, 2 H] where it is bidirectional. Parameters have PyTorch's names and gates their order.
struct RecurrentConfig {
  int64_t hidden = 0;
  int64_t layers = 1;
  bool bidirectional = false;
  double dropout = 0;  ///< Of the outputs of all but the last layer.
};

void visit(config::Visitor& visitor, RecurrentConfig& config);

/// Long short-term memory (Hochreiter and Schmidhuber 1997).
std::unique_ptr<Layer> make_lstm(const RecurrentConfig& config, LayerContext& context);
/// Gated recurrent units (Cho et al. 2014).
std::unique_ptr<Layer> make_gru(const RecurrentConfig& config, LayerContext& context);

}  // namespace gallop::model
