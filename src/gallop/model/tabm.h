#pragma once

#include <string>

#include "gallop/config/visitor.h"
#include "gallop/model/model.h"
#include "gallop/model/tabular_input.h"

namespace gallop::model {

/// TabM: `members` fully connected networks that share their weights (Gorishniy et al., "TabM:
/// advancing tabular deep learning with parameter-efficient ensembling", 2024).
struct TabmConfig {
  TabularInputConfig input;
  int64_t members = 32;
  std::string adapters = "all";  ///< all (TabM) or first (TabM-mini).
  int64_t layers = 2;
  int64_t width = 128;
  double dropout = 0;
};

void visit(config::Visitor& visitor, TabmConfig& config);

/// Layer l of member i is relu(((x * r_li) W_l^T) * s_li + b_li), with r of the first layer alone
/// in TabM-mini, and each member has a linear layer for its outputs. Training minimizes the mean of
/// the members' losses; the prediction is the mean of their probabilities, or of their numbers.
/// Equals PyPI's tabm 0.0.3.
std::unique_ptr<Model> make_tabm(const TabmConfig& config, const Task& task,
                                 InitialWeights weights);

}  // namespace gallop::model
