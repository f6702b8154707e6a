#pragma once

#include <memory>
#include <string>

#include "gallop/data/data_module.h"
#include "gallop/data/dataset.h"

namespace gallop::data {

/// The data module of running text in windows of `data.context` tokens, for predicting the next
/// token (`data.task: causal-lm`, the default) or masked tokens (`masked-lm`). `unit` is the type
/// of its tokens: characters or bytes.
std::unique_ptr<DataModule> make_text_module(std::unique_ptr<TextParts> parts,
                                             const std::string& unit, const DataContext& context);

}  // namespace gallop::data
