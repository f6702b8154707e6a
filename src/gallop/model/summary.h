#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/model/model.h"

namespace gallop::model {

/// One operation of a forward pass that has parameters, multiplies matrices or makes something that
/// backward needs.
struct LayerSummary {
  std::string name;  ///< By its parameters, "layer1.0.conv1"; empty where it has none.
  std::string type;  ///< "conv2d 3x3", "linear", "attention"; else the operator's name.
  std::vector<int64_t> output_sizes;
  int64_t parameters = 0;  ///< Numbers trained, where a parameter is used first.
  /// Forward, for one input: matrix products and convolutions, a multiply-add counts as two. Causal
  /// attention counts as if it saw all tokens.
  int64_t flops = 0;
  int64_t activation_bytes = 0;  ///< Made here and kept for backward, for one input in fp32.
};

/// Runs one input of the task's shape through any model, in training, and lists its operations in
/// the order of execution. Bytes are what autograd really holds, without the input and the logits.
/// Buffers, the training switch and the random numbers to come stay as they were.
std::vector<LayerSummary> summarize(Model& model, const Task& task);

/// The sums over all layers, without a name; `output_sizes` are the last layer's.
LayerSummary total_of(const std::vector<LayerSummary>& layers);

/// An aligned table with the totals in its last line.
std::string to_table(const std::vector<LayerSummary>& layers);
/// {"layers": [{"name", "type", "output_sizes", "parameters", "flops", "activation_bytes"}],
/// "total": {...}}
std::string to_json(const std::vector<LayerSummary>& layers);

}  // namespace gallop::model
