#pragma once

#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/model/model.h"
#include "gallop/model/tabular_input.h"

namespace gallop::model {

/// Fully connected layers over the embedded numbers and categories of a table.
struct TabularMlpConfig {
  TabularInputConfig input;
  std::vector<int64_t> hidden = {128, 64};
  double dropout = 0;
};

void visit(config::Visitor& visitor, TabularMlpConfig& config);

/// Parameters "input.*", "layers.0.weight", "layers.0.bias", ...; the last layer returns the
/// logits.
std::unique_ptr<Model> make_tabular_mlp(const TabularMlpConfig& config, const Task& task,
                                        InitialWeights weights);

}  // namespace gallop::model
