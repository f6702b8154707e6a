#pragma once

#include <memory>

#include "gallop/model/gpt.h"
#include "unit/train/trainee.h"

namespace gallop::train {

/// A model of eight blocks, each of several pages, for kText.
inline std::unique_ptr<model::Model> deep_gpt_of(model::InitialWeights weights) {
  return make_gpt({.layers = 8, .width = 128, .heads = 2}, kText, weights);
}
inline std::unique_ptr<model::Model> deep_gpt() { return deep_gpt_of(1); }

}  // namespace gallop::train
