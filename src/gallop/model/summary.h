#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/model/model.h"

namespace gallop::model {

/// One operation of a forward pass that has parameters, multiplies matrices, or saves a tensor for
/// backward.
struct LayerSummary {
  std::string name;  ///< From its parameters, "layer1.0.conv1"; empty if there are none.
  std::string type;  ///< "conv2d 3x3", "linear", "attention"; otherwise the operator.
  std::vector<int64_t> output_sizes;
  int64_t parameters = 0;  ///< Number of parameters, counted at their first use.
  /// Forward FLOPs per input of GEMMs and convolutions; a multiply-add counts as two. Causal
  /// attention counts as full attention.
  int64_t flops = 0;
  int64_t activation_bytes = 0;  ///< Saved for backward, per input in fp32.
  /// Those of the parameters that a token does not use, as a router sends it to other experts.
  int64_t idle_parameters = 0;
  int64_t active_parameters() const { return parameters - idle_parameters; }
};

/// Runs one input of the task's shape through a model in training mode and lists its operations in
/// execution order. Bytes are what autograd saves, without the input and the logits. Buffers, the
/// training mode and the state of the random generators are restored.
std::vector<LayerSummary> summarize(Model& model, const Task& task);

/// The totals over all layers, with an empty name and the last layer's `output_sizes`.
LayerSummary total_of(const std::vector<LayerSummary>& layers);

/// Formats an aligned table with the totals in its last line.
std::string to_table(const std::vector<LayerSummary>& layers);
/// Formats as JSON: {"layers": [{"name", "type", "output_sizes", "parameters", "flops",
/// "activation_bytes", "active_parameters"}], "total": {...}}
std::string to_json(const std::vector<LayerSummary>& layers);

}  // namespace gallop::model
