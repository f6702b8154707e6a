#pragma once

#include <memory>
#include <string>

#include "gallop/data/data_module.h"
#include "gallop/data/tokenizer.h"

namespace gallop::data {

/// Text classification data: a .csv, .tsv or .jsonl file, or a folder with train, val and test.
struct LabeledTextConfig {
  std::string text = "text", label = "label";  ///< Column names.
  TokenizerConfig tokenizer;
};

void visit(config::Visitor& visitor, LabeledTextConfig& config);

/// Fields "tokens" int64 [context], ragged, and "label" int64, an index into the sorted class
/// names. Throws DataError with file and line for an empty text, an empty label, or a class missing
/// from the training split; `data.on_error: skip` leaves such rows out and counts them.
std::unique_ptr<DataModule> open_labeled_text(const LabeledTextConfig& config,
                                              const DataContext& context);

}  // namespace gallop::data
