#pragma once

#include <string>

#include "gallop/config/visitor.h"
#include "gallop/model/model.h"

namespace gallop::model {

/// Decoder of text as GPT-2 (Radford et al. 2019): names, shapes and first weights as nanoGPT;
/// linear weights stand [out, in], so those of transformers (Conv1D) are their transposes.
struct GptConfig {
  int64_t layers = 6;
  int64_t width = 256;
  int64_t heads = 8;
  double dropout = 0;
  /// Chance that a sample skips a part of the last layer in training; see stochastic_depth_rates().
  double stochastic_depth = 0;
  bool bias = true;
  bool tied = true;
  std::string activation = "gelu-tanh";
  std::string positions = "learned";
  std::string norm = "layer";
  std::string linear_init = "gpt-2";
};

void visit(config::Visitor& visitor, GptConfig& config);

/// The context and the vocabulary come from the task.
std::unique_ptr<Model> make_gpt(const GptConfig& config, const Task& task, InitialWeights weights);

}  // namespace gallop::model
