#pragma once

#include <string>

#include "gallop/config/visitor.h"
#include "gallop/model/experts_config.h"
#include "gallop/model/model.h"

namespace gallop::model {

/// Decoder-only transformer like GPT-2 (Radford et al. 2019), with nanoGPT's names, shapes and
/// initialization. Linear weights are [out, in], the transposes of those in transformers (Conv1D).
struct GptConfig {
  int64_t layers = 6;
  int64_t width = 256;
  int64_t heads = 8;
  double dropout = 0;
  /// Drop probability of the last layer's branches per sample; see stochastic_depth_rates().
  double stochastic_depth = 0;
  bool bias = true;
  bool tied = true;
  std::string activation = "gelu-tanh";
  std::string positions = "learned";
  std::string norm = "layer";
  std::string linear_init = "gpt-2";
  ExpertsConfig experts{};
};

void visit(config::Visitor& visitor, GptConfig& config);

/// The context length and the vocabulary size come from the task.
std::unique_ptr<Model> make_gpt(const GptConfig& config, const Task& task, InitialWeights weights);

}  // namespace gallop::model
