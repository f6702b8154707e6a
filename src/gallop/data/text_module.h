#pragma once

#include <memory>

#include "gallop/data/data_module.h"
#include "gallop/data/dataset.h"

namespace gallop::data {

/// The data module of running text in windows of `data.context` tokens: to predict the next token
/// (`data.task: causal-lm`, the default), or masked ones (`masked-lm`).
std::unique_ptr<DataModule> make_text_module(std::unique_ptr<TextParts> parts,
                                             const DataContext& context);

}  // namespace gallop::data
