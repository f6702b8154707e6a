#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/data/data_module.h"
#include "gallop/data/tokenizer.h"

namespace gallop::data {

/// Pairs of matching texts: a .csv, .tsv or .jsonl file, or a folder with train, val and
/// test.
struct TextPairsConfig {
  /// Two columns; empty: columns with common names, such as question and answer, or the only two.
  std::vector<std::string> texts;
  TokenizerConfig tokenizer;
};

void visit(config::Visitor& visitor, TextPairsConfig& config);

/// Fields "tokens" int64 [context, 2], ragged, with one column per text and the shorter text
/// padded, and "match" float, 1 for every pair. Throws DataError with file and line for an empty
/// text, and if the columns of the texts cannot be determined; `data.on_error: skip` leaves rows
/// with an unusable text out and counts them.
std::unique_ptr<DataModule> open_text_pairs(const TextPairsConfig& config,
                                            const DataContext& context);

}  // namespace gallop::data
